//! Jobs: submit, look, change what may change, stop.

mod graph;
mod queue;
mod submit;
mod update;
mod wait;
mod why;

pub(crate) use graph::graph;
pub(crate) use queue::queue;
pub(crate) use submit::{DEFAULT_EXPERIMENT, Submitted, prepare, submit};
pub(crate) use update::{Labels, change};
pub(crate) use why::why;

use super::{
    Asked, At, Body, agents, archived,
    paging::{Cut, Paging},
    views,
};
use crate::{
    app::{App, scope},
    auth::Caller,
    problem::Problem,
};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::{HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use domain::{AttemptId, JobName, JobState, Timestamp, report::Sample};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use store::{JobFilter, JobRow, Tx, WorkspaceRow};

/// Jobs are long; this many make a page that is quick to answer.
const PAGE: usize = 50;

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    uri: Uri,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let paging = Paging::or(&asked, PAGE)?;
    let parent = match asked.get("parent") {
        Some(name) => Some(find(&app, &At { name: name.clone(), ..at }).await?.1.job.seq),
        None => None,
    };
    let filter = JobFilter {
        parent,
        schedule: asked.get("schedule").cloned(),
        workspace: workspace.name.clone(),
        archived: archived(&asked),
        kind: asked.get("jobType").cloned(),
        tag: asked.get("tag").cloned(),
        before: paging.row()?,
        limit: i64::try_from(paging.limit).unwrap_or(i64::MAX),
    };
    let page = app.store.read(move |tx| tx.jobs(&filter)).await?;
    let scope = scope(&workspace);
    let cut = Cut { items: page.rows, next: page.next.map(|last| last.to_string()) };
    Ok(Json(cut.shown(&app, &uri, &asked, |row| views::job(&app, &scope, row))))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (workspace, row) = find(&app, &at).await?;
    let seq = row.job.seq;
    let (plan, moved) = app.store.read(move |tx| Ok((tx.plan(seq)?.unwrap_or_default(), tx.moved(seq)?))).await?;
    let mut view = views::job(&app, &scope(&workspace), &row);
    if !moved.is_nothing() {
        view["properties"]["peregrine"]["dataBytes"] = json!(moved);
    }
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
    if properties["resources"]["instanceType"].is_string() && !on_cluster(&app, &workspace, &properties).await? {
        app.until_capacity_is_known().await;
    }
    let (place, then) = (Arc::clone(&workspace), app.clone());
    let submitted = app.store.write(move |tx| submit(&then, &place, tx, name, &properties, caller.name)).await?;
    let (status, row) = match submitted {
        Submitted::Accepted(row) => {
            app.metrics.accepted.inc();
            (StatusCode::CREATED, row)
        }
        Submitted::Changed(row) => (StatusCode::OK, row),
        Submitted::Refused(problem) => return Err(problem),
    };
    Ok((status, Json(views::job(&app, &scope(&workspace), &row))))
}

/// Whether a job names a target of which the local agent knows nothing.
async fn on_cluster(app: &App, workspace: &WorkspaceRow, properties: &Value) -> Result<bool, Problem> {
    let Some(id) = properties["computeId"].as_str() else { return Ok(false) };
    let (workspace, name) = (workspace.name.clone(), api::arm::reference::compute_name(id));
    Ok(app.store.read(move |tx| tx.target(&workspace, &name)).await?.is_some())
}

/// Jobs are records and stay; deleting one hides it.
pub(crate) async fn delete(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    let (_, row) = find(&app, &at).await?;
    let now = app.now();
    let hidden = app.store.write(move |tx| {
        let Some(row) = tx.job(&row.job.workspace, row.job.name.as_str())? else { return Ok(Ok(row)) };
        if !row.job.state.is_ended() {
            let message = format!("job `{}` has not ended; cancel it first", row.job.name);
            return Ok(Err(Problem::conflict(message)));
        }
        change(tx, row, &json!({"isArchived": true}), Labels::Added, now)
    });
    hidden.await?.map(|_| StatusCode::OK)
}

/// Asks a job to stop. What still has processes is not over yet: the answer says where to ask.
pub(crate) async fn cancel(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let (workspace, row) = find(&app, &at).await?;
    let now = app.now();
    let seq = row.job.seq;
    let reason = format!("canceled by {}", caller.name);
    let (attempt, ended, over) = app.store.write(move |tx| stop(tx, seq, &reason, now)).await?;
    agents::count(&app, ended);
    if let Some(attempt) = attempt {
        app.calls.ring(&attempt);
    }
    Ok(stopping(&app, &workspace, &row, over))
}

/// Asks a job to stop: the attempt that must hear of it, how the job has ended by this, and whether it is over.
pub(crate) fn stop(
    tx: &mut Tx<'_>,
    seq: i64,
    reason: &str,
    now: Timestamp,
) -> Result<(Option<AttemptId>, Option<&'static str>, bool), store::Error> {
    let Some(stopped) = tx.stop_job(seq, reason, now)? else { return Ok((None, None, true)) };
    let state = &stopped.job.state;
    Ok((stopped.attempt, stopped.ended.then(|| state.status()), state.is_ended()))
}

/// Whether a job that was asked to stop has gone.
pub(crate) async fn canceled(State(app): State<App>, Path(at): Path<At>) -> Result<Response, Problem> {
    let (workspace, row) = find(&app, &at).await?;
    Ok(stopping(&app, &workspace, &row, row.job.state.is_ended()))
}

/// `200` once the job is over; until then `202` and where to ask again.
fn stopping(app: &App, workspace: &WorkspaceRow, row: &JobRow, over: bool) -> Response {
    if over {
        return Json(json!({})).into_response();
    }
    let address = format!("{}{}/jobs/{}/cancel", app.url, scope(workspace).path(), row.job.name);
    let location = HeaderValue::try_from(address).expect("an address is a header value");
    let again = HeaderValue::from_static("1");
    let headers = [(header::LOCATION, location), (header::RETRY_AFTER, again)];
    (StatusCode::ACCEPTED, headers, Json(json!({}))).into_response()
}

/// A reading, and which part of the job it is of; of a job on this machine there is one.
#[derive(Serialize)]
struct Reading {
    part: u32,
    #[serde(flatten)]
    sample: Sample,
}

/// Readings of the nodes between the job's start and its end.
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
            for (part, node) in measured(tx, &row)? {
                all.extend(tx.samples(&node, from, to)?.into_iter().map(|sample| Reading { part, sample }));
            }
            Ok(all)
        })
        .await?;
    Ok(Json(json!({"value": samples})))
}

/// Under which names the parts of a job were measured, attempt after attempt.
fn measured(tx: &mut Tx<'_>, row: &JobRow) -> Result<Vec<(u32, String)>, store::Error> {
    if row.cluster == store::HERE {
        return Ok(tx.nodes()?.into_iter().map(|node| (0, node.facts.node)).collect());
    }
    // Every pod tells of itself, under the name of its attempt and part.
    let parts = tx.plan(row.job.seq)?.unwrap_or_default().parts();
    let of = |number| (0..parts).map(move |part| (part, format!("{}/{part}", AttemptId::of(row.job.seq, number))));
    Ok((0..row.job.attempts).flat_map(of).collect())
}

pub(crate) async fn find(app: &App, at: &At) -> Result<(Arc<WorkspaceRow>, JobRow), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let row = app.store.read(move |tx| tx.job(&key, &name)).await?;
    let row = row.ok_or_else(|| Problem::not_found("job", &at.name))?;
    Ok((workspace, row))
}
