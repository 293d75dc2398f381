//! Agents that were started for one attempt, or for one part of it, somewhere else.
//!
//! Invariants: nobody is handed its part before everybody is there; an agent learns of its own attempt and of no other;
//! after the first part that fails the others are told to stop.

use super::{KEEP_SAMPLES_MS, WAIT, assignment, count, logs, places, record, record::Change};
use crate::{app::App, problem::Problem};
use domain::{
    Assignment, AttemptId, Job, JobEvent, JobState, Timestamp,
    gang::{Gang, Joined, Stage},
    kept::MOST_TOLD,
    report::{Joining, Poll, PollAnswer, Report, ReportAnswer, ReportBatch, What},
};
use std::time::Duration;
use store::{Error, Tx};
use tokio::time::Instant;

/// How often an agent that waits for others is counted as being there; its connection shows that it is.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// What an agent is told.
enum Told {
    Nothing,
    Take(Box<Assignment>),
    Stop,
    /// There is nothing to do here, now or later.
    Leave,
}

pub(super) async fn poll(app: &App, attempt: &AttemptId, poll: &Poll, url: &str) -> Result<PollAnswer, Problem> {
    let mut bell = app.calls.hear(attempt, app.now());
    let deadline = Instant::now() + WAIT;
    loop {
        bell.mark_unchanged();
        let own = || vec![attempt.clone()];
        match ask(app, attempt, poll).await? {
            Told::Take(assignment) => {
                let assignment = places::from_afar(app, assignment::complete(app, *assignment, url).await?, url);
                return Ok(PollAnswer { assignments: vec![assignment], ..PollAnswer::default() });
            }
            Told::Stop => return Ok(PollAnswer { stop: own(), ..PollAnswer::default() }),
            Told::Leave => return Ok(PollAnswer { unknown: own(), ..PollAnswer::default() }),
            Told::Nothing => {
                let held = if poll.holds.contains(attempt) { own() } else { Vec::new() };
                let tunnels = app.tunnels.tell(&held, poll.joining.as_ref().map(|joining| joining.part));
                if !tunnels.is_empty() || Instant::now() >= deadline {
                    return Ok(PollAnswer { tunnels, ..PollAnswer::default() });
                }
                let waits = !poll.holds.contains(attempt);
                let next = if waits { deadline.min(Instant::now() + COUNT_EVERY) } else { deadline };
                let _ = tokio::time::timeout_at(next, bell.changed()).await;
            }
        }
    }
}

async fn ask(app: &App, attempt: &AttemptId, poll: &Poll) -> Result<Told, Problem> {
    let (wanted, now) = (attempt.clone(), app.now());
    if poll.holds.contains(attempt) {
        let stopping = poll.stopping.contains(attempt);
        return Ok(app.store.read(move |tx| holding(tx, &wanted, stopping)).await?);
    }
    let Some(joining) = poll.joining.clone() else {
        return Err(Problem::bad("an agent of one attempt says in `joining` which part of it it is, and its address"));
    };
    let told = app.store.write(move |tx| join(tx, &wanted, &joining, now)).await?;
    if matches!(told, Told::Take(_)) {
        // Perhaps this was the last one that all others wait for.
        app.calls.ring(attempt);
    }
    Ok(told)
}

/// What an agent is told that has its assignment.
fn holding(tx: &mut Tx<'_>, attempt: &AttemptId, stopping: bool) -> Result<Told, Error> {
    let Some(change) = Change::of_attempt(tx, attempt)? else { return Ok(Told::Leave) };
    let asked = matches!(change.job.state, JobState::Stopping { .. });
    let stop = asked || tx.gang(attempt)?.is_some_and(|gang| gang.fails());
    Ok(if stop && !stopping { Told::Stop } else { Told::Nothing })
}

fn join(tx: &mut Tx<'_>, attempt: &AttemptId, joining: &Joining, now: Timestamp) -> Result<Told, Error> {
    let Some(change) = Change::of_attempt(tx, attempt)? else { return Ok(Told::Leave) };
    let mut gang = gang_of(tx, &change.job, attempt)?;
    let joined = match change.job.state {
        JobState::Stopping { .. } => {
            gang.turn_away(joining, "canceled before it began");
            Joined::Leave
        }
        _ => gang.join(joining, now),
    };
    let several = gang.count() > 1;
    settle(tx, attempt, change, gang, now)?;
    Ok(match joined {
        Joined::Wait => Told::Nothing,
        Joined::Leave => Told::Leave,
        Joined::Take(part) => match assignment::of(tx, attempt.clone())? {
            Some(assignment) => Told::Take(Box::new(Assignment { part: several.then_some(part), ..assignment })),
            None => Told::Leave,
        },
    })
}

pub(super) async fn report(app: &App, attempt: &AttemptId, batch: ReportBatch) -> Result<ReportAnswer, Problem> {
    if batch.reports.iter().any(|report| report.attempt != *attempt) {
        return Err(Problem::forbidden(format!("the agent of attempt `{attempt}` reports of no other")));
    }
    app.calls.hear(attempt, app.now());
    let over = batch.reports.iter().any(|report| matches!(report.what, What::Over { .. }));
    if over {
        keep_logs(app, vec![attempt.clone()], &["user_logs/-", "system_logs/-"]).await?;
    }
    let (own, now) = (attempt.clone(), app.now());
    let ended = app.store.write(move |tx| {
        let part = batch.part.unwrap_or(0);
        let keep_from = Timestamp(now.0 - KEEP_SAMPLES_MS);
        tx.add_samples(&format!("{own}/{part}"), &batch.samples, keep_from)?;
        let moved = record::moved(tx, part, &batch.reports)?;
        keep(tx, &own, &batch.facts.node, &batch.reports)?;
        Ok((record(tx, &own, part, batch.reports, now)?, moved))
    });
    let (ended, moved) = ended.await?;
    count(app, ended);
    app.metrics.moved(&moved);
    if over {
        app.calls.ring(attempt);
    }
    Ok(ReportAnswer { recorded: if over { vec![attempt.clone()] } else { Vec::new() } })
}

/// What the machine of an agent keeps, where no node of its own tells of that.
fn keep(tx: &mut Tx<'_>, attempt: &AttemptId, node: &str, reports: &[Report]) -> Result<(), Error> {
    let told = reports.iter().rev().find_map(|report| match &report.what {
        What::Staged { keeps, .. } if !keeps.is_empty() => Some(keeps),
        _ => None,
    });
    let (Some(keeps), Some((seq, _))) = (told, attempt.parts()) else { return Ok(()) };
    let Some(row) = tx.jobs_by_seq(&[seq])?.pop() else { return Ok(()) };
    if row.cluster == store::HERE || !tx.machines(&row.cluster)?.is_empty() {
        return Ok(());
    }
    tx.put_kept(&row.cluster, node, &keeps[..keeps.len().min(MOST_TOLD)])
}

/// What attempts have logged is on disk for good before their agent, which has it too, may forget it.
pub(super) async fn keep_logs(
    app: &App,
    attempts: Vec<AttemptId>,
    folders: &'static [&'static str],
) -> Result<(), Problem> {
    if attempts.is_empty() {
        return Ok(());
    }
    let found = app
        .store
        .read(move |tx| attempts.iter().map(|attempt| Change::of_attempt(tx, attempt)).collect::<Result<Vec<_>, _>>());
    let spots: Vec<_> = found
        .await?
        .into_iter()
        .flatten()
        .flat_map(|change| folders.iter().map(move |path| logs::spot(&change.job, path)))
        .collect();
    let files = app.files.clone();
    let kept = tokio::task::spawn_blocking(move || spots.iter().flatten().try_for_each(|spot| files.settle(spot)));
    Ok(kept.await.map_err(|_| Error::Closed)??)
}

/// Applies what a part tells; how the job has ended, if it has.
fn record(
    tx: &mut Tx<'_>,
    attempt: &AttemptId,
    part: u32,
    reports: Vec<Report>,
    now: Timestamp,
) -> Result<Option<&'static str>, Error> {
    let Some(mut change) = Change::of_attempt(tx, attempt)? else { return Ok(None) };
    let mut gang = gang_of(tx, &change.job, attempt)?;
    for Report { at, what, .. } in reports {
        // Clocks elsewhere may be wrong; nothing happens later than it is heard of.
        let at = at.min(now).max(change.job.created_at.min(now));
        let before = gang.stage();
        gang.hear(part, &what);
        if let Some(stage) = gang.stage().filter(|stage| Some(*stage) > before) {
            reach(tx, &mut change, &gang, (stage, &what), at)?;
        }
        match what {
            What::Note { text } => change.notes(text),
            What::Serving { address, ready, text } => {
                tx.put_ready(change.job.seq, address, ready, at)?;
                change.notes(text);
            }
            What::Notice { text } => change.notice(tx, text, at)?,
            What::Over { isolation, .. } => change.isolated(isolation),
            What::Preparing | What::Staged { .. } | What::Started { .. } | What::Exited { .. } | What::Returned => {}
        }
    }
    settle(tx, attempt, change, gang, now)
}

/// The whole has come further, by what one part told.
fn reach(
    tx: &mut Tx<'_>,
    change: &mut Change,
    gang: &Gang,
    (stage, what): (Stage, &What),
    at: Timestamp,
) -> Result<(), Error> {
    let all = |doing: &str| format!("all {} parts {doing}", gang.count());
    match (stage, what) {
        (Stage::Given, _) => Ok(()),
        (Stage::Preparing, _) => change.happens(tx, JobEvent::Preparing, record::preparing("the node"), at),
        (Stage::Running, What::Started { pid }) if gang.count() == 1 => {
            change.happens(tx, JobEvent::Started, ("running", format!("the command runs as process {pid}")), at)
        }
        (Stage::Running, _) => change.happens(tx, JobEvent::Started, ("running", all("run")), at),
        (Stage::Collecting, What::Exited { code, signal }) if gang.count() == 1 => {
            change.happens(tx, JobEvent::Exited, ("exited", record::exit_text(*code, *signal)), at)
        }
        (Stage::Collecting, _) => change.happens(tx, JobEvent::Exited, ("exited", all("have ended; collecting")), at),
    }
}

/// The parts of a job's current attempt; nobody is there before the first was heard of.
pub(crate) fn gang_of(tx: &mut Tx<'_>, job: &Job, attempt: &AttemptId) -> Result<Gang, Error> {
    if let Some(gang) = tx.gang(attempt)? {
        return Ok(gang);
    }
    Ok(Gang::of(tx.plan(job.seq)?.unwrap_or_default().parts()))
}

/// Writes parts and job; when no part can have processes any more, the attempt is over. How the job ended, if it did.
pub(crate) fn settle(
    tx: &mut Tx<'_>,
    attempt: &AttemptId,
    mut change: Change,
    gang: Gang,
    now: Timestamp,
) -> Result<Option<&'static str>, Error> {
    match gang.outcome() {
        Some(outcome) => {
            change.ends(tx, outcome, now)?;
            tx.drop_gang(attempt)?;
        }
        None => tx.put_gang(attempt, &gang)?,
    }
    change.finish(tx, now)
}
