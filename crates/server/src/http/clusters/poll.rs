//! What an operator is to do: attempts to launch, to stop and to remove, targets to check.
//!
//! What the operator holds is told once, at the start of a poll, and may be out of date when the answer is made. Invariants:
//! what is launched was never begun; what is removed is over, or was never known; an attempt is recorded as lost only after
//! it was missing for long, in one poll after another, while its own agent was silent too.

use super::{another, cluster_of, launch};
use crate::{
    app::{App, Watched},
    auth::Caller,
    http::{
        Body,
        agents::{WAIT, count, record::Change},
    },
    problem::Problem,
};
use axum::{Extension, Json, extract::State, http::HeaderMap};
use domain::{
    AttemptId, JobState, Outcome, Timestamp,
    cluster::{Check, ClusterAnswer, ClusterPoll},
    gang::Gang,
};
use std::{collections::HashSet, time::Duration};
use store::{Bell, ClusterRow, Error, TargetRow, TargetState, Tx};
use tokio::time::Instant;

/// A cluster is written down as seen at least this often.
const SEEN_EVERY_MS: i64 = 5_000;
/// An attempt that is not where it should be for this long is lost.
const LOST_AFTER_MS: i64 = 60_000;
/// What was asked of an operator is asked again this much later.
const ASK_AGAIN_MS: i64 = 15_000;
/// How many launches one answer holds at most.
const LAUNCHES: usize = 200;
/// Answers are looked for no more often than this, so that many changes share one.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn poll(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(poll): Body<ClusterPoll>,
) -> Result<Json<ClusterAnswer>, Problem> {
    let name = cluster_of(&caller)?;
    is_itself(&app, name, &poll).await?;
    see(&app, name, &poll).await?;
    lose_missing(&app, name, &poll).await?;
    let url = app.reached_by(&headers);
    let mut bell = app.store.changed(Bell::Clusters);
    let deadline = Instant::now() + WAIT;
    loop {
        bell.mark_unchanged();
        let (answer, something) = answer(&app, name, &poll, &url).await?;
        if something || Instant::now() >= deadline {
            return Ok(Json(answer));
        }
        let _ = tokio::time::timeout_at(deadline, bell.changed()).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// A token speaks for one cluster; another one that has it too gets none of its work.
async fn is_itself(app: &App, name: &str, poll: &ClusterPoll) -> Result<(), Problem> {
    let (reader, known) = (app.clone(), name.to_owned());
    let facts = app.store.read(move |tx| reader.facts(tx, &known)).await?;
    if poll.uid.is_empty() || facts.uid.is_empty() || facts.uid == poll.uid {
        return Ok(());
    }
    let now = app.now();
    app.watched(name, |watched| watched.stranger = Some((poll.uid.clone(), now)));
    Err(Problem::conflict(another(name, &facts.uid, &poll.uid)))
}

/// Notes that the operator was heard of, and how far its clock is off.
async fn see(app: &App, name: &str, poll: &ClusterPoll) -> Result<(), Problem> {
    let now = app.now();
    let fresh = app.watched(name, |watched| {
        if watched.facts != poll.facts {
            watched.facts.clone_from(&poll.facts);
            watched.asked_at = None;
        }
        watched.holds = Some((poll.holds.iter().cloned().collect(), now));
        let fresh = now.0 - watched.written_at.0 < SEEN_EVERY_MS;
        if !fresh {
            watched.written_at = now;
        }
        fresh
    });
    if !fresh {
        let (name, skew) = (name.to_owned(), poll.now.0 - now.0);
        app.store.write(move |tx| tx.see_cluster(&name, skew, now)).await?;
    }
    Ok(())
}

async fn answer(app: &App, name: &str, poll: &ClusterPoll, url: &str) -> Result<(ClusterAnswer, bool), Problem> {
    let holds: HashSet<AttemptId> = poll.holds.iter().cloned().collect();
    let leaving: HashSet<AttemptId> = poll.leaving.iter().cloned().collect();
    let known = name.to_owned();
    let look = app.store.read(move |tx| {
        let cluster = tx.cluster(&known)?;
        let targets = tx.targets_on(&known)?;
        let active = tx.attempts_on(&known)?;
        let mut answer = ClusterAnswer::default();
        let mut again = Vec::new();
        for (attempt, phase) in &active {
            let held = holds.contains(attempt);
            match phase.as_str() {
                "stopping" if held && !leaving.contains(attempt) => answer.stop.push(attempt.clone()),
                "placed" if !held && answer.launch.len() < LAUNCHES => {
                    let gang = tx.gang(attempt)?;
                    if gang.as_ref().is_some_and(Gang::begun) {
                        continue;
                    }
                    again.extend(gang.map(|_| attempt.clone()));
                    answer.launch.extend(launch::of(tx, attempt.clone(), &targets)?);
                }
                _ => {}
            }
        }
        let active: HashSet<AttemptId> = active.into_iter().map(|(attempt, _)| attempt).collect();
        let over = holds.difference(&active).filter(|attempt| !leaving.contains(*attempt));
        answer.remove = over.cloned().collect();
        Ok((cluster, targets, again, answer))
    });
    let (cluster, targets, again, mut answer) = look.await?;
    if !again.is_empty() {
        scatter(app, again).await?;
    }
    for launch in &mut answer.launch {
        launch::complete(app, launch, url);
    }
    let (asked, stops) = app.watched(name, |watched| {
        watched.stopped.retain(|attempt| answer.stop.contains(attempt));
        let stops: Vec<AttemptId> =
            answer.stop.iter().filter(|attempt| watched.stopped.insert((*attempt).clone())).cloned().collect();
        (ask(watched, &cluster, poll, &targets, &mut answer, app.now()), stops)
    });
    // Agents wait for a bell of their own, and whoever asked for the stop may not have been able to ring it.
    stops.iter().for_each(|attempt| app.calls.ring(attempt));
    answer.targets = targets.into_iter().map(|row| row.target).collect();
    let something = !(answer.launch.is_empty() && answer.stop.is_empty() && answer.remove.is_empty());
    Ok((answer, something || asked))
}

/// Pods that are made anew have other agents in them than those that were heard of. If they are the same pods after all,
/// their agents say so at once.
async fn scatter(app: &App, again: Vec<AttemptId>) -> Result<(), Problem> {
    let waited = app.store.write(move |tx| {
        let mut waited = Vec::new();
        for attempt in again {
            if let Some(mut gang) = tx.gang(&attempt)?
                && gang.scatter()
            {
                tx.put_gang(&attempt, &gang)?;
                waited.push(attempt);
            }
        }
        Ok(waited)
    });
    waited.await?.iter().for_each(|attempt| app.calls.ring(attempt));
    Ok(())
}

/// Asks for facts and for checks, unless that was done a moment ago; whether anything is asked for.
fn ask(
    watched: &mut Watched,
    cluster: &Option<ClusterRow>,
    poll: &ClusterPoll,
    targets: &[TargetRow],
    answer: &mut ClusterAnswer,
    now: Timestamp,
) -> bool {
    let due = |at: Option<&Timestamp>| at.is_none_or(|at| now.0 - at.0 >= ASK_AGAIN_MS);
    let stale = cluster.as_ref().is_some_and(|row| row.digest != poll.facts);
    if stale && due(watched.asked_at.as_ref()) {
        watched.asked_at = Some(now);
        answer.send_facts = true;
    }
    watched.checks.retain(|_, at| now.0 - at.0 < ASK_AGAIN_MS);
    for row in targets.iter().filter(|row| row.state == TargetState::Creating) {
        if due(watched.checks.get(&row.check_id)) {
            watched.checks.insert(row.check_id.clone(), now);
            answer.checks.push(Check { id: row.check_id.clone(), target: row.target.clone() });
        }
    }
    answer.send_facts || !answer.checks.is_empty()
}

/// Attempts that were begun and are not on the cluster any more, although nobody told of their end.
async fn lose_missing(app: &App, name: &str, poll: &ClusterPoll) -> Result<(), Problem> {
    let holds: HashSet<AttemptId> = poll.holds.iter().cloned().collect();
    let (known, now) = (name.to_owned(), app.now());
    let missing = app.store.read(move |tx| missing(tx, &known, &holds)).await?;
    let lost = app.watched(name, |watched| {
        watched.missing.retain(|attempt, _| missing.contains(attempt));
        for attempt in missing {
            watched.missing.entry(attempt).or_insert(now);
        }
        let long = |since: Timestamp| now.0 - since.0 >= LOST_AFTER_MS;
        let silent = |attempt: &AttemptId| app.calls.heard_at(attempt).is_none_or(long);
        let lost = watched.missing.iter().filter(|(attempt, since)| long(**since) && silent(attempt));
        lost.map(|(attempt, _)| attempt.clone()).collect::<Vec<_>>()
    });
    if !lost.is_empty() {
        let why = "nothing of it is left on the cluster, and its agent was not heard of either";
        count(app, app.store.write(move |tx| lose(tx, lost, why, now)).await?);
    }
    Ok(())
}

fn missing(tx: &mut Tx<'_>, cluster: &str, holds: &HashSet<AttemptId>) -> Result<HashSet<AttemptId>, Error> {
    let mut missing = HashSet::new();
    for (attempt, phase) in tx.attempts_on(cluster)?.into_iter().filter(|(attempt, _)| !holds.contains(attempt)) {
        // What is merely placed is launched, again if need be, until it has begun.
        if phase != "placed" || tx.gang(&attempt)?.is_some_and(|gang| gang.begun()) {
            missing.insert(attempt);
        }
    }
    Ok(missing)
}

/// Ends attempts that nobody tells of any more; how their jobs have ended, where they have.
pub(crate) fn lose(
    tx: &mut Tx<'_>,
    lost: Vec<AttemptId>,
    why: &str,
    now: Timestamp,
) -> Result<Vec<&'static str>, Error> {
    let mut ended = Vec::new();
    for attempt in lost {
        let Some(mut change) = Change::of_attempt(tx, &attempt)? else { continue };
        match change.job.state {
            JobState::Stopping { .. } => {
                change.ends(tx, Outcome::Canceled { reason: format!("canceled; {why}") }, now)?
            }
            _ => change.is_lost(tx, why, now)?,
        }
        tx.drop_gang(&attempt)?;
        ended.extend(change.finish(tx, now)?);
    }
    Ok(ended)
}
