//! Workspaces made by a template deployment, as clients of the resource manager make them.
//!
//! A deployment's template is not run; its parameters say which workspace is meant, and that one is made.

use super::{check_place, make};
use crate::{
    app::App,
    auth::Caller,
    http::{
        At, Body,
        change::{Conditions, Shown},
        workspaces::guid,
    },
    problem::Problem,
};
use axum::{
    Extension, Json,
    extract::{Path, State},
};
use domain::Role;
use serde_json::{Map, Value, json};
use store::{RecordKey, RecordRow, WorkspaceRow};

const KIND: &str = "deployments";

/// Makes the workspace that a deployment's parameters describe.
pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    check_place(&at)?;
    check_name(&at.name)?;
    let parameters = body["properties"]["parameters"].clone();
    let Some(name) = value(&parameters, "workspaceName").and_then(Value::as_str) else {
        return Err(Problem::bad(format!(
            "deployment `{}` has no parameter `workspaceName`; templates make workspaces here and nothing else",
            at.name
        )));
    };
    let place = At { workspace: name.to_owned(), ..at.place() };
    let (row, existed) = make(&app, &place, Conditions::default(), described(&parameters)).await?;
    let view = keep(&app, &at, &row, caller.name).await?;
    Ok(Shown::made(view, existed))
}

pub(crate) async fn show(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let wanted = id(&at);
    let name = at.name.clone();
    let rows = app.store.read(move |tx| tx.records_named(KIND, &name)).await?;
    let seen = rows.iter().filter(|row| caller.may(&row.key.workspace, Role::Reader));
    let views = seen.filter_map(|row| serde_json::from_str::<Value>(&row.body).ok());
    let mut here = views.filter(|view| view["id"].as_str().is_some_and(|id| id.eq_ignore_ascii_case(&wanted)));
    here.next().map(Json).ok_or_else(|| Problem::not_found("deployment", &at.name))
}

/// The steps of a deployment: it had one, and that is over.
pub(crate) async fn steps() -> Json<Value> {
    Json(json!({"value": [], "nextLink": null}))
}

/// The body of a workspace, from the parameters that describe one.
fn described(parameters: &Value) -> Value {
    let mut body = Map::new();
    let mut properties = Map::new();
    for (parameter, field) in [("location", "location"), ("tagValues", "tags"), ("identity", "identity")] {
        if let Some(value) = value(parameters, parameter) {
            body.insert(field.into(), value.clone());
        }
    }
    if let Some(kind) = value(parameters, "kind").and_then(Value::as_str) {
        let word = if kind.eq_ignore_ascii_case("default") { "Default" } else { kind };
        body.insert("kind".into(), json!(word));
    }
    for field in ["description", "friendlyName", "publicNetworkAccess"] {
        if let Some(value) = value(parameters, field) {
            properties.insert(field.into(), value.clone());
        }
    }
    body.insert("properties".into(), Value::Object(properties));
    Value::Object(body)
}

fn value<'p>(parameters: &'p Value, name: &str) -> Option<&'p Value> {
    parameters.get(name)?.get("value").filter(|value| !value.is_null() && *value != "")
}

fn check_name(name: &str) -> Result<(), Problem> {
    let good = name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.()".contains(&b));
    match good && !name.is_empty() {
        true => Ok(()),
        false => Err(Problem::bad("a deployment's name has 1 to 64 letters, digits, `-`, `_`, `.`, `(` and `)`")),
    }
}

fn id(at: &At) -> String {
    format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Resources/deployments/{}",
        at.subscription, at.group, at.name
    )
}

/// Remembers a deployment for as long as there is the workspace it made.
async fn keep(app: &App, at: &At, workspace: &WorkspaceRow, by: String) -> Result<Value, Problem> {
    let now = app.now();
    let view = json!({
        "id": id(at), "name": at.name, "type": "Microsoft.Resources/deployments",
        "properties": {
            "provisioningState": "Succeeded", "timestamp": now.iso(), "duration": "PT0S", "mode": "Incremental",
            "correlationId": guid(app.store.keyring().random()), "outputs": {},
            "outputResources": [{"id": super::view::id(workspace)}],
        },
    });
    let key = RecordKey {
        workspace: workspace.name.clone(),
        kind: KIND.into(),
        parent: String::new(),
        name: at.name.clone(),
    };
    let row = RecordRow {
        key,
        body: view.to_string(),
        archived: false,
        created_by: by,
        created_at: now,
        changed_at: now,
        version: 1,
    };
    app.store
        .write(move |tx| {
            tx.delete_record(&row.key)?;
            tx.insert_record(&row)
        })
        .await?;
    Ok(view)
}
