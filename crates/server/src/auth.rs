//! Who calls, and whether they may.
//!
//! Three kinds of bearer tokens are believed: the ones in this home's key files (whoever can read the file is who it
//! says), web tokens minted here for principals and jobs, and a principal's own long-lived token. A node of a managed cluster
//! is believed by the certificate of its connection. Signed links carry their own permission. Comparisons take the same time whether or not they match.

mod certificates;
mod jwt;
mod limits;
mod links;
mod principals;
pub(crate) mod sessions;

pub(crate) use certificates::{Authority, Claim, Shown};
pub use certificates::{JOIN_AGAIN, NOT_SHOWN, node_key, node_request};
pub(crate) use jwt::{Claims, Keys, LIFE_SECONDS};
pub(crate) use limits::Limits;
pub(crate) use links::{link_opens, sign_folder_link, sign_link};
pub(crate) use principals::{Principals, allow, digest};

use crate::problem::Problem;
use axum::http::StatusCode;
use domain::{
    AttemptId, Role, Timestamp,
    access::{EVERYWHERE, OWN_TOKEN},
};
use principals::Roles;
use std::{
    io,
    path::{Path, PathBuf},
};
use store::{
    PrincipalRow,
    secrets::{Keyring, hex, write_owner_only},
};

/// What kind of caller it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Whoever can read the key files of this server's home.
    Home,
    /// An agent.
    Agent,
    /// Someone registered here, by id.
    Principal(String),
    /// A running job, with a token for itself only.
    Job { workspace: String, job: String },
    /// The agent of one attempt, wherever it runs.
    Attempt(AttemptId),
    /// The operator of a cluster, with the token of this generation.
    Cluster { name: String, generation: i64 },
    /// A machine that has yet to join a managed cluster under this name.
    Joining { cluster: String, machine: String },
    /// A node of a managed cluster that has joined with this key.
    Machine { cluster: String, machine: String, key: String },
    /// A running job that asked for an identity: works in its workspace as its user does.
    JobIdentity { workspace: String, job: String },
}

/// Someone whose token was believed.
#[derive(Debug, Clone)]
pub struct Caller {
    pub who: Who,
    /// Shown as the creator of things.
    pub name: String,
    roles: Roles,
    /// Whom the token is meant for; tokens that are not web tokens are meant for all of this server.
    audience: Option<String>,
}

impl Caller {
    fn new(who: Who, name: impl Into<String>, roles: Roles) -> Caller {
        Caller { who, name: name.into(), roles, audience: None }
    }

    /// The caller as the audit names them: a name is anyone's to choose, an id is not.
    pub(crate) fn on_record(&self) -> String {
        match &self.who {
            Who::Home | Who::Agent => self.name.clone(),
            Who::Attempt(attempt) => format!("attempt:{attempt}"),
            Who::Cluster { name, .. } => format!("cluster:{name}"),
            Who::Joining { machine, .. } | Who::Machine { machine, .. } => format!("node:{machine}"),
            Who::Principal(id) => format!("{} ({id})", self.name),
            Who::Job { workspace, job } | Who::JobIdentity { workspace, job } => format!("job:{workspace}/{job}"),
        }
    }

    /// Whether the caller holds a role in a workspace.
    pub(crate) fn may(&self, workspace: &str, role: Role) -> bool {
        allow(&self.roles, workspace, role)
    }

    /// Whether the caller's token is meant for one of these.
    pub(crate) fn is_meant_for(&self, audiences: &[&str]) -> bool {
        let known =
            |audience: &String| audiences.iter().any(|one| one.trim_end_matches('/') == audience.trim_end_matches('/'));
        self.audience.as_ref().is_none_or(known)
    }
}

/// The tokens of a home.
pub(crate) struct Tokens {
    user: [u8; 32],
    agent: [u8; 32],
    owner: String,
    pub(crate) keys: Keys,
    pub(crate) principals: Principals,
    /// Signs the certificates of nodes.
    pub(crate) authority: Option<Authority>,
}

/// Where the keys of web tokens lie.
pub(crate) fn tokens_folder(keys: &Path) -> PathBuf {
    keys.join("tokens")
}

impl Tokens {
    pub(crate) fn load_or_make(folder: &Path, keyring: &Keyring, now: Timestamp) -> io::Result<Tokens> {
        let digest = |role| Ok::<_, io::Error>(fingerprint(&make_token(folder, role, keyring)?));
        let owner = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "local user".into());
        let keys = Keys::load_or_make(&tokens_folder(folder), keyring, now)?;
        let (principals, authority) = (Principals::default(), Authority::of(folder));
        Ok(Tokens { user: digest("user")?, agent: digest("agent")?, owner, keys, principals, authority })
    }

    /// The caller behind an `Authorization` header.
    pub(crate) fn caller(&self, header: Option<&str>, keyring: &Keyring, now: Timestamp) -> Result<Caller, Problem> {
        let token = header.and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")));
        let Some(token) = token.map(str::trim) else {
            return Err(unauthorized("send `Authorization: Bearer <token>`"));
        };
        let print = fingerprint(token);
        if print == self.user {
            return Ok(self.home());
        }
        if print == self.agent {
            return Ok(Caller::new(Who::Agent, "agent", Roles::new()));
        }
        let found = self
            .principal_of(token, now)
            .map(|row| of_principal(&row))
            .or_else(|| job_of(token, keyring, now))
            .or_else(|| remote_of(token, keyring))
            .or_else(|| self.bearer(token, now));
        found.ok_or_else(|| {
            unauthorized("the token is not one of this server's, or its time is over; `peregrine sdk login` makes one")
        })
    }

    /// Someone who proved before who they are: whoever holds this home, or a principal who still may call.
    fn named(&self, who: &str, now: Timestamp) -> Option<Caller> {
        match who {
            sessions::HOME => Some(self.home()),
            id => Some(of_principal(&*self.principals.active(id, now)?)),
        }
    }

    /// Whether whoever made something under this name may not submit work to a workspace any more. Things keep names and
    /// no ids, so one of that name who may is enough; whoever holds this home always may.
    pub(crate) fn have_lost(&self, name: &str, workspace: &str, now: Timestamp) -> bool {
        name != self.owner && self.principals.have_lost(name, workspace, now)
    }

    /// What whoever holds this home is called.
    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    fn home(&self) -> Caller {
        Caller::new(Who::Home, self.owner.clone(), [(EVERYWHERE.to_owned(), Role::Owner)].into())
    }

    /// The principal whose own token this is.
    pub(crate) fn principal_of(&self, token: &str, now: Timestamp) -> Option<std::sync::Arc<PrincipalRow>> {
        let (id, secret) = token.strip_prefix(OWN_TOKEN)?.split_once('.')?;
        self.principals.with_secret(id, secret, now)
    }

    fn bearer(&self, token: &str, now: Timestamp) -> Option<Caller> {
        let claims = self.keys.verify(token, now)?;
        let mut caller = match claims.sub.strip_prefix("job:") {
            Some(job) => {
                let (workspace, job) = job.split_once('/')?;
                let who = Who::JobIdentity { workspace: workspace.to_owned(), job: job.to_owned() };
                Caller::new(who, job, [(workspace.to_owned(), Role::Contributor)].into())
            }
            None => of_principal(&*self.principals.active(&claims.sub, now)?),
        };
        caller.audience = Some(claims.aud);
        Some(caller)
    }
}

fn of_principal(row: &PrincipalRow) -> Caller {
    Caller::new(Who::Principal(row.id.clone()), row.name.clone(), row.roles.clone())
}

/// A principal's own token: for clients that know only one secret.
pub(crate) fn own_token(id: &str, secret: &str) -> String {
    format!("{OWN_TOKEN}{id}.{secret}")
}

/// A token for code inside a job: names the job, ends with it.
pub(crate) fn job_token(keyring: &Keyring, workspace: &str, job: &str, expires: Timestamp) -> String {
    let claim = format!("{workspace}/{job}/{}", expires.0);
    format!("job.{claim}.{}", keyring.sign(&format!("job {claim}")))
}

/// The job whose token this is.
pub(crate) fn job_of(token: &str, keyring: &Keyring, now: Timestamp) -> Option<Caller> {
    let (claim, signature) = token.strip_prefix("job.")?.rsplit_once('.')?;
    if !keyring.signed(&format!("job {claim}"), signature) {
        return None;
    }
    let mut parts = claim.rsplitn(2, '/');
    let expires: i64 = parts.next()?.parse().ok()?;
    let (workspace, job) = parts.next()?.split_once('/')?;
    let who = Who::Job { workspace: workspace.to_owned(), job: job.to_owned() };
    (now.0 < expires).then(|| Caller::new(who, job, Roles::new()))
}

/// A token for the agent of one attempt. It is good for as long as the attempt is.
pub(crate) fn attempt_token(keyring: &Keyring, attempt: &AttemptId) -> String {
    format!("attempt.{attempt}.{}", keyring.sign(&format!("attempt {attempt}")))
}

/// A token for the operator of a cluster, until there is one of a later generation.
pub fn cluster_token(keyring: &Keyring, name: &str, generation: i64) -> String {
    let claim = format!("{name}/{generation}");
    format!("cluster.{claim}.{}", keyring.sign(&format!("cluster {claim}")))
}

/// What one machine joins a managed cluster with, once.
pub fn join_token(keyring: &Keyring, cluster: &str, machine: &str) -> String {
    let claim = format!("{cluster}/{machine}");
    format!("join.{claim}.{}", keyring.sign(&format!("join {claim}")))
}

/// A token for a node that has joined and whose certificate does not come through, until it is gone; `key` is the digest of
/// the machine's own.
pub(crate) fn machine_token(keyring: &Keyring, cluster: &str, machine: &str, key: &str) -> String {
    let claim = format!("{cluster}/{machine}/{key}");
    format!("machine.{claim}.{}", keyring.sign(&format!("machine {claim}")))
}

/// What a node lends data by, and nothing else.
pub(crate) fn lending_secret(keyring: &Keyring, cluster: &str, machine: &str, key: &str) -> String {
    keyring.sign(&format!("lend {cluster}/{machine}/{key}"))
}

/// The attempt, the cluster or the node whose token this is.
fn remote_of(token: &str, keyring: &Keyring) -> Option<Caller> {
    let (kind, rest) = token.split_once('.')?;
    let (claim, signature) = rest.rsplit_once('.')?;
    if !keyring.signed(&format!("{kind} {claim}"), signature) {
        return None;
    }
    let who = match kind {
        "attempt" => Who::Attempt(AttemptId::parse(claim).ok()?),
        "cluster" => {
            let (name, generation) = claim.rsplit_once('/')?;
            Who::Cluster { name: name.to_owned(), generation: generation.parse().ok()? }
        }
        "join" => {
            let (cluster, machine) = claim.rsplit_once('/')?;
            Who::Joining { cluster: cluster.to_owned(), machine: machine.to_owned() }
        }
        "machine" => {
            let (rest, key) = claim.rsplit_once('/')?;
            let (cluster, machine) = rest.rsplit_once('/')?;
            Who::Machine { cluster: cluster.to_owned(), machine: machine.to_owned(), key: key.to_owned() }
        }
        _ => return None,
    };
    Some(Caller::new(who, claim, Roles::new()))
}

/// The token of a role, made at first use.
pub fn make_token(keys: &Path, role: &str, keyring: &Keyring) -> io::Result<String> {
    let path = keys.join(format!("{role}.token"));
    if let Ok(token) = std::fs::read_to_string(&path)
        && !token.trim().is_empty()
    {
        return Ok(token.trim().to_owned());
    }
    let token = hex(&keyring.random::<32>());
    write_owner_only(&path, token.as_bytes())?;
    Ok(token)
}

/// Digests are compared, so how far a wrong token matches cannot be measured.
fn fingerprint(token: &str) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, token.as_bytes());
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

pub(crate) fn unauthorized(message: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "AuthenticationFailed", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobs_token_names_its_job_and_expires() {
        let home = tempfile::tempdir().unwrap();
        let store = store::Store::open(home.path()).unwrap();
        let tokens = Tokens::load_or_make(home.path(), store.keyring(), Timestamp(1)).unwrap();
        let header = format!("Bearer {}", job_token(store.keyring(), "w", "train", Timestamp(1000)));
        let caller = tokens.caller(Some(&header), store.keyring(), Timestamp(1)).unwrap();
        assert_eq!(caller.who, Who::Job { workspace: "w".into(), job: "train".into() });
        assert!(!caller.may("w", Role::Reader));
        assert!(tokens.caller(Some(&header), store.keyring(), Timestamp(2000)).is_err());
        let attempt = AttemptId::of(3, 1);
        let mine = format!("Bearer {}", attempt_token(store.keyring(), &attempt));
        assert_eq!(tokens.caller(Some(&mine), store.keyring(), Timestamp(1)).unwrap().who, Who::Attempt(attempt));
        let forged = mine.replace("att_3_1", "att_3_2");
        assert!(tokens.caller(Some(&forged), store.keyring(), Timestamp(1)).is_err());
        let other = mine.replace("attempt.", "cluster.");
        assert!(tokens.caller(Some(&other), store.keyring(), Timestamp(1)).is_err(), "a token is of one kind");
        assert!(tokens.caller(Some("Bearer nonsense"), store.keyring(), Timestamp(1)).is_err());
        assert!(tokens.caller(None, store.keyring(), Timestamp(1)).is_err());
    }
}
