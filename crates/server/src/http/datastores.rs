//! Datastores. Secrets go in and never come out; the workspace's own stores are opened by short-lived links.

use super::{
    Asked, At, Body,
    change::{self, Conditions, Shown},
    paging::{self, Paging},
    workspaces::{ARTIFACT_STORE, BLOB_STORE},
};
use crate::{
    app::{App, scope},
    auth::sign_link,
    problem::Problem,
};
use api::arm::{self, PROVIDER, Scope, system_data};
use axum::{
    Json,
    extract::{Path, Query, State},
    http::{StatusCode, Uri},
};
use domain::{Timestamp, names::DatastoreName};
use serde_json::{Value, json};
use std::collections::HashMap;
use store::{DatastoreRow, WorkspaceRow, files::ARTIFACT_CONTAINER};

/// How long a link to the workspace's own stores lives.
const LINK_LIFE_MS: i64 = 3_600_000;

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let (workspace, paging) = (app.workspace(&at.workspace).await?, Paging::of(&asked)?);
    let name = workspace.name.clone();
    let mut rows = app.store.read(move |tx| tx.datastores(&name)).await?;
    rows.retain(|row| wanted(&asked, row));
    // The default comes first, the others by name.
    let place = |row: &DatastoreRow| format!("{}{}", i32::from(!row.is_default), row.name);
    Ok(Json(paging.cut(rows, place).shown(&app, &uri, &asked, |row| view(&app, &workspace, row))))
}

fn wanted(asked: &HashMap<String, String>, row: &DatastoreRow) -> bool {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let default = asked.get("isDefault").filter(|value| !value.is_empty());
    let search = asked.get("searchText").or_else(|| asked.get("searchName"));
    default.is_none_or(|value| value.eq_ignore_ascii_case("true") == row.is_default)
        && asked
            .get("names")
            .is_none_or(|names| names.is_empty() || names.split(',').any(|name| name.trim() == row.name))
        && search.is_none_or(|text| row.name.to_lowercase().contains(&text.to_lowercase()))
        && paging::tagged(asked, body.get("tags"))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Shown, Problem> {
    let (workspace, row) = find(&app, &at).await?;
    Ok(Shown::found(view(&app, &workspace, &row)))
}

pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    DatastoreName::parse(&at.name).map_err(|bad| Problem::bad(bad.to_string()))?;
    if is_built_in(&at.name) {
        return Err(Problem::conflict(format!(
            "datastore `{}` is the workspace's own and cannot be replaced",
            at.name
        )));
    }
    let mut properties = body.get("properties").cloned().unwrap_or_else(|| json!({}));
    if !properties.is_object() {
        return Err(Problem::bad(format!("`properties` of datastore `{}` is not an object", at.name)));
    }
    let Some(kind) = arm::text(&properties, "datastoreType") else {
        return Err(Problem::bad(format!("datastore `{}` has no `datastoreType`", at.name)));
    };
    if !arm::datastore::kinds().any(|known| known == kind) {
        let known = arm::datastore::kinds().collect::<Vec<_>>().join(", ");
        return Err(Problem::bad(format!("`datastoreType` of `{}` is `{kind}`; there are: {known}", at.name)));
    }
    arm::datastore::check_credentials(&properties)
        .map_err(|wrong| Problem::bad(format!("datastore `{}`: {wrong}", at.name)))?;
    let given = properties.get("credentials").and_then(|c| c.get("secrets")).is_some();
    let secrets = arm::datastore::split_secrets(&mut properties);
    let now = app.now();
    let name = at.name.clone();
    let key = workspace.name.clone();
    let (row, existed) = change::change(&app, move |tx| {
        let before = tx.datastore(&key, &name)?;
        conditions.hold(&format!("datastore `{name}`"), before.as_ref().map(mark).as_deref())?;
        let row = DatastoreRow {
            name,
            is_default: properties.get("isDefault").and_then(Value::as_bool).unwrap_or(false),
            body: properties.to_string(),
            has_secret: given,
            created_at: before.as_ref().map_or(now, |row| row.created_at),
            changed_at: now,
        };
        tx.put_datastore(&key, &row, given.then_some(&secrets))?;
        Ok((row, before.is_some()))
    })
    .await?;
    Ok(Shown::made(view(&app, &workspace, &row), existed))
}

pub(crate) async fn delete(
    State(app): State<App>,
    Path(at): Path<At>,
    conditions: Conditions,
) -> Result<StatusCode, Problem> {
    let (workspace, row) = find(&app, &at).await?;
    if is_built_in(&row.name) || row.is_default {
        return Err(Problem::conflict(format!(
            "datastore `{}` is the workspace's own or its default and stays",
            row.name
        )));
    }
    let key = workspace.name.clone();
    change::change(&app, move |tx| {
        let current = tx.datastore(&key, &row.name)?.map(|row| mark(&row));
        conditions.hold(&format!("datastore `{}`", row.name), current.as_deref())?;
        Ok(tx.delete_datastore(&key, &row.name)?)
    })
    .await?;
    Ok(StatusCode::OK)
}

/// A link for the workspace's own stores. Credentials of others' stores stay here.
pub(crate) async fn secrets(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (workspace, row) = find(&app, &at).await?;
    if !is_built_in(&row.name) {
        return Err(Problem::forbidden(format!(
            "the credentials of datastore `{}` are given to the jobs that use it and to nobody else",
            row.name
        )));
    }
    let container = container_of(&workspace, &row.name);
    let link = sign_link(app.store.keyring(), &workspace.name, &container, true, Timestamp(app.now().0 + LINK_LIFE_MS));
    Ok(Json(json!({"secretsType": "Sas", "sasToken": link})))
}

pub(crate) fn is_built_in(name: &str) -> bool {
    name == BLOB_STORE || name == ARTIFACT_STORE
}

/// The container behind one of the workspace's own stores.
pub(crate) fn container_of(workspace: &WorkspaceRow, name: &str) -> String {
    match name {
        ARTIFACT_STORE => ARTIFACT_CONTAINER.to_owned(),
        _ => format!("azureml-blobstore-{}", workspace.id),
    }
}

async fn find(app: &App, at: &At) -> Result<(std::sync::Arc<WorkspaceRow>, DatastoreRow), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let (row, names) = app
        .store
        .read(move |tx| {
            let row = tx.datastore(&key, &name)?;
            let names = tx.datastores(&key)?.into_iter().map(|row| row.name).collect::<Vec<_>>();
            Ok((row, names))
        })
        .await?;
    let row = row.ok_or_else(|| Problem::missing("datastore", &at.name, &names))?;
    Ok((workspace, row))
}

fn mark(row: &DatastoreRow) -> String {
    change::mark(&[&row.changed_at.0.to_string(), &row.is_default.to_string(), &row.body])
}

fn view(app: &App, workspace: &WorkspaceRow, row: &DatastoreRow) -> Value {
    let scope: Scope = scope(workspace);
    let mut properties: Value = serde_json::from_str(&row.body).unwrap_or_default();
    if is_built_in(&row.name) {
        properties["datastoreType"] = json!("AzureBlob");
        properties["accountName"] =
            json!(format!("{}/blob/{}", app.url.trim_start_matches("https://"), workspace.name));
        properties["containerName"] = json!(container_of(workspace, &row.name));
        properties["endpoint"] = json!(super::blobs::ENDPOINT);
        properties["protocol"] = json!("https");
        properties["credentials"] = json!({"credentialsType": "Sas"});
        properties["serviceDataAccessAuthIdentity"] = json!("None");
    }
    properties["isDefault"] = json!(row.is_default);
    json!({
        "id": format!("{}/datastores/{}", scope.path(), row.name), "name": row.name,
        "type": format!("{PROVIDER}/workspaces/datastores"), "systemData": system_data(row.created_at, "local", row.changed_at),
        "etag": mark(row), "properties": properties,
    })
}
