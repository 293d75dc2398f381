//! Copies of requests for a deployment that is being tried out. Their answers are read, counted and dropped.
//!
//! What became of copies is counted by itself: their callers were answered by another deployment. A copy never waits and never makes anyone wait: without a free slot, or with too many under way, it is left out and counted.

use super::{Exchange, blame, connected, judge, once};
use crate::{
    admit::{self, Slot},
    table::{Deployment, Wrong},
    ticket::Ticket,
    worker::Worker,
};
use std::{
    rc::Rc,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use tokio::{io::sink, time::Instant};

/// Copies that one worker has under way.
const MOST: usize = 64;

/// Counts a copy that was not made.
pub(super) fn missed(shadow: &Deployment) {
    shadow.live.unmirrored.fetch_add(1, Relaxed);
}

/// Sends a copy, whole in `copy`, if there is room for it.
pub(super) fn start(worker: &Rc<Worker>, shadow: Arc<Deployment>, mut copy: Vec<u8>) {
    let mut mirrors = worker.mirrors.borrow_mut();
    while mirrors.try_join_next().is_some() {}
    let free = mirrors.len() < MOST && shadow.live.line.length() == 0;
    let slot = if free { admit::free_slot(&shadow, &[], &worker.chance, Instant::now()) } else { None };
    let Some(slot) = slot else {
        worker.buffers.put(copy);
        return missed(&shadow);
    };
    let worker = Rc::clone(worker);
    mirrors.spawn_local(async move {
        let mut ticket = Ticket::new(worker.chance.guid());
        ticket.deployment = Some(shadow);
        let mut timer = worker.timers.take();
        let mut cx = Exchange::new(&worker, &mut ticket, &mut timer);
        exchange(&slot, &mut copy, &mut cx).await;
        worker.timers.put(timer);
        worker.finish_copy(ticket);
    });
}

/// Sends a copy and reads the answer; the ticket has its status then.
async fn exchange(slot: &Slot, copy: &mut Vec<u8>, cx: &mut Exchange<'_>) {
    cx.begin(slot);
    let Ok((mut stream, written)) = connected(&slot.replica, copy, cx).await else {
        blame(slot, Wrong::Unreachable);
        (cx.ticket.status, cx.ticket.code) = (502, "ReplicaUnreachable");
        return;
    };
    let done = once(&mut sink(), &mut stream, copy, written, cx).await;
    judge(slot, &done);
    match done {
        Ok(received) if received.persistent => cx.worker.pool.put(&slot.replica, stream, Instant::now()),
        Ok(_) => {}
        Err(failed) => cx.ticket.failed(&failed),
    }
}
