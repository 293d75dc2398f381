//! Agents of attempts elsewhere: when each was last heard of, and a bell for the one that waits.
//!
//! There may be thousands of them, so none is woken by what concerns another. Like every bell these are hints: an agent
//! that misses one learns what there is when its poll ends.

use domain::{AttemptId, Timestamp};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
};
use tokio::sync::watch;

/// One that was not heard of for this long is forgotten.
const KEPT_MS: i64 = 600_000;
/// How often those are looked for.
const TIDY_MS: i64 = 60_000;

#[derive(Default)]
pub(crate) struct Calls(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_attempt: HashMap<AttemptId, Call>,
    tidied_at: i64,
}

struct Call {
    bell: watch::Sender<()>,
    heard_at: Timestamp,
}

impl Calls {
    /// Notes that an attempt's agent was heard of; what rings when there is something for it.
    pub(crate) fn hear(&self, attempt: &AttemptId, now: Timestamp) -> watch::Receiver<()> {
        let mut known = self.known();
        if now.0 - known.tidied_at > TIDY_MS {
            known.tidied_at = now.0;
            known.by_attempt.retain(|_, call| now.0 - call.heard_at.0 < KEPT_MS);
        }
        let fresh = || Call { bell: watch::Sender::new(()), heard_at: now };
        let call = known.by_attempt.entry(attempt.clone()).or_insert_with(fresh);
        call.heard_at = now;
        call.bell.subscribe()
    }

    pub(crate) fn ring(&self, attempt: &AttemptId) {
        if let Some(call) = self.known().by_attempt.get(attempt) {
            call.bell.send_replace(());
        }
    }

    pub(crate) fn heard_at(&self, attempt: &AttemptId) -> Option<Timestamp> {
        self.known().by_attempt.get(attempt).map(|call| call.heard_at)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("nothing panics while it holds the table")
    }
}
