//! The access log: one line of JSON a request, written by a thread of its own.
//!
//! A worker only hands over what it knows. When the disk cannot keep up, lines are dropped and counted, and requests do not
//! notice.

use crate::{
    table::{Deployment, Endpoint},
    ticket::Ticket,
};
use domain::Timestamp;
use serde_json::json;
use std::{
    fs,
    io::{self, BufWriter, Write},
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

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
        let out: Box<dyn Write + Send> = match path.to_str() {
            Some("-") => Box::new(io::stderr()),
            _ => Box::new(fs::File::options().create(true).append(true).open(path)?),
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

fn write(from: &Receiver<Line>, out: impl Write, dropped: &AtomicU64) {
    let mut out = BufWriter::with_capacity(64 << 10, out);
    while let Ok(first) = from.recv() {
        // A log that cannot be written must not stop requests; what is lost is counted.
        let mut written = writeln!(out, "{}", text(&first));
        for line in from.try_iter().take(1000) {
            written = written.and_then(|()| writeln!(out, "{}", text(&line)));
        }
        if written.and_then(|()| out.flush()).is_err() {
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
