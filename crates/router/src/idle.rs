//! Connections between two requests, and when each has waited long enough.
//!
//! One list a worker stands in for a timer a connection: ten thousand of them then cost a few bytes each, and to begin to
//! wait reads no clock.

use slab::Slab;
use std::{
    cell::{Cell, RefCell},
    task::Waker,
};

/// Those who wait at one worker.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    waiting: RefCell<Slab<Waiting>>,
    round: Cell<u32>,
}

#[derive(Debug)]
struct Waiting {
    waker: Waker,
    /// The round in which it began.
    since: u32,
    over: bool,
}

impl Idle {
    /// Begins to wait, or goes on at `place`; true when it has been long enough.
    pub(crate) fn wait(&self, place: &mut Option<u32>, waker: &Waker) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        match place.and_then(|at| waiting.get_mut(at as usize)) {
            Some(one) => {
                one.waker.clone_from(waker);
                one.over
            }
            None => {
                let one = Waiting { waker: waker.clone(), since: self.round.get(), over: false };
                *place = u32::try_from(waiting.insert(one)).ok();
                false
            }
        }
    }

    /// Waits no longer.
    pub(crate) fn leave(&self, place: Option<u32>) {
        if let Some(at) = place {
            self.waiting.borrow_mut().try_remove(at as usize);
        }
    }

    /// Begins a round; who has waited for more than `rounds` is told.
    pub(crate) fn sweep(&self, rounds: u32) {
        self.round.set(self.round.get().wrapping_add(1));
        self.tell(|since| self.round.get().wrapping_sub(since) > rounds);
    }

    /// Tells all.
    pub(crate) fn close(&self) {
        self.tell(|_| true);
    }

    fn tell(&self, enough: impl Fn(u32) -> bool) {
        for (_, one) in self.waiting.borrow_mut().iter_mut().filter(|(_, one)| !one.over && enough(one.since)) {
            one.over = true;
            one.waker.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_too_long_is_told_once_and_who_left_is_not() {
        let (idle, waker) = (Idle::default(), Waker::noop());
        let (mut early, mut late, mut gone) = (None, None, None);
        assert!(!idle.wait(&mut early, waker) && !idle.wait(&mut gone, waker));
        idle.sweep(1);
        assert!(!idle.wait(&mut late, waker) && !idle.wait(&mut early, waker));
        idle.leave(gone);
        idle.sweep(1);
        assert!(idle.wait(&mut early, waker), "two rounds are more than one");
        assert!(!idle.wait(&mut late, waker));
        idle.leave(early);
        idle.close();
        assert!(idle.wait(&mut late, waker));
        idle.leave(late);
        assert!(idle.waiting.borrow().is_empty());
    }
}
