//! This machine's agent, which holds every attempt of the local target.

use super::{WAIT, assignment, record::Change};
use crate::{
    app::{App, Seen},
    problem::Problem,
};
use domain::{
    Assignment, AttemptId, Job, JobState, Outcome, Timestamp,
    report::{NodeFacts, Poll, PollAnswer},
};
use std::collections::HashSet;
use store::{Bell, Error, HERE, Tx};

/// A node is written down as seen at least this often.
const SEEN_EVERY_MS: i64 = 5_000;
/// All of a node's attempts are compared with what it holds at least this often.
const COMPARE_EVERY_MS: i64 = 2_000;

pub(super) async fn poll(app: &App, poll: &Poll) -> Result<PollAnswer, Problem> {
    see(app, &poll.facts).await?;
    let mut bell = app.store.changed(Bell::Agents);
    let deadline = tokio::time::Instant::now() + WAIT;
    loop {
        bell.mark_unchanged();
        let answer = offers(app, poll).await?;
        let something = answer != PollAnswer::default();
        if something || tokio::time::Instant::now() >= deadline {
            return Ok(answer);
        }
        let _ = tokio::time::timeout_at(deadline, bell.changed()).await;
    }
}

/// Notes that a node was heard of. After a restart of its machine, everything it ran is over.
async fn see(app: &App, facts: &NodeFacts) -> Result<(), Problem> {
    let now = app.now();
    {
        let nodes = app.nodes.lock().expect("nothing panics while it holds the table");
        let fresh = |seen: &Seen| seen.facts == *facts && now.0 - seen.written_at.0 < SEEN_EVERY_MS;
        if nodes.get(&facts.node).is_some_and(fresh) {
            return Ok(());
        }
    }
    let written = facts.clone();
    app.store
        .write(move |tx| {
            let before = tx.see_node(&written, now)?;
            if before.is_some_and(|before| before.boot_id != written.boot_id) {
                lose_all(tx, "the machine was restarted while the job was on it", now)?;
            }
            tx.ring(Bell::Queue);
            Ok(())
        })
        .await?;
    let mut nodes = app.nodes.lock().expect("nothing panics while it holds the table");
    let compared_at = nodes.get(&facts.node).map_or(Timestamp(0), |seen| seen.compared_at);
    nodes.insert(facts.node.clone(), Seen { facts: facts.clone(), written_at: now, compared_at });
    Ok(())
}

fn lose_all(tx: &mut Tx<'_>, why: &str, now: Timestamp) -> Result<(), Error> {
    tx.active_jobs(HERE)?.into_iter().try_for_each(|job| lose(tx, job, why, now))
}

/// Ends an attempt that nobody runs any more.
fn lose(tx: &mut Tx<'_>, job: Job, why: &str, now: Timestamp) -> Result<(), Error> {
    let mut change = Change::of(job);
    change.is_lost(tx, why, now)?;
    change.finish(tx, now).map(drop)
}

async fn offers(app: &App, poll: &Poll) -> Result<PollAnswer, Problem> {
    let now = app.now();
    let holds: HashSet<AttemptId> = poll.holds.iter().cloned().collect();
    let stopping: HashSet<AttemptId> = poll.stopping.iter().cloned().collect();
    let compare = due_for_comparison(app, &poll.facts.node, now);
    let (found, lost) = app
        .store
        .look(move |tx| {
            let mut found = Found::default();
            for attempt in tx.offered(HERE, "placed")?.into_iter().filter(|attempt| !holds.contains(attempt)) {
                found.offer.extend(assignment::of(tx, attempt)?);
            }
            let stop = tx.offered(HERE, "stopping")?;
            found.stop = stop.into_iter().filter(|a| holds.contains(a) && !stopping.contains(a)).collect();
            let lost = if compare { compare_all(tx, &holds, &mut found)? } else { Vec::new() };
            Ok((found, lost))
        })
        .await?;
    if !lost.is_empty() {
        app.store.write(move |tx| settle_lost(tx, lost, now)).await?;
    }
    let mut assignments = Vec::with_capacity(found.offer.len());
    for assignment in found.offer {
        let mut assignment = assignment::complete(app, assignment, &app.url).await?;
        if let Some(bundle) = &app.settings.bundle {
            let bundle = bundle.display().to_string();
            assignment.server_variables.insert("REQUESTS_CA_BUNDLE".to_owned(), bundle);
        }
        assignments.push(assignment);
    }
    let tunnels = app.tunnels.tell(&poll.holds, None);
    Ok(PollAnswer { assignments, stop: found.stop, unknown: found.unknown, tunnels, leave: false })
}

#[derive(Default)]
struct Found {
    offer: Vec<Assignment>,
    stop: Vec<AttemptId>,
    unknown: Vec<AttemptId>,
}

/// Everything on record against everything the agent holds: jobs it should have and has not, attempts it has and
/// should not.
fn compare_all(tx: &mut Tx<'_>, holds: &HashSet<AttemptId>, found: &mut Found) -> Result<Vec<Job>, Error> {
    let active = tx.active_jobs(HERE)?;
    let known: HashSet<&AttemptId> = active.iter().filter_map(|job| job.state.attempt()).collect();
    for attempt in holds.iter().filter(|attempt| !known.contains(attempt)) {
        // An attempt that has ended is only waiting for its receipt.
        let ended = attempt.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten();
        if ended.is_none() {
            found.unknown.push(attempt.clone());
        }
    }
    let held = |job: &Job| job.state.attempt().is_none_or(|attempt| holds.contains(attempt));
    Ok(active.into_iter().filter(|job| !matches!(job.state, JobState::Placed { .. }) && !held(job)).collect())
}

fn due_for_comparison(app: &App, node: &str, now: Timestamp) -> bool {
    let mut nodes = app.nodes.lock().expect("nothing panics while it holds the table");
    let Some(seen) = nodes.get_mut(node) else { return true };
    let due = now.0 - seen.compared_at.0 >= COMPARE_EVERY_MS;
    if due {
        seen.compared_at = now;
    }
    due
}

/// Attempts the agent does not hold: a stop that never had to reach it is done; anything else is lost.
pub(super) fn settle_lost(tx: &mut Tx<'_>, lost: Vec<Job>, now: Timestamp) -> Result<(), Error> {
    for seen in lost {
        let Some(job) = tx.job_by_seq(seen.seq)?.filter(|job| job.version == seen.version) else { continue };
        match &job.state {
            JobState::Stopping { .. } => {
                let mut change = Change::of(job);
                let reason = "canceled before its node had begun with it".to_owned();
                change.ends(tx, Outcome::Canceled { reason }, now)?;
                change.finish(tx, now)?;
            }
            _ => lose(tx, job, "the agent no longer knows of this attempt; its folder on the node was removed", now)?,
        }
    }
    Ok(())
}
