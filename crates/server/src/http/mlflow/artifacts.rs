//! Files of runs, streamed to and from the workspace's own store: where a job's logs and outputs are.
//!
//! Invariant: a path names a file of one run or one model of this workspace, and stays inside.

use super::{Answer, Call, Fault, caller_of, find_run, workspace_of};
use crate::{app::App, http::blobs};
use axum::{
    Json,
    body::Body,
    extract::{Path, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{RunRow, files::ARTIFACT_CONTAINER};

/// Where the files of an experiment's runs are, as clients name it.
pub(super) fn experiment_uri(call: &Call, number: i64) -> String {
    match call.plugin {
        true => format!("azureml://experiments/{number}"),
        false => format!("mlflow-artifacts:/{number}"),
    }
}

/// Where a run's files are: through this server for plain clients, through run history for Azure's plugin.
pub(super) fn run_uri(call: &Call, run: &RunRow) -> String {
    match call.plugin {
        true => format!("{}/experiments/{}/runs/{}/artifacts", call.plugin_base(), run.number, run.run_id),
        false => format!("mlflow-artifacts:/{}/{}/artifacts", run.number, run.run_id),
    }
}

/// The folder of a run's files in the artifact container.
pub(super) fn folder_of(run_id: &str) -> String {
    format!("ExperimentRun/dcid.{run_id}/")
}

/// What a proxied path names: `<experiment>/<run>/artifacts/<file>` or `<experiment>/models/<model>/artifacts/<file>`.
fn inside(path: &str) -> Result<(String, Option<String>), Fault> {
    let bad = || Fault::invalid(format!("Invalid path: {}", path.chars().take(200).collect::<String>()));
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    if parts.iter().any(|part| part.is_empty() || *part == "." || *part == "..") {
        return Err(bad());
    }
    match parts.as_slice() {
        [_, "models", model, "artifacts", rest @ ..] => Ok((format!("LoggedModels/{model}/{}", rest.join("/")), None)),
        [_, run, "artifacts", rest @ ..] => {
            Ok((format!("{}{}", folder_of(run), rest.join("/")), Some((*run).to_owned())))
        }
        _ => Err(bad()),
    }
}

#[derive(Deserialize)]
pub(super) struct At {
    path: String,
}

/// The blob a request names, if the caller may touch it.
async fn spot(app: &App, path: &str, request: &mut Request) -> Result<(String, String), Fault> {
    let workspace = workspace_of(app, request).await?;
    let caller = caller_of(request)?;
    let (blob, run) = inside(path)?;
    let name = workspace.name.clone();
    if let Some(run) = run {
        app.store.read(move |tx| find_run(tx, &name, &caller, &run)).await??;
    }
    Ok((workspace.name.clone(), blob))
}

pub(super) async fn put(State(app): State<App>, Path(at): Path<At>, mut request: Request) -> Result<Response, Fault> {
    let (workspace, blob) = spot(&app, &at.path, &mut request).await?;
    blobs::store_stream(&app, &workspace, ARTIFACT_CONTAINER, &blob, request.into_body()).await?;
    Ok(Json(json!({})).into_response())
}

pub(super) async fn get(State(app): State<App>, Path(at): Path<At>, mut request: Request) -> Result<Response, Fault> {
    let (workspace, blob) = spot(&app, &at.path, &mut request).await?;
    let path = app.files.blob(&workspace, ARTIFACT_CONTAINER, &blob).map_err(crate::problem::Problem::from)?;
    let root = app.files.container(&workspace, ARTIFACT_CONTAINER);
    let missing = || Fault::missing(format!("No such artifact: '{}'", at.path));
    let file = tokio::fs::File::open(&path).await.map_err(|_| missing())?;
    let meta = file.metadata().await.map_err(|_| missing())?;
    if !meta.is_file() || !store::files::stays_inside(&root, &path) {
        return Err(missing());
    }
    let body = Body::from_stream(tokio_util::io::ReaderStream::with_capacity(file, 256 << 10));
    let headers = [("content-length", meta.len().to_string()), ("content-type", "application/octet-stream".into())];
    Ok((StatusCode::OK, headers, body).into_response())
}

pub(super) async fn delete(State(app): State<App>, Path(at): Path<At>, mut request: Request) -> Answer {
    let (workspace, blob) = spot(&app, &at.path, &mut request).await?;
    let path = app.files.blob(&workspace, ARTIFACT_CONTAINER, blob.trim_end_matches('/')).map_err(crate::problem::Problem::from)?;
    let gone = match tokio::fs::metadata(&path).await {
        Ok(meta) if meta.is_dir() => tokio::fs::remove_dir_all(&path).await,
        Ok(_) => tokio::fs::remove_file(&path).await,
        Err(_) => return Err(Fault::missing(format!("No such artifact: '{}'", at.path))),
    };
    gone.map_err(|error| Fault::from(crate::problem::Problem::from(error)))?;
    Ok(super::done())
}

/// Files directly under a path, for clients that go through this server.
pub(super) async fn folder(State(app): State<App>, call: Call) -> Answer {
    let asked = call.text("path")?.unwrap_or_default();
    let (prefix, run) = inside(&format!("{}/", asked.trim_matches('/')).trim_end_matches('/'))?;
    if let Some(run) = run {
        let (workspace, caller) = (call.workspace.name.clone(), call.caller.clone());
        app.store.read(move |tx| find_run(tx, &workspace, &caller, &run)).await??;
    }
    let found = children(&app, &call.workspace.name, &prefix).await?;
    let files: Vec<Value> = found.iter().map(|(name, size)| entry(name, *size)).collect();
    Ok(Json(json!({"files": files})))
}

/// Files directly under a path of a run.
pub(super) async fn list(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.run_id()?;
    let inside = call.text("path")?.unwrap_or_default();
    let inside = inside.trim_matches('/');
    if inside.split('/').any(|part| part == "..") {
        return Err(Fault::invalid(format!("Invalid path: {inside}")));
    }
    let (workspace, caller, wanted) = (call.workspace.name.clone(), call.caller.clone(), run_id.clone());
    let run = app.store.read(move |tx| find_run(tx, &workspace, &caller, &wanted)).await??;
    let found = children(&app, &call.workspace.name, &format!("{}{inside}", folder_of(&run_id))).await?;
    let named = |name: &str| if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
    let files: Vec<Value> = found.iter().map(|(name, size)| entry(&named(name), *size)).collect();
    let mut answer = json!({"root_uri": run_uri(&call, &run)});
    if !files.is_empty() {
        answer["files"] = json!(files);
    }
    Ok(Json(answer))
}

fn entry(path: &str, size: Option<u64>) -> Value {
    match size {
        Some(size) => json!({"path": path, "is_dir": false, "file_size": size}),
        None => json!({"path": path, "is_dir": true}),
    }
}

/// Names directly under a folder; sizes of those that are files.
async fn children(app: &App, workspace: &str, folder: &str) -> Result<BTreeMap<String, Option<u64>>, Fault> {
    let path = app.files.blob(workspace, ARTIFACT_CONTAINER, folder.trim_end_matches('/')).map_err(crate::problem::Problem::from)?;
    let root = app.files.container(workspace, ARTIFACT_CONTAINER);
    let read = move || {
        let mut found = BTreeMap::new();
        if !store::files::stays_inside(&root, &path) {
            return found;
        }
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let size = meta.is_file().then(|| meta.len());
            if meta.is_file() || meta.is_dir() {
                found.insert(entry.file_name().to_string_lossy().into_owned(), size);
            }
        }
        found
    };
    tokio::task::spawn_blocking(read).await.map_err(|_| store::Error::Closed.into())
}
