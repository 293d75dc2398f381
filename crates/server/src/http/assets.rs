//! Assets of every kind, by name and version, of a workspace or of a registry.
//!
//! Invariants: a version's content never changes; of two writers of one version the first wins.

mod check;
mod kept;
mod names;
mod outputs;
mod shipped;
mod upload;
mod uses;

pub(crate) use names::{container, list, put_container};
pub use outputs::register_outputs;
pub(crate) use upload::{read_link, start as start_upload, upload_link};
pub(crate) use uses::uses;

use super::{
    Asked, At, Body, archived,
    change::{self, Conditions, Shown},
    mlflow::registry,
    paging::{self, Paging},
    views,
};
use crate::{
    app::{App, scope},
    auth::Caller,
    problem::Problem,
};
use api::arm;
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::{StatusCode, Uri},
};
use serde_json::{Value, json};
use std::sync::Arc;
use store::{AssetKey, AssetRow, Error, RecordKey, Tx, VersionFilter};

const KINDS: [&str; 5] = ["codes", "data", "models", "environments", "components"];

/// Versions of a name, newest first unless asked otherwise; for code, the one with a certain content.
pub(crate) async fn versions(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let (owner, kind, paging) = (app.owner(&at.owner()).await?, known(&at)?, Paging::of(&asked)?);
    let scope = scope(&owner);
    let (key, name, hidden, start) = (owner.name.clone(), at.name.clone(), archived(&asked), paging.row()?);
    if let Some(hash) = asked.get("hash").cloned() {
        let found = app.store.read(move |tx| tx.asset_by_hash(&key, &kind, &hash)).await?;
        return Ok(Json(views::page(found.iter().map(|row| views::asset(&scope, row)).collect(), None)));
    }
    let oldest_first = asked.get("$orderBy").is_some_and(|order| order.to_lowercase().ends_with(" asc"));
    let (wanted, shipped) = (asked.clone(), shipped::find(&at.kind, &at.name));
    let page = app
        .store
        .read(move |tx| {
            let read = |after: &str, limit| {
                let after = after.parse().ok().or(start);
                let filter = VersionFilter { archived: hidden, oldest_first, after, limit };
                tx.versions_page(&key, &kind, &name, &filter)
            };
            paging.fill(read, |row| fits(&wanted, row), |row| row.seq.to_string())
        })
        .await?;
    match shipped.filter(|_| page.items.is_empty()) {
        Some(shipped) => Ok(Json(views::page(vec![shipped::view(&scope, shipped)], None))),
        None => Ok(Json(page.shown(&app, &uri, &asked, |row| views::asset(&scope, row)))),
    }
}

fn fits(asked: &std::collections::HashMap<String, String>, row: &AssetRow) -> bool {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let version = asked.get("version").is_none_or(|wanted| wanted.is_empty() || *wanted == row.key.version);
    version && paging::tagged(asked, body.get("tags"))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Shown, Problem> {
    let owner = app.owner(&at.owner()).await?;
    let key = key(&owner.name, &at)?;
    let wanted = key.clone();
    let (workspace, then) = (Arc::clone(&owner), app.clone());
    let found = app.store.read(move |tx| match tx.asset(&wanted)? {
        Some(row) => Ok(Some((kept::of(&then, &workspace, tx, &row)?, row))),
        None => Ok(None),
    });
    if let Some((kept, row)) = found.await? {
        let mut view = views::asset(&scope(&owner), &row);
        if !kept.is_empty() {
            view["keptOn"] = json!(kept);
        }
        return Ok(Shown::found(view));
    }
    match shipped::find(&key.kind, &key.name) {
        Some(shipped) => Ok(Shown::found(shipped::view(&scope(&owner), shipped))),
        None => Err(Problem::not_found(noun(&at.kind), &format!("{}:{}", at.name, at.version))),
    }
}

/// Creates a version, or changes what may change of one. Other content under a taken version is a conflict.
pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let owner = app.owner(&at.owner()).await?;
    super::registries::may_change(&at)?;
    let key = key(&owner.name, &at)?;
    check::names(&at)?;
    let properties = body.get("properties").cloned().unwrap_or_else(|| json!({}));
    check::body(&key, &properties)?;
    if key.kind == "codes" {
        // Everything the snapshot refers to is uploaded by now: make it last before anyone relies on it.
        let files = app.files.clone();
        let synced = tokio::task::spawn_blocking(move || files.sync()).await;
        synced.map_err(|_| Error::Closed)??;
    }
    let now = app.now();
    let (row, existed) = change::change(&app, move |tx| {
        let before = tx.asset(&key)?;
        let called = format!("{} `{}:{}`", noun(&at.kind), at.name, at.version);
        conditions.hold(&called, before.as_ref().map(views::asset_mark).as_deref())?;
        let existed = before.is_some();
        match before {
            None => insert(tx, &key, &properties, &caller.name, now)?,
            Some(row) => update(tx, &at, &row, &properties, now)?,
        }
        let row = tx.asset(&key)?.ok_or(Error::Conflict)?;
        Ok((row, existed))
    })
    .await?;
    Ok(Shown::made(views::asset(&scope(&owner), &row), existed))
}

/// Adds a version whose content is known by its hash where its client gave one.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    key: &AssetKey,
    properties: &Value,
    by: &str,
    now: domain::Timestamp,
) -> Result<(), Error> {
    let hash = properties.get("properties").and_then(|p| arm::text(p, "hash_sha256"));
    let first = key.kind == "models"
        && tx.latest_asset(&key.workspace, &key.kind, &key.name)?.is_none()
        && tx.record(&said_of(&key.workspace, &key.kind, &key.name))?.is_none();
    tx.insert_asset(key, &properties.to_string(), hash.as_deref(), by, now)?;
    if properties.get("isArchived").and_then(Value::as_bool).unwrap_or(false)
        && let Some(row) = tx.asset(key)?
    {
        tx.put_asset(row.seq, &row.body, true, now)?;
    }
    if key.kind == "models" {
        registry::tell_added(tx, key, first, now)?;
    }
    Ok(())
}

fn update(
    tx: &mut Tx<'_>,
    at: &At,
    row: &AssetRow,
    properties: &Value,
    now: domain::Timestamp,
) -> Result<(), change::Halt> {
    let mut body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let tags = arm::texts(&body, "tags");
    if let Some(field) = check::changed_content(&row.key.kind, &body, properties) {
        return Err(check::immutable(at, &field).into());
    }
    for field in check::CHANGEABLE {
        if let Some(value) = properties.get(field).filter(|value| !value.is_null()) {
            body[field] = value.clone();
        }
    }
    let hide = properties.get("isArchived").and_then(Value::as_bool).unwrap_or(row.archived);
    if row.key.kind == "models" {
        registry::tell_retagged(tx, &row.key, (&tags, &arm::texts(&body, "tags")), now)?;
    }
    Ok(tx.put_asset(row.seq, &body.to_string(), hide, now)?)
}

pub(crate) async fn delete(
    State(app): State<App>,
    Path(at): Path<At>,
    conditions: Conditions,
) -> Result<StatusCode, Problem> {
    let owner = app.owner(&at.owner()).await?;
    super::registries::may_change(&at)?;
    let key = key(&owner.name, &at)?;
    let found = change::change(&app, move |tx| {
        let row = tx.asset(&key)?;
        let called = format!("{} `{}:{}`", noun(&at.kind), at.name, at.version);
        conditions.hold(&called, row.as_ref().map(views::asset_mark).as_deref())?;
        let Some(row) = row else { return Ok(false) };
        tx.delete_asset(row.seq)?;
        if tx.latest_asset(&key.workspace, &key.kind, &key.name)?.is_none() {
            tx.delete_record(&said_of(&key.workspace, &key.kind, &key.name))?;
        }
        Ok(true)
    })
    .await?;
    Ok(if found { StatusCode::OK } else { StatusCode::NO_CONTENT })
}

/// Where what is said of a name, rather than of a version, is kept.
fn said_of(owner: &str, kind: &str, name: &str) -> RecordKey {
    RecordKey { workspace: owner.into(), kind: kind.into(), parent: String::new(), name: name.into() }
}

fn known(at: &At) -> Result<String, Problem> {
    match KINDS.contains(&at.kind.as_str()) {
        true => Ok(at.kind.clone()),
        false => Err(Problem::missing("collection", &at.kind, &KINDS.map(str::to_owned))),
    }
}

fn key(owner: &str, at: &At) -> Result<AssetKey, Problem> {
    Ok(AssetKey { workspace: owner.to_owned(), kind: known(at)?, name: at.name.clone(), version: at.version.clone() })
}

pub(crate) fn noun(kind: &str) -> &str {
    match kind {
        "data" => "data asset",
        plural => plural.strip_suffix('s').unwrap_or(plural),
    }
}
