//! Who waits for a slot, first come first served.
//!
//! Whoever is called has not been served yet: another may have taken the slot. It then stands where it stood, before all who
//! came later, so that nobody waits twice. Only who waits, and who calls those who wait, takes the lock, and for a few
//! instructions. Invariant: who was called and leaves without being served calls the next.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    task::{Poll, Waker},
};

/// A line before one deployment.
#[derive(Debug, Default)]
pub(crate) struct Line {
    inner: Mutex<Inner>,
    /// All who have a place, called or not; read without the lock.
    length: AtomicU32,
}

#[derive(Debug, Default)]
struct Inner {
    /// Those who are not called yet, by their number.
    waiting: BTreeMap<u64, Option<Waker>>,
    next: u64,
    /// Those who are called, and neither served nor back in line.
    called: u32,
}

/// A place in a line; given up when dropped.
#[derive(Debug)]
pub(crate) struct Place<'l> {
    line: &'l Line,
    number: u64,
}

impl Line {
    /// Joins the line: the place, and how many have one already.
    pub(crate) fn join(&self) -> (Place<'_>, u32) {
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        inner.waiting.insert(number, None);
        (Place { line: self, number }, self.length.fetch_add(1, SeqCst))
    }

    /// How many have a place.
    pub(crate) fn length(&self) -> u32 {
        self.length.load(SeqCst)
    }

    /// Calls the first, for a slot that is free. Costs one look when nobody waits.
    pub(crate) fn call(&self) {
        if self.length() > 0 {
            self.lock().call();
        }
    }

    /// Calls the first if there are more free slots than people on their way to one.
    pub(crate) fn call_for(&self, free: u32) {
        let mut inner = self.lock();
        if free > inner.called {
            inner.call();
        }
    }

    /// Calls everyone: what they wait for has changed.
    pub(crate) fn call_all(&self) {
        let mut inner = self.lock();
        while !inner.waiting.is_empty() {
            inner.call();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("nothing panics while it holds the line")
    }
}

impl Inner {
    fn call(&mut self) {
        if let Some((_, waker)) = self.waiting.pop_first() {
            self.called += 1;
            waker.inspect(Waker::wake_by_ref);
        }
    }

    /// Takes a place out; true when it had been called.
    fn leave(&mut self, number: u64) -> bool {
        let called = self.waiting.remove(&number).is_none();
        self.called -= u32::from(called);
        called
    }
}

impl Place<'_> {
    /// Waits until it is called.
    pub(crate) async fn called(&self) {
        poll_fn(|cx| match self.line.lock().waiting.get_mut(&self.number) {
            Some(waker) => {
                waker.get_or_insert_with(|| cx.waker().clone()).clone_from(cx.waker());
                Poll::Pending
            }
            None => Poll::Ready(()),
        })
        .await
    }

    /// Stands again where it stood. To be done before looking for a slot: a call in between is then not lost.
    pub(crate) fn stand_again(&self) {
        let mut inner = self.line.lock();
        if inner.waiting.insert(self.number, None).is_none() {
            inner.called -= 1;
        }
    }

    /// Leaves with a slot.
    pub(crate) fn served(self) {
        let mut inner = self.line.lock();
        inner.leave(self.number);
        self.line.length.fetch_sub(1, SeqCst);
        drop(inner);
        std::mem::forget(self);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut inner = self.line.lock();
        self.line.length.fetch_sub(1, SeqCst);
        if inner.leave(self.number) {
            inner.call();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::Future, pin::pin, task::Context};

    fn is_called(place: &Place) -> bool {
        pin!(place.called()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn who_is_called_in_vain_stands_where_it_stood_and_who_leaves_calls_the_next() {
        let line = Line::default();
        let [(a, _), (b, _), (c, before)] = [line.join(), line.join(), line.join()];
        assert_eq!((before, line.length()), (2, 3));
        line.call();
        assert!(is_called(&a) && !is_called(&b));
        a.stand_again();
        line.call();
        assert!(is_called(&a) && !is_called(&b), "it is still the first");
        line.call_for(1);
        assert!(!is_called(&b), "someone is on the way to the one slot");
        line.call_for(2);
        assert!(is_called(&b) && !is_called(&c));
        drop(b);
        assert!(is_called(&c), "who gives up passes the call on");
        c.served();
        a.served();
        line.call_for(9);
        assert_eq!((line.length(), line.lock().called), (0, 0));
    }
}
