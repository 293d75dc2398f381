//! Logs and captured files of a job, by byte offset: what makes a stream resumable.

use super::{Asked, At, jobs};
use crate::{app::App, problem::Problem};
use axum::{
    Json,
    extract::{Path, Query, State},
    http::{HeaderMap, HeaderValue},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::{io::ErrorKind, path::Path as FilePath, time::Duration};
use store::{Bell, JobRow};
use tokio::{
    io::{AsyncReadExt, AsyncSeekExt},
    time::Instant,
};

/// The largest piece of one answer.
const PIECE: u64 = 1 << 20;
/// How often a growing file is looked at while someone waits for more of it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) async fn list(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (workspace, row) = jobs::find(&app, &at).await?;
    let prefix = format!("ExperimentRun/dcid.{}/", row.files_of());
    let files = app.files.clone();
    let wanted = prefix.clone();
    let found = tokio::task::spawn_blocking(move || {
        files.list(&workspace.name, store::files::ARTIFACT_CONTAINER, &wanted, "", usize::MAX)
    });
    let found = found.await.map_err(|_| store::Error::Closed)??;
    let mut files: Vec<Value> = found
        .iter()
        .map(|f| json!({"path": f.path.trim_start_matches(&prefix), "size": f.bytes, "modifiedAt": f.modified.iso()}))
        .collect();
    let log = own_log(&row);
    if row.job.state.started_at().is_some()
        && row.cluster != store::NOWHERE
        && !files.iter().any(|file| file["path"].as_str().is_some_and(|p| p.starts_with(log_folder(&log))))
    {
        files.push(json!({"path": log, "size": 0, "modifiedAt": row.changed_at.iso()}));
    }
    Ok(Json(json!({"value": files})))
}

/// The log of the job's latest attempt. A log in which nothing was ever written is not stored.
fn own_log(row: &JobRow) -> String {
    match row.job.attempts.saturating_sub(1) {
        0 => "user_logs/std_log.txt".to_owned(),
        n => format!("retry-{n:03}/user_logs/std_log.txt"),
    }
}

fn log_folder(log: &str) -> &str {
    log.strip_suffix("std_log.txt").unwrap_or(log)
}

/// A piece of a file from `offset`. With `wait` seconds, an answer with nothing new is held back until there is
/// something: more bytes, another phase, the end.
pub(crate) async fn read(State(app): State<App>, Path(at): Path<At>, Query(asked): Asked) -> Result<Response, Problem> {
    let number = |key: &str| asked.get(key).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let (offset, wait) = (number("offset"), Duration::from_secs(number("wait").min(60)));
    let (workspace, mut row) = jobs::find(&app, &at).await?;
    let inside = format!("ExperimentRun/dcid.{}/{}", row.files_of(), at.path);
    let path = app.files.blob(&workspace.name, store::files::ARTIFACT_CONTAINER, &inside)?;
    let folder = app.files.artifacts(&workspace.name, row.files_of());
    let deadline = Instant::now() + wait;
    let (phase, note) = (row.job.state.name(), row.note.clone());
    let mut bell = app.store.changed(Bell::Jobs);
    loop {
        let ended = row.job.state.is_ended();
        let piece = piece(&folder, &path, offset).await?;
        let news = row.job.state.name() != phase || row.note != note;
        match piece {
            Some(bytes) if !bytes.is_empty() => return Ok(answer(&row, offset, bytes, false)),
            None if wait.is_zero() && ended && at.path == own_log(&row) => {
                return Ok(answer(&row, offset, Vec::new(), true));
            }
            None if wait.is_zero() => return Err(Problem::not_found("file", &format!("{}/{}", at.name, at.path))),
            _ if ended || news || Instant::now() >= deadline => return Ok(answer(&row, offset, Vec::new(), ended)),
            _ => {}
        }
        let changed = async {
            // The bell rings for every job; a short pause keeps a busy server from rereading this one each time.
            let _ = bell.changed().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        tokio::select! { () = changed => {}, () = tokio::time::sleep(LOOK_EVERY) => {} }
        row = jobs::find(&app, &at).await?.1;
    }
}

/// Bytes from an offset, at most one piece; `None` while the file is not there. A job may leave links behind, and none
/// may lead out of its folder.
async fn piece(folder: &FilePath, path: &FilePath, offset: u64) -> Result<Option<Vec<u8>>, Problem> {
    let mut file = match tokio::fs::File::open(path).await {
        Ok(file) => file,
        // Or something that is a file was asked for as if it were a folder.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let meta = file.metadata().await?;
    if !meta.is_file() || !store::files::stays_inside(folder, path) {
        return Ok(None);
    }
    // Nothing is there yet, and the kernel takes no offset that no file can have.
    if offset >= meta.len() {
        return Ok(Some(Vec::new()));
    }
    file.seek(std::io::SeekFrom::Start(offset)).await?;
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes).await?;
    Ok(Some(bytes))
}

fn answer(row: &JobRow, offset: u64, bytes: Vec<u8>, over: bool) -> Response {
    let mut headers = HeaderMap::new();
    let next = offset + bytes.len() as u64;
    headers.insert("x-peregrine-next", HeaderValue::from(next));
    headers.insert("x-peregrine-status", HeaderValue::from_static(row.job.state.status()));
    headers.insert("x-peregrine-phase", HeaderValue::from_static(row.job.state.name()));
    headers.insert("x-peregrine-over", HeaderValue::from_static(if over { "true" } else { "false" }));
    let note = percent_encoding::utf8_percent_encode(&row.note, percent_encoding::NON_ALPHANUMERIC).to_string();
    headers.insert("x-peregrine-note", HeaderValue::try_from(note).expect("percent-encoded text is a header value"));
    headers.insert("content-type", HeaderValue::from_static("application/octet-stream"));
    (headers, bytes).into_response()
}
