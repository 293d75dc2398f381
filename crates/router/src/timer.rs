//! One timer for many deadlines, moved rather than made anew.

use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep};

/// So many are kept for later.
const KEPT: usize = 4096;

/// A timer of one request. Moving a deadline forward costs a store.
#[derive(Debug)]
pub(crate) struct Timer(Pin<Box<Sleep>>);

/// The free timers of one worker. As they go from request to request their deadlines hardly ever move back.
#[derive(Debug, Default)]
pub(crate) struct Timers(RefCell<Vec<Timer>>);

impl Timers {
    pub(crate) fn take(&self) -> Timer {
        self.0.borrow_mut().pop().unwrap_or_else(Timer::new)
    }

    pub(crate) fn put(&self, timer: Timer) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < KEPT {
            kept.push(timer);
        }
    }
}

impl Timer {
    pub(crate) fn new() -> Timer {
        Timer(Box::pin(sleep(Duration::from_secs(60))))
    }

    /// What `work` gives, or `None` when it is not done by `deadline`.
    pub(crate) async fn by<T>(&mut self, deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
        self.limit(|| deadline, work).await
    }

    /// What `work` gives, or `None` when it is not done after `limit`. What is done at once reads no clock.
    pub(crate) async fn within<T>(&mut self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        self.limit(|| Instant::now() + limit, work).await
    }

    async fn limit<T>(&mut self, deadline: impl Fn() -> Instant, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        let mut armed = false;
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            if !armed {
                self.0.as_mut().reset(deadline());
                armed = true;
            }
            self.0.as_mut().poll(cx).map(|()| None)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn deadlines_move_both_ways() {
        let mut timer = Timer::new();
        let start = Instant::now();
        for millis in [50, 10, 60, 20] {
            let (begun, limit) = (Instant::now(), Duration::from_millis(millis));
            assert_eq!(timer.within(limit, std::future::pending::<()>()).await, None);
            assert!(begun.elapsed() >= limit && begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        }
        assert_eq!(timer.by(start, async { 7 }).await, Some(7), "what is done is done, however late");
    }
}
