//! Reading a blob: all of it or a range, in pieces, the next one read while the last is sent.

use super::{
    condition::{self, Conditions, Verdict},
    describe, facts, no_blob, on_disk,
    receive::Transfer,
    text, whole_note,
};
use crate::{app::App, problem::Problem};
use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{Stream, stream};
use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};
use store::files::{Found, Note, Spot};
use tokio::task::{JoinHandle, spawn_blocking};

/// Answers up to this size are read at once.
const AT_ONCE: u64 = 256 << 10;

/// What of a blob is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Nothing,
    All,
    /// From the first to the last byte, both included.
    Range(u64, u64),
    Outside,
}

/// A blob that was looked at, and the beginning of what is sent of it.
struct Looked {
    file: File,
    found: Found,
    note: Note,
    part: Part,
    verdict: Verdict,
    first: Option<Bytes>,
}

/// `GET` of a blob, or with `whole` false a look at it.
pub(super) async fn blob(app: &App, spot: Spot, headers: &HeaderMap, content: bool) -> Result<Response, Problem> {
    let conditions = Conditions::of(headers);
    let range = headers.get("x-ms-range").or_else(|| headers.get(header::RANGE));
    let range = range.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (files, place) = (app.files.clone(), spot.clone());
    let looked = on_disk(move || {
        let Some((file, found)) = files.open(&place)? else { return Ok(None) };
        let note = Note::read(&file)?;
        let verdict = conditions.to_read(&found, &note);
        let part = if content { part(range.as_deref(), found.bytes) } else { Part::Nothing };
        let first = match span(part, found.bytes) {
            (from, length) if verdict == Verdict::Go && length <= AT_ONCE => Some(piece(&file, from, length)?),
            _ => None,
        };
        Ok(Some(Looked { file, found, note, part, verdict, first }))
    });
    let mut looked = looked.await?.ok_or_else(|| no_blob(&spot))?;
    looked.note = whole_note(app, &spot, looked.note).await?;
    answer(app, looked)
}

fn answer(app: &App, looked: Looked) -> Result<Response, Problem> {
    let Looked { file, found, note, part, verdict, first } = looked;
    let mut headers = facts(&found, &note);
    match (verdict, part) {
        (Verdict::Unmet, _) => return Err(condition::unmet()),
        (Verdict::NotModified, _) => {
            headers.insert("x-ms-error-code", HeaderValue::from_static("ConditionNotMet"));
            return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
        }
        (Verdict::Go, Part::Outside) => {
            let message = format!("the range lies outside of the blob, which has {} bytes", found.bytes);
            return Err(Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange", message));
        }
        (Verdict::Go, _) => {}
    }
    describe(&mut headers, &note);
    let (from, length) = span(part, found.bytes);
    let mut status = StatusCode::OK;
    let mut digest = "content-md5";
    if let Part::Range(from, to) = part {
        status = StatusCode::PARTIAL_CONTENT;
        digest = "x-ms-blob-content-md5";
        headers.insert(header::CONTENT_RANGE, text(&format!("bytes {from}-{to}/{}", found.bytes)));
    }
    if let Some(md5) = note.md5(&found) {
        headers.insert(digest, text(md5));
    }
    let told = if part == Part::Nothing { found.bytes } else { length };
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(told));
    let body = match first {
        _ if part == Part::Nothing => Body::empty(),
        Some(bytes) => Body::from(bytes),
        None => Body::from_stream(pieces(app, file, from, length)),
    };
    Ok((status, headers, body).into_response())
}

/// `bytes=a-b` with both ends included, `bytes=a-`, `bytes=-n`. What is no range at all is as good as none.
fn part(range: Option<&str>, length: u64) -> Part {
    let Some((from, to)) = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-')) else {
        return Part::All;
    };
    let bounds = match (from.trim().parse::<u64>(), to.trim().parse::<u64>()) {
        (Ok(from), Ok(to)) => (from, to),
        (Ok(from), Err(_)) if to.is_empty() => (from, u64::MAX),
        (Err(_), Ok(last)) if from.is_empty() && last > 0 => (length.saturating_sub(last), u64::MAX),
        _ => return Part::All,
    };
    match bounds {
        (from, to) if from < length && from <= to => Part::Range(from, to.min(length - 1)),
        _ => Part::Outside,
    }
}

/// Where the part begins, and how long it is.
fn span(part: Part, length: u64) -> (u64, u64) {
    match part {
        Part::All => (0, length),
        Part::Range(from, to) => (from, to - from + 1),
        Part::Nothing | Part::Outside => (0, 0),
    }
}

fn piece(file: &File, at: u64, length: u64) -> io::Result<Bytes> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes.into())
}

/// The pieces of a stretch. A file that became shorter meanwhile breaks the answer off, which its client notices.
fn pieces(app: &App, file: File, from: u64, length: u64) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let reading = Reading { file: Arc::new(file), at: from, end: from + length, transfer: Transfer::begin(app) };
    stream::unfold((reading, None), |(mut reading, ahead): (Reading, Option<Ahead>)| async move {
        let now = ahead.or_else(|| reading.begin())?;
        let next = reading.begin();
        let read = now.await.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()));
        Some((read, (reading, next)))
    })
}

type Ahead = JoinHandle<io::Result<Bytes>>;

struct Reading {
    file: Arc<File>,
    at: u64,
    end: u64,
    transfer: Transfer,
}

impl Reading {
    /// Begins to read the next piece; `None` at the end.
    fn begin(&mut self) -> Option<Ahead> {
        let length = (self.end - self.at).min(self.transfer.piece() as u64);
        if length == 0 {
            return None;
        }
        let (file, at) = (Arc::clone(&self.file), self.at);
        self.at += length;
        Some(spawn_blocking(move || piece(&file, at, length)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_to_the_blob_or_lies_outside() {
        for (range, length, expected) in [
            ("bytes=0-3", 10, Part::Range(0, 3)),
            ("bytes=8-99", 10, Part::Range(8, 9)),
            ("bytes=7-", 10, Part::Range(7, 9)),
            ("bytes=-4", 10, Part::Range(6, 9)),
            ("bytes=-40", 10, Part::Range(0, 9)),
            ("bytes=10-", 10, Part::Outside),
            ("bytes=0-0", 0, Part::Outside),
            ("bytes=5-4", 10, Part::Outside),
            ("lines=1-2", 10, Part::All),
            ("bytes=x-y", 10, Part::All),
        ] {
            assert_eq!(part(Some(range), length), expected, "{range}");
        }
    }
}
