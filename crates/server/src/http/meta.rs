//! Health, metrics, the description of the API, and the answers to addresses nobody lives at.

use crate::{app::App, problem::Problem};
use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

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
    let text = app.metrics.render(&phases);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
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
