//! Taking a body in: a few pieces at a time, the next ones while the last are written, their digest taken on the way.
//!
//! Invariants: what one body holds in memory is bounded, and by less the more bodies there are; a body that ends early or
//! stops coming is an error, never a short file.

use super::on_disk;
use crate::{app::App, patience::Stalled, problem::Problem};
use axum::{
    body::{Body, BodyDataStream, Bytes},
    http::{HeaderMap, StatusCode},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use futures_util::StreamExt;
use md5::{Digest, Md5};
use std::{fs::File, os::unix::fs::FileExt, path::PathBuf, sync::atomic::Ordering};
use store::files::{Room, full_or};

/// What all bodies on their way may hold in memory together, as long as each has the least it needs.
const TOGETHER: usize = 32 << 20;
const LEAST: usize = 64 << 10;
const MOST: usize = 1 << 20;

/// Counts a body while it is on its way.
pub(super) struct Transfer(App);

impl Transfer {
    pub(super) fn begin(app: &App) -> Transfer {
        app.transfers.fetch_add(1, Ordering::Relaxed);
        Transfer(app.clone())
    }

    /// How much of a body to hold at a time.
    pub(super) fn piece(&self) -> usize {
        (TOGETHER / self.0.transfers.load(Ordering::Relaxed).max(1)).clamp(LEAST, MOST)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.transfers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body on its way in.
pub(super) struct Incoming {
    chunks: BodyDataStream,
    transfer: Transfer,
    over: bool,
}

impl Incoming {
    pub(super) fn begin(app: &App, body: Body) -> Incoming {
        Incoming { chunks: body.into_data_stream(), transfer: Transfer::begin(app), over: false }
    }

    /// Whether all of it has come.
    pub(super) fn over(&self) -> bool {
        self.over
    }

    /// The next pieces; none when it is over.
    pub(super) async fn pieces(&mut self) -> Result<Vec<Bytes>, Problem> {
        let (mut pieces, mut held) = (Vec::new(), 0);
        while held < self.transfer.piece() {
            match self.chunks.next().await {
                Some(Ok(chunk)) => {
                    held += chunk.len();
                    pieces.push(chunk);
                }
                Some(Err(error)) => return Err(broken(&error)),
                None => {
                    self.over = true;
                    break;
                }
            }
        }
        Ok(pieces)
    }

    /// All of a body that must be small.
    pub(super) async fn small(mut self, most: usize) -> Result<Vec<u8>, Problem> {
        let mut all = Vec::new();
        while !self.over {
            for piece in self.pieces().await? {
                all.extend_from_slice(&piece);
            }
            if all.len() > most {
                let message = format!("the body is larger than {most} bytes");
                return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestBodyTooLarge", message));
            }
        }
        Ok(all)
    }
}

fn broken(error: &axum::Error) -> Problem {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<Stalled>() {
            let message = format!("the upload was given up: {error}");
            return Problem::new(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", message);
        }
        cause = error.source();
    }
    Problem::new(StatusCode::BAD_REQUEST, "IncompleteBody", "the upload broke off before its end")
}

/// Where the bytes of a body go.
pub(super) struct Sink {
    file: File,
    path: PathBuf,
    at: u64,
    /// The most bytes it may take; a block has its own place and no more.
    left: u64,
    bytes: u64,
    md5: Option<Md5>,
}

impl Sink {
    pub(super) fn new(file: File, path: PathBuf, at: u64, most: u64, digest: bool) -> Sink {
        Sink { file, path, at, left: most, bytes: 0, md5: digest.then(Md5::new) }
    }

    pub(super) fn write(&mut self, pieces: &[Bytes]) -> Result<(), Problem> {
        for piece in pieces {
            let length = piece.len() as u64;
            if length > self.left {
                return Err(Problem::bad("the body is longer than its `Content-Length`"));
            }
            self.file
                .write_all_at(piece, self.at)
                .map_err(|error| Problem::from(full_or(error, "write", self.path.clone())))?;
            if let Some(md5) = &mut self.md5 {
                md5.update(piece);
            }
            (self.at, self.bytes, self.left) = (self.at + length, self.bytes + length, self.left - length);
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Compares what came with what was promised.
    pub(super) fn check(self, promised: &Promised) -> Result<(), Problem> {
        match self.md5 {
            Some(md5) => promised.check(md5.finalize().into()),
            None => Ok(()),
        }
    }
}

/// Writes a body to the end.
pub(super) async fn receive(
    mut body: Incoming,
    first: Vec<Bytes>,
    mut sink: Sink,
    mut room: Room,
) -> Result<(Sink, Room), Problem> {
    let mut pieces = first;
    loop {
        let held: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        room.grow((sink.bytes + held).saturating_sub(room.bytes()))?;
        let writing = on_disk(move || sink.write(&pieces).map(|()| sink));
        let (written, next) = match body.over {
            true => (writing.await, Ok(Vec::new())),
            false => tokio::join!(writing, body.pieces()),
        };
        sink = written?;
        pieces = next?;
        if pieces.is_empty() && body.over {
            return Ok((sink, room));
        }
    }
}

/// The digests a client promised.
#[derive(Debug, Default)]
pub(super) struct Promised(Vec<[u8; 16]>);

impl Promised {
    /// The digests in these headers; a text that is no digest is refused before anything is read.
    pub(super) fn of(headers: &HeaderMap, names: &[&str]) -> Result<Promised, Problem> {
        let mut digests = Vec::new();
        for name in names {
            let Some(value) = headers.get(*name) else { continue };
            let bytes = STANDARD.decode(value.as_bytes()).ok().and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
            digests.push(bytes.ok_or_else(|| {
                Problem::new(StatusCode::BAD_REQUEST, "InvalidMd5", format!("`{name}` is not an MD5 in base64"))
            })?);
        }
        Ok(Promised(digests))
    }

    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }

    pub(super) fn check(&self, actual: [u8; 16]) -> Result<(), Problem> {
        if self.0.iter().all(|promised| *promised == actual) {
            return Ok(());
        }
        let message =
            format!("what came has the MD5 `{}`, which is not the one that was promised", STANDARD.encode(actual));
        Err(Problem::new(StatusCode::BAD_REQUEST, "Md5Mismatch", message))
    }
}
