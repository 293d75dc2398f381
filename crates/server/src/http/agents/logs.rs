//! Logs of attempts elsewhere, added to by offset.
//!
//! Invariants: what was sent twice is kept once; a log has no gaps; an agent writes to the logs of its own attempt only,
//! below the folder of its try, and only while the attempt is not over.

use super::{nodes, record::Change};
use crate::{
    app::App,
    auth::{Caller, Who},
    http::{Asked, At},
    problem::Problem,
};
use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, Query, State},
    http::{HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use domain::{AttemptId, Job};
use serde_json::json;
use store::files::{ARTIFACT_CONTAINER, Appended, Spot};

/// Where the server's answer says how long the log is.
const NEXT: &str = "x-peregrine-next";
/// The kinds of logs there are.
const FOLDERS: [&str; 2] = ["user_logs/", "system_logs/"];

pub(crate) async fn log(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(at): Path<At>,
    Query(asked): Asked,
    bytes: Bytes,
) -> Result<Response, Problem> {
    let attempt = AttemptId::parse(&at.attempt).map_err(|bad| Problem::bad(bad.to_string()))?;
    let Some(offset) = asked.get("offset").and_then(|text| text.parse::<u64>().ok()) else {
        return Err(Problem::bad("`offset` is not a number; say where in the log the bytes begin"));
    };
    if !FOLDERS.iter().any(|folder| at.path.starts_with(folder)) {
        return Err(Problem::bad(format!("`{}` is no log; logs lie below `user_logs/` and `system_logs/`", at.path)));
    }
    if matches!(caller.who, Who::Attempt(_)) {
        app.calls.hear(&attempt, app.now());
    }
    let wanted = attempt.clone();
    let job = app.store.read(move |tx| {
        let its = match &caller.who {
            Who::Machine { cluster, machine, .. } => nodes::has(tx, (cluster, machine), &wanted)?,
            _ => true,
        };
        Ok(Change::of_attempt(tx, &wanted)?.filter(|_| its).map(|change| change.job))
    });
    let job = job.await?;
    let over = || Problem::new(StatusCode::GONE, "AttemptOver", format!("attempt `{attempt}` is over"));
    let spot = spot(&job.ok_or_else(over)?, &at.path)?;
    let room = app.files.room(spot.workspace(), bytes.len() as u64, app.settings.storage_quota);
    let room =
        room.map_err(|full| Problem::new(StatusCode::INSUFFICIENT_STORAGE, "QuotaExceeded", full.to_string()))?;
    let files = app.files.clone();
    let added = tokio::task::spawn_blocking(move || files.append(&spot, offset, &bytes, room));
    let (length, mut answer) = match added.await.map_err(|_| store::Error::Closed)?? {
        Appended::Length(length) => (length, Json(json!({"length": length})).into_response()),
        Appended::Gap(length) => {
            let message = format!("the log has {length} bytes, so none can follow at {offset}; send on from {length}");
            let error = json!({"code": "Conflict", "message": message, "details": []});
            (length, (StatusCode::CONFLICT, Json(json!({"error": error, "length": length}))).into_response())
        }
    };
    answer.headers_mut().insert(NEXT, HeaderValue::from(length));
    Ok(answer)
}

/// Where a log of a job's current attempt lies.
pub(crate) fn spot(job: &Job, path: &str) -> Result<Spot, store::files::BadPath> {
    let retry = match job.attempts.saturating_sub(1) {
        0 => String::new(),
        n => format!("retry-{n:03}/"),
    };
    Spot::parse(&job.workspace, ARTIFACT_CONTAINER, &format!("ExperimentRun/dcid.{}/{retry}{path}", job.name))
}
