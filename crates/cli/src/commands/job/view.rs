//! A job in the words of its YAML file, plus what the server knows about it.

use crate::{
    output::{Column, ago, duration_between},
    outside,
};
use api::arm::{self, assets::creation_context, datastore::snake, reference::compute_name};
use serde_json::{Map, Value, json};

/// Columns of `job list`.
pub(super) const COLUMNS: &[Column] = &[
    Column::new("NAME", |job| text(&job["name"])).whole(),
    Column::new("STATUS", |job| text(&job["status"])).whole(),
    Column::new("EXPERIMENT", |job| text(&job["experiment_name"])),
    Column::new("COMPUTE", |job| job["compute"].as_str().map_or_else(|| "local".to_owned(), compute_name)),
    Column::new("CREATED", |job| ago(&job["creation_context"]["created_at"], outside::now())),
    Column::new("DURATION", |job| {
        let details = &job["peregrine"];
        duration_between(&details["started_at"], &details["ended_at"], outside::now())
    }),
];

/// A job resource as `show` prints it.
pub(super) fn show(resource: &Value) -> Value {
    let properties = &resource["properties"];
    let mut out = Map::new();
    out.insert("name".to_owned(), resource["name"].clone());
    out.insert("status".to_owned(), properties["status"].clone());
    match arm::job::spec(properties).map(serde_json::to_value) {
        Ok(Ok(Value::Object(spec))) => out.extend(spec.into_iter().filter(|(key, _)| key != "name")),
        // Not a command job: its own words are better than none.
        _ => out.extend(snaked(properties)),
    }
    if properties["isArchived"] == json!(true) {
        out.insert("archived".to_owned(), json!(true));
    }
    out.insert("services".to_owned(), services(&properties["services"]));
    out.insert("id".to_owned(), resource["id"].clone());
    out.insert("creation_context".to_owned(), creation_context(&resource["systemData"]));
    out.insert("peregrine".to_owned(), Value::Object(snaked(&properties["peregrine"])));
    Value::Object(out)
}

/// Services by name, under their YAML keys.
pub(super) fn services(value: &Value) -> Value {
    let Value::Object(map) = value else { return json!({}) };
    map.iter().map(|(name, service)| (name.clone(), Value::Object(snaked(service)))).collect()
}

pub(super) fn status(resource: &Value) -> &str {
    resource["properties"]["status"].as_str().unwrap_or("Unknown")
}

pub(super) fn is_over(resource: &Value) -> bool {
    matches!(status(resource), "Completed" | "Failed" | "Canceled")
}

fn snaked(value: &Value) -> Map<String, Value> {
    let Value::Object(map) = value else { return Map::new() };
    let inner = |value: &Value| match value {
        Value::Object(_) => Value::Object(snaked(value)),
        other => other.clone(),
    };
    map.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (snake(key), inner(value))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_shown_under_the_keys_of_its_file() {
        let resource = json!({
            "id": "/x/jobs/a", "name": "a", "systemData": {"createdAt": "2026-01-01T00:00:00.000+00:00", "createdBy": "me"},
            "properties": {
                "jobType": "Command", "status": "Running", "command": "echo", "experimentName": "e", "environmentId": "azureml:e:1",
                "resources": {"instanceCount": 1}, "services": {"Tracking": {"jobServiceType": "Tracking", "endpoint": "x"}},
                "peregrine": {"phase": "running", "startedAt": 5, "failure": {"lastLines": "x"}, "note": null},
            },
        });
        let shown = show(&resource);
        assert_eq!(shown["command"], "echo");
        assert_eq!(shown["type"], "command");
        assert_eq!(shown["experiment_name"], "e");
        assert_eq!(shown["environment"], "azureml:e:1");
        assert_eq!(shown["services"]["Tracking"]["job_service_type"], "Tracking");
        assert_eq!(shown["creation_context"]["created_by"], "me");
        assert_eq!(shown["peregrine"], json!({"phase": "running", "started_at": 5, "failure": {"last_lines": "x"}}));
        let keys: Vec<&String> = shown.as_object().unwrap().keys().take(2).collect();
        assert_eq!(keys, ["name", "status"]);
    }
}
