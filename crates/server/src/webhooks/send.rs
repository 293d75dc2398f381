//! One message to one receiver: signed, to an address that may be called, no redirect followed, in bounded time.

use super::address::Reach;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use domain::Timestamp;
use reqwest::{Client, redirect};
use ring::hmac;
use std::{sync::OnceLock, time::Duration};

/// A receiver that has not answered by then is taken not to have heard.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How much of an answer is shown to whoever tests a webhook.
const SHOWN_BYTES: usize = 16 << 10;

/// Sends messages; knows how far it may.
pub(crate) struct Sender {
    pub(crate) reach: Reach,
    /// Made when first needed: few servers have webhooks.
    client: OnceLock<Client>,
}

/// A message, its receiver and what it is signed with.
pub(crate) struct Message<'a> {
    pub(crate) url: &'a str,
    pub(crate) id: &'a str,
    pub(crate) body: &'a str,
    pub(crate) secret: Option<&'a str>,
    pub(crate) now: Timestamp,
}

/// What a receiver answered.
pub(crate) struct Sent {
    pub(crate) status: u16,
    /// How long it asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: String,
}

/// Why there is no answer. The message names no address: addresses of webhooks may hold secrets.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unsent(String);

impl Sender {
    pub(crate) fn new(reach: Reach) -> Sender {
        Sender { reach, client: OnceLock::new() }
    }

    pub(crate) async fn send(&self, message: &Message<'_>) -> Result<Sent, Unsent> {
        let url = self.reach.read(message.url).map_err(|error| Unsent(error.to_string()))?;
        let seconds = (message.now.0 / 1000).to_string();
        let mut request = self
            .client()
            .map_err(unsent)?
            .post(url)
            .timeout(PATIENCE)
            .header("Content-Type", "application/json")
            .header("X-MLflow-Delivery-Id", message.id)
            .header("X-MLflow-Timestamp", &seconds);
        if let Some(secret) = message.secret {
            request = request.header("X-MLflow-Signature", signature(secret, message.id, &seconds, message.body));
        }
        let mut answer = request.body(message.body.to_owned()).send().await.map_err(unsent)?;
        let wait = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let mut bytes = Vec::new();
        while bytes.len() < SHOWN_BYTES
            && let Ok(Some(more)) = answer.chunk().await
        {
            bytes.extend_from_slice(&more);
        }
        bytes.truncate(SHOWN_BYTES);
        Ok(Sent {
            status: answer.status().as_u16(),
            retry_after: wait.map(Duration::from_secs),
            body: String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    fn client(&self) -> Result<&Client, reqwest::Error> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Fails only when one is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A proxy would be connected to in the receiver's place, unlooked at.
        let client =
            Client::builder().no_proxy().redirect(redirect::Policy::none()).dns_resolver(self.reach).build()?;
        Ok(self.client.get_or_init(|| client))
    }
}

fn unsent(error: reqwest::Error) -> Unsent {
    let error = error.without_url();
    let mut told = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        told = format!("{told}: {next}");
        cause = next.source();
    }
    Unsent(told)
}

/// `v1,` and the HMAC of the message under its id and time, in base 64.
fn signature(secret: &str, id: &str, seconds: &str, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mac = hmac::sign(&key, format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", BASE64.encode(mac.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_inside_is_not_connected_to() {
        let door = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/", door.local_addr().unwrap().port());
        let message = Message { url: &url, id: "d", body: "{}", secret: None, now: Timestamp(0) };
        let sender = Sender::new(Reach { anywhere: false });
        let refused = tokio::select! {
            sent = sender.send(&message) => sent.err().expect("nothing was to be sent").to_string(),
            _ = door.accept() => panic!("it was connected to"),
        };
        assert!(refused.contains("non-public") && !refused.contains("/"), "{refused}");
    }

    #[test]
    fn a_signature_is_the_one_receivers_compute() {
        // As `openssl dgst -sha256 -hmac key -binary | base64` has it of `d.1.{}`.
        assert_eq!(signature("key", "d", "1", "{}"), "v1,WzwdZDO78EdVirfBSa1OuH7XL4a9QJ5Q2jTCZVmM0eE=");
    }
}
