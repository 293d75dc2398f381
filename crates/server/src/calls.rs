//! Agents elsewhere, of an attempt each or of a node: when each was last heard of, and a bell for the one that waits.
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
    /// Agents of nodes, with what they hold.
    by_node: HashMap<String, (Call, Vec<AttemptId>)>,
    tidied_at: i64,
}

struct Call {
    bell: watch::Sender<()>,
    heard_at: Timestamp,
}

impl Call {
    fn new(now: Timestamp) -> Call {
        Call { bell: watch::Sender::new(()), heard_at: now }
    }

    fn heard(&mut self, now: Timestamp) -> watch::Receiver<()> {
        self.heard_at = now;
        self.bell.subscribe()
    }
}

impl Known {
    fn of(&self, attempt: &AttemptId) -> impl Iterator<Item = &Call> {
        let nodes = self.by_node.values().filter(move |(_, held)| held.contains(attempt)).map(|(call, _)| call);
        self.by_attempt.get(attempt).into_iter().chain(nodes)
    }
}

impl Calls {
    /// Notes that an attempt's agent was heard of; what rings when there is something for it.
    pub(crate) fn hear(&self, attempt: &AttemptId, now: Timestamp) -> watch::Receiver<()> {
        let mut known = self.known();
        if now.0 - known.tidied_at > TIDY_MS {
            known.tidied_at = now.0;
            known.by_attempt.retain(|_, call| now.0 - call.heard_at.0 < KEPT_MS);
            known.by_node.retain(|_, (call, _)| now.0 - call.heard_at.0 < KEPT_MS);
        }
        known.by_attempt.entry(attempt.clone()).or_insert_with(|| Call::new(now)).heard(now)
    }

    /// The same for the agent of a node, which holds these.
    pub(crate) fn hear_node(&self, node: &str, holds: &[AttemptId], now: Timestamp) -> watch::Receiver<()> {
        let mut known = self.known();
        let (call, held) = known.by_node.entry(node.to_owned()).or_insert_with(|| (Call::new(now), Vec::new()));
        holds.clone_into(held);
        call.heard(now)
    }

    /// Rings for whoever has an attempt.
    pub(crate) fn ring(&self, attempt: &AttemptId) {
        self.known().of(attempt).for_each(|call| call.bell.send_replace(()));
    }

    pub(crate) fn ring_node(&self, node: &str) {
        if let Some((call, _)) = self.known().by_node.get(node) {
            call.bell.send_replace(());
        }
    }

    pub(crate) fn heard_at(&self, attempt: &AttemptId) -> Option<Timestamp> {
        self.known().of(attempt).map(|call| call.heard_at).max()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("nothing panics while it holds the table")
    }
}
