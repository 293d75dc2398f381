//! The server's part of the agents' protocol, over the store: offers out, reports in.
//!
//! A controller cannot see the server, so the rules are told again here in the domain's own events.

use domain::{
    AttemptId, Job, JobEvent, JobState, Outcome, Resources, Timestamp,
    job::Failure,
    report::{NodeFacts, Report, What},
};
use std::collections::BTreeSet;
use store::{Error, HERE, Store, Tx};

/// What a poll brings.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) offers: Vec<Offer>,
    pub(super) stop: Vec<AttemptId>,
}

#[derive(Debug, Clone)]
pub(super) struct Offer {
    pub(super) attempt: AttemptId,
    pub(super) needs: Resources,
    pub(super) priority: i64,
}

/// A node asks for work. After a new boot everything it had is lost; what it should hold and does not, too.
pub(super) async fn poll(store: &Store, facts: NodeFacts, holds: BTreeSet<AttemptId>, now: Timestamp) -> Answer {
    let answer = store.write(move |tx| {
        let before = tx.see_node(&facts, now)?;
        if before.is_some_and(|before| before.boot_id != facts.boot_id) {
            for job in tx.active_jobs(HERE)? {
                lose(tx, job, "the machine was restarted", now)?;
            }
        }
        for job in tx.active_jobs(HERE)? {
            let held = job.state.attempt().is_some_and(|attempt| holds.contains(attempt));
            if !held && !matches!(job.state, JobState::Placed { .. }) {
                lose(tx, job, "the agent no longer knows of it", now)?;
            }
        }
        let mut answer = Answer::default();
        for attempt in tx.offered(HERE, "placed")?.into_iter().filter(|attempt| !holds.contains(attempt)) {
            let seq = attempt.parts().unwrap().0;
            let (job, plan) = (tx.job_by_seq(seq)?.unwrap(), tx.plan(seq)?.unwrap());
            answer.offers.push(Offer { attempt, needs: plan.needs(), priority: job.priority });
        }
        answer.stop = tx.offered(HERE, "stopping")?.into_iter().filter(|attempt| holds.contains(attempt)).collect();
        Ok(answer)
    });
    answer.await.unwrap()
}

/// Reports arrive, perhaps again. The attempts whose end is on record.
pub(super) async fn report(store: &Store, reports: Vec<Report>, now: Timestamp) -> Vec<AttemptId> {
    let recorded = store.write(move |tx| {
        let mut recorded = Vec::new();
        for report in reports {
            if matches!(report.what, What::Over { .. }) {
                recorded.push(report.attempt.clone());
            }
            record(tx, report, now)?;
        }
        Ok(recorded)
    });
    recorded.await.unwrap()
}

/// Someone asks a job to stop.
pub(super) async fn cancel(store: &Store, seq: i64, now: Timestamp) {
    let cancelled = store.write(move |tx| {
        let mut job = tx.job_by_seq(seq)?.unwrap();
        let reason = "canceled by the simulation".to_owned();
        if job.apply(JobEvent::StopRequested { reason: reason.clone() }, now).is_ok() {
            tx.put_job(&job, Some(&reason), now)?;
            tx.add_event(seq, now, "cancel", &reason)?;
        }
        Ok(())
    });
    cancelled.await.unwrap();
}

fn record(tx: &mut Tx<'_>, report: Report, now: Timestamp) -> Result<(), Error> {
    let Some(mut job) = tx.job_by_seq(report.attempt.parts().unwrap().0)? else { return Ok(()) };
    if job.state.attempt() != Some(&report.attempt) {
        return Ok(());
    }
    let (event, kind) = match report.what {
        What::Returned | What::Staged { .. } => return Ok(()),
        What::Note { text } | What::Notice { text } | What::Serving { text, .. } => return tx.put_note(job.seq, &text),
        What::Preparing => (JobEvent::Preparing, "preparing"),
        What::Started { .. } => (JobEvent::Started, "running"),
        What::Exited { .. } => (JobEvent::Exited, "exited"),
        What::Over { outcome, .. } => (JobEvent::Over(outcome), "ended"),
    };
    if job.apply(event, report.at).is_ok() {
        tx.put_job(&job, Some(kind), now)?;
        tx.add_event(job.seq, report.at, kind, kind)?;
    }
    Ok(())
}

fn lose(tx: &mut Tx<'_>, mut job: Job, why: &str, now: Timestamp) -> Result<(), Error> {
    let outcome = match job.state {
        JobState::Stopping { .. } => Outcome::Canceled { reason: why.to_owned() },
        _ => Outcome::Failed(Failure { retryable: true, ..Failure::new("AttemptLost", why) }),
    };
    if job.apply(JobEvent::Over(outcome), now).is_ok() {
        tx.put_job(&job, Some(why), now)?;
        tx.add_event(job.seq, now, "lost", why)?;
    }
    Ok(())
}
