//! A log file, read on from where the last piece ended.

use crate::commands::Session;
use api::ClientError;
use domain::JobName;
use percent_encoding::percent_decode_str;
use reqwest::{Method, header::HeaderMap};

/// Seconds that the server may hold an answer back for news.
const WAIT: u32 = 20;

/// The two logs of a job that people watch: of its environment's build, and of its command.
pub(super) struct Tails {
    pub(super) build: Tail,
    pub(super) log: Tail,
}

/// From which log a piece came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Build,
    Log,
}

impl Tails {
    /// News from the command's log and, before the command runs, from the build's. What is not awaited to its end
    /// is asked for again, because an offset moves only with the bytes that came.
    pub(super) async fn read(
        &mut self,
        session: &Session<'_>,
        job: &JobName,
        running: bool,
    ) -> Result<(From, Piece), ClientError> {
        if running {
            return Ok((From::Log, self.log.read(session, job, WAIT).await?));
        }
        tokio::select! {
            piece = self.build.read(session, job, WAIT) => Ok((From::Build, piece?)),
            piece = self.log.read(session, job, WAIT) => Ok((From::Log, piece?)),
        }
    }
}

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
        let answer = session.client.send(session.client.request(Method::GET, &path)).await?;
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
        self.over
            || matches!(
                self.status.as_str(),
                "Running" | "Finalizing" | "Completed" | "Failed" | "Canceled" | "CancelRequested"
            )
    }
}

fn header(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
