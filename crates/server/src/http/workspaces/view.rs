//! Workspaces as resources: what was sent, with the addresses and parts clients look for.

use crate::{
    app::{App, scope},
    http::change,
    problem::Problem,
};
use api::arm::{PROVIDER, system_data};
use serde_json::{Map, Value, json};
use store::WorkspaceRow;

/// What stands beside `properties` in a resource.
const OUTER: &[&str] = &["location", "tags", "kind", "identity", "sku", "zones", "extendedLocation"];
/// What only the server writes.
const SERVERS: &[&str] = &["id", "name", "type", "systemData", "etag"];
const SERVERS_INSIDE: &[&str] =
    &["workspaceId", "discoveryUrl", "mlFlowTrackingUri", "provisioningState", "storageHnsEnabled", "tenantId"];

pub(super) fn id(row: &WorkspaceRow) -> String {
    scope(row).path()
}

pub(super) fn mark(row: &WorkspaceRow) -> String {
    change::mark(&[&row.id, &row.changed_at.0.to_string(), &row.body])
}

pub(super) fn tags(row: &WorkspaceRow) -> Option<Value> {
    body_of(row).remove("tags")
}

/// The path of a part a workspace is made of elsewhere; here the server is all of them.
pub(super) fn part(row: &WorkspaceRow, kind: &str) -> String {
    format!("/subscriptions/{}/resourceGroups/{}/providers/{kind}/{}", row.subscription, row.resource_group, row.name)
}

pub(super) fn check(name: &str, body: &Value) -> Result<(), Problem> {
    let object = |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_null());
    match body.is_object() && object(body.get("properties")) && object(body.get("tags")) {
        true => Ok(()),
        false => Err(Problem::bad(format!(
            "workspace `{name}` is not a JSON object whose `tags` and `properties` are objects"
        ))),
    }
}

/// What was sent laid over what is there: a field replaces the field, a null takes it away.
pub(super) fn merged(row: &WorkspaceRow, sent: &Value) -> Value {
    let mut body = body_of(row);
    let mut properties = match body.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let lay = |over: &mut Map<String, Value>, sent: Option<&Value>, servers: &[&str]| {
        for (key, value) in sent.and_then(Value::as_object).into_iter().flatten() {
            match value {
                _ if key == "properties" || servers.contains(&key.as_str()) => {}
                Value::Null => drop(over.remove(key)),
                value => drop(over.insert(key.clone(), value.clone())),
            }
        }
    };
    lay(&mut body, Some(sent), SERVERS);
    lay(&mut properties, sent.get("properties"), SERVERS_INSIDE);
    body.insert("properties".into(), Value::Object(properties));
    Value::Object(body)
}

/// The body as it is kept now. Servers before kept its properties beside the rest.
fn body_of(row: &WorkspaceRow) -> Map<String, Value> {
    let mut body: Map<String, Value> = serde_json::from_str(&row.body).unwrap_or_default();
    if !body.contains_key("properties") {
        let (outer, inner) = body.into_iter().partition(|(key, _)| OUTER.contains(&key.as_str()));
        body = outer;
        body.insert("properties".into(), Value::Object(inner));
    }
    body
}

pub(super) fn of(app: &App, row: &WorkspaceRow) -> Value {
    let mut view = body_of(row);
    let mut properties = match view.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for (key, value) in [
        ("friendlyName", json!(row.name)),
        ("description", Value::Null),
        ("storageAccount", json!(part(row, "Microsoft.Storage/storageAccounts"))),
        ("keyVault", json!(part(row, "Microsoft.KeyVault/vaults"))),
        ("applicationInsights", json!(part(row, "Microsoft.Insights/components"))),
        ("containerRegistry", Value::Null),
        ("hbiWorkspace", json!(false)),
        ("publicNetworkAccess", json!("Enabled")),
        ("v1LegacyMode", json!(false)),
        ("allowPublicAccessWhenBehindVnet", json!(false)),
    ] {
        properties.entry(key).or_insert(value);
    }
    for (key, value) in [
        ("workspaceId", json!(row.id)),
        ("discoveryUrl", json!(format!("{}/discovery", app.url))),
        ("mlFlowTrackingUri", json!(format!("{}/mlflow/v1.0{}", app.url, id(row)))),
        ("provisioningState", json!("Succeeded")),
    ] {
        properties.insert(key.into(), value);
    }
    for (key, value) in [
        ("location", json!("local")),
        ("tags", json!({})),
        ("kind", json!("Default")),
        ("identity", json!({"type": "SystemAssigned", "principalId": row.id, "tenantId": row.id})),
    ] {
        view.entry(key).or_insert(value);
    }
    for (key, value) in [
        ("id", json!(id(row))),
        ("name", json!(row.name)),
        ("type", json!(format!("{PROVIDER}/workspaces"))),
        ("etag", json!(mark(row))),
        ("systemData", system_data(row.created_at, "local", row.changed_at)),
        ("properties", Value::Object(properties)),
    ] {
        view.insert(key.into(), value);
    }
    Value::Object(view)
}
