//! Whether a sweep makes sense: spaces that can be drawn from, policies that can decide, limits that fit.

use super::{
    names::{Found, listed},
    tree::{map, names, number, text},
};
use crate::spec::{
    expression::{self, Reference},
    shape::nearest,
    yaml::clip,
};
use serde_json::{Map, Value};

/// What makes no sense in a sweep; `at` is the key path it stands under.
pub(super) fn sweep(found: &mut Found, at: &str, sweep: &Value) {
    let key = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let space = map(&sweep["search_space"]);
    let algorithm = sweep["sampling_algorithm"].as_str().or_else(|| text(&sweep["sampling_algorithm"], "type"));
    for (name, expression) in space {
        let key = key(&format!("search_space.{}", clip(name)));
        drawn(found, &key, expression);
        allowed(found, &key, algorithm.unwrap_or("random"), text(expression, "type").unwrap_or_default());
    }
    termination(found, &key("early_termination"), &sweep["early_termination"]);
    let limits = &sweep["limits"];
    let (total, at_once) = (limits["max_total_trials"].as_i64(), limits["max_concurrent_trials"].as_i64());
    if let (Some(total), Some(at_once)) = (total, at_once)
        && at_once > total
    {
        found.say(key("limits.max_concurrent_trials"), "it is larger than `max_total_trials`", "lower it");
    }
    if let Some(command) = text(&sweep["trial"], "command").filter(|_| sweep["trial"]["inputs"].is_null()) {
        references(found, &key("trial.command"), command, sweep, Some(space));
    }
}

/// A distribution from which something can be drawn.
fn drawn(found: &mut Found, key: &str, expression: &Value) {
    let at = |name: &str| format!("{key}.{name}");
    let value = |name: &str| number(expression, name);
    if let (Some(min), Some(max)) = (value("min_value"), value("max_value"))
        && min >= max
    {
        found.say(at("min_value"), format!("{min} is not below `max_value`, {max}"), "swap or change them");
    }
    for name in ["q", "sigma", "upper"] {
        if let Some(value) = value(name).filter(|value| *value <= 0.0) {
            found.say(at(name), format!("{value} is not above 0"), "give a number above 0");
        }
    }
    if text(expression, "type") == Some("choice") && expression["values"].as_array().is_none_or(Vec::is_empty) {
        found.say(at("values"), "there is nothing to choose from", "list at least one value");
    }
}

/// Each algorithm draws from some distributions only.
fn allowed(found: &mut Found, key: &str, algorithm: &str, kind: &str) {
    let kinds: &[&str] = match algorithm {
        "grid" => &["choice"],
        "bayesian" => &["choice", "uniform", "quniform"],
        _ => return,
    };
    if !kind.is_empty() && !kinds.contains(&kind) {
        let shown: Vec<_> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
        let message = format!("{algorithm} sampling cannot draw from `{kind}`");
        found.say(format!("{key}.type"), message, format!("use {}, or `random` sampling", shown.join(", ")));
    }
}

fn termination(found: &mut Found, key: &str, policy: &Value) {
    match text(policy, "type") {
        Some("bandit") => {
            let given = ["slack_factor", "slack_amount"].into_iter().filter(|name| !policy[*name].is_null());
            let given: Vec<_> = given.collect();
            match given.as_slice() {
                [] => found.say(key, "a bandit policy needs `slack_factor` or `slack_amount`", "give one of them"),
                [one] if number(policy, one).is_some_and(|slack| slack < 0.0) => {
                    found.say(format!("{key}.{one}"), "the slack is below 0", "give 0 or more");
                }
                [_] => {}
                _ => found.say(key, "`slack_factor` and `slack_amount` exclude each other", "keep one"),
            }
        }
        Some("truncation_selection")
            if policy["truncation_percentage"].as_i64().is_some_and(|share| !(1..=99).contains(&share)) =>
        {
            found.say(format!("{key}.truncation_percentage"), "it must be from 1 to 99", "change the number");
        }
        _ => {}
    }
}

/// Every expression in a command leads to an input or output of `owner`, or to the search space.
pub(super) fn references(
    found: &mut Found,
    key: &str,
    command: &str,
    owner: &Value,
    space: Option<&Map<String, Value>>,
) {
    let references = match expression::required(command) {
        Ok(references) => references,
        Err(error) => return found.say(key, error.to_string(), "close it, or remove it"),
    };
    let mut said: Vec<&Reference> = Vec::new();
    for reference in &references {
        let (name, declared, what) = match (reference, space) {
            (Reference::Input(name), _) => (name, map(&owner["inputs"]), "input"),
            (Reference::Output(name), _) => (name, map(&owner["outputs"]), "output"),
            (Reference::SearchSpace(name), Some(space)) => (name, space, "value of the search space"),
            _ => continue,
        };
        // Groups of inputs: the first part is what is declared.
        let first = name.split('.').next().unwrap_or(name);
        if declared.contains_key(first) || said.contains(&reference) {
            continue;
        }
        said.push(reference);
        let shown = clip(&reference.to_string());
        let message = format!("`{shown}` names no {what}; declared: {}", listed(declared.keys()));
        let fix = match nearest(first, names(declared)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it, or remove it".to_owned(),
        };
        found.say(key, message, fix);
    }
}
