//! Records as resources: what was sent, with what the server knows and what clients cannot do without.

use super::{Kind, Live, serving};
use crate::{
    app::{App, scope},
    http::change,
};
use api::arm::{PROVIDER, system_data};
use serde_json::{Map, Value, json};
use store::{RecordKey, RecordRow, WorkspaceRow};

/// Where a record says what it is worth.
const STATE: &str = "peregrine.state";
/// Where an endpoint says whether it answers.
const HEALTH: &str = "peregrine.health";
/// What only the server writes; clients send it back as they got it.
const SERVERS: &[&str] = &["id", "name", "type", "systemData", "etag"];
const SERVERS_INSIDE: &[&str] = &["provisioningState", "scoringUri", "swaggerUri", "peregrine"];

pub(super) fn id(workspace: &WorkspaceRow, kind: Kind, key: &RecordKey) -> String {
    format!("{}/{}", scope(workspace).path(), kind.path(key))
}

pub(super) fn mark(row: &RecordRow) -> String {
    change::mark(&[&row.version.to_string(), &row.created_at.0.to_string(), &row.body])
}

pub(super) fn tags(row: &RecordRow) -> Option<Value> {
    let mut body: Value = serde_json::from_str(&row.body).ok()?;
    let outer = body.get("tags").filter(|tags| tags.is_object()).is_some();
    Some(if outer { body["tags"].take() } else { body["properties"]["tags"].take() })
}

/// Takes out what only the server writes, and the keys an endpoint was given, which are returned.
pub(super) fn settle(body: &mut Value) -> Option<Value> {
    let map = body.as_object_mut()?;
    map.retain(|key, _| !SERVERS.contains(&key.as_str()));
    let properties = map.entry("properties").or_insert_with(|| json!({})).as_object_mut()?;
    properties.retain(|key, _| !SERVERS_INSIDE.contains(&key.as_str()));
    if let Some(inner) = properties.get_mut("properties").and_then(Value::as_object_mut) {
        inner.remove(STATE);
        inner.remove(HEALTH);
    }
    properties.remove("keys").filter(Value::is_object)
}

pub(super) fn of(app: &App, workspace: &WorkspaceRow, kind: Kind, row: &RecordRow, live: Option<&Live>) -> Value {
    let mut view: Map<String, Value> = serde_json::from_str(&row.body).unwrap_or_default();
    let mut properties = match view.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    defaults(app, workspace, kind, &row.key, &mut properties);
    if let Some(Live::Serving(live @ serving::Live::Endpoint { door, .. })) = live {
        if let serving::Door::There(router) = door {
            addresses(router.as_deref(), &row.key, &mut properties);
        }
        object(&mut properties, "properties")[HEALTH] = json!(live.health());
    }
    let (state, words) = match (kind, live) {
        (_, Some(Live::Serving(live))) => live.state(),
        (_, Some(Live::Schedule(live))) => {
            properties.insert("peregrine".into(), live.details());
            ("Succeeded", Some(live.words()))
        }
        // An address is all that a batch endpoint is; its deployment was looked through when it was accepted.
        (Kind::BatchEndpoint | Kind::BatchDeployment, None) => ("Succeeded", None),
        (kind, None) => ("Unknown", Some(state(kind).to_owned())),
    };
    properties.insert("provisioningState".into(), json!(state));
    if let Some(words) = words {
        object(&mut properties, "properties")[STATE] = json!(words);
    }
    if kind != Kind::Schedule {
        view.entry("location").or_insert_with(|| json!("local"));
        let tags = view.entry("tags").or_insert_with(|| json!({}));
        if tags.is_null() {
            *tags = json!({});
        }
    }
    if kind == Kind::OnlineDeployment && !view.get("sku").is_some_and(Value::is_object) {
        view.insert("sku".into(), json!({"name": "Default", "capacity": 1}));
    }
    for (key, value) in [
        ("id", json!(id(workspace, kind, &row.key))),
        ("name", json!(row.key.name)),
        ("type", json!(format!("{PROVIDER}/{}", kind.type_name()))),
        ("etag", json!(mark(row))),
        ("systemData", system_data(row.created_at, &row.created_by, row.changed_at)),
        ("properties", Value::Object(properties)),
    ] {
        view.insert(key.into(), value);
    }
    Value::Object(view)
}

/// What a record is worth that nothing runs.
fn state(kind: Kind) -> &'static str {
    match kind {
        Kind::Schedule => "kept as a record whose trigger makes no sense; update it",
        _ => "kept as a record of before it could be served; update it",
    }
}

/// Fields that clients look into without asking whether they are there.
fn defaults(app: &App, workspace: &WorkspaceRow, kind: Kind, key: &RecordKey, properties: &mut Map<String, Value>) {
    match kind {
        Kind::Schedule => {
            fill(properties, "isEnabled", json!(true));
            fill(properties, "tags", json!({}));
        }
        Kind::OnlineEndpoint => {
            addresses(Some(app.settings.scoring_url.as_ref().unwrap_or(&app.url)), key, properties);
            fill(properties, "authMode", json!("Key"));
            fill(properties, "traffic", json!({}));
            fill(properties, "mirrorTraffic", json!({}));
        }
        Kind::OnlineDeployment => {
            fill(properties, "endpointComputeType", json!("Managed"));
            fill(properties, "environmentVariables", json!({}));
            let scale = object(properties, "scaleSettings");
            if scale["scaleType"].is_null() {
                scale["scaleType"] = json!("Default");
            }
            if properties["endpointComputeType"] == "Kubernetes" {
                let resources = object(properties, "containerResourceRequirements");
                for part in ["containerResourceRequests", "containerResourceLimits"] {
                    if resources[part].is_null() {
                        resources[part] = json!({});
                    }
                }
            }
        }
        Kind::BatchEndpoint => {
            let base = scope(workspace).path();
            let address = format!("{}/batchscore{base}/batchEndpoints/{}/jobs", app.url, key.name);
            properties.insert("scoringUri".into(), json!(address));
            fill(properties, "authMode", json!("AADToken"));
            fill(properties, "defaults", json!({}));
        }
        Kind::BatchDeployment => {
            if let Some(model) = properties.get_mut("model").filter(|model| model.is_object())
                && model["referenceType"].is_null()
            {
                model["referenceType"] = json!("Id");
            }
        }
    }
}

/// Where an endpoint is called, once that is known.
fn addresses(router: Option<&str>, key: &RecordKey, properties: &mut Map<String, Value>) {
    for (name, path) in [("scoringUri", "score"), ("swaggerUri", "swagger.json")] {
        let address = router.map(|router| format!("{router}/api/v1/endpoint/{}/{path}", key.name));
        properties.insert(name.into(), json!(address));
    }
}

fn fill(properties: &mut Map<String, Value>, key: &str, value: Value) {
    let at = properties.entry(key).or_insert(Value::Null);
    if at.is_null() {
        *at = value;
    }
}

/// The object under `key`, made if there is none.
fn object<'p>(properties: &'p mut Map<String, Value>, key: &str) -> &'p mut Value {
    let at = properties.entry(key).or_insert_with(|| json!({}));
    if !at.is_object() {
        *at = json!({});
    }
    at
}
