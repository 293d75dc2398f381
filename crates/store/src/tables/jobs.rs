//! Jobs: accepted once, changed only from the version that was read.

use crate::{Bell, Error, Row, Tx, Value, tables::REPLICA};
use domain::{AttemptId, Job, JobName, JobState, Plan, Resources, Timestamp};

/// A job with everything that is shown of it.
#[derive(Debug, Clone)]
pub struct JobRow {
    pub job: Job,
    /// The resource's properties, as text.
    pub body: String,
    pub archived: bool,
    /// Why it waits or what it is busy with, in words.
    pub note: String,
    pub target: String,
    /// The cluster of its target; [`HERE`] for this machine.
    pub cluster: String,
    pub isolation: Option<String>,
    pub created_by: String,
    pub changed_at: Timestamp,
}

/// A job about to be accepted.
#[derive(Debug)]
pub struct NewJob {
    pub workspace: String,
    pub name: JobName,
    pub body: String,
    pub plan: Plan,
    pub kind: &'static str,
    pub experiment: String,
    pub target: String,
    /// The cluster of its target; [`HERE`] for this machine.
    pub cluster: String,
    pub priority: i64,
    pub max_retries: u32,
    /// Some output becomes an asset when the job completes.
    pub registers: bool,
    pub created_by: String,
    pub at: Timestamp,
}

/// What the scheduler needs to know of a waiting job.
#[derive(Debug, Clone)]
pub struct QueuedJob {
    pub job: Job,
    pub target: String,
    /// Of all ranks together.
    pub needs: Resources,
    pub note: String,
}

/// What jobs at work hold together.
#[derive(Debug, Clone, Default)]
pub struct InUse {
    pub jobs: u64,
    pub resources: Resources,
}

/// The cluster of jobs that run on the server's own machine.
pub const HERE: &str = "";

const CORE: &str = "seq, workspace, name, state, attempts, max_retries, priority, version, created_at";
pub(super) const ROW: &str = "seq, workspace, name, state, attempts, max_retries, priority, version, created_at, \
                   body, archived, note, target, isolation, created_by, changed_at, cluster";

impl Tx<'_> {
    /// Accepts a job and its first event. `Exists` when the name is taken.
    pub fn insert_job(&mut self, new: &NewJob) -> Result<i64, Error> {
        let state = JobState::Queued { since: new.at };
        let needs = new.plan.needs();
        let seq = self.insert(
            "insert into jobs (workspace, name, body, plan, state, phase, status, note, kind, experiment, target, priority, \
             max_retries, registers, created_by, created_at, changed_at, cpu_milli, memory_bytes, gpus, cluster) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?16, ?17, ?18, ?19, ?20) returning seq",
            &[
                new.workspace.as_str().into(),
                new.name.as_str().into(),
                new.body.as_str().into(),
                json(&new.plan)?.into(),
                json(&state)?.into(),
                state.name().into(),
                state.status().into(),
                format!("waits for its turn on `{}`", new.target).into(),
                new.kind.into(),
                new.experiment.as_str().into(),
                new.target.as_str().into(),
                new.priority.into(),
                i64::from(new.max_retries).into(),
                new.registers.into(),
                new.created_by.as_str().into(),
                new.at.into(),
                amount(needs.cpu_milli),
                amount(needs.memory_bytes),
                i64::from(needs.gpus).into(),
                new.cluster.as_str().into(),
            ],
        )?;
        if new.kind != REPLICA {
            self.add_labels(seq, &new.body)?;
            self.insert_job_run(seq, new)?;
        }
        self.add_event(seq, new.at, "accepted", &format!("accepted for compute target `{}`", new.target))?;
        self.ring(Bell::Queue);
        self.ring(Bell::Jobs);
        Ok(seq)
    }

    /// Writes a job's new state, guarded by the version it was read with.
    pub fn put_job(&mut self, job: &Job, note: Option<&str>, now: Timestamp) -> Result<(), Error> {
        let changed = self.exec(
            "update jobs set state = ?3, phase = ?4, status = ?5, attempts = ?6, note = coalesce(?7, note), \
             changed_at = ?8, version = version + 1 where seq = ?1 and version = ?2",
            &[
                job.seq.into(),
                job.version.into(),
                json(&job.state)?.into(),
                job.state.name().into(),
                job.state.status().into(),
                i64::from(job.attempts).into(),
                note.into(),
                now.into(),
            ],
        )?;
        if changed == 0 {
            return Err(Error::Conflict);
        }
        // On its way from the queue to its start a job is, as a run, what it was before.
        if !matches!(job.state, JobState::Placed { .. } | JobState::Preparing { .. }) {
            self.follow_job(job)?;
        }
        self.ring(Bell::Jobs);
        match job.state {
            JobState::Queued { .. } | JobState::Ended { .. } => {
                self.ring(Bell::Queue);
                self.ring(Bell::Clusters);
                self.ring(Bell::Serving);
            }
            JobState::Finalizing { .. } => self.ring(Bell::Serving),
            JobState::Placed { .. } | JobState::Stopping { .. } => {
                self.ring(Bell::Agents);
                self.ring(Bell::Clusters);
            }
            _ => {}
        }
        Ok(())
    }

    /// Says why a job waits, without touching its state.
    pub fn put_note(&mut self, seq: i64, note: &str) -> Result<(), Error> {
        self.exec("update jobs set note = ?2 where seq = ?1", &[seq.into(), note.into()])?;
        Ok(())
    }

    pub fn put_isolation(&mut self, seq: i64, isolation: &str) -> Result<(), Error> {
        self.exec("update jobs set isolation = ?2 where seq = ?1", &[seq.into(), isolation.into()])?;
        Ok(())
    }

    /// Replaces the shown body and the archive mark: what a client may change after the fact.
    pub fn put_job_body(&mut self, seq: i64, body: &str, archived: bool, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "update jobs set body = ?2, archived = ?3, changed_at = ?4 where seq = ?1",
            &[seq.into(), body.into(), archived.into(), now.into()],
        )?;
        self.exec("delete from job_labels where job_seq = ?1", &[seq.into()])?;
        self.add_labels(seq, body)?;
        self.archive_job_run(seq, archived, now)?;
        self.ring(Bell::Jobs);
        Ok(())
    }

    /// A job that someone submitted; a replica is none.
    pub fn job(&mut self, workspace: &str, name: &str) -> Result<Option<JobRow>, Error> {
        let sql = format!("select {ROW} from jobs where workspace = ?1 and name = ?2 and kind <> ?3");
        self.fetch_one(&sql, &[workspace.into(), name.into(), REPLICA.into()])?.map(row_of).transpose()
    }

    /// Jobs by their place in the table, in no order.
    pub fn jobs_by_seq(&mut self, seqs: &[i64]) -> Result<Vec<JobRow>, Error> {
        let sql = format!("select {ROW} from jobs where seq in (select value from json_each(?1))");
        self.fetch(&sql, &[seqs.into()])?.into_iter().map(row_of).collect()
    }

    pub fn job_by_seq(&mut self, seq: i64) -> Result<Option<Job>, Error> {
        let sql = format!("select {CORE} from jobs where seq = ?1");
        self.fetch_one(&sql, &[seq.into()])?.map(|mut row| core_of(&mut row)).transpose()
    }

    /// The body of a job that registers outputs; `None` when it registers none.
    pub fn registering_body(&mut self, seq: i64) -> Result<Option<(String, Plan)>, Error> {
        let row = self.fetch_one("select body, plan from jobs where seq = ?1 and registers = 1", &[seq.into()])?;
        row.map(|mut row| Ok((row.text(0)?, row.json(1)?))).transpose()
    }

    pub fn plan(&mut self, seq: i64) -> Result<Option<Plan>, Error> {
        self.fetch_one("select plan from jobs where seq = ?1", &[seq.into()])?.map(|mut row| row.json(0)).transpose()
    }

    /// The front of a cluster's queue: highest priority first, then first come.
    pub fn queue(&mut self, cluster: &str, limit: i64) -> Result<Vec<QueuedJob>, Error> {
        let sql = format!(
            "select {CORE}, target, cpu_milli, memory_bytes, gpus, note from jobs where phase = 'queued' and cluster = ?1 \
             order by priority desc, seq limit ?2"
        );
        let rows = self.fetch(&sql, &[cluster.into(), limit.into()])?;
        rows.into_iter()
            .map(|mut row| {
                let needs = Resources {
                    cpu_milli: row.int(10)?.unsigned_abs(),
                    memory_bytes: row.int(11)?.unsigned_abs(),
                    gpus: count(row.int(12)?)?,
                };
                Ok(QueuedJob { job: core_of(&mut row)?, target: row.text(9)?, needs, note: row.text(13)? })
            })
            .collect()
    }

    /// Jobs of a cluster that have an attempt, oldest first.
    pub fn active_jobs(&mut self, cluster: &str) -> Result<Vec<Job>, Error> {
        let sql = format!(
            "select {CORE} from jobs where phase in ('placed', 'preparing', 'running', 'finalizing', 'stopping') \
             and cluster = ?1 order by seq"
        );
        self.fetch(&sql, &[cluster.into()])?.into_iter().map(|mut row| core_of(&mut row)).collect()
    }

    /// Every attempt on a cluster and the phase of its job: highest priority first, then first come.
    pub fn attempts_on(&mut self, cluster: &str) -> Result<Vec<(AttemptId, String)>, Error> {
        let sql = "select seq, attempts, phase from jobs \
                   where phase in ('placed', 'preparing', 'running', 'finalizing', 'stopping') and cluster = ?1 \
                   order by priority desc, seq";
        let rows = self.fetch(sql, &[cluster.into()])?;
        let attempt =
            |mut row: Row| Ok((AttemptId::of(row.int(0)?, count(row.int(1)?)?.saturating_sub(1)), row.text(2)?));
        rows.into_iter().map(attempt).collect()
    }

    /// Attempts an agent may not have heard of: those just placed, and those asked to stop.
    pub fn offered(&mut self, cluster: &str, phase: &'static str) -> Result<Vec<AttemptId>, Error> {
        let sql = "select seq, attempts from jobs where phase = ?1 and cluster = ?2 order by priority desc, seq";
        let rows = self.fetch(sql, &[phase.into(), cluster.into()])?;
        rows.into_iter().map(|mut row| Ok(AttemptId::of(row.int(0)?, count(row.int(1)?)?.saturating_sub(1)))).collect()
    }

    /// How many jobs of each priority are with this machine's agent.
    pub fn handed(&mut self) -> Result<Vec<(i64, i64)>, Error> {
        let rows = self.fetch(
            "select priority, count(*) from jobs \
             where phase in ('placed', 'preparing', 'running', 'finalizing', 'stopping') and cluster = ?1 \
             group by priority order by priority",
            &[HERE.into()],
        )?;
        rows.into_iter().map(|mut row| Ok((row.int(0)?, row.int(1)?))).collect()
    }

    /// A job that has not ended and reads or writes files of this owner.
    pub fn job_with_files_of(&mut self, owner: &str) -> Result<Option<String>, Error> {
        let sql =
            "select name from jobs where phase <> 'ended' and plan like '%/blobs/' || ?1 || '/%' order by seq limit 1";
        self.fetch_one(sql, &[owner.into()])?.map(|mut row| row.text(0)).transpose()
    }

    /// Jobs at work on this machine, and what they hold together.
    pub fn in_use(&mut self) -> Result<InUse, Error> {
        let sql = "select count(*), cast(coalesce(sum(cpu_milli), 0) as bigint), \
                   cast(coalesce(sum(memory_bytes), 0) as bigint), cast(coalesce(sum(gpus), 0) as bigint) \
                   from jobs where phase in ('preparing', 'running', 'finalizing', 'stopping') and cluster = ?1";
        let Some(mut row) = self.fetch_one(sql, &[HERE.into()])? else { return Ok(InUse::default()) };
        let mut amount = |at| row.int(at).map(|n| u64::try_from(n).unwrap_or(0));
        let jobs = amount(0)?;
        let resources = Resources {
            cpu_milli: amount(1)?,
            memory_bytes: amount(2)?,
            gpus: u32::try_from(amount(3)?).unwrap_or(u32::MAX),
        };
        Ok(InUse { jobs, resources })
    }

    /// How many jobs are in each phase that is not the end.
    pub fn phases(&mut self) -> Result<Vec<(String, i64)>, Error> {
        let rows = self.fetch(
            "select phase, count(*) from jobs \
             where phase in ('queued', 'placed', 'preparing', 'running', 'finalizing', 'stopping') and kind <> ?1 \
             group by phase order by phase",
            &[REPLICA.into()],
        )?;
        rows.into_iter().map(|mut row| Ok((row.text(0)?, row.int(1)?))).collect()
    }

    /// How many waiting jobs of the same cluster stand before this one.
    pub fn ahead_of(&mut self, row: &JobRow) -> Result<i64, Error> {
        let row = self.fetch_one(
            "select count(*) from jobs where phase in ('queued', 'placed') and cluster = ?3 \
             and (priority > ?1 or (priority = ?1 and seq < ?2))",
            &[row.job.priority.into(), row.job.seq.into(), row.cluster.as_str().into()],
        )?;
        row.map_or(Ok(0), |mut row| row.int(0))
    }
}

fn core_of(row: &mut Row) -> Result<Job, Error> {
    Ok(Job {
        seq: row.int(0)?,
        workspace: row.text(1)?,
        name: JobName::parse(&row.text(2)?).map_err(|bad| Error::Decode(bad.to_string()))?,
        state: row.json(3)?,
        attempts: count(row.int(4)?)?,
        max_retries: count(row.int(5)?)?,
        priority: row.int(6)?,
        version: row.int(7)?,
        created_at: Timestamp(row.int(8)?),
    })
}

pub(super) fn row_of(mut row: Row) -> Result<JobRow, Error> {
    Ok(JobRow {
        job: core_of(&mut row)?,
        body: row.text(9)?,
        archived: row.int(10)? != 0,
        note: row.text(11)?,
        target: row.text(12)?,
        isolation: row.maybe_text(13)?,
        created_by: row.text(14)?,
        changed_at: Timestamp(row.int(15)?),
        cluster: row.text(16)?,
    })
}

/// An amount as the database keeps it; nobody has 9 exabytes.
fn amount(n: u64) -> Value {
    i64::try_from(n).unwrap_or(i64::MAX).into()
}

fn count(n: i64) -> Result<u32, Error> {
    u32::try_from(n).map_err(|_| Error::Decode(format!("{n} is not a count")))
}

pub(crate) fn json<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Decode(error.to_string()))
}
