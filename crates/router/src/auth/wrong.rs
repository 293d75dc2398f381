//! How many wrong keys an address may try. Right keys are never held up: behind one address there may be many callers,
//! and one of them with an old key must not lock the others out.

use std::{cell::RefCell, collections::HashMap, net::IpAddr, time::Duration};
use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);
/// More addresses than this are not told apart; forgetting all of them is better than growing.
const MOST: usize = 10_000;

/// Wrong keys of the last minute by address; each worker counts its own.
#[derive(Debug, Default)]
pub(crate) struct WrongKeys(RefCell<HashMap<IpAddr, (Instant, u32)>>);

impl WrongKeys {
    /// Counts one; true when it is more than `limit` in a minute.
    pub(crate) fn too_many(&self, from: IpAddr, limit: u32, now: Instant) -> bool {
        let mut seen = self.0.borrow_mut();
        if seen.len() >= MOST && !seen.contains_key(&from) {
            seen.clear();
        }
        let (since, count) = seen.entry(from).or_insert((now, 0));
        if now.duration_since(*since) >= WINDOW {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count > limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_minute() {
        let (wrong, now) = (WrongKeys::default(), Instant::now());
        let (a, b) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        assert_eq!([0; 4].map(|_| wrong.too_many(a, 3, now)), [false, false, false, true]);
        assert!(!wrong.too_many(b, 3, now));
        assert!(!wrong.too_many(a, 3, now + WINDOW));
    }
}
