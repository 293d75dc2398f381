//! Reading a pipeline that was sent: its nodes and components as plain data, each node with a command as the body of the
//! job it stands for.
//!
//! Nodes are in the case of files where clients made them from files and in that of resources elsewhere; both are read.

use crate::arm::{
    io, put, scalar, sweep as sweeps,
    tree::{camel_deep, entries, iso_seconds, some, word},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What an input was given.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    Literal(String),
    Bound(Binding),
    /// An input in the words of jobs.
    Data(Map<String, Value>),
}

/// What stands between the braces of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// `parent.inputs.x`
    Input(String),
    /// `parent.outputs.x`
    Output(String),
    /// `parent.jobs.s.inputs.x`
    InputOf { step: String, name: String },
    /// `parent.jobs.s.outputs.x`
    OutputOf { step: String, name: String },
    /// `parent.jobs.s`
    Step(String),
}

/// An input or output that a component declares.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Port {
    pub kind: String,
    pub optional: bool,
    pub default: Option<String>,
    pub mode: Option<String>,
    pub min: Option<f64>,
    pub max: Option<f64>,
    pub choices: Vec<String>,
}

/// What a node wants of an output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// The output of the pipeline that it is.
    pub bound: Option<String>,
    /// The rest in the words of jobs.
    pub settings: Map<String, Value>,
}

impl Port {
    /// Whether it is a value, not files.
    pub fn is_literal(&self) -> bool {
        is_literal(&self.kind)
    }
}

/// Whether values of a type are texts, not files.
pub fn is_literal(kind: &str) -> bool {
    matches!(kind.to_ascii_lowercase().as_str(), "string" | "number" | "integer" | "boolean" | "float" | "enum")
}

/// Reads a text that is one binding and nothing else.
pub fn binding(text: &str) -> Option<Binding> {
    let inner = text.trim().strip_prefix("${{")?.strip_suffix("}}")?.trim();
    let inner = inner.strip_prefix("parent.").unwrap_or(inner);
    let (head, rest) = inner.split_once('.')?;
    match head {
        "inputs" => Some(Binding::Input(rest.to_owned())),
        "outputs" => Some(Binding::Output(rest.to_owned())),
        "jobs" => {
            let mut parts = rest.splitn(3, '.');
            let step = parts.next()?.to_owned();
            match (parts.next(), parts.next()) {
                (Some("outputs"), Some(name)) => Some(Binding::OutputOf { step, name: name.to_owned() }),
                (Some("inputs"), Some(name)) => Some(Binding::InputOf { step, name: name.to_owned() }),
                (None, None) => Some(Binding::Step(step)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What an input of a node or of a pipeline was given, and its mode; nothing where it has no value.
pub fn given(value: &Value) -> Option<(Given, Option<String>)> {
    let of_text = |text: String| binding(&text).map_or(Given::Literal(text), Given::Bound);
    if !value.is_object() {
        return scalar(value).map(|text| (of_text(text), None));
    }
    let sent = camel_deep(value);
    let mode = word(&sent, "mode").map(io::mode_wire);
    if let Some(text) = some(&sent, "value").and_then(scalar) {
        return Some((of_text(text), mode));
    }
    let uri = word(&sent, "uri").or_else(|| word(&sent, "path"))?;
    if let Some(bound) = binding(uri) {
        return Some((Given::Bound(bound), mode));
    }
    let kind = word(&sent, "jobInputType").or_else(|| word(&sent, "type")).unwrap_or("uri_folder");
    let mut data = Map::from_iter([("jobInputType".to_owned(), json!(kind)), ("uri".to_owned(), json!(uri))]);
    put(&mut data, "mode", mode.clone().map(Value::from));
    Some((Given::Data(data), mode))
}

/// What a node or a pipeline wants of an output.
pub fn wanted(value: &Value) -> Wanted {
    let text = value.as_str().or_else(|| word(value, "value")).or_else(|| word(value, "path"));
    let bound = text.and_then(binding).and_then(|binding| match binding {
        Binding::Output(name) => Some(name),
        _ => None,
    });
    let sent = camel_deep(value);
    let mut settings = Map::new();
    for (from, to) in [
        ("uri", "uri"),
        ("assetName", "assetName"),
        ("assetVersion", "assetVersion"),
        ("name", "assetName"),
        ("version", "assetVersion"),
        ("description", "description"),
    ] {
        put(&mut settings, to, some(&sent, from).cloned());
    }
    put(&mut settings, "mode", word(&sent, "mode").map(|mode| json!(io::mode_wire(mode))));
    put(&mut settings, "tags", some(value, "tags").cloned());
    Wanted { bound, settings }
}

/// The inputs or outputs that a component declares.
pub fn ports(component: &Value, side: &str) -> BTreeMap<String, Port> {
    let port = |value: &Value| Port {
        kind: word(value, "type").unwrap_or("uri_folder").to_owned(),
        optional: some(value, "optional").is_some_and(|flag| flag == true || flag == "True" || flag == "true"),
        default: some(value, "default").and_then(scalar),
        mode: word(value, "mode").map(io::mode_wire),
        min: some(value, "min").and_then(number),
        max: some(value, "max").and_then(number),
        choices: some(value, "enum").and_then(Value::as_array).into_iter().flatten().filter_map(scalar).collect(),
    };
    entries(some(component, side).unwrap_or(&Value::Null)).map(|(name, value)| (name.clone(), port(value))).collect()
}

/// The body of the command job that a node with a component stands for, but for its inputs and outputs.
pub fn command(node: &Value, component: &Value) -> Map<String, Value> {
    let either = |key: &str| some(node, key).or_else(|| some(component, key));
    let mut p = Map::new();
    put(&mut p, "jobType", json!("Command"));
    put(&mut p, "displayName", some(node, "display_name").cloned());
    put(&mut p, "description", some(component, "description").cloned());
    put(&mut p, "tags", some(node, "tags").cloned());
    put(&mut p, "properties", some(node, "properties").cloned().unwrap_or_else(|| json!({})));
    put(&mut p, "command", some(component, "command").cloned());
    put(&mut p, "codeId", word(component, "code").map(|text| json!(reference(text))));
    put(&mut p, "environmentId", word(component, "environment").map(|text| json!(reference(text))));
    put(&mut p, "environmentVariables", either("environment_variables").cloned());
    put(&mut p, "computeId", some(node, "computeId").or_else(|| some(node, "compute_id")).cloned());
    put(&mut p, "distribution", either("distribution").map(distribution));
    put(&mut p, "resources", either("resources").map(camel_deep));
    put(&mut p, "limits", either("limits").map(limits));
    put(&mut p, "queueSettings", either("queue_settings").map(camel_deep));
    put(&mut p, "identity", some(node, "identity").map(camel_deep));
    // Names of services stay as they are.
    let services = |all: &Value| entries(all).map(|(name, one)| (name.clone(), camel_deep(one))).collect::<Value>();
    put(&mut p, "services", some(node, "services").map(services));
    p
}

/// The body of the sweep job that a node stands for, but for its inputs and outputs. `component` is its trial's, as
/// [`trial_of`] has it.
pub fn sweep(node: &Value, component: &Value) -> Map<String, Value> {
    let mut words = node.clone();
    if let Some(kind) = some(node, "early_termination").and_then(|policy| word(policy, "policy_type")) {
        words["early_termination"]["type"] = json!(crate::arm::datastore::snake(kind));
    }
    let search = sweeps::body(&words);
    let mut command = command(node, component);
    let trial: Map<String, Value> =
        ["command", "codeId", "environmentId", "environmentVariables", "distribution", "resources"]
            .into_iter()
            .filter_map(|key| command.remove_entry(key))
            .collect();
    let mut p = command;
    for key in ["samplingAlgorithm", "searchSpace", "objective", "limits", "earlyTermination"] {
        put(&mut p, key, some(&search, key).cloned());
    }
    put(&mut p, "jobType", json!("Sweep"));
    put(&mut p, "trial", Value::Object(trial));
    p
}

/// The component of a sweep's trial: what is searched for is no input of it any more.
pub fn trial_of(node: &Value, component: &Value) -> Value {
    let mut trial = component.clone();
    let mut command = word(component, "command").unwrap_or_default().to_owned();
    for (name, _) in entries(some(node, "search_space").unwrap_or(&Value::Null)) {
        if let Some(inputs) = trial.get_mut("inputs").and_then(Value::as_object_mut) {
            inputs.remove(name);
        }
        command = searched(&command, name);
    }
    trial["command"] = json!(command);
    trial
}

/// A command that takes what was an input from the search space, however much room there is between the braces.
fn searched(command: &str, name: &str) -> String {
    let mut pieces = command.split("${{");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once("}}") {
            Some((inner, rest)) if inner.trim().strip_prefix("inputs.") == Some(name) => {
                out += &format!("${{{{search_space.{name}}}}}{rest}");
            }
            _ => out += &format!("${{{{{piece}"),
        }
    }
    out
}

/// The component that a node runs; a sweep's is that of its trials.
pub fn component(node: &Value) -> Option<&str> {
    let of = |node| word(node, "componentId").or_else(|| word(node, "component_id"));
    of(node).or_else(|| some(node, "trial").and_then(of))
}

/// A reference without the prefix that ids inside components carry.
pub(super) fn reference(text: &str) -> &str {
    text.strip_prefix("azureml:").filter(|rest| rest.starts_with('/') && !rest.starts_with("//")).unwrap_or(text)
}

fn distribution(value: &Value) -> Value {
    let mut sent = camel_deep(value);
    let kind = word(&sent, "distributionType").or_else(|| word(&sent, "type")).unwrap_or_default().to_lowercase();
    let wire = match kind.as_str() {
        "pytorch" => "PyTorch",
        "tensorflow" => "TensorFlow",
        "mpi" => "Mpi",
        "ray" => "Ray",
        other => other,
    };
    sent["distributionType"] = json!(wire);
    sent
}

/// A timeout is a duration on the wire and seconds in files.
fn limits(value: &Value) -> Value {
    let mut sent = camel_deep(value);
    if let Some(timeout) = some(&sent, "timeout") {
        sent["timeout"] = iso_seconds(timeout);
    }
    sent
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_read_in_every_form() {
        let step = |name: &str, out: &str| Binding::OutputOf { step: name.into(), name: out.into() };
        for (text, expected) in [
            ("${{parent.inputs.x}}", Some(Binding::Input("x".into()))),
            ("${{ parent.inputs.group.x }}", Some(Binding::Input("group.x".into()))),
            ("${{inputs.x}}", Some(Binding::Input("x".into()))),
            ("${{parent.jobs.a.outputs.y}}", Some(step("a", "y"))),
            ("${{jobs.a.outputs.y}}", Some(step("a", "y"))),
            ("${{parent.jobs.a}}", Some(Binding::Step("a".into()))),
            ("${{parent.outputs.z}}", Some(Binding::Output("z".into()))),
            ("a ${{parent.inputs.x}}", None),
            ("${{name}}", None),
        ] {
            assert_eq!(binding(text), expected, "{text}");
        }
    }

    #[test]
    fn inputs_are_values_bindings_or_files() {
        let read = |value: Value| given(&value).unwrap();
        assert_eq!(read(json!({"job_input_type": "literal", "value": "0.5"})).0, Given::Literal("0.5".into()));
        assert_eq!(read(json!(true)).0, Given::Literal("True".into()));
        let (bound, mode) = read(json!({"value": "${{parent.inputs.x}}", "type": "literal", "mode": "Download"}));
        assert_eq!((bound, mode.as_deref()), (Given::Bound(Binding::Input("x".into())), Some("Download")));
        let (Given::Data(data), _) = read(json!({"job_input_type": "uri_file", "uri": "azureml:d:1"})) else {
            panic!()
        };
        assert_eq!((&data["jobInputType"], &data["uri"]), (&json!("uri_file"), &json!("azureml:d:1")));
        assert_eq!(given(&json!(null)), None);
    }

    #[test]
    fn a_node_with_its_component_is_a_command_job() {
        let component = json!({"command": "x", "code": "azureml:/subscriptions/s/codes/c/versions/1",
            "environment": "azureml:e:1", "resources": {"instance_count": 2}, "distribution": {"type": "mpi"}});
        let node = json!({"resources": {"instance_type": "gpu"}, "limits": {"timeout": 60}, "computeId": "/c",
            "services": {"my_lab": {"job_service_type": "JupyterLab"}}});
        let made = command(&node, &component);
        assert_eq!(made["services"], json!({"my_lab": {"jobServiceType": "JupyterLab"}}));
        assert_eq!(
            (&made["codeId"], &made["environmentId"]),
            (&json!("/subscriptions/s/codes/c/versions/1"), &json!("azureml:e:1"))
        );
        assert_eq!((&made["resources"], &made["limits"]["timeout"]), (&json!({"instanceType": "gpu"}), &json!("PT1M")));
        assert_eq!((&made["distribution"]["distributionType"], &made["computeId"]), (&json!("Mpi"), &json!("/c")));
    }

    #[test]
    fn a_sweep_node_is_a_sweep_of_jobs_with_its_trials_component() {
        let component = json!({"command": "x --lr ${{ inputs.lr }} -n ${{inputs.n}}", "environment": "azureml:e:1",
            "inputs": {"lr": {"type": "number"}, "n": {"type": "integer"}}});
        let node = json!({"type": "sweep", "trial": {"componentId": "azureml:c:1"}, "computeId": "/c",
            "search_space": {"lr": {"type": "uniform", "min_value": 0, "max_value": 1}},
            "objective": {"goal": "Maximize", "primary_metric": "acc"}, "sampling_algorithm": "random",
            "limits": {"max_total_trials": 3, "timeout": 60},
            "early_termination": {"policy_type": "MedianStopping", "evaluation_interval": 2}});
        assert_eq!(super::component(&node), Some("azureml:c:1"));
        let trial = trial_of(&node, &component);
        assert_eq!(ports(&trial, "inputs").keys().collect::<Vec<_>>(), ["n"]);
        let mut body = Value::Object(sweep(&node, &trial));
        body["inputs"] = json!({"n": {"jobInputType": "literal", "value": "3"}});
        assert_eq!(body["trial"]["command"], "x --lr ${{search_space.lr}} -n ${{inputs.n}}");
        assert_eq!((&body["computeId"], &body["limits"]["timeout"]), (&json!("/c"), &json!("PT1M")));
        let read = domain::spec::Sweep::of(&sweeps::read::tree(&body).unwrap()).unwrap();
        assert_eq!(read.early_termination.unwrap().policy, domain::spec::sweep::Policy::MedianStopping);
    }

    #[test]
    fn outputs_say_what_they_are_and_where_they_go() {
        let bound = wanted(&json!({"value": "${{parent.outputs.z}}", "type": "literal"}));
        assert_eq!(bound.bound.as_deref(), Some("z"));
        let named = wanted(&json!({"job_output_type": "uri_folder", "name": "d", "version": "3", "mode": "Upload"}));
        assert_eq!((&named.settings["assetName"], &named.settings["mode"]), (&json!("d"), &json!("Upload")));
    }
}
