//! The agent of a node of a managed cluster, which runs attempts of one part, one after another.
//!
//! A node that has done with an attempt is given the next in the same breath, and while they are short some more to stand in
//! line, so that it never waits for the steward between two of them. Invariants: an attempt is with one node; what stands in
//! line and has not begun is given back and not lost; nobody overtakes an attempt that waits for several nodes.

use super::{KEEP_SAMPLES_MS, WAIT, assignment, count, parts::keep_logs, places, record, record::Change};
use crate::{app::App, problem::Problem};
use domain::{
    Assignment, AttemptId, Job, JobState, Timestamp,
    kept::Moved,
    machine::{PartFate, Standing},
    report::{Poll, PollAnswer, Report, ReportAnswer, ReportBatch, What},
};
use std::collections::{BTreeSet, HashSet};
use store::{Bell, Error, MachineRow, Tx};
use tokio::time::{Instant, timeout_at};

/// What stands in line on a node should not stand there for longer.
const LINE_MS: i64 = 250;
/// How many a node has at most.
const MOST: usize = 32;

/// A node, by its cluster and its name.
pub(in crate::http) type Node<'a> = (&'a str, &'a str);

#[derive(Default)]
struct Found {
    offer: Vec<Assignment>,
    stop: Vec<AttemptId>,
    unknown: Vec<AttemptId>,
    lost: Vec<Job>,
    leave: bool,
    /// What is the node's own of what its agent says that it holds.
    own: Vec<AttemptId>,
}

pub(super) async fn poll(app: &App, node: Node<'_>, poll: &Poll, url: &str) -> Result<PollAnswer, Problem> {
    let mut own = app.calls.hear_node(&called(node), &poll.holds, app.now());
    let mut bell = app.store.changed(Bell::Machines);
    let deadline = Instant::now() + WAIT;
    let mut fresh = true;
    loop {
        own.mark_unchanged();
        bell.mark_unchanged();
        let answer = offers(app, node, poll, url, fresh).await?;
        if answer != PollAnswer::default() || Instant::now() >= deadline {
            return Ok(answer);
        }
        // What an agent said that it holds is only true when it says so.
        fresh = false;
        let _ = timeout_at(deadline, async {
            tokio::select! { _ = own.changed() => {} _ = bell.changed() => {} }
        })
        .await;
    }
}

async fn offers(
    app: &App,
    (cluster, machine): Node<'_>,
    poll: &Poll,
    url: &str,
    fresh: bool,
) -> Result<PollAnswer, Problem> {
    let (place, name, asked, now) = (cluster.to_owned(), machine.to_owned(), poll.clone(), app.now());
    let mut found = app.store.look(move |tx| look(tx, (&place, &name), &asked, fresh)).await?;
    let lost = std::mem::take(&mut found.lost);
    if !lost.is_empty() {
        let settled = app.store.write(move |tx| {
            lost.iter().filter_map(|job| job.state.attempt()).try_for_each(|attempt| tx.take_whole(attempt))?;
            tx.ring(Bell::Machines);
            super::local::settle_lost(tx, lost, now)
        });
        settled.await?;
    }
    let mut assignments = Vec::with_capacity(found.offer.len());
    for assignment in found.offer {
        assignments.push(places::from_afar(app, assignment::complete(app, assignment, url).await?, url));
    }
    let tunnels = app.tunnels.tell(&found.own, None);
    Ok(PollAnswer { assignments, stop: found.stop, unknown: found.unknown, tunnels, leave: found.leave })
}

/// What a node is to do, compared with what its agent holds.
fn look(tx: &mut Tx<'_>, node: Node<'_>, poll: &Poll, fresh: bool) -> Result<Found, Error> {
    let (holds, stopping): (HashSet<&AttemptId>, HashSet<&AttemptId>) =
        (poll.holds.iter().collect(), poll.stopping.iter().collect());
    let goes = |row: MachineRow| matches!(row.standing, Standing::Leaving | Standing::Preempted | Standing::Unusable);
    let mut found = Found { leave: tx.machine(node.0, node.1)?.is_none_or(goes), ..Found::default() };
    let own = attempts_of(tx, node)?;
    for attempt in own.iter().filter(|attempt| !holds.contains(attempt)) {
        let Some(Change { job, .. }) = Change::of_attempt(tx, attempt)? else { continue };
        match job.state {
            JobState::Placed { .. } if found.leave => {}
            JobState::Placed { .. } => found.offer.extend(assignment::of(tx, attempt.clone())?),
            // It was begun, or is not to be, and nobody here knows of it.
            _ if fresh => found.lost.push(job),
            _ => {}
        }
    }
    found.own = poll.holds.iter().filter(|attempt| own.contains(attempt)).cloned().collect();
    let asked = tx.offered(node.0, "stopping")?.into_iter();
    found.stop = asked.filter(|attempt| holds.contains(attempt) && !stopping.contains(attempt)).collect();
    for attempt in poll.holds.iter().filter(|attempt| fresh && !own.contains(attempt) && !stopping.contains(attempt)) {
        // One that has ended is only waiting for its receipt.
        let job = attempt.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten();
        if job.is_none_or(|job| !job.state.is_ended()) {
            found.unknown.push(attempt.clone());
        }
    }
    Ok(found)
}

pub(super) async fn report(app: &App, node: Node<'_>, batch: ReportBatch) -> Result<ReportAnswer, Problem> {
    let over: Vec<AttemptId> = batch.reports.iter().filter(|one| is_over(one)).map(|one| one.attempt.clone()).collect();
    // As on this machine, what the platform says of an attempt may be lost with the power.
    keep_logs(app, over, &["user_logs/-"]).await?;
    let (place, name, now) = (node.0.to_owned(), node.1.to_owned(), app.now());
    let told = app.store.write(move |tx| hear(tx, (&place, &name), batch, now));
    let Heard { recorded, ended, moved, given } = told.await?;
    count(app, ended);
    app.metrics.moved(&moved);
    if given > 0 {
        app.calls.ring_node(&called(node));
    }
    Ok(ReportAnswer { recorded })
}

struct Heard {
    recorded: Vec<AttemptId>,
    ended: Vec<&'static str>,
    moved: Moved,
    /// How many it has got to do.
    given: usize,
}

fn hear(tx: &mut Tx<'_>, node: Node<'_>, batch: ReportBatch, now: Timestamp) -> Result<Heard, Error> {
    let mut own = attempts_of(tx, node)?;
    if !batch.samples.is_empty() {
        for attempt in &own {
            if Change::of_attempt(tx, attempt)?.is_some_and(|change| change.job.state.started_at().is_some()) {
                tx.add_samples(&format!("{attempt}/0"), &batch.samples, Timestamp(now.0 - KEEP_SAMPLES_MS))?;
            }
        }
    }
    // Of what is not its own a node has nothing to tell, but it may forget it.
    let (mut reports, strange): (Vec<Report>, Vec<Report>) =
        batch.reports.into_iter().partition(|report| own.contains(&report.attempt));
    let known = strange.into_iter().filter(|one| is_over(one) || one.what == What::Returned);
    let mut recorded: Vec<AttemptId> = known.map(|one| one.attempt).collect();
    for report in reports.extract_if(.., |one| one.what == What::Returned) {
        own.remove(&report.attempt);
        tx.take_whole(&report.attempt)?;
        tx.ring(Bell::Machines);
        recorded.push(report.attempt);
    }
    let line = line(&reports);
    let moved = record::moved(tx, 0, &reports)?;
    let (over, ended) = record::all(tx, reports, &format!("node `{}`", node.1), now)?;
    for attempt in &over {
        own.remove(attempt);
        tx.take_whole(attempt)?;
    }
    let done = !over.is_empty();
    recorded.extend(over);
    // Many at a time: each time costs a look through what waits, and a call to fetch them.
    let due = done && own.len() * 2 <= line;
    let given = if due { claim(tx, node, line.saturating_sub(own.len()))? } else { 0 };
    if done && own.is_empty() && given == 0 {
        rest(tx, node, now)?;
    }
    Ok(Heard { recorded, ended, moved, given })
}

/// How many a node may have at once: one, and more while they are so short that news of each takes longer than itself.
fn line(reports: &[Report]) -> usize {
    let begun = |over: &Report| {
        let first = reports.iter().find(|one| one.attempt == over.attempt && one.what == What::Preparing);
        first.map_or(LINE_MS, |first| over.at.0 - first.at.0)
    };
    let longest = reports.iter().filter(|one| is_over(one)).map(begun).max().unwrap_or(LINE_MS);
    usize::try_from(LINE_MS / longest.max(1)).unwrap_or(1).clamp(1, MOST)
}

/// Gives a node the next attempts, as many as there is room for; how many those were.
fn claim(tx: &mut Tx<'_>, (cluster, machine): Node<'_>, room: usize) -> Result<usize, Error> {
    if room == 0 || tx.machine(cluster, machine)?.is_none_or(|row| row.standing != Standing::Ready) {
        return Ok(0);
    }
    let given: HashSet<AttemptId> = tx.machine_parts(cluster)?.into_iter().map(|part| part.attempt).collect();
    let mut count = 0;
    for attempt in tx.offered(cluster, "placed")?.into_iter().filter(|attempt| !given.contains(attempt)) {
        let plan = attempt.parts().map(|(seq, _)| tx.plan(seq)).transpose()?.flatten().unwrap_or_default();
        if count == room || plan.parts() > 1 || plan.serve.is_some() {
            break;
        }
        tx.give_whole(cluster, &attempt, machine)?;
        count += 1;
    }
    Ok(count)
}

/// A node has nothing to do from now on.
fn rest(tx: &mut Tx<'_>, (cluster, machine): Node<'_>, now: Timestamp) -> Result<(), Error> {
    match tx.machine(cluster, machine)?.filter(|row| row.standing == Standing::Ready) {
        Some(row) => tx.put_machine(&MachineRow { since: now, ..row }),
        None => {
            tx.ring(Bell::Machines);
            Ok(())
        }
    }
}

/// Whether a node's own agent has this attempt.
pub(in crate::http) fn has(tx: &mut Tx<'_>, node: Node<'_>, attempt: &AttemptId) -> Result<bool, Error> {
    Ok(attempts_of(tx, node)?.contains(attempt))
}

fn attempts_of(tx: &mut Tx<'_>, (cluster, machine): Node<'_>) -> Result<BTreeSet<AttemptId>, Error> {
    let parts = tx.parts_of_machine(cluster, machine)?.into_iter();
    Ok(parts.filter(|part| part.fate == Some(PartFate::Own)).map(|part| part.attempt).collect())
}

fn is_over(report: &Report) -> bool {
    matches!(report.what, What::Over { .. })
}

fn called((cluster, machine): Node<'_>) -> String {
    format!("{cluster}/{machine}")
}
