//! Schedules that are on, what has happened that they wait for, and what they have started.
//!
//! Invariants: an event is written for every schedule that waits for it in the transaction of what it tells of; a run is
//! written in the transaction that moves its schedule on, so that none is made twice and none is lost.

use super::{AssetKey, REPLICA, jobs::json};
use crate::{Bell, Error, Row, Tx};
use domain::{
    Job, Timestamp,
    calendar::{Event, Subject, Watch},
};

/// How many runs of a schedule are remembered.
const REMEMBERED: i64 = 1000;

/// A schedule that is on.
#[derive(Debug, Clone)]
pub struct ScheduleRow {
    pub workspace: String,
    pub name: String,
    /// What it waits for, where that is no time.
    pub watch: Option<Watch>,
    /// When it is due next; never where this is nothing.
    pub due_at: Option<Timestamp>,
}

/// Something that a schedule waited for.
#[derive(Debug, Clone)]
pub struct ScheduleEvent {
    pub seq: i64,
    pub workspace: String,
    pub schedule: String,
    pub event: Event,
    pub at: Timestamp,
}

/// What a schedule has started, or why it has not.
#[derive(Debug, Clone)]
pub struct ScheduleRun {
    pub workspace: String,
    pub schedule: String,
    pub due_at: Timestamp,
    pub made_at: Timestamp,
    pub cause: String,
    pub by_event: bool,
    /// The job, or the deployment that was changed.
    pub made: Option<String>,
    pub problem: Option<String>,
    /// The schedules that led here by events, this one last.
    pub chain: Vec<String>,
}

const ROW: &str = "workspace, name, watch, due_at";
const RUN: &str = "workspace, schedule, due_at, made_at, cause, by_event, made, problem, chain";

impl Tx<'_> {
    /// Switches a schedule on, or moves it on.
    pub fn put_schedule(&mut self, row: &ScheduleRow) -> Result<(), Error> {
        let watch = row.watch.as_ref().map(json).transpose()?;
        self.exec(
            "insert into schedules (workspace, name, subject, watch, due_at) values (?1, ?2, ?3, ?4, ?5) \
             on conflict (workspace, name) do update set subject = ?3, watch = ?4, due_at = ?5",
            &[
                row.workspace.as_str().into(),
                row.name.as_str().into(),
                row.watch.as_ref().map_or("", |watch| watch.on.word()).into(),
                watch.unwrap_or_default().into(),
                row.due_at.into(),
            ],
        )?;
        self.ring(Bell::Calendar);
        Ok(())
    }

    /// Switches a schedule off: nothing it waited for counts any more.
    pub fn delete_schedule(&mut self, workspace: &str, name: &str) -> Result<(), Error> {
        let key = [workspace.into(), name.into()];
        self.exec("delete from schedules where workspace = ?1 and name = ?2", &key)?;
        self.exec("delete from schedule_events where workspace = ?1 and schedule = ?2", &key)?;
        Ok(())
    }

    pub fn schedule(&mut self, workspace: &str, name: &str) -> Result<Option<ScheduleRow>, Error> {
        let sql = format!("select {ROW} from schedules where workspace = ?1 and name = ?2");
        self.fetch_one(&sql, &[workspace.into(), name.into()])?.map(row_of).transpose()
    }

    /// Schedules whose time has come, those that wait longest first.
    pub fn due_schedules(&mut self, now: Timestamp) -> Result<Vec<ScheduleRow>, Error> {
        let sql = format!("select {ROW} from schedules where due_at <= ?1 order by due_at limit 1000");
        self.fetch(&sql, &[now.into()])?.into_iter().map(row_of).collect()
    }

    /// When the next schedule is due, if one is.
    pub fn next_due(&mut self) -> Result<Option<Timestamp>, Error> {
        let row = self.fetch_one("select min(due_at) from schedules where due_at is not null", &[])?;
        row.map_or(Ok(None), |mut row| row.maybe_int(0)).map(|at| at.map(Timestamp))
    }

    /// Writes down for every schedule that waits for it that something has happened.
    pub fn tell_schedules(&mut self, workspace: &str, event: &Event, now: Timestamp) -> Result<(), Error> {
        let sql = format!("select {ROW} from schedules where workspace = ?1 and subject = ?2 order by name");
        for row in self.fetch(&sql, &[workspace.into(), event.on.word().into()])? {
            let row = row_of(row)?;
            if !row.watch.is_some_and(|watch| watch.sees(event)) {
                continue;
            }
            self.exec(
                "insert into schedule_events (workspace, schedule, event, at) values (?1, ?2, ?3, ?4)",
                &[workspace.into(), row.name.as_str().into(), json(event)?.into(), now.into()],
            )?;
            self.ring(Bell::Calendar);
        }
        Ok(())
    }

    /// The same for a new version of an asset that has a name.
    pub(super) fn tell_asset_added(&mut self, key: &AssetKey, body: &str, now: Timestamp) -> Result<(), Error> {
        let Some(on) = Subject::of_collection(&key.kind) else { return Ok(()) };
        let sql = "select 1 from schedules where workspace = ?1 and subject = ?2 limit 1";
        if self.fetch_one(sql, &[key.workspace.as_str().into(), on.word().into()])?.is_none() {
            return Ok(());
        }
        let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
        if body["isAnonymous"] == true {
            return Ok(());
        }
        let job = body["jobName"].as_str().unwrap_or_default().to_owned();
        let (name, version) = (key.name.clone(), key.version.clone());
        let event = Event { on, name, version, experiment: String::new(), status: String::new(), job };
        self.tell_schedules(&key.workspace, &event, now)
    }

    /// The same for the end of a job that someone submitted.
    pub(super) fn tell_job_ended(&mut self, job: &Job, now: Timestamp) -> Result<(), Error> {
        let sql = "select experiment from jobs where seq = ?1 and kind <> ?2 and exists \
                   (select 1 from schedules where schedules.workspace = jobs.workspace and subject = ?3)";
        let values = [job.seq.into(), REPLICA.into(), Subject::Job.word().into()];
        let Some(mut row) = self.fetch_one(sql, &values)? else { return Ok(()) };
        let (name, status) = (job.name.to_string(), job.state.status().to_owned());
        let event = Event {
            on: Subject::Job,
            job: name.clone(),
            name,
            version: String::new(),
            experiment: row.text(0)?,
            status,
        };
        self.tell_schedules(&job.workspace, &event, now)
    }

    /// What schedules waited for and have not acted on, oldest first.
    pub fn schedule_events(&mut self) -> Result<Vec<ScheduleEvent>, Error> {
        let sql = "select seq, workspace, schedule, event, at from schedule_events order by seq limit 100";
        let rows = self.fetch(sql, &[])?;
        let event = |mut row: Row| {
            Ok(ScheduleEvent {
                seq: row.int(0)?,
                workspace: row.text(1)?,
                schedule: row.text(2)?,
                event: row.json(3)?,
                at: Timestamp(row.int(4)?),
            })
        };
        rows.into_iter().map(event).collect()
    }

    /// Takes an event off the list; `false` when it is no longer on it.
    pub fn take_schedule_event(&mut self, seq: i64) -> Result<bool, Error> {
        Ok(self.exec("delete from schedule_events where seq = ?1", &[seq.into()])? > 0)
    }

    pub fn insert_schedule_run(&mut self, run: &ScheduleRun) -> Result<(), Error> {
        let key = [run.workspace.as_str().into(), run.schedule.as_str().into()];
        let [workspace, schedule] = key.clone();
        self.exec(
            "insert into schedule_runs (workspace, schedule, due_at, made_at, cause, by_event, made, problem, chain) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            &[
                workspace,
                schedule,
                run.due_at.into(),
                run.made_at.into(),
                run.cause.as_str().into(),
                run.by_event.into(),
                run.made.as_deref().into(),
                run.problem.as_deref().into(),
                json(&run.chain)?.into(),
            ],
        )?;
        let [workspace, schedule] = key;
        let sql = "delete from schedule_runs where workspace = ?1 and schedule = ?2 and seq <= (select seq from \
                   schedule_runs where workspace = ?1 and schedule = ?2 order by seq desc limit 1 offset ?3)";
        self.exec(sql, &[workspace, schedule, REMEMBERED.into()])?;
        Ok(())
    }

    /// What a schedule has started, newest first.
    pub fn schedule_runs(&mut self, workspace: &str, name: &str, limit: i64) -> Result<Vec<ScheduleRun>, Error> {
        let sql = format!(
            "select {RUN} from schedule_runs where workspace = ?1 and schedule = ?2 order by seq desc limit ?3"
        );
        self.fetch(&sql, &[workspace.into(), name.into(), limit.into()])?.into_iter().map(run_of).collect()
    }

    /// The run that made a job, if a schedule did.
    pub fn schedule_run_of(&mut self, workspace: &str, job: &str) -> Result<Option<ScheduleRun>, Error> {
        let sql =
            format!("select {RUN} from schedule_runs where workspace = ?1 and made = ?2 order by seq desc limit 1");
        self.fetch_one(&sql, &[workspace.into(), job.into()])?.map(run_of).transpose()
    }

    /// How often events have started a schedule since then.
    pub fn event_runs_since(&mut self, workspace: &str, name: &str, since: Timestamp) -> Result<i64, Error> {
        let sql = "select count(*) from schedule_runs where workspace = ?1 and schedule = ?2 and by_event = 1 \
                   and made is not null and made_at > ?3";
        let row = self.fetch_one(sql, &[workspace.into(), name.into(), since.into()])?;
        row.map_or(Ok(0), |mut row| row.int(0))
    }

    /// Forgets a schedule and what it has started.
    pub fn forget_schedule(&mut self, workspace: &str, name: &str) -> Result<(), Error> {
        self.delete_schedule(workspace, name)?;
        let sql = "delete from schedule_runs where workspace = ?1 and schedule = ?2";
        self.exec(sql, &[workspace.into(), name.into()]).map(drop)
    }
}

fn row_of(mut row: Row) -> Result<ScheduleRow, Error> {
    let watch = row.text(2)?;
    let watch = if watch.is_empty() { None } else { Some(serde_json::from_str(&watch)) };
    Ok(ScheduleRow {
        workspace: row.text(0)?,
        name: row.text(1)?,
        watch: watch.transpose().map_err(|error| Error::Decode(error.to_string()))?,
        due_at: row.maybe_int(3)?.map(Timestamp),
    })
}

fn run_of(mut row: Row) -> Result<ScheduleRun, Error> {
    Ok(ScheduleRun {
        workspace: row.text(0)?,
        schedule: row.text(1)?,
        due_at: Timestamp(row.int(2)?),
        made_at: Timestamp(row.int(3)?),
        cause: row.text(4)?,
        by_event: row.int(5)? != 0,
        made: row.maybe_text(6)?,
        problem: row.maybe_text(7)?,
        chain: row.json(8)?,
    })
}
