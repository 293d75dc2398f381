//! One connection of a caller: wait, read a head, decide, forward or refuse, and again.
//!
//! While it waits it holds no buffer, and what it needs for a request is in a box that goes when the request does, so that
//! ten thousand idle connections cost next to nothing.

use crate::{
    answer::Answer,
    forward::{self, Exchange, Failed},
    http::{self, MAX_HEAD, Scan, head::BadHead, head::Framing},
    prepare::{Caller, prepare},
    ticket::Ticket,
    timer::Timer,
    worker::{Io, Worker},
};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    rc::Rc,
    task::Poll,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::Instant,
};

/// What HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Before a connection is closed on a caller who still sends, so much is read and thrown away for so long: closed at
/// once, the system might take back the answer that the caller has not read yet.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

pub(crate) struct Conn<S> {
    io: S,
    worker: Rc<Worker>,
    caller: Caller,
    /// For waiting between requests; its deadlines only ever move forward.
    idle: Timer,
    timer: Timer,
}

/// How a connection ended.
pub(crate) enum Ended<S> {
    Closed,
    /// The caller speaks HTTP/2; these bytes are its first.
    Http2(S, Vec<u8>),
}

/// What comes after a request.
enum Next {
    Wait,
    /// Everything is read and answered, or the caller is gone.
    Close,
    /// The caller may still be sending.
    Linger,
    Http2,
}

/// A head that did not come.
enum NoHead {
    Gone,
    Refused(Answer),
    Http2,
}

impl<S: Io> Conn<S> {
    pub(crate) fn new(worker: Rc<Worker>, io: S, caller: Caller) -> Conn<S> {
        Conn { io, worker, caller, idle: Timer::new(), timer: Timer::new() }
    }

    /// Serves until the connection ends. `sniff`: HTTP/2 is possible.
    pub(crate) async fn run(mut self, mut sniff: bool) -> Ended<S> {
        while let Some(mut bytes) = self.wait().await {
            let next = Box::pin(self.serve(&mut bytes, sniff)).await;
            if let Next::Http2 = next {
                return Ended::Http2(self.io, bytes);
            }
            self.worker.buffers.put(bytes);
            match next {
                Next::Wait => {}
                Next::Linger => {
                    self.linger().await;
                    break;
                }
                _ => break,
            }
            sniff = false;
        }
        Ended::Closed
    }

    /// The first bytes of the next request; `None` when there will be none.
    async fn wait(&mut self) -> Option<Vec<u8>> {
        let Conn { io, worker, idle, .. } = self;
        let mut closed = pin!(worker.closed().notified());
        let first = poll_fn(|cx| {
            let mut bytes = worker.buffers.small();
            if let Poll::Ready(read) = pin!(io.read_buf(&mut bytes)).poll(cx) {
                return Poll::Ready(read.ok().filter(|read| *read > 0).map(|_| bytes));
            }
            worker.buffers.put(bytes);
            match worker.is_closing() || closed.as_mut().poll(cx).is_ready() {
                true => Poll::Ready(None),
                false => Poll::Pending,
            }
        });
        idle.within(worker.limits.idle, first).await.flatten()
    }

    /// Answers requests for as long as there are bytes of the next one.
    async fn serve(&mut self, bytes: &mut Vec<u8>, mut sniff: bool) -> Next {
        while !bytes.is_empty() {
            let next = match self.head(bytes, sniff).await {
                Ok(length) => self.request(bytes, length).await,
                Err(NoHead::Gone) => Next::Close,
                Err(NoHead::Http2) => Next::Http2,
                Err(NoHead::Refused(answer)) => {
                    let ticket = Ticket::new(self.worker.chance.guid());
                    self.refuse(ticket, &answer).await;
                    Next::Linger
                }
            };
            if !matches!(next, Next::Wait) {
                return next;
            }
            sniff = false;
        }
        Next::Wait
    }

    /// Reads until a whole head is there, and says how long it is.
    async fn head(&mut self, bytes: &mut Vec<u8>, sniff: bool) -> Result<usize, NoHead> {
        let malformed = |what| NoHead::Refused(Answer::bad_head(BadHead::Malformed(what)));
        let mut seen = 0;
        let mut deadline = None;
        loop {
            // Clients may put an empty line between requests.
            while seen == 0 && bytes.starts_with(b"\r\n") {
                bytes.drain(..2);
            }
            if sniff && bytes.len() >= 3 && PREFACE.starts_with(&bytes[..bytes.len().min(PREFACE.len())]) {
                if bytes.len() >= PREFACE.len() {
                    return Err(NoHead::Http2);
                }
            } else {
                match http::scan(bytes, seen) {
                    Scan::End(length) if length <= MAX_HEAD => return Ok(length),
                    Scan::BareLine => return Err(malformed("a line does not end in CR LF")),
                    Scan::End(_) => return Err(NoHead::Refused(Answer::bad_head(BadHead::TooLarge))),
                    Scan::More(to) => seen = to,
                }
            }
            if bytes.len() > MAX_HEAD {
                return Err(NoHead::Refused(Answer::bad_head(BadHead::TooLarge)));
            }
            if bytes.contains(&0) {
                return Err(malformed("its head holds a NUL"));
            }
            let until = *deadline.get_or_insert_with(|| Instant::now() + self.worker.limits.head);
            bytes.reserve(4096);
            match self.timer.by(until, self.io.read_buf(bytes)).await {
                Some(Ok(read)) if read > 0 => {}
                Some(_) => return Err(NoHead::Gone),
                None => {
                    return Err(NoHead::Refused(Answer::client(
                        408,
                        "SlowHead",
                        "the head of the request did not come in time",
                    )));
                }
            }
        }
    }

    async fn request(&mut self, bytes: &mut Vec<u8>, length: usize) -> Next {
        let mut out = self.worker.buffers.small();
        let (mut ticket, framing, plan) = prepare(&self.worker, &self.caller, &bytes[..length], &mut out);
        bytes.drain(..length);
        ticket.keep &= !self.worker.is_draining();
        let plan = match plan {
            Ok(plan) => plan,
            Err(answer) => {
                self.worker.buffers.put(out);
                // Who sends what makes no sense is not listened to any longer.
                let skipped = answer.status != 400 && skip(bytes, framing);
                ticket.keep &= skipped;
                let keep = ticket.keep;
                return match self.refuse(ticket, &answer).await {
                    true if keep => Next::Wait,
                    true if skipped => Next::Close,
                    true => Next::Linger,
                    false => Next::Close,
                };
            }
        };
        let mut exchange = Exchange::new(&self.worker, &mut ticket, &mut self.timer);
        let done = forward::forward(&mut self.io, bytes, &mut out, plan, &mut exchange).await;
        self.worker.buffers.put(out);
        match done {
            Ok(keep) => {
                self.worker.finish(ticket);
                if keep { Next::Wait } else { Next::Linger }
            }
            Err(Failed::Answer(answer, _)) => {
                // How much of the body was read is no longer known.
                ticket.keep = false;
                self.refuse(ticket, &answer).await;
                Next::Linger
            }
            Err(Failed::Broken(_)) => {
                ticket.code = "BrokenOff";
                self.worker.finish(ticket);
                Next::Close
            }
        }
    }

    /// Answers without a replica; false when the caller is gone.
    async fn refuse(&mut self, mut ticket: Ticket, answer: &Answer) -> bool {
        let mut out = self.worker.buffers.small();
        ticket.answer(answer, &mut out);
        ticket.sent = out.len() as u64;
        let sent = forward::send(&mut self.io, &out, &mut self.timer, self.worker.limits.stall).await.is_ok();
        self.worker.buffers.put(out);
        self.worker.finish(ticket);
        sent
    }

    /// Closes for writing, and reads for a moment what the caller still sends.
    async fn linger(&mut self) {
        let Conn { io, worker, timer, .. } = self;
        let mut bytes = worker.buffers.small();
        let rest = async {
            let _ = io.shutdown().await;
            let mut left = LINGER_BYTES;
            while left > 0 {
                bytes.clear();
                match io.read_buf(&mut bytes).await {
                    Ok(read) if read > 0 => left = left.saturating_sub(read),
                    _ => return,
                }
            }
        };
        let _ = timer.within(LINGER, rest).await;
        worker.buffers.put(bytes);
    }
}

/// Throws away a body that is there already; false when it is not, or not all of it.
fn skip(bytes: &mut Vec<u8>, framing: Framing) -> bool {
    match framing {
        Framing::Absent => true,
        Framing::Length(length) if length <= bytes.len() as u64 => {
            bytes.drain(..usize::try_from(length).unwrap_or(bytes.len()));
            true
        }
        _ => false,
    }
}
