//! What goes through an online endpoint: one call on behalf of whoever asks, and what happened in the last hours.
//!
//! A page of this server may speak with this server alone, so a model is tried through it. Invariant: a call leads to the
//! endpoint's own address and nowhere else, with a key that the caller never sees.

use super::{
    Kind, find,
    serving::{self, Door, Live},
};
use crate::{
    app::App,
    http::{At, Body, change},
    problem::Problem,
    routers::STEP_MS,
};
use api::Connection;
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use domain::serving::LATENCY_BOUNDS_US;
use reqwest::{Response, header::CONTENT_TYPE, redirect};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use store::{RecordKey, ReplicaRow, ServingKey};
use tokio::time::Instant;

/// Longer than a deployment at zero replicas takes to come up, as a rule.
const PATIENCE: Duration = Duration::from_secs(180);
/// Of an answer, no more than this is shown.
const SHOWN: usize = 1 << 20;
/// The header that asks one deployment, past the traffic's shares, and that says which one answered.
const DEPLOYMENT: &str = "azureml-model-deployment";

/// A call as someone wants it made.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Wish {
    /// Sent as it is.
    #[serde(default)]
    input: String,
    #[serde(default = "json_type")]
    content_type: String,
    /// By the traffic's shares where it is absent.
    deployment: Option<String>,
}

fn json_type() -> String {
    "application/json".to_owned()
}

/// Calls an endpoint once, as its users do, and tells how it answered.
pub(crate) async fn call(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(wish): Body<Wish>,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = Kind::OnlineEndpoint.key(&workspace.name, &at);
    app.store.record_act().await?;
    let (name, url, authority) = address(&app, key).await?;
    let key = ServingKey { workspace: workspace.name.clone(), endpoint: name.clone(), deployment: String::new() };
    let token = app.routers.bearer(&key).await?;
    let failed = |error: &dyn std::error::Error| {
        let why = domain::causes::in_one_line(error);
        Problem::new(StatusCode::BAD_GATEWAY, "EndpointUnreachable", format!("endpoint `{name}` did not answer: {why}"))
    };
    let connection = Connection { url, token, authority };
    let client = api::Client::builder(&connection).map_err(|error| failed(&error))?;
    let client = client.redirect(redirect::Policy::none()).timeout(PATIENCE).build().map_err(|error| failed(&error))?;
    let mut request = client
        .post(format!("{}/api/v1/endpoint/{name}/score", connection.url))
        .bearer_auth(&connection.token)
        .header(CONTENT_TYPE, &wish.content_type)
        .body(wish.input);
    if let Some(deployment) = wish.deployment.as_deref().filter(|name| !name.is_empty()) {
        request = request.header(DEPLOYMENT, deployment);
    }
    let begun = Instant::now();
    let request = request.build().map_err(|error| Problem::bad(format!("the call cannot be made: {error}")))?;
    let answer = client.execute(request).await.map_err(|error| failed(&error.without_url()))?;
    shown(answer, begun).await.map(Json).map_err(|error| failed(&error.without_url()))
}

/// An endpoint's name as it is written, its router's address, and the authority to believe there.
async fn address(app: &App, key: RecordKey) -> Result<(String, String, Option<Vec<u8>>), Problem> {
    let then = app.clone();
    let (name, live) = change::look(app, move |tx| {
        let row = find(tx, Kind::OnlineEndpoint, &key)?;
        let live = serving::endpoint(&then, tx, &row)?;
        Ok((row.key.name, live))
    })
    .await?;
    let url = match live {
        Live::Endpoint { door: Door::There(Some(url)), .. } => return Ok((name, url, None)),
        Live::Endpoint { door: Door::Here, .. } => app.settings.scoring_url.clone(),
        _ => None,
    };
    let url = url.ok_or_else(|| {
        Problem::conflict(format!("endpoint `{name}` has no address yet: no router was heard of where it is to serve"))
    })?;
    let authority = Some(app.settings.authority.clone().into_bytes()).filter(|pem| !pem.is_empty());
    Ok((name, url, authority))
}

async fn shown(mut answer: Response, begun: Instant) -> Result<Value, reqwest::Error> {
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut view = json!({
        "status": answer.status().as_u16(), "contentType": header("content-type"), "deployment": header(DEPLOYMENT),
        "modelStatus": header("ms-azureml-model-error-statuscode"), "requestId": header("x-request-id"),
    });
    let mut bytes = Vec::new();
    while bytes.len() <= SHOWN
        && let Some(chunk) = answer.chunk().await?
    {
        bytes.extend_from_slice(&chunk);
    }
    let cut = bytes.len() > SHOWN;
    bytes.truncate(SHOWN);
    view["cut"] = json!(cut);
    view["output"] = json!(String::from_utf8_lossy(&bytes));
    view["milliseconds"] = json!(begun.elapsed().as_secs_f64() * 1000.0);
    Ok(view)
}

/// What an endpoint has answered in the last hours, and how its replicas came and went.
pub(crate) async fn activity(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = Kind::OnlineEndpoint.key(&workspace.name, &at);
    let (name, replicas) = change::look(&app, move |tx| {
        let row = find(tx, Kind::OnlineEndpoint, &key)?;
        let mut replicas = Vec::new();
        for serving in tx.servings_of(&key.workspace, &row.key.name)? {
            replicas.extend(tx.replicas_of(&serving.key)?);
        }
        Ok((row.key.name, replicas))
    })
    .await?;
    let steps = app.routers.history(&name);
    let answers = steps.iter().flat_map(|step| {
        step.answered.iter().map(|one| {
            json!({
                "at": step.at.iso(), "deployment": one.deployment, "mirrored": one.mirrored, "codes": one.codes,
                "buckets": one.buckets,
            })
        })
    });
    let bounds: Vec<f64> = LATENCY_BOUNDS_US.iter().map(|micros| *micros as f64 / 1e6).collect();
    Ok(Json(json!({
        "stepSeconds": STEP_MS / 1000, "boundsSeconds": bounds, "answers": answers.collect::<Vec<_>>(),
        "replicas": replicas.iter().map(replica).collect::<Vec<_>>(),
    })))
}

fn replica(row: &ReplicaRow) -> Value {
    let iso = |at: Option<domain::Timestamp>| at.map(domain::Timestamp::iso);
    json!({
        "name": row.name, "deployment": row.key.deployment, "note": row.note, "askedForAt": row.created_at.iso(),
        "readyAt": iso(row.ready_at), "leavingAt": iso(row.draining_at), "goneAt": iso(row.gone_at),
    })
}
