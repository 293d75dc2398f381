//! Telling the server what happened, in order, many things at a time, for as long as it takes.
//!
//! Invariant: a report leaves the queue only when the server has answered for it.

use crate::server::{CallError, Server};
use domain::{
    AttemptId, Timestamp,
    report::{NodeFacts, Report, ReportAnswer, ReportBatch, Sample, What},
};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, mpsc};

const BATCH: usize = 1000;

#[derive(Clone, Default)]
pub(crate) struct Reporter {
    queue: Arc<Mutex<Queue>>,
    bell: Arc<Notify>,
}

#[derive(Default)]
struct Queue {
    reports: Vec<Report>,
    samples: Vec<Sample>,
}

impl Reporter {
    pub(crate) fn say(&self, attempt: &AttemptId, at: Timestamp, what: What) {
        self.lock().reports.push(Report { attempt: attempt.clone(), at, what });
        self.bell.notify_one();
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
        recorded: mpsc::UnboundedSender<AttemptId>,
    ) {
        loop {
            let (reports, samples) = {
                let mut queue = self.lock();
                let n = queue.reports.len().min(BATCH);
                (queue.reports.drain(..n).collect::<Vec<_>>(), std::mem::take(&mut queue.samples))
            };
            if reports.is_empty() && samples.is_empty() {
                self.bell.notified().await;
                continue;
            }
            let batch = ReportBatch { facts: facts.clone(), reports, samples, part };
            let mut tries = 0;
            let answer = loop {
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().expect("nothing panics while it holds the queue")
    }
}
