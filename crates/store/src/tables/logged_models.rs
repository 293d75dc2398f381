//! Models that runs have logged, known by ids of their own; and the points that tell of one of them.
//!
//! A model's tags and params are read and written whole, so they are one text. Invariant: a point of a model is kept once.

use crate::{Error, Row, Tx};
use domain::{Timestamp, tracking::Point};
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub struct LoggedModelRow {
    pub seq: i64,
    pub workspace: String,
    pub model_id: String,
    /// The number of its experiment.
    pub number: i64,
    /// Where its experiment keeps files, if not here.
    pub location: String,
    pub name: String,
    pub model_type: Option<String>,
    pub source_run: Option<String>,
    /// MLflow's word for how far it is.
    pub status: String,
    pub status_message: Option<String>,
    pub deleted: bool,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
    pub tags: BTreeMap<String, String>,
    pub params: BTreeMap<String, String>,
}

/// A point of a metric that tells of a model, perhaps on some data.
#[derive(Debug, Clone)]
pub struct ModelPoint {
    pub model_id: String,
    pub run_id: String,
    pub key: String,
    pub point: Point,
    pub dataset_name: Option<String>,
    pub dataset_digest: Option<String>,
}

/// A model among what a run has read or made.
#[derive(Debug, Clone)]
pub struct RunModel {
    pub model_id: String,
    pub made: bool,
    pub step: Option<i64>,
}

const ROW: &str = "m.seq, m.workspace, m.model_id, e.number, e.artifact_location, m.name, m.model_type, m.source_run, \
                   m.status, m.status_message, m.deleted, m.created_at, m.changed_at, m.tags, m.params";

impl Tx<'_> {
    /// Adds a model to an experiment, by the experiment's place in the table.
    pub fn insert_logged_model(&mut self, experiment: i64, row: &LoggedModelRow) -> Result<(), Error> {
        self.exec(
            "insert into logged_models (workspace, model_id, experiment, name, model_type, source_run, status, \
             status_message, created_at, changed_at, tags, params) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            &[
                row.workspace.as_str().into(),
                row.model_id.as_str().into(),
                experiment.into(),
                row.name.as_str().into(),
                row.model_type.as_deref().into(),
                row.source_run.as_deref().into(),
                row.status.as_str().into(),
                row.status_message.as_deref().into(),
                row.created_at.into(),
                row.changed_at.into(),
                super::jobs::json(&row.tags)?.into(),
                super::jobs::json(&row.params)?.into(),
            ],
        )?;
        Ok(())
    }

    /// Writes what may change of a model.
    pub fn put_logged_model(&mut self, row: &LoggedModelRow) -> Result<(), Error> {
        self.exec(
            "update logged_models set status = ?2, status_message = ?3, deleted = ?4, changed_at = ?5, tags = ?6, \
             params = ?7 where seq = ?1",
            &[
                row.seq.into(),
                row.status.as_str().into(),
                row.status_message.as_deref().into(),
                row.deleted.into(),
                row.changed_at.into(),
                super::jobs::json(&row.tags)?.into(),
                super::jobs::json(&row.params)?.into(),
            ],
        )?;
        Ok(())
    }

    pub fn logged_model(&mut self, workspace: &str, model_id: &str) -> Result<Option<LoggedModelRow>, Error> {
        let sql = format!(
            "select {ROW} from logged_models m join experiments e on e.seq = m.experiment \
             where m.workspace = ?1 and m.model_id = ?2"
        );
        self.fetch_one(&sql, &[workspace.into(), model_id.into()])?.map(row_of).transpose()
    }

    /// The models of some experiments that were not deleted.
    pub fn logged_models(&mut self, workspace: &str, numbers: &[i64]) -> Result<Vec<LoggedModelRow>, Error> {
        let sql = format!(
            "select {ROW} from logged_models m join experiments e on e.seq = m.experiment \
             where m.workspace = ?2 and m.deleted = 0 and e.number in (select value from json_each(?1)) order by m.seq"
        );
        self.fetch(&sql, &[numbers.into(), workspace.into()])?.into_iter().map(row_of).collect()
    }

    /// Adds a point to the model it names; a model that is not there gets none.
    pub fn add_model_point(&mut self, workspace: &str, point: &ModelPoint) -> Result<(), Error> {
        let Point { timestamp_ms, step, value } = point.point;
        self.exec(
            "insert into model_points (model, run_id, key, at, step, value, dataset_name, dataset_digest) \
             select seq, ?3, ?4, ?5, ?6, ?7, ?8, ?9 from logged_models where workspace = ?1 and model_id = ?2 \
             on conflict do nothing",
            &[
                workspace.into(),
                point.model_id.as_str().into(),
                point.run_id.as_str().into(),
                point.key.as_str().into(),
                timestamp_ms.into(),
                step.into(),
                (!value.is_nan()).then_some(value).into(),
                point.dataset_name.as_deref().unwrap_or_default().into(),
                point.dataset_digest.as_deref().unwrap_or_default().into(),
            ],
        )?;
        Ok(())
    }

    /// The points of some models, by model, in the order they came.
    pub fn model_points(&mut self, models: &[i64]) -> Result<BTreeMap<i64, Vec<ModelPoint>>, Error> {
        let sql = "select p.model, m.model_id, p.run_id, p.key, p.at, p.step, p.value, p.dataset_name, p.dataset_digest \
                   from model_points p join logged_models m on m.seq = p.model \
                   where p.model in (select value from json_each(?1)) order by p.seq";
        let mut all: BTreeMap<i64, Vec<ModelPoint>> = BTreeMap::new();
        for mut row in self.fetch(sql, &[models.into()])? {
            let value = row.maybe_real(6)?.unwrap_or(f64::NAN);
            let given = |text: String| Some(text).filter(|text| !text.is_empty());
            all.entry(row.int(0)?).or_default().push(ModelPoint {
                model_id: row.text(1)?,
                run_id: row.text(2)?,
                key: row.text(3)?,
                point: Point { timestamp_ms: row.int(4)?, step: row.int(5)?, value },
                dataset_name: given(row.text(7)?),
                dataset_digest: given(row.text(8)?),
            });
        }
        Ok(all)
    }

    /// Notes that a run has read or made a model; said again, the later step counts.
    pub fn add_run_model(&mut self, run: i64, model: &RunModel) -> Result<(), Error> {
        self.exec(
            "insert into run_models (run, made, model_id, step) values (?1, ?2, ?3, ?4) \
             on conflict (run, made, model_id) do update set step = ?4",
            &[run.into(), model.made.into(), model.model_id.as_str().into(), model.step.into()],
        )?;
        Ok(())
    }

    /// The models some runs have read and made, by run.
    pub fn run_models(&mut self, runs: &[i64]) -> Result<BTreeMap<i64, Vec<RunModel>>, Error> {
        let sql = "select run, made, model_id, step from run_models \
                   where run in (select value from json_each(?1)) order by run, made, model_id";
        let mut all: BTreeMap<i64, Vec<RunModel>> = BTreeMap::new();
        for mut row in self.fetch(sql, &[runs.into()])? {
            let model = RunModel { made: row.int(1)? != 0, model_id: row.text(2)?, step: row.maybe_int(3)? };
            all.entry(row.int(0)?).or_default().push(model);
        }
        Ok(all)
    }
}

fn row_of(mut row: Row) -> Result<LoggedModelRow, Error> {
    Ok(LoggedModelRow {
        seq: row.int(0)?,
        workspace: row.text(1)?,
        model_id: row.text(2)?,
        number: row.int(3)?,
        location: row.text(4)?,
        name: row.text(5)?,
        model_type: row.maybe_text(6)?,
        source_run: row.maybe_text(7)?,
        status: row.text(8)?,
        status_message: row.maybe_text(9)?,
        deleted: row.int(10)? != 0,
        created_at: Timestamp(row.int(11)?),
        changed_at: Timestamp(row.int(12)?),
        tags: row.json(13)?,
        params: row.json(14)?,
    })
}
