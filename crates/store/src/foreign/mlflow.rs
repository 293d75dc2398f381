//! The SQLite database of an MLflow server: experiments, runs and what was logged to them, as plain rows.
//!
//! MLflow has added columns and tables for years and seldom taken any away, so what counts is which of them are there, not
//! the revision's name: what a database lacks reads as nothing. Invariant: rows come in an order that does not change.

mod models;
mod schema;

pub use models::{LoggedModel, ModelPoint, RegisteredModel, Version};

use super::ForeignError;
use domain::tracking::{Point, limits};
use rusqlite::{Connection, OpenFlags, ToSql};
use schema::Schema;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// Texts under a key.
pub type Texts = BTreeMap<String, String>;

/// The database of an MLflow server.
pub struct Mlflow {
    on: Connection,
    path: PathBuf,
    schema: Schema,
}

/// An experiment.
#[derive(Debug, Clone)]
pub struct Experiment {
    pub id: i64,
    pub name: String,
    pub artifact_location: String,
    pub deleted: bool,
    /// Milliseconds; old databases do not know.
    pub created_at: Option<i64>,
    pub tags: Texts,
}

/// A run, without what was logged to it.
#[derive(Debug, Clone)]
pub struct Run {
    pub id: String,
    pub name: String,
    pub user: String,
    pub status: String,
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
    pub deleted: bool,
    pub artifact_uri: String,
}

/// What was logged to a run.
#[derive(Debug, Clone, Default)]
pub struct Logged {
    pub params: Texts,
    pub tags: Texts,
    /// Every point of every metric, by key.
    pub points: Vec<(String, Point)>,
    pub datasets: Vec<Dataset>,
    /// Logged models it has read, and those it has made, with the step.
    pub read: Vec<(String, i64)>,
    pub made: Vec<(String, i64)>,
}

/// A dataset a run has read.
#[derive(Debug, Clone)]
pub struct Dataset {
    pub name: String,
    pub digest: String,
    pub source_type: String,
    pub source: String,
    pub schema: Option<String>,
    pub profile: Option<String>,
    pub tags: Texts,
}

impl Mlflow {
    /// Opens a database to read it.
    pub fn open(path: &Path) -> Result<Mlflow, ForeignError> {
        if !path.is_file() {
            return Err(ForeignError::Missing { path: path.to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let on = Connection::open_with_flags(path, flags).map_err(|source| opened(path, source))?;
        on.busy_timeout(std::time::Duration::from_secs(30)).map_err(|source| opened(path, source))?;
        let schema = Schema::read(&on).map_err(|source| opened(path, source))?;
        schema.check(path)?;
        Ok(Mlflow { on, path: path.to_owned(), schema })
    }

    /// The revision its schema has, in MLflow's own words.
    pub fn revision(&self) -> &str {
        &self.schema.revision
    }

    /// The experiments, in the order they were made.
    pub fn experiments(&self) -> Result<Vec<Experiment>, ForeignError> {
        let table = self.schema.table("experiments");
        let sql = format!(
            "select experiment_id, name, {}, {}, {} from experiments where {} order by experiment_id",
            table.or("artifact_location", "''"),
            table.or("lifecycle_stage", "'active'"),
            table.or("creation_time", "null"),
            table.in_workspace(),
        );
        let mut tags = self.tags_by("experiment_tags", "experiment_id", "key", "value")?;
        self.rows("experiments", &sql, &[], |row| {
            let id: i64 = row.get(0)?;
            Ok(Experiment {
                id,
                name: row.get(1)?,
                artifact_location: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
                deleted: row.get::<_, Option<String>>(3)?.as_deref() == Some("deleted"),
                created_at: row.get(4)?,
                tags: tags.remove(&id.to_string()).unwrap_or_default(),
            })
        })
    }

    /// The runs of an experiment, oldest first.
    pub fn runs(&self, experiment: i64) -> Result<Vec<Run>, ForeignError> {
        let table = self.schema.table("runs");
        let sql = format!(
            "select run_uuid, {}, user_id, status, start_time, end_time, lifecycle_stage, {} from runs \
             where experiment_id = ?1 order by start_time, run_uuid",
            table.or("name", "''"),
            table.or("artifact_uri", "''"),
        );
        self.rows("runs", &sql, &[&experiment], |row| {
            let text = |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<String>>(at)?.unwrap_or_default());
            Ok(Run {
                id: row.get(0)?,
                name: text(1)?,
                user: text(2)?,
                status: text(3)?,
                started_at: row.get(4)?,
                ended_at: row.get(5)?,
                deleted: text(6)? == "deleted",
                artifact_uri: text(7)?,
            })
        })
    }

    /// Everything logged to a run.
    pub fn logged(&self, run: &str) -> Result<Logged, ForeignError> {
        Ok(Logged {
            params: self.texts("params", "select key, value from params where run_uuid = ?1", run)?,
            tags: self.texts("tags", "select key, value from tags where run_uuid = ?1", run)?,
            points: self.points(run)?,
            datasets: self.datasets(run)?,
            read: self.models_of(run, "RUN_INPUT", "MODEL_INPUT")?,
            made: self.models_of(run, "RUN_OUTPUT", "MODEL_OUTPUT")?,
        })
    }

    /// What the database holds that [`Mlflow`] does not read, and how many of each.
    pub fn unread(&self) -> Result<Vec<(&'static str, u64)>, ForeignError> {
        let mut unread = Vec::new();
        for (table, what) in
            [("trace_info", "traces"), ("webhooks", "webhooks"), ("evaluation_datasets", "evaluation datasets")]
        {
            if self.schema.has(table) {
                unread.push((what, self.count(&format!("select count(*) from {table}"))?));
            }
        }
        let experiments = self.schema.table("experiments");
        let elsewhere = format!("select count(*) from experiments where not ({})", experiments.in_workspace());
        unread.push(("experiments of other workspaces than `default`", self.count(&elsewhere)?));
        unread.retain(|(_, count)| *count > 0);
        Ok(unread)
    }

    fn count(&self, sql: &str) -> Result<u64, ForeignError> {
        let rows = self.rows("counts", sql, &[], |row| row.get::<_, i64>(0))?;
        Ok(rows.first().and_then(|count| u64::try_from(*count).ok()).unwrap_or(0))
    }

    fn points(&self, run: &str) -> Result<Vec<(String, Point)>, ForeignError> {
        let table = self.schema.table("metrics");
        let sql = format!(
            "select key, value, timestamp, {}, {} from metrics where run_uuid = ?1 order by key, timestamp, 4, value, 5",
            table.or("step", "0"),
            table.or("is_nan", "0"),
        );
        self.rows("metrics", &sql, &[&run], |row| {
            let nan = row.get::<_, Option<bool>>(4)?.unwrap_or(false);
            let value = row.get::<_, Option<f64>>(1)?.filter(|_| !nan).unwrap_or(f64::NAN);
            let timestamp_ms = row.get::<_, Option<i64>>(2)?.unwrap_or(0);
            let step = row.get::<_, Option<i64>>(3)?.unwrap_or(0);
            Ok((row.get(0)?, Point { value: finite(value), timestamp_ms, step }))
        })
    }

    fn datasets(&self, run: &str) -> Result<Vec<Dataset>, ForeignError> {
        if !self.schema.has("inputs") || !self.schema.has("datasets") {
            return Ok(Vec::new());
        }
        let sql = "select i.input_uuid, d.name, d.digest, d.dataset_source_type, d.dataset_source, d.dataset_schema, \
                   d.dataset_profile from inputs i join datasets d on d.dataset_uuid = i.source_id \
                   where i.source_type = 'DATASET' and i.destination_type = 'RUN' and i.destination_id = ?1 \
                   order by d.name, d.digest";
        let found = self.rows("inputs", sql, &[&run], |row| {
            let dataset = Dataset {
                name: row.get(1)?,
                digest: row.get(2)?,
                source_type: row.get(3)?,
                source: row.get(4)?,
                schema: row.get(5)?,
                profile: row.get(6)?,
                tags: Texts::new(),
            };
            Ok((row.get::<_, String>(0)?, dataset))
        })?;
        let tagged = |(input, dataset): (String, Dataset)| {
            let tags =
                self.texts("tags of inputs", "select name, value from input_tags where input_uuid = ?1", &input)?;
            Ok(Dataset { tags, ..dataset })
        };
        found.into_iter().map(tagged).collect()
    }

    fn models_of(&self, run: &str, from: &str, to: &str) -> Result<Vec<(String, i64)>, ForeignError> {
        if !self.schema.has("inputs") {
            return Ok(Vec::new());
        }
        let sql = format!(
            "select destination_id, {} from inputs where source_type = ?2 and destination_type = ?3 and source_id = ?1 \
             order by destination_id",
            self.schema.table("inputs").or("step", "0")
        );
        self.rows("models of runs", &sql, &[&run, &from, &to], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn texts(&self, what: &'static str, sql: &str, of: &str) -> Result<Texts, ForeignError> {
        let pair = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?.unwrap_or_default()))
        };
        Ok(self.rows(what, sql, &[&of], pair)?.into_iter().collect())
    }

    /// The texts of a whole table, by whose they are.
    fn tags_by(
        &self,
        table: &'static str,
        owner: &str,
        key: &str,
        value: &str,
    ) -> Result<BTreeMap<String, Texts>, ForeignError> {
        let mut all: BTreeMap<String, Texts> = BTreeMap::new();
        if !self.schema.has(table) {
            return Ok(all);
        }
        let sql = format!(
            "select cast({owner} as text), {key}, {value} from {table} where {}",
            self.schema.table(table).in_workspace()
        );
        let triple = |row: &rusqlite::Row<'_>| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<String>>(2)?.unwrap_or_default()))
        };
        for (owner, key, value) in self.rows(table, &sql, &[], triple)? {
            all.entry(owner).or_default().insert(key, value);
        }
        Ok(all)
    }

    fn rows<T>(
        &self,
        what: &'static str,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, ForeignError> {
        let all = || self.on.prepare_cached(sql)?.query_map(values, read)?.collect::<rusqlite::Result<Vec<T>>>();
        all().map_err(|source| ForeignError::Read { what, path: self.path.clone(), source })
    }
}

/// MLflow's servers keep an infinity as the largest number there is.
fn finite(value: f64) -> f64 {
    if value.is_nan() { value } else { limits::stored(value).0 }
}

fn opened(path: &Path, source: rusqlite::Error) -> ForeignError {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => ForeignError::NotSqlite { path: path.to_owned() },
        _ => ForeignError::Read { what: "the schema", path: path.to_owned(), source },
    }
}
