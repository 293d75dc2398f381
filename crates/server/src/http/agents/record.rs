//! What was told of attempts, applied to their jobs: one write a job, a change and its event together.

use domain::{
    AttemptId, Job, JobEvent, JobState, Outcome, Timestamp,
    job::Failure,
    kept::Moved,
    report::{Report, What},
};
use std::collections::HashMap;
use store::{Error, Tx};

/// A job to which several things happen in one write.
pub(crate) struct Change {
    pub(crate) job: Job,
    note: Option<String>,
    isolation: Option<String>,
    changed: bool,
}

impl Change {
    pub(crate) fn of(job: Job) -> Change {
        Change { job, note: None, isolation: None, changed: false }
    }

    /// The job whose current attempt this is. News of any other attempt is old news.
    pub(crate) fn of_attempt(tx: &mut Tx<'_>, attempt: &AttemptId) -> Result<Option<Change>, Error> {
        let job = attempt.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten();
        Ok(job.filter(|job| job.state.attempt() == Some(attempt)).map(Change::of))
    }

    /// Something happens, with the event that tells of it; nothing if it cannot happen to the job as it is.
    pub(crate) fn happens(
        &mut self,
        tx: &mut Tx<'_>,
        event: JobEvent,
        (kind, text): (&str, String),
        at: Timestamp,
    ) -> Result<(), Error> {
        if self.job.apply(event, at).is_ok() {
            self.changed = true;
            tx.add_event(self.job.seq, at, kind, &text)?;
            self.note = Some(text);
        }
        Ok(())
    }

    /// The attempt is over.
    pub(crate) fn ends(&mut self, tx: &mut Tx<'_>, outcome: Outcome, at: Timestamp) -> Result<(), Error> {
        let text = match (&outcome, &self.job.state) {
            (Outcome::Canceled { .. }, JobState::Stopping { reason, .. }) if !reason.is_empty() => reason.clone(),
            _ => over_text(&outcome),
        };
        self.happens(tx, JobEvent::Over(outcome), ("ended", text), at)
    }

    /// The attempt is over because nobody runs it any more.
    pub(crate) fn is_lost(&mut self, tx: &mut Tx<'_>, why: &str, now: Timestamp) -> Result<(), Error> {
        let failure = Failure { retryable: true, ..Failure::new("AttemptLost", why) };
        let text = format!("attempt {} is over: {why}", self.job.attempts.saturating_sub(1));
        self.happens(tx, JobEvent::Over(Outcome::Failed(failure)), ("lost", text), now)
    }

    /// What it is busy with, in words.
    pub(crate) fn notes(&mut self, text: String) {
        self.note = Some(text);
    }

    /// Something its user should know.
    pub(crate) fn notice(&mut self, tx: &mut Tx<'_>, text: String, at: Timestamp) -> Result<(), Error> {
        tx.add_event(self.job.seq, at, "notice", &text)?;
        self.note = Some(text);
        Ok(())
    }

    pub(crate) fn isolated(&mut self, isolation: String) {
        self.isolation = Some(isolation);
    }

    /// Writes the job; its status if it has ended by this.
    pub(crate) fn finish(self, tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<&'static str>, Error> {
        let job = &self.job;
        match (self.changed, self.note) {
            (true, note) => tx.put_job(job, note.as_deref(), now)?,
            (false, Some(note)) => tx.put_note(job.seq, &note)?,
            (false, None) => {}
        }
        if let Some(isolation) = self.isolation {
            tx.put_isolation(job.seq, &isolation)?;
        }
        if self.changed && matches!(job.state, JobState::Ended { outcome: Outcome::Completed, .. }) {
            crate::http::assets::register_outputs(tx, job, now)?;
        }
        Ok((self.changed && job.state.is_ended()).then(|| job.state.status()))
    }
}

/// Writes down how much attempts were given from where; what of it was not told before.
pub(super) fn moved(tx: &mut Tx<'_>, part: u32, reports: &[Report]) -> Result<Moved, Error> {
    let mut all = Moved::default();
    for report in reports {
        if let What::Staged { moved, .. } = &report.what
            && tx.add_moved(&report.attempt, part, moved)?
        {
            all.add(moved);
        }
    }
    Ok(all)
}

/// Applies reports of `node` to their jobs; the attempts whose end is now on record, and how jobs have ended.
pub(super) fn all(
    tx: &mut Tx<'_>,
    reports: Vec<Report>,
    node: &str,
    now: Timestamp,
) -> Result<(Vec<AttemptId>, Vec<&'static str>), Error> {
    let mut order: Vec<AttemptId> = Vec::new();
    let mut by_attempt: HashMap<AttemptId, Vec<Report>> = HashMap::new();
    for report in reports {
        let list = by_attempt.entry(report.attempt.clone()).or_default();
        if list.is_empty() {
            order.push(report.attempt.clone());
        }
        list.push(report);
    }
    let (mut recorded, mut ended) = (Vec::new(), Vec::new());
    for attempt in order {
        let reports = by_attempt.remove(&attempt).unwrap_or_default();
        let over = reports.iter().any(|report| matches!(report.what, What::Over { .. }));
        if let Some(change) = Change::of_attempt(tx, &attempt)? {
            ended.extend(one(tx, change, reports, node, now)?);
        }
        if over {
            recorded.push(attempt);
        }
    }
    Ok((recorded, ended))
}

fn one(
    tx: &mut Tx<'_>,
    mut change: Change,
    reports: Vec<Report>,
    node: &str,
    now: Timestamp,
) -> Result<Option<&'static str>, Error> {
    for Report { at, what, .. } in reports {
        // Clocks elsewhere may be wrong; nothing happens later than it is heard of.
        let at = at.min(now).max(change.job.created_at.min(now));
        match what {
            What::Note { text } => change.notes(text),
            What::Serving { address, ready, text } => {
                tx.put_ready(change.job.seq, address, ready, at)?;
                change.notes(text);
            }
            What::Notice { text } => change.notice(tx, text, at)?,
            What::Returned | What::Staged { .. } => {}
            What::Preparing => change.happens(tx, JobEvent::Preparing, preparing(node), at)?,
            What::Started { pid } => {
                change.happens(tx, JobEvent::Started, ("running", format!("the command runs as process {pid}")), at)?;
            }
            What::Exited { code, signal } => {
                change.happens(tx, JobEvent::Exited, ("exited", exit_text(code, signal)), at)?;
            }
            What::Over { outcome, isolation } => {
                change.isolated(isolation);
                change.ends(tx, outcome, at)?;
            }
        }
    }
    change.finish(tx, now)
}

pub(super) fn preparing(node: &str) -> (&'static str, String) {
    ("preparing", format!("{node} prepares code, data and environment"))
}

pub(super) fn exit_text(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("the command exited with code {code}; collecting"),
        (None, Some(signal)) => format!("the command was ended by signal {signal}; collecting"),
        (None, None) => "the command has ended; collecting".to_owned(),
    }
}

fn over_text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed => "completed; logs and outputs are stored".to_owned(),
        Outcome::Failed(failure) => failure.message.clone(),
        Outcome::Canceled { reason } => reason.clone(),
    }
}
