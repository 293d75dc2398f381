//! Logs of a run behind signed links, since clients fetch them without saying who they are.
//!
//! A link opens the logs of one run for a while, and nothing else: not another run's, not a captured output.

use crate::{
    app::{App, scope},
    auth::unauthorized,
    http::{Asked, At},
    problem::Problem,
};
use axum::{
    body::Body,
    extract::{Path, Query, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};
use store::{JobRow, WorkspaceRow, files::ARTIFACT_CONTAINER};
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

/// How long a link opens what it names. Clients ask for new ones with every poll.
const LINK_SECONDS: i64 = 3600;
/// The folders of a run that hold logs.
const FOLDERS: [&str; 2] = ["user_logs/", "system_logs/"];

/// The logs there are, each with a link. The log of the latest attempt also stands under a name that streams
/// behind that of the first.
pub(super) async fn files(app: &App, workspace: &WorkspaceRow, row: &JobRow) -> Result<Map<String, Value>, Problem> {
    let name = row.job.name.to_string();
    let attempts = row.job.attempts;
    let (files, place) = (app.files.clone(), workspace.name.clone());
    let listed = tokio::task::spawn_blocking(move || {
        let root = format!("ExperimentRun/dcid.{name}/");
        let mut found = Vec::new();
        for attempt in 0..attempts.max(1) {
            for folder in FOLDERS {
                let prefix = format!("{root}{}{folder}", attempt_folder(attempt));
                let more = files.list(&place, ARTIFACT_CONTAINER, &prefix, "", usize::MAX)?;
                found.extend(more.into_iter().filter_map(|file| Some(file.path.strip_prefix(&root)?.to_owned())));
            }
        }
        Ok::<_, store::files::BadPath>(found)
    });
    let found = listed.await.map_err(|_| store::Error::Closed)??;
    let link = link(app, workspace, row);
    let mut all: Map<String, Value> = Map::new();
    let latest = format!("{}user_logs/std_log.txt", attempt_folder(attempts.saturating_sub(1)));
    for path in found {
        if attempts > 1 && path == latest {
            all.insert("user_logs/std_log_retry.txt".into(), json!(link(&path)));
        }
        let address = link(&path);
        all.insert(path, json!(address));
    }
    Ok(all)
}

fn attempt_folder(attempt: u32) -> String {
    if attempt == 0 { String::new() } else { format!("retry-{attempt:03}/") }
}

/// Makes links to logs of one run.
fn link(app: &App, workspace: &WorkspaceRow, row: &JobRow) -> impl Fn(&str) -> String {
    let expires = app.now().0 / 1000 + LINK_SECONDS;
    let signature = app.store.keyring().sign(&link_text(&workspace.name, row.job.name.as_str(), expires));
    let base = format!("{}/history/v1.0{}/runs/{}/logs", app.url, scope(workspace).path(), row.job.name);
    move |path| {
        let parts: Vec<String> = path.split('/').map(encode).collect();
        format!("{base}/{}?se={expires}&sig={signature}", parts.join("/"))
    }
}

fn link_text(workspace: &str, run: &str, expires: i64) -> String {
    format!("logs {workspace} {run} {expires}")
}

/// A log, as much as there is of it now.
pub(crate) async fn read(State(app): State<App>, Path(at): Path<At>, Query(asked): Asked) -> Result<Response, Problem> {
    if !opens(&app, &at, &asked) {
        return Err(unauthorized(
            "this link does not open the log, or its time is over; ask for the run's details again",
        ));
    }
    let missing = || Problem::not_found("log", &format!("{}/{}", at.name, at.path));
    let inside = format!("ExperimentRun/dcid.{}/{}", at.name, at.path);
    let path = app.files.blob(&at.workspace, ARTIFACT_CONTAINER, &inside)?;
    let folder = app.files.artifacts(&at.workspace, &at.name);
    if !is_log(&at.path) || !store::files::stays_inside(&folder, &path) {
        return Err(missing());
    }
    let file = tokio::fs::File::open(&path).await.map_err(|_| missing())?;
    let meta = file.metadata().await?;
    if !meta.is_file() {
        return Err(missing());
    }
    let headers = [
        (header::CONTENT_LENGTH, HeaderValue::from(meta.len())),
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
    ];
    Ok((headers, Body::from_stream(ReaderStream::new(file.take(meta.len())))).into_response())
}

/// Whether a path of a run leads into one of its log folders.
fn is_log(path: &str) -> bool {
    let path = match path.split_once('/') {
        Some((first, rest)) if first.starts_with("retry-") => rest,
        _ => path,
    };
    FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn opens(app: &App, at: &At, asked: &std::collections::HashMap<String, String>) -> bool {
    let (Some(expires), Some(signature)) = (asked.get("se"), asked.get("sig")) else { return false };
    let Ok(expires) = expires.parse::<i64>() else { return false };
    app.now().0 / 1000 < expires && app.store.keyring().signed(&link_text(&at.workspace, &at.name, expires), signature)
}

fn encode(part: &str) -> String {
    percent_encoding::utf8_percent_encode(part, percent_encoding::NON_ALPHANUMERIC).to_string()
}
