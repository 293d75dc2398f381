//! Run history: the same jobs, in the words of the service that older clients stream, download and archive through.
//!
//! A run is a job and has no record of its own: what is shown here is read from the job, what is changed here is
//! changed there. The status is read before the files, so whoever sees the end sees the whole log.

mod logs;
mod outputs;
mod run;

pub(crate) use outputs::{resolve_data, resolve_models};

use super::{
    Asked, At, Body, jobs,
    paging::{Cut, Paging},
};
use crate::{
    app::{App, scope},
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, Query, State},
    http::Uri,
};
use domain::Plan;
use run::Spelling;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::{JobFilter, JobRow, WorkspaceRow};

/// One run.
pub(crate) async fn show(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let (workspace, row, plan) = find(&app, &at).await?;
    Ok(Json(run::view(&app, &workspace, &row, &plan, Spelling::asked(&asked))))
}

/// Status, error and logs of a run: what a client that streams asks for again and again.
pub(crate) async fn details(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (workspace, row, _) = find(&app, &at).await?;
    let files = logs::files(&app, &workspace, &row).await?;
    Ok(Json(run::details(&app, &row, files)))
}

/// Runs that a run started: the steps of a pipeline, the trials of a sweep.
pub(crate) async fn children(
    State(app): State<App>,
    Path(at): Path<At>,
    uri: Uri,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let (workspace, row, _) = find(&app, &at).await?;
    let paging = Paging::of(&asked)?;
    let filter = JobFilter {
        workspace: workspace.name.clone(),
        parent: Some(row.job.seq),
        before: paging.row()?,
        limit: i64::try_from(paging.limit).unwrap_or(i64::MAX),
        ..JobFilter::default()
    };
    let page = app.store.read(move |tx| {
        let page = tx.jobs(&filter)?;
        let mut runs = Vec::with_capacity(page.rows.len());
        for row in page.rows {
            let plan = tx.plan(row.job.seq)?.unwrap_or_default();
            runs.push((row, plan));
        }
        Ok(Cut { items: runs, next: page.next.map(|last| last.to_string()) })
    });
    let spelling = Spelling::asked(&asked);
    let mut shown =
        page.await?.shown(&app, &uri, &asked, |(row, plan)| run::view(&app, &workspace, row, plan, spelling));
    shown["continuationToken"] = Value::Null;
    Ok(Json(shown))
}

/// A run by the id in the body, with the addresses of its outputs.
pub(crate) async fn data(
    State(app): State<App>,
    Path(mut at): Path<At>,
    Query(asked): Asked,
    Body(body): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let id = body.get("runId").and_then(Value::as_str);
    at.name = id.ok_or_else(|| Problem::bad("`runId` is missing: name the run as text"))?.to_owned();
    let (workspace, row, plan) = find(&app, &at).await?;
    let run = run::view(&app, &workspace, &row, &plan, Spelling::asked(&asked));
    Ok(Json(json!({"runMetadata": run, "runDefinition": null, "jobSpecification": null, "systemSettings": null})))
}

/// Changes the labels of a run, or hides it: its job is changed, and nothing else.
pub(crate) async fn patch(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    Body(body): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let (workspace, row, plan) = find(&app, &at).await?;
    let wanted = labels(&body)?;
    let now = app.now();
    let changed = app.store.write(move |tx| match tx.job(&row.job.workspace, row.job.name.as_str())? {
        Some(row) => jobs::change(tx, row, &wanted, jobs::Labels::Added, now),
        None => Ok(Err(Problem::not_found("run", row.job.name.as_str()))),
    });
    let row = changed.await??;
    Ok(Json(run::view(&app, &workspace, &row, &plan, Spelling::asked(&asked))))
}

/// A patch in the words of the job resource. What clients send along as null stays as it is.
fn labels(body: &Value) -> Result<Value, Problem> {
    let body = body.as_object().ok_or_else(|| Problem::bad("send an object with what is to change"))?;
    let mut wanted = Map::new();
    for key in ["displayName", "description", "tags", "properties"] {
        if let Some(value) = body.get(key).filter(|value| !value.is_null()) {
            wanted.insert(key.to_owned(), value.clone());
        }
    }
    match body.get("hidden") {
        None | Some(Value::Null) => {}
        Some(Value::Bool(hidden)) => drop(wanted.insert("isArchived".into(), json!(hidden))),
        Some(_) => return Err(Problem::bad("`hidden` must be true or false")),
    }
    Ok(Value::Object(wanted))
}

/// Services that run on a node of a job.
pub(crate) async fn services(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (_, row, plan) = find(&app, &at).await?;
    let nodes = plan.distribution.map_or(1, |distribution| distribution.nodes);
    let Some(node) = at.node.parse::<u32>().ok().filter(|node| *node < nodes) else {
        let message = format!("run `{}` has no node `{}`; its nodes are 0 to {}", row.job.name, at.node, nodes - 1);
        return Err(Problem::new(axum::http::StatusCode::NOT_FOUND, "ResourceNotFound", message));
    };
    Ok(Json(json!({"instances": super::services::on_node(&row, node)})))
}

/// The job behind a run; in the experiment the path names, where it names one.
async fn find(app: &App, at: &At) -> Result<(Arc<WorkspaceRow>, JobRow, Plan), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let found = app.store.read(move |tx| match tx.job(&key, &name)? {
        Some(row) => {
            let plan = tx.plan(row.job.seq)?.unwrap_or_default();
            Ok(Some((row, plan)))
        }
        None => Ok(None),
    });
    let (row, plan) = found.await?.ok_or_else(|| Problem::not_found("run", &at.name))?;
    let experiment = run::experiment(&row);
    if !at.experiment.is_empty() && at.experiment != experiment {
        let message =
            format!("there is no run `{}` in experiment `{}`; it is in `{experiment}`", at.name, at.experiment);
        return Err(Problem::new(axum::http::StatusCode::NOT_FOUND, "ResourceNotFound", message));
    }
    Ok((workspace, row, plan))
}

/// The scope of a workspace as `azureml://` addresses spell it.
fn long_uri(workspace: &WorkspaceRow, uri: &str) -> String {
    use api::arm::reference::{DataUri, data_uri};
    let DataUri::Datastore { workspace: named, datastore, path } = data_uri(uri) else { return uri.to_owned() };
    if !crate::app::is_here(workspace, named.as_deref()) {
        return uri.to_owned();
    }
    let scope = scope(workspace);
    format!(
        "azureml://subscriptions/{}/resourcegroups/{}/workspaces/{}/datastores/{datastore}/paths/{path}",
        scope.subscription, scope.group, scope.workspace
    )
}
