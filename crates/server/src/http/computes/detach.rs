//! Detaching: a target on a cluster goes only when no job is there any more.

use crate::{
    app::App,
    http::{
        agents,
        change::Halt,
        clusters::{SILENT_MS, poll},
        jobs,
    },
    problem::Problem,
};
use domain::{AttemptId, Timestamp};
use serde_json::{Value, json};
use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};
use store::{Bell, MachineRow, Tx};
use tokio::time::Instant;

/// How long canceled jobs are waited for.
const PATIENCE: Duration = Duration::from_secs(45);
/// How often it is looked whether somebody answers there.
const AGAIN: Duration = Duration::from_secs(5);
/// How long what is left of them is waited for, and how often it is looked.
const PODS_PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);
/// How many of them a message names.
const NAMED: usize = 5;

/// Whether no job of a target is still open; a refusal that names those that are, and what to do that was not done yet.
pub(super) fn is_clear(tx: &mut Tx<'_>, workspace: &str, name: &str, forced: bool) -> Result<(), Halt> {
    let open = tx.open_jobs_of(workspace, name)?;
    if open.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = open.iter().take(NAMED).map(|(_, name)| format!("`{name}`")).collect();
    let more = if open.len() > NAMED { ", …" } else { "" };
    let next = match forced {
        true => "they were told to end and are still at it: try again in a minute",
        false => "wait for them, or detach with `--force` to cancel them",
    };
    let message = format!(
        "compute target `{name}` has {} jobs that have not ended ({}{more}); {next}",
        open.len(),
        names.join(", ")
    );
    Err(Problem::conflict(message).into())
}

/// Cancels every job of a target and gives them a while to go. Says which, and whether nothing of them is left there.
pub(super) async fn clear(app: &App, workspace: &str, name: &str, by: &str) -> Result<Value, Problem> {
    let mut bell = app.store.changed(Bell::Jobs);
    let (key, target, now) = (workspace.to_owned(), name.to_owned(), app.now());
    let reason = format!("canceled by {by}, who detached compute target `{name}`");
    let stopped = app.store.write(move |tx| {
        let open = tx.open_jobs_of(&key, &target)?;
        let stop = |(seq, name)| Ok((name, jobs::stop(tx, seq, &reason, now)?));
        open.into_iter().map(stop).collect::<Result<Vec<_>, store::Error>>()
    });
    let (mut canceled, mut attempts) = (Vec::new(), HashSet::new());
    for (job, (attempt, ended, _)) in stopped.await? {
        canceled.push(job);
        agents::count(app, ended);
        if let Some(attempt) = attempt {
            app.calls.ring(&attempt);
            attempts.insert(attempt);
        }
    }
    let told_at = app.now();
    let answers = end(app, workspace, name, &mut bell).await?;
    let gone = attempts.is_empty() || (answers && are_gone(app, (workspace, name), &attempts, told_at).await?);
    Ok(json!({"canceled": canceled, "podsGone": gone}))
}

/// Waits for jobs to end; whether what is behind their target answers.
async fn end(
    app: &App,
    workspace: &str,
    name: &str,
    bell: &mut tokio::sync::watch::Receiver<u64>,
) -> Result<bool, Problem> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if give_up(app, workspace, name).await? {
            return Ok(false);
        }
        give_up_nodes(app, workspace, name).await?;
        let (key, target) = (workspace.to_owned(), name.to_owned());
        let open = app.store.read(move |tx| tx.open_jobs_of(&key, &target)).await?;
        if open.is_empty() || Instant::now() >= deadline {
            return Ok(true);
        }
        let _ = tokio::time::timeout_at(deadline.min(Instant::now() + AGAIN), bell.changed()).await;
    }
}

/// Whether nothing of these attempts is left, by the word of whoever looks after the place. What it said before they were
/// told to end does not count: it may have taken them on since.
async fn are_gone(
    app: &App,
    (workspace, name): (&str, &str),
    attempts: &HashSet<AttemptId>,
    since: Timestamp,
) -> Result<bool, Problem> {
    let (key, target) = (workspace.to_owned(), name.to_owned());
    let Some(row) = app.store.read(move |tx| tx.target(&key, &target)).await? else { return Ok(true) };
    let deadline = Instant::now() + PODS_PATIENCE;
    while Instant::now() < deadline {
        let heard = app.watched(&row.cluster, |watched| watched.holds.clone()).filter(|(_, at)| *at >= since);
        if heard.is_some_and(|(holds, _)| holds.is_disjoint(attempts)) {
            return Ok(true);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(false)
}

/// Where what is behind a target has long been silent nobody will tell of the end of jobs there: they are over for us. A
/// cluster that comes back is told to remove them.
async fn give_up(app: &App, workspace: &str, name: &str) -> Result<bool, Problem> {
    let (key, target, now) = (workspace.to_owned(), name.to_owned(), app.now());
    let given = app.store.write(move |tx| {
        let Some(row) = tx.target(&key, &target)? else { return Ok(None) };
        if tx.cluster(&row.cluster)?.is_none_or(|cluster| cluster.answers(now, SILENT_MS)) {
            return Ok(None);
        }
        let open: HashSet<i64> = tx.open_jobs_of(&key, &target)?.into_iter().map(|(seq, _)| seq).collect();
        let all = tx.attempts_on(&row.cluster)?.into_iter().map(|(attempt, _)| attempt);
        let lost = all.filter(|attempt| attempt.parts().is_some_and(|(seq, _)| open.contains(&seq))).collect();
        poll::lose(tx, lost, "what is behind its target does not answer, and it may still run there", now).map(Some)
    });
    let given = given.await?;
    let silent = given.is_some();
    agents::count(app, given.into_iter().flatten());
    Ok(silent)
}

/// Nor will anybody where a node of a managed cluster has long been silent. One that comes back hears that it is none.
async fn give_up_nodes(app: &App, workspace: &str, name: &str) -> Result<(), Problem> {
    let (key, target, now) = (workspace.to_owned(), name.to_owned(), app.now());
    let lost = app.store.write(move |tx| {
        let Some(row) = tx.target(&key, &target)? else { return Ok(Vec::new()) };
        let silent = |row: &MachineRow| row.seen_at.is_none_or(|seen| now.0 - seen.0 >= SILENT_MS);
        let machines = tx.machines(&row.cluster)?;
        let silent: HashSet<&str> = machines.iter().filter(|row| silent(row)).map(|row| row.name.as_str()).collect();
        if silent.is_empty() {
            return Ok(Vec::new());
        }
        let parts = tx.machine_parts(&row.cluster)?.into_iter().filter(|part| silent.contains(part.machine.as_str()));
        let lost: BTreeSet<AttemptId> = parts.map(|part| part.attempt).collect();
        let why = "its node does not answer, and it may still run there";
        poll::lose(tx, lost.into_iter().collect(), why, now)
    });
    agents::count(app, lost.await?);
    Ok(())
}
