//! Compute targets. `local`, this machine, is in every workspace; the others come with their drivers.

use super::{At, Body, views};
use crate::{
    app::{App, scope},
    problem::Problem,
};
use api::arm::{self, PROVIDER, system_data};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use domain::{Timestamp, names::ComputeName};
use serde_json::{Map, Value, json};
use store::{ComputeRow, NodeRow, WorkspaceRow};

pub(crate) const LOCAL: &str = "local";
/// A node not heard of for this long is shown as not answering.
const SILENT_MS: i64 = 30_000;

pub(crate) async fn list(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let name = workspace.name.clone();
    let (rows, nodes) = app.store.read(move |tx| Ok((tx.computes(&name)?, tx.nodes()?))).await?;
    let others = rows.iter().filter(|row| row.name != LOCAL).map(|row| view(&workspace, row));
    let all = std::iter::once(local_view(&app, &workspace, &nodes)).chain(others);
    Ok(Json(views::page(all.collect(), None)))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let (row, nodes, names) = app
        .store
        .read(move |tx| {
            let names = tx.computes(&key)?.into_iter().map(|row| row.name).collect::<Vec<_>>();
            Ok((tx.compute(&key, &name)?, tx.nodes()?, names))
        })
        .await?;
    match row {
        _ if at.name.eq_ignore_ascii_case(LOCAL) => Ok(Json(local_view(&app, &workspace, &nodes))),
        Some(row) => Ok(Json(view(&workspace, &row))),
        None => Err(Problem::missing("compute target", &at.name, &with_local(names))),
    }
}

/// Only `local` can run work so far; a target that could not is refused rather than kept as a promise.
pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    ComputeName::parse(&at.name).map_err(|bad| Problem::bad(bad.to_string()))?;
    let properties = body.get("properties").cloned().unwrap_or_default();
    let kind = arm::text(&properties, "computeType").unwrap_or_default();
    if !kind.eq_ignore_ascii_case(LOCAL) {
        return Err(Problem::bad(format!(
            "compute targets of type `{kind}` cannot run work yet; use `local`, the machine of this server"
        )));
    }
    let now = app.now();
    let row = ComputeRow { name: at.name.clone(), body: body.to_string(), created_at: now, changed_at: now };
    let (key, written) = (workspace.name.clone(), row.clone());
    app.store.write(move |tx| tx.put_compute(&key, &written)).await?;
    Ok((StatusCode::OK, Json(view(&workspace, &row))))
}

pub(crate) async fn delete(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    if at.name.eq_ignore_ascii_case(LOCAL) {
        return Err(Problem::conflict("compute target `local` is this machine and stays"));
    }
    let (key, name) = (workspace.name.clone(), at.name.clone());
    match app.store.write(move |tx| tx.delete_compute(&key, &name)).await? {
        true => Ok(StatusCode::OK),
        false => Err(Problem::not_found("compute target", &at.name)),
    }
}

pub(crate) async fn nodes(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let (nodes, running, known) =
        app.store.read(move |tx| Ok((tx.nodes()?, tx.active_jobs()?, tx.compute(&key, &name)?.is_some()))).await?;
    if !known && !at.name.eq_ignore_ascii_case(LOCAL) {
        return Err(Problem::not_found("compute target", &at.name));
    }
    let running = running.iter().find(|job| matches!(job.state, domain::JobState::Running { .. }));
    let now = app.now();
    let nodes = nodes.iter().map(|row| {
        let state = match (answers(row, now), running) {
            (false, _) => "unusable",
            (true, Some(_)) => "running",
            (true, None) => "idle",
        };
        json!({
            "nodeId": row.facts.node, "privateIpAddress": "127.0.0.1", "publicIpAddress": null, "port": null,
            "nodeState": state, "runId": running.map(|job| job.name.as_str()),
            "capacity": row.facts.capacity, "gpuModels": row.facts.gpu_models, "version": row.facts.version,
            "seenAt": row.seen_at.iso(),
        })
    });
    Ok(Json(json!({"nodes": nodes.collect::<Vec<_>>(), "nextLink": null})))
}

/// The names a job may write, this machine first.
pub(crate) fn with_local(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| name != LOCAL);
    names.insert(0, LOCAL.to_owned());
    names
}

fn answers(row: &NodeRow, now: Timestamp) -> bool {
    now.0 - row.seen_at.0 < SILENT_MS
}

fn local_view(app: &App, workspace: &WorkspaceRow, nodes: &[NodeRow]) -> Value {
    let types: Map<String, Value> = app
        .instance_types()
        .into_iter()
        .map(|kind| {
            let resources = json!({"requests": amounts(&kind.requests), "limits": kind.limits.as_ref().map(amounts)});
            (kind.name, json!({"nodeSelector": null, "resources": resources}))
        })
        .collect();
    let state = if nodes.iter().any(|row| answers(row, app.now())) { "Succeeded" } else { "Creating" };
    let created_at = nodes.iter().map(|row| row.seen_at).min().unwrap_or(workspace.created_at);
    json!({
        "id": format!("{}/computes/{LOCAL}", scope(workspace).path()), "name": LOCAL, "location": "local",
        "type": format!("{PROVIDER}/workspaces/computes"), "systemData": system_data(workspace.created_at, "local", created_at),
        "properties": {
            "computeType": "Local", "provisioningState": state, "isAttachedCompute": false, "createdOn": workspace.created_at.iso(),
            "description": "the machine this server runs on", "resourceId": null,
            "properties": {
                "defaultInstanceType": domain::resources::DEFAULT_INSTANCE_TYPE, "instanceTypes": types,
                "capacity": nodes.first().map(|row| amounts(&row.facts.capacity)),
                "gpuModels": nodes.first().map(|row| &row.facts.gpu_models),
                "isolation": if app.settings.isolation_required { "required" } else { "optional" },
            },
        },
    })
}

fn amounts(resources: &domain::Resources) -> Value {
    let mut out = json!({"cpu": format!("{}m", resources.cpu_milli)});
    if resources.memory_bytes > 0 {
        out["memory"] = json!(format!("{}Mi", resources.memory_bytes >> 20));
    }
    if resources.gpus > 0 {
        out["nvidia.com/gpu"] = json!(resources.gpus);
    }
    out
}

fn view(workspace: &WorkspaceRow, row: &ComputeRow) -> Value {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let mut properties = body.get("properties").cloned().unwrap_or_else(|| json!({}));
    properties["provisioningState"] = json!("Succeeded");
    json!({
        "id": format!("{}/computes/{}", scope(workspace).path(), row.name), "name": row.name, "location": "local",
        "type": format!("{PROVIDER}/workspaces/computes"), "systemData": system_data(row.created_at, "local", row.changed_at),
        "tags": body.get("tags"), "properties": properties,
    })
}
