//! A run as MLflow shows it, whether it is a job or not.

use super::{Call, artifacts};
use domain::{JobState, Outcome, Timestamp, tracking::points::Point};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::{Error, JobRow, Latest, RunRow, Tx};

/// Everything shown of some runs, read together.
pub(super) struct Shown {
    runs: Vec<RunRow>,
    jobs: BTreeMap<i64, JobRow>,
    params: store::Texts,
    tags: store::Texts,
    metrics: BTreeMap<i64, Vec<Latest>>,
    inputs: BTreeMap<i64, Vec<String>>,
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
            runs,
        })
    }

    pub(super) fn views(mut self, call: &Call) -> Vec<Value> {
        let runs = std::mem::take(&mut self.runs);
        runs.iter().map(|run| self.view(call, run)).collect()
    }

    fn view(&mut self, call: &Call, run: &RunRow) -> Value {
        let job = run.job_seq.and_then(|seq| self.jobs.remove(&seq));
        let mut params = self.params.remove(&run.seq).unwrap_or_default();
        let mut tags = self.tags.remove(&run.seq).unwrap_or_default();
        if let Some(job) = &job {
            add_job(job, &mut params, &mut tags);
        }
        tags.entry("mlflow.runName".into()).or_insert_with(|| name_of(run, job.as_ref()));
        let metrics: Vec<Value> = self.metrics.remove(&run.seq).unwrap_or_default().iter().map(latest).collect();
        let inputs: Vec<Value> = self
            .inputs
            .remove(&run.seq)
            .unwrap_or_default()
            .iter()
            .filter_map(|body| serde_json::from_str(body).ok())
            .collect();
        let mut data = Map::new();
        let mut put = |key: &str, items: Vec<Value>| {
            if !items.is_empty() {
                data.insert(key.to_owned(), Value::Array(items));
            }
        };
        put("metrics", metrics);
        put("params", pairs(&params));
        put("tags", pairs(&tags));
        let mut inputs_shown = Map::new();
        if !inputs.is_empty() {
            inputs_shown.insert("dataset_inputs".into(), Value::Array(inputs));
        }
        json!({"info": info(call, run, job.as_ref()), "data": data, "inputs": inputs_shown})
    }
}

/// The facts of a run, without what was logged.
pub(super) fn info(call: &Call, run: &RunRow, job: Option<&JobRow>) -> Value {
    let (status, started_at, ended_at) = match job {
        Some(job) => of_state(&job.job.state, job.job.created_at),
        None => (run.status.as_str(), run.started_at, run.ended_at),
    };
    let mut info = json!({
        "run_id": run.run_id, "run_uuid": run.run_id, "run_name": name_of(run, job), "experiment_id": run.number.to_string(),
        "user_id": run.user, "status": status, "start_time": started_at.0,
        "artifact_uri": artifacts::run_uri(call, run), "lifecycle_stage": if run.deleted_at.is_some() { "deleted" } else { "active" },
    });
    if let Some(at) = ended_at {
        info["end_time"] = json!(at.0);
    }
    info
}

fn name_of(run: &RunRow, job: Option<&JobRow>) -> String {
    let shown = job.and_then(|job| api::arm::text(&serde_json::from_str(&job.body).ok()?, "displayName"));
    shown.unwrap_or_else(|| run.name.clone())
}

/// A job's state in MLflow's words, when it began and when it ended.
fn of_state(state: &JobState, created_at: Timestamp) -> (&'static str, Timestamp, Option<Timestamp>) {
    let started = state.started_at().unwrap_or(created_at);
    match state {
        JobState::Queued { .. } | JobState::Placed { .. } | JobState::Preparing { .. } => ("SCHEDULED", started, None),
        JobState::Running { .. } | JobState::Finalizing { .. } | JobState::Stopping { .. } => ("RUNNING", started, None),
        JobState::Ended { outcome, at, .. } => {
            let word = match outcome {
                Outcome::Completed => "FINISHED",
                Outcome::Failed(_) => "FAILED",
                Outcome::Canceled { .. } => "KILLED",
            };
            (word, started, Some(*at))
        }
    }
}

/// A job's own tags and literal inputs, which are its run's too. What was logged under the same key wins.
fn add_job(job: &JobRow, params: &mut BTreeMap<String, String>, tags: &mut BTreeMap<String, String>) {
    let body: Value = serde_json::from_str(&job.body).unwrap_or_default();
    for (key, value) in api::arm::texts(&body, "tags") {
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

fn pairs(texts: &BTreeMap<String, String>) -> Vec<Value> {
    texts.iter().map(|(key, value)| json!({"key": key, "value": value})).collect()
}

fn latest(latest: &Latest) -> Value {
    point(&latest.key, &latest.point)
}

/// A point; what JSON has no number for is written as text.
pub(super) fn point(key: &str, point: &Point) -> Value {
    let value = match point.value {
        value if value.is_nan() => json!("NaN"),
        value if value.is_infinite() => json!(if value > 0.0 { "Infinity" } else { "-Infinity" }),
        value => json!(value),
    };
    json!({"key": key, "value": value, "timestamp": point.timestamp_ms, "step": point.step})
}
