//! Logs on their way to a server elsewhere: what a file has grown by, at the offset it belongs to.
//!
//! The files are the memory, so that nothing is held here but the piece under way, however long the server is away.
//! Invariant: what is sent twice lands in one place, because the server takes a range it has for what it is.

use crate::{context::Context, server::CallError};
use api::Client;
use domain::{AttemptId, report::What};
use reqwest::{Method, StatusCode};
use std::{collections::BTreeMap, convert::Infallible, fs, io, os::unix::fs::FileExt, path::Path, time::Duration};

const EVERY: Duration = Duration::from_millis(300);
/// The most that is held in memory and sent at once.
const PIECE: usize = 1 << 20;
/// Where an answer says how much of a log the server has, whether or not it took the piece.
const NEXT: &str = "x-peregrine-next";
/// Whatever is sent, now or later, the server will not take it: no such log, the attempt is over, no room for it.
const NEVER: [u16; 6] = [400, 404, 410, 413, 422, 507];
/// The folders of logs, which are flat.
const FOLDERS: [&str; 2] = ["user_logs", "system_logs"];

pub(super) struct Shipper<'a> {
    cx: &'a Context,
    attempt: &'a AttemptId,
    root: &'a Path,
    files: BTreeMap<String, Known>,
    /// What is known of a file that was not there before.
    at_first: Known,
}

/// What is known of one file at the other end.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// An agent before this one may have sent some of it.
    Nothing,
    /// How much the server has, and how far into the file that is: a file that was cut begins anew, and its log goes on.
    Sent { there: u64, here: u64 },
    /// The server will not have it, now or later.
    Refused,
}

impl<'a> Shipper<'a> {
    pub(super) fn new(cx: &'a Context, attempt: &'a AttemptId, root: &'a Path) -> Shipper<'a> {
        let again = !names(root).is_empty();
        let at_first = if again { Known::Nothing } else { Known::Sent { there: 0, here: 0 } };
        Shipper { cx, attempt, root, files: BTreeMap::new(), at_first }
    }

    /// Sends what is new, again and again.
    pub(super) async fn follow(&mut self) -> Infallible {
        let mut tries = 0;
        loop {
            tries = if self.send_new().await.is_ok() { 0 } else { tries + 1 };
            tokio::time::sleep(if tries == 0 { EVERY } else { self.cx.server.pause(tries) }).await;
        }
    }

    /// Returns when the server has every byte.
    pub(super) async fn finish(&mut self) {
        let mut tries = 0;
        while let Err(error) = self.send_new().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "the server took no log");
            tokio::time::sleep(self.cx.server.pause(tries)).await;
            tries += 1;
        }
    }

    /// A piece of each log in turn, until there is nothing new: one that grows fast does not hold up the others.
    async fn send_new(&mut self) -> Result<(), CallError> {
        loop {
            let mut nothing_new = true;
            for name in names(self.root) {
                let known = self.files.get(&name).copied().unwrap_or(self.at_first);
                let Some(next) = next_piece(&self.root.join(&name), known) else { continue };
                let known = self.send(&name, next).await?;
                self.files.insert(name, known);
                nothing_new = false;
            }
            if nothing_new {
                return Ok(());
            }
        }
    }

    async fn send(&self, name: &str, Piece { there: offset, here, bytes }: Piece) -> Result<Known, CallError> {
        let path = format!("/agent/v1/attempts/{}/logs/{name}?offset={offset}", self.attempt);
        let sent = self.cx.server.call(async |client: Client| {
            let request = client.request(Method::PUT, &path).body(bytes);
            let answer = request.send().await.map_err(|error| client.unreachable(error))?;
            let taken = answer.status().is_success() || answer.status() == StatusCode::CONFLICT;
            let next = answer.headers().get(NEXT).filter(|_| taken);
            match next.and_then(|next| next.to_str().ok()?.parse().ok()) {
                Some(length) => Ok(length),
                None => Err(api::client::refusal(answer).await),
            }
        });
        match sent.await {
            Ok(there) => Ok(Known::Sent { there, here: (here + there).saturating_sub(offset) }),
            Err(error) if error.refused().is_some_and(|status| NEVER.contains(&status)) => {
                let text = format!("the rest of `{name}` is left out: {error}");
                self.cx.reporter.say(self.attempt, self.cx.now(), What::Notice { text });
                Ok(Known::Refused)
            }
            Err(error) => Err(error),
        }
    }
}

/// The logs there are now, relative to the root.
fn names(root: &Path) -> Vec<String> {
    let in_folder = |folder: &'static str| {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        entries.filter_map(move |entry| Some(format!("{folder}/{}", entry.file_name().to_str()?)))
    };
    FOLDERS.into_iter().flat_map(in_folder).collect()
}

/// A part of a file, where it belongs in the log and where it lies here.
struct Piece {
    there: u64,
    here: u64,
    bytes: Vec<u8>,
}

/// What to send next of a file. A piece without bytes asks how much the server has.
fn next_piece(path: &Path, known: Known) -> Option<Piece> {
    let file = fs::File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    match known {
        Known::Nothing => Some(Piece { there: length, here: length, bytes: Vec::new() }),
        Known::Sent { there, here } => {
            let here = if here > length { 0 } else { here };
            let bytes = read_at(&file, here).ok().filter(|bytes| !bytes.is_empty())?;
            Some(Piece { there, here, bytes })
        }
        Known::Refused => None,
    }
}

fn read_at(file: &fs::File, offset: u64) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; PIECE];
    let read = file.read_at(&mut piece, offset)?;
    piece.truncate(read);
    Ok(piece)
}
