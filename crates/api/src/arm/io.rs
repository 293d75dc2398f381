//! Inputs and outputs of jobs, nodes and components, from the words of a file. Paths must be addresses by now.

use super::{
    put,
    tree::{entries, python, some, word},
};
use serde_json::{Map, Value, json};

/// A mode as files write it and as the wire has it.
const MODES: &[(&str, &str)] = &[
    ("ro_mount", "ReadOnlyMount"),
    ("rw_mount", "ReadWriteMount"),
    ("mount", "ReadWriteMount"),
    ("download", "Download"),
    ("upload", "Upload"),
    ("direct", "Direct"),
    ("eval_mount", "EvalMount"),
    ("eval_download", "EvalDownload"),
];

/// The inputs of a job.
pub fn inputs(value: &Value) -> Value {
    each(value, |inner| (!inner.is_null()).then(|| input(inner)))
}

/// The outputs of a job.
pub fn outputs(value: &Value) -> Value {
    each(value, |inner| Some(output(inner)))
}

/// The inputs of a pipeline's node, in the case that nodes have.
pub fn node_inputs(value: &Value) -> Value {
    each(value, |inner| (!inner.is_null()).then(|| snaked(input(inner))))
}

/// The outputs of a pipeline's node; one that says nothing is not sent.
pub fn node_outputs(value: &Value) -> Value {
    each(value, |inner| match inner {
        Value::Null => None,
        Value::String(binding) => Some(json!({"value": binding, "type": "literal"})),
        Value::Object(map) if map.values().all(Value::is_null) => None,
        other => Some(node_output(other)),
    })
}

/// A binding, or where to put the files; a node keeps the word `name` for the asset they become.
fn node_output(value: &Value) -> Value {
    if let Some(binding) = word(value, "path").filter(|path| is_binding(path)) {
        let mut out = Map::from_iter([("value".to_owned(), json!(binding)), ("type".to_owned(), json!("literal"))]);
        put(&mut out, "mode", word(value, "mode").map(|mode| json!(mode_wire(mode))));
        return Value::Object(out);
    }
    let mut out = match snaked(output(value)) {
        Value::Object(map) => map,
        other => return other,
    };
    for (wire, ours) in [("asset_name", "name"), ("asset_version", "version")] {
        let named = out.shift_remove(wire);
        put(&mut out, ours, named);
    }
    Value::Object(out)
}

fn input(value: &Value) -> Value {
    if !value.is_object() {
        return json!({"jobInputType": "literal", "value": python(value).unwrap_or_default()});
    }
    let path = word(value, "path").unwrap_or_default();
    let mut out = Map::new();
    put(&mut out, "mode", word(value, "mode").map(|mode| json!(mode_wire(mode))));
    match some(value, "path") {
        Some(_) if is_binding(path) => {
            put(&mut out, "jobInputType", json!("literal"));
            put(&mut out, "value", json!(path));
        }
        Some(_) => {
            put(&mut out, "jobInputType", json!(word(value, "type").unwrap_or("uri_folder")));
            put(&mut out, "uri", json!(path));
        }
        None => {
            let literal = some(value, "value").or(some(value, "default"));
            put(&mut out, "jobInputType", json!("literal"));
            put(&mut out, "value", literal.and_then(python).map(Value::from));
        }
    }
    Value::Object(out)
}

fn output(value: &Value) -> Value {
    let mut out = Map::new();
    put(&mut out, "jobOutputType", json!(word(value, "type").unwrap_or("uri_folder")));
    put(&mut out, "mode", word(value, "mode").map(|mode| json!(mode_wire(mode))));
    for (ours, wire) in
        [("path", "uri"), ("name", "assetName"), ("version", "assetVersion"), ("description", "description")]
    {
        put(&mut out, wire, some(value, ours).and_then(python).map(Value::from));
    }
    Value::Object(out)
}

/// Whether a path is nothing but a name for something else.
pub fn is_binding(path: &str) -> bool {
    let path = path.trim();
    path.starts_with("${{") && path.ends_with("}}") && path.matches("${{").count() == 1
}

/// `ro_mount` as `ReadOnlyMount`.
pub fn mode_wire(mode: &str) -> String {
    MODES.iter().find(|(ours, _)| *ours == mode).map_or(mode, |(_, wire)| wire).to_owned()
}

fn snaked(value: Value) -> Value {
    let Value::Object(map) = value else { return value };
    map.into_iter().map(|(key, inner)| (super::datastore::snake(&key), inner)).collect()
}

fn each(value: &Value, make: impl Fn(&Value) -> Option<Value>) -> Value {
    entries(value).filter_map(|(name, inner)| Some((name.clone(), make(inner)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_literals_addresses_or_bindings() {
        let made = node_inputs(&json!({
            "n": 0.5, "b": true, "s": "${{parent.inputs.x}}",
            "d": {"type": "uri_file", "path": "azureml://datastores/d/paths/x", "mode": "ro_mount"},
            "p": {"path": "${{parent.jobs.a.outputs.y}}", "mode": "direct"},
        }));
        assert_eq!(made["n"], json!({"job_input_type": "literal", "value": "0.5"}));
        assert_eq!(made["b"]["value"], "True");
        assert_eq!(made["s"]["value"], "${{parent.inputs.x}}");
        assert_eq!(
            made["d"],
            json!({"mode": "ReadOnlyMount", "job_input_type": "uri_file", "uri": "azureml://datastores/d/paths/x"})
        );
        assert_eq!(
            made["p"],
            json!({"mode": "Direct", "job_input_type": "literal", "value": "${{parent.jobs.a.outputs.y}}"})
        );
    }

    #[test]
    fn an_output_that_says_nothing_is_not_sent() {
        let made = node_outputs(&json!({"a": null, "b": "${{parent.outputs.z}}", "c": {"mode": "upload"}}));
        assert_eq!(made.get("a"), None);
        assert_eq!(made["b"], json!({"value": "${{parent.outputs.z}}", "type": "literal"}));
        assert_eq!(made["c"], json!({"job_output_type": "uri_folder", "mode": "Upload"}));
    }
}
