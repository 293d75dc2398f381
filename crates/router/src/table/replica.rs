//! One replica: how busy it is, and whether it has been let alone for a while because it failed.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst},
};
use tokio::time::{Duration, Instant};

/// A replica that refuses connections is out at once; other faults must come in a row.
const FAULTS: u32 = 3;
/// Errors of the model itself may be its callers' doing, so there must be more of them.
const ERRORS: u32 = 10;
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// What a replica did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It could not be reached.
    Unreachable,
    /// It broke off, was too slow or made no sense.
    Broken,
    /// It answered with an error of its own.
    Error,
}

/// A replica's address and state; shared by all workers and by every table that has it.
#[derive(Debug)]
pub(crate) struct Replica {
    /// Of this process only; never used again for another.
    pub(crate) id: u64,
    pub(crate) address: SocketAddr,
    began: Instant,
    busy: AtomicU32,
    faults: AtomicU32,
    errors: AtomicU32,
    /// How often in a row it was sent to rest.
    rests: AtomicU32,
    /// Milliseconds after `began`; 0 when it is not resting.
    rests_until: AtomicU64,
}

impl Replica {
    pub(crate) fn new(address: SocketAddr) -> Replica {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Replica {
            id: NEXT.fetch_add(1, Relaxed),
            address,
            began: Instant::now(),
            busy: AtomicU32::new(0),
            faults: AtomicU32::new(0),
            errors: AtomicU32::new(0),
            rests: AtomicU32::new(0),
            rests_until: AtomicU64::new(0),
        }
    }

    /// Requests it works on now.
    pub(crate) fn busy(&self) -> u32 {
        self.busy.load(Relaxed)
    }

    /// Takes one of `slots`, unless all are taken.
    pub(crate) fn take(&self, slots: u32) -> bool {
        let more = |busy| (busy < slots).then_some(busy + 1);
        self.busy.fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    pub(crate) fn release(&self) {
        self.busy.fetch_sub(1, SeqCst);
    }

    /// Whether it is left alone at this moment.
    pub(crate) fn is_resting(&self, now: Instant) -> bool {
        // Nearly always zero, and then no clock is read.
        let until = self.rests_until.load(Relaxed);
        until > 0 && self.millis(now) < until
    }

    pub(crate) fn did_well(&self) {
        for counter in [&self.faults, &self.errors, &self.rests] {
            if counter.load(Relaxed) > 0 {
                counter.store(0, Relaxed);
            }
        }
    }

    /// Counts a fault; true when it is one too many. Whether it rests is the caller's to decide.
    pub(crate) fn did(&self, wrong: Wrong) -> bool {
        match wrong {
            Wrong::Unreachable => true,
            Wrong::Broken => self.faults.fetch_add(1, Relaxed) + 1 >= FAULTS,
            Wrong::Error => self.errors.fetch_add(1, Relaxed) + 1 >= ERRORS,
        }
    }

    /// Leaves it alone for a while, each time longer.
    pub(crate) fn rest(&self, now: Instant) {
        let times = self.rests.fetch_add(1, Relaxed).min(10);
        let rest = LONGEST_REST.min(FIRST_REST * (1 << times));
        self.faults.store(0, Relaxed);
        self.errors.store(0, Relaxed);
        self.rests_until.store(self.millis(now + rest), Relaxed);
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.duration_since(self.began).as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_rests_longer_each_time_and_is_forgiven_when_it_does_well() {
        let replica = Replica::new("127.0.0.1:1".parse().unwrap());
        let now = Instant::now();
        assert!(!replica.did(Wrong::Broken) && !replica.did(Wrong::Broken) && replica.did(Wrong::Broken));
        replica.rest(now);
        assert!(replica.is_resting(now) && !replica.is_resting(now + FIRST_REST));
        replica.rest(now);
        assert!(replica.is_resting(now + FIRST_REST) && !replica.is_resting(now + FIRST_REST * 2));
        replica.did_well();
        assert!((1..ERRORS).all(|_| !replica.did(Wrong::Error)) && replica.did(Wrong::Error));
        assert!(replica.did(Wrong::Unreachable));
    }

    #[test]
    fn a_replica_takes_as_many_as_it_has_slots() {
        let replica = Replica::new("127.0.0.1:1".parse().unwrap());
        assert!(replica.take(2) && replica.take(2) && !replica.take(2));
        replica.release();
        assert!(replica.take(2));
    }
}
