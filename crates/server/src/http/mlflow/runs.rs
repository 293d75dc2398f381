//! Runs: begin, look, end, put away.

use super::{Answer, Call, Fault, done, experiments, find_run, view::Shown};
use crate::{
    app::App,
    auth::{Caller, Who},
};
use axum::{Json, extract::State};
use domain::{Timestamp, tracking::limits};
use serde_json::{Value, json};
use store::{Error, NewRun, RunRow, Tx, secrets::hex};

pub(super) async fn create(State(app): State<App>, call: Call) -> Answer {
    let number = super::experiment_number(&call.text("experiment_id")?.unwrap_or_else(|| "0".into()))?;
    let started_at = Timestamp(call.int("start_time")?.filter(|at| *at > 0).unwrap_or(app.now().0));
    let mut tags = tags_of(&call)?;
    let named = tags.iter().find(|(key, _)| key == "mlflow.runName").map(|(_, value)| value.clone());
    let asked = call.text("run_name")?.filter(|name| !name.is_empty());
    if let (Some(asked), Some(named)) = (&asked, &named)
        && asked != named
    {
        return Err(Fault::invalid(format!(
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values \
             (run_name='{asked}', mlflow.runName='{named}')."
        )));
    }
    let name = asked.or_else(|| named.clone()).unwrap_or_else(|| limits::random_run_name(app.store.keyring().random()));
    if named.is_none() {
        tags.push(("mlflow.runName".into(), name.clone()));
    }
    let user = call.text("user_id")?.filter(|user| !user.is_empty()).unwrap_or_else(|| call.caller.name.clone());
    let run_id = hex(&app.store.keyring().random::<16>());
    let (workspace, now, caller) = (call.workspace.name.clone(), app.now(), call.caller.clone());
    let shown = app
        .store
        .write(move |tx| {
            if number == 0 {
                tx.experiment_named(&workspace, store::DEFAULT_EXPERIMENT, now)?;
            }
            let experiment = match experiments::active(tx, &workspace, number)? {
                Ok(row) => row,
                Err(fault) => return Ok(Err(fault)),
            };
            if let Err(fault) = stays_below(tx, &workspace, &caller, &tags)? {
                return Ok(Err(fault));
            }
            let run = tx.insert_run(&NewRun {
                workspace: &workspace,
                run_id: &run_id,
                experiment: experiment.seq,
                job_seq: None,
                name: &name,
                user: &user,
                status: "RUNNING",
                started_at,
            })?;
            tags.iter().try_for_each(|(key, value)| tx.put_run_tag(run, key, value))?;
            let row = tx.run(&workspace, &run_id)?.ok_or(Error::Conflict)?;
            Ok(Ok(Shown::read(tx, vec![row])?))
        })
        .await??;
    Ok(Json(json!({"run": shown.views(&call).pop()})))
}

/// A job may begin runs below its own, and no others.
fn stays_below(
    tx: &mut Tx<'_>,
    workspace: &str,
    caller: &Caller,
    tags: &[(String, String)],
) -> Result<Result<(), Fault>, Error> {
    let Who::Job { job, .. } = &caller.who else { return Ok(Ok(())) };
    let parent = tags.iter().find(|(key, _)| key == "mlflow.parentRunId").map(|(_, value)| value);
    match parent {
        Some(parent) => Ok(find_run(tx, workspace, caller, parent)?.map(drop)),
        None => Ok(Err(Fault::forbidden(format!("the token of job `{job}` begins only runs below its own")))),
    }
}

pub(super) fn tags_of(call: &Call) -> Result<Vec<(String, String)>, Fault> {
    let mut tags = Vec::new();
    for tag in call.list("tags")? {
        let text = |key: &str| tag.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        limits::tag(&text("key"), &text("value"))?;
        tags.push((text("key"), text("value")));
    }
    Ok(tags)
}

pub(super) async fn show(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.run_id()?;
    let (workspace, caller) = (call.workspace.name.clone(), call.caller.clone());
    let shown = app
        .store
        .read(move |tx| match find_run(tx, &workspace, &caller, &run_id)? {
            Ok(row) => Ok(Ok(Shown::read(tx, vec![row])?)),
            Err(fault) => Ok(Err(fault)),
        })
        .await??;
    Ok(Json(json!({"run": shown.views(&call).pop()})))
}

/// A run's status, end and name. What a job is up to is known better here than to its code, so of a job only the name
/// changes.
pub(super) async fn update(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.run_id()?;
    let status = call.text("status")?.map(|word| limits::run_status(&word)).transpose()?;
    let (ended_at, name) = (call.int("end_time")?, call.text("run_name")?.filter(|name| !name.is_empty()));
    let (workspace, caller, now) = (call.workspace.name.clone(), call.caller.clone(), app.now());
    let shown = app
        .store
        .write(move |tx| {
            let mut row = match find_active(tx, &workspace, &caller, &run_id)? {
                Ok(row) => row,
                Err(fault) => return Ok(Err(fault)),
            };
            if let Some(name) = name {
                row.name.clone_from(&name);
                tx.put_run_tag(row.seq, "mlflow.runName", &name)?;
                rename_job(tx, &row, &name, now)?;
            }
            if row.job_seq.is_none() {
                row.status = status.map_or(row.status, str::to_owned);
                row.ended_at = ended_at.map(Timestamp).or(row.ended_at);
            }
            tx.put_run(&row)?;
            Ok(Ok(Shown::read(tx, vec![row])?))
        })
        .await??;
    let run = shown.views(&call).pop().unwrap_or_default();
    Ok(Json(json!({"run_info": run["info"]})))
}

fn rename_job(tx: &mut Tx<'_>, row: &RunRow, name: &str, now: Timestamp) -> Result<(), Error> {
    let Some(job) = row.job_seq.map(|seq| tx.jobs_by_seq(&[seq])).transpose()?.and_then(|mut rows| rows.pop()) else {
        return Ok(());
    };
    let mut body: Value = serde_json::from_str(&job.body).unwrap_or_default();
    body["displayName"] = json!(name);
    tx.put_job_body(job.job.seq, &body.to_string(), job.archived, now)
}

pub(super) async fn delete(State(app): State<App>, call: Call) -> Answer {
    set_deleted(&app, &call, true).await
}

pub(super) async fn restore(State(app): State<App>, call: Call) -> Answer {
    set_deleted(&app, &call, false).await
}

/// Puts a run away or brings it back; a job is archived with its run.
async fn set_deleted(app: &App, call: &Call, deleted: bool) -> Answer {
    let run_id = call.run_id()?;
    let (workspace, caller, now) = (call.workspace.name.clone(), call.caller.clone(), app.now());
    app.store
        .write(move |tx| {
            let mut row = match find_run(tx, &workspace, &caller, &run_id)? {
                Ok(row) => row,
                Err(fault) => return Ok(Err(fault)),
            };
            row.deleted_at = deleted.then_some(now);
            if let Some(job) = row.job_seq.map(|seq| tx.jobs_by_seq(&[seq])).transpose()?.and_then(|mut all| all.pop()) {
                tx.put_job_body(job.job.seq, &job.body, deleted, now)?;
            }
            tx.put_run(&row)?;
            Ok(Ok(()))
        })
        .await??;
    Ok(done())
}

/// The run, if it may be written to.
pub(super) fn find_active(
    tx: &mut Tx<'_>,
    workspace: &str,
    caller: &Caller,
    run_id: &str,
) -> Result<Result<RunRow, Fault>, Error> {
    Ok(find_run(tx, workspace, caller, run_id)?.and_then(|row| match row.deleted_at {
        None => Ok(row),
        Some(_) => {
            Err(Fault::invalid(format!("The run {run_id} must be in the 'active' state. Current state is deleted.")))
        }
    }))
}
