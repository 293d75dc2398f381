//! Answers that the router gives itself: what went wrong, whose fault it was, what to do next.
//!
//! Status codes are a contract with callers: 502 the model failed, 503 no slot in time, 504 it took too
//! long, 401, 403, 404 and 413 as usual, 429 for rate limits and for nothing else.

use crate::{
    auth::Denied,
    http::{self, head::BadHead},
    ticket::Ticket,
};
use serde_json::json;
use std::borrow::Cow;

/// Who has to change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Client,
    /// The model behind the endpoint.
    Model,
    /// The router, or whoever gave it too few replicas.
    Router,
}

/// An answer without a replica's help.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Stable, for programs; empty where nothing went wrong.
    pub(crate) code: &'static str,
    fault: Fault,
    message: Cow<'static, str>,
    /// More header lines.
    fields: Vec<u8>,
}

impl Fault {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Fault::Client => "client",
            Fault::Model => "model",
            Fault::Router => "router",
        }
    }
}

impl Answer {
    pub(crate) fn new(status: u16, code: &'static str, fault: Fault, message: impl Into<Cow<'static, str>>) -> Answer {
        Answer { status, code, fault, message: message.into(), fields: Vec::new() }
    }

    pub(crate) fn client(status: u16, code: &'static str, message: impl Into<Cow<'static, str>>) -> Answer {
        Answer::new(status, code, Fault::Client, message)
    }

    /// The model failed: 502, with what is known of it in the headers that say so.
    pub(crate) fn model(code: &'static str, message: impl Into<Cow<'static, str>>) -> Answer {
        Answer::new(502, code, Fault::Model, message).with("ms-azureml-model-error-reason", code)
    }

    /// No slot in time.
    pub(crate) fn busy(code: &'static str, message: impl Into<Cow<'static, str>>) -> Answer {
        Answer::new(503, code, Fault::Router, message).with("retry-after", "1")
    }

    /// Nothing is wrong: an answer with fields and no body.
    pub(crate) fn empty(status: u16) -> Answer {
        Answer::new(status, "", Fault::Client, "")
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Answer {
        http::field(&mut self.fields, name, value.as_bytes());
        self
    }

    pub(crate) fn bad_head(bad: BadHead) -> Answer {
        let (status, code) = match bad {
            BadHead::Malformed(_) => (400, "BadRequest"),
            BadHead::TooLarge => (431, "HeadersTooLarge"),
            BadHead::Version => (505, "HttpVersion"),
            BadHead::Coding => (501, "TransferCoding"),
            BadHead::Expectation => (417, "Expectation"),
            BadHead::Method => (405, "Method"),
        };
        Answer::client(status, code, bad.to_string())
    }

    pub(crate) fn denied(denied: Denied) -> Answer {
        let (status, code, message) = match denied {
            Denied::Missing => {
                (401, "MissingKey", "send `authorization: Bearer <key>` with one of the endpoint's keys or tokens")
            }
            Denied::Wrong => (
                401,
                "WrongKey",
                "the key or token is not one of this endpoint's; `peregrine online-endpoint get-credentials` shows them",
            ),
            Denied::Expired => (401, "ExpiredToken", "the token has expired; ask for a new one"),
            Denied::Elsewhere => (403, "OtherEndpoint", "the token is for another endpoint"),
            Denied::NotAllowed => (
                403,
                "NotAllowed",
                "you may not call this endpoint; `peregrine principal grant --role contributor` lets you",
            ),
        };
        let answer = Answer::client(status, code, message);
        if status == 401 { answer.with("www-authenticate", "Bearer") } else { answer }
    }

    pub(crate) fn too_many_wrong_keys() -> Answer {
        Answer::client(
            429,
            "TooManyWrongKeys",
            "too many wrong keys from this address; wait a minute and check the key",
        )
        .with("retry-after", "60")
    }

    pub(crate) fn too_large(limit: u64) -> Answer {
        Answer::client(413, "BodyTooLarge", format!("the body is larger than the {limit} bytes this endpoint takes"))
    }

    /// Writes the whole message.
    pub(crate) fn write(&self, out: &mut Vec<u8>, ticket: &Ticket, close: bool) {
        let id = ticket.id;
        let body = match self.code {
            "" => String::new(),
            code => {
                let error = json!({"code": code, "message": self.message, "fault": self.fault.word()});
                json!({"error": error, "requestId": String::from_utf8_lossy(&id)}).to_string()
            }
        };
        out.extend_from_slice(b"HTTP/1.1 ");
        http::decimal(out, u64::from(self.status));
        out.push(b' ');
        out.extend_from_slice(reason(self.status).as_bytes());
        out.extend_from_slice(b"\r\n");
        http::field(out, "x-request-id", &id);
        ticket.fields(out);
        out.extend_from_slice(&self.fields);
        if !body.is_empty() {
            http::field(out, "content-type", b"application/json");
        }
        if self.status != 204 {
            out.extend_from_slice(b"content-length: ");
            http::decimal(out, body.len() as u64);
            out.extend_from_slice(b"\r\n");
        }
        if close {
            http::field(out, "connection", b"close");
        }
        out.extend_from_slice(b"\r\n");
        if !ticket.bodiless {
            out.extend_from_slice(body.as_bytes());
        }
    }
}

/// The usual words for a status.
pub(crate) fn reason(status: u16) -> &'static str {
    ::http::StatusCode::from_u16(status).ok().and_then(|code| code.canonical_reason()).unwrap_or("Status")
}
