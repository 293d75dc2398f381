//! One attempt, from its assignment to its last word.
//!
//! Each step is in the journal before the next begins: accepted, about to start processes (and under which keeper),
//! over. An agent that comes back reads the journal and goes on. Invariants: processes are started at most once,
//! because the keeper starts a key at most once; an outcome, once written, never changes.

mod collect;
mod command;
mod logs;
mod mounts;
mod parallel;
mod process;
mod serve;
mod share;
mod ship;
mod spread;
mod stage;
pub(crate) mod tunnel;
mod variables;
mod verdict;

use crate::{cgroup::Cgroup, context::Context};
use domain::{Assignment, Outcome, Timestamp, job::Failure, report::What};
use logs::Logs;
pub(crate) use process::AllEnded;
use serde::{Deserialize, Serialize};
use ship::Shipper;
use std::{io, net::SocketAddr, sync::Arc};
use tokio::sync::watch;

/// Written before the first process is started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunMark {
    /// The keeper that was asked to start them.
    keeper: String,
    processes: Vec<process::Process>,
    pub(crate) started_at: Timestamp,
    pub(crate) gpus: Vec<u32>,
    isolation: String,
    cgroup: Option<String>,
    /// How often the kernel had killed for want of memory in the agent's own container before.
    #[serde(default)]
    oom_kills: Option<u64>,
    /// Where a replica is reached.
    #[serde(default)]
    address: Option<SocketAddr>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OverMark {
    pub(crate) outcome: Outcome,
    pub(crate) isolation: String,
}

/// Why an attempt is to end before its command does.
#[derive(Debug, Clone)]
pub(crate) enum Stop {
    /// By someone who may; it is canceled.
    Asked(String),
    /// By the place it is in; it may be tried again elsewhere.
    Leave(String),
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Outcome {
        match stop {
            Stop::Asked(reason) => Outcome::Canceled { reason },
            Stop::Leave(reason) => {
                Outcome::Failed(Failure { retryable: true, ..Failure::new("PodAskedToLeave", reason) })
            }
        }
    }
}

/// Resolves to the reason when someone wants the attempt stopped.
pub(crate) type Stopped = watch::Receiver<Option<Stop>>;

/// Why staging, running or collecting did not go on.
pub(crate) enum Halt {
    Failed(Failure),
    Stopped(Stop),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Halt {
        Halt::Failed(failure)
    }
}

/// Lives an attempt to its end and reports it. Safe to call again after a crash at any point.
pub(crate) async fn live(cx: &Context, assignment: &Assignment, gpus: &[u32], mut stopped: Stopped) {
    let over = cx.journal.life(&assignment.attempt).and_then(|life| life.over);
    if let Some(over) = over {
        return say_over(cx, assignment, over.outcome.clone(), &over.isolation);
    }
    let mut isolation = "none".to_owned();
    let went = match Logs::of(assignment, cx.folder(&assignment.attempt)) {
        Ok(logs) => Going { cx, assignment, gpus, logs: &logs }.go_and_ship(&mut stopped, &mut isolation).await,
        Err(failure) => Err(failure.into()),
    };
    let outcome = match went {
        Ok(()) => Outcome::Completed,
        Err(Halt::Failed(failure)) => Outcome::Failed(failure),
        Err(Halt::Stopped(stop)) => stop.into(),
    };
    finish(cx, assignment, outcome, &isolation);
}

/// Writes the outcome down, then tells the server.
pub(crate) fn finish(cx: &Context, assignment: &Assignment, outcome: Outcome, isolation: &str) {
    let mark = OverMark { outcome: outcome.clone(), isolation: isolation.to_owned() };
    let mut written = cx.journal.end(&assignment.attempt, mark.clone());
    // A disk may be full of this very attempt's files, and then neither we nor the server could write down its end.
    if written.is_err() || matches!(outcome, Outcome::Failed(_)) {
        let _ = stage::clean(&cx.folder(&assignment.attempt));
    }
    if written.is_err() {
        written = cx.journal.end(&assignment.attempt, mark);
    }
    if let Err(error) = written {
        // The report still goes out; only a crash before its answer would repeat the collection.
        tracing::error!(error = &error as &dyn std::error::Error, "cannot write down an outcome");
    }
    cx.data.release(assignment.attempt.as_str());
    for rank in share::own(assignment) {
        cx.link.forget(&process::key(assignment, rank));
    }
    tunnel::forget(cx, &assignment.attempt);
    say_over(cx, assignment, outcome, isolation);
}

/// An attempt under way.
struct Going<'a> {
    cx: &'a Context,
    assignment: &'a Assignment,
    gpus: &'a [u32],
    logs: &'a Logs,
}

impl Going<'_> {
    /// Where the server is elsewhere its logs go there as they grow, to the last byte before anyone hears of the end.
    async fn go_and_ship(&self, stopped: &mut Stopped, isolation: &mut String) -> Result<(), Halt> {
        let Going { cx, assignment, logs, .. } = *self;
        let going = self.go(stopped, isolation);
        if !logs.are_away() {
            return going.await;
        }
        let mut shipper = Shipper::new(cx, &assignment.attempt, logs.root());
        let went = tokio::select! {
            went = going => went,
            never = shipper.follow() => match never {},
        };
        shipper.finish().await;
        went
    }

    async fn go(&self, stopped: &mut Stopped, isolation: &mut String) -> Result<(), Halt> {
        let Going { cx, assignment, gpus, logs } = *self;
        let run = match cx.journal.life(&assignment.attempt).and_then(|life| life.run) {
            Some(run) => {
                *isolation = run.isolation.clone();
                run
            }
            None => {
                cx.reporter.say(&assignment.attempt, cx.now(), What::Preparing);
                let staged = stage::stage(cx, assignment, gpus, logs, stopped).await?;
                *isolation = staged.isolation.to_owned();
                let run = Arc::new(RunMark {
                    keeper: cx.link.instance().to_owned(),
                    processes: staged.processes,
                    started_at: cx.now(),
                    gpus: gpus.to_vec(),
                    isolation: isolation.clone(),
                    cgroup: staged.cgroup,
                    oom_kills: cx.is_contained().then(|| Cgroup::own()?.oom_kills()).flatten(),
                    address: staged.address,
                });
                cx.journal.begin(&assignment.attempt, Arc::clone(&run)).map_err(disk)?;
                run
            }
        };
        let ended = match cx.journal.life(&assignment.attempt).and_then(|life| life.exit) {
            Some(ended) => ended,
            None => {
                let ended = tokio::select! {
                    ended = process::run(cx, assignment, &run, logs, stopped) => Arc::new(ended?),
                    () = collect::keep_synced(cx, assignment) => return Ok(()),
                };
                if let Err(error) = cx.journal.exit(&assignment.attempt, Arc::clone(&ended)) {
                    // It matters only if the keeper is killed before the collection is done.
                    tracing::error!(error = &error as &dyn std::error::Error, "cannot write down an exit code");
                }
                ended
            }
        };
        cx.reporter.say(&assignment.attempt, cx.now(), What::Exited { code: ended.code, signal: ended.signal });
        let collected = collect::collect(cx, assignment, logs).await;
        verdict::verdict(&ended, assignment, logs)?;
        collected.map_err(Halt::Failed)
    }
}

fn say_over(cx: &Context, assignment: &Assignment, outcome: Outcome, isolation: &str) {
    cx.reporter.say(&assignment.attempt, cx.now(), What::Over { outcome, isolation: isolation.to_owned() });
}

/// A fault of the node's disk, told as a failure of the attempt.
pub(crate) fn disk(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Failure::new("NodeDiskFull", "the disk of the node is full; free some space and submit the job again")
        }
        _ => Failure::new("NodeDiskError", format!("the node cannot use its disk: {error}")),
    }
}
