//! Keys and tokens of online endpoints: drawn at random, sealed, and given by these calls alone.

use super::{Kind, find};
use crate::{
    app::App,
    http::{
        At, Body,
        change::{self, Halt, Shown},
        operations::{self, Ticket},
    },
    problem::Problem,
    routers::endpoint_token,
};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{RecordKey, RecordRow, Tx};

const NAMES: [&str; 2] = ["primaryKey", "secondaryKey"];
/// How long a token opens an endpoint, and when to ask for the next.
const TOKEN_LIFE_MS: i64 = 12 * 3_600_000;
const TOKEN_FRESH_MS: i64 = 6 * 3_600_000;

/// Gives an endpoint the keys it was sent, or keys of its own if it has none.
pub(super) fn keep(app: &App, tx: &mut Tx<'_>, key: &RecordKey, given: Option<&Value>) -> Result<(), Halt> {
    let mut keys = tx.record_secret(key)?;
    let before = keys.clone();
    for name in NAMES {
        let sent = given.and_then(|given| given.get(name)).and_then(Value::as_str).filter(|text| !text.is_empty());
        if let Some(sent) = sent {
            keys.insert(name.to_owned(), sent.to_owned());
        }
        keys.entry(name.to_owned()).or_insert_with(|| draw(app));
    }
    if keys != before {
        tx.put_record_secret(key, &keys)?;
    }
    Ok(())
}

pub(crate) async fn list(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (row, keys) = opened(&app, &at).await?;
    mode_is(&row, "key", "call `token` instead")?;
    Ok(Json(json!({"primaryKey": keys.get(NAMES[0]), "secondaryKey": keys.get(NAMES[1])})))
}

/// Draws one of the two keys anew; the old one stops working.
pub(crate) async fn regenerate(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let which = match body["keyType"].as_str().unwrap_or_default() {
        word if word.eq_ignore_ascii_case("primary") => NAMES[0],
        word if word.eq_ignore_ascii_case("secondary") => NAMES[1],
        other => return Err(Problem::bad(format!("`keyType` is `Primary` or `Secondary`, not `{other}`"))),
    };
    let (key, fresh, now) = (Kind::OnlineEndpoint.key(&workspace.name, &at), draw(&app), app.now());
    let ticket = Ticket::new(&app, &workspace.subscription);
    let done = ticket.clone();
    change::change(&app, move |tx| {
        let row = find(tx, Kind::OnlineEndpoint, &key)?;
        mode_is(&row, "key", "it has no keys to regenerate")?;
        let mut keys = tx.record_secret(&key)?;
        keys.insert(which.to_owned(), fresh);
        tx.put_record_secret(&key, &keys)?;
        Ok(done.done(tx, &key.workspace, &key.name, now)?)
    })
    .await?;
    Ok(Shown::accepted().tracked(operations::LOCATION, &ticket.result_url()))
}

/// A token for an endpoint whose callers use tokens.
pub(crate) async fn token(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (row, _) = opened(&app, &at).await?;
    if mode(&row) != "aadtoken" {
        mode_is(&row, "amltoken", "call `listKeys` for keys")?;
    }
    let now = app.now();
    let expires = Timestamp(now.0 + TOKEN_LIFE_MS);
    Ok(Json(json!({
        "accessToken": endpoint_token(app.store.keyring(), &row.key, expires), "tokenType": "Bearer",
        "expiryTimeUtc": expires.0 / 1000, "refreshAfterTimeUtc": (now.0 + TOKEN_FRESH_MS) / 1000,
    })))
}

/// How an endpoint's callers prove themselves, in lower case.
fn mode(row: &RecordRow) -> String {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    body["properties"]["authMode"].as_str().unwrap_or("Key").to_lowercase()
}

fn mode_is(row: &RecordRow, wanted: &str, instead: &str) -> Result<(), Problem> {
    match mode(row) {
        mode if mode == wanted => Ok(()),
        mode => Err(Problem::bad(format!("online endpoint `{}` has the auth mode `{mode}`; {instead}", row.key.name))),
    }
}

async fn opened(app: &App, at: &At) -> Result<(RecordRow, BTreeMap<String, String>), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = Kind::OnlineEndpoint.key(&workspace.name, at);
    change::look(app, move |tx| {
        let row = find(tx, Kind::OnlineEndpoint, &key)?;
        Ok((row, tx.record_secret(&key)?))
    })
    .await
}

fn draw(app: &App) -> String {
    store::secrets::hex(&app.store.keyring().random::<32>())
}
