//! What a run has read and made: datasets, and models that are known by their own id.

use super::{
    Answer, brief,
    call::{Call, experiment_number},
    done,
    fault::{Fault, read, write},
};
use crate::app::App;
use axum::{Json, extract::State};
use domain::tracking::limits::{self, Dataset};
use serde_json::{Value, json};
use store::{RunInput, RunModel};

/// The tag that says what a dataset was for.
const CONTEXT: &str = "mlflow.data.context";

pub(super) async fn datasets(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.need("run_id")?;
    let datasets = call.list("datasets")?.iter().map(dataset).collect::<Result<Vec<_>, _>>()?;
    let models = models(&call, false)?;
    let by = call.by;
    write(&app, move |tx| {
        let row = by.active_run(tx, &run_id)?;
        datasets.iter().try_for_each(|input| tx.add_run_input(row.seq, input))?;
        Ok(models.iter().try_for_each(|model| tx.add_run_model(row.seq, model))?)
    })
    .await?;
    Ok(done())
}

fn dataset(input: &Value) -> Result<RunInput, Fault> {
    let dataset = input.get("dataset").cloned().unwrap_or_default();
    let text = |key: &str| dataset.get(key).and_then(Value::as_str);
    limits::dataset(&Dataset {
        name: text("name"),
        digest: text("digest"),
        source_type: text("source_type"),
        source: text("source"),
        schema: text("schema"),
        profile: text("profile"),
    })?;
    let tags = input.get("tags").and_then(Value::as_array).cloned().unwrap_or_default();
    let pair = |tag: &Value| {
        let text = |key: &str| tag.get(key).and_then(Value::as_str).map(str::to_owned);
        (text("key"), text("value"))
    };
    let tags: Vec<_> = tags.iter().map(pair).collect();
    tags.iter().try_for_each(|(key, value)| limits::input_tag(key.as_deref(), value.as_deref()))?;
    let context = tags.into_iter().find(|(key, _)| key.as_deref() == Some(CONTEXT)).and_then(|(_, value)| value);
    let named = |key: &str| text(key).unwrap_or_default().to_owned();
    Ok(RunInput { name: named("name"), digest: named("digest"), context, body: input.to_string() })
}

/// The datasets that runs of some experiments have read, each once.
pub(super) async fn search(State(app): State<App>, call: Call) -> Answer {
    call.by.is_no_job("look through the datasets of others")?;
    let numbers =
        call.texts("experiment_ids")?.iter().map(|id| experiment_number(id)).collect::<Result<Vec<_>, _>>()?;
    if numbers.is_empty() {
        return Err(Fault::invalid("the request must be specified with at least one of 'experiment_ids'"));
    }
    let by = call.by;
    let found = read(&app, move |tx| Ok(tx.datasets_of(by.workspace(), &numbers)?)).await?;
    let shown = found.iter().map(|(number, input)| {
        brief([
            ("experiment_id", json!(number.to_string())),
            ("name", json!(input.name)),
            ("digest", json!(input.digest)),
            ("context", json!(input.context)),
        ])
    });
    Ok(Json(brief([("dataset_summaries", shown.collect())])))
}

/// Models a run has made.
pub(super) async fn outputs(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.need("run_id")?;
    if call.args.get("models").is_none_or(Value::is_null) {
        return Err(Fault::required("models"));
    }
    let models = models(&call, true)?;
    let by = call.by;
    write(&app, move |tx| {
        let row = by.active_run(tx, &run_id)?;
        Ok(models.iter().try_for_each(|model| tx.add_run_model(row.seq, model))?)
    })
    .await?;
    Ok(done())
}

fn models(call: &Call, made: bool) -> Result<Vec<RunModel>, Fault> {
    let model = |model: &Value| {
        let id = model.get("model_id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let model_id = id.ok_or_else(|| Fault::required("models.model_id"))?.to_owned();
        Ok(RunModel { model_id, made, step: model.get("step").and_then(super::call::whole) })
    };
    call.list("models")?.iter().map(model).collect()
}

/// The tag under which older clients keep notes of the models they logged.
const NOTES: &str = "mlflow.log-model.history";

/// The note that older clients leave on a run when they log a model.
pub(super) async fn model_note(State(app): State<App>, call: Call) -> Answer {
    let (run_id, text) = (call.need("run_id")?, call.need("model_json")?);
    let model: Value = serde_json::from_str(&text)
        .map_err(|error| Fault::invalid(format!("Malformed model info: it cannot be parsed as JSON: {error}")))?;
    let fields = ["artifact_path", "flavors", "utc_time_created", "run_id"];
    let missing: Vec<&str> = fields.into_iter().filter(|key| model.get(key).is_none()).collect();
    if !missing.is_empty() {
        return Err(Fault::invalid(format!("Model json is missing mandatory fields: {}", missing.join(", "))));
    }
    let by = call.by;
    write(&app, move |tx| {
        let row = by.active_run(tx, &run_id)?;
        let known = tx.tags_of(&[row.seq])?.remove(&row.seq).and_then(|mut tags| tags.remove(NOTES));
        let mut all: Vec<Value> = known.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        all.push(model);
        Ok(tx.put_run_tag(row.seq, NOTES, &Value::Array(all).to_string())?)
    })
    .await?;
    Ok(done())
}
