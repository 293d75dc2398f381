//! Experiments: make, find, rename, tag, put away.

use super::{
    Answer, artifacts, brief,
    call::{Asker, Call, experiment_number},
    carried::Carried,
    done,
    fault::{Fault, read, write},
    key_values,
    search::{offset, token},
};
use crate::{app::App, auth::Who};
use axum::{Json, extract::State};
use domain::tracking::{
    Entity, ErrorCode, Field, Fields, Filter, Lifecycle, Order, Subject, ViewType,
    limits::{self, Search},
};
use serde_json::{Value, json};
use store::{ExperimentRow, Tx};

pub(super) async fn create(State(app): State<App>, call: Call) -> Answer {
    let (name, location) = (call.need("name")?, call.word("artifact_location")?);
    limits::experiment_name(&name)?;
    limits::artifact_location(&location)?;
    let tags = call.pairs("tags")?;
    tags.iter().try_for_each(|(key, value)| limits::experiment_tag(key, value))?;
    let (by, now) = (call.by.clone(), Carried::of(&call)?.created_at(app.now()));
    let number = write(&app, move |tx| {
        if let Some(known) = tx.experiment_by_name(by.workspace(), &name)? {
            let state = stage(&known).as_str();
            return Err(Fault::exists(format!("Experiment(name={name}) already exists. It is {state}.")));
        }
        let (seq, number) = tx.insert_experiment(by.workspace(), &name, &location, now)?;
        tags.iter().try_for_each(|(key, value)| tx.put_experiment_tag(seq, key, value))?;
        Ok(number)
    })
    .await?;
    Ok(Json(json!({"experiment_id": number.to_string()})))
}

pub(super) async fn show(State(app): State<App>, call: Call) -> Answer {
    let (number, by) = (experiment_number(&call.need("experiment_id")?)?, call.by.clone());
    let row = read(&app, move |tx| find(tx, &by, number)).await?;
    Ok(Json(json!({"experiment": view(&call.by, &row)})))
}

pub(super) async fn by_name(State(app): State<App>, call: Call) -> Answer {
    let (name, by) = (call.need("experiment_name")?, call.by.clone());
    let row = read(&app, move |tx| {
        let missing = || Fault::missing(format!("Could not find experiment with name '{name}'"));
        tx.experiment_by_name(by.workspace(), &name)?.ok_or_else(missing)
    })
    .await?;
    Ok(Json(json!({"experiment": view(&call.by, &row)})))
}

pub(super) async fn search(State(app): State<App>, call: Call) -> Answer {
    let filter = Filter::parse(Subject::Experiments, &call.word("filter")?)?;
    let order = Order::parse(Subject::Experiments, &call.texts("order_by")?)?;
    let most = call.most(Search::Experiments)?.unwrap_or(usize::MAX);
    let from = offset(&call)?;
    let shows = view_type(&call, "view_type")?;
    let by = call.by.clone();
    let mut found = read(&app, move |tx| Ok(tx.experiments(by.workspace())?)).await?;
    found.retain(|row| shows.shows(stage(row)) && filter.matches(&Seen(row)));
    found.sort_by(|a, b| order.compare(&Seen(a), &Seen(b)));
    let page: Vec<Value> = found.iter().skip(from).take(most).map(|row| view(&call.by, row)).collect();
    let next = (from.saturating_add(most) < found.len()).then(|| token(from + most));
    Ok(Json(brief([("experiments", json!(page)), ("next_page_token", json!(next))])))
}

/// Which lifecycle stages are asked for; a word that is none is as good as none.
pub(super) fn view_type(call: &Call, key: &str) -> Result<ViewType, Fault> {
    Ok(call.args.get(key).and_then(|value| ViewType::of_json(value).ok()).unwrap_or_default())
}

/// An experiment as filters and orders see it.
struct Seen<'a>(&'a ExperimentRow);

impl Fields for Seen<'_> {
    fn any(&self, entity: Entity, key: &str, test: &mut dyn FnMut(Field<'_>) -> bool) -> bool {
        let row = self.0;
        match (entity, key) {
            (Entity::Attribute, "name") => test(Field::Text(&row.name)),
            (Entity::Attribute, "experiment_id") => test(Field::Text(&row.number.to_string())),
            (Entity::Attribute, "creation_time") => test(Field::Integer(row.created_at.0)),
            (Entity::Attribute, "last_update_time") => test(Field::Integer(row.changed_at.0)),
            (Entity::Tag, key) => row.tags.get(key).is_some_and(|value| test(Field::Text(value))),
            _ => false,
        }
    }
}

pub(super) async fn update(State(app): State<App>, call: Call) -> Answer {
    call.by.is_no_job("rename an experiment")?;
    let (number, name) = (experiment_number(&call.need("experiment_id")?)?, call.need("new_name")?);
    limits::experiment_name(&name)?;
    let (by, now) = (call.by.clone(), app.now());
    write(&app, move |tx| {
        let row = find(tx, &by, number)?;
        if row.deleted {
            return Err(Fault::invalid("Cannot rename a non-active experiment."));
        }
        if tx.experiment_by_name(by.workspace(), &name)?.is_some_and(|other| other.seq != row.seq) {
            return Err(Fault::new(ErrorCode::BadRequest, format!("Experiment(name={name}) already exists.")));
        }
        Ok(tx.put_experiment(&ExperimentRow { name, changed_at: now, ..row })?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn delete(State(app): State<App>, call: Call) -> Answer {
    set_deleted(&app, &call, true).await
}

pub(super) async fn restore(State(app): State<App>, call: Call) -> Answer {
    set_deleted(&app, &call, false).await
}

/// Puts an experiment away with its runs, or brings both back.
async fn set_deleted(app: &App, call: &Call, deleted: bool) -> Answer {
    call.by.is_no_job("put an experiment away or bring it back")?;
    let number = experiment_number(&call.need("experiment_id")?)?;
    let (by, now) = (call.by.clone(), app.now());
    write(app, move |tx| {
        let row = find(tx, &by, number)?;
        if row.deleted == deleted {
            return Err(absent(number));
        }
        if number == 0 {
            return Err(Fault::invalid("Cannot delete the default experiment, which jobs and runs fall back to."));
        }
        tx.delete_runs_of(row.seq, deleted, now)?;
        Ok(tx.put_experiment(&ExperimentRow { deleted, changed_at: now, ..row })?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn set_tag(State(app): State<App>, call: Call) -> Answer {
    let (number, key, value) =
        (experiment_number(&call.need("experiment_id")?)?, call.need("key")?, call.word("value")?);
    limits::experiment_tag(&key, &value)?;
    let (by, now) = (call.by.clone(), app.now());
    write(&app, move |tx| {
        let row = active(tx, &by, number)?;
        is_own(tx, &by, &row)?;
        tx.put_experiment_tag(row.seq, &key, &value)?;
        Ok(tx.put_experiment(&ExperimentRow { changed_at: now, ..row })?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn delete_tag(State(app): State<App>, call: Call) -> Answer {
    let (number, key) = (experiment_number(&call.need("experiment_id")?)?, call.need("key")?);
    let by = call.by.clone();
    write(&app, move |tx| {
        let row = active(tx, &by, number)?;
        is_own(tx, &by, &row)?;
        match tx.delete_experiment_tag(row.seq, &key)? {
            true => Ok(()),
            false => Err(Fault::missing(format!("No tag with name: {key} in experiment with id {number}"))),
        }
    })
    .await?;
    Ok(done())
}

pub(super) fn find(tx: &mut Tx<'_>, by: &Asker, number: i64) -> Result<ExperimentRow, Fault> {
    tx.experiment(by.workspace(), number)?.ok_or_else(|| absent(number))
}

/// The experiment, if it may be written to.
pub(super) fn active(tx: &mut Tx<'_>, by: &Asker, number: i64) -> Result<ExperimentRow, Fault> {
    let row = find(tx, by, number)?;
    let state = "must be in the 'active' state. Current state is deleted.";
    if row.deleted { Err(Fault::invalid(format!("The experiment {number} {state}"))) } else { Ok(row) }
}

/// A job may tag the experiment it runs in, and no other.
fn is_own(tx: &mut Tx<'_>, by: &Asker, row: &ExperimentRow) -> Result<(), Fault> {
    let Who::Job { job, .. } = &by.caller.who else { return Ok(()) };
    match tx.run(by.workspace(), job)? {
        Some(run) if run.experiment == row.seq => Ok(()),
        _ => by.is_no_job("tag an experiment that is not its own"),
    }
}

fn absent(number: i64) -> Fault {
    Fault::missing(format!("No Experiment with id={number} exists"))
}

fn stage(row: &ExperimentRow) -> Lifecycle {
    if row.deleted { Lifecycle::Deleted } else { Lifecycle::Active }
}

fn view(by: &Asker, row: &ExperimentRow) -> Value {
    brief([
        ("experiment_id", json!(row.number.to_string())),
        ("name", json!(row.name)),
        ("artifact_location", json!(artifacts::experiment_uri(by, row))),
        ("lifecycle_stage", json!(stage(row).as_str())),
        ("creation_time", json!(row.created_at.0)),
        ("last_update_time", json!(row.changed_at.0)),
        ("tags", key_values(&row.tags)),
        // In MLflow's words each of our workspaces is a server of its own, which has one workspace.
        ("workspace", json!("default")),
    ])
}
