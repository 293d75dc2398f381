//! What is counted of requests: by status, and by how long they took.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

/// Upper bounds of the histogram, in microseconds.
pub(crate) const BOUNDS_US: [u64; 13] =
    [500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000, 30_000_000];
const CODES: usize = 500;

/// Counters of one deployment, of an endpoint's refusals, or of requests that led nowhere.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Status 100 to 599; most endpoints refuse nobody, and need no room for it.
    codes: OnceLock<Box<[AtomicU64]>>,
    /// One more than the bounds: the rest.
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    micros: AtomicU64,
}

impl Counts {
    pub(crate) fn add(&self, status: u16, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let code = usize::from(status).saturating_sub(100).min(CODES - 1);
        let bucket = BOUNDS_US.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS_US.len());
        let codes = self.codes.get_or_init(|| (0..CODES).map(|_| AtomicU64::new(0)).collect());
        codes[code].fetch_add(1, Relaxed);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.micros.fetch_add(micros, Relaxed);
    }

    /// The statuses seen, with how often.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (usize, u64)> {
        let codes = self.codes.get().map(AsRef::as_ref).unwrap_or_default();
        let counted = codes.iter().enumerate().map(|(at, count)| (at + 100, count.load(Relaxed)));
        counted.filter(|(_, count)| *count > 0)
    }

    /// Requests by bucket, not summed up; the last one has no bound.
    pub(crate) fn buckets(&self) -> [u64; BOUNDS_US.len() + 1] {
        std::array::from_fn(|at| self.buckets[at].load(Relaxed))
    }

    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_micros(self.micros.load(Relaxed)).as_secs_f64()
    }
}
