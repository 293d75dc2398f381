//! How often a caller may ask: a bucket of tokens each, filled at a steady rate.

use domain::Timestamp;
use std::{collections::HashMap, sync::Mutex};

/// Beyond this many callers, those who have been quiet are forgotten.
const REMEMBERED: usize = 10_000;

/// The buckets of all callers.
#[derive(Default)]
pub(crate) struct Limits {
    /// Requests a second; 0 for no limit.
    rate: u32,
    buckets: Mutex<HashMap<String, (f64, Timestamp)>>,
}

impl Limits {
    pub(crate) fn new(rate: u32) -> Limits {
        Limits { rate, buckets: Mutex::default() }
    }

    /// Takes one request out of the caller's bucket; `false` when it is empty. A bucket holds two seconds' worth.
    pub(crate) fn take(&self, caller: &str, now: Timestamp) -> bool {
        if self.rate == 0 {
            return true;
        }
        let full = f64::from(self.rate) * 2.0;
        let mut buckets = self.buckets.lock().expect("nothing panics while it holds the buckets");
        if buckets.len() >= REMEMBERED {
            buckets.retain(|_, (_, at)| now.0 - at.0 < 2_000);
        }
        let (left, at) = buckets.entry(caller.to_owned()).or_insert((full, now));
        let gained = f64::from(self.rate) * (now.0 - at.0).max(0) as f64 / 1000.0;
        (*left, *at) = ((*left + gained).min(full), now);
        let some = *left >= 1.0;
        if some {
            *left -= 1.0;
        }
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_who_asks_too_often_waits_and_others_do_not() {
        let limits = Limits::new(10);
        let taken = |caller: &str, at: i64| (0..100).filter(|_| limits.take(caller, Timestamp(at))).count();
        assert_eq!(taken("a", 0), 20);
        assert_eq!(taken("b", 0), 20);
        assert_eq!(taken("a", 500), 5);
        assert_eq!(taken("a", 60_000), 20);
        assert!((0..1000).all(|_| Limits::new(0).take("a", Timestamp(0))));
    }
}
