//! What has become of a deployment: which replicas ended and why, whether it works, and what the planner is to see.

use domain::{
    JobState, Outcome, Timestamp,
    job::Failure,
    serving::{Provisioning, Use},
};
use planner::scale::{Fleet, Replica, ReplicaState};
use std::net::SocketAddr;
use store::{ReplicaRow, ServingRow};

/// A replica that was ready for this long has not failed to start; another takes its place at once.
const PROVEN_MS: i64 = 30_000;
/// The longest pause between two tries to start a replica.
const LONGEST_PAUSE_MS: i64 = 60_000;
/// A replica that its node has not begun with for this long may need room that others hold.
const STUCK_MS: i64 = 20_000;
/// Beyond the longest request, how long routers that say nothing may take to let go of a replica.
const LET_GO_MS: i64 = 10_000;

/// What a round found.
pub(super) struct Judged<'r> {
    /// The deployment as it is to be written.
    pub(super) next: ServingRow,
    pub(super) fleet: Fleet,
    /// Replicas that have ended.
    pub(super) gone: Vec<&'r ReplicaRow>,
    /// Replicas of the newest generation that answer.
    pub(super) ready: u32,
}

pub(super) fn judge<'r>(
    row: &ServingRow,
    replicas: &'r [ReplicaRow],
    call: Option<Result<(), String>>,
    uses: &dyn Fn(SocketAddr) -> Use,
    now: Timestamp,
) -> Judged<'r> {
    let mut next = row.clone();
    let (gone, live): (Vec<&ReplicaRow>, Vec<&ReplicaRow>) = replicas.iter().partition(|r| r.state.is_ended());
    let mut last_fault = None;
    for replica in &gone {
        let Some((fault, at)) = fault(replica) else { continue };
        let proven = replica.ready_at.is_some_and(|ready_at| at.0 - ready_at.0 >= PROVEN_MS);
        next.failures = if proven { 0 } else { next.failures.saturating_add(1) };
        next.failed_at = at;
        if replica.generation == row.generation {
            last_fault = Some(fault);
        }
    }
    let ready = live.iter().filter(|r| r.generation == row.generation && r.takes_requests().is_some()).count();
    let settled = settle(row, last_fault, call, &live, now);
    if let Some(state) = settled {
        next.state = state;
    }
    let held_back = next.failures > 0 && now.0 < next.failed_at.0 + pause(next.failures);
    let fleet = Fleet {
        generation: next.current(),
        wanted: 0,
        held_back,
        replicas: live.iter().map(|replica| seen(replica, row, uses, now)).collect(),
    };
    Judged { next, fleet, gone, ready: u32::try_from(ready).unwrap_or(u32::MAX) }
}

/// How many replicas a deployment gets of those that demand asks for.
pub(super) fn bounded(row: &ServingRow, wanted: u32) -> u32 {
    match (&row.state, row.good_generation) {
        (Provisioning::Deleting, _) | (Provisioning::Failed(_), None) => 0,
        // Whether it works is seen by one, however few are needed.
        (Provisioning::Creating | Provisioning::Updating, _) => wanted.max(1),
        _ => wanted,
    }
}

/// What its state has become, if that is settled now.
fn settle(
    row: &ServingRow,
    fault: Option<Failure>,
    call: Option<Result<(), String>>,
    live: &[&ReplicaRow],
    now: Timestamp,
) -> Option<Provisioning> {
    if !row.state.is_proving() {
        return None;
    }
    if let Some(fault) = fault.filter(|fault| !fault.retryable) {
        return Some(Provisioning::Failed(fault));
    }
    match call {
        Some(Ok(())) => return Some(Provisioning::Succeeded),
        Some(Err(why)) => {
            let message = format!("its replicas are ready, but a call through the router failed: {why}");
            return Some(Provisioning::Failed(Failure::new("ValidateScoringFailed", message)));
        }
        None => {}
    }
    let limit = row.settings.start_seconds;
    let late = now.0 - row.begun_at.0 > i64::try_from(limit).unwrap_or(i64::MAX).saturating_mul(1000);
    late.then(|| {
        let newest = live.iter().rev().find(|replica| replica.generation == row.generation);
        let doing = newest.map_or("no replica could be started".to_owned(), |r| format!("the last word was: {}", r.note));
        let message = format!(
            "it did not answer within {limit} s; {doing}; allow it more with the property `peregrine.deploy_timeout_seconds`"
        );
        Provisioning::Failed(Failure::new("DeploymentTimedOut", message))
    })
}

/// Why a replica that nobody asked to stop has ended, and when.
fn fault(replica: &ReplicaRow) -> Option<(Failure, Timestamp)> {
    let JobState::Ended { outcome, at, .. } = &replica.state else { return None };
    if replica.draining_at.is_some() {
        return None;
    }
    let failure = match outcome {
        Outcome::Failed(failure) => failure.clone(),
        Outcome::Completed => Failure::new("ReplicaExited", "the replica's process ended by itself, without an error"),
        Outcome::Canceled { reason } => Failure { retryable: true, ..Failure::new("ReplicaCanceled", reason.clone()) },
    };
    Some((failure, *at))
}

/// How long to wait before the next try.
fn pause(failures: u32) -> i64 {
    1000_i64.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_PAUSE_MS)
}

fn seen(replica: &ReplicaRow, row: &ServingRow, uses: &dyn Fn(SocketAddr) -> Use, now: Timestamp) -> Replica {
    let waits = matches!(replica.state, JobState::Queued { .. } | JobState::Placed { .. });
    let state = match (&replica.state, replica.draining_at) {
        (JobState::Stopping { .. }, _) => ReplicaState::Stopping,
        (_, Some(since)) => {
            let used = replica.address.map_or(Use::No, uses);
            ReplicaState::Draining { free: is_free(row, used, now.0 - since.0) }
        }
        _ if waits => ReplicaState::Waiting { stuck: now.0 - replica.created_at.0 > STUCK_MS },
        _ if replica.takes_requests().is_some() => ReplicaState::Ready,
        _ => ReplicaState::Starting,
    };
    Replica { seq: replica.seq, generation: replica.generation, state }
}

/// Whether a replica that has to go may be stopped after so long. An answer may take far longer than the time until it begins,
/// so one that a router still passes on is waited for; where nobody says so, no longer than a request can wait for its answer.
fn is_free(row: &ServingRow, used: Use, drained_ms: i64) -> bool {
    let longest = i64::try_from(row.settings.requests.request_timeout_ms).unwrap_or(i64::MAX).saturating_add(LET_GO_MS);
    let patience = i64::try_from(row.settings.drain_seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    match used {
        Use::No => true,
        Use::Unknown => drained_ms > longest,
        Use::Yes => drained_ms > longest.max(patience),
    }
}
