//! Logged models: what newer clients make of every model a run logs, before anyone registers it.

mod search;

pub(super) use search::search;

use super::{
    Answer, artifacts, brief,
    call::{Asker, Call, experiment_number},
    carried::Carried,
    done, experiments,
    fault::{Fault, read, write},
    key_values, view,
};
use crate::{app::App, auth::Who};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::tracking::{ErrorCode, limits};
use serde::Deserialize;
use serde_json::{Value, json};
use store::{LoggedModelRow, ModelPoint, Tx, secrets::hex};

/// How far a model is, by the numbers clients send: begun, whole, given up.
const STATUSES: [&str; 3] = ["LOGGED_MODEL_PENDING", "LOGGED_MODEL_READY", "LOGGED_MODEL_UPLOAD_FAILED"];

/// The model an address names, and a tag of it.
#[derive(Deserialize)]
pub(super) struct At {
    model: String,
    #[serde(default)]
    tag: String,
}

pub(super) async fn create(State(app): State<App>, call: Call) -> Answer {
    let number = experiment_number(&call.need("experiment_id")?)?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let name = match given(call.text("name")?) {
        Some(name) => name,
        None => domain::names::run_name(app.store.keyring().random()),
    };
    limits::logged_model_name(&name)?;
    let carried = Carried::of(&call)?;
    let now = carried.created_at(app.now());
    let row = LoggedModelRow {
        seq: 0,
        workspace: call.by.workspace().to_owned(),
        model_id: carried.id.unwrap_or_else(|| format!("m-{}", hex(&app.store.keyring().random::<16>()))),
        number,
        location: String::new(),
        name,
        model_type: given(call.text("model_type")?),
        source_run: given(call.text("source_run_id")?),
        status: STATUSES[0].into(),
        status_message: None,
        deleted: false,
        created_at: now,
        changed_at: now,
        tags: call.pairs("tags")?.into_iter().collect(),
        params: call.pairs("params")?.into_iter().collect(),
    };
    let by = call.by;
    let shown = write(&app, move |tx| {
        let experiment = experiments::active(tx, &by, number)?;
        if let Who::Job { .. } = &by.caller.who {
            by.run(tx, row.source_run.as_deref().unwrap_or_default())?;
        }
        if tx.logged_model(by.workspace(), &row.model_id)?.is_some() {
            return Err(Fault::exists(format!("Logged model with ID '{}' already exists.", row.model_id)));
        }
        tx.insert_logged_model(experiment.seq, &row)?;
        let made = find(tx, &by, &row.model_id)?;
        Ok(show_one(tx, &by, made)?)
    })
    .await?;
    Ok(Json(json!({"model": shown})))
}

pub(super) async fn show(State(app): State<App>, Path(at): Path<At>, call: Call) -> Answer {
    let (by, deleted_too) = (call.by.clone(), call.flag("allow_deleted")?);
    let shown = read(&app, move |tx| {
        let row = match tx.logged_model(by.workspace(), &at.model)? {
            Some(row) if deleted_too || !row.deleted => row,
            _ => return Err(missing(&at.model)),
        };
        Ok(show_one(tx, &by, row)?)
    })
    .await?;
    Ok(Json(json!({"model": shown})))
}

pub(super) async fn finalize(State(app): State<App>, Path(at): Path<At>, call: Call) -> Answer {
    let status = match call.args.get("status") {
        None | Some(Value::Null) => return Err(Fault::required("status")),
        Some(Value::String(word)) if STATUSES.contains(&word.as_str()) => word.clone(),
        Some(value) => {
            let number = super::call::whole(value).and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
            let word = number.and_then(|number| STATUSES.get(number));
            (*word.ok_or_else(|| Fault::mistyped("status", value))?).to_owned()
        }
    };
    let (by, now) = (call.by, app.now());
    let shown = write(&app, move |tx| {
        let row = writable(tx, &by, &at.model)?;
        let row = LoggedModelRow { status, changed_at: now, ..row };
        tx.put_logged_model(&row)?;
        Ok(show_one(tx, &by, row)?)
    })
    .await?;
    Ok(Json(json!({"model": shown})))
}

pub(super) async fn delete(State(app): State<App>, by: Asker, Path(at): Path<At>) -> Answer {
    let now = app.now();
    write(&app, move |tx| {
        let row = writable(tx, &by, &at.model)?;
        Ok(tx.put_logged_model(&LoggedModelRow { deleted: true, changed_at: now, ..row })?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn add_params(State(app): State<App>, Path(at): Path<At>, call: Call) -> Answer {
    let (params, by) = (call.pairs("params")?, call.by);
    write(&app, move |tx| {
        let mut row = writable(tx, &by, &at.model)?;
        if let Some((key, _)) = params.iter().find(|(key, _)| row.params.contains_key(key)) {
            let message = format!("param `{key}` of model `{}` already exists, and params do not change", at.model);
            return Err(Fault::new(ErrorCode::BadRequest, message));
        }
        row.params.extend(params);
        Ok(tx.put_logged_model(&row)?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn set_tags(State(app): State<App>, Path(at): Path<At>, call: Call) -> Answer {
    let (tags, by) = (call.pairs("tags")?, call.by);
    write(&app, move |tx| {
        let mut row = writable(tx, &by, &at.model)?;
        row.tags.extend(tags);
        Ok(tx.put_logged_model(&row)?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn delete_tag(State(app): State<App>, by: Asker, Path(at): Path<At>) -> Answer {
    write(&app, move |tx| {
        let mut row = writable(tx, &by, &at.model)?;
        if row.tags.remove(&at.tag).is_none() {
            let message = format!("No tag with key '{}' found for model with ID '{}'.", at.tag, at.model);
            return Err(Fault::missing(message));
        }
        Ok(tx.put_logged_model(&row)?)
    })
    .await?;
    Ok(done())
}

/// Files directly under a path of a model.
pub(super) async fn files(State(app): State<App>, Path(at): Path<At>, mut call: Call) -> Answer {
    let (by, id) = (call.by.clone(), at.model.clone());
    let row = read(&app, move |tx| find(tx, &by, &id)).await?;
    if let Some(path) = call.args.remove("artifact_directory_path") {
        call.args.insert("path".into(), path);
    }
    let files = artifacts::files_under(&app, &call, &artifacts::model_folder(&at.model)).await?;
    Ok(Json(brief([("root_uri", json!(artifacts::model_uri(&row))), ("files", json!(files))])))
}

fn find(tx: &mut Tx<'_>, by: &Asker, model_id: &str) -> Result<LoggedModelRow, Fault> {
    tx.logged_model(by.workspace(), model_id)?.filter(|row| !row.deleted).ok_or_else(|| missing(model_id))
}

/// The model, deleted or not, if the asker may change it: a job only what its own runs have logged.
pub(super) fn writable(tx: &mut Tx<'_>, by: &Asker, model_id: &str) -> Result<LoggedModelRow, Fault> {
    let row = tx.logged_model(by.workspace(), model_id)?.ok_or_else(|| missing(model_id))?;
    if let Who::Job { .. } = &by.caller.who {
        by.run(tx, row.source_run.as_deref().unwrap_or_default())?;
    }
    Ok(row)
}

fn missing(model_id: &str) -> Fault {
    Fault::missing(format!("Logged model with ID '{model_id}' not found."))
}

type WithPoints = (LoggedModelRow, Vec<ModelPoint>);

fn with_points(tx: &mut Tx<'_>, rows: Vec<LoggedModelRow>) -> Result<Vec<WithPoints>, store::Error> {
    let seqs: Vec<i64> = rows.iter().map(|row| row.seq).collect();
    let mut points = tx.model_points(&seqs)?;
    let mut with = |row: LoggedModelRow| {
        let own = points.remove(&row.seq).unwrap_or_default();
        (row, own)
    };
    Ok(rows.into_iter().map(&mut with).collect())
}

fn show_one(tx: &mut Tx<'_>, by: &Asker, row: LoggedModelRow) -> Result<Value, store::Error> {
    let found = with_points(tx, vec![row])?;
    Ok(found.first().map(|(row, points)| shown(by, row, points)).unwrap_or_default())
}

fn shown(by: &Asker, row: &LoggedModelRow, points: &[ModelPoint]) -> Value {
    let metrics: Vec<Value> = points.iter().map(metric).collect();
    json!({
        "info": brief([
            ("model_id", json!(row.model_id)),
            ("experiment_id", json!(row.number.to_string())),
            ("name", json!(row.name)),
            ("creation_timestamp_ms", json!(row.created_at.0)),
            ("last_updated_timestamp_ms", json!(row.changed_at.0)),
            ("artifact_uri", json!(artifacts::spelled(by, &artifacts::model_uri(row)))),
            ("status", json!(row.status)),
            ("status_message", json!(row.status_message)),
            ("model_type", json!(row.model_type.as_deref().unwrap_or_default())),
            ("source_run_id", json!(row.source_run.as_deref().unwrap_or_default())),
            ("tags", key_values(&row.tags)),
        ]),
        "data": brief([("params", key_values(&row.params)), ("metrics", json!(metrics))]),
    })
}

fn metric(point: &ModelPoint) -> Value {
    brief([
        ("key", json!(point.key)),
        ("value", view::value(point.point.value)),
        ("timestamp", json!(point.point.timestamp_ms)),
        ("step", json!(point.point.step)),
        ("model_id", json!(point.model_id)),
        ("run_id", json!(point.run_id)),
        ("dataset_name", json!(point.dataset_name)),
        ("dataset_digest", json!(point.dataset_digest)),
    ])
}
