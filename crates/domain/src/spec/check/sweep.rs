//! Whether a sweep makes sense: spaces that can be drawn from, policies that can decide, limits that fit.

use super::{
    names::{Found, listed},
    tree::{map, names, number, text},
};
use crate::spec::{
    Mistake,
    expression::{self, Reference},
    shape::{EXPRESSIONS, nearest},
    sweep::Range,
    yaml::clip,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What makes no sense in the tree of a sweep job.
pub(crate) fn senseless_sweep(tree: &Value) -> Vec<Mistake> {
    let mut found = Found::default();
    sweep(&mut found, "", tree);
    found.0
}

/// What makes no sense in a sweep; `at` is the key path it stands under.
pub(super) fn sweep(found: &mut Found, at: &str, sweep: &Value) {
    let key = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let space = map(&sweep["search_space"]);
    let algorithm = sweep["sampling_algorithm"].as_str().or_else(|| text(&sweep["sampling_algorithm"], "type"));
    if space.is_empty() {
        found.say(key("search_space"), "there is nothing to search", "give at least one value");
    }
    for (name, expression) in space {
        drawn(found, &key(&format!("search_space.{}", clip(name))), expression, algorithm.unwrap_or("random"));
    }
    logbase(found, &key("sampling_algorithm.logbase"), &sweep["sampling_algorithm"]["logbase"]);
    termination(found, &key("early_termination"), &sweep["early_termination"]);
    let limits = &sweep["limits"];
    let (total, at_once) = (limits["max_total_trials"].as_i64(), limits["max_concurrent_trials"].as_i64());
    for (name, count) in [("max_total_trials", total), ("max_concurrent_trials", at_once)] {
        if count.is_some_and(|count| count < 1) {
            found.say(key(&format!("limits.{name}")), "it must be at least 1", "change the number");
        }
    }
    if let (Some(total), Some(at_once)) = (total, at_once)
        && at_once > total
    {
        found.say(key("limits.max_concurrent_trials"), "it is larger than `max_total_trials`", "lower it");
    }
    if let Some(command) = text(&sweep["trial"], "command").filter(|_| sweep["trial"]["inputs"].is_null()) {
        references(found, &key("trial.command"), command, sweep, Some(space));
    }
}

/// A distribution from which something can be drawn, and those inside it.
fn drawn(found: &mut Found, key: &str, expression: &Value, algorithm: &str) {
    let at = |name: &str| format!("{key}.{name}");
    let value = |name: &str| number(expression, name);
    let kind = text(expression, "type").unwrap_or_default();
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
    if algorithm == "grid" && !kind.is_empty() && kind != "choice" {
        let message = format!("grid sampling cannot draw from `{kind}`");
        found.say(at("type"), message, "use `choice`, or `random` sampling");
    }
    if kind == "choice" {
        choice(found, &at("values"), &expression["values"], algorithm);
    }
}

/// The values of a choice: at least one, and what is drawn inside them can be drawn.
fn choice(found: &mut Found, key: &str, values: &Value, algorithm: &str) {
    let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
    if values.is_empty() {
        found.say(key, "there is nothing to choose from", "list at least one value");
    }
    for (at, value) in values.iter().enumerate() {
        for (name, inner) in map(value) {
            let key = format!("{key}[{at}].{}", clip(name));
            if !text(inner, "type").is_some_and(|kind| EXPRESSIONS.contains(&kind)) {
                continue;
            }
            match Range::deserialize(inner) {
                Ok(_) => drawn(found, &key, inner, algorithm),
                Err(error) => {
                    found.say(key, format!("it cannot be drawn from: {error}"), "give the keys that its `type` needs");
                }
            }
        }
    }
}

fn logbase(found: &mut Found, key: &str, base: &Value) {
    let number = base.as_f64().or_else(|| base.as_str()?.parse().ok());
    let good = number.is_some_and(|base| base > 0.0 && base != 1.0 && base.is_finite());
    if !base.is_null() && base != "e" && !good {
        found.say(key, "it must be a number above 0 other than 1, or `e`", "change it");
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
