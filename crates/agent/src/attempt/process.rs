//! Running: the processes of an attempt under the keeper, and how they end.

use super::{Halt, RunMark, Stop, Stopped, logs::Logs, serve, share, spread, tunnel, variables::marker, verdict};
use crate::{
    cgroup::Cgroup,
    container,
    context::Context,
    keeper::{Ended, LinkError, Spawn},
};
use domain::{Assignment, job::Failure, report::What};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// One process, ready to be started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(super) argv: Vec<String>,
    pub(super) variables: Vec<(String, Option<String>)>,
    pub(super) folder: PathBuf,
    pub(super) output: PathBuf,
    pub(super) cgroups: Vec<PathBuf>,
}

/// How an attempt's processes ended: the first that failed, or the last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AllEnded {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) rank: u32,
    /// The keeper went away and took the exit code with it.
    pub(super) lost: bool,
    pub(super) timed_out: bool,
    pub(super) stopped: Option<String>,
    /// It was stopped by the place it ran in, and may be tried again elsewhere.
    #[serde(default)]
    pub(super) leaves: bool,
    pub(super) out_of_memory: bool,
    /// Of the container the agent is in; 0 where the limit is the plan's.
    #[serde(default)]
    pub(super) memory_limit: u64,
    /// Why a replica had to be ended.
    #[serde(default)]
    pub(super) unfit: Option<Failure>,
}

/// The keeper's key for a rank.
pub(super) fn key(assignment: &Assignment, rank: u32) -> String {
    format!("{}/{rank}", assignment.attempt)
}

/// The ranks that are processes of the keeper's: all that run here, or the first where that starts the others.
fn started(assignment: &Assignment, mark: &RunMark) -> Vec<u32> {
    share::own(assignment).into_iter().take(mark.processes.len()).collect()
}

/// Starts what is not started, waits for the end, and leaves nothing running.
pub(super) async fn run(
    cx: &Context,
    assignment: &Assignment,
    mark: &RunMark,
    logs: &Logs,
    stopped: &mut Stopped,
) -> Result<AllEnded, Halt> {
    let known = started(assignment, mark).into_iter().any(|rank| cx.link.knows(&key(assignment, rank)));
    let ended = if !known && mark.keeper != cx.link.instance() {
        lost(cx, assignment, mark, logs, stopped).await
    } else {
        start(cx, assignment, mark).await?;
        attend(cx, assignment, mark, logs, stopped, !known).await?
    };
    if let Some(name) = &mark.cgroup {
        Cgroup::dismiss(name);
    }
    Ok(ended)
}

async fn start(cx: &Context, assignment: &Assignment, mark: &RunMark) -> Result<(), Halt> {
    let mut first_pid = None;
    for (rank, process) in started(assignment, mark).into_iter().zip(mark.processes.clone()) {
        let program = process.argv.first().cloned().unwrap_or_default();
        let spawn = Spawn {
            key: key(assignment, rank),
            argv: process.argv,
            variables: process.variables,
            folder: process.folder,
            output: process.output,
            cgroups: process.cgroups,
        };
        match cx.link.spawn(spawn).await {
            Ok(pid) => first_pid = first_pid.or(Some(pid)),
            Err(LinkError::Gone) => return keeper_gone().await,
            Err(error) => {
                end_all(cx, assignment, mark, Duration::ZERO).await;
                return Err(verdict::unstarted(&program, &error).into());
            }
        }
    }
    let pid = first_pid.and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
    cx.reporter.say(&assignment.attempt, mark.started_at, What::Started { pid });
    Ok(())
}

async fn attend(
    cx: &Context,
    assignment: &Assignment,
    mark: &RunMark,
    logs: &Logs,
    stopped: &mut Stopped,
    fresh: bool,
) -> Result<AllEnded, Halt> {
    let deadline = deadline(cx, assignment, mark);
    let outcome = tokio::select! {
        ended = all_ended(cx, assignment, mark) => ended,
        stop = asked_to_stop(stopped) => Err(Interrupt::Stop(stop)),
        () = deadline => Err(Interrupt::Timeout),
        failure = serve::watch(cx, assignment, mark, logs, fresh) => Err(Interrupt::Unfit(failure)),
        never = logs.publish_soon() => match never {},
    };
    match outcome {
        Ok((rank, ended)) => {
            let serves = tunnel::folder(cx, &assignment.attempt).exists();
            if ended.left_behind || serves || mark.processes.len() > 1 {
                logs.system("lifecycle.log", "processes outlived the command and were ended");
                end_all(cx, assignment, mark, cx.settings.grace.min(Duration::from_secs(2))).await;
            }
            let (out_of_memory, memory_limit) = out_of_memory(mark);
            Ok(AllEnded { out_of_memory, memory_limit, ..AllEnded::of(rank, &ended) })
        }
        Err(Interrupt::Gone) => keeper_gone().await,
        Err(interrupt) => {
            if let Interrupt::Stop(Stop::Leave(why)) = &interrupt {
                serve::let_go(cx, assignment, mark, why).await;
            }
            end_all(cx, assignment, mark, cx.settings.grace).await;
            let first = started(assignment, mark).first().copied().unwrap_or(0);
            let last = cx.link.ended(&key(assignment, first)).await.unwrap_or(UNKNOWN);
            let ended = AllEnded::of(first, &last);
            Ok(match interrupt {
                Interrupt::Stop(stop) => ended.stopped_by(stop),
                Interrupt::Unfit(failure) => AllEnded { unfit: Some(failure), ..ended },
                _ => AllEnded { timed_out: true, ..ended },
            })
        }
    }
}

const UNKNOWN: Ended = Ended { code: None, signal: None, left_behind: false };

impl AllEnded {
    fn of(rank: u32, ended: &Ended) -> AllEnded {
        AllEnded {
            code: ended.code,
            signal: ended.signal,
            rank,
            lost: false,
            timed_out: false,
            stopped: None,
            leaves: false,
            out_of_memory: false,
            memory_limit: 0,
            unfit: None,
        }
    }

    fn stopped_by(self, stop: Stop) -> AllEnded {
        let (reason, leaves) = match stop {
            Stop::Asked(reason) => (reason, false),
            Stop::Leave(reason) => (reason, true),
        };
        AllEnded { stopped: Some(reason), leaves, ..self }
    }
}

/// Whether the kernel killed something of the attempt's for want of memory, and the limit where it is not the plan's.
fn out_of_memory(mark: &RunMark) -> (bool, u64) {
    let killed = oom_kills(mark).is_some_and(|kills| kills > 0);
    let own = if mark.cgroup.is_none() && killed { Cgroup::own() } else { None };
    (killed, own.and_then(|own| own.memory_limit()).unwrap_or(0))
}

/// How many processes of the attempt the kernel has killed for want of memory, where that can be known.
pub(super) fn oom_kills(mark: &RunMark) -> Option<u64> {
    match (&mark.cgroup, mark.oom_kills) {
        (Some(name), _) => Cgroup::open(name)?.oom_kills(),
        (None, Some(before)) => Some(Cgroup::own()?.oom_kills()?.saturating_sub(before)),
        (None, None) => None,
    }
}

enum Interrupt {
    Stop(Stop),
    Timeout,
    Unfit(Failure),
    Gone,
}

/// Waits until every rank has ended, or one has failed: then the others have no one to talk to.
async fn all_ended(cx: &Context, assignment: &Assignment, mark: &RunMark) -> Result<(u32, Ended), Interrupt> {
    use futures_util::{StreamExt, stream::FuturesUnordered};
    let ranks = started(assignment, mark).into_iter();
    let mut waiting: FuturesUnordered<_> =
        ranks.map(|rank| async move { (rank, cx.link.ended(&key(assignment, rank)).await) }).collect();
    let mut last = None;
    while let Some((rank, ended)) = waiting.next().await {
        let ended = ended.map_err(|_| Interrupt::Gone)?;
        if ended.code != Some(0) || spread::leads(assignment, rank) {
            return Ok((rank, ended));
        }
        last = Some((rank, ended));
    }
    last.ok_or(Interrupt::Gone)
}

/// Terminate, grace, kill; then whatever hid in another process group. Returns when all ranks are gone.
async fn end_all(cx: &Context, assignment: &Assignment, mark: &RunMark, grace: Duration) {
    let ranks = started(assignment, mark);
    let marker = marker(&cx.folder(&assignment.attempt));
    for rank in &ranks {
        cx.link.signal(&key(assignment, *rank), Signal::TERM.as_raw());
    }
    if !grace.is_zero() {
        let _ = tokio::time::timeout(grace, all_gone(cx, assignment, &ranks, &marker)).await;
    }
    for rank in &ranks {
        cx.link.signal(&key(assignment, *rank), Signal::KILL.as_raw());
    }
    cx.link.sweep(&marker);
    if mark.isolation == "container" && !cx.is_contained() {
        remove_containers(&cx.folder(&assignment.attempt), &ranks).await;
    }
    if let Some(group) = mark.cgroup.as_deref().and_then(Cgroup::open) {
        group.kill_all();
    }
    let _ = tokio::time::timeout(Duration::from_secs(10), all_gone(cx, assignment, &ranks, &marker)).await;
}

/// A killed engine client leaves its container running.
async fn remove_containers(folder: &Path, ranks: &[u32]) {
    if let Some(engine) = container::engine() {
        for rank in ranks {
            container::remove(&engine, &container_name(folder, *rank)).await;
        }
    }
}

/// The name of a rank's container.
pub(super) fn container_name(folder: &Path, rank: u32) -> String {
    format!("{}-{rank}", name_on_machine(folder))
}

/// A name for what an attempt has in places that the whole machine shares: attempts of two homes may have the same id,
/// but never the same folder.
pub(super) fn name_on_machine(folder: &Path) -> String {
    format!("{}-{:016x}", folder.file_name().unwrap_or_default().to_string_lossy(), hash_of(folder))
}

/// FNV-1a, written out: names made of it must hold for as long as an attempt lives, whichever version of us looks.
pub(super) fn hash_of(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

async fn all_gone(cx: &Context, assignment: &Assignment, ranks: &[u32], marker: &str) {
    for rank in ranks {
        if cx.link.knows(&key(assignment, *rank)) {
            let _ = cx.link.ended(&key(assignment, *rank)).await;
        }
    }
    while alive(marker) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Another keeper started these processes and is gone. They may still run; nobody can learn how they end.
async fn lost(cx: &Context, assignment: &Assignment, mark: &RunMark, logs: &Logs, stopped: &mut Stopped) -> AllEnded {
    let marker = marker(&cx.folder(&assignment.attempt));
    logs.system("lifecycle.log", "the keeper of this attempt was killed; its exit code will not be known");
    let (mut reason, mut timed_out, mut unfit) = (None, false, None);
    let mut deadline = std::pin::pin!(deadline(cx, assignment, mark));
    let mut watch = std::pin::pin!(serve::watch(cx, assignment, mark, logs, false));
    while alive(&marker) {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(500)) => {}
            stop = asked_to_stop(stopped), if reason.is_none() => {
                reason = Some(stop);
                cx.link.sweep(&marker);
            }
            () = &mut deadline, if !timed_out => {
                timed_out = true;
                cx.link.sweep(&marker);
            }
            failure = &mut watch, if unfit.is_none() => {
                unfit = Some(failure);
                cx.link.sweep(&marker);
            }
        }
    }
    let ended = AllEnded { lost: true, timed_out, unfit, ..AllEnded::of(0, &UNKNOWN) };
    match reason {
        Some(stop) => ended.stopped_by(stop),
        None => ended,
    }
}

/// Whether a process that carries the marker still runs.
fn alive(marker: &str) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    entries.flatten().any(|entry| {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        pid.is_some()
            && fs::read(entry.path().join("environ"))
                .is_ok_and(|environ| environ.split(|b| *b == 0).any(|variable| variable == marker.as_bytes()))
    })
}

/// Without its keeper an agent has nothing to attend to: it is about to be replaced together with it.
async fn keeper_gone<T>() -> Result<T, Halt> {
    std::future::pending().await
}

pub(super) async fn asked_to_stop(stopped: &mut Stopped) -> Stop {
    let stop = stopped.wait_for(Option::is_some).await.ok().and_then(|stop| stop.clone());
    match stop {
        Some(stop) => stop,
        None => std::future::pending().await,
    }
}

/// When `limits.timeout` is over; counted from the start, also across restarts of the agent.
async fn deadline(cx: &Context, assignment: &Assignment, mark: &RunMark) {
    let Some(seconds) = assignment.plan.timeout_seconds else { return std::future::pending().await };
    let limit = Duration::from_secs(seconds);
    tokio::time::sleep(limit.saturating_sub(cx.now().since(mark.started_at))).await;
}
