//! One attempt, from its assignment to its last word.
//!
//! Each step leaves a mark in the attempt's folder before the next begins: `assignment.json` (accepted),
//! `run.json` (about to start processes, under which keeper), `over.json` (how it ended). An agent that
//! comes back reads the marks and goes on. Invariants: processes are started at most once, because the keeper
//! starts a key at most once; an outcome, once written, never changes.

mod collect;
mod command;
mod logs;
mod process;
mod stage;
mod variables;

use crate::context::{Context, write_whole};
use domain::{Assignment, Outcome, Timestamp, job::Failure, report::What};
use logs::Logs;
use serde::{Deserialize, Serialize};
use std::{fs, io, path::Path};
use tokio::sync::watch;

/// Written before the first process is started.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct RunMark {
    /// The keeper that was asked to start them.
    keeper: String,
    ranks: u32,
    started_at: Timestamp,
    gpus: Vec<u32>,
    isolation: String,
    cgroup: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OverMark {
    outcome: Outcome,
    isolation: String,
}

/// Resolves to the reason when someone wants the attempt stopped.
pub(crate) type Stopped = watch::Receiver<Option<String>>;

/// Why staging, running or collecting did not go on.
pub(crate) enum Halt {
    Failed(Failure),
    Stopped(String),
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Halt {
        Halt::Failed(failure)
    }
}

/// Accepts an assignment: from here on it survives this process.
pub(crate) fn keep(folder: &Path, assignment: &Assignment) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    write_whole(&folder.join("assignment.json"), &serde_json::to_vec(assignment)?)
}

/// Removes an attempt that is over for everyone. The assignment goes first: whatever a crash leaves of the rest is
/// nothing that an agent would begin with again.
pub(crate) fn discard(folder: &Path) -> io::Result<()> {
    match fs::remove_file(folder.join("assignment.json")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir_all(folder)
}

/// What an earlier agent left in a folder: the assignment, and its GPUs if it had got past waiting.
pub(crate) fn found(folder: &Path) -> Option<(Assignment, Option<Vec<u32>>)> {
    let assignment: Assignment = read_mark(&folder.join("assignment.json"))?;
    let run: Option<RunMark> = read_mark(&folder.join("run.json"));
    let over = folder.join("over.json").exists();
    Some((assignment, run.map(|run| run.gpus).or(over.then(Vec::new))))
}

/// Lives an attempt to its end and reports it. Safe to call again after a crash at any point.
pub(crate) async fn live(cx: &Context, assignment: &Assignment, gpus: &[u32], mut stopped: Stopped) {
    let folder = cx.folder(&assignment.attempt);
    if let Some(OverMark { outcome, isolation }) = read_mark(&folder.join("over.json")) {
        return say_over(cx, assignment, outcome, &isolation);
    }
    let mut isolation = "none".to_owned();
    let outcome = match go(cx, assignment, gpus, &mut stopped, &mut isolation).await {
        Ok(()) => Outcome::Completed,
        Err(Halt::Failed(failure)) => Outcome::Failed(failure),
        Err(Halt::Stopped(reason)) => Outcome::Canceled { reason },
    };
    finish(cx, assignment, outcome, &isolation);
}

/// Writes the outcome down, then tells the server.
pub(crate) fn finish(cx: &Context, assignment: &Assignment, outcome: Outcome, isolation: &str) {
    let mark = OverMark { outcome: outcome.clone(), isolation: isolation.to_owned() };
    let folder = cx.folder(&assignment.attempt);
    let bytes = serde_json::to_vec(&mark).expect("an outcome is plain data");
    let mut written = write_whole(&folder.join("over.json"), &bytes);
    // A disk may be full of this very attempt's files, and then neither we nor the server could write down its end.
    if written.is_err() || matches!(outcome, Outcome::Failed(_)) {
        let _ = stage::clean(&folder);
    }
    if written.is_err() {
        written = write_whole(&folder.join("over.json"), &bytes);
    }
    if let Err(error) = written {
        // The report still goes out; only a crash before its answer would repeat the collection.
        tracing::error!(error = &error as &dyn std::error::Error, "cannot write down an outcome");
    }
    cx.data.release(assignment.attempt.as_str());
    for rank in 0..ranks(assignment) {
        cx.link.forget(&process::key(assignment, rank));
    }
    say_over(cx, assignment, outcome, isolation);
}

async fn go(
    cx: &Context,
    assignment: &Assignment,
    gpus: &[u32],
    stopped: &mut Stopped,
    isolation: &mut String,
) -> Result<(), Halt> {
    let logs = Logs::of(assignment)?;
    let folder = cx.folder(&assignment.attempt);
    let mark = folder.join("run.json");
    let run = match read_mark::<RunMark>(&mark) {
        Some(run) => {
            *isolation = run.isolation.clone();
            run
        }
        None => {
            cx.reporter.say(&assignment.attempt, cx.now(), What::Preparing);
            let staged = stage::stage(cx, assignment, gpus, &logs, stopped).await?;
            *isolation = staged.isolation.to_owned();
            let run = RunMark {
                keeper: cx.link.instance().to_owned(),
                ranks: ranks(assignment),
                started_at: cx.now(),
                gpus: gpus.to_vec(),
                isolation: isolation.clone(),
                cgroup: staged.cgroup.clone(),
            };
            // The processes' own particulars first, so that a run mark is never without them.
            process::write_plan(&folder, &staged.processes).map_err(disk)?;
            write_whole(&mark, &serde_json::to_vec(&run).expect("a mark is plain data")).map_err(disk)?;
            run
        }
    };
    let ended = tokio::select! {
        ended = process::run(cx, assignment, &run, &logs, stopped) => ended?,
        () = collect::keep_synced(cx, assignment) => return Ok(()),
    };
    cx.reporter.say(&assignment.attempt, cx.now(), What::Exited { code: ended.code, signal: ended.signal });
    let collected = collect::collect(cx, assignment, &logs).await;
    process::verdict(&ended, assignment, &logs)?;
    collected.map_err(Halt::Failed)
}

pub(crate) fn ranks(assignment: &Assignment) -> u32 {
    assignment.plan.distribution.as_ref().map_or(1, |d| d.nodes * d.processes_per_node + d.parameter_servers)
}

fn say_over(cx: &Context, assignment: &Assignment, outcome: Outcome, isolation: &str) {
    cx.reporter.say(&assignment.attempt, cx.now(), What::Over { outcome, isolation: isolation.to_owned() });
}

fn read_mark<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
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
