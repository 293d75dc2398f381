//! Files of runs and of logged models, streamed to and from the workspace's own store: where a job's logs and outputs are.
//!
//! Invariant: a path names files of one run or one model of this workspace, and stays inside.

use super::{
    Answer, brief,
    call::{Asker, Call},
    fault::{Fault, read},
    logged,
    registry::Model,
};
use crate::{
    app::{App, is_here},
    auth::Who,
    http::{blobs, datastores},
};
use api::arm::reference::{DataUri, data_uri};
use axum::{
    Json,
    extract::{Path, Request, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use domain::tracking::ErrorCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{
    ExperimentRow, LoggedModelRow, RunRow,
    files::{ARTIFACT_CONTAINER, Spot},
};

/// Where the files of an experiment's runs are, as clients name it.
pub(super) fn experiment_uri(by: &Asker, row: &ExperimentRow) -> String {
    match row.artifact_location.as_str() {
        "" if by.plugin => format!("azureml://experiments/{}", row.number),
        "" => format!("mlflow-artifacts:/{}", row.number),
        location => location.to_owned(),
    }
}

/// Where a run's files are: through this server for plain clients, through run history for Azure's plugin.
pub(super) fn run_uri(by: &Asker, run: &RunRow) -> String {
    let run_id = &run.run_id;
    match run.location.as_str() {
        "" => spelled(by, &format!("mlflow-artifacts:/{}/{run_id}/artifacts", run.number)),
        location => below(location, &format!("{run_id}/artifacts")),
    }
}

/// An address of ours as plain clients spell it; the plugin has a spelling of its own.
pub(super) fn plain(by: &Asker, uri: &str) -> String {
    let rest = uri.strip_prefix(by.plugin_root.as_ref()).and_then(|rest| rest.strip_prefix("/experiments/"));
    let parts = rest.and_then(|rest| rest.split_once("/runs/")).and_then(|(number, rest)| {
        let (id, path) = rest.split_once("/artifacts")?;
        let kind = if id.starts_with("m-") { "models/" } else { "" };
        Some(format!("mlflow-artifacts:/{number}/{kind}{id}/artifacts{path}"))
    });
    parts.unwrap_or_else(|| uri.to_owned())
}

/// The other way round: an address as the asker spells it.
pub(super) fn spelled(by: &Asker, uri: &str) -> String {
    let ours = uri.strip_prefix("mlflow-artifacts:/").filter(|_| by.plugin);
    let parts = ours.and_then(|rest| rest.split_once('/')).and_then(|(number, rest)| {
        let (id, path) = rest.split_once("/artifacts")?;
        let id = id.strip_prefix("models/").unwrap_or(id);
        Some(format!("{}/experiments/{number}/runs/{id}/artifacts{path}", by.plugin_root))
    });
    parts.unwrap_or_else(|| uri.to_owned())
}

/// Where a logged model's files are.
pub(super) fn model_uri(row: &LoggedModelRow) -> String {
    let inside = format!("models/{}/artifacts", row.model_id);
    match row.location.as_str() {
        "" => format!("mlflow-artifacts:/{}/{inside}", row.number),
        location => below(location, &inside),
    }
}

/// A path below an address, whose query stays behind it.
fn below(location: &str, path: &str) -> String {
    let (place, query) = location.split_once('?').map_or((location, String::new()), |(p, q)| (p, format!("?{q}")));
    format!("{}/{path}{query}", place.trim_end_matches('/'))
}

/// The folder of a run's files in the artifact container.
pub(super) fn folder_of(run_id: &str) -> String {
    format!("ExperimentRun/dcid.{run_id}")
}

/// The folder of a logged model's files in the artifact container.
pub(super) fn model_folder(model_id: &str) -> String {
    format!("LoggedModels/{model_id}")
}

/// What a path names.
enum Named<'a> {
    Run(&'a str, String),
    Model(&'a str, String),
    Version { name: &'a str, version: &'a str, inside: String },
}

/// Reads `<experiment>/<run>/artifacts/<file>`, `<experiment>/models/<model>/artifacts/<file>` or
/// `registered-models/<name>/<version>/<file>`.
fn named(path: &str) -> Result<Named<'_>, Fault> {
    let bad = || Fault::invalid("Invalid path: it must be that of a file of a run or of a model");
    let parts: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let sound = |part: &&str| !part.is_empty() && *part != "." && *part != ".." && !part.contains(['\\', '\0']);
    if !parts.iter().all(sound) {
        return Err(bad());
    }
    match parts.as_slice() {
        ["registered-models", name, version, rest @ ..] => Ok(Named::Version { name, version, inside: rest.join("/") }),
        [_, "models", model, "artifacts", rest @ ..] => Ok(Named::Model(model, rest.join("/"))),
        [_, run, "artifacts", rest @ ..] => Ok(Named::Run(run, rest.join("/"))),
        _ => Err(bad()),
    }
}

#[derive(Deserialize)]
pub(super) struct At {
    path: String,
}

/// The blob a path names, if the asker may touch it.
async fn spot(app: &App, by: &Asker, path: &str, write: bool) -> Result<Spot, Fault> {
    let join = |folder: &str, inside: &str| match inside {
        "" => folder.to_owned(),
        inside => format!("{}/{inside}", folder.trim_end_matches('/')),
    };
    let (asker, workspace) = (by.clone(), by.workspace());
    match named(path)? {
        Named::Run(run, inside) => {
            let blob = join(&folder_of(run), &inside);
            let run = run.to_owned();
            read(app, move |tx| asker.run(tx, &run)).await?;
            Ok(Spot::parse(workspace, ARTIFACT_CONTAINER, &blob)?)
        }
        Named::Model(model, inside) => {
            let blob = join(&model_folder(model), &inside);
            let model = model.to_owned();
            if write && matches!(asker.caller.who, Who::Job { .. }) {
                read(app, move |tx| logged::writable(tx, &asker, &model)).await?;
            }
            Ok(Spot::parse(workspace, ARTIFACT_CONTAINER, &blob)?)
        }
        Named::Version { .. } if write => {
            Err(Fault::invalid("Invalid path: files of registered versions do not change"))
        }
        Named::Version { name, version, inside } => {
            let (name, version) = (name.to_owned(), version.to_owned());
            let uri = read(app, move |tx| {
                let model = Model::get(tx, &asker, &name)?;
                Ok(api::arm::text(&model.version(&version)?.body, "modelUri").unwrap_or_default())
            })
            .await?;
            match data_uri(&uri) {
                DataUri::Datastore { workspace: named, datastore, path }
                    if datastores::is_built_in(&datastore) && is_here(&by.workspace, named.as_deref()) =>
                {
                    let container = datastores::container_of(&by.workspace, &datastore);
                    Ok(Spot::parse(workspace, &container, &join(path.trim_end_matches('/'), &inside))?)
                }
                _ => Err(Fault::missing("No such artifact: the model's files are in a store of its own")),
            }
        }
    }
}

pub(super) async fn put(
    State(app): State<App>,
    by: Asker,
    Path(at): Path<At>,
    request: Request,
) -> Result<StatusCode, Fault> {
    let spot = spot(&app, &by, &at.path, true).await?;
    blobs::take(&app, spot, request).await?;
    Ok(StatusCode::OK)
}

pub(super) async fn get(
    State(app): State<App>,
    by: Asker,
    Path(at): Path<At>,
    request: Request,
) -> Result<Response, Fault> {
    let spot = spot(&app, &by, &at.path, false).await?;
    give(&app, spot, &at.path, request.headers()).await
}

/// A file of the run a query names, as pages ask for it.
pub(super) async fn of_run(State(app): State<App>, call: Call) -> Result<Response, Fault> {
    let run_id = call.run_id()?;
    let path = format!("-/{run_id}/artifacts/{}", call.need("path")?);
    let spot = spot(&app, &call.by, &path, false).await?;
    give(&app, spot, &path, &HeaderMap::new()).await
}

async fn give(app: &App, spot: Spot, path: &str, headers: &HeaderMap) -> Result<Response, Fault> {
    let folder = app.files.container(spot.workspace(), spot.container()).join(spot.path()).is_dir();
    if folder {
        return Err(Fault::invalid(format!("Artifact path refers to a directory, not a file: '{path}'")));
    }
    blobs::give(app, spot, headers).await.map_err(|problem| match problem.status {
        StatusCode::NOT_FOUND => Fault::missing(format!("No such artifact: '{path}'")),
        _ => problem.into(),
    })
}

/// Uploads in parts are for stores that clients reach themselves; through this server a file is one stream.
pub(super) async fn parts(_: Asker) -> Fault {
    Fault::new(ErrorCode::NotImplemented, "Multipart upload is not supported here: send the file whole")
}

/// Removes a file, or all files below a folder.
pub(super) async fn delete(State(app): State<App>, by: Asker, Path(at): Path<At>) -> Answer {
    let spot = spot(&app, &by, &at.path, true).await?;
    let files = app.files.clone();
    let gone = tokio::task::spawn_blocking(move || {
        let mut gone = files.delete(&spot)?;
        let below = format!("{}/", spot.path());
        for found in files.list(spot.workspace(), spot.container(), &below, "", usize::MAX)? {
            if let Ok(inner) = Spot::parse(spot.workspace(), spot.container(), &found.path) {
                gone |= files.delete(&inner)?;
            }
        }
        Ok::<_, crate::problem::Problem>(gone)
    });
    match gone.await.map_err(|_| store::Error::Closed)?? {
        true => Ok(super::done()),
        false => Err(Fault::missing(format!("No such artifact: '{}'", at.path))),
    }
}

/// Files directly under a path, for clients that go through this server.
pub(super) async fn folder(State(app): State<App>, call: Call) -> Answer {
    let asked = call.word("path")?;
    let spot = spot(&app, &call.by, &asked, false).await?;
    let found = children(&app, &spot).await?;
    let files: Vec<Value> = found.iter().map(|(name, size)| entry(name, *size)).collect();
    Ok(Json(brief([("files", json!(files))])))
}

/// Files directly under a path of a run.
pub(super) async fn list(State(app): State<App>, call: Call) -> Answer {
    let run_id = call.run_id()?;
    let (by, wanted) = (call.by.clone(), run_id.clone());
    let run = read(&app, move |tx| by.run(tx, &wanted)).await?;
    let files = files_under(&app, &call, &folder_of(&run_id)).await?;
    Ok(Json(brief([("root_uri", json!(run_uri(&call.by, &run))), ("files", json!(files))])))
}

/// The files directly under the path a call names, below a folder of the artifact container.
pub(super) async fn files_under(app: &App, call: &Call, folder: &str) -> Result<Vec<Value>, Fault> {
    let inside = call.word("path")?;
    let inside = inside.trim_end_matches('/');
    let path = if inside.is_empty() { folder.to_owned() } else { format!("{folder}/{inside}") };
    let spot = Spot::parse(call.by.workspace(), ARTIFACT_CONTAINER, &path)?;
    let found = children(app, &spot).await?;
    let named = |name: &str| if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
    Ok(found.iter().map(|(name, size)| entry(&named(name), *size)).collect())
}

fn entry(path: &str, size: Option<u64>) -> Value {
    match size {
        Some(size) => json!({"path": path, "is_dir": false, "file_size": size}),
        None => json!({"path": path, "is_dir": true}),
    }
}

/// Names directly under a folder; sizes of those that are files.
async fn children(app: &App, spot: &Spot) -> Result<BTreeMap<String, Option<u64>>, Fault> {
    let root = app.files.container(spot.workspace(), spot.container());
    let path = root.join(spot.path());
    let look = move || {
        let mut found = BTreeMap::new();
        if !store::files::stays_inside(&root, &path) {
            return found;
        }
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_file() || meta.is_dir() {
                let size = meta.is_file().then_some(meta.len());
                found.insert(entry.file_name().to_string_lossy().into_owned(), size);
            }
        }
        found
    };
    Ok(tokio::task::spawn_blocking(look).await.map_err(|_| store::Error::Closed)?)
}
