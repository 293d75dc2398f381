//! Health, metrics, space, the description of the API, and the answers to addresses nobody lives at.

use super::Body;
use crate::{app::App, problem::Problem};
use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) async fn health() -> &'static str {
    "ok\n"
}

/// Ready means that the database answers.
pub(crate) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    app.store.read(|tx| tx.workspaces().map(drop)).await?;
    Ok("ready\n")
}

pub(crate) async fn openapi(State(app): State<App>) -> Json<Value> {
    Json(api::openapi::openapi(&app.settings.version))
}

pub(crate) async fn metrics(State(app): State<App>) -> Result<Response, Problem> {
    let phases = app.store.read(|tx| tx.phases()).await?;
    let text = app.metrics.render(&phases, &app.routers.metrics());
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// What is to be removed for good.
#[derive(Deserialize)]
pub(crate) struct Old {
    /// Deleted at least so long ago; without it, as long as the server's settings say.
    #[serde(default)]
    older_than_seconds: Option<u64>,
}

/// Removes what was deleted long enough ago, and gives back the space of what is gone.
pub(crate) async fn free(State(app): State<App>, Body(old): Body<Old>) -> Result<Json<Value>, Problem> {
    app.store.record_act().await?;
    let kept = old.older_than_seconds.map(Duration::from_secs).or(app.settings.keep_deleted);
    let freed = app.store.free(kept.map(|kept| app.now().before(kept))).await?;
    Ok(Json(json!({
        "experiments": freed.rows.experiments, "runs": freed.rows.runs, "models": freed.rows.models,
        "kept": freed.rows.kept, "file_bytes": freed.file_bytes, "database_bytes": freed.database_bytes,
    })))
}

pub(crate) async fn nothing_here(uri: Uri) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "NoSuchRoute",
        format!("there is nothing at `{}`; see `/openapi.json`", uri.path()),
    )
}

pub(crate) async fn wrong_method(uri: Uri) -> Response {
    let message = format!("`{}` does not take this method; see `/openapi.json`", uri.path());
    let body = json!({"error": {"code": "MethodNotAllowed", "message": message, "details": []}});
    (StatusCode::METHOD_NOT_ALLOWED, Json(body)).into_response()
}
