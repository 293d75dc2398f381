//! Who calls, and whether they may.
//!
//! A token is 32 random bytes in a file that only its owner can read: whoever can read the file is who it says.
//! Signed links carry their own permission: one container, one time limit. Comparisons take the same time
//! whether or not they match.

use crate::problem::Problem;
use axum::http::StatusCode;
use domain::Timestamp;
use std::{io, path::Path};
use store::secrets::{Keyring, hex, write_owner_only};

/// What a caller may act as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    User,
    Agent,
    /// A running job, for itself only.
    Job {
        workspace: String,
        job: String,
    },
}

#[derive(Debug, Clone)]
pub struct Caller {
    pub role: Role,
    /// Shown as the creator of things.
    pub name: String,
}

/// The tokens of a home.
pub(crate) struct Tokens {
    user: [u8; 32],
    agent: [u8; 32],
    owner: String,
}

impl Tokens {
    pub(crate) fn load_or_make(keys: &Path, keyring: &Keyring) -> io::Result<Tokens> {
        let digest = |role| Ok::<_, io::Error>(fingerprint(&make_token(keys, role, keyring)?));
        let owner = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "local user".into());
        Ok(Tokens { user: digest("user")?, agent: digest("agent")?, owner })
    }

    /// The caller behind an `Authorization` header.
    pub(crate) fn caller(&self, header: Option<&str>, keyring: &Keyring, now: Timestamp) -> Result<Caller, Problem> {
        let token = header.and_then(|value| value.strip_prefix("Bearer ").or_else(|| value.strip_prefix("bearer ")));
        let Some(token) = token else {
            return Err(unauthorized("send `Authorization: Bearer <token>`"));
        };
        let digest = fingerprint(token.trim());
        if digest == self.user {
            return Ok(Caller { role: Role::User, name: self.owner.clone() });
        }
        if digest == self.agent {
            return Ok(Caller { role: Role::Agent, name: "agent".into() });
        }
        job_of(token, keyring, now).ok_or_else(|| unauthorized("the token is not one of this server's"))
    }
}

/// A token for code inside a job: names the job, ends with it.
pub(crate) fn job_token(keyring: &Keyring, workspace: &str, job: &str, expires: Timestamp) -> String {
    let claim = format!("{workspace}/{job}/{}", expires.0);
    format!("job.{claim}.{}", keyring.sign(&format!("job {claim}")))
}

fn job_of(token: &str, keyring: &Keyring, now: Timestamp) -> Option<Caller> {
    let (claim, signature) = token.strip_prefix("job.")?.rsplit_once('.')?;
    if !keyring.signed(&format!("job {claim}"), signature) {
        return None;
    }
    let mut parts = claim.rsplitn(2, '/');
    let expires: i64 = parts.next()?.parse().ok()?;
    let (workspace, job) = parts.next()?.split_once('/')?;
    (now.0 < expires).then(|| Caller {
        role: Role::Job { workspace: workspace.to_owned(), job: job.to_owned() },
        name: job.to_owned(),
    })
}

/// A query string that opens one container until `expires`. `write` also lets it change things.
pub(crate) fn sign_link(
    keyring: &Keyring,
    workspace: &str,
    container: &str,
    write: bool,
    expires: Timestamp,
) -> String {
    let rights = if write { "racwl" } else { "rl" };
    let seconds = expires.0 / 1000;
    let signature = keyring.sign(&link_text(workspace, container, rights, seconds));
    format!("sv=2021-06-08&sr=c&sp={rights}&se={seconds}&sig={signature}")
}

/// Whether a query string opens this container now, for writing if `write`.
pub(crate) fn link_opens(
    keyring: &Keyring,
    query: &str,
    workspace: &str,
    container: &str,
    write: bool,
    now: Timestamp,
) -> bool {
    let part = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    let (Some(rights), Some(expires), Some(signature)) = (part("sp"), part("se"), part("sig")) else { return false };
    let Ok(seconds) = expires.parse::<i64>() else { return false };
    now.0 / 1000 < seconds
        && (!write || rights.contains('w'))
        && keyring.signed(&link_text(workspace, container, rights, seconds), signature)
}

fn link_text(workspace: &str, container: &str, rights: &str, seconds: i64) -> String {
    format!("link {workspace} {container} {rights} {seconds}")
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
    fn a_link_opens_its_own_container_for_its_time_and_rights() {
        let home = tempfile::tempdir().unwrap();
        let store = store::Store::open(home.path()).unwrap();
        let ring = store.keyring();
        let read = sign_link(ring, "w", "c", false, Timestamp(10_000));
        assert!(link_opens(ring, &read, "w", "c", false, Timestamp(5_000)));
        assert!(!link_opens(ring, &read, "w", "c", true, Timestamp(5_000)));
        assert!(!link_opens(ring, &read, "w", "d", false, Timestamp(5_000)));
        assert!(!link_opens(ring, &read, "w", "c", false, Timestamp(20_000)));
        let forged = read.replace("sp=rl", "sp=racwl");
        assert!(!link_opens(ring, &forged, "w", "c", true, Timestamp(5_000)));
    }

    #[test]
    fn a_jobs_token_names_its_job_and_expires() {
        let home = tempfile::tempdir().unwrap();
        let store = store::Store::open(home.path()).unwrap();
        let tokens = Tokens::load_or_make(home.path(), store.keyring()).unwrap();
        let header = format!("Bearer {}", job_token(store.keyring(), "w", "train", Timestamp(1000)));
        let caller = tokens.caller(Some(&header), store.keyring(), Timestamp(1)).unwrap();
        assert_eq!(caller.role, Role::Job { workspace: "w".into(), job: "train".into() });
        assert!(tokens.caller(Some(&header), store.keyring(), Timestamp(2000)).is_err());
        assert!(tokens.caller(Some("Bearer nonsense"), store.keyring(), Timestamp(1)).is_err());
        assert!(tokens.caller(None, store.keyring(), Timestamp(1)).is_err());
    }
}
