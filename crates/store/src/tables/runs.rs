//! Runs: what was logged, by whom, under which experiment. A job is its run.
//!
//! Invariants: a parameter is written once; the status and times of a run that is a job are the job's, written in the
//! transaction that changes the job.

use crate::{Error, NewJob, Row, Tx};
use domain::{Job, Timestamp};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub struct RunRow {
    pub seq: i64,
    pub workspace: String,
    pub run_id: String,
    /// The experiment's place in the table, and its number in the workspace.
    pub experiment: i64,
    pub number: i64,
    /// Where the experiment keeps files, if not here.
    pub location: String,
    pub job_seq: Option<i64>,
    pub name: String,
    pub user: String,
    pub status: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub deleted_at: Option<Timestamp>,
}

/// A run about to begin.
#[derive(Debug)]
pub struct NewRun<'a> {
    pub workspace: &'a str,
    pub run_id: &'a str,
    pub experiment: i64,
    pub job_seq: Option<i64>,
    pub name: &'a str,
    pub user: &'a str,
    pub status: &'a str,
    pub started_at: Timestamp,
}

/// A dataset a run has read.
#[derive(Debug, Clone)]
pub struct RunInput {
    pub name: String,
    pub digest: String,
    /// What it was for, where that was said.
    pub context: Option<String>,
    /// The input as it was sent.
    pub body: String,
}

/// Texts under a key, by run.
pub type Texts = BTreeMap<i64, BTreeMap<String, String>>;

pub(crate) const RUN: &str = "r.seq, r.workspace, r.run_id, r.experiment, e.number, r.job_seq, r.name, r.user, r.status, \
                              r.started_at, r.ended_at, r.deleted_at, e.artifact_location";

impl Tx<'_> {
    /// The run of a job that was just accepted.
    pub(crate) fn insert_job_run(&mut self, job_seq: i64, new: &NewJob) -> Result<(), Error> {
        let experiment = self.experiment_named(&new.workspace, &new.experiment, new.at)?;
        let run = self.insert_run(&NewRun {
            workspace: &new.workspace,
            run_id: new.name.as_str(),
            experiment,
            job_seq: Some(job_seq),
            name: new.name.as_str(),
            user: &new.created_by,
            status: "SCHEDULED",
            started_at: new.at,
        })?;
        // As MLflow nests runs.
        new.parent.as_ref().map_or(Ok(()), |part| self.put_run_tag(run, "mlflow.parentRunId", &part.name))
    }

    /// The run of a job goes where the job goes.
    pub(crate) fn follow_job(&mut self, job: &Job) -> Result<(), Error> {
        let (status, started_at, ended_at) = job.as_run();
        self.exec(
            "update runs set status = ?2, started_at = ?3, ended_at = ?4 where job_seq = ?1",
            &[job.seq.into(), status.as_str().into(), started_at.into(), ended_at.into()],
        )?;
        Ok(())
    }

    /// A job that is archived is a run that was put away.
    pub(crate) fn archive_job_run(&mut self, job_seq: i64, archived: bool, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "update runs set deleted_at = case when ?2 = 1 then coalesce(deleted_at, ?3) end where job_seq = ?1",
            &[job_seq.into(), archived.into(), now.into()],
        )?;
        Ok(())
    }

    /// Puts all runs of an experiment away, or brings them back; jobs are archived with their runs.
    pub fn delete_runs_of(&mut self, experiment: i64, deleted: bool, now: Timestamp) -> Result<(), Error> {
        self.exec(
            "update runs set deleted_at = case when ?2 = 1 then coalesce(deleted_at, ?3) end where experiment = ?1",
            &[experiment.into(), deleted.into(), now.into()],
        )?;
        self.exec(
            "update jobs set archived = ?2 where seq in (select job_seq from runs where experiment = ?1)",
            &[experiment.into(), deleted.into()],
        )?;
        Ok(())
    }

    pub fn insert_run(&mut self, new: &NewRun<'_>) -> Result<i64, Error> {
        self.insert(
            "insert into runs (workspace, run_id, experiment, job_seq, name, \"user\", status, started_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) returning seq",
            &[
                new.workspace.into(),
                new.run_id.into(),
                new.experiment.into(),
                new.job_seq.into(),
                new.name.into(),
                new.user.into(),
                new.status.into(),
                new.started_at.into(),
            ],
        )
    }

    pub fn run(&mut self, workspace: &str, run_id: &str) -> Result<Option<RunRow>, Error> {
        let sql = format!(
            "select {RUN} from runs r join experiments e on e.seq = r.experiment where r.workspace = ?1 and r.run_id = ?2"
        );
        self.fetch_one(&sql, &[workspace.into(), run_id.into()])?.map(run_of).transpose()
    }

    /// Writes what may change of a run.
    pub fn put_run(&mut self, row: &RunRow) -> Result<(), Error> {
        self.exec(
            "update runs set name = ?2, status = ?3, ended_at = ?4, deleted_at = ?5 where seq = ?1",
            &[
                row.seq.into(),
                row.name.as_str().into(),
                row.status.as_str().into(),
                row.ended_at.into(),
                row.deleted_at.into(),
            ],
        )?;
        Ok(())
    }

    /// Writes a parameter once; the value it had before, if it had one.
    pub fn add_param(&mut self, run: i64, key: &str, value: &str) -> Result<Option<String>, Error> {
        let known =
            self.fetch_one("select value from run_params where run = ?1 and key = ?2", &[run.into(), key.into()])?;
        if let Some(mut row) = known {
            return row.text(0).map(Some);
        }
        self.exec(
            "insert into run_params (run, key, value) values (?1, ?2, ?3)",
            &[run.into(), key.into(), value.into()],
        )?;
        Ok(None)
    }

    pub fn put_run_tag(&mut self, run: i64, key: &str, value: &str) -> Result<(), Error> {
        self.exec(
            "insert into run_tags (run, key, value) values (?1, ?2, ?3) on conflict (run, key) do update set value = ?3",
            &[run.into(), key.into(), value.into()],
        )?;
        Ok(())
    }

    /// Whether there was such a tag.
    pub fn delete_run_tag(&mut self, run: i64, key: &str) -> Result<bool, Error> {
        Ok(self.exec("delete from run_tags where run = ?1 and key = ?2", &[run.into(), key.into()])? > 0)
    }

    pub fn params_of(&mut self, runs: &[i64]) -> Result<Texts, Error> {
        self.texts_of("run_params", runs)
    }

    pub fn tags_of(&mut self, runs: &[i64]) -> Result<Texts, Error> {
        self.texts_of("run_tags", runs)
    }

    fn texts_of(&mut self, table: &str, runs: &[i64]) -> Result<Texts, Error> {
        let sql = format!("select run, key, value from {table} where run in (select value from json_each(?1))");
        let mut all = Texts::new();
        for mut row in self.fetch(&sql, &[runs.into()])? {
            let (run, key, value) = (row.int(0)?, row.text(1)?, row.text(2)?);
            all.entry(run).or_default().insert(key, value);
        }
        Ok(all)
    }

    /// Adds a dataset a run has read; one it names again stays as it was.
    pub fn add_run_input(&mut self, run: i64, input: &RunInput) -> Result<(), Error> {
        self.exec(
            "insert into run_inputs (run, name, digest, context, body) values (?1, ?2, ?3, ?4, ?5) on conflict do nothing",
            &[
                run.into(),
                input.name.as_str().into(),
                input.digest.as_str().into(),
                input.context.as_deref().into(),
                input.body.as_str().into(),
            ],
        )?;
        Ok(())
    }

    /// The datasets runs have read, as they were sent, by run.
    pub fn inputs_of(&mut self, runs: &[i64]) -> Result<BTreeMap<i64, Vec<String>>, Error> {
        let sql = "select run, body from run_inputs where run in (select value from json_each(?1)) order by run, name, digest";
        let mut all: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for mut row in self.fetch(sql, &[runs.into()])? {
            let run = row.int(0)?;
            all.entry(run).or_default().push(row.text(1)?);
        }
        Ok(all)
    }

    /// The datasets that runs of some experiments have read, each once, with the experiment's number. Their bodies are
    /// left out.
    pub fn datasets_of(&mut self, workspace: &str, numbers: &[i64]) -> Result<Vec<(i64, RunInput)>, Error> {
        let sql = "select distinct e.number, i.name, i.digest, i.context from run_inputs i join runs r on r.seq = i.run \
                   join experiments e on e.seq = r.experiment \
                   where e.workspace = ?2 and e.number in (select value from json_each(?1)) \
                   order by e.number, i.name, i.digest, i.context nulls first limit 1000";
        let mut all = Vec::new();
        for mut row in self.fetch(sql, &[numbers.into(), workspace.into()])? {
            let (name, digest, context) = (row.text(1)?, row.text(2)?, row.maybe_text(3)?);
            all.push((row.int(0)?, RunInput { name, digest, context, body: String::new() }));
        }
        Ok(all)
    }

    /// Removes everything that was ever tracked in a workspace.
    pub(crate) fn purge_tracking(&mut self, workspace: &str) -> Result<(), Error> {
        for table in LOGGED {
            let sql = format!("delete from {table} where run in (select seq from runs where workspace = ?1)");
            self.exec(&sql, &[workspace.into()])?;
        }
        let tags = "delete from experiment_tags where experiment in (select seq from experiments where workspace = ?1)";
        self.exec(tags, &[workspace.into()])?;
        let points = "delete from model_points where model in (select seq from logged_models where workspace = ?1)";
        self.exec(points, &[workspace.into()])?;
        for table in ["runs", "experiments", "logged_models"] {
            self.exec(&format!("delete from {table} where workspace = ?1"), &[workspace.into()])?;
        }
        Ok(())
    }

    /// Removes a run that is not a job and everything logged to it.
    pub fn purge_run(&mut self, run: i64) -> Result<(), Error> {
        for table in LOGGED {
            self.exec(&format!("delete from {table} where run = ?1"), &[run.into()])?;
        }
        self.exec("delete from runs where seq = ?1 and job_seq is null", &[run.into()])?;
        Ok(())
    }
}

/// What is logged to a run.
const LOGGED: [&str; 7] =
    ["run_params", "run_tags", "latest_metrics", "point_batches", "point_chunks", "run_inputs", "run_models"];

pub(crate) fn run_of(mut row: Row) -> Result<RunRow, Error> {
    Ok(RunRow {
        seq: row.int(0)?,
        workspace: row.text(1)?,
        run_id: row.text(2)?,
        experiment: row.int(3)?,
        number: row.int(4)?,
        job_seq: row.maybe_int(5)?,
        name: row.text(6)?,
        user: row.text(7)?,
        status: row.text(8)?,
        started_at: Timestamp(row.int(9)?),
        ended_at: row.maybe_int(10)?.map(Timestamp),
        deleted_at: row.maybe_int(11)?.map(Timestamp),
        location: row.text(12)?,
    })
}
