//! A job's inputs and outputs, and the expressions that refer to them.

use super::names::{Found, listed};
use crate::{
    assignment::InputMode,
    names::{AssetName, Version},
    spec::{
        CommandJob, DataInput, DataType, Input, Output,
        expression::{self, Reference},
        shape::nearest,
        yaml::clip,
    },
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Names that would hide variables every process relies on.
const RESERVED: [&str; 7] = ["path", "ld_library_path", "user", "logname", "home", "pwd", "shell"];
/// What an output's path may refer to.
const IN_OUTPUT_PATHS: [&str; 3] = ["name", "output_name", "default_datastore"];

pub(super) fn bindings(found: &mut Found, job: &CommandJob) {
    for (name, input) in &job.inputs {
        let key = format!("inputs.{}", clip(name));
        binding_name(found, &key, name, "input");
        match input {
            Input::Data(data) => data_input(found, &key, data),
            Input::Literal(value) => literal(found, &key, value),
        }
    }
    for (name, output) in &job.outputs {
        let key = format!("outputs.{}", clip(name));
        binding_name(found, &key, name, "output");
        one_output(found, &key, output);
    }
    references(found, job);
}

fn binding_name(found: &mut Found, key: &str, name: &str, what: &str) {
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return found.say(key, format!("`{name}` is reserved and cannot name an {what}"), "choose another name");
    }
    let identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.len() <= 255
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !identifier {
        let message = format!("`{}` cannot name an {what}", clip(name));
        found.say(key, message, "use letters, digits and `_`, starting with a letter or `_`");
    }
}

fn literal(found: &mut Found, key: &str, value: &Value) {
    match value {
        Value::Array(_) => found.say(key, "an input cannot be a list", "give one value, or write the list into a file"),
        Value::Object(map) if map.contains_key("type") => {
            found.say(
                format!("{key}.path"),
                "`path` is required",
                "add `path:`, or give the value itself after the input's name",
            );
        }
        Value::Object(_) => {
            found.say(key, "an input is a value, or a map with `path`", "add `path:`, or give the value itself")
        }
        Value::Null => found.say(key, "the input has no value", "give it one, or remove it"),
        _ => {}
    }
}

fn data_input(found: &mut Found, key: &str, data: &DataInput) {
    let path = data.path.trim();
    if path.is_empty() || path == "azureml:" {
        found.say(format!("{key}.path"), "the path is empty", "give a path or URI");
    }
    let allowed: &[InputMode] = match data.kind {
        DataType::MlTable => {
            &[InputMode::RoMount, InputMode::Download, InputMode::Direct, InputMode::EvalMount, InputMode::EvalDownload]
        }
        _ => &[InputMode::RoMount, InputMode::Download, InputMode::Direct],
    };
    let Some(mode) = data.mode.filter(|mode| !allowed.contains(mode)) else { return };
    let fix = match mode {
        InputMode::RwMount => "use `ro_mount`; to write, declare an output",
        _ => "use `ro_mount`, `download` or `direct`, or set `type: mltable`",
    };
    let word = serde_json::to_value(mode).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default();
    found.say(format!("{key}.mode"), format!("`{word}` is no mode of a `{}` input", data.kind.as_str()), fix);
}

/// Every output may be written through, uploaded at the end, or handed over as a URI.
fn one_output(found: &mut Found, key: &str, output: &Output) {
    found.filled(&format!("{key}.path"), output.path.as_deref(), "the path");
    if let Some(name) = &output.name {
        found.name(&format!("{key}.name"), name, AssetName::parse);
    }
    if let Some(version) = &output.version {
        found.name(&format!("{key}.version"), version, Version::parse);
    }
    found.labels(&format!("{key}.tags"), &output.tags);
    for reference in output.path.as_deref().map(expression::references).unwrap_or_default() {
        if !matches!(&reference, Reference::Other(name) if IN_OUTPUT_PATHS.contains(&name.as_str())) {
            let fix = "use `${{name}}`, `${{output_name}}` or `${{default_datastore}}`";
            found.say(format!("{key}.path"), format!("`{reference}` has no value in an output's path"), fix);
        }
    }
}

/// Every expression in the command leads to something declared.
fn references(found: &mut Found, job: &CommandJob) {
    let references = match expression::required(&job.command) {
        Ok(references) => references,
        Err(error) => return found.say("command", error.to_string(), "close it, or remove it"),
    };
    let mut said: Vec<&Reference> = Vec::new();
    for reference in &references {
        if said.contains(&reference) {
            continue;
        }
        said.push(reference);
        match reference {
            Reference::Input(name) => declared(found, reference, name, &job.inputs, "input"),
            Reference::Output(name) => declared(found, reference, name, &job.outputs, "output"),
            Reference::SearchSpace(_) => {
                found.say(
                    "command",
                    format!("`{reference}` has a value only in a sweep's trial"),
                    "use an input instead",
                );
            }
            Reference::Other(_) => {
                let fix = "use `${{inputs.name}}` or `${{outputs.name}}`";
                found.say("command", format!("`{}` has no value in a command", clip(&reference.to_string())), fix);
            }
        }
    }
}

fn declared<T>(found: &mut Found, reference: &Reference, name: &str, known: &BTreeMap<String, T>, what: &str) {
    if known.contains_key(name) {
        return;
    }
    let shown = clip(&reference.to_string());
    let message = format!("`{shown}` names an {what} that is not declared; declared {what}s: {}", listed(known.keys()));
    let fix = match nearest(name, known.keys().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it under `{what}s`, or remove it"),
    };
    found.say("command", message, fix);
}
