//! Records as their files would say them, plus what the server adds: schedules, endpoints, deployments, registries.

use super::{
    assets::creation_context,
    datastore::snake,
    put, text,
    tree::{entries, some, word},
};
use serde_json::{Map, Value, json};

/// Maps whose keys belong to the user, not to us.
const OPAQUE: &[&str] = &[
    "tags",
    "properties",
    "traffic",
    "mirror_traffic",
    "environment_variables",
    "inputs",
    "outputs",
    "jobs",
    "user_assigned_identities",
    "settings",
    "conf",
    "component_spec",
];

/// Wire names that files spell in another way.
const NAMES: &[(&str, &str)] = &[
    ("environment_id", "environment"),
    ("code_id", "code"),
    ("friendly_name", "display_name"),
    ("scale_type", "type"),
    ("trigger_type", "type"),
    ("job_definition", "job"),
];

/// A record in the words of its file.
pub fn record(resource: &Value) -> Value {
    let mut out = Map::new();
    put(&mut out, "name", text(resource, "name").map(Value::from));
    let id = text(resource, "id").unwrap_or_default();
    let parts: Vec<&str> = id.split('/').collect();
    if let Some(at) = parts.iter().rposition(|part| part.eq_ignore_ascii_case("deployments")) {
        put(&mut out, "endpoint_name", at.checked_sub(1).and_then(|at| parts.get(at)).map(|name| json!(name)));
    }
    for (key, value) in entries(resource.get("properties").unwrap_or(&Value::Null)).filter(|(_, v)| !v.is_null()) {
        let (name, value) = spoken(key, value);
        put(&mut out, &name, value);
    }
    let capacity = some(resource, "sku").and_then(|sku| some(sku, "capacity"));
    put(&mut out, "instance_count", capacity.cloned());
    for key in ["location", "identity"] {
        put(&mut out, key, some(resource, key).map(snaked));
    }
    let tags = some(resource, "tags").or(out.get("tags")).cloned().unwrap_or_else(|| json!({}));
    put(&mut out, "tags", tags);
    put(&mut out, "id", json!(id));
    put(&mut out, "creation_context", resource.get("systemData").map(creation_context));
    Value::Object(out)
}

/// One entry under the name, and with the word, that files have.
fn spoken(key: &str, value: &Value) -> (String, Value) {
    let name = renamed(key);
    let value = match (name.as_str(), value) {
        ("auth_mode", Value::String(mode)) => json!(auth_mode(mode)),
        ("endpoint_compute_type", Value::String(kind)) => return ("type".to_owned(), json!(kind.to_lowercase())),
        ("output_action", Value::String(action)) => json!(snake(action)),
        ("model", Value::Object(_)) => word(value, "assetId").map_or_else(|| snaked(value), |id| json!(id)),
        ("action", Value::Object(_)) => return action(value),
        (name, value) if OPAQUE.contains(&name) => value.clone(),
        (_, value) => snaked(value),
    };
    (name, value)
}

fn action(value: &Value) -> (String, Value) {
    for (wire, ours) in [
        ("jobDefinition", "create_job"),
        ("dataImportDefinition", "import_data"),
        ("monitorDefinition", "create_monitor"),
    ] {
        if let Some(inner) = some(value, wire) {
            return (ours.to_owned(), snaked(inner));
        }
    }
    match (word(value, "endpointName"), word(value, "deploymentName")) {
        (Some(endpoint), Some(name)) => {
            ("update_deployment".to_owned(), json!({"endpoint_name": endpoint, "name": name}))
        }
        _ => ("action".to_owned(), snaked(value)),
    }
}

fn auth_mode(mode: &str) -> &str {
    match mode.to_lowercase().as_str() {
        "amltoken" => "aml_token",
        "aadtoken" => "aad_token",
        "key" => "key",
        _ => mode,
    }
}

fn renamed(key: &str) -> String {
    let name = snake(key);
    NAMES.iter().find(|(wire, _)| *wire == name).map_or(name.clone(), |(_, ours)| (*ours).to_owned())
}

fn snaked(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, inner)| !inner.is_null())
            .map(|(key, inner)| {
                let name = renamed(key);
                let word = matches!(key.as_str(), "triggerType" | "scaleType");
                match inner {
                    Value::String(text) if word => (name, json!(snake(text))),
                    inner if OPAQUE.contains(&name.as_str()) => (name, inner.clone()),
                    inner => (name, snaked(inner)),
                }
            })
            .collect(),
        Value::Array(items) => items.iter().map(snaked).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_reads_like_its_file() {
        let shown = record(&json!({
            "id": "/x/onlineEndpoints/ep/deployments/blue", "name": "blue", "sku": {"name": "Default", "capacity": 2},
            "properties": {"endpointComputeType": "Managed", "environmentId": "/e", "codeConfiguration": {"codeId": "/c", "scoringScript": "s.py"},
                "environmentVariables": {"MY_KEY": "1"}, "scaleSettings": {"scaleType": "TargetUtilization", "minInstances": 1}},
        }));
        assert_eq!((&shown["endpoint_name"], &shown["type"]), (&json!("ep"), &json!("managed")));
        assert_eq!((&shown["instance_count"], &shown["environment"]), (&json!(2), &json!("/e")));
        assert_eq!(shown["code_configuration"], json!({"code": "/c", "scoring_script": "s.py"}));
        assert_eq!(shown["environment_variables"], json!({"MY_KEY": "1"}));
        assert_eq!(shown["scale_settings"], json!({"type": "target_utilization", "min_instances": 1}));
    }

    #[test]
    fn a_schedule_reads_like_its_file() {
        let shown = record(&json!({"id": "/x/schedules/s", "name": "s", "properties": {
            "trigger": {"triggerType": "Cron", "expression": "* * * * *", "timeZone": "UTC"},
            "action": {"actionType": "CreateJob", "jobDefinition": {"jobType": "Pipeline", "inputs": {"A": 1}}}, "isEnabled": true}}));
        assert_eq!(shown["trigger"], json!({"type": "cron", "expression": "* * * * *", "time_zone": "UTC"}));
        assert_eq!(shown["create_job"]["inputs"], json!({"A": 1}));
        assert_eq!(shown["is_enabled"], true);
    }
}
