//! What a client asks before it has a token: which cloud this is, where its services are, and for a token.
//!
//! Invariant: a token is minted only for audiences of this server, and only for someone who proved who they are.

use crate::{
    app::App,
    auth::{Caller, Claims, Who, job_of},
    problem::Problem,
};
use axum::{
    Form, Json,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use domain::access::SCORING;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The cloud's name, which clients must be told so that they never fall back to another.
pub(crate) const CLOUD: &str = "Peregrine";
/// Who pipeline jobs and scoring ask a token for.
const LEARNING: &str = SCORING[0];
const LEARNING_PUBLIC: &str = SCORING[1];
/// Clients write this audience for a registry they share with, whatever the cloud.
const MANAGEMENT_PUBLIC: &str = "https://management.azure.com";
const STORAGE: &str = "https://storage.azure.com";
/// The only tenant; clients take the word as a sign not to look for others elsewhere.
const TENANT: &str = "adfs";
const TOKEN_SECONDS: i64 = crate::auth::LIFE_SECONDS;
/// A job's identity is asked for again soon, so that it ends soon after the job.
const JOB_TOKEN_SECONDS: i64 = 900;

/// The description of this cloud.
pub(crate) async fn metadata(State(app): State<App>) -> Response {
    let url = &app.url;
    let cloud = json!([{
        "name": CLOUD, "portal": "https://portal.peregrine.local/", "resourceManager": format!("{url}/"),
        "authentication": {
            "loginEndpoint": format!("{url}/"), "audiences": [format!("{url}/")], "tenant": "common", "identityProvider": "AAD",
        },
        "suffixes": {"storage": super::blobs::ENDPOINT},
    }]);
    ([("cache-control", "public, max-age=60")], Json(cloud)).into_response()
}

/// Where a workspace's services are: all here.
pub(crate) async fn discovery(State(app): State<App>) -> Json<Value> {
    let names = [
        "api",
        "catalog",
        "experimentation",
        "gallery",
        "history",
        "hyperdrive",
        "labeling",
        "modelmanagement",
        "pipelines",
        "studio",
    ];
    Json(names.iter().map(|name| ((*name).to_owned(), json!(app.url.as_str()))).collect())
}

/// Where tokens are to be had, for a client that was told this server's address as its authority.
pub(crate) async fn openid(State(app): State<App>, Path(tenant): Path<String>) -> Json<Value> {
    let base = format!("{}/{tenant}", app.url);
    Json(json!({
        "issuer": base, "token_endpoint": format!("{base}/oauth2/v2.0/token"),
        "authorization_endpoint": format!("{base}/oauth2/v2.0/authorize"),
        "token_endpoint_auth_methods_supported": ["client_secret_post"], "response_types_supported": ["code"],
        "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["HS256", "EdDSA"],
    }))
}

#[derive(Deserialize)]
pub(crate) struct Grant {
    #[serde(default)]
    grant_type: String,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: String,
    #[serde(default)]
    scope: String,
}

/// A client's secret for a token. Errors are in the words of OAuth, which is what the clients read.
pub(crate) async fn token(
    State(app): State<App>,
    Path(tenant): Path<String>,
    grant: Result<Form<Grant>, axum::extract::rejection::FormRejection>,
) -> Response {
    let Ok(Form(grant)) = grant else {
        return oauth_error(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "send a form with `grant_type` and `client_id`",
        );
    };
    if grant.grant_type != "client_credentials" {
        let message = format!("`{}` is not offered; use `client_credentials`", grant.grant_type.escape_default());
        return oauth_error(StatusCode::BAD_REQUEST, "unsupported_grant_type", &message);
    }
    let now = app.now();
    let Some(principal) = app.tokens.principals.with_secret(&grant.client_id, &grant.client_secret, now) else {
        let message = "the client id and secret do not go together, were revoked or have expired; `peregrine sdk login` makes new ones";
        return oauth_error(StatusCode::UNAUTHORIZED, "invalid_client", message);
    };
    let scope = grant.scope.split(' ').find(|word| word.ends_with("/.default")).unwrap_or_default();
    let audience = scope.trim_end_matches("/.default").trim_end_matches('/');
    if !is_ours(&app, audience) {
        let message = format!("no tokens for `{}` are made here", grant.scope.escape_default());
        return oauth_error(StatusCode::BAD_REQUEST, "invalid_scope", &message);
    }
    let issuer = format!("{}/{tenant}", app.url);
    let token = app.tokens.keys.sign(&claims(audience, issuer, &principal.id, now.0 / 1000, TOKEN_SECONDS));
    let body = json!({
        "token_type": "Bearer", "expires_in": TOKEN_SECONDS, "ext_expires_in": TOKEN_SECONDS, "access_token": token,
    });
    ([("cache-control", "no-store")], Json(body)).into_response()
}

/// A token for code inside a job, in the form of a machine's own identity: the secret is in the job's environment.
pub(crate) async fn machine_token(
    State(app): State<App>,
    Query(asked): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let secret = headers.get("x-identity-header").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let now = app.now();
    let subject = match job_of(secret, app.store.keyring(), now) {
        Some(Caller { who: Who::Job { workspace, job }, .. }) => {
            let (place, name) = (workspace.clone(), job.clone());
            let row = app.store.read(move |tx| tx.job(&place, &name)).await?;
            let live = row.is_some_and(|row| !row.job.state.is_ended());
            live.then(|| format!("job:{workspace}/{job}"))
        }
        _ => app.tokens.principal_of(secret, now).map(|row| row.id.clone()),
    };
    let Some(subject) = subject else {
        return Err(crate::auth::unauthorized("`X-IDENTITY-HEADER` holds no secret of a job that runs"));
    };
    let resource = asked.get("resource").map(|text| text.trim_end_matches("/.default").trim_end_matches('/'));
    let Some(resource) = resource.filter(|resource| is_ours(&app, resource)) else {
        return Err(Problem::bad(format!("`resource` must be one of {}", audiences(&app).join(", "))));
    };
    let seconds = if subject.starts_with("job:") { JOB_TOKEN_SECONDS } else { TOKEN_SECONDS };
    let claims = claims(resource, format!("{}/msi", app.url), &subject, now.0 / 1000, seconds);
    let body = json!({
        "access_token": app.tokens.keys.sign(&claims), "expires_on": claims.exp.to_string(), "resource": resource, "token_type": "Bearer",
    });
    Ok(([("cache-control", "no-store")], Json(body)).into_response())
}

/// Whom tokens may be meant for.
pub(crate) fn audiences(app: &App) -> [&str; 6] {
    [&app.url, &app.outside, LEARNING, LEARNING_PUBLIC, MANAGEMENT_PUBLIC, STORAGE]
}

/// Whom a token must be meant for to open blobs.
pub(crate) fn blob_audiences(app: &App) -> [&str; 3] {
    [&app.url, &app.outside, STORAGE]
}

/// Whom a token must be meant for to open everything else.
pub(crate) fn resource_audiences(app: &App) -> [&str; 5] {
    [&app.url, &app.outside, LEARNING, LEARNING_PUBLIC, MANAGEMENT_PUBLIC]
}

fn is_ours(app: &App, audience: &str) -> bool {
    audiences(app).contains(&audience)
}

fn claims(audience: &str, issuer: String, subject: &str, now: i64, seconds: i64) -> Claims {
    let subject = subject.to_owned();
    Claims {
        aud: audience.to_owned(),
        iss: issuer,
        sub: subject.clone(),
        oid: subject.clone(),
        appid: subject,
        tid: TENANT.to_owned(),
        iat: now,
        nbf: now,
        exp: now + seconds,
    }
}

fn oauth_error(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({"error": code, "error_description": message}))).into_response()
}
