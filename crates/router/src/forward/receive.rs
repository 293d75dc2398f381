//! A replica's answer, passed on while it comes.

use super::{Exchange, Failed, send, too_slow};
use crate::{
    answer::{Answer, reason},
    buffers::LARGE,
    http::{
        self, MAX_FIELDS, MAX_HEAD, Scan,
        body::Body,
        chunks,
        names::{Name, name},
        reply::{self, Reply},
    },
    table::Wrong,
    ticket::Ticket,
    worker::Worker,
};
use std::{io, mem::MaybeUninit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Interim answers before the real one.
const INTERIM: usize = 16;

/// An answer that was passed on to its end.
#[derive(Debug)]
pub(super) struct Received {
    /// The replica's connection can be used again.
    pub(super) persistent: bool,
    /// The caller's connection can.
    pub(super) keep: bool,
    pub(super) upgraded: bool,
    /// What the model itself answered.
    pub(super) model_status: u16,
}

/// How the body goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    /// As it comes; its length is announced, or the end of the connection ends it.
    Plain,
    Chunked,
}

/// What is known once the head is passed on.
struct Begun {
    body: Body,
    out: Out,
    received: Received,
}

/// Passes an answer on from `replica` to `client`. Its head must come by the deadline; after that the replica may not
/// fall silent for longer than the deployment's time-out.
pub(super) async fn receive<R, W>(replica: &mut R, client: &mut W, cx: &mut Exchange<'_>) -> Result<Received, Failed>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    let begun = begin(replica, client, &mut bytes, &mut out, cx).await;
    let done = match begun {
        Ok(begun) => relay(replica, client, &mut bytes, &mut out, begun, cx).await,
        Err(failed) => Err(failed),
    };
    cx.worker.buffers.put(bytes);
    cx.worker.buffers.put(out);
    done
}

/// Reads heads until the one that is the answer, and puts it into `out` as the caller will see it.
async fn begin<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    replica: &mut R,
    client: &mut W,
    bytes: &mut Vec<u8>,
    out: &mut Vec<u8>,
    cx: &mut Exchange<'_>,
) -> Result<Begun, Failed> {
    for _ in 0..INTERIM {
        let length = head(replica, bytes, cx).await?;
        if out.capacity() == 0 {
            *out = cx.worker.buffers.small();
        }
        let draining = cx.worker.is_draining();
        let begun = translate(&bytes[..length], cx.ticket, draining, out);
        bytes.drain(..length);
        match begun.map_err(|why| unreadable(cx, why))? {
            Some(begun) => return Ok(begun),
            None if out.is_empty() => {}
            None => {
                send(client, out, cx.timer, cx.worker.limits.stall).await?;
                out.clear();
            }
        }
    }
    Err(unreadable(cx, "it never comes to the point"))
}

async fn head<R: AsyncRead + Unpin>(
    replica: &mut R,
    bytes: &mut Vec<u8>,
    cx: &mut Exchange<'_>,
) -> Result<usize, Failed> {
    let mut seen = 0;
    loop {
        match http::scan(bytes, seen) {
            Scan::End(length) if length <= MAX_HEAD => return Ok(length),
            Scan::More(to) if to <= MAX_HEAD => seen = to,
            Scan::End(_) | Scan::More(_) => {
                return Err(unreadable(cx, "its head is too long"));
            }
            Scan::BareLine => {
                return Err(unreadable(cx, "a line does not end in CR LF"));
            }
        }
        let worker = cx.worker;
        match cx.timer.by(cx.deadline, more(replica, bytes, worker)).await {
            Some(Ok(read)) if read > 0 => {}
            Some(_) => return Err(crashed(cx)),
            None => return Err(Failed::Answer(too_slow(cx), Some(Wrong::Broken))),
        }
    }
}

/// Reads on; what is waited for longest, the first bytes, is waited for without a buffer.
async fn more<R: AsyncRead + Unpin>(replica: &mut R, bytes: &mut Vec<u8>, worker: &Worker) -> io::Result<usize> {
    if bytes.capacity() == 0 {
        *bytes = worker.buffers.read(replica).await?;
        return Ok(bytes.len());
    }
    bytes.reserve(4096);
    replica.read_buf(bytes).await
}

fn unreadable(cx: &Exchange<'_>, why: &str) -> Failed {
    let message = format!("the answer of deployment `{}` makes no sense: {why}", cx.name());
    Failed::Answer(Answer::model("UnreadableAnswer", message), Some(Wrong::Broken))
}

fn crashed(cx: &Exchange<'_>) -> Failed {
    let hint = "closed the connection without an answer; its log may say why";
    let message = format!("a replica of deployment `{}` {hint}", cx.name());
    Failed::Answer(Answer::model("ModelCrashed", message), Some(Wrong::Broken))
}

/// Puts a replica's head into the caller's form. `None` for an interim one, which is in `out` if it is worth passing on.
fn translate(
    head: &[u8],
    ticket: &mut Ticket,
    draining: bool,
    out: &mut Vec<u8>,
) -> Result<Option<Begun>, &'static str> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let reply = reply::parse(head, &mut room, ticket.bodiless).map_err(|bad| bad.0)?;
    match reply.status {
        101 if !ticket.websocket => return Err("it changes a protocol that nobody asked to change"),
        101 => {
            status_line(out, 101, reply.reason);
            copy(&reply, ticket, out);
            out.extend_from_slice(b"connection: upgrade\r\nupgrade: websocket\r\n\r\n");
            ticket.status = 101;
            let received = Received { persistent: false, keep: false, upgraded: true, model_status: 101 };
            return Ok(Some(Begun { body: Body::EMPTY, out: Out::Plain, received }));
        }
        // The caller was told to continue when there was a slot.
        100 => return Ok(None),
        status @ 102..200 => {
            if ticket.modern {
                status_line(out, status, reply.reason);
                copy(&reply, ticket, out);
                out.extend_from_slice(b"\r\n");
            }
            return Ok(None);
        }
        _ => {}
    }
    ticket.keep &= !draining;
    ticket.status = status(&reply, out);
    copy(&reply, ticket, out);
    http::field(out, "x-request-id", &ticket.id);
    ticket.fields(out);
    let plain = framing(&reply, ticket, out);
    match (ticket.keep, ticket.modern) {
        (false, _) => http::field(out, "connection", b"close"),
        (true, false) => http::field(out, "connection", b"keep-alive"),
        (true, true) => {}
    }
    out.extend_from_slice(b"\r\n");
    let received =
        Received { persistent: reply.persistent, keep: ticket.keep, upgraded: false, model_status: reply.status };
    Ok(Some(Begun { body: reply.body, out: plain, received }))
}

/// Writes the status line: errors of the model's own become 502, and what it said itself stands in a field.
fn status(reply: &Reply, out: &mut Vec<u8>) -> u16 {
    let shown = if reply.status >= 500 { 502 } else { reply.status };
    status_line(out, shown, if shown == reply.status { reply.reason } else { reason(shown) });
    if reply.status >= 400 {
        out.extend_from_slice(b"ms-azureml-model-error-statuscode: ");
        http::decimal(out, u64::from(reply.status));
        out.extend_from_slice(b"\r\n");
        http::field(out, "ms-azureml-model-error-reason", b"ModelError");
    }
    shown
}

fn status_line(out: &mut Vec<u8>, status: u16, reason: &str) {
    out.extend_from_slice(b"HTTP/1.1 ");
    http::decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn copy(reply: &Reply, ticket: &Ticket, out: &mut Vec<u8>) {
    for field in reply.fields {
        let passes = match name(field.name) {
            Name::Other | Name::TraceParent | Name::TraceState | Name::Host | Name::Origin | Name::Authorization => {
                true
            }
            Name::Allow => ticket.origin.is_none(),
            _ => false,
        };
        if passes {
            http::field(out, field.name, field.value);
        }
    }
}

/// Writes how long the body is, or that it comes in chunks; a caller that knows no chunks is told to read to the end.
fn framing(reply: &Reply, ticket: &mut Ticket, out: &mut Vec<u8>) -> Out {
    match (&reply.body, reply.length) {
        (Body::Length(_), Some(length)) => {
            out.extend_from_slice(b"content-length: ");
            http::decimal(out, length);
            out.extend_from_slice(b"\r\n");
            Out::Plain
        }
        (Body::Length(_), None) => Out::Plain,
        _ if ticket.modern => {
            http::field(out, "transfer-encoding", b"chunked");
            Out::Chunked
        }
        _ => {
            ticket.keep = false;
            Out::Plain
        }
    }
}

/// Passes the body on. `out` holds the head, which goes with the first piece.
async fn relay<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    replica: &mut R,
    client: &mut W,
    bytes: &mut Vec<u8>,
    out: &mut Vec<u8>,
    mut begun: Begun,
    cx: &mut Exchange<'_>,
) -> Result<Received, Failed> {
    let stall = cx.worker.limits.stall;
    let body = &mut begun.body;
    let broken = || Failed::Broken(Some(Wrong::Broken));
    let mut first = true;
    loop {
        let used = pieces(body, begun.out, bytes, out, first).map_err(|_| broken())?;
        // What comes unasked after the answer is nobody's; an upgraded connection's first bytes are the caller's.
        let stray = body.is_done() && used.end < bytes.len();
        if begun.received.upgraded {
            out.extend_from_slice(bytes);
        } else {
            begun.received.persistent &= !stray;
        }
        cx.ticket.sent += (out.len() + used.plain.len()) as u64;
        if !out.is_empty() {
            send(client, out, cx.timer, stall).await?;
        }
        if !used.plain.is_empty() {
            send(client, &bytes[used.plain], cx.timer, stall).await?;
        }
        if body.is_done() {
            return Ok(begun.received);
        }
        if first {
            first = false;
            let large = cx.worker.buffers.large();
            cx.worker.buffers.put(std::mem::replace(bytes, large));
        }
        bytes.clear();
        out.clear();
        debug_assert!(bytes.capacity() >= LARGE);
        match cx.timer.within(cx.timeout, replica.read_buf(bytes)).await {
            Some(Ok(read)) if read > 0 => {}
            Some(end) if ends(body, &end) => return finish(client, begun, out, cx).await,
            _ => return Err(broken()),
        }
    }
}

fn ends(body: &Body, read: &io::Result<usize>) -> bool {
    matches!((body, read), (Body::UntilClose, Ok(0)))
}

/// Where the bytes of one read went.
pub(super) struct Used {
    pub(super) end: usize,
    /// What is to be written as it is, from the buffer itself.
    pub(super) plain: std::ops::Range<usize>,
    /// Bytes of the body in all.
    pub(super) data: usize,
}

/// Takes the body's pieces out of one read: chunks into `out`; plain ones too where they go with the head, else in place.
pub(super) fn pieces(
    body: &mut Body,
    form: Out,
    bytes: &[u8],
    out: &mut Vec<u8>,
    with_head: bool,
) -> Result<Used, chunks::BadChunk> {
    let (mut at, mut plain, mut length) = (0, 0..0, 0);
    while at < bytes.len() && !body.is_done() {
        let (used, data) = body.take(&bytes[at..])?;
        let data = at + data.start..at + data.end;
        at += used;
        length += data.len();
        match form {
            Out::Chunked => chunks::chunk(out, &bytes[data]),
            Out::Plain if with_head || !plain.is_empty() || matches!(body, Body::Chunked(_)) => {
                out.extend_from_slice(&bytes[data]);
            }
            Out::Plain => plain = data,
        }
    }
    if body.is_done() && form == Out::Chunked {
        chunks::last_chunk(out, &body.trailers()?);
    }
    Ok(Used { end: at, plain, data: length })
}

/// Ends a body that ended with its connection.
async fn finish<W: AsyncWrite + Unpin>(
    client: &mut W,
    begun: Begun,
    out: &mut Vec<u8>,
    cx: &mut Exchange<'_>,
) -> Result<Received, Failed> {
    if begun.out == Out::Chunked {
        chunks::last_chunk(out, b"");
        send(client, out, cx.timer, cx.worker.limits.stall).await?;
    }
    Ok(begun.received)
}
