//! Jobs: submit, look, change what may change, stop.

use super::{Asked, At, Body, archived, views};
use crate::{
    app::{App, scope},
    auth::Caller,
    problem::Problem,
    resolve,
};
use api::arm;
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::StatusCode,
};
use domain::{
    JobEvent, JobName, JobState, Outcome, Timestamp,
    spec::{Mistake, check},
};
use serde_json::{Value, json};
use std::sync::Arc;
use store::{Error, JobFilter, JobRow, NewJob, Tx, WorkspaceRow};

const PAGE: i64 = 50;
const PAGE_MOST: i64 = 1000;

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let number = |key: &str| asked.get(key).and_then(|text| text.parse::<i64>().ok());
    let limit = number("$top").unwrap_or(PAGE).clamp(1, PAGE_MOST);
    let filter = JobFilter {
        workspace: workspace.name.clone(),
        archived: archived(&asked),
        kind: asked.get("jobType").cloned(),
        tag: asked.get("tag").cloned(),
        before: number("$skipToken"),
        limit,
    };
    let rows = app.store.read(move |tx| tx.jobs(&filter)).await?;
    let scope = scope(&workspace);
    let more = i64::try_from(rows.len()).is_ok_and(|n| n == limit);
    let next = rows.last().filter(|_| more).map(|last| {
        let rest = asked.iter().filter(|(key, _)| *key != "$skipToken").map(|(k, v)| format!("&{k}={}", encode(v)));
        format!("{}{}/jobs?$skipToken={}{}", app.url, scope.path(), last.job.seq, rest.collect::<String>())
    });
    Ok(Json(views::page(rows.iter().map(|row| views::job(&app, &scope, row)).collect(), next)))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (workspace, row) = find(&app, &at).await?;
    let seq = row.job.seq;
    let plan = app.store.read(move |tx| tx.plan(seq)).await?.unwrap_or_default();
    let mut view = views::job(&app, &scope(&workspace), &row);
    for (name, output) in &plan.outputs {
        view["properties"]["outputs"][name]["uri"] = json!(output.uri);
    }
    Ok(Json(view))
}

/// Submits a job; on a job that exists, changes its tags, description, display name and archive mark.
pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let name = JobName::parse(&at.name).map_err(|bad| Problem::bad(bad.to_string()))?;
    let properties = body.get("properties").cloned().unwrap_or_default();
    if properties["resources"]["instanceType"].is_string() {
        app.until_capacity_is_known().await;
    }
    let (place, asked, then) = (Arc::clone(&workspace), properties.clone(), app.clone());
    let submitted = app.store.write(move |tx| submit(&then, &place, tx, name, &asked, caller.name)).await?;
    match submitted {
        Submitted::Accepted(row) => {
            app.metrics.accepted.inc();
            Ok((StatusCode::CREATED, Json(views::job(&app, &scope(&workspace), &row))))
        }
        Submitted::Known(row) => update(&app, &workspace, *row, &properties).await,
        Submitted::Refused(mistakes) => Err(Problem::mistakes(&format!("job `{}`", at.name), &mistakes)),
    }
}

/// What became of a submit.
enum Submitted {
    Accepted(Box<JobRow>),
    /// A job of that name is there already.
    Known(Box<JobRow>),
    Refused(Vec<Mistake>),
}

/// Reads, checks and resolves a body, and stores the job: in one transaction, so that what it refers to is there.
fn submit(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    name: JobName,
    properties: &Value,
    by: String,
) -> Result<Submitted, Error> {
    if let Some(row) = tx.job(&workspace.name, name.as_str())? {
        return Ok(Submitted::Known(Box::new(row)));
    }
    let spec = match arm::job::spec(properties) {
        Ok(spec) => spec,
        Err(mistakes) => return Ok(Submitted::Refused(mistakes)),
    };
    let mut mistakes = check::command_job(&spec);
    let resolved = match resolve::plan(app, workspace, tx, &name, &spec)? {
        Ok(resolved) if mistakes.is_empty() => resolved,
        Ok(_) => return Ok(Submitted::Refused(mistakes)),
        Err(more) => {
            mistakes.extend(more);
            return Ok(Submitted::Refused(mistakes));
        }
    };
    let new = NewJob {
        workspace: workspace.name.clone(),
        body: properties.to_string(),
        plan: resolved.plan,
        kind: "Command",
        experiment: spec.experiment_name.unwrap_or_else(|| "Default".into()),
        target: resolved.target,
        priority: spec.queue_settings.priority.map_or(2, |priority| priority as i64 + 1),
        max_retries: resolved.max_retries,
        registers: spec.outputs.values().any(|output| output.name.is_some()),
        created_by: by,
        at: app.now(),
        name,
    };
    let seq = tx.insert_job(&new)?;
    Ok(Submitted::Accepted(Box::new(born(seq, new))))
}

fn born(seq: i64, new: NewJob) -> JobRow {
    JobRow {
        job: domain::Job {
            seq,
            workspace: new.workspace,
            name: new.name,
            state: JobState::Queued { since: new.at },
            attempts: 0,
            max_retries: new.max_retries,
            priority: new.priority,
            version: 1,
            created_at: new.at,
        },
        body: new.body,
        archived: false,
        note: String::new(),
        target: new.target,
        isolation: None,
        created_by: new.created_by,
        changed_at: new.at,
    }
}

/// What stays changeable once a job is accepted. Anything else that differs is refused.
const CHANGEABLE: [&str; 5] = ["tags", "description", "displayName", "isArchived", "properties"];
/// What only the server writes; clients send it back as they got it.
const SERVERS: [&str; 4] = ["status", "services", "peregrine", "isArchived"];

/// Whether a client sends back what is on record; addresses of outputs were added when it was shown.
fn same(key: &str, kept: Option<&Value>, sent: &Value) -> bool {
    if key != "outputs" {
        return kept == Some(sent);
    }
    let without_address = |outputs: &Value| {
        let mut outputs = outputs.clone();
        outputs
            .as_object_mut()
            .into_iter()
            .flat_map(|map| map.values_mut())
            .filter_map(Value::as_object_mut)
            .for_each(|o| drop(o.remove("uri")));
        outputs
    };
    kept.map(without_address) == Some(without_address(sent))
}

async fn update(
    app: &App,
    workspace: &WorkspaceRow,
    mut row: JobRow,
    asked: &Value,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let mut body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let empty = serde_json::Map::new();
    for (key, value) in asked.as_object().unwrap_or(&empty) {
        if CHANGEABLE.contains(&key.as_str()) {
            body[key] = value.clone();
        } else if !SERVERS.contains(&key.as_str()) && !value.is_null() && !same(key, body.get(key), value) {
            let message = format!("job `{}` exists; its `{key}` cannot change, submit a new job instead", row.job.name);
            return Err(Problem::conflict(message));
        }
    }
    let archive = asked.get("isArchived").and_then(Value::as_bool).unwrap_or(row.archived);
    row.body = body.to_string();
    row.archived = archive;
    let (seq, text, now) = (row.job.seq, row.body.clone(), app.now());
    app.store.write(move |tx| tx.put_job_body(seq, &text, archive, now)).await?;
    Ok((StatusCode::OK, Json(views::job(app, &scope(workspace), &row))))
}

/// Jobs are records and stay; deleting one hides it.
pub(crate) async fn delete(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    let (_, row) = find(&app, &at).await?;
    if !row.job.state.is_ended() {
        return Err(Problem::conflict(format!("job `{}` has not ended; cancel it first", row.job.name)));
    }
    let now = app.now();
    app.store.write(move |tx| tx.put_job_body(row.job.seq, &row.body, true, now)).await?;
    Ok(StatusCode::OK)
}

pub(crate) async fn cancel(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let (_, row) = find(&app, &at).await?;
    let now = app.now();
    let seq = row.job.seq;
    let ended = app
        .store
        .write(move |tx| {
            let Some(mut job) = tx.job_by_seq(seq)? else { return Ok(None) };
            let reason = format!("canceled by {}", caller.name);
            if job.apply(JobEvent::StopRequested { reason: reason.clone() }, now).is_err() {
                return Ok(None);
            }
            tx.put_job(&job, Some(&reason), now)?;
            tx.add_event(seq, now, "cancel", &reason)?;
            Ok(job.state.is_ended().then(|| job.state.status()))
        })
        .await?;
    if let Some(status) = ended {
        app.metrics.ended.get_or_create(&crate::metrics::Labelled { is: status.to_owned() }).inc();
    }
    Ok(Json(json!({})))
}

/// Where a job is and why, in words, with its whole story.
pub(crate) async fn why(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (_, row) = find(&app, &at).await?;
    let job = row.job.clone();
    let (events, ahead) = app.store.read(move |tx| Ok((tx.events(job.seq)?, tx.ahead_of(&job)?))).await?;
    let ahead = if matches!(row.job.state, JobState::Queued { .. } | JobState::Placed { .. }) { ahead } else { 0 };
    let (summary, hints) = explain(&row, ahead, app.now());
    let failure = match &row.job.state {
        JobState::Ended { outcome: Outcome::Failed(failure), .. } => Some(failure),
        _ => None,
    };
    let events: Vec<Value> = events.iter().map(|e| json!({"at": e.at.iso(), "kind": e.kind, "text": e.text})).collect();
    Ok(Json(json!({
        "name": row.job.name, "status": row.job.state.status(), "phase": row.job.state.name(), "note": row.note,
        "target": row.target, "ahead": ahead, "summary": summary, "failure": failure, "hints": hints, "events": events,
    })))
}

/// One sentence on where a job is, and what its user could do next.
fn explain(row: &JobRow, ahead: i64, now: Timestamp) -> (String, Vec<String>) {
    let name = &row.job.name;
    let for_time = |since: Timestamp| domain::time::humane(now.since(since));
    match &row.job.state {
        JobState::Queued { since } | JobState::Placed { since, .. } => {
            let summary = format!("it has waited for {}: {}; {ahead} jobs stand before it", for_time(*since), row.note);
            (
                summary,
                vec![format!(
                    "see what runs: `peregrine job list`, what there is: `peregrine compute show -n {}`",
                    row.target
                )],
            )
        }
        JobState::Preparing { since, .. } => {
            (format!("its node has been preparing for {}: {}", for_time(*since), row.note), vec![])
        }
        JobState::Running { since, .. } => (
            format!("its command has been running for {}", for_time(*since)),
            vec![format!("follow it: `peregrine job stream -n {name}`")],
        ),
        JobState::Finalizing { .. } => ("its command has ended; logs and outputs are being collected".into(), vec![]),
        JobState::Stopping { since, .. } => {
            (format!("it was asked to stop {} ago and has not gone yet", for_time(*since)), vec![])
        }
        JobState::Ended { outcome, .. } => match outcome {
            Outcome::Completed => {
                ("it completed".into(), vec![format!("get its files: `peregrine job download -n {name} --all`")])
            }
            Outcome::Canceled { reason } => (format!("it was canceled: {reason}"), vec![]),
            Outcome::Failed(failure) => (
                format!("it failed: {}", failure.message),
                vec![format!("read its log: `peregrine job stream -n {name}`"), hint_for(&failure.code).to_owned()],
            ),
        },
    }
}

fn hint_for(code: &str) -> &'static str {
    match code {
        "UserError.OutOfMemory" => "choose a larger `resources.instance_type`, or use less memory",
        "UserError.CommandNotFound" => {
            "is the program in the job's `environment`, and the script in its `code` folder?"
        }
        "EnvironmentBuildFailed" => "the build log is `system_logs/environment.log`: `peregrine job stream --all`",
        "DataAccessError" => "does the input exist, and does its datastore hold working credentials?",
        "NodeDiskFull" => "free space on the node; `peregrine doctor` shows how much there is",
        _ => "run the command by hand in the job's `code` folder to see the fault again",
    }
}

/// Readings of the node between the job's start and its end.
pub(crate) async fn samples(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (_, row) = find(&app, &at).await?;
    let to = match &row.job.state {
        JobState::Ended { at, .. } => *at,
        _ => app.now(),
    };
    let from = row.job.state.started_at().unwrap_or(to);
    // The readings on either side of a short job still tell something.
    let (from, to) = (Timestamp(from.0 - 5_000), Timestamp(to.0 + 5_000));
    let samples = app
        .store
        .read(move |tx| {
            let mut all = Vec::new();
            for node in tx.nodes()? {
                all.extend(tx.samples(&node.facts.node, from, to)?);
            }
            Ok(all)
        })
        .await?;
    Ok(Json(json!({"value": samples})))
}

pub(crate) async fn find(app: &App, at: &At) -> Result<(Arc<WorkspaceRow>, JobRow), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let row = app.store.read(move |tx| tx.job(&key, &name)).await?;
    let row = row.ok_or_else(|| Problem::not_found("job", &at.name))?;
    Ok((workspace, row))
}

fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}
