//! Telling the server what happened, in order, many things at a time, for as long as it takes.
//!
//! Invariant: a report leaves the queue only when the server has answered for it.

use crate::server::{CallError, Server};
use domain::{
    AttemptId, Timestamp,
    report::{NodeFacts, Report, ReportAnswer, ReportBatch, Sample, What},
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, timeout_at},
};

const BATCH: usize = 1000;

/// How long news of an attempt under way waits for more: a short one is told of once, with its end, and with its neighbours
/// where many stand in line.
const COMPANY: Duration = Duration::from_millis(10);

#[derive(Clone, Default)]
pub(crate) struct Reporter {
    queue: Arc<Mutex<Queue>>,
    bell: Arc<Notify>,
    /// Rings when something should not wait for company.
    urgent: Arc<Notify>,
    /// Others stand in line, so that nothing is idle while an end waits to be told.
    crowded: Arc<AtomicBool>,
}

#[derive(Default)]
struct Queue {
    reports: Vec<Report>,
    samples: Vec<Sample>,
}

impl Queue {
    fn can_wait(&self, crowded: bool) -> bool {
        !self.reports.is_empty() && (crowded || !self.reports.iter().any(|report| is_urgent(&report.what)))
    }
}

impl Reporter {
    pub(crate) fn say(&self, attempt: &AttemptId, at: Timestamp, what: What) {
        let urgent = is_urgent(&what);
        self.lock().reports.push(Report { attempt: attempt.clone(), at, what });
        self.bell.notify_one();
        if urgent {
            self.urgent.notify_one();
        }
    }

    pub(crate) fn is_crowded(&self, crowded: bool) {
        self.crowded.store(crowded, Relaxed);
    }

    pub(crate) fn sample(&self, sample: Sample) {
        let mut queue = self.lock();
        // With the server away for days, old readings matter less than memory.
        if queue.samples.len() >= BATCH {
            queue.samples.remove(0);
        }
        queue.samples.push(sample);
        drop(queue);
        self.bell.notify_one();
    }

    /// Sends for ever, for this part of an attempt where there are several; attempts whose end the server has recorded
    /// go to `recorded`.
    pub(crate) async fn run(
        self,
        server: Arc<Server>,
        facts: NodeFacts,
        part: Option<u32>,
        clock: fn() -> Timestamp,
        recorded: mpsc::UnboundedSender<AttemptId>,
    ) {
        loop {
            self.company().await;
            let (reports, samples) = {
                let mut queue = self.lock();
                let n = queue.reports.len().min(BATCH);
                (queue.reports.drain(..n).collect::<Vec<_>>(), std::mem::take(&mut queue.samples))
            };
            if reports.is_empty() && samples.is_empty() {
                self.bell.notified().await;
                continue;
            }
            let mut batch = ReportBatch { facts: facts.clone(), reports, samples, part, sent_at: None };
            let mut tries = 0;
            let answer = loop {
                batch.sent_at = Some(clock());
                match server.post::<ReportAnswer>("/agent/v1/report", &batch).await {
                    Ok(answer) => break answer,
                    Err(CallError::NoAddress) => {}
                    Err(error) => {
                        tracing::warn!(error = &error as &dyn std::error::Error, "the server took no report")
                    }
                }
                tokio::time::sleep(server.pause(tries)).await;
                tries += 1;
            };
            for attempt in answer.recorded {
                if recorded.send(attempt).is_err() {
                    return;
                }
            }
        }
    }

    /// Gives news that can wait a moment for more.
    async fn company(&self) {
        let until = Instant::now() + COMPANY;
        let can_wait = || self.lock().can_wait(self.crowded.load(Relaxed));
        while can_wait() && timeout_at(until, self.urgent.notified()).await.is_ok() {}
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().expect("nothing panics while it holds the queue")
    }
}

/// Whether someone waits for this.
fn is_urgent(what: &What) -> bool {
    matches!(what, What::Over { .. } | What::Returned | What::Serving { .. })
}
