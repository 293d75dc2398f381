//! Components: the body of a version, and the component that a job written inside a pipeline stands for.

use super::{
    put,
    tree::{entries, labels, python, some, word},
};
use serde_json::{Map, Value, json};

/// The name under which components without one are kept.
pub const ANONYMOUS: &str = "azureml_anonymous";
/// A component from a file.
pub const FROM_FILE: &str = "YAML.COMPONENT";
/// A component made of a job inside a pipeline.
pub const FROM_JOB: &str = "YAML.JOB";

/// The body of a component version. `code` and `environment` must be references by now, nodes must be bodies.
pub fn body(spec: &Value, source: &str, anonymous: bool) -> Value {
    let mut p = Map::new();
    put(&mut p, "componentSpec", component_spec(spec, source, anonymous));
    put(&mut p, "description", some(spec, "description").cloned());
    put(&mut p, "isAnonymous", json!(anonymous));
    if word(spec, "type") != Some("pipeline") {
        put(&mut p, "isArchived", json!(false));
    }
    put(&mut p, "properties", json!({}));
    put(&mut p, "tags", labels(spec, "tags"));
    json!({"properties": p})
}

fn component_spec(spec: &Value, source: &str, anonymous: bool) -> Value {
    let mut out: Map<String, Value> = entries(spec)
        .filter(|(key, value)| !value.is_null() && !LEFT_OUT.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if anonymous {
        put(&mut out, "name", json!(ANONYMOUS));
        put(&mut out, "version", json!("1"));
    } else {
        put(&mut out, "version", some(spec, "version").and_then(python).map(Value::from));
    }
    if out.get("type") != Some(&json!("pipeline")) {
        out.entry("type").or_insert_with(|| json!("command"));
        out.entry("is_deterministic").or_insert_with(|| json!(true));
    }
    if let Some(Value::Object(distribution)) = out.get_mut("distribution") {
        complete(distribution);
    }
    for key in ["code", "environment"] {
        prefix(&mut out, key);
    }
    if let Some(Value::Object(task)) = out.get_mut("task") {
        for key in ["code", "environment"] {
            prefix(task, key);
        }
    }
    for (key, value) in [("inputs", interface(spec, "inputs")), ("outputs", interface(spec, "outputs"))] {
        out.shift_remove(key);
        put(&mut out, key, value);
    }
    if out.get("tags").is_some_and(|tags| tags == &json!({})) {
        out.shift_remove("tags");
    }
    put(&mut out, "_source", json!(source));
    Value::Object(out)
}

/// A TensorFlow job has a number of parameter servers even where the file names none.
pub(crate) fn complete(distribution: &mut Map<String, Value>) {
    let kind = distribution.get("type").or(distribution.get("distribution_type")).and_then(Value::as_str);
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("tensorflow")) {
        distribution.entry("parameter_server_count").or_insert_with(|| json!(0));
    }
}

/// Keys of files that say how to make the component, not what it is.
const LEFT_OUT: &[&str] = &["creation_context", "id"];

/// References inside a spec carry the prefix; whole addresses do not.
fn prefix(map: &mut Map<String, Value>, key: &str) {
    if let Some(Value::String(text)) = map.get_mut(key)
        && text.starts_with('/')
    {
        *text = format!("azureml:{text}");
    }
}

/// Inputs or outputs with every value a text; nothing where there are none.
fn interface(spec: &Value, key: &str) -> Option<Value> {
    let all: Map<String, Value> = entries(some(spec, key)?).map(|(name, value)| (name.clone(), port(value))).collect();
    (!all.is_empty()).then_some(Value::Object(all))
}

fn port(value: &Value) -> Value {
    let Value::Object(map) = value else {
        // A scalar is short for its type with itself as the default.
        return json!({"type": type_of(value), "default": python(value).unwrap_or_default()});
    };
    let kind = word(value, "type").unwrap_or("uri_folder");
    let mut out = Map::new();
    put(&mut out, "type", json!(kind));
    for (key, inner) in map.iter().filter(|(key, inner)| *key != "type" && !inner.is_null()) {
        let made = match key.as_str() {
            "default" | "min" | "max" => json!(typed(kind, inner)),
            "optional" if *inner == json!(false) => continue,
            "enum" => inner.as_array().into_iter().flatten().map(|one| json!(typed(kind, one))).collect(),
            _ => inner.clone(),
        };
        out.insert(key.clone(), made);
    }
    Value::Object(out)
}

/// A value as the text of its declared type: a `number` always has a point.
fn typed(kind: &str, value: &Value) -> Value {
    let made = match (kind, value) {
        ("number", Value::Number(number)) => number.as_f64().and_then(|float| python(&json!(float))),
        ("integer", Value::Number(number)) => number.as_f64().map(|float| format!("{}", float.trunc())),
        ("number", Value::String(text)) => text.parse::<f64>().ok().and_then(|float| python(&json!(float))),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("true") => Some("True".to_owned()),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("false") => Some("False".to_owned()),
        _ => python(value),
    };
    made.map_or_else(|| value.clone(), Value::from)
}

/// The type of a literal.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        _ => "string",
    }
}

/// The component that a job inside a pipeline stands for: the same work with an interface instead of values.
pub fn of_job(job: &Value, pipeline: &Value) -> Value {
    let mut out = Map::new();
    let kept: &[&str] = match word(job, "type").unwrap_or("command") {
        "parallel" => PARALLEL,
        "spark" => SPARK,
        _ => COMMAND,
    };
    for key in kept {
        put(&mut out, key, some(job, key).cloned());
    }
    let inputs = entries(some(job, "inputs").unwrap_or(&Value::Null))
        .map(|(name, value)| (name.clone(), inferred(value, pipeline, false)));
    put(&mut out, "inputs", inputs.collect::<Value>());
    let outputs = entries(some(job, "outputs").unwrap_or(&Value::Null))
        .map(|(name, value)| (name.clone(), inferred(value, pipeline, true)));
    put(&mut out, "outputs", outputs.collect::<Value>());
    Value::Object(out)
}

const COMMAND: &[&str] =
    &["type", "command", "code", "environment", "distribution", "resources", "description", "display_name", "tags"];
const PARALLEL: &[&str] = &[
    "type",
    "resources",
    "logging_level",
    "task",
    "mini_batch_size",
    "partition_keys",
    "input_data",
    "retry_settings",
    "max_concurrency_per_instance",
    "error_threshold",
    "mini_batch_error_threshold",
    "description",
    "display_name",
    "tags",
];
const SPARK: &[&str] = &[
    "type",
    "code",
    "entry",
    "conf",
    "args",
    "environment",
    "py_files",
    "jars",
    "files",
    "archives",
    "description",
    "display_name",
    "tags",
];

/// What a value says about the port it goes to.
fn inferred(value: &Value, pipeline: &Value, output: bool) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            put(&mut out, "type", json!(word(value, "type").unwrap_or("uri_folder")));
            put(&mut out, "mode", map.get("mode").filter(|mode| !mode.is_null()).cloned());
            Value::Object(out)
        }
        Value::Null => json!({"type": "uri_folder"}),
        Value::String(text) if text.contains("${{") => bound_to(text, pipeline),
        _ if output => json!({"type": "uri_folder"}),
        literal => json!({"type": type_of(literal), "default": literal}),
    }
}

/// The type, and for the pipeline's own ports the mode, of what a binding names.
fn bound_to(binding: &str, pipeline: &Value) -> Value {
    let inner = binding.trim().trim_start_matches("${{").trim_end_matches("}}").trim();
    let steps: Vec<&str> = inner.split('.').collect();
    let folder = || json!({"type": "uri_folder"});
    match steps.as_slice() {
        ["parent", side @ ("inputs" | "outputs"), name] => match pipeline.get(side).and_then(|all| all.get(name)) {
            Some(Value::Object(map)) => {
                let kind = map.get("type").and_then(Value::as_str).unwrap_or("uri_folder");
                let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
                put(&mut out, "mode", map.get("mode").filter(|mode| !mode.is_null()).cloned());
                Value::Object(out)
            }
            Some(Value::Null) | None => folder(),
            Some(literal) if *side == "inputs" => json!({"type": type_of(literal)}),
            Some(_) => folder(),
        },
        ["parent", "jobs", job, side, name] => {
            let source = &pipeline["jobs"][*job];
            // What the component declares says more than what the node sets.
            let declared = source.get("$interface").and_then(|spec| spec.get(side)?.get(name)?.get("type"));
            match (declared, source.get(side).and_then(|all| all.get(name))) {
                (Some(kind), _) => json!({"type": kind}),
                (None, Some(Value::String(text))) if text.contains("${{") => {
                    json!({"type": bound_to(text, pipeline)["type"]})
                }
                (None, Some(Value::Object(map))) => {
                    json!({"type": map.get("type").cloned().unwrap_or(json!("uri_folder"))})
                }
                _ => folder(),
            }
        }
        _ => folder(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_texts_of_their_type() {
        let spec = json!({"name": "c", "command": "x", "code": "/subscriptions/s/codes/a/versions/1", "inputs": {
            "n": {"type": "number", "default": 1024}, "i": {"type": "integer", "default": 3, "min": 0},
            "b": {"type": "boolean", "default": false}, "o": {"type": "string", "optional": true}}});
        let made = body(&spec, FROM_FILE, false);
        let made = &made["properties"]["componentSpec"];
        assert_eq!(made["inputs"]["n"]["default"], "1024.0");
        assert_eq!((&made["inputs"]["i"]["default"], &made["inputs"]["i"]["min"]), (&json!("3"), &json!("0")));
        assert_eq!(made["inputs"]["b"]["default"], "False");
        assert_eq!(made["inputs"]["o"]["optional"], true);
        assert_eq!(made["code"], "azureml:/subscriptions/s/codes/a/versions/1");
        assert_eq!((&made["type"], &made["is_deterministic"]), (&json!("command"), &json!(true)));
    }

    #[test]
    fn a_job_in_a_pipeline_takes_the_types_of_what_it_is_bound_to() {
        let pipeline = json!({
            "inputs": {"text": "hello", "data": {"type": "uri_file", "mode": "download", "path": "x"}},
            "jobs": {"a": {"outputs": {"y": {"type": "mltable"}}}},
        });
        let job = json!({"command": "x", "inputs": {
            "s": "${{parent.inputs.text}}", "d": "${{parent.inputs.data}}", "p": "${{parent.jobs.a.outputs.y}}", "n": 2}});
        let made = of_job(&job, &pipeline);
        assert_eq!(made["inputs"]["s"], json!({"type": "string"}));
        assert_eq!(made["inputs"]["d"], json!({"type": "uri_file", "mode": "download"}));
        assert_eq!(made["inputs"]["p"], json!({"type": "mltable"}));
        assert_eq!(made["inputs"]["n"], json!({"type": "integer", "default": 2}));
    }
}
