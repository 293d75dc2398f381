//! Pipeline jobs: the outer keys in the case of resources, the nodes in the case of files.

pub mod parallel;
pub mod read;

use super::{
    io, put,
    tree::{carry, entries, labels, python, some, word},
};
use serde_json::{Map, Value, json};

/// The `properties` of a pipeline job. `nodes` are bodies made by [`node`].
pub fn body(spec: &Value, nodes: Map<String, Value>) -> Value {
    let mut p = Map::new();
    put(&mut p, "jobType", json!("Pipeline"));
    carry(&mut p, spec, &[("display_name", "displayName"), ("description", "description")]);
    carry(&mut p, spec, &[("experiment_name", "experimentName"), ("compute", "computeId")]);
    put(&mut p, "tags", labels(spec, "tags"));
    put(&mut p, "properties", labels(spec, "properties"));
    put(&mut p, "isArchived", json!(false));
    put(&mut p, "jobs", Value::Object(nodes));
    let mut inputs = io::inputs(some(spec, "inputs").unwrap_or(&Value::Null));
    if let Some(inputs) = inputs.as_object_mut() {
        // An empty text is no value: the default of whatever it goes to holds.
        inputs.retain(|_, input| input["value"] != json!(""));
    }
    put(&mut p, "inputs", inputs);
    put(&mut p, "outputs", io::outputs(some(spec, "outputs").unwrap_or(&Value::Null)));
    put(&mut p, "componentId", some(spec, "component").cloned());
    let source = if some(spec, "component").is_some() { "REMOTE.WORKSPACE.JOB" } else { "YAML.JOB" };
    put(&mut p, "settings", settings(some(spec, "settings"), source));
    put(&mut p, "identity", some(spec, "identity").map(identity));
    Value::Object(p)
}

/// The settings, with the mark of where the pipeline is defined.
fn settings(value: Option<&Value>, source: &str) -> Value {
    let mut out = Map::new();
    if let Some(Value::Object(map)) = value {
        out.extend(map.iter().filter(|(_, inner)| !inner.is_null()).map(|(key, inner)| (key.clone(), inner.clone())));
    }
    put(&mut out, "_source", json!(source));
    Value::Object(out)
}

/// One node. `component` is the id of what it runs, `source` where that came from.
pub fn node(name: &str, kind: &str, spec: &Value, component: &str, source: &str) -> Value {
    let mut out = Map::new();
    let picked = PICKED.iter().find(|(known, _)| *known == kind).map_or(&[][..], |(_, keys)| keys);
    for key in picked.iter().chain(EVERY) {
        put(&mut out, key, some(spec, key).cloned());
    }
    put(&mut out, "name", json!(name));
    put(&mut out, "type", json!(kind));
    put(&mut out, "computeId", some(spec, "compute").cloned());
    for (key, made) in [
        ("inputs", io::node_inputs(some(spec, "inputs").unwrap_or(&Value::Null))),
        ("outputs", io::node_outputs(some(spec, "outputs").unwrap_or(&Value::Null))),
    ] {
        put(&mut out, key, Some(made).filter(|made| made.as_object().is_some_and(|map| !map.is_empty())));
    }
    put(&mut out, "_source", json!(source));
    match kind {
        "sweep" => put(&mut out, "trial", json!({"componentId": component})),
        _ => put(&mut out, "componentId", json!(component)),
    }
    finish(&mut out, kind);
    Value::Object(out)
}

const EVERY: &[&str] = &["display_name", "tags", "properties", "comment"];
const PICKED: &[(&str, &[&str])] = &[
    (
        "command",
        &["resources", "distribution", "limits", "environment_variables", "queue_settings", "services", "identity"],
    ),
    (
        "parallel",
        &[
            "resources",
            "error_threshold",
            "mini_batch_error_threshold",
            "environment_variables",
            "max_concurrency_per_instance",
            "task",
            "input_data",
            "retry_settings",
            "logging_level",
            "mini_batch_size",
            "partition_keys",
            "identity",
        ],
    ),
    (
        "sweep",
        &[
            "limits",
            "sampling_algorithm",
            "objective",
            "early_termination",
            "search_space",
            "queue_settings",
            "resources",
            "identity",
        ],
    ),
    ("spark", &["resources", "py_files", "jars", "files", "archives", "identity", "conf", "args", "entry"]),
];

/// The few values that nodes spell in their own way.
fn finish(out: &mut Map<String, Value>, kind: &str) {
    let swap = |out: &mut Map<String, Value>, key: &str, make: &dyn Fn(&Value) -> Value| {
        if let Some(value) = out.get(key).map(make) {
            out.insert(key.to_owned(), value);
        }
    };
    swap(out, "identity", &|value| snake_identity(value));
    swap(out, "environment_variables", &|value| {
        entries(value).filter_map(|(name, text)| Some((name.clone(), json!(python(text)?)))).collect()
    });
    swap(out, "services", &|value| entries(value).map(|(name, service)| (name.clone(), service_of(service))).collect());
    if kind != "parallel" {
        swap(out, "distribution", &distribution);
    }
    if kind == "command" {
        swap(out, "limits", &|value| command_limits(value));
    }
    if kind == "sweep" {
        swap(out, "early_termination", &early_termination);
    }
    if kind == "parallel" {
        swap(out, "partition_keys", &|keys| json!(python_list(keys)));
        swap(out, "mini_batch_size", &bytes_of);
        if let Some(Value::Object(task)) = out.get_mut("task") {
            for key in ["code", "environment"] {
                if let Some(Value::String(text)) = task.get_mut(key)
                    && text.starts_with('/')
                {
                    *text = format!("azureml:{text}");
                }
            }
        }
    }
    if kind == "spark" {
        let own = super::spark::own_identity(out.contains_key("computeId"));
        out.entry("identity")
            .or_insert_with(|| entries(&own).map(|(k, v)| (super::datastore::snake(k), v.clone())).collect());
        if let Some(Value::Object(conf)) = out.get_mut("conf") {
            super::spark::complete(conf);
        }
        swap(out, "entry", &|entry| match word(entry, "class_name") {
            Some(class) => json!({"class_name": class, "spark_job_entry_type": "SparkJobScalaEntry"}),
            None => json!({"file": entry["file"], "spark_job_entry_type": "SparkJobPythonEntry"}),
        });
    }
}

/// A list of texts as JSON with spaces, the form in which components keep partition keys.
pub fn python_list(keys: &Value) -> String {
    let one = |key: &Value| format!("\"{}\"", python(key).unwrap_or_default().replace('"', "\\\""));
    format!("[{}]", keys.as_array().into_iter().flatten().map(one).collect::<Vec<_>>().join(", "))
}

/// `10kb` as a number of bytes; a number stays one.
pub fn bytes_of(size: &Value) -> Value {
    let Some(text) = size.as_str() else { return size.clone() };
    let lower = text.trim().to_lowercase();
    let (digits, factor) = match lower.as_str() {
        text if text.ends_with("kb") => (text.trim_end_matches("kb"), 1 << 10),
        text if text.ends_with("mb") => (text.trim_end_matches("mb"), 1 << 20),
        text if text.ends_with("gb") => (text.trim_end_matches("gb"), 1 << 30),
        text => (text, 1),
    };
    digits.trim().parse::<i64>().map_or_else(|_| size.clone(), |count| json!(count * factor))
}

/// `type: pytorch` as nodes spell it.
fn distribution(value: &Value) -> Value {
    let kind = match word(value, "type").unwrap_or_default().to_lowercase().as_str() {
        "pytorch" => "PyTorch",
        "tensorflow" => "TensorFlow",
        "mpi" => "Mpi",
        "ray" => "Ray",
        _ => return value.clone(),
    };
    let mut out = Map::from_iter([("distribution_type".to_owned(), json!(kind))]);
    out.extend(entries(value).filter(|(key, _)| *key != "type").map(|(key, inner)| (key.clone(), inner.clone())));
    super::component::complete(&mut out);
    Value::Object(out)
}

fn command_limits(value: &Value) -> Value {
    let mut out = Map::from_iter([("job_limits_type".to_owned(), json!("Command"))]);
    put(&mut out, "timeout", some(value, "timeout").map(super::tree::iso_seconds));
    Value::Object(out)
}

fn early_termination(value: &Value) -> Value {
    let made = super::sweep::early_termination(value);
    entries(&made).map(|(key, inner)| (super::datastore::snake(key), inner.clone())).collect()
}

fn service_of(value: &Value) -> Value {
    let made = super::job::service_of(value);
    entries(&made).map(|(key, inner)| (super::datastore::snake(key), inner.clone())).collect()
}

/// `type: managed` as resources spell it.
pub fn identity(value: &Value) -> Value {
    let kind = match word(value, "type").unwrap_or_default() {
        "managed" | "managed_identity" => "Managed",
        "user_identity" | "user" => "UserIdentity",
        "aml_token" | "amltoken" => "AMLToken",
        other => other,
    };
    let mut out = Map::from_iter([("identityType".to_owned(), json!(kind))]);
    carry(&mut out, value, &[("client_id", "clientId"), ("object_id", "objectId"), ("msi_resource_id", "resourceId")]);
    Value::Object(out)
}

fn snake_identity(value: &Value) -> Value {
    let made = identity(value);
    entries(&made).map(|(key, inner)| (super::datastore::snake(key), inner.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_carries_its_component_and_nothing_of_the_file_that_made_it() {
        let spec = json!({"type": "command", "component": "./x.yml", "compute": "/c", "inputs": {"a": 1}, "outputs": {"b": null},
            "environment_variables": {"N": 1}, "limits": {"timeout": 60}});
        let made = node("step", "command", &spec, "/id", "YAML.COMPONENT");
        assert_eq!((&made["componentId"], &made["computeId"]), (&json!("/id"), &json!("/c")));
        assert_eq!(made["environment_variables"]["N"], "1");
        assert_eq!(made["limits"]["timeout"], "PT1M");
        assert_eq!((made.get("component"), made.get("outputs"), made.get("compute")), (None, None, None));
    }

    #[test]
    fn a_sweep_node_names_its_trial() {
        let spec = json!({"type": "sweep", "search_space": {"a": {"type": "choice", "values": [1]}},
            "early_termination": {"type": "bandit", "slack_factor": 0.1}});
        let made = node("s", "sweep", &spec, "/id", "YAML.COMPONENT");
        assert_eq!(made["trial"], json!({"componentId": "/id"}));
        assert_eq!(made["early_termination"]["policy_type"], "Bandit");
    }

    #[test]
    fn sizes_are_bytes() {
        assert_eq!(bytes_of(&json!("10kb")), json!(10_240));
        assert_eq!(bytes_of(&json!("2")), json!(2));
        assert_eq!(bytes_of(&json!(3)), json!(3));
    }
}
