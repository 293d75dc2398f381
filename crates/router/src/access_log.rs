//! The access log: one line of JSON a request, written by a thread of its own.
//!
//! A worker only hands over what it knows. When the disk cannot keep up, lines are dropped and counted, and requests do not
//! notice. Invariant: a log and the one before it never take more than twice [`MOST_BYTES`], and a batch of lines.

use crate::{
    table::{Deployment, Endpoint},
    ticket::Ticket,
};
use domain::Timestamp;
use serde_json::json;
use std::{
    fs,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// A file that has grown to this is put aside.
const MOST_BYTES: u64 = 64 << 20;
/// Lines that may wait to be written.
const WAITING: usize = 16_384;

/// A handle that every worker has a copy of. The thread ends when the last one is gone.
#[derive(Debug, Clone)]
pub(crate) struct AccessLog {
    lines: SyncSender<Line>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Line {
    at: Timestamp,
    id: [u8; 36],
    client_id: Option<Box<[u8]>>,
    asked: Option<(Box<str>, Box<str>)>,
    endpoint: Option<Arc<Endpoint>>,
    deployment: Option<Arc<Deployment>>,
    replica: Option<SocketAddr>,
    status: u16,
    code: &'static str,
    received: u64,
    sent: u64,
    took: Duration,
}

impl AccessLog {
    /// Appends to a file; `-` is standard error.
    pub(crate) fn open(path: &Path) -> io::Result<(AccessLog, JoinHandle<()>)> {
        let out = match path.to_str() {
            Some("-") => Out::Stderr,
            _ => Out::File(Capped::open(path, MOST_BYTES)?),
        };
        let (lines, from) = sync_channel(WAITING);
        let log = AccessLog { lines, dropped: Arc::default() };
        let dropped = Arc::clone(&log.dropped);
        let writer = thread::Builder::new().name("access-log".to_owned()).spawn(move || write(&from, out, &dropped))?;
        Ok((log, writer))
    }

    pub(crate) fn write(&self, at: Timestamp, ticket: Ticket, took: Duration) {
        let client_id = (!ticket.client_id().is_empty()).then(|| ticket.client_id().into());
        let Ticket { id, asked, endpoint, deployment, replica, status, code, received, sent, .. } = ticket;
        let line = Line { at, id, client_id, asked, endpoint, deployment, replica, status, code, received, sent, took };
        if self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Relaxed);
        }
    }
}

enum Out {
    Stderr,
    File(Capped),
}

/// A file that is put aside when it has grown.
struct Capped {
    path: PathBuf,
    file: fs::File,
    most: u64,
    written: u64,
}

impl Capped {
    fn open(path: &Path, most: u64) -> io::Result<Capped> {
        let file = fs::File::options().create(true).append(true).open(path)?;
        // What is no plain file cannot be put aside: a pipe, `/dev/stdout`.
        let meta = file.metadata()?;
        let most = if meta.is_file() { most } else { u64::MAX };
        Ok(Capped { path: path.to_owned(), written: meta.len(), file, most })
    }

    /// Lines go to one file or the other whole.
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.written >= self.most {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            fs::rename(&self.path, aside)?;
            *self = Capped::open(&self.path, self.most)?;
        }
        self.file.write_all(lines)?;
        self.written += lines.len() as u64;
        Ok(())
    }
}

impl Out {
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Out::Stderr => io::stderr().write_all(lines),
            Out::File(file) => file.write(lines),
        }
    }
}

fn write(from: &Receiver<Line>, mut out: Out, dropped: &AtomicU64) {
    let mut lines = Vec::new();
    while let Ok(first) = from.recv() {
        lines.clear();
        for line in std::iter::once(first).chain(from.try_iter().take(1000)) {
            lines.extend_from_slice(text(&line).to_string().as_bytes());
            lines.push(b'\n');
        }
        // A log that cannot be written must not stop requests; what is lost is counted.
        if out.write(&lines).is_err() {
            dropped.fetch_add(1, Relaxed);
        }
        let lost = dropped.swap(0, Relaxed);
        if lost > 0 {
            tracing::warn!(lost, "the access log cannot keep up; lines are missing");
        }
    }
}

fn text(line: &Line) -> serde_json::Value {
    let mut shown = json!({
        "time": line.at.iso(),
        "request_id": String::from_utf8_lossy(&line.id),
        "status": line.status,
        "duration_us": u64::try_from(line.took.as_micros()).unwrap_or(u64::MAX),
        "bytes_in": line.received,
        "bytes_out": line.sent,
    });
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            shown[key] = value.into();
        }
    };
    add("client_request_id", line.client_id.as_ref().map(|id| String::from_utf8_lossy(id).into_owned()));
    add("method", line.asked.as_ref().map(|(method, _)| method.to_string()));
    add("path", line.asked.as_ref().map(|(_, path)| path.to_string()));
    add("endpoint", line.endpoint.as_ref().map(|endpoint| endpoint.name.to_string()));
    add("deployment", line.deployment.as_ref().map(|deployment| deployment.name.to_string()));
    add("replica", line.replica.map(|replica| replica.to_string()));
    add("error", (!line.code.is_empty()).then(|| line.code.to_owned()));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_has_grown_is_put_aside_and_the_one_before_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = Capped::open(&path, 10).unwrap();
        for line in ["first line\n", "second line\n", "third line\n"] {
            log.write(line.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "third line\n");
        assert_eq!(fs::read_to_string(folder.path().join("access.log.1")).unwrap(), "second line\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        // A router that starts again goes on where the last one was.
        Capped::open(&path, 10).unwrap().write(b"fourth\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "fourth\n");
    }
}
