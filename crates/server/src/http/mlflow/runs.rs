//! Runs: begin, look, end, put away.

use super::{
    Answer, brief,
    call::{Asker, Call, PARENT, experiment_number},
    carried::Carried,
    done, experiments,
    fault::{Fault, read, write},
    view::Shown,
};
use crate::{app::App, auth::Who};
use axum::{Json, extract::State};
use domain::{
    Timestamp,
    tracking::{RunStatus, limits},
};
use serde_json::{Value, json};
use store::{Error, NewRun, RunRow, Tx, secrets::hex};

/// The tag that holds a run's name too.
pub(super) const NAME: &str = "mlflow.runName";

pub(super) async fn create(State(app): State<App>, call: Call) -> Answer {
    let number = experiment_number(&call.need("experiment_id")?)?;
    let started_at = Timestamp(call.int("start_time")?.filter(|at| *at > 0).unwrap_or(app.now().0));
    let mut tags = call.pairs("tags")?;
    let (asked, by_tag) = (call.text("run_name")?, tags.iter().position(|(key, _)| key == NAME));
    let tagged = by_tag.map(|at| tags[at].1.clone());
    let name = match limits::run_name(asked.as_deref(), tagged.as_deref())? {
        Some(name) => name.to_owned(),
        None => domain::names::run_name(app.store.keyring().random()),
    };
    match by_tag {
        Some(at) => tags[at].1.clone_from(&name),
        None => tags.push((NAME.into(), name.clone())),
    }
    let user = call.text("user_id")?.filter(|user| !user.is_empty()).unwrap_or_else(|| call.by.caller.name.clone());
    let run_id = Carried::of(&call)?.id.unwrap_or_else(|| hex(&app.store.keyring().random::<16>()));
    let by = call.by.clone();
    let shown = write(&app, move |tx| {
        let experiment = experiments::active(tx, &by, number)?;
        stays_below(tx, &by, &tags)?;
        if tx.run(by.workspace(), &run_id)?.is_some() {
            return Err(Fault::exists(format!("Run with id={run_id} already exists.")));
        }
        let run = tx.insert_run(&NewRun {
            workspace: by.workspace(),
            run_id: &run_id,
            experiment: experiment.seq,
            job_seq: None,
            name: &name,
            user: &user,
            status: RunStatus::Running.as_str(),
            started_at,
        })?;
        tags.iter().try_for_each(|(key, value)| tx.put_run_tag(run, key, value))?;
        let row = tx.run(by.workspace(), &run_id)?.ok_or(Error::Conflict)?;
        Ok(Shown::read(tx, vec![row])?)
    })
    .await?;
    let mut run = shown.views(&call.by).pop().unwrap_or_default();
    // A run that has just begun has made nothing, and clients are not told that it has.
    run.as_object_mut().map(|run| run.remove("outputs"));
    Ok(Json(brief([("run", run)])))
}

/// A job may begin runs below its own, and no others.
fn stays_below(tx: &mut Tx<'_>, by: &Asker, tags: &[(String, String)]) -> Result<(), Fault> {
    let Who::Job { job, .. } = &by.caller.who else { return Ok(()) };
    match tags.iter().find(|(key, _)| key == PARENT) {
        Some((_, parent)) => by.run(tx, parent).map(drop),
        None => Err(Fault::forbidden(format!("the token of job `{job}` begins only runs below its own"))),
    }
}

pub(super) async fn show(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.run_id()?;
    let by = call.by.clone();
    let shown = read(&app, move |tx| {
        let row = by.run(tx, &run_id)?;
        Ok(Shown::read(tx, vec![row])?)
    })
    .await?;
    Ok(Json(brief([("run", shown.views(&call.by).pop().unwrap_or_default())])))
}

/// A run's status, end and name. What a job is up to is known better here than to its code, so of a job only the name
/// changes.
pub(super) async fn update(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.need("run_id")?;
    let status = call.args.get("status").filter(|word| !word.is_null()).map(RunStatus::of_json).transpose()?;
    let (ended_at, name) = (call.int("end_time")?, call.text("run_name")?.filter(|name| !name.is_empty()));
    let (by, now) = (call.by.clone(), app.now());
    let shown = write(&app, move |tx| {
        let mut row = by.active_run(tx, &run_id)?;
        if let Some(name) = name {
            row.name.clone_from(&name);
            tx.put_run_tag(row.seq, NAME, &name)?;
            rename_job(tx, &row, &name, now)?;
        }
        if row.job_seq.is_none() {
            row.status = status.map_or(row.status, |status| status.as_str().to_owned());
            row.ended_at = ended_at.map(Timestamp).or(row.ended_at);
        }
        tx.put_run(&row)?;
        if status.is_some_and(RunStatus::is_terminal) {
            tx.fold_points(row.seq)?;
        }
        Ok(Shown::read(tx, vec![row])?)
    })
    .await?;
    let run = shown.views(&call.by).pop().unwrap_or_default();
    Ok(Json(json!({"run_info": run["info"]})))
}

/// The name of a run that is a job is the job's.
pub(super) fn rename_job(tx: &mut Tx<'_>, row: &RunRow, name: &str, now: Timestamp) -> Result<(), Error> {
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
    let (run_id, by, now) = (call.need("run_id")?, call.by.clone(), app.now());
    write(app, move |tx| {
        let mut row = by.run(tx, &run_id)?;
        row.deleted_at = deleted.then_some(now);
        if let Some(job) = row.job_seq.map(|seq| tx.jobs_by_seq(&[seq])).transpose()?.and_then(|mut all| all.pop()) {
            tx.put_job_body(job.job.seq, &job.body, deleted, now)?;
        }
        Ok(tx.put_run(&row)?)
    })
    .await?;
    Ok(done())
}
