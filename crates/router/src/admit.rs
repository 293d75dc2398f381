//! Slots: one request at a time in each, a bounded queue before them.
//!
//! Taking a free slot costs a few atomic operations. Only when there is none does a request stand in line, and only then
//! does whoever frees a slot call. Invariant: while someone waits and a slot is free, someone has been called.

use crate::{
    answer::Answer,
    chance::Chance,
    table::{Deployment, Replica, Routes},
    timer::Timer,
};
use std::sync::{Arc, atomic::Ordering::SeqCst};
use tokio::time::Instant;

/// A place at a replica, given back when dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) deployment: Arc<Deployment>,
    pub(crate) replica: Arc<Replica>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.replica.release();
        let live = &self.deployment.live;
        live.in_flight.fetch_sub(1, SeqCst);
        live.line.call();
    }
}

/// A free slot: at the less busy of two replicas drawn at random, else at any. Replicas in `tried` are left out.
pub(crate) fn free_slot(deployment: &Arc<Deployment>, tried: &[u64], chance: &Chance, now: Instant) -> Option<Slot> {
    let replica = Arc::clone(pick(deployment, tried, chance, now)?);
    deployment.live.in_flight.fetch_add(1, SeqCst);
    Some(Slot { deployment: Arc::clone(deployment), replica })
}

fn pick<'d>(deployment: &'d Deployment, tried: &[u64], chance: &Chance, now: Instant) -> Option<&'d Arc<Replica>> {
    let replicas = &deployment.replicas;
    let all = replicas.len();
    let untried = |replica: &Replica| !tried.contains(&replica.id);
    let usable = |replica: &Replica| untried(replica) && !replica.is_resting(now);
    if all == 0 {
        return None;
    }
    let mut a = chance.below(all);
    let mut b = if all > 1 { (a + 1 + chance.below(all - 1)) % all } else { a };
    let rest = (a..all).chain(0..a);
    if replicas[b].busy() < replicas[a].busy() {
        (a, b) = (b, a);
    }
    let take = |at: &usize| replicas[*at].take(deployment.slots_at(*at));
    let mut taken = [a, b].into_iter().chain(rest.clone()).find(|at| usable(&replicas[*at]) && take(at));
    // Rest is for replicas that others can stand in for.
    let ours = |(at, replica): (usize, &Arc<Replica>)| usable(replica) && deployment.slots_at(at) > 0;
    if taken.is_none() && !replicas.iter().enumerate().any(ours) {
        // Who has no replica of its own that is well borrows a slot of one that other routers have.
        let borrow = |at: &usize| replicas[*at].take(deployment.slots_at(*at).max(1));
        taken = rest.clone().find(|at| usable(&replicas[*at]) && borrow(at));
        taken = taken.or_else(|| rest.into_iter().find(|at| untried(&replicas[*at]) && borrow(at)));
    }
    taken.map(|at| &replicas[at])
}

/// Waits for a slot of `deployment`: as long as its queue allows, or as long as requests are held for one that has no
/// replica. Looks at the table anew each time it is called, for replicas come and go meanwhile.
pub(crate) async fn slot(
    routes: &Routes,
    deployment: &Arc<Deployment>,
    chance: &Chance,
    timer: &mut Timer,
    since: Instant,
) -> Result<Slot, Answer> {
    let line = &deployment.live.line;
    if line.length() == 0
        && let Some(slot) = free_slot(deployment, &[], chance, since)
    {
        return Ok(slot);
    }
    let (place, before) = line.join();
    if before >= deployment.max_queued {
        let message = format!("{before} requests wait for deployment `{}` already", deployment.name);
        return Err(Answer::busy("QueueFull", message));
    }
    // Whoever comes first looks again, for a slot may have been freed before anyone could know that it waits.
    let mut look = before == 0;
    let mut deadline = since;
    let mut current = Arc::clone(deployment);
    loop {
        if look {
            current = again(routes, &current)?;
            if let Some(slot) = free_slot(&current, &[], chance, Instant::now()) {
                place.served();
                pass_on(&current);
                return Ok(slot);
            }
        }
        look = true;
        deadline = deadline.max(since + if current.replicas.is_empty() { current.hold } else { current.queue_wait });
        if timer.by(deadline, place.called()).await.is_none() {
            return Err(late(&current, since));
        }
        place.stand_again();
    }
}

/// The deployment as the table has it now.
fn again(routes: &Routes, deployment: &Deployment) -> Result<Arc<Deployment>, Answer> {
    let table = routes.table();
    let found = table.endpoint(&deployment.endpoint).and_then(|e| e.deployment(deployment.name.as_bytes()));
    let gone = || {
        Answer::busy(
            "DeploymentGone",
            format!("deployment `{}` was taken away while the request waited", deployment.name),
        )
    };
    found.cloned().ok_or_else(gone)
}

/// One call may stand for several slots, such as those of a new replica.
fn pass_on(deployment: &Deployment) {
    if deployment.live.line.length() > 0 {
        let replicas = deployment.replicas.iter().enumerate();
        let free = replicas.map(|(at, replica)| deployment.slots_at(at).saturating_sub(replica.busy())).sum();
        deployment.live.line.call_for(free);
    }
}

fn late(deployment: &Deployment, since: Instant) -> Answer {
    let waited = since.elapsed().as_millis();
    let name = &deployment.name;
    match deployment.replicas.is_empty() {
        true => Answer::busy("NoReplica", format!("deployment `{name}` had no replica for {waited} ms")),
        false => Answer::busy("NoSlot", format!("no replica of deployment `{name}` was free within {waited} ms")),
    }
}

#[cfg(test)]
mod tests;
