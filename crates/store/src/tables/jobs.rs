//! Jobs: accepted once, changed only from the version that was read.

use crate::{
    Bell, Error, Row, Tx, Value,
    tables::{REPLICA, job_labels::USES},
};
use domain::{
    AttemptId, Job, JobName, JobState, Plan, Resources, Timestamp,
    sharing::{Holder, fair},
};

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
    /// `Command`, `Pipeline`, `Sweep`.
    pub kind: String,
    /// The job it is a part of, and which part.
    pub parent: Option<ChildOf>,
    /// The earlier job that stands for it.
    pub reused: Option<String>,
}

impl JobRow {
    /// The job whose logs and captured files are this one's.
    pub fn files_of(&self) -> &str {
        self.reused.as_deref().unwrap_or(self.job.name.as_str())
    }
}

/// Which part of another job a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildOf {
    pub parent: i64,
    /// The parent's name.
    pub name: String,
    /// The step or the number of the trial.
    pub step: String,
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
    pub parent: Option<ChildOf>,
    /// The earlier job that stands for it: it is born completed.
    pub reused: Option<String>,
}

/// What the scheduler needs to know of a waiting job.
#[derive(Debug, Clone)]
pub struct QueuedJob {
    pub job: Job,
    pub target: String,
    /// Of all ranks together.
    pub needs: Resources,
    pub note: String,
    pub holder: Holder,
}

/// What jobs at work hold together.
#[derive(Debug, Clone, Default)]
pub struct InUse {
    pub jobs: u64,
    pub resources: Resources,
}

/// The cluster of jobs that run on the server's own machine.
pub const HERE: &str = "";

/// The cluster of jobs that no node runs because they consist of other jobs. No cluster has this name.
pub const NOWHERE: &str = ":";

/// The cluster of jobs that wait until one of a pool's targets is chosen. No cluster has this name.
pub const POOLED: &str = ":pool";

pub(super) const CORE: &str =
    "seq, workspace, name, state, attempts, max_retries, priority, version, created_at, parent";
pub(super) const ROW: &str = "seq, workspace, name, state, attempts, max_retries, priority, version, created_at, parent, \
                   body, archived, note, target, isolation, created_by, changed_at, cluster, kind, step, \
                   (select p.name from jobs p where p.seq = jobs.parent), reused";

const QUEUED: &str = "select seq, workspace, name, state, attempts, max_retries, priority, version, created_at, parent, \
                      target, cpu_milli, memory_bytes, gpus, note, created_by from jobs \
                      where phase = 'queued' and cluster = ?1";

impl Tx<'_> {
    /// Accepts a job and its first event. `Exists` when the name is taken.
    pub fn insert_job(&mut self, new: &NewJob) -> Result<i64, Error> {
        let state = JobState::Queued { since: new.at };
        let needs = new.plan.needs();
        let (waits, accepted) = match new.cluster.as_str() {
            NOWHERE => ("is about to begin".to_owned(), "accepted".to_owned()),
            _ => (
                format!("waits for its turn on `{}`", new.target),
                format!("accepted for compute target `{}`", new.target),
            ),
        };
        let seq = self.insert(
            "insert into jobs (workspace, name, body, plan, state, phase, status, note, kind, experiment, target, priority, \
             max_retries, registers, created_by, created_at, changed_at, cpu_milli, memory_bytes, gpus, cluster, \
             parent, step, reused, weight) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) \
             returning seq",
            &[
                new.workspace.as_str().into(),
                new.name.as_str().into(),
                new.body.as_str().into(),
                json(&new.plan)?.into(),
                json(&state)?.into(),
                state.name().into(),
                state.status().into(),
                waits.into(),
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
                new.parent.as_ref().map(|part| part.parent).into(),
                new.parent.as_ref().map_or("", |part| part.step.as_str()).into(),
                new.reused.as_deref().into(),
                amount(fair::weight(&needs)),
            ],
        )?;
        if new.kind != REPLICA {
            self.add_labels(seq, &new.body)?;
            self.add_uses(seq, &new.plan)?;
            self.insert_job_run(seq, new)?;
        }
        self.add_event(seq, new.at, "accepted", &accepted)?;
        self.ring(if new.cluster == NOWHERE { Bell::Parents } else { Bell::Queue });
        self.ring(Bell::Jobs);
        Ok(seq)
    }

    /// Writes a job's new state, guarded by the version it was read with.
    pub fn put_job(&mut self, job: &Job, note: Option<&str>, now: Timestamp) -> Result<(), Error> {
        let waits = matches!(job.state, JobState::Queued { .. });
        if waits || job.state.is_ended() {
            self.charge(job.seq, now)?;
        }
        let busy = job.state.attempt().is_some() && !matches!(job.state, JobState::Placed { .. });
        let changed = self.exec(
            "update jobs set state = ?3, phase = ?4, status = ?5, attempts = ?6, note = coalesce(?7, note), \
             changed_at = ?8, version = version + 1, max_retries = ?9, \
             busy_since = case when cast(?10 as bigint) = 1 then coalesce(busy_since, ?8) else null end, \
             cluster = case when cast(?11 as bigint) = 1 and pool <> '' then ?12 else cluster end, \
             target = case when cast(?11 as bigint) = 1 and pool <> '' then pool else target end where seq = ?1 and version = ?2",
            &[
                job.seq.into(),
                job.version.into(),
                json(&job.state)?.into(),
                job.state.name().into(),
                job.state.status().into(),
                i64::from(job.attempts).into(),
                note.into(),
                now.into(),
                i64::from(job.max_retries).into(),
                busy.into(),
                waits.into(),
                POOLED.into(),
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
        if matches!(job.state, JobState::Halting { .. }) || (job.parent.is_some() && job.state.is_ended()) {
            self.ring(Bell::Parents);
        }
        if job.parent.is_none() && job.state.is_ended() {
            self.tell_job_ended(job, now)?;
        }
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
        self.exec("delete from job_labels where job_seq = ?1 and kind <> ?2", &[seq.into(), USES.into()])?;
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

    pub fn has_job(&mut self, workspace: &str, name: &str) -> Result<bool, Error> {
        let sql = "select 1 from jobs where workspace = ?1 and name = ?2";
        Ok(self.fetch_one(sql, &[workspace.into(), name.into()])?.is_some())
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

    /// Replaces where the outputs of a job lie: of one whose outputs are those of others.
    pub fn put_plan(&mut self, seq: i64, plan: &Plan) -> Result<(), Error> {
        self.exec("update jobs set plan = ?2 where seq = ?1", &[seq.into(), json(plan)?.into()]).map(drop)
    }

    pub fn plan(&mut self, seq: i64) -> Result<Option<Plan>, Error> {
        self.fetch_one("select plan from jobs where seq = ?1", &[seq.into()])?.map(|mut row| row.json(0)).transpose()
    }

    /// The front of a cluster's queue: highest priority first, then first come.
    pub fn queue(&mut self, cluster: &str, limit: i64) -> Result<Vec<QueuedJob>, Error> {
        let sql = format!("{QUEUED} order by priority desc, seq limit ?2");
        self.fetch(&sql, &[cluster.into(), limit.into()])?.into_iter().map(queued_of).collect()
    }

    /// The front of what one person has in a cluster's queue.
    pub fn queue_of(&mut self, cluster: &str, holder: &Holder, limit: i64) -> Result<Vec<QueuedJob>, Error> {
        let sql = format!("{QUEUED} and workspace = ?3 and created_by = ?4 order by priority desc, seq limit ?2");
        let Holder { workspace, person } = holder;
        let rows =
            self.fetch(&sql, &[cluster.into(), limit.into(), workspace.as_str().into(), person.as_str().into()])?;
        rows.into_iter().map(queued_of).collect()
    }

    /// The jobs of a workspace that wait for a node: highest priority first, then in the order they came.
    pub fn waiting_jobs(&mut self, workspace: &str, limit: i64) -> Result<Vec<JobRow>, Error> {
        let sql = format!(
            "select {ROW} from jobs where phase in ('queued', 'placed') and workspace = ?1 and kind <> ?2 \
             and cluster <> ?3 order by priority desc, seq limit ?4"
        );
        let values = [workspace.into(), REPLICA.into(), NOWHERE.into(), limit.into()];
        self.fetch(&sql, &values)?.into_iter().map(row_of).collect()
    }

    /// Jobs of a cluster that have an attempt, oldest first.
    pub fn active_jobs(&mut self, cluster: &str) -> Result<Vec<Job>, Error> {
        let sql = format!(
            "select {CORE} from jobs where phase in ('placed', 'preparing', 'running', 'finalizing', 'stopping') \
             and cluster = ?1 order by seq"
        );
        self.fetch(&sql, &[cluster.into()])?.into_iter().map(|mut row| core_of(&mut row)).collect()
    }

    /// Every attempt on a cluster and the phase of its job: highest priority first, then whose turn it is.
    pub fn attempts_on(&mut self, cluster: &str) -> Result<Vec<(AttemptId, String)>, Error> {
        let sql = "select seq, attempts, phase from jobs \
                   where phase in ('placed', 'preparing', 'running', 'finalizing', 'stopping') and cluster = ?1 \
                   order by priority desc, turn, seq";
        let rows = self.fetch(sql, &[cluster.into()])?;
        let attempt =
            |mut row: Row| Ok((AttemptId::of(row.int(0)?, count(row.int(1)?)?.saturating_sub(1)), row.text(2)?));
        rows.into_iter().map(attempt).collect()
    }

    /// Attempts an agent may not have heard of: those just placed, and those asked to stop.
    pub fn offered(&mut self, cluster: &str, phase: &'static str) -> Result<Vec<AttemptId>, Error> {
        let sql = "select seq, attempts from jobs where phase = ?1 and cluster = ?2 order by priority desc, turn, seq";
        let rows = self.fetch(sql, &[phase.into(), cluster.into()])?;
        rows.into_iter().map(|mut row| Ok(AttemptId::of(row.int(0)?, count(row.int(1)?)?.saturating_sub(1)))).collect()
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
        let (jobs, resources) = (row.int(0)?.unsigned_abs(), resources_at(&mut row, 1)?);
        Ok(InUse { jobs, resources })
    }

    /// How many jobs are in each phase that is not the end.
    pub fn phases(&mut self) -> Result<Vec<(String, i64)>, Error> {
        let rows = self.fetch(
            "select phase, count(*) from jobs \
             where phase in ('queued', 'placed', 'preparing', 'running', 'finalizing', 'stopping', 'conducting', 'halting') \
             and kind <> ?1 group by phase order by phase",
            &[REPLICA.into()],
        )?;
        rows.into_iter().map(|mut row| Ok((row.text(0)?, row.int(1)?))).collect()
    }

    /// How many waiting jobs of the same cluster stand before this one, those of others who have used less left out.
    pub fn ahead_of(&mut self, row: &JobRow) -> Result<i64, Error> {
        let row = self.fetch_one(
            "select count(*) from jobs j, (select phase, turn, created_by from jobs where seq = ?2) m \
             where j.phase in ('queued', 'placed') and j.cluster = ?3 and (j.priority > ?1 or (j.priority = ?1 and \
             case when j.phase = 'queued' then m.phase = 'queued' and j.workspace = ?4 and j.created_by = m.created_by and j.seq < ?2 \
             else m.phase = 'queued' or j.turn < m.turn or (j.turn = m.turn and j.seq < ?2) end))",
            &[
                row.job.priority.into(),
                row.job.seq.into(),
                row.cluster.as_str().into(),
                row.job.workspace.as_str().into(),
            ],
        )?;
        row.map_or(Ok(0), |mut row| row.int(0))
    }
}

pub(super) fn core_of(row: &mut Row) -> Result<Job, Error> {
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
        parent: row.maybe_int(9)?,
    })
}

pub(super) fn row_of(mut row: Row) -> Result<JobRow, Error> {
    let job = core_of(&mut row)?;
    Ok(JobRow {
        body: row.text(10)?,
        archived: row.int(11)? != 0,
        note: row.text(12)?,
        target: row.text(13)?,
        isolation: row.maybe_text(14)?,
        created_by: row.text(15)?,
        changed_at: Timestamp(row.int(16)?),
        cluster: row.text(17)?,
        kind: row.text(18)?,
        parent: match (job.parent, row.maybe_text(20)?) {
            (Some(parent), Some(name)) => Some(ChildOf { parent, name, step: row.text(19)? }),
            _ => None,
        },
        reused: row.maybe_text(21)?,
        job,
    })
}

fn queued_of(mut row: Row) -> Result<QueuedJob, Error> {
    let job = core_of(&mut row)?;
    let holder = Holder { workspace: job.workspace.clone(), person: row.text(15)? };
    Ok(QueuedJob { job, target: row.text(10)?, needs: resources_at(&mut row, 11)?, note: row.text(14)?, holder })
}

/// Three columns as an amount of compute.
pub(super) fn resources_at(row: &mut Row, at: usize) -> Result<Resources, Error> {
    Ok(Resources {
        cpu_milli: row.int(at)?.unsigned_abs(),
        memory_bytes: row.int(at + 1)?.unsigned_abs(),
        gpus: count(row.int(at + 2)?)?,
    })
}

/// An amount as the database keeps it; nobody has 9 exabytes.
pub(super) fn amount(n: u64) -> Value {
    i64::try_from(n).unwrap_or(i64::MAX).into()
}

fn count(n: i64) -> Result<u32, Error> {
    u32::try_from(n).map_err(|_| Error::Decode(format!("{n} is not a count")))
}

pub(crate) fn json<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Decode(error.to_string()))
}
