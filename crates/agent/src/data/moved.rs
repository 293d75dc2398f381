//! How much data was moved for one attempt, counted while it is on its way.

use domain::{AttemptId, kept::Moved, resources::humane_bytes, time::humane};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Bytes by where they came from, as in [`Moved`], and how many are wanted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// For whom; the agent's own doings are nobody's.
    attempt: Option<AttemptId>,
    store: AtomicU64,
    peers: AtomicU64,
    cache: AtomicU64,
    wanted: AtomicU64,
    /// What its user should know.
    notices: Mutex<Vec<String>>,
}

impl Tally {
    pub(super) fn of(attempt: AttemptId) -> Tally {
        Tally { attempt: Some(attempt), ..Tally::default() }
    }

    pub(super) fn attempt(&self) -> Option<&AttemptId> {
        self.attempt.as_ref()
    }

    pub(super) fn begin(&self, bytes: u64) {
        self.wanted.fetch_add(bytes, Relaxed);
    }

    pub(super) fn store(&self, bytes: u64) {
        self.store.fetch_add(bytes, Relaxed);
    }

    pub(super) fn cache(&self, bytes: u64) {
        self.cache.fetch_add(bytes, Relaxed);
    }

    pub(super) fn peers(&self, bytes: u64) {
        self.peers.fetch_add(bytes, Relaxed);
    }

    /// What a neighbour sent is of no use.
    pub(super) fn in_vain(&self, bytes: u64, why: String) {
        self.peers.fetch_sub(bytes, Relaxed);
        self.notices.lock().expect("nothing panics while it holds the list").push(why);
    }

    pub(crate) fn moved(&self) -> Moved {
        Moved { store: self.store.load(Relaxed), peers: self.peers.load(Relaxed), cache: self.cache.load(Relaxed) }
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().expect("nothing panics while it holds the list"))
    }

    /// How far it has come after `took`, in words; `None` while nothing is fetched.
    pub(crate) fn progress(&self, took: Duration) -> Option<String> {
        let moved = self.moved();
        let (got, wanted) = (moved.store + moved.peers, self.wanted.load(Relaxed));
        let rate = humane_bytes((got as f64 / took.as_secs_f64().max(0.001)) as u64);
        let (got, wanted) = (humane_bytes(got), (wanted > 0).then(|| humane_bytes(wanted))?);
        Some(format!("{got} of {wanted} after {}, {rate} a second", humane(took)))
    }
}
