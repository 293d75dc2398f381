//! Runs: what was logged, by whom, under which experiment. A job is its run.
//!
//! Invariants: a parameter is written once; a run that is a job has no status or times of its own.

use crate::{Error, NewJob, Row, Tx, tables::points::integers};
use domain::Timestamp;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub struct RunRow {
    pub seq: i64,
    pub workspace: String,
    pub run_id: String,
    /// The experiment's place in the table, and its number in the workspace.
    pub experiment: i64,
    pub number: i64,
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

/// Texts under a key, by run.
pub type Texts = BTreeMap<i64, BTreeMap<String, String>>;

pub(crate) const RUN: &str = "r.seq, r.workspace, r.run_id, r.experiment, e.number, r.job_seq, r.name, r.user, r.status, \
                              r.started_at, r.ended_at, r.deleted_at";

impl Tx<'_> {
    /// The run of a job that was just accepted.
    pub(crate) fn insert_job_run(&mut self, job_seq: i64, new: &NewJob) -> Result<(), Error> {
        let experiment = self.experiment_named(&new.workspace, &new.experiment, new.at)?;
        self.insert_run(&NewRun {
            workspace: &new.workspace,
            run_id: new.name.as_str(),
            experiment,
            job_seq: Some(job_seq),
            name: new.name.as_str(),
            user: &new.created_by,
            status: "",
            started_at: new.at,
        })?;
        Ok(())
    }

    pub fn insert_run(&mut self, new: &NewRun<'_>) -> Result<i64, Error> {
        self.exec(
            "insert into runs (workspace, run_id, experiment, job_seq, name, user, status, started_at) \
             values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
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
        )?;
        Ok(self.on.last_insert_rowid())
    }

    pub fn run(&mut self, workspace: &str, run_id: &str) -> Result<Option<RunRow>, Error> {
        let sql = format!(
            "select {RUN} from runs r join experiments e on e.seq = r.experiment where r.workspace = ?1 and r.run_id = ?2"
        );
        self.fetch_one(&sql, &[workspace.into(), run_id.into()])?.map(run_of).transpose()
    }

    /// Writes what may change of a run that is not a job.
    pub fn put_run(&mut self, row: &RunRow) -> Result<(), Error> {
        self.exec(
            "update runs set name = ?2, status = ?3, ended_at = ?4, deleted_at = ?5 where seq = ?1",
            &[
                row.seq.into(),
                row.name.as_str().into(),
                row.status.as_str().into(),
                row.ended_at.map(|at| at.0).into(),
                row.deleted_at.map(|at| at.0).into(),
            ],
        )?;
        Ok(())
    }

    /// Writes a parameter once; the value it had before, if it had one.
    pub fn add_param(&mut self, run: i64, key: &str, value: &str) -> Result<Option<String>, Error> {
        let known = self.fetch_one(
            "select value from run_params where run = ?1 and key = ?2",
            &[run.into(), key.into()],
        )?;
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
        let sql = format!("select run, key, value from {table} where run in ({})", integers(runs));
        let mut all = Texts::new();
        for mut row in self.fetch(&sql, &[])? {
            let (run, key, value) = (row.int(0)?, row.text(1)?, row.text(2)?);
            all.entry(run).or_default().insert(key, value);
        }
        Ok(all)
    }

    /// Adds a dataset a run has read; one it names again stays as it was.
    pub fn add_run_input(&mut self, run: i64, name: &str, digest: &str, body: &str) -> Result<(), Error> {
        self.exec(
            "insert into run_inputs (run, name, digest, body) values (?1, ?2, ?3, ?4) on conflict do nothing",
            &[run.into(), name.into(), digest.into(), body.into()],
        )?;
        Ok(())
    }

    /// The datasets runs have read, as they were sent, by run.
    pub fn inputs_of(&mut self, runs: &[i64]) -> Result<BTreeMap<i64, Vec<String>>, Error> {
        let sql = format!("select run, body from run_inputs where run in ({}) order by run, name, digest", integers(runs));
        let mut all: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for mut row in self.fetch(&sql, &[])? {
            let run = row.int(0)?;
            all.entry(run).or_default().push(row.text(1)?);
        }
        Ok(all)
    }

    /// Removes a run that is not a job and everything logged to it.
    pub fn purge_run(&mut self, run: i64) -> Result<(), Error> {
        for table in ["run_params", "run_tags", "latest_metrics", "point_batches", "point_chunks", "run_inputs"] {
            self.exec(&format!("delete from {table} where run = ?1"), &[run.into()])?;
        }
        self.exec("delete from runs where seq = ?1 and job_seq is null", &[run.into()])?;
        Ok(())
    }
}

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
    })
}
