//! Experiments: make, find, rename, tag, put away.

use super::{Answer, Call, Fault, done};
use crate::app::App;
use axum::{Json, extract::State};
use domain::tracking::{filter, limits, order};
use serde_json::{Value, json};
use store::{Error, ExperimentRow, Tx};

pub(super) async fn create(State(app): State<App>, call: Call) -> Answer {
    let name = call.need("name")?;
    limits::experiment_name(&name)?;
    let location = call.text("artifact_location")?.unwrap_or_default();
    limits::artifact_location(&location)?;
    let tags = tags_of(&call)?;
    let (workspace, now) = (call.workspace.name.clone(), app.now());
    let made = app
        .store
        .write(move |tx| {
            if let Some(known) = tx.experiment_by_name(&workspace, &name)? {
                let state = if known.deleted { "deleted" } else { "active" };
                return Ok(Err(Fault::exists(format!(
                    "Experiment(name={name}) already exists. It is {state}; \
                     you can restore it, or permanently delete it to create a new one."
                ))));
            }
            let (seq, number) = tx.insert_experiment(&workspace, &name, &location, now)?;
            tags.iter().try_for_each(|(key, value)| tx.put_experiment_tag(seq, key, value))?;
            Ok(Ok(number))
        })
        .await??;
    Ok(Json(json!({"experiment_id": made.to_string()})))
}

fn tags_of(call: &Call) -> Result<Vec<(String, String)>, Fault> {
    let mut tags = Vec::new();
    for tag in call.list("tags")? {
        let text = |key: &str| tag.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        limits::experiment_tag(&text("key"), &text("value"))?;
        tags.push((text("key"), text("value")));
    }
    Ok(tags)
}

pub(super) async fn show(State(app): State<App>, call: Call) -> Answer {
    let number = call.experiment("experiment_id")?;
    let row = find(&app, &call, number).await?;
    Ok(Json(json!({"experiment": view(&call, &row)})))
}

pub(super) async fn by_name(State(app): State<App>, call: Call) -> Answer {
    let name = call.need("experiment_name")?;
    let (workspace, wanted, now) = (call.workspace.name.clone(), name.clone(), app.now());
    let row = app
        .store
        .write(move |tx| {
            tx.experiment_named(&workspace, store::DEFAULT_EXPERIMENT, now)?;
            tx.experiment_by_name(&workspace, &wanted)
        })
        .await?;
    let row = row.ok_or_else(|| Fault::missing(format!("Could not find experiment with name '{name}'")))?;
    Ok(Json(json!({"experiment": view(&call, &row)})))
}

pub(super) async fn search(State(app): State<App>, call: Call) -> Answer {
    let filter = filter::experiments(&call.text("filter")?.unwrap_or_default())?;
    let order = order::experiments(&call.texts("order_by")?)?;
    let most = limits::max_results("max_results", call.int("max_results")?, 1000, 50_000)?;
    let from = super::search::offset(&call)?;
    let kind = limits::view_type(call.text("view_type")?.as_deref())?;
    let (workspace, now) = (call.workspace.name.clone(), app.now());
    let rows = app
        .store
        .write(move |tx| {
            tx.experiment_named(&workspace, store::DEFAULT_EXPERIMENT, now)?;
            tx.experiments(&workspace)
        })
        .await?;
    let mut found: Vec<ExperimentRow> =
        rows.into_iter().filter(|row| kind.shows(row.deleted) && filter.matches(&Fields(row))).collect();
    found.sort_by(|a, b| order.compare(&Fields(a), &Fields(b)));
    let total = found.len();
    let page: Vec<Value> = found.iter().skip(from).take(most).map(|row| view(&call, row)).collect();
    let mut answer = json!({"experiments": page});
    if from + most < total {
        answer["next_page_token"] = json!(super::search::token(from + most));
    }
    Ok(Json(answer))
}

/// An experiment as the filter sees it.
struct Fields<'a>(&'a ExperimentRow);

impl filter::Fields for Fields<'_> {
    fn text(&self, entity: filter::Entity, key: &str) -> Option<String> {
        match (entity, key) {
            (filter::Entity::Attribute, "name") => Some(self.0.name.clone()),
            (filter::Entity::Attribute, "experiment_id") => Some(self.0.number.to_string()),
            (filter::Entity::Tag, key) => self.0.tags.get(key).cloned(),
            _ => None,
        }
    }

    fn number(&self, entity: filter::Entity, key: &str) -> Option<f64> {
        match (entity, key) {
            (filter::Entity::Attribute, "creation_time") => Some(self.0.created_at.0 as f64),
            (filter::Entity::Attribute, "last_update_time") => Some(self.0.changed_at.0 as f64),
            (filter::Entity::Attribute, "experiment_id") => Some(self.0.number as f64),
            _ => None,
        }
    }
}

pub(super) async fn update(State(app): State<App>, call: Call) -> Answer {
    let number = call.experiment("experiment_id")?;
    let name = call.text("new_name")?.filter(|name| !name.is_empty());
    let Some(name) = name else { return Ok(done()) };
    limits::experiment_name(&name)?;
    change(&app, &call, number, move |row, _| {
        if row.deleted {
            return Err(Fault::invalid("Cannot rename a non-active experiment."));
        }
        row.name = name;
        Ok(())
    })
    .await
}

pub(super) async fn delete(State(app): State<App>, call: Call) -> Answer {
    let number = call.experiment("experiment_id")?;
    change(&app, &call, number, |row, _| {
        if row.deleted {
            return Err(Fault::missing(format!("No Experiment with id={} exists", row.number)));
        }
        if row.number == 0 {
            return Err(Fault::invalid("Cannot delete the default experiment, an internally reserved resource."));
        }
        row.deleted = true;
        Ok(())
    })
    .await
}

pub(super) async fn restore(State(app): State<App>, call: Call) -> Answer {
    let number = call.experiment("experiment_id")?;
    change(&app, &call, number, |row, _| {
        if !row.deleted {
            return Err(Fault::missing(format!("No Experiment with id={} exists", row.number)));
        }
        row.deleted = false;
        Ok(())
    })
    .await
}

pub(super) async fn set_tag(State(app): State<App>, call: Call) -> Answer {
    let (key, value) = (call.need("key")?, call.text("value")?.unwrap_or_default());
    limits::experiment_tag(&key, &value)?;
    let number = call.experiment("experiment_id")?;
    let (workspace, now) = (call.workspace.name.clone(), app.now());
    app.store
        .write(move |tx| {
            let row = match active(tx, &workspace, number)? {
                Ok(row) => row,
                Err(fault) => return Ok(Err(fault)),
            };
            tx.put_experiment_tag(row.seq, &key, &value)?;
            tx.put_experiment(&ExperimentRow { changed_at: now, ..row })?;
            Ok(Ok(()))
        })
        .await??;
    Ok(done())
}

pub(super) async fn delete_tag(State(app): State<App>, call: Call) -> Answer {
    let (key, number) = (call.need("key")?, call.experiment("experiment_id")?);
    let workspace = call.workspace.name.clone();
    app.store
        .write(move |tx| {
            let row = match active(tx, &workspace, number)? {
                Ok(row) => row,
                Err(fault) => return Ok(Err(fault)),
            };
            let gone = tx.delete_experiment_tag(row.seq, &key)?;
            let missing = || Fault::missing(format!("No tag with name: {key} in experiment with id {number}"));
            Ok(if gone { Ok(()) } else { Err(missing()) })
        })
        .await??;
    Ok(done())
}

/// The experiment, if it is there and active.
pub(super) fn active(tx: &mut Tx<'_>, workspace: &str, number: i64) -> Result<Result<ExperimentRow, Fault>, Error> {
    Ok(match tx.experiment(workspace, number)? {
        Some(row) if row.deleted => {
            Err(Fault::invalid(format!("The experiment {number} must be in the 'active' state. Current state is deleted.")))
        }
        Some(row) => Ok(row),
        None => Err(Fault::missing(format!("No Experiment with id={number} exists"))),
    })
}

async fn change(
    app: &App,
    call: &Call,
    number: i64,
    edit: impl FnOnce(&mut ExperimentRow, &mut Tx<'_>) -> Result<(), Fault> + Send + 'static,
) -> Answer {
    let (workspace, now) = (call.workspace.name.clone(), app.now());
    let changed = app
        .store
        .write(move |tx| {
            let Some(mut row) = tx.experiment(&workspace, number)? else {
                return Ok(Err(Fault::missing(format!("No Experiment with id={number} exists"))));
            };
            if let Err(fault) = edit(&mut row, tx) {
                return Ok(Err(fault));
            }
            row.changed_at = now;
            tx.put_experiment(&row)?;
            Ok(Ok(()))
        })
        .await;
    match changed {
        Err(Error::Exists) => Err(Fault::exists("an experiment of that name exists already")),
        other => other?.map(|()| done()),
    }
}

async fn find(app: &App, call: &Call, number: i64) -> Result<ExperimentRow, Fault> {
    let (workspace, now) = (call.workspace.name.clone(), app.now());
    let row = app
        .store
        .write(move |tx| {
            if number == 0 {
                tx.experiment_named(&workspace, store::DEFAULT_EXPERIMENT, now)?;
            }
            tx.experiment(&workspace, number)
        })
        .await?;
    row.ok_or_else(|| Fault::missing(format!("No Experiment with id={number} exists")))
}

fn view(call: &Call, row: &ExperimentRow) -> Value {
    let location = match row.artifact_location.as_str() {
        "" => super::artifacts::experiment_uri(call, row.number),
        location => location.to_owned(),
    };
    let tags: Vec<Value> = row.tags.iter().map(|(key, value)| json!({"key": key, "value": value})).collect();
    let mut shown = json!({
        "experiment_id": row.number.to_string(), "name": row.name, "artifact_location": location,
        "lifecycle_stage": if row.deleted { "deleted" } else { "active" },
        "creation_time": row.created_at.0, "last_update_time": row.changed_at.0,
    });
    if !tags.is_empty() {
        shown["tags"] = json!(tags);
    }
    shown
}
