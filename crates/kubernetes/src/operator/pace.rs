//! How long to wait before trying again: a little longer each time, and never all at the same moment.

use kube::runtime::utils::Backoff;
use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(10);

/// Waits that double from half a second to ten, each made up to a quarter longer by chance.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    failures: u32,
}

impl Pace {
    /// The wait after one more failure.
    pub(crate) fn after_failure(&mut self) -> Duration {
        let base = FIRST.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        base + base.mul_f64(chance() / 4.0)
    }

    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

impl Iterator for Pace {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.after_failure())
    }
}

impl Backoff for Pace {
    fn reset(&mut self) {
        self.succeeded();
    }
}

/// The door through which chance comes in: evenly from 0 to 1.
fn chance() -> f64 {
    (draw() >> 11) as f64 / (1u64 << 53) as f64
}

/// Eight letters and digits that nobody had before.
pub(crate) fn nonce() -> String {
    format!("{:08x}", draw() as u32)
}

fn draw() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_bound_and_start_again_after_success() {
        let mut pace = Pace::default();
        let waits: Vec<_> = (0..8).map(|_| pace.after_failure()).collect();
        assert!(waits[0] >= FIRST && waits[0] < FIRST * 2 && waits[7] >= LONGEST && waits[7] <= LONGEST * 5 / 4);
        pace.succeeded();
        assert!(pace.after_failure() < FIRST * 2);
    }
}
