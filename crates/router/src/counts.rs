//! What is counted of requests: by status, and by how long they took.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use domain::serving::Answered;
pub(crate) use domain::serving::LATENCY_BOUNDS_US as BOUNDS_US;
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

    /// All of it, under the names it belongs to.
    pub(crate) fn answered(&self, endpoint: &str, deployment: &str) -> Answered {
        let codes = self.codes().map(|(code, count)| (u16::try_from(code).unwrap_or(u16::MAX), count)).collect();
        let (endpoint, deployment) = (endpoint.to_owned(), deployment.to_owned());
        Answered { endpoint, deployment, mirrored: false, codes, buckets: self.buckets().to_vec() }
    }

    /// Requests by bucket, not summed up; the last one has no bound.
    pub(crate) fn buckets(&self) -> [u64; BOUNDS_US.len() + 1] {
        std::array::from_fn(|at| self.buckets[at].load(Relaxed))
    }

    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_micros(self.micros.load(Relaxed)).as_secs_f64()
    }
}
