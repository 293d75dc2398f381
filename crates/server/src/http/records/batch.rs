//! The addresses where batch endpoints will answer. Nothing runs there yet, and whoever may call is told so.

use super::{Kind, find};
use crate::{
    app::App,
    http::{At, change},
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use serde_json::{Value, json};

/// A request to run a batch endpoint.
pub(crate) async fn run_batch(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    there(&app, &at).await?;
    Err(not_serving(&format!("batch endpoint `{}`", at.name), "models are not run over batches yet"))
}

/// Jobs a batch endpoint has started: none.
pub(crate) async fn batch_jobs(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    there(&app, &at).await?;
    Ok(Json(json!({"value": [], "nextLink": null})))
}

async fn there(app: &App, at: &At) -> Result<(), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = Kind::BatchEndpoint.key(&workspace.name, at);
    change::look(app, move |tx| find(tx, Kind::BatchEndpoint, &key).map(drop)).await
}

fn not_serving(what: &str, why: &str) -> Problem {
    let message = format!("{what} is kept as a record: {why}, so nothing answers here");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "NotServing", message)
}
