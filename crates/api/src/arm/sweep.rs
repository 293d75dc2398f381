//! Sweep jobs.

pub mod read;

use super::{
    io, pipeline, put,
    tree::{carry, entries, iso_seconds, labels, python, some, word},
};
use serde_json::{Map, Value, json};

/// The `properties` of a sweep job; code and environment of the trial must be references by now.
pub fn body(spec: &Value) -> Value {
    let mut p = Map::new();
    put(&mut p, "jobType", json!("Sweep"));
    carry(&mut p, spec, &[("display_name", "displayName"), ("description", "description")]);
    carry(&mut p, spec, &[("experiment_name", "experimentName"), ("compute", "computeId")]);
    put(&mut p, "tags", labels(spec, "tags"));
    put(&mut p, "properties", labels(spec, "properties"));
    put(&mut p, "isArchived", json!(false));
    put(&mut p, "samplingAlgorithm", some(spec, "sampling_algorithm").map(sampling));
    put(&mut p, "searchSpace", search_space(some(spec, "search_space").unwrap_or(&Value::Null)));
    if let Some(objective) = some(spec, "objective") {
        let goal = word(objective, "goal").unwrap_or_default().to_lowercase();
        put(&mut p, "objective", json!({"goal": goal, "primaryMetric": objective["primary_metric"]}));
    }
    put(&mut p, "limits", some(spec, "limits").map(limits));
    put(&mut p, "earlyTermination", some(spec, "early_termination").map(early_termination));
    put(&mut p, "trial", trial(some(spec, "trial").unwrap_or(&Value::Null)));
    put(&mut p, "inputs", io::inputs(some(spec, "inputs").unwrap_or(&Value::Null)));
    put(&mut p, "outputs", io::outputs(some(spec, "outputs").unwrap_or(&Value::Null)));
    put(&mut p, "identity", some(spec, "identity").map(pipeline::identity));
    put(&mut p, "resources", some(spec, "resources").map(super::job::resources_of));
    put(&mut p, "queueSettings", some(spec, "queue_settings").map(super::tree::camel_deep));
    Value::Object(p)
}

fn trial(spec: &Value) -> Value {
    let mut out = Map::new();
    let pairs = [("code", "codeId"), ("environment", "environmentId"), ("command", "command")];
    carry(&mut out, spec, &pairs);
    put(&mut out, "environmentVariables", labels(spec, "environment_variables"));
    put(&mut out, "resources", some(spec, "resources").map(super::job::resources_of));
    put(&mut out, "distribution", some(spec, "distribution").map(super::job::distribution_of));
    Value::Object(out)
}

/// A word, or a map with settings of its own.
fn sampling(value: &Value) -> Value {
    let kind = |text: &str| match text.to_lowercase().as_str() {
        "grid" => "Grid",
        "bayesian" => "Bayesian",
        _ => "Random",
    };
    match value.as_str() {
        Some(text) => json!({"samplingAlgorithmType": kind(text)}),
        None => {
            let mut out = Map::new();
            put(&mut out, "samplingAlgorithmType", json!(kind(word(value, "type").unwrap_or("random"))));
            carry(&mut out, value, &[("rule", "rule"), ("seed", "seed")]);
            put(&mut out, "logbase", some(value, "logbase").and_then(python).map(Value::from));
            Value::Object(out)
        }
    }
}

/// Each range as its name and a list of its numbers.
fn search_space(value: &Value) -> Value {
    entries(value).map(|(name, range)| (name.clone(), range_of(range))).collect()
}

fn range_of(range: &Value) -> Value {
    let kind = word(range, "type").unwrap_or_default();
    let numbers = |keys: &[&str]| keys.iter().filter_map(|key| some(range, key).cloned()).collect::<Vec<Value>>();
    let values = match kind {
        "choice" => {
            let values = some(range, "values").and_then(Value::as_array).into_iter().flatten();
            vec![values.map(pick_of).collect()]
        }
        "randint" => numbers(&["upper"]),
        "normal" | "lognormal" => numbers(&["mu", "sigma"]),
        "qnormal" | "qlognormal" => numbers(&["mu", "sigma", "q"]),
        "quniform" | "qloguniform" => numbers(&["min_value", "max_value", "q"]),
        _ => numbers(&["min_value", "max_value"]),
    };
    json!([kind, values])
}

/// A value of a choice; ranges inside a map are lists too.
fn pick_of(value: &Value) -> Value {
    let is_range = |inner: &Value| word(inner, "type").is_some_and(|kind| domain::spec::sweep::KINDS.contains(&kind));
    match value {
        Value::Object(map) => {
            let inner = |inner: &Value| if is_range(inner) { range_of(inner) } else { inner.clone() };
            map.iter().map(|(name, value)| (name.clone(), inner(value))).collect()
        }
        other => other.clone(),
    }
}

fn limits(value: &Value) -> Value {
    let mut out = Map::from_iter([("jobLimitsType".to_owned(), json!("Sweep"))]);
    carry(&mut out, value, &[("max_total_trials", "maxTotalTrials"), ("max_concurrent_trials", "maxConcurrentTrials")]);
    for (ours, wire) in [("timeout", "timeout"), ("trial_timeout", "trialTimeout")] {
        put(&mut out, wire, some(value, ours).map(iso_seconds));
    }
    Value::Object(out)
}

/// When to give a trial up.
pub fn early_termination(value: &Value) -> Value {
    let kind = match word(value, "type").unwrap_or_default() {
        "median_stopping" => "MedianStopping",
        "truncation_selection" => "TruncationSelection",
        _ => "Bandit",
    };
    let mut out = Map::from_iter([("policyType".to_owned(), json!(kind))]);
    for key in ["evaluation_interval", "delay_evaluation", "slack_factor", "slack_amount", "truncation_percentage"] {
        put(&mut out, &super::datastore::camel(key), some(value, key).cloned());
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_its_name_and_its_numbers() {
        for (range, wire) in [
            (json!({"type": "choice", "values": [1, 2]}), json!(["choice", [[1, 2]]])),
            (json!({"type": "uniform", "min_value": 0.1, "max_value": 1}), json!(["uniform", [0.1, 1]])),
            (json!({"type": "randint", "upper": 9}), json!(["randint", [9]])),
            (json!({"type": "qnormal", "mu": 0, "sigma": 1, "q": 2}), json!(["qnormal", [0, 1, 2]])),
        ] {
            assert_eq!(range_of(&range), wire);
        }
    }

    #[test]
    fn a_sampling_word_becomes_its_kind() {
        assert_eq!(sampling(&json!("bayesian")), json!({"samplingAlgorithmType": "Bayesian"}));
        assert_eq!(
            sampling(&json!({"type": "random", "seed": 1, "rule": "sobol"})),
            json!({"samplingAlgorithmType": "Random", "rule": "sobol", "seed": 1})
        );
    }
}
