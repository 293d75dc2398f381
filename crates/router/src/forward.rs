//! From a decision to an answer: gather a small body, wait for a slot, reach a replica, send, receive.
//!
//! A request is tried again only while no byte of it has reached a replica. Bodies of any length pass through buffers of fixed
//! size. Invariant: a slot is held exactly as long as a replica may be at work for the request.

mod mirror;
mod receive;
mod upload;

use crate::{
    admit::{self, Slot},
    answer::{Answer, Fault},
    http::head::Framing,
    prepare::Plan,
    sockets,
    table::{Deployment, Replica, Wrong},
    ticket::Ticket,
    timer::Timer,
    worker::{Io, Worker},
};
use receive::{Received, receive};
use std::{io, rc::Rc, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional},
    net::TcpStream,
    time::Instant,
};

/// Bodies up to this are read before a slot is taken, so that a slow caller costs no slot.
const GATHERED: u64 = 64 << 10;
/// The same where a copy has to be made.
const MIRRORED: u64 = 1 << 20;
/// Between two rounds of trying replicas that cannot be reached.
const PAUSE: Duration = Duration::from_millis(25);

/// What one exchange works with.
pub(crate) struct Exchange<'c> {
    pub(crate) worker: &'c Rc<Worker>,
    pub(crate) ticket: &'c mut Ticket,
    pub(crate) timer: &'c mut Timer,
    /// When the answer must have begun; set with the slot.
    pub(crate) deadline: Instant,
    /// How long the replica may fall silent once it has.
    pub(crate) timeout: Duration,
}

impl<'c> Exchange<'c> {
    pub(crate) fn new(worker: &'c Rc<Worker>, ticket: &'c mut Ticket, timer: &'c mut Timer) -> Exchange<'c> {
        let deadline = ticket.began;
        Exchange { worker, ticket, timer, deadline, timeout: Duration::ZERO }
    }

    /// The deployment's name, for messages.
    fn name(&self) -> &str {
        self.ticket.deployment.as_ref().map_or("", |deployment| &deployment.name)
    }

    fn begin(&mut self, slot: &Slot) {
        self.ticket.replica = Some(slot.replica.address);
        self.timeout = slot.deployment.timeout;
        self.deadline = Instant::now() + self.timeout;
    }
}

/// An exchange that did not end well, and what the replica did wrong in it, if anything.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Nothing was answered yet.
    Answer(Answer, Option<Wrong>),
    /// The answer had begun, or nobody is there to get one.
    Broken(Option<Wrong>),
}

impl From<Answer> for Failed {
    fn from(answer: Answer) -> Failed {
        Failed::Answer(answer, None)
    }
}

/// A slot and a connection to its replica, and how much of the request is written to it.
struct Reached {
    slot: Slot,
    stream: TcpStream,
    written: usize,
}

/// Forwards a request whose head is in `out`; `bytes` holds what has come of its body. True when the caller's connection
/// can be used again.
pub(crate) async fn forward<S: Io>(
    io: &mut S,
    bytes: &mut Vec<u8>,
    out: &mut Vec<u8>,
    mut plan: Plan,
    cx: &mut Exchange<'_>,
) -> Result<bool, Failed> {
    let whole = gather(io, bytes, out, &mut plan, cx).await?;
    if bytes.is_empty() {
        cx.worker.buffers.put(std::mem::take(bytes));
    }
    let Reached { slot, mut stream, written } = reach(out, &plan.deployment, cx).await?;
    cx.begin(&slot);
    let done = match whole {
        true => once(io, &mut stream, out, written, cx).await,
        false => upload::both_ways(io, &mut stream, bytes, &out[written..], &plan, cx).await,
    };
    judge(&slot, &done);
    let received = done?;
    if received.upgraded {
        tunnel(io, stream, bytes).await;
        return Ok(false);
    }
    if received.persistent {
        cx.worker.pool.put(&slot.replica, stream, Instant::now());
    }
    Ok(received.keep)
}

/// Puts a small body behind the head, and starts the copy where one is due. True when the whole request is in `out`.
async fn gather<S: Io>(
    io: &mut S,
    bytes: &mut Vec<u8>,
    out: &mut Vec<u8>,
    plan: &mut Plan,
    cx: &mut Exchange<'_>,
) -> Result<bool, Failed> {
    let most = if plan.mirror.is_some() { MIRRORED } else { GATHERED };
    let length = match plan.framing {
        Framing::Absent => 0,
        Framing::Length(length) if length <= most => usize::try_from(length).expect("it is small"),
        _ => {
            plan.mirror.take().inspect(|(shadow, _)| mirror::missed(shadow));
            return Ok(false);
        }
    };
    if bytes.len() < length {
        if plan.expects {
            send(io, b"HTTP/1.1 100 Continue\r\n\r\n", cx.timer, cx.worker.limits.stall).await?;
        }
        bytes.reserve(length - bytes.len());
        let more = async {
            while bytes.len() < length {
                if io.read_buf(bytes).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok::<_, io::Error>(())
        };
        match cx.timer.within(cx.worker.limits.stall, more).await {
            Some(Ok(())) => {}
            Some(Err(_)) => return Err(Failed::Broken(None)),
            None => return Err(slow_body().into()),
        }
    }
    let body = &bytes[..length];
    cx.ticket.received = length as u64;
    out.extend_from_slice(body);
    if let Some((shadow, mut copy)) = plan.mirror.take() {
        copy.extend_from_slice(body);
        mirror::start(cx.worker, shadow, copy);
    }
    bytes.drain(..length);
    Ok(true)
}

fn slow_body() -> Answer {
    Answer::client(408, "SlowBody", "the body of the request did not come in time")
}

/// A slot and a connection. Replicas that cannot be reached are passed over, and tried again for as long as the queue
/// allows, for one may be just starting.
async fn reach(out: &[u8], deployment: &Arc<Deployment>, cx: &mut Exchange<'_>) -> Result<Reached, Failed> {
    let worker = cx.worker;
    let mut slot = admit::slot(&worker.routes, deployment, &worker.chance, cx.timer, cx.ticket.began).await?;
    let give_up = Instant::now() + deployment.queue_wait;
    let mut tried = Vec::new();
    loop {
        match connected(&slot.replica, out, cx).await {
            Ok((stream, written)) => return Ok(Reached { slot, stream, written }),
            Err(error) => {
                tracing::debug!(replica = %slot.replica.address, %error, "a replica cannot be reached");
                blame(&slot, Wrong::Unreachable);
                tried.push(slot.replica.id);
            }
        }
        let current = Arc::clone(&slot.deployment);
        cx.ticket.replica = Some(slot.replica.address);
        drop(slot);
        slot = match admit::free_slot(&current, &tried, &worker.chance, Instant::now()) {
            Some(slot) => slot,
            None if Instant::now() >= give_up => {
                let message = format!("no replica of deployment `{}` can be reached", deployment.name);
                return Err(Answer::model("ReplicaUnreachable", message).into());
            }
            None => {
                tokio::time::sleep(PAUSE).await;
                tried.clear();
                admit::slot(&worker.routes, &current, &worker.chance, cx.timer, cx.ticket.began).await?
            }
        };
    }
}

/// A connection that has taken the beginning of `out`: an idle one, or a new one.
async fn connected(replica: &Replica, out: &[u8], cx: &mut Exchange<'_>) -> io::Result<(TcpStream, usize)> {
    let limits = &cx.worker.limits;
    while let Some(stream) = cx.worker.pool.take(replica, limits.pool_idle, Instant::now()) {
        match stream.try_write(out) {
            Ok(written) => return Ok((stream, written)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((stream, 0)),
            // Closed by the other end in the meantime: nothing was sent.
            Err(_) => {}
        }
    }
    let connect = cx.timer.within(limits.connect, sockets::connect(replica.address)).await;
    Ok((connect.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))?, 0))
}

/// Sends what is left of a whole request, of which so much is written, then receives.
async fn once<W: AsyncWrite + Unpin>(
    io: &mut W,
    stream: &mut TcpStream,
    out: &mut Vec<u8>,
    written: usize,
    cx: &mut Exchange<'_>,
) -> Result<Received, Failed> {
    if written < out.len() {
        match cx.timer.by(cx.deadline, stream.write_all(&out[written..])).await {
            // A replica may answer before it has read everything, and then close: what it said is worth reading.
            Some(_) => {}
            None => return Err(Failed::Answer(too_slow(cx), Some(Wrong::Broken))),
        }
    }
    cx.worker.buffers.put(std::mem::take(out));
    receive(stream, io, cx).await
}

fn too_slow(cx: &Exchange<'_>) -> Answer {
    let message = format!("deployment `{}` did not begin to answer within {} ms", cx.name(), cx.timeout.as_millis());
    Answer::new(504, "TimedOut", Fault::Model, message)
}

/// Remembers how a replica did.
fn judge(slot: &Slot, done: &Result<Received, Failed>) {
    match done {
        Ok(received) if received.model_status < 500 => slot.replica.did_well(),
        Ok(_) => blame(slot, Wrong::Error),
        Err(Failed::Answer(_, Some(wrong)) | Failed::Broken(Some(wrong))) => blame(slot, *wrong),
        Err(_) => {}
    }
}

/// Counts a fault; a replica with too many is left alone for a while, unless half of them are already.
fn blame(slot: &Slot, wrong: Wrong) {
    if !slot.replica.did(wrong) {
        return;
    }
    let (replicas, now) = (&slot.deployment.replicas, Instant::now());
    let resting = replicas.iter().filter(|replica| replica.is_resting(now)).count();
    if (resting + 1) * 2 <= replicas.len() && !slot.replica.is_resting(now) {
        slot.replica.rest(now);
        tracing::warn!(endpoint = %slot.deployment.endpoint, deployment = %slot.deployment.name, replica = %slot.replica.address,
            ?wrong, "left a replica alone for a while");
    }
}

/// Bytes both ways until both ends are done.
async fn tunnel<S: Io>(io: &mut S, mut stream: TcpStream, bytes: &mut Vec<u8>) {
    sockets::keep_alive(&stream);
    if stream.write_all(bytes).await.is_ok() {
        bytes.clear();
        let _ = copy_bidirectional(io, &mut stream).await;
    }
}

/// Writes everything, as long as the other end keeps taking something.
pub(crate) async fn send<W: AsyncWrite + Unpin>(
    to: &mut W,
    mut bytes: &[u8],
    timer: &mut Timer,
    stall: Duration,
) -> Result<(), Failed> {
    while !bytes.is_empty() {
        match timer.within(stall, to.write(bytes)).await {
            Some(Ok(written)) if written > 0 => bytes = &bytes[written..],
            _ => return Err(Failed::Broken(None)),
        }
    }
    match timer.within(stall, to.flush()).await {
        Some(Ok(())) => Ok(()),
        _ => Err(Failed::Broken(None)),
    }
}
