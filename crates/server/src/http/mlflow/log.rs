//! Logging: points, parameters and tags.
//!
//! Invariants: a call's arguments are all checked before anything is written, and written in one transaction; the answer
//! is sent when they are on disk.

use super::{
    Answer,
    call::{self, Asker, Call, number, pair_of, whole_number},
    done,
    fault::{Fault, write},
    runs::{NAME, rename_job},
};
use crate::app::App;
use axum::extract::{Request, State};
use domain::{
    Timestamp,
    tracking::{
        Point,
        limits::{self, Place},
    },
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::{Error, ModelPoint, RunRow, Tx};

/// What one call logs, checked.
#[derive(Default)]
struct Entries {
    metrics: Vec<Metric>,
    params: Vec<(String, String)>,
    tags: Vec<(String, String)>,
}

/// A point of a metric, and of which model on which data it tells.
struct Metric {
    key: String,
    point: Point,
    model: Option<ModelPoint>,
}

pub(super) async fn metric(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.need("run_id")?;
    call.need("key")?;
    for (key, fits) in [("value", is_number as fn(&Value) -> bool), ("timestamp", is_whole), ("step", is_whole)] {
        if let Some(value) = call.args.get(key).filter(|value| !fits(value)) {
            return Err(Fault::mistyped(key, value));
        }
    }
    let sent = Sent::deserialize(Value::Object(call.args.clone())).map_err(|error| unread(&error))?;
    let entries = Entries { metrics: vec![sent.checked(Place::Top)?], ..Entries::default() };
    record(&app, call.by, run_id, entries).await
}

pub(super) async fn param(State(app): State<App>, call: Call) -> Answer {
    let (run_id, key, value) = (call.need("run_id")?, call.need("key")?, call.word("value")?);
    let value = limits::param(&key, &value, Place::Top)?.to_owned();
    record(&app, call.by, run_id, Entries { params: vec![(key, value)], ..Entries::default() }).await
}

pub(super) async fn set_tag(State(app): State<App>, call: Call) -> Answer {
    let (run_id, key, value) = (call.need("run_id")?, call.need("key")?, call.word("value")?);
    let value = limits::tag(&key, &value, Place::Top)?.to_owned();
    record(&app, call.by, run_id, Entries { tags: vec![(key, value)], ..Entries::default() }).await
}

pub(super) async fn delete_tag(State(app): State<App>, call: Call) -> Answer {
    let (run_id, key) = (call.need("run_id")?, call.need("key")?);
    let (by, now) = (call.by, app.now());
    write(&app, move |tx| {
        let row = by.active_run(tx, &run_id)?;
        let here = tx.delete_run_tag(row.seq, &key)?;
        let there = change_job_tags(tx, &row, now, |tags| tags.remove(&key).is_some())?;
        match here || there {
            true => Ok(()),
            false => Err(Fault::missing(format!("No tag with name: {key} in run with id {run_id}"))),
        }
    })
    .await?;
    Ok(done())
}

/// The body of a batch, read straight into what is needed: batches are where logging spends its time.
#[derive(Deserialize)]
struct Batch {
    run_id: Option<String>,
    #[serde(default)]
    metrics: Option<Vec<Sent>>,
    #[serde(default)]
    params: Option<Vec<Value>>,
    #[serde(default)]
    tags: Option<Vec<Value>>,
}

/// A metric as it was sent.
#[derive(Deserialize)]
struct Sent {
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    timestamp: Value,
    #[serde(default)]
    step: Value,
    #[serde(default)]
    model_id: Option<String>,
    #[serde(default)]
    dataset_name: Option<String>,
    #[serde(default)]
    dataset_digest: Option<String>,
}

impl Sent {
    fn checked(self, place: Place) -> Result<Metric, Fault> {
        let key = self.key.filter(|key| !key.is_empty()).ok_or_else(|| Fault::required(&place.field("key")))?;
        // An empty text is no number, and nobody means it as one.
        let value = number(&self.value).filter(|_| self.value != "");
        let (timestamp, step) = (whole_number(&self.timestamp), whole_number(&self.step));
        let mut point = limits::metric(&key, value.as_ref(), timestamp.as_ref(), step.as_ref(), place)?;
        // Clients read an infinity back as the largest number there is.
        if !point.value.is_nan() {
            point.value = limits::stored(point.value).0;
        }
        let model = self.model_id.filter(|id| !id.is_empty()).map(|model_id| ModelPoint {
            model_id,
            key: key.clone(),
            point,
            dataset_name: self.dataset_name.filter(|name| !name.is_empty()),
            dataset_digest: self.dataset_digest.filter(|digest| !digest.is_empty()),
            run_id: String::new(),
        });
        Ok(Metric { key, point, model })
    }
}

/// A number in any of its spellings, or nothing.
fn is_number(value: &Value) -> bool {
    *value == "" || number(value).is_none_or(|number| number.as_f64().is_some())
}

fn is_whole(value: &Value) -> bool {
    value.is_null() || call::whole(value).is_some()
}

fn unread(error: &serde_json::Error) -> Fault {
    Fault::invalid(format!("the body has a value of a wrong type: {error}"))
}

pub(super) async fn batch(State(app): State<App>, by: Asker, request: Request) -> Answer {
    let bytes = call::body(request, &app).await?;
    let bytes = if bytes.is_empty() { b"{}".as_slice().into() } else { bytes };
    let batch: Batch = serde_json::from_slice(&bytes).map_err(|error| unread(&error))?;
    let run_id = batch.run_id.filter(|id| !id.is_empty()).ok_or_else(|| Fault::required("run_id"))?;
    let (metrics, params) = (batch.metrics.unwrap_or_default(), batch.params.unwrap_or_default());
    let tags = batch.tags.unwrap_or_default();
    limits::batch_counts(metrics.len(), params.len(), tags.len())?;
    let mut entries = Entries::default();
    for (at, sent) in metrics.into_iter().enumerate() {
        entries.metrics.push(sent.checked(Place::Item("metrics", at))?);
    }
    entries.params = pairs("params", &params, limits::param)?;
    limits::unique_params(entries.params.iter().map(|(key, _)| key.as_str()))?;
    entries.tags = pairs("tags", &tags, limits::tag)?;
    record(&app, by, run_id, entries).await
}

type Cut = for<'a> fn(&str, &'a str, Place) -> Result<&'a str, domain::tracking::Bad>;

/// The keys and values of a list, each value cut to what is kept of it.
fn pairs(list: &'static str, sent: &[Value], cut: Cut) -> Result<Vec<(String, String)>, Fault> {
    let mut pairs = Vec::new();
    for (at, pair) in sent.iter().enumerate() {
        let (key, value) = pair_of(list, at, pair)?;
        let place = Place::Item(list, at);
        if key.is_empty() {
            return Err(Fault::required(&place.field("key")));
        }
        let value = cut(&key, &value, place)?.to_owned();
        pairs.push((key, value));
    }
    Ok(pairs)
}

async fn record(app: &App, by: Asker, run_id: String, entries: Entries) -> Answer {
    let now = app.now();
    write(app, move |tx| {
        let row = by.active_run(tx, &run_id)?;
        for (key, value) in &entries.params {
            match tx.add_param(row.seq, key, value)? {
                Some(before) if before != *value => return Err(changed_param(&run_id, key, &before, value)),
                _ => {}
            }
        }
        for (key, value) in &entries.tags {
            put_tag(tx, &row, key, value, now)?;
        }
        let metrics: Vec<(&str, Point)> =
            entries.metrics.iter().map(|metric| (metric.key.as_str(), metric.point)).collect();
        tx.append_points(row.seq, &metrics)?;
        for mut point in entries.metrics.into_iter().filter_map(|metric| metric.model) {
            point.run_id.clone_from(&run_id);
            tx.add_model_point(by.workspace(), &point)?;
        }
        Ok(())
    })
    .await?;
    Ok(done())
}

fn changed_param(run_id: &str, key: &str, before: &str, value: &str) -> Fault {
    Fault::invalid(format!(
        "Changing param values is not allowed. Param with key='{key}' was already logged with value='{before}' \
         for run ID='{run_id}'. Attempted logging new value '{value}'."
    ))
}

/// A job's tags are in its record; MLflow's own words about a run stay beside it.
fn put_tag(tx: &mut Tx<'_>, row: &RunRow, key: &str, value: &str, now: Timestamp) -> Result<(), Error> {
    if key == NAME {
        tx.put_run(&RunRow { name: value.to_owned(), ..row.clone() })?;
        rename_job(tx, row, value, now)?;
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
    edit: impl FnOnce(&mut Map<String, Value>) -> bool,
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
