//! A log file, read on from where the last piece ended.

use crate::commands::Session;
use api::ClientError;
use domain::JobName;
use percent_encoding::percent_decode_str;
use reqwest::{Method, header::HeaderMap};

/// A file of a job and how far it was read.
pub(super) struct Tail {
    path: String,
    offset: u64,
}

/// What came, and where the job was then.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) status: String,
    pub(super) phase: String,
    pub(super) note: String,
    /// The job has ended and nothing more will come.
    pub(super) over: bool,
}

impl Tail {
    pub(super) fn new(path: &str) -> Tail {
        Tail { path: path.to_owned(), offset: 0 }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The next piece; waits up to `wait` seconds for one.
    pub(super) async fn read(&mut self, session: &Session<'_>, job: &JobName, wait: u32) -> Result<Piece, ClientError> {
        let path = session.path(&format!("jobs/{job}/artifacts/{}?offset={}&wait={wait}", self.path, self.offset));
        let answer = match session.client.send(session.client.request(Method::GET, &path)).await {
            // Not every job has every log.
            Err(ClientError::Refused { status: 404, code, .. }) if code == "ArtifactNotFound" => return Ok(Piece::default()),
            answer => answer?,
        };
        let next = header(answer.headers(), "x-peregrine-next").parse().ok();
        let mut piece = Piece::of(answer.headers());
        piece.bytes = answer.bytes().await.map_err(|error| session.client.unreachable(error))?.to_vec();
        self.offset = next.unwrap_or(self.offset + piece.bytes.len() as u64);
        Ok(piece)
    }
}

impl Piece {
    fn of(headers: &HeaderMap) -> Piece {
        Piece {
            bytes: Vec::new(),
            status: header(headers, "x-peregrine-status"),
            phase: header(headers, "x-peregrine-phase"),
            note: percent_decode_str(&header(headers, "x-peregrine-note")).decode_utf8_lossy().into_owned(),
            over: header(headers, "x-peregrine-over") == "true",
        }
    }

    /// The command runs or has run, so that its own log is the one to follow.
    pub(super) fn has_started(&self) -> bool {
        self.over || matches!(self.status.as_str(), "Running" | "Finalizing" | "Completed" | "Failed" | "Canceled" | "CancelRequested")
    }
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
