//! Azure's resource bodies, to and from the house's own types.

pub mod assets;
pub mod component;
pub mod datastore;
pub mod endpoint;
pub mod io;
pub mod job;
pub mod pipeline;
pub mod place;
pub mod reference;
pub mod schedule;
pub mod show;
pub mod spark;
pub mod sweep;
pub mod tree;

pub use reference::{AssetRef, Scope, VersionRef};

use serde_json::{Map, Value, json};

/// The resource provider all our resources stand under.
pub const PROVIDER: &str = "Microsoft.MachineLearningServices";

/// The `systemData` of a resource.
pub fn system_data(created_at: domain::Timestamp, by: &str, changed_at: domain::Timestamp) -> Value {
    json!({
        "createdAt": created_at.iso(), "createdBy": by, "createdByType": "User",
        "lastModifiedAt": changed_at.iso(), "lastModifiedBy": by, "lastModifiedByType": "User",
    })
}

/// Sets `key` when there is something to say.
pub(crate) fn put(map: &mut Map<String, Value>, key: &str, value: impl Into<Option<Value>>) {
    if let Some(value) = value.into() {
        map.insert(key.to_owned(), value);
    }
}

/// Text under `key`, if it is there and not null.
pub fn text(body: &Value, key: &str) -> Option<String> {
    match body.get(key) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(n)) => Some(n.to_string()),
        Some(Value::Bool(b)) => Some(b.to_string()),
        _ => None,
    }
}

/// A map of texts under `key`; other scalars become text, nulls are left out.
pub fn texts(body: &Value, key: &str) -> std::collections::BTreeMap<String, String> {
    let Some(Value::Object(map)) = body.get(key) else { return Default::default() };
    map.iter().filter_map(|(k, v)| Some((k.clone(), scalar(v)?))).collect()
}

/// A scalar as the text a process would be given.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(n) => Some(n.to_string()),
        // As the Python client writes them.
        Value::Bool(true) => Some("True".into()),
        Value::Bool(false) => Some("False".into()),
        _ => None,
    }
}
