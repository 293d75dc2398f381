//! Reading the body of a sweep job: its search in the words of files, and the command job that every trial is.

use crate::arm::{
    put, scalar, text,
    tree::{entries, some},
};
use domain::{spec::Mistake, time};
use serde_json::{Map, Value, json};

/// What belongs to the search, under the keys of a sweep's file, with what its references lead to.
pub fn tree(body: &Value) -> Result<Value, Vec<Mistake>> {
    let mut bad = Vec::new();
    for key in ["trial", "searchSpace", "objective"] {
        if !body.get(key).is_some_and(Value::is_object) {
            bad.push(Mistake::new(key, "must be an object", "send the body the client made"));
        }
    }
    let mut tree = Map::new();
    let space = entries(&body["searchSpace"]).map(|(name, range)| (name.clone(), range_of(range, &mut bad)));
    put(&mut tree, "search_space", space.collect::<Value>());
    put(&mut tree, "sampling_algorithm", some(body, "samplingAlgorithm").map(sampling));
    let objective = &body["objective"];
    let goal = text(objective, "goal").unwrap_or_default().to_lowercase();
    put(&mut tree, "objective", json!({"goal": goal, "primary_metric": objective["primaryMetric"]}));
    put(&mut tree, "early_termination", some(body, "earlyTermination").map(early_termination));
    put(&mut tree, "limits", limits(&body["limits"], &mut bad));
    put(&mut tree, "trial", json!({"command": body["trial"]["command"]}));
    put(&mut tree, "inputs", some(body, "inputs").cloned());
    put(&mut tree, "outputs", some(body, "outputs").cloned());
    if bad.is_empty() { Ok(Value::Object(tree)) } else { Err(bad) }
}

/// The body of the command job that a trial is; `${{search_space.x}}` is still in its command.
pub fn trial(body: &Value) -> Value {
    let mut out = Map::new();
    put(&mut out, "jobType", json!("Command"));
    for key in ["displayName", "experimentName", "description", "tags", "computeId", "inputs", "outputs", "identity"] {
        put(&mut out, key, some(body, key).cloned());
    }
    for key in ["command", "codeId", "environmentId", "environmentVariables", "distribution"] {
        put(&mut out, key, some(&body["trial"], key).cloned());
    }
    for key in ["resources", "queueSettings"] {
        put(&mut out, key, some(&body["trial"], key).or_else(|| some(body, key)).cloned());
    }
    let ours = entries(&body["properties"]).filter(|(name, _)| name.starts_with("peregrine."));
    let ours: Map<String, Value> = ours.map(|(name, value)| (name.clone(), value.clone())).collect();
    put(&mut out, "properties", Value::Object(ours));
    if let Some(timeout) = some(&body["limits"], "trialTimeout") {
        put(&mut out, "limits", json!({"jobLimitsType": "Command", "timeout": timeout}));
    }
    Value::Object(out)
}

fn range_of(wire: &Value, bad: &mut Vec<Mistake>) -> Value {
    distribution(wire).unwrap_or_else(|| {
        let shown: String = wire.to_string().chars().take(60).collect();
        bad.push(Mistake::new("searchSpace", format!("`{shown}` is no range"), "send it like `[\"uniform\", [0, 1]]`"));
        Value::Null
    })
}

/// A range from its name and the list of its numbers; `None` for anything else.
fn distribution(wire: &Value) -> Option<Value> {
    let [kind, arguments] = wire.as_array()?.as_slice() else { return None };
    let (kind, arguments) = (kind.as_str()?, arguments.as_array()?);
    let keys: &[&str] = match kind {
        "choice" => {
            let values = arguments.first()?.as_array()?;
            return Some(json!({"type": kind, "values": values.iter().map(pick).collect::<Vec<_>>()}));
        }
        "randint" => &["upper"],
        "normal" | "lognormal" => &["mu", "sigma"],
        "qnormal" | "qlognormal" => &["mu", "sigma", "q"],
        "quniform" | "qloguniform" => &["min_value", "max_value", "q"],
        "uniform" | "loguniform" => &["min_value", "max_value"],
        _ => return None,
    };
    if arguments.len() != keys.len() || !arguments.iter().all(Value::is_number) {
        return None;
    }
    let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
    out.extend(keys.iter().zip(arguments).map(|(key, value)| ((*key).to_owned(), value.clone())));
    Some(Value::Object(out))
}

/// A value of a choice; a map may hold further ranges, as lists or in the words of files.
fn pick(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().map(|(key, inner)| (key.clone(), distribution(inner).unwrap_or_else(|| inner.clone()))).collect()
        }
        other => other.clone(),
    }
}

fn sampling(wire: &Value) -> Value {
    let mut out = Map::new();
    let kind = text(wire, "samplingAlgorithmType").unwrap_or_else(|| "random".into());
    put(&mut out, "type", json!(kind.to_lowercase()));
    put(&mut out, "seed", some(wire, "seed").cloned());
    put(&mut out, "rule", text(wire, "rule").map(|rule| json!(rule.to_lowercase())));
    put(&mut out, "logbase", some(wire, "logbase").cloned());
    Value::Object(out)
}

fn early_termination(wire: &Value) -> Value {
    let kind = match text(wire, "policyType").unwrap_or_default().to_lowercase().as_str() {
        "medianstopping" => "median_stopping",
        "truncationselection" => "truncation_selection",
        _ => "bandit",
    };
    let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
    let keys: &[(&str, &str)] = match kind {
        "bandit" => &[("slack_factor", "slackFactor"), ("slack_amount", "slackAmount")],
        "truncation_selection" => {
            &[("truncation_percentage", "truncationPercentage"), ("exclude_finished_jobs", "excludeFinishedJobs")]
        }
        _ => &[],
    };
    for (ours, theirs) in
        keys.iter().chain(&[("evaluation_interval", "evaluationInterval"), ("delay_evaluation", "delayEvaluation")])
    {
        // The client sends a slack of 0 beside the one that is meant.
        put(&mut out, ours, some(wire, theirs).filter(|value| !ours.starts_with("slack") || **value != 0).cloned());
    }
    if kind == "bandit" && out.get("slack_factor").is_none() && out.get("slack_amount").is_none() {
        put(&mut out, "slack_amount", some(wire, "slackAmount").or_else(|| some(wire, "slackFactor")).cloned());
    }
    Value::Object(out)
}

/// Trials and seconds. What the contract leaves open is as its documents have it: a thousand trials.
fn limits(wire: &Value, bad: &mut Vec<Mistake>) -> Value {
    let mut out = Map::new();
    put(&mut out, "max_total_trials", some(wire, "maxTotalTrials").cloned().unwrap_or_else(|| json!(1000)));
    put(&mut out, "max_concurrent_trials", some(wire, "maxConcurrentTrials").cloned());
    for (ours, theirs) in [("timeout", "timeout"), ("trial_timeout", "trialTimeout")] {
        let Some(iso) = some(wire, theirs).and_then(scalar) else { continue };
        match time::parse_iso_duration(&iso) {
            Some(duration) => put(&mut out, ours, json!(duration.as_secs().max(1))),
            None => {
                let message = format!("`{iso}` is not an ISO 8601 duration");
                bad.push(Mistake::new(format!("limits.{ours}"), message, "write it like `PT10M`"));
            }
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::spec::Sweep;

    #[test]
    fn a_file_comes_back_from_its_body() {
        let file = json!({
            "search_space": {
                "lr": {"type": "loguniform", "min_value": -6, "max_value": -1},
                "n": {"type": "qnormal", "mu": 5, "sigma": 2, "q": 1},
                "model": {"type": "choice", "values": ["tree", {"kind": "svm", "c": {"type": "uniform", "min_value": 0, "max_value": 1}}]},
            },
            "sampling_algorithm": {"type": "random", "seed": 7, "rule": "sobol"},
            "objective": {"goal": "maximize", "primary_metric": "acc"},
            "early_termination": {"type": "bandit", "slack_factor": 0.1, "evaluation_interval": 2, "delay_evaluation": 5},
            "limits": {"max_total_trials": 20, "max_concurrent_trials": 4, "timeout": 3600},
            "trial": {"command": "x ${{search_space.lr}}"},
        });
        let read = tree(&crate::arm::sweep::body(&file)).unwrap();
        assert_eq!(Sweep::of(&read).unwrap(), Sweep::of(&file).unwrap());
    }

    #[test]
    fn a_body_of_the_client_is_read() {
        let body = json!({
            "trial": {"command": "x"}, "searchSpace": {"m": ["choice", [[{"c": ["uniform", [0, 1]]}, 3]]]},
            "samplingAlgorithm": {"samplingAlgorithmType": "Bayesian"},
            "objective": {"goal": "Minimize", "primaryMetric": "loss"},
            "earlyTermination": {"policyType": "Bandit", "slackFactor": 0.2, "slackAmount": 0, "evaluationInterval": 1, "delayEvaluation": 0},
            "limits": {"jobLimitsType": "Sweep", "maxTotalTrials": 4, "trialTimeout": "PT1M"},
        });
        let read = tree(&body).unwrap();
        assert_eq!(read["search_space"]["m"]["values"][0]["c"]["type"], "uniform");
        assert_eq!(
            read["early_termination"],
            json!({"type": "bandit", "slack_factor": 0.2, "evaluation_interval": 1, "delay_evaluation": 0})
        );
        assert!(Sweep::of(&read).is_ok());
        assert_eq!(trial(&body)["limits"]["timeout"], "PT1M");
    }

    #[test]
    fn what_is_no_range_is_said() {
        let body = |range: Value| json!({"trial": {}, "searchSpace": {"x": range}, "objective": {"goal": "minimize", "primaryMetric": "m"}});
        for range in [
            json!(["uniform", [1]]),
            json!(["flat", [0, 1]]),
            json!(3),
            json!(["choice", [1, 2]]),
            json!(["uniform", ["a", 1]]),
        ] {
            let said = tree(&body(range.clone())).unwrap_err()[0].to_string();
            assert!(said.contains("is no range"), "{range}: {said}");
        }
    }
}
