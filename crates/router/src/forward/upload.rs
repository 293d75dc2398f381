//! Long bodies: sent to the replica while its answer may already be on its way back.

use super::{
    Exchange, Failed, Received, receive,
    receive::{Out, pieces},
    send, slow_body,
};
use crate::{
    answer::Answer,
    http::{chunks::BadChunk, head::Framing},
    prepare::Plan,
    timer::Timer,
    worker::{Io, Worker},
};
use std::{cell::Cell, pin::pin};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    net::TcpStream,
};

/// How far an upload came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    All,
    /// The replica took no more of it; its answer counts.
    Part,
}

/// Sends the rest of the head and the body, and receives at the same time.
pub(super) async fn both_ways<S: Io>(
    io: &mut S,
    stream: &mut TcpStream,
    bytes: &mut Vec<u8>,
    head: &[u8],
    plan: &Plan,
    cx: &mut Exchange<'_>,
) -> Result<Received, Failed> {
    if plan.expects {
        send(io, b"HTTP/1.1 100 Continue\r\n\r\n", cx.timer, cx.worker.limits.stall).await?;
    }
    let (mut from_client, mut to_client) = split(io);
    let (mut from_replica, mut to_replica) = stream.split();
    let count = Cell::new(0);
    let mut sent = None;
    let done = {
        let mut upload = Upload { worker: cx.worker, plan, count: &count, timer: Timer::new() };
        let mut up = pin!(upload.run(&mut from_client, &mut to_replica, bytes, head));
        let mut down = pin!(receive(&mut from_replica, &mut to_client, cx));
        loop {
            tokio::select! {
                biased;
                done = &mut up, if sent.is_none() => match done {
                    Ok(how) => sent = Some(how),
                    Err(failed) => break Err(failed),
                },
                done = &mut down => break done,
            }
        }
    };
    cx.ticket.received = count.get();
    match done {
        // The replica waited for a caller who was too slow.
        Err(Failed::Answer(answer, _)) if answer.status == 504 && sent.is_none() => Err(slow_body().into()),
        // Once the answer has begun there is no room for another.
        Err(Failed::Answer(..)) if cx.ticket.status != 0 => Err(Failed::Broken(None)),
        Ok(received) if sent != Some(Sent::All) => Ok(Received { keep: false, persistent: false, ..received }),
        done => done,
    }
}

struct Upload<'u> {
    worker: &'u Worker,
    plan: &'u Plan,
    count: &'u Cell<u64>,
    timer: Timer,
}

impl Upload<'_> {
    /// Sends head and body. What comes after the body stays in `bytes`.
    async fn run<R, W>(
        &mut self,
        client: &mut R,
        replica: &mut W,
        bytes: &mut Vec<u8>,
        head: &[u8],
    ) -> Result<Sent, Failed>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let bad = |bad: BadChunk| Failed::from(Answer::client(400, "BadRequest", bad.to_string()));
        let form = if self.plan.framing == Framing::Chunked { Out::Chunked } else { Out::Plain };
        let mut body = self.plan.framing.body();
        let mut buffer = self.worker.buffers.large();
        let mut out = self.worker.buffers.large();
        out.extend_from_slice(head);
        buffer.append(bytes);
        let sent = loop {
            let with_head = !out.is_empty();
            let used = pieces(&mut body, form, &buffer, &mut out, with_head).map_err(bad)?;
            self.count.set(self.count.get() + used.data as u64);
            if self.count.get() > self.plan.max_body {
                return Err(Answer::too_large(self.plan.max_body).into());
            }
            let piece = if out.is_empty() { &buffer[used.plain] } else { &out[..] };
            if replica.write_all(piece).await.is_err() {
                break Sent::Part;
            }
            buffer.drain(..used.end);
            out.clear();
            if body.is_done() {
                break Sent::All;
            }
            buffer.reserve(4096);
            match self.timer.within(self.worker.limits.stall, client.read_buf(&mut buffer)).await {
                Some(Ok(read)) if read > 0 => {}
                Some(_) => return Err(Failed::Broken(None)),
                None => return Err(slow_body().into()),
            }
        };
        bytes.append(&mut buffer);
        self.worker.buffers.put(buffer);
        self.worker.buffers.put(out);
        Ok(sent)
    }
}
