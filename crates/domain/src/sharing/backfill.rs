//! Backfill: who may pass the first in line, because they are gone again before it could begin.
//!
//! By the time limits of what runs it is known when the first can begin at the latest. That time is promised to it; whoever has a
//! time limit of their own that is over before then takes nothing from it. Invariants: a promise is never put off; nobody
//! passes on the strength of an end that no time limit stands behind.

use crate::{AttemptId, Resources, Timestamp};

/// What a job may take beyond its time limit: to get ready, and to end.
const MARGIN_MS: i64 = 60_000;

/// What holds something that the first in line waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    pub has: Resources,
    /// When its time limit is over, where it has one and has begun.
    pub ends_by: Option<Timestamp>,
}

impl Running {
    /// Something that began at a time, with a time limit in seconds; either may not be so.
    pub fn of(has: Resources, began: Option<Timestamp>, limit: Option<u64>) -> Running {
        let ends_by = began.zip(limit).map(|(began, limit)| Timestamp(began.0.saturating_add(millis(limit))));
        Running { has, ends_by }
    }
}

/// When there is room for `needs` at the latest; `None` where nobody knows.
pub fn begins_by(needs: &Resources, free: &Resources, running: &[Running]) -> Option<Timestamp> {
    let mut ends: Vec<(Timestamp, Resources)> =
        running.iter().filter_map(|one| Some((one.ends_by?, one.has))).collect();
    ends.sort_by_key(|(at, _)| *at);
    let mut room = *free;
    for (at, has) in ends {
        room = room.plus(&has);
        if needs.fits_in(&room) {
            return Some(at);
        }
    }
    None
}

/// What the first in line can count on.
#[derive(Debug, Clone, Default)]
pub struct Promise(Option<(AttemptId, Timestamp)>);

impl Promise {
    /// The earliest time that was promised to the attempt that is first now; another that was first has lost its own.
    pub fn keep(&mut self, first: &AttemptId, begins_by: Option<Timestamp>) -> Option<Timestamp> {
        let before = self.0.take().filter(|(whose, _)| whose == first).map(|(_, at)| at);
        let at = before.into_iter().chain(begins_by).min();
        self.0 = at.map(|at| (first.clone(), at));
        at
    }
}

/// Whether someone who begins now is gone by the time that was promised.
pub fn may_pass(timeout_seconds: Option<u64>, promised: Option<Timestamp>, now: Timestamp) -> bool {
    let (Some(limit), Some(promised)) = (timeout_seconds, promised) else { return false };
    now.0.saturating_add(millis(limit)).saturating_add(MARGIN_MS) <= promised.0
}

fn millis(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000)
}

/// What somebody who was passed is told.
pub fn passed_by(job: &str) -> String {
    format!("`{job}` went ahead of it, for its time limit is over before there could be room for this one")
}

#[cfg(test)]
mod tests;
