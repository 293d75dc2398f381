//! Whether a component makes sense: its name, its inputs, and a command that uses what it has.

use super::{
    names::{Found, is_placeholder},
    pipeline, sweep,
    tree::{map, text},
};
use crate::{
    names::Version,
    spec::{Mistake, yaml::clip},
};
use serde_json::Value;

/// What makes no sense in a component.
pub(super) fn component(component: &Value) -> Vec<Mistake> {
    let mut found = Found::default();
    if let Some(name) = text(component, "name") {
        component_name(&mut found, name);
    }
    if let Some(version) = text(component, "version") {
        found.name("version", version, Version::parse);
    }
    for (name, input) in map(&component["inputs"]) {
        one_input(&mut found, &format!("inputs.{}", clip(name)), input);
    }
    match text(component, "type").unwrap_or("command") {
        "command" => {
            if let Some(command) = text(component, "command") {
                found.filled("command", Some(command), "the command");
                sweep::references(&mut found, "command", command, component, None);
            }
        }
        "pipeline" => pipeline::pipeline(&mut found, component),
        _ => {}
    }
    found.0
}

fn component_name(found: &mut Found, name: &str) {
    const FIX: &str = "use lowercase letters, digits and `_`, starting with a letter";
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    let rest = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    match first && rest && name.len() <= 255 {
        true => {}
        false if is_placeholder(name) => {
            found.say("name", format!("`{}` is a placeholder", clip(name)), "put the real name in its place");
        }
        false => found.say("name", format!("`{}` cannot name a component", clip(name)), FIX),
    }
}

/// Bounds, choices and a default that go with the type and with each other.
fn one_input(found: &mut Found, key: &str, input: &Value) {
    let Some(kind) = text(input, "type") else { return };
    let at = |name: &str| format!("{key}.{name}");
    let literal = matches!(kind, "number" | "integer" | "string" | "boolean");
    let numeric = matches!(kind, "number" | "integer");
    for (name, fits) in [("min", numeric), ("max", numeric), ("enum", kind == "string")] {
        if !input[name].is_null() && !fits {
            found.say(at(name), format!("`{name}` means nothing for `type: {kind}`"), "remove it, or change the type");
        }
    }
    if literal && let Some(name) = ["default", "min", "max"].into_iter().find(|name| !is_of(&input[*name], kind)) {
        let message = format!("{} is no value of `type: {kind}`", shown(&input[name]));
        return found.say(at(name), message, "change the value, or the type");
    }
    let (min, max, default) = (amount(&input["min"]), amount(&input["max"]), amount(&input["default"]));
    if numeric && min.zip(max).is_some_and(|(min, max)| min > max) {
        found.say(at("min"), "it is larger than `max`", "swap or change them");
    } else if numeric && default.is_some_and(|d| min.is_some_and(|min| d < min) || max.is_some_and(|max| d > max)) {
        found.say(at("default"), "it lies outside `min` and `max`", "change one of them");
    }
    if let (Some(words), false) = (input["enum"].as_array(), input["default"].is_null())
        && !words.iter().any(|word| plain(word).eq_ignore_ascii_case(&plain(&input["default"])))
    {
        found.say(at("default"), format!("{} is not one of `enum`", shown(&input["default"])), "add or change it");
    }
}

/// Whether a value can be read as its type: quoted numbers and booleans count.
fn is_of(value: &Value, kind: &str) -> bool {
    match (kind, value) {
        (_, Value::Null) | ("string", _) => true,
        ("number", value) => amount(value).is_some(),
        ("integer", value) => amount(value).is_some_and(|number| number.fract() == 0.0),
        ("boolean", Value::String(text)) => matches!(text.to_lowercase().as_str(), "true" | "false"),
        ("boolean", value) => value.is_boolean(),
        _ => true,
    }
}

fn amount(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn shown(value: &Value) -> String {
    format!("`{}`", clip(&plain(value)))
}
