//! Files of runs and of logged models, streamed to and from the workspace's own store: where a job's logs and outputs are.
//!
//! Invariant: a path names files of one run or one model of this workspace, and stays inside.

use super::{
    Answer, brief,
    call::{Asker, Call},
    fault::{Fault, read},
};
use crate::{app::App, http::blobs};
use axum::{
    Json,
    extract::{Path, Request, State},
    response::{IntoResponse, Response},
};
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
    let (number, run_id) = (run.number, &run.run_id);
    match run.location.as_str() {
        "" if by.plugin => format!("{}/experiments/{number}/runs/{run_id}/artifacts", by.plugin_root),
        "" => format!("mlflow-artifacts:/{number}/{run_id}/artifacts"),
        location => below(location, &format!("{run_id}/artifacts")),
    }
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

/// What a proxied path names.
struct Named {
    /// In the artifact container.
    blob: String,
    run: Option<String>,
}

/// Reads `<experiment>/<run>/artifacts/<file>` or `<experiment>/models/<model>/artifacts/<file>`.
fn named(path: &str) -> Result<Named, Fault> {
    let bad = || Fault::invalid("Invalid path: it must be that of a file of a run or of a model");
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let sound = |part: &&str| !part.is_empty() && *part != "." && *part != ".." && !part.contains(['\\', '\0']);
    if path.starts_with('/') || !parts.iter().all(sound) {
        return Err(bad());
    }
    let join = |folder: String, rest: &[&str]| if rest.is_empty() { folder } else { format!("{folder}/{}", rest.join("/")) };
    match parts.as_slice() {
        [_, "models", model, "artifacts", rest @ ..] => {
            Ok(Named { blob: join(model_folder(model), rest), run: None })
        }
        [_, run, "artifacts", rest @ ..] => Ok(Named { blob: join(folder_of(run), rest), run: Some((*run).to_owned()) }),
        _ => Err(bad()),
    }
}

#[derive(Deserialize)]
pub(super) struct At {
    path: String,
}

/// The blob a path names, if the asker may touch it.
async fn spot(app: &App, by: &Asker, path: &str) -> Result<Spot, Fault> {
    let Named { blob, run } = named(path)?;
    if let Some(run) = run {
        let by = by.clone();
        read(app, move |tx| by.run(tx, &run)).await?;
    }
    Ok(Spot::parse(by.workspace(), ARTIFACT_CONTAINER, &blob)?)
}

pub(super) async fn put(
    State(app): State<App>,
    by: Asker,
    Path(at): Path<At>,
    request: Request,
) -> Result<Response, Fault> {
    let spot = spot(&app, &by, &at.path).await?;
    blobs::take(&app, spot, request).await?;
    Ok(Json(json!({})).into_response())
}

pub(super) async fn get(
    State(app): State<App>,
    by: Asker,
    Path(at): Path<At>,
    request: Request,
) -> Result<Response, Fault> {
    let spot = spot(&app, &by, &at.path).await?;
    Ok(blobs::give(&app, spot, request.headers()).await?)
}

/// Removes a file, or all files below a folder.
pub(super) async fn delete(State(app): State<App>, by: Asker, Path(at): Path<At>) -> Answer {
    let spot = spot(&app, &by, &at.path).await?;
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
    let spot = spot(&app, &call.by, &asked).await?;
    let found = children(&app, &spot).await?;
    let files: Vec<Value> = found.iter().map(|(name, size)| entry(name, *size)).collect();
    Ok(Json(brief([("files", json!(files))])))
}

/// Files directly under a path of a run.
pub(super) async fn list(State(app): State<App>, call: Call) -> Answer {
    let run_id = match call.text("run_id")?.filter(|id| !id.is_empty()) {
        Some(id) => id,
        None => call.need("run_uuid").map_err(|_| Fault::required("run_id"))?,
    };
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
                let size = meta.is_file().then(|| meta.len());
                found.insert(entry.file_name().to_string_lossy().into_owned(), size);
            }
        }
        found
    };
    Ok(tokio::task::spawn_blocking(look).await.map_err(|_| store::Error::Closed)?)
}
