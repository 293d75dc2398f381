//! Workspaces: the unit of sharing. Every server has one from its first start.

use super::{At, Body};
use crate::{
    app::{App, scope},
    auth::Caller,
    problem::Problem,
};
use api::arm::{PROVIDER, system_data};
use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
};
use domain::{Role, names::WorkspaceName};
use serde_json::{Value, json};
use store::{DatastoreRow, Tx, WorkspaceRow};

/// The stores every workspace has.
pub(crate) const BLOB_STORE: &str = "workspaceblobstore";
pub(crate) const ARTIFACT_STORE: &str = "workspaceartifactstore";

pub(crate) async fn list(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Json<Value>, Problem> {
    let mut rows = app.store.read(|tx| tx.workspaces()).await?;
    rows.retain(|row| caller.may(&row.name, Role::Reader));
    Ok(Json(super::views::page(rows.iter().map(|row| view(&app, row)).collect(), None)))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let row = app.workspace(&at.workspace).await?;
    Ok(Json(view(&app, &row)))
}

pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    WorkspaceName::parse(&at.workspace).map_err(|bad| Problem::bad(bad.to_string()))?;
    let fresh = new_row(&app, &at.workspace);
    let row = app
        .store
        .write(move |tx| {
            let mut row = match tx.workspace(&fresh.name)? {
                Some(row) => row,
                None => {
                    add_stores(tx, &fresh)?;
                    fresh
                }
            };
            row.body = merged(&row.body, &body);
            tx.put_workspace(&row)?;
            Ok(row)
        })
        .await?;
    app.forget_workspaces();
    Ok((StatusCode::OK, Json(view(&app, &row))))
}

pub(crate) async fn delete(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    let row = app.workspace(&at.workspace).await?;
    if row.name == app.settings.workspace {
        return Err(Problem::conflict(format!("`{}` is this server's default workspace and stays", row.name)));
    }
    let name = row.name.clone();
    let deleted = app.store.write(move |tx| tx.delete_workspace(&name)).await;
    app.forget_workspaces();
    match deleted {
        Err(store::Error::Conflict) => {
            Err(Problem::conflict(format!("workspace `{}` has jobs that have not ended; cancel them first", row.name)))
        }
        other => Ok(other.map(|()| StatusCode::OK)?),
    }
}

/// Makes the default workspace at first start.
pub(crate) async fn ensure_default(app: &App) -> Result<(), store::Error> {
    let row = new_row(app, &app.settings.workspace.clone());
    app.store
        .write(move |tx| {
            if tx.workspace(&row.name)?.is_none() {
                tx.put_workspace(&row)?;
                add_stores(tx, &row)?;
            }
            Ok(())
        })
        .await
}

fn new_row(app: &App, name: &str) -> WorkspaceRow {
    let id = guid(app.store.keyring().random());
    WorkspaceRow {
        name: name.to_owned(),
        id,
        subscription: app.settings.subscription.clone(),
        resource_group: app.settings.resource_group.clone(),
        body: "{}".into(),
        created_at: app.now(),
        changed_at: app.now(),
    }
}

fn add_stores(tx: &mut Tx<'_>, row: &WorkspaceRow) -> Result<(), store::Error> {
    for (name, is_default) in [(BLOB_STORE, true), (ARTIFACT_STORE, false)] {
        let store = DatastoreRow {
            name: name.to_owned(),
            body: json!({"description": "kept by this server"}).to_string(),
            is_default,
            has_secret: false,
            created_at: row.created_at,
            changed_at: row.created_at,
        };
        tx.put_datastore(&row.name, &store, None)?;
    }
    Ok(())
}

/// Top-level and `properties` fields of an update, over what was there.
fn merged(old: &str, new: &Value) -> String {
    let mut body: Value = serde_json::from_str(old).unwrap_or_else(|_| json!({}));
    for source in [Some(new), new.get("properties")].into_iter().flatten() {
        for (key, value) in source.as_object().into_iter().flatten() {
            if key != "properties" && !value.is_null() {
                body[key] = value.clone();
            }
        }
    }
    body.to_string()
}

fn view(app: &App, row: &WorkspaceRow) -> Value {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    json!({
        "id": scope(row).path(), "name": row.name, "type": format!("{PROVIDER}/workspaces"),
        "location": body.get("location").cloned().unwrap_or_else(|| json!("local")),
        "tags": body.get("tags").cloned().unwrap_or_else(|| json!({})),
        "kind": "Default", "systemData": system_data(row.created_at, "local", row.created_at),
        "properties": {
            "friendlyName": body.get("friendlyName").cloned().unwrap_or_else(|| json!(row.name)),
            "description": body.get("description"), "workspaceId": row.id, "discoveryUrl": format!("{}/discovery", app.url),
            "provisioningState": "Succeeded",
        },
    })
}

/// A GUID from 16 random bytes.
pub(crate) fn guid(bytes: [u8; 16]) -> String {
    let hex = store::secrets::hex(&bytes);
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
