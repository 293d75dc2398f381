//! What is known of one request from its head to its end.

use crate::{
    answer::Answer,
    forward::Failed,
    http::{self, head::Request},
    table::{Deployment, Endpoint},
};
use std::{net::SocketAddr, sync::Arc};
use tokio::time::Instant;

/// Callers' own ids are cut to this.
const CLIENT_ID: usize = 40;

#[derive(Debug)]
pub(crate) struct Ticket {
    /// Made here, for every request.
    pub(crate) id: [u8; 36],
    pub(crate) began: Instant,
    pub(crate) endpoint: Option<Arc<Endpoint>>,
    pub(crate) deployment: Option<Arc<Deployment>>,
    pub(crate) replica: Option<SocketAddr>,
    /// The answer has no body, whatever its head says.
    pub(crate) bodiless: bool,
    /// An upgrade was asked for.
    pub(crate) websocket: bool,
    /// The caller speaks HTTP/1.1, and so knows chunks.
    pub(crate) modern: bool,
    /// The connection may serve another request.
    pub(crate) keep: bool,
    /// The origin that a browser may show the answer to.
    pub(crate) origin: Option<Box<str>>,
    client_id: ([u8; CLIENT_ID], u8),
    /// Method and target, where someone reads the access log.
    pub(crate) asked: Option<(Box<str>, Box<str>)>,
    /// The status sent, and the router's own word for what went wrong.
    pub(crate) status: u16,
    pub(crate) code: &'static str,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl Ticket {
    pub(crate) fn new(id: [u8; 36]) -> Ticket {
        Ticket {
            id,
            began: Instant::now(),
            endpoint: None,
            deployment: None,
            replica: None,
            bodiless: false,
            websocket: false,
            modern: true,
            keep: false,
            origin: None,
            client_id: ([0; CLIENT_ID], 0),
            asked: None,
            status: 0,
            code: "",
            received: 0,
            sent: 0,
        }
    }

    pub(crate) fn note(&mut self, request: &Request, logged: bool) {
        self.bodiless = request.method == "HEAD";
        self.websocket = request.websocket;
        self.modern = request.modern;
        self.keep = request.persistent;
        let id = request.client_request_id.unwrap_or_default();
        let clean = id.iter().filter(|b| b.is_ascii_alphanumeric() || **b == b'_' || **b == b'-').take(CLIENT_ID);
        for (at, byte) in clean.enumerate() {
            self.client_id.0[at] = *byte;
            self.client_id.1 += 1;
        }
        if logged {
            self.asked = Some((request.method.into(), request.target.into()));
        }
    }

    /// The caller's own id as far as it is one; empty when there is none.
    pub(crate) fn client_id(&self) -> &[u8] {
        &self.client_id.0[..usize::from(self.client_id.1)]
    }

    /// Writes the fields that every answer has.
    pub(crate) fn fields(&self, out: &mut Vec<u8>) {
        if !self.client_id().is_empty() {
            http::field(out, "x-ms-client-request-id", self.client_id());
        }
        if let Some(deployment) = &self.deployment {
            http::field(out, "azureml-model-deployment", deployment.name.as_bytes());
        }
        if let Some(origin) = &self.origin {
            http::field(out, "access-control-allow-origin", origin.as_bytes());
            http::field(out, "access-control-expose-headers", b"*");
            http::field(out, "vary", b"origin");
        }
    }

    /// Remembers how an exchange ended that did not end well: 502 where the replica was at fault, whatever its answer began
    /// with, and 499 where the caller left. Neither is sent to anyone.
    pub(crate) fn failed(&mut self, failed: &Failed) {
        (self.status, self.code) = match failed {
            Failed::Answer(answer, _) => (answer.status, answer.code),
            Failed::Broken(Some(_)) => (502, "BrokenOff"),
            Failed::Broken(None) => (499, "CallerLeft"),
        };
    }

    /// Writes an answer of our own.
    pub(crate) fn answer(&mut self, answer: &Answer, out: &mut Vec<u8>) {
        (self.status, self.code) = (answer.status, answer.code);
        answer.write(out, self, !self.keep);
    }
}
