//! Whether a pipeline holds together: steps that do something, bindings that lead somewhere, no circles.
//!
//! What a component has is in another file and is not known here, so bindings to the outputs of a step with a
//! component are taken on trust.

use super::{
    names::{Found, listed},
    sweep,
    tree::{map, names, text},
};
use crate::spec::{expression, shape::nearest, yaml::clip};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What makes no sense in a pipeline, be it a job or a component.
pub(super) fn pipeline(found: &mut Found, pipeline: &Value) {
    let steps = map(&pipeline["jobs"]);
    let mut edges = BTreeMap::new();
    for (name, step) in steps {
        let key = format!("jobs.{}", clip(name));
        step_name(found, &key, name);
        work(found, &key, step);
        for (output, value) in map(&step["outputs"]) {
            if !step["component"].is_null() && value.as_str().is_some_and(|text| expression::inner(text).is_empty()) {
                let key = format!("{key}.outputs.{}", clip(output));
                found.say(
                    key,
                    "text here binds an output of the pipeline",
                    "write `${{parent.outputs.name}}`, or a map",
                );
            }
        }
        let mut before = Vec::new();
        for bound in bindings(step) {
            before.extend(binding(found, pipeline, &Bound { key: format!("{key}.{}", bound.key), ..bound }));
        }
        edges.insert(name.as_str(), before);
    }
    if let Some(circle) = circle(&edges) {
        let shown = circle.iter().map(|name| format!("`{}`", clip(name))).collect::<Vec<_>>().join(" waits for ");
        let fix = "take one of these bindings away";
        found.say(format!("jobs.{}", clip(circle[0])), format!("the steps wait for each other: {shown}"), fix);
    }
}

fn step_name(found: &mut Found, key: &str, name: &str) {
    let lower = |b: u8| b.is_ascii_lowercase() || b == b'_';
    if !name.bytes().next().is_some_and(lower) || !name.bytes().all(|b| lower(b) || b.is_ascii_digit()) {
        let message = format!("`{}` cannot name a step", clip(name));
        found.say(key, message, "use lowercase letters, digits and `_`, starting with a letter or `_`");
    }
}

/// A step has a component, or what its kind needs to do without one.
fn work(found: &mut Found, key: &str, step: &Value) {
    let kind = text(step, "type").unwrap_or_default();
    let has = |name: &str| !step[name].is_null();
    let wanted: &[&str] = match kind {
        "command" => &["command"],
        "parallel" => &["task"],
        "spark" => &["entry"],
        "import" => &["source"],
        "pipeline" => &[],
        "" => &["command", "task", "entry", "trial"],
        _ => return kind_of_its_own(found, key, step),
    };
    if !has("component") && !wanted.iter().any(|name| has(name)) {
        let names: Vec<_> = ["component"].iter().chain(wanted).map(|name| format!("`{name}`")).collect();
        found.say(key, "the step does nothing", format!("give it {}", names.join(" or ")));
    }
    if has("component") || kind == "parallel" || kind == "spark" {
        return;
    }
    if let Some(command) = text(step, "command") {
        sweep::references(found, &format!("{key}.command"), command, step, None);
    }
}

/// Steps whose keys say what they do.
fn kind_of_its_own(found: &mut Found, key: &str, step: &Value) {
    if text(step, "type") == Some("sweep") {
        sweep::sweep(found, key, step);
    }
}

struct Bound {
    /// Where it stands.
    key: String,
    /// What stands between the braces.
    target: String,
}

/// Every binding in a step's inputs and outputs.
fn bindings(step: &Value) -> Vec<Bound> {
    let mut found = Vec::new();
    for part in ["inputs", "outputs"] {
        for (name, value) in map(&step[part]) {
            let places = [("", value), (".path", &value["path"]), (".value", &value["value"])];
            for (suffix, text) in places.iter().filter_map(|(suffix, value)| Some((suffix, value.as_str()?))) {
                let key = format!("{part}.{}{suffix}", clip(name));
                let targets = expression::inner(text).into_iter();
                found.extend(targets.map(|target| Bound { key: key.clone(), target: target.to_owned() }));
            }
        }
    }
    found
}

/// Checks one binding; a step that it waits for comes back.
fn binding<'p>(found: &mut Found, pipeline: &'p Value, bound: &Bound) -> Option<&'p str> {
    let target = bound.target.strip_prefix("parent.").unwrap_or(&bound.target);
    let path: Vec<&str> = target.split('.').map(str::trim).collect();
    match path.as_slice() {
        ["inputs", name, ..] => known(found, bound, name, map(&pipeline["inputs"]), "input"),
        ["outputs", name, ..] => known(found, bound, name, map(&pipeline["outputs"]), "output"),
        ["jobs", step, rest @ ..] => {
            let steps = map(&pipeline["jobs"]);
            let Some((step, body)) = steps.get_key_value(*step) else {
                known(found, bound, step, steps, "step");
                return None;
            };
            let inline = body["component"].is_null() && body["trial"].is_null() && text(body, "command").is_some();
            if let (true, ["outputs", name, ..]) = (inline, rest) {
                known(found, bound, name, map(&body["outputs"]), "output of that step");
            }
            return rest.starts_with(&["outputs"]).then_some(step);
        }
        _ => {}
    }
    None
}

fn known(found: &mut Found, bound: &Bound, name: &str, declared: &Map<String, Value>, what: &str) {
    if declared.contains_key(name) {
        return;
    }
    let message = format!("`${{{{{}}}}}` names no {what}; there are: {}", clip(&bound.target), listed(declared.keys()));
    let fix = match nearest(name, names(declared)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "name one that there is, or declare it".to_owned(),
    };
    found.say(&bound.key, message, fix);
}

/// Steps that wait for each other, the first of them again at the end.
fn circle<'p>(edges: &BTreeMap<&'p str, Vec<&'p str>>) -> Option<Vec<&'p str>> {
    let mut done = Vec::new();
    for start in edges.keys() {
        let mut trail = vec![(*start, 0)];
        while let Some((step, next)) = trail.last_mut() {
            let (step, before) = (*step, edges.get(*step).and_then(|before| before.get(*next)).copied());
            *next += 1;
            match before {
                None => {
                    done.push(step);
                    trail.pop();
                }
                Some(before) => match trail.iter().position(|(seen, _)| *seen == before) {
                    Some(at) => return Some(trail[at..].iter().map(|(step, _)| *step).chain([before]).collect()),
                    None if done.contains(&before) => {}
                    None => trail.push((before, 0)),
                },
            }
        }
    }
    None
}
