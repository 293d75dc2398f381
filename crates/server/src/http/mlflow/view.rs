//! A run as MLflow shows it, whether it is a job or not.

use super::{artifacts, brief, call::Asker, key_values};
use domain::tracking::{Lifecycle, Point};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{Error, JobRow, Latest, RunModel, RunRow, Tx};

/// Everything shown of some runs, read together.
pub(super) struct Shown {
    runs: Vec<RunRow>,
    jobs: BTreeMap<i64, JobRow>,
    params: store::Texts,
    tags: store::Texts,
    metrics: BTreeMap<i64, Vec<Latest>>,
    inputs: BTreeMap<i64, Vec<String>>,
    models: BTreeMap<i64, Vec<RunModel>>,
}

impl Shown {
    pub(super) fn read(tx: &mut Tx<'_>, runs: Vec<RunRow>) -> Result<Shown, Error> {
        let seqs: Vec<i64> = runs.iter().map(|run| run.seq).collect();
        let jobs: Vec<i64> = runs.iter().filter_map(|run| run.job_seq).collect();
        Ok(Shown {
            jobs: tx.jobs_by_seq(&jobs)?.into_iter().map(|row| (row.job.seq, row)).collect(),
            params: tx.params_of(&seqs)?,
            tags: tx.tags_of(&seqs)?,
            metrics: tx.latest_of(&seqs)?,
            inputs: tx.inputs_of(&seqs)?,
            models: tx.run_models(&seqs)?,
            runs,
        })
    }

    pub(super) fn views(mut self, by: &Asker) -> Vec<Value> {
        let runs = std::mem::take(&mut self.runs);
        runs.iter().map(|run| self.view(by, run)).collect()
    }

    fn view(&mut self, by: &Asker, run: &RunRow) -> Value {
        let body = run.job_seq.and_then(|seq| self.jobs.remove(&seq)).map(|job| {
            let body: Value = serde_json::from_str(&job.body).unwrap_or_default();
            (job, body)
        });
        let mut params = self.params.remove(&run.seq).unwrap_or_default();
        let mut tags = self.tags.remove(&run.seq).unwrap_or_default();
        let mut name = run.name.clone();
        if let Some((job, body)) = &body {
            name = api::arm::text(body, "displayName").unwrap_or(name);
            add_job(job, body, &mut params, &mut tags);
            tags.insert("mlflow.runName".into(), name.clone());
        }
        let metrics = self.metrics.remove(&run.seq).unwrap_or_default();
        let metrics: Vec<Value> = metrics.iter().map(|latest| point(&latest.key, &latest.point)).collect();
        let inputs = self.inputs.remove(&run.seq).unwrap_or_default();
        let inputs: Vec<Value> = inputs.iter().filter_map(|body| serde_json::from_str(body).ok()).collect();
        let (made, read): (Vec<_>, Vec<_>) =
            self.models.remove(&run.seq).unwrap_or_default().into_iter().partition(|model| model.made);
        // Moved into place: `json!` would copy what may be very much.
        brief([
            ("info", info(by, run, &name)),
            (
                "data",
                brief([("metrics", metrics.into()), ("params", key_values(&params)), ("tags", key_values(&tags))]),
            ),
            ("inputs", brief([("dataset_inputs", inputs.into()), ("model_inputs", models(&read))])),
            ("outputs", brief([("model_outputs", models(&made))])),
        ])
    }
}

fn models(models: &[RunModel]) -> Value {
    models.iter().map(|model| brief([("model_id", json!(model.model_id)), ("step", json!(model.step))])).collect()
}

fn info(by: &Asker, run: &RunRow, name: &str) -> Value {
    let stage = if run.deleted_at.is_some() { Lifecycle::Deleted } else { Lifecycle::Active };
    brief([
        ("run_id", json!(run.run_id)),
        ("run_uuid", json!(run.run_id)),
        ("run_name", json!(name)),
        ("experiment_id", json!(run.number.to_string())),
        ("user_id", json!(run.user)),
        ("status", json!(run.status)),
        ("start_time", json!(run.started_at.0)),
        ("end_time", json!(run.ended_at.map(|at| at.0))),
        ("artifact_uri", json!(artifacts::run_uri(by, run))),
        ("lifecycle_stage", json!(stage.as_str())),
    ])
}

/// A job's own tags and literal inputs, which are its run's too. What was logged under the same key wins.
fn add_job(job: &JobRow, body: &Value, params: &mut BTreeMap<String, String>, tags: &mut BTreeMap<String, String>) {
    for (key, value) in api::arm::texts(body, "tags") {
        tags.entry(key).or_insert(value);
    }
    for (name, input) in body.get("inputs").and_then(Value::as_object).into_iter().flatten() {
        if let Some(value) = input.get("value").and_then(api::arm::scalar) {
            params.entry(name.clone()).or_insert(value);
        }
    }
    tags.entry("mlflow.user".into()).or_insert_with(|| job.created_by.clone());
    tags.entry("mlflow.source.type".into()).or_insert_with(|| "JOB".into());
}

/// A point; what JSON has no number for is written as text.
pub(super) fn point(key: &str, point: &Point) -> Value {
    json!({"key": key, "value": value(point.value), "timestamp": point.timestamp_ms, "step": point.step})
}

/// A metric's value.
pub(super) fn value(value: f64) -> Value {
    if value.is_nan() { json!("NaN") } else { json!(value) }
}
