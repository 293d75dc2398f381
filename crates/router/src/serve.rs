//! One connection of a caller: wait, read a head, decide, forward or refuse, and again.
//!
//! While it waits it holds no buffer, and what it needs for a request is in a box that goes when the request does, so that
//! ten thousand idle connections cost next to nothing.

use crate::{
    answer::Answer,
    forward::{self, Exchange, Failed},
    http::{self, MAX_HEAD, Scan, head::BadHead, head::Framing},
    http2,
    prepare::{Caller, prepare},
    ticket::Ticket,
    timer::Timer,
    worker::{Io, Worker},
};
use std::{
    future::Future,
    mem,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
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

/// A connection between two requests.
pub(crate) struct Conn<S> {
    io: S,
    worker: Rc<Worker>,
    caller: Caller,
    /// Its first bytes may be those of HTTP/2.
    sniff: bool,
}

/// A connection from its first request to its last: the future that serves it.
pub(crate) struct Conversation<S> {
    phase: Phase<S>,
    /// Where it stands among those who wait.
    place: Option<u32>,
}

enum Phase<S> {
    Idle(Conn<S>),
    /// Gives the connection back unless that is over.
    Busy(Pin<Box<dyn Future<Output = Option<Conn<S>>>>>),
    Over,
}

/// A connection at work.
struct Busy<S> {
    conn: Conn<S>,
    timer: Timer,
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

impl<S: Io + 'static> Conn<S> {
    pub(crate) fn new(worker: Rc<Worker>, io: S, caller: Caller) -> Conn<S> {
        let sniff = worker.http2;
        Conn { io, worker, caller, sniff }
    }

    /// What speaks HTTP/2 has said so before.
    pub(crate) fn without_http2(self) -> Conn<S> {
        Conn { sniff: false, ..self }
    }

    /// Serves until the connection ends.
    pub(crate) fn converse(self) -> Conversation<S> {
        Conversation { phase: Phase::Idle(self), place: None }
    }

    /// The first bytes of the next request; `None` when there will be none.
    fn poll_first(&mut self, place: &mut Option<u32>, cx: &mut Context) -> Poll<Option<Vec<u8>>> {
        let Conn { io, worker, .. } = self;
        if let Poll::Ready(read) = worker.buffers.poll_read(io, cx) {
            worker.idle.leave(place.take());
            return Poll::Ready(read.ok().filter(|bytes| !bytes.is_empty()));
        }
        match worker.idle.wait(place, cx.waker()) || worker.is_closing() {
            true => Poll::Ready(None),
            false => Poll::Pending,
        }
    }

    /// Answers what begins with these bytes.
    async fn serve(self, mut bytes: Vec<u8>) -> Option<Conn<S>> {
        let timer = self.worker.timers.take();
        let mut busy = Busy { conn: self, timer };
        let next = busy.serve(&mut bytes).await;
        if let Next::Linger = next {
            busy.linger().await;
        }
        let Busy { conn, timer } = busy;
        conn.worker.timers.put(timer);
        if let Next::Http2 = next {
            let Conn { io, worker, caller, .. } = conn;
            Box::pin(http2::serve(worker, io, bytes, caller)).await;
            return None;
        }
        conn.worker.buffers.put(bytes);
        matches!(next, Next::Wait).then(|| conn.without_http2())
    }
}

impl<S: Io + 'static> Future for Conversation<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<()> {
        let Conversation { phase, place } = &mut *self;
        loop {
            *phase = match mem::replace(phase, Phase::Over) {
                Phase::Idle(mut conn) => match conn.poll_first(place, cx) {
                    Poll::Ready(Some(bytes)) => Phase::Busy(Box::pin(conn.serve(bytes))),
                    Poll::Ready(None) => {
                        conn.worker.idle.leave(place.take());
                        return Poll::Ready(());
                    }
                    Poll::Pending => {
                        *phase = Phase::Idle(conn);
                        return Poll::Pending;
                    }
                },
                Phase::Busy(mut work) => match work.as_mut().poll(cx) {
                    Poll::Ready(Some(conn)) => Phase::Idle(conn),
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => {
                        *phase = Phase::Busy(work);
                        return Poll::Pending;
                    }
                },
                Phase::Over => return Poll::Ready(()),
            }
        }
    }
}

impl<S> Drop for Conversation<S> {
    fn drop(&mut self) {
        if let Phase::Idle(conn) = &self.phase {
            conn.worker.idle.leave(self.place);
        }
    }
}

impl<S: Io> Busy<S> {
    /// Answers requests for as long as there are bytes of the next one.
    async fn serve(&mut self, bytes: &mut Vec<u8>) -> Next {
        let mut sniff = self.conn.sniff;
        while !bytes.is_empty() {
            let next = match self.head(bytes, sniff).await {
                Ok(length) => self.request(bytes, length).await,
                Err(NoHead::Gone) => Next::Close,
                Err(NoHead::Http2) => Next::Http2,
                Err(NoHead::Refused(answer)) => {
                    let ticket = Ticket::new(self.conn.worker.chance.guid());
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
            let until = *deadline.get_or_insert_with(|| Instant::now() + self.conn.worker.limits.head);
            bytes.reserve(4096);
            match self.timer.by(until, self.conn.io.read_buf(bytes)).await {
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
        let mut out = self.conn.worker.buffers.small();
        let (mut ticket, framing, plan) = prepare(&self.conn.worker, &self.conn.caller, &bytes[..length], &mut out);
        bytes.drain(..length);
        ticket.keep &= !self.conn.worker.is_draining();
        let plan = match plan {
            Ok(plan) => plan,
            Err(answer) => {
                self.conn.worker.buffers.put(out);
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
        let mut exchange = Exchange::new(&self.conn.worker, &mut ticket, &mut self.timer);
        let done = forward::forward(&mut self.conn.io, bytes, &mut out, plan, &mut exchange).await;
        self.conn.worker.buffers.put(out);
        match done {
            Ok(keep) => {
                self.conn.worker.finish(ticket);
                if keep { Next::Wait } else { Next::Linger }
            }
            Err(Failed::Answer(answer, _)) => {
                // How much of the body was read is no longer known.
                ticket.keep = false;
                self.refuse(ticket, &answer).await;
                Next::Linger
            }
            Err(failed @ Failed::Broken(_)) => {
                ticket.failed(&failed);
                self.conn.worker.finish(ticket);
                Next::Close
            }
        }
    }

    /// Answers without a replica; false when the caller is gone.
    async fn refuse(&mut self, mut ticket: Ticket, answer: &Answer) -> bool {
        let mut out = self.conn.worker.buffers.small();
        ticket.answer(answer, &mut out);
        ticket.sent = out.len() as u64;
        let sent = forward::send(&mut self.conn.io, &out, &mut self.timer, self.conn.worker.limits.stall).await.is_ok();
        self.conn.worker.buffers.put(out);
        self.conn.worker.finish(ticket);
        sent
    }

    /// Closes for writing, and reads for a moment what the caller still sends.
    async fn linger(&mut self) {
        let Busy { conn: Conn { io, worker, .. }, timer } = self;
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
