//! How a node comes to what speaks for it: keys of its own, and a certificate for one of them.
//!
//! Invariants: keys are made here, kept in files that their owner alone can read, and never sent but for the one that tells this
//! machine from another of the same name; no token is asked for where a certificate reaches the server.

use super::Told;
use agent::outpost::Pass;
use api::ClientError;
use domain::machine::{MachineFacts, NodeJoin, NodeJoined};
use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// What this machine has made for itself.
pub(super) struct Own {
    /// Tells it from another that has the same token to join.
    key: String,
    /// The key of its certificate, in PEM.
    pair: String,
}

impl Own {
    /// As it was, or made at first use.
    pub(super) fn of(told: &Told) -> io::Result<Own> {
        fs::create_dir_all(&told.folder)?;
        let key = kept(&told.folder.join("key"), |key| key.len() == 64, chance)?;
        let make = || server::node_key().map_err(io::Error::other);
        let pair = kept(&told.folder.join("key.pem"), |pem| server::node_request(pem).is_ok(), make)?;
        Ok(Own { key, pair })
    }

    /// Joins, or joins again: with the certificate that is held while that is good, and else with the token to join.
    pub(super) async fn enter(
        &self,
        told: &Told,
        facts: &MachineFacts,
        held: Option<&Pass>,
    ) -> Result<(NodeJoined, Pass), ClientError> {
        if let Some(held) = held
            && let Ok(entered) = self.ask(told, facts, held, true).await
        {
            return Ok(entered);
        }
        let stranger = Pass { bearer: told.join.clone(), identity: None };
        let (joined, pass) = self.ask(told, facts, &stranger, true).await?;
        if pass.identity.is_none() {
            return Ok((joined, pass));
        }
        // Whether the certificate comes through is known when it has.
        let mut shown = self.ask(told, facts, &pass, true).await;
        if matches!(shown, Err(ClientError::Unreachable { .. })) {
            sleep(super::AGAIN).await;
            shown = self.ask(told, facts, &pass, true).await;
        }
        match shown {
            Err(ClientError::Refused { code, .. }) if code == server::NOT_SHOWN => {
                tracing::warn!(
                    "TLS ends before the server, which sees no certificate of this node: it goes on with a token"
                );
                self.ask(told, facts, &stranger, false).await
            }
            // The server has just answered, and whoever is between it and this node wants no such certificate.
            Err(error @ (ClientError::Unreachable { .. } | ClientError::Refused { status: 400, .. })) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the certificate is refused: it goes on with a token"
                );
                self.ask(told, facts, &stranger, false).await
            }
            entered => entered,
        }
    }

    async fn ask(
        &self,
        told: &Told,
        facts: &MachineFacts,
        with: &Pass,
        certificate: bool,
    ) -> Result<(NodeJoined, Pass), ClientError> {
        // Without TLS there is nothing to show it in.
        let certificate = certificate && told.url().starts_with("https://");
        let request = certificate.then(|| server::node_request(&self.pair).ok()).flatten();
        let join = NodeJoin { key: self.key.clone(), facts: facts.clone(), request };
        let joined: NodeJoined = told.client(with)?.post("/node/v1/join", &join).await?;
        let pass = match &joined.certificate {
            Some(certificate) => {
                Pass { bearer: certificate.claim.clone(), identity: Some(format!("{}{}", self.pair, certificate.pem)) }
            }
            None => Pass { bearer: joined.token.clone(), identity: None },
        };
        Ok((joined, pass))
    }
}

/// When half of a certificate's life is over.
pub(super) fn renew_at(joined: &NodeJoined) -> Option<Instant> {
    let certificate = joined.certificate.as_ref()?;
    Some(Instant::now() + Duration::from_secs(certificate.seconds) / 2)
}

/// A secret in a file, made if it is not there or not good.
fn kept(path: &Path, is_good: impl Fn(&str) -> bool, make: impl Fn() -> io::Result<String>) -> io::Result<String> {
    if let Ok(secret) = fs::read_to_string(path)
        && is_good(&secret)
    {
        return Ok(secret);
    }
    let secret = make()?;
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(secret.as_bytes())?;
    Ok(secret)
}

fn chance() -> io::Result<String> {
    let mut bytes = [0_u8; 32];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(store::secrets::hex(&bytes))
}
