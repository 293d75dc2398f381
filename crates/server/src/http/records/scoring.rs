//! The addresses where endpoints will answer. Nothing serves there yet, and whoever may call is told so.

use super::{Kind, find, keys};
use crate::{
    app::App,
    auth::unauthorized,
    http::{At, change},
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
};
use domain::Role;
use serde_json::{Value, json};

/// A request to an online endpoint. Its own keys and tokens open it, so the table of routes does not.
pub(crate) async fn score(
    State(app): State<App>,
    Path(at): Path<At>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let word = header.and_then(|text| text.split_once(' ')).map(|(_, word)| word.trim().to_owned());
    let Some(word) = word else {
        return Err(unauthorized("send `Authorization: Bearer <key or token of the endpoint>`"));
    };
    let name = at.name.clone();
    let endpoints = app
        .store
        .read(move |tx| {
            let rows = tx.records_named(Kind::OnlineEndpoint.table(), &name)?;
            rows.into_iter().map(|row| Ok((tx.record_secret(&row.key)?, row))).collect::<Result<Vec<_>, _>>()
        })
        .await?;
    let caller = app.tokens.caller(header, app.store.keyring(), app.now()).ok();
    let may = |workspace: &str| caller.as_ref().is_some_and(|caller| caller.may(workspace, Role::Reader));
    let opened = endpoints.iter().any(|(secret, row)| match keys::mode(row).as_str() {
        "aadtoken" => may(&row.key.workspace),
        _ => keys::opens(&app, row, secret, &word),
    });
    // Whether an endpoint exists is for those who may call it.
    match opened {
        true => Err(not_serving(&format!("online endpoint `{}`", at.name), "models are not served online yet")),
        false => Err(unauthorized("the key or token does not open an endpoint of this name")),
    }
}

/// A request to run a batch endpoint.
pub(crate) async fn run_batch(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    there(&app, &at, Kind::BatchEndpoint).await?;
    Err(not_serving(&format!("batch endpoint `{}`", at.name), "models are not run over batches yet"))
}

/// Jobs a batch endpoint has started: none.
pub(crate) async fn batch_jobs(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    there(&app, &at, Kind::BatchEndpoint).await?;
    Ok(Json(json!({"value": [], "nextLink": null})))
}

/// The log of a deployment that does not run.
pub(crate) async fn logs(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    there(&app, &at, Kind::OnlineDeployment).await?;
    let line = format!(
        "deployment `{}` of endpoint `{}` is kept as a record and is not deployed: models are not served online yet\n",
        at.deployment, at.name
    );
    Ok(Json(json!({"content": line})))
}

async fn there(app: &App, at: &At, kind: Kind) -> Result<(), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = kind.key(&workspace.name, at);
    change::look(app, move |tx| find(tx, kind, &key).map(drop)).await
}

fn not_serving(what: &str, why: &str) -> Problem {
    let message = format!("{what} is kept as a record: {why}, so nothing answers here");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "NotServing", message)
}
