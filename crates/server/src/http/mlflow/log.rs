//! Logging: points, parameters, tags, inputs; and the way back to points.
//!
//! Invariants: a call's arguments are all checked before anything is written, and written in one transaction; the answer
//! is sent when they are on disk.

use super::{Answer, Call, Fault, body_of, caller_of, done, find_run, int_of, runs::find_active, view, workspace_of};
use crate::app::App;
use axum::{
    Json,
    extract::{Request, State},
};
use domain::{
    Timestamp,
    tracking::{
        limits,
        points::{self, Point},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Error, RunRow, Tx};

/// What one call logs, checked.
#[derive(Default)]
struct Entries {
    metrics: Vec<(String, Point)>,
    params: Vec<(String, String)>,
    tags: Vec<(String, String)>,
}

pub(super) async fn metric(State(app): State<App>, call: Call) -> Answer {
    let metric = metric_of(&Value::Object(call.args.clone()), 0)?;
    write(&app, &call, Entries { metrics: vec![metric], ..Entries::default() }).await
}

pub(super) async fn param(State(app): State<App>, call: Call) -> Answer {
    let (key, value) = (call.need("key")?, call.text("value")?.unwrap_or_default());
    limits::param(&key, &value)?;
    write(&app, &call, Entries { params: vec![(key, value)], ..Entries::default() }).await
}

pub(super) async fn set_tag(State(app): State<App>, call: Call) -> Answer {
    let (key, value) = (call.need("key")?, call.text("value")?.unwrap_or_default());
    limits::tag(&key, &value)?;
    write(&app, &call, Entries { tags: vec![(key, value)], ..Entries::default() }).await
}

pub(super) async fn delete_tag(State(app): State<App>, call: Call) -> Answer {
    let (run_id, key) = (call.run_id()?, call.need("key")?);
    let (workspace, caller, now) = (call.workspace.name.clone(), call.caller.clone(), app.now());
    app.store
        .write(move |tx| {
            let row = match find_active(tx, &workspace, &caller, &run_id)? {
                Ok(row) => row,
                Err(fault) => return Ok(Err(fault)),
            };
            let here = tx.delete_run_tag(row.seq, &key)?;
            let there = change_job_tags(tx, &row, now, |tags| tags.shift_remove(&key).is_some())?;
            let missing = || Fault::missing(format!("No tag with name: {key} in run with id {run_id}"));
            Ok(if here || there { Ok(()) } else { Err(missing()) })
        })
        .await??;
    Ok(done())
}

/// The body of a batch, read straight into what is needed: batches are where logging spends its time.
#[derive(Deserialize)]
struct Batch {
    #[serde(default)]
    run_id: Option<String>,
    #[serde(default)]
    metrics: Option<Vec<Metric>>,
    #[serde(default)]
    params: Option<Vec<Pair>>,
    #[serde(default)]
    tags: Option<Vec<Pair>>,
}

#[derive(Deserialize)]
struct Metric {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    timestamp: Value,
    #[serde(default)]
    step: Value,
}

#[derive(Deserialize)]
struct Pair {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    value: Option<String>,
}

pub(super) async fn batch(State(app): State<App>, mut request: Request) -> Answer {
    let workspace = workspace_of(&app, &mut request).await?;
    let caller = caller_of(&request)?;
    let bytes = body_of(request, &app).await?;
    limits::batch_bytes(bytes.len())?;
    let batch: Batch = serde_json::from_slice(&bytes)
        .map_err(|error| Fault::invalid(format!("the body is not a batch: {error}")))?;
    let run_id = batch.run_id.filter(|id| !id.is_empty()).ok_or_else(|| super::missing_value("run_id"))?;
    let (metrics, params) = (batch.metrics.unwrap_or_default(), batch.params.unwrap_or_default());
    let tags = batch.tags.unwrap_or_default();
    limits::batch(metrics.len(), params.len(), tags.len())?;
    let mut entries = Entries::default();
    for (n, metric) in metrics.into_iter().enumerate() {
        entries.metrics.push(checked_metric(n, metric)?);
    }
    for pair in params {
        let (key, value) = pair_of(pair)?;
        limits::param(&key, &value)?;
        entries.params.push((key, value));
    }
    limits::distinct_params(&entries.params)?;
    for pair in tags {
        let (key, value) = pair_of(pair)?;
        limits::tag(&key, &value)?;
        entries.tags.push((key, value));
    }
    record(&app, workspace.name.clone(), caller, run_id, entries).await
}

fn pair_of(pair: Pair) -> Result<(String, String), Fault> {
    let key = pair.key.filter(|key| !key.is_empty()).ok_or_else(|| super::missing_value("key"))?;
    Ok((key, pair.value.unwrap_or_default()))
}

fn checked_metric(n: usize, metric: Metric) -> Result<(String, Point), Fault> {
    let key = metric.key.filter(|key| !key.is_empty()).ok_or_else(|| super::missing_value(&format!("metrics[{n}].key")))?;
    limits::metric_name(&key)?;
    let value = number_of(&metric.value)
        .ok_or_else(|| super::bad_value(&format!("metrics[{n}].value"), &metric.value))?;
    let timestamp_ms = int_of(&metric.timestamp)
        .ok_or_else(|| super::bad_value(&format!("metrics[{n}].timestamp"), &metric.timestamp))?;
    let step = match &metric.step {
        Value::Null => 0,
        step => int_of(step).ok_or_else(|| super::bad_value(&format!("metrics[{n}].step"), step))?,
    };
    Ok((key, Point { timestamp_ms, step, value }))
}

fn metric_of(item: &Value, n: usize) -> Result<(String, Point), Fault> {
    let field = |key: &str| item.get(key).cloned().unwrap_or_default();
    if field("value").is_null() || field("timestamp").is_null() {
        return Err(super::missing_value(if field("value").is_null() { "value" } else { "timestamp" }));
    }
    let key = item.get("key").and_then(Value::as_str).map(str::to_owned);
    checked_metric(n, Metric { key, value: field("value"), timestamp: field("timestamp"), step: field("step") })
}

/// A metric's value; some numbers have no JSON of their own and come as words.
fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(word) => limits::metric_word(word),
        _ => None,
    }
}

async fn write(app: &App, call: &Call, entries: Entries) -> Answer {
    record(app, call.workspace.name.clone(), call.caller.clone(), call.run_id()?, entries).await
}

async fn record(
    app: &App,
    workspace: String,
    caller: crate::auth::Caller,
    run_id: String,
    entries: Entries,
) -> Answer {
    let now = app.now();
    let written = app.store.write(move |tx| {
        let row = match find_active(tx, &workspace, &caller, &run_id)? {
            Ok(row) => row,
            Err(fault) => return Ok(Err(fault)),
        };
        for (key, value) in &entries.params {
            if let Some(before) = tx.add_param(row.seq, key, value)?
                && before != *value
            {
                // Nothing of the call may stand: what was written so far is undone with this error.
                return Err(Error::Refused(changed_param(&run_id, key, &before, value)));
            }
        }
        for (key, value) in &entries.tags {
            put_tag(tx, &row, key, value, now)?;
        }
        let metrics: Vec<(&str, Point)> = entries.metrics.iter().map(|(key, point)| (key.as_str(), *point)).collect();
        tx.append_points(row.seq, &metrics)?;
        tx.ring(store::Bell::Points);
        Ok(Ok(()))
    });
    match written.await {
        Err(Error::Refused(message)) => Err(Fault::invalid(message)),
        other => other?.map(|()| done()),
    }
}

fn changed_param(run_id: &str, key: &str, before: &str, value: &str) -> String {
    format!(
        "Changing param values is not allowed. Param with key='{key}' was already logged with value='{before}' \
         for run ID='{run_id}'. Attempted logging new value '{value}'."
    )
}

/// A job's tags are in its record; MLflow's own words about a run stay beside it.
fn put_tag(tx: &mut Tx<'_>, row: &RunRow, key: &str, value: &str, now: Timestamp) -> Result<(), Error> {
    if key == "mlflow.runName" {
        tx.put_run(&RunRow { name: value.to_owned(), ..row.clone() })?;
    }
    if row.job_seq.is_none() || key.starts_with("mlflow.") {
        return tx.put_run_tag(row.seq, key, value);
    }
    change_job_tags(tx, row, now, |tags| {
        tags.insert(key.to_owned(), json!(value));
        true
    })
    .map(drop)
}

/// Changes the tags of the job a run is; whether `edit` changed any.
fn change_job_tags(
    tx: &mut Tx<'_>,
    row: &RunRow,
    now: Timestamp,
    edit: impl FnOnce(&mut serde_json::Map<String, Value>) -> bool,
) -> Result<bool, Error> {
    let job = row.job_seq.map(|seq| tx.jobs_by_seq(&[seq])).transpose()?.and_then(|mut rows| rows.pop());
    let Some(job) = job else { return Ok(false) };
    let mut body: Value = serde_json::from_str(&job.body).unwrap_or_default();
    if !body["tags"].is_object() {
        body["tags"] = json!({});
    }
    let changed = body["tags"].as_object_mut().is_some_and(edit);
    if changed {
        tx.put_job_body(job.job.seq, &body.to_string(), job.archived, now)?;
    }
    Ok(changed)
}

/// Datasets a run has read, kept as they were sent.
pub(super) async fn inputs(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.run_id()?;
    let mut datasets = Vec::new();
    for item in call.list("datasets")? {
        let dataset = item.get("dataset").cloned().unwrap_or_default();
        let text = |key: &str| dataset.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        limits::dataset(&text("name"), &text("digest"), &text("source_type"), &text("source"))?;
        datasets.push((text("name"), text("digest"), item.to_string()));
    }
    let (workspace, caller) = (call.workspace.name.clone(), call.caller.clone());
    app.store
        .write(move |tx| {
            let row = match find_active(tx, &workspace, &caller, &run_id)? {
                Ok(row) => row,
                Err(fault) => return Ok(Err(fault)),
            };
            datasets.iter().try_for_each(|(name, digest, body)| tx.add_run_input(row.seq, name, digest, body))?;
            Ok(Ok(()))
        })
        .await??;
    Ok(done())
}

/// The note that older clients leave on a run when they log a model.
pub(super) async fn model(State(app): State<App>, call: Call) -> Answer {
    const KEY: &str = "mlflow.log-model.history";
    let (run_id, text) = (call.run_id()?, call.need("model_json")?);
    let model: Value = serde_json::from_str(&text)
        .map_err(|_| Fault::invalid(format!("Malformed model info. \n {} \n is not valid JSON.", &text[..text.len().min(200)])))?;
    let missing: Vec<&str> =
        ["artifact_path", "flavors", "utc_time_created", "run_id"].into_iter().filter(|key| model.get(key).is_none()).collect();
    if !missing.is_empty() {
        return Err(Fault::invalid(format!("Model json is missing mandatory fields: {missing:?}")));
    }
    let (workspace, caller) = (call.workspace.name.clone(), call.caller.clone());
    app.store
        .write(move |tx| {
            let row = match find_active(tx, &workspace, &caller, &run_id)? {
                Ok(row) => row,
                Err(fault) => return Ok(Err(fault)),
            };
            let known = tx.tags_of(&[row.seq])?.remove(&row.seq).and_then(|mut tags| tags.remove(KEY));
            let mut all: Vec<Value> = known.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            all.push(model);
            tx.put_run_tag(row.seq, KEY, &Value::Array(all).to_string())?;
            Ok(Ok(()))
        })
        .await??;
    Ok(done())
}

/// Models a run has made are found by the run they name; the run must be there.
pub(super) async fn outputs(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.run_id()?;
    let (workspace, caller) = (call.workspace.name.clone(), call.caller.clone());
    app.store.read(move |tx| find_active(tx, &workspace, &caller, &run_id)).await??;
    Ok(done())
}

async fn points_of(app: &App, call: &Call, run_id: String, key: String) -> Result<Vec<Point>, Fault> {
    let (workspace, caller) = (call.workspace.name.clone(), call.caller.clone());
    app.store
        .read(move |tx| match find_run(tx, &workspace, &caller, &run_id)? {
            Ok(row) => Ok(Ok(tx.history(row.seq, &key)?)),
            Err(fault) => Ok(Err(fault)),
        })
        .await?
}

pub(super) async fn history(State(app): State<App>, call: Call) -> Answer {
    let (run_id, key) = (call.run_id()?, call.need("metric_key")?);
    let most = call.int("max_results")?;
    if most.is_some_and(|most| most <= 0) {
        let most = most.unwrap_or_default();
        return Err(Fault::invalid(format!(
            "Invalid value {most} for parameter 'max_results' supplied. It must be a positive integer."
        )));
    }
    let from = super::search::offset(&call)?;
    let all = points_of(&app, &call, run_id, key.clone()).await?;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let page: Vec<Value> = all.iter().skip(from).take(most).map(|point| view::point(&key, point)).collect();
    let mut answer = json!({"metrics": page});
    if from.saturating_add(most) < all.len() {
        answer["next_page_token"] = json!(super::search::token(from + most));
    }
    Ok(Json(answer))
}

/// How many points a chart gets of each run unless it asks for fewer.
const CHART_POINTS: i64 = 320;
const CHART_RUNS: usize = 100;

/// Points of a metric of several runs, thinned so that a chart shows what all of them would.
pub(super) async fn history_bulk(State(app): State<App>, call: Call) -> Answer {
    let (ids, key) = (call.texts("run_ids")?, call.need("metric_key")?);
    let ids: Vec<String> = ids.iter().flat_map(|ids| ids.split(',')).map(str::to_owned).collect();
    if ids.is_empty() || ids.len() > CHART_RUNS {
        return Err(Fault::invalid(format!("GetMetricHistoryBulkInterval request must specify 1 to {CHART_RUNS} run_ids.")));
    }
    let most = call.int("max_results")?.unwrap_or(CHART_POINTS).clamp(1, 2500);
    let (start, end) = (call.int("start_step")?.unwrap_or(i64::MIN), call.int("end_step")?.unwrap_or(i64::MAX));
    let mut all = Vec::new();
    for run_id in ids {
        let points = points_of(&app, &call, run_id.clone(), key.clone()).await?;
        let within: Vec<Point> = points.into_iter().filter(|p| (start..=end).contains(&p.step)).collect();
        for point in points::downsample(&within, usize::try_from(most).unwrap_or(1)) {
            let mut shown = view::point(&key, &point);
            shown["run_id"] = json!(run_id);
            all.push(shown);
        }
    }
    Ok(Json(json!({"metrics": all})))
}
