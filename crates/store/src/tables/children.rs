//! Jobs that consist of other jobs: those who lead them read and write here.
//!
//! Invariant: an end is heard of once. The note that it was heard and what follows from it are one transaction.

use super::jobs::{CORE, NOWHERE, core_of};
use crate::{Error, Row, Tx};
use domain::{AttemptId, Job, JobEvent, Outcome, Timestamp};
use std::collections::HashMap;

/// A job that is part of another.
#[derive(Debug, Clone)]
pub struct Child {
    pub job: Job,
    /// The step or the number of the trial.
    pub step: String,
    /// The earlier job that stands for it.
    pub reused: Option<String>,
}

/// What became of the wish that a job stop.
#[derive(Debug)]
pub struct Stopped {
    /// The attempt that must hear of it.
    pub attempt: Option<AttemptId>,
    pub job: Job,
    /// Whether the job is over by this.
    pub ended: bool,
}

impl Tx<'_> {
    /// Parents that have not ended, and the phase of each. Answered by an index alone: their rows are long.
    pub fn live_parents(&mut self) -> Result<Vec<(i64, String)>, Error> {
        let sql = "select seq, phase from jobs where phase in ('queued', 'conducting', 'halting') and cluster = ?1 order by seq";
        let rows = self.fetch(sql, &[NOWHERE.into()])?;
        rows.into_iter().map(|mut row| Ok((row.int(0)?, row.text(1)?))).collect()
    }

    /// What kind of job it is.
    pub fn kind(&mut self, seq: i64) -> Result<String, Error> {
        let row = self.fetch_one("select kind from jobs where seq = ?1", &[seq.into()])?;
        row.map_or_else(|| Err(Error::Decode(format!("there is no job {seq}"))), |mut row| row.text(0))
    }

    /// Whether a child of this job has ended without its having heard of it. Asked for one at a time, because only then
    /// SQLite takes the index of what is unheard of, and not that of all that ever ended.
    pub fn has_news(&mut self, parent: i64) -> Result<bool, Error> {
        let sql =
            "select 1 from jobs where parent = ?1 and parent is not null and phase = 'ended' and heard = 0 limit 1";
        Ok(self.fetch_one(sql, &[parent.into()])?.is_some())
    }

    /// Children of a job that have ended without its having heard of it, oldest first.
    pub fn unheard_children(&mut self, parent: i64) -> Result<Vec<Child>, Error> {
        let sql = format!(
            "select {CORE}, step, reused from jobs where parent = ?1 and parent is not null and phase = 'ended' and heard = 0 \
             order by seq"
        );
        self.fetch(&sql, &[parent.into()])?.into_iter().map(child_of).collect()
    }

    /// Who submitted a job, and the experiment it belongs to.
    pub fn origin(&mut self, seq: i64) -> Result<(String, String), Error> {
        let row = self.fetch_one("select created_by, experiment from jobs where seq = ?1", &[seq.into()])?;
        let mut row = row.ok_or_else(|| Error::Decode(format!("there is no job {seq}")))?;
        Ok((row.text(0)?, row.text(1)?))
    }

    /// All children of a job, oldest first.
    pub fn children(&mut self, parent: i64) -> Result<Vec<Child>, Error> {
        let sql = format!("select {CORE}, step, reused from jobs where parent = ?1 order by seq");
        self.fetch(&sql, &[parent.into()])?.into_iter().map(child_of).collect()
    }

    /// What was written down of the reuse of each child: why it runs anew, or what it was taken from.
    pub fn reuses(&mut self, parent: i64) -> Result<HashMap<i64, String>, Error> {
        let sql = "select seq, text from jobs join events on job_seq = seq \
                   where parent = ?1 and events.kind in ('reuse', 'reused') order by events.id";
        self.fetch(sql, &[parent.into()])?.into_iter().map(|mut row| Ok((row.int(0)?, row.text(1)?))).collect()
    }

    /// Notes that the ends of these children are known to their parent.
    pub fn hear(&mut self, children: &[i64]) -> Result<(), Error> {
        let sql = "update jobs set heard = 1 where seq in (select value from json_each(?1))";
        self.exec(sql, &[children.into()]).map(drop)
    }

    /// What leads a parent, as it was last written.
    pub fn conductor<T: serde::de::DeserializeOwned>(&mut self, job_seq: i64) -> Result<Option<T>, Error> {
        let row = self.fetch_one("select state from conductors where job_seq = ?1", &[job_seq.into()])?;
        row.map(|mut row| row.json(0)).transpose()
    }

    pub fn put_conductor<T: serde::Serialize>(&mut self, job_seq: i64, state: &T) -> Result<(), Error> {
        self.exec(
            "insert into conductors (job_seq, state) values (?1, ?2) \
             on conflict (job_seq) do update set state = ?2, version = conductors.version + 1",
            &[job_seq.into(), super::jobs::json(state)?.into()],
        )
        .map(drop)
    }

    /// Asks a job to stop, with the event that tells of it. Nothing where there is no such job.
    pub fn stop_job(&mut self, seq: i64, reason: &str, now: Timestamp) -> Result<Option<Stopped>, Error> {
        let Some(row) = self.jobs_by_seq(&[seq])?.pop() else { return Ok(None) };
        let (mut job, cluster) = (row.job, row.cluster);
        let attempt = job.state.attempt().cloned();
        if job.apply(JobEvent::StopRequested { reason: reason.to_owned() }, now).is_err() {
            return Ok(Some(Stopped { attempt, job, ended: false }));
        }
        self.add_event(seq, now, "cancel", reason)?;
        if let (false, Some(attempt)) = (cluster == super::HERE, &attempt)
            && !self.gang(attempt)?.is_some_and(|gang| gang.begun())
            && !self.is_given_whole(attempt)?
        {
            // Nobody was handed any of it, and nobody will be: there is no end to wait for.
            job.apply(JobEvent::Over(Outcome::Canceled { reason: reason.to_owned() }), now)
                .map_err(|illegal| Error::Decode(illegal.to_string()))?;
            self.add_event(seq, now, "ended", reason)?;
            self.drop_gang(attempt)?;
        }
        self.put_job(&job, Some(reason), now)?;
        let ended = job.state.is_ended();
        Ok(Some(Stopped { attempt, job, ended }))
    }
}

fn child_of(mut row: Row) -> Result<Child, Error> {
    Ok(Child { job: core_of(&mut row)?, step: row.text(10)?, reused: row.maybe_text(11)? })
}
