//! When one job can stand for another: what matters about a plan, field by field.
//!
//! Where outputs go that say nothing of it is left out, because that follows from the job's name; so are limits of time
//! and labels. Two plans with the same fields run the same command in the same surroundings on what lies at the same
//! places; whether the same bytes lie there is for whoever can look.

use crate::{Plan, PlannedInput};
use serde::Serialize;
use std::collections::BTreeMap;

/// What matters about a plan. A field is named as in the job's file, so that whoever is told that it differs finds it.
pub fn of(plan: &Plan) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    let mut put = |name: String, value: String| drop(fields.insert(name, value));
    put("command".into(), plan.command.clone());
    put("code".into(), json(&plan.code));
    let mut environment = plan.environment.clone();
    environment.label = String::new();
    put("environment".into(), json(&environment));
    put(
        "resources".into(),
        json(&(&plan.requests, &plan.limits, &plan.instance_type, plan.shm_bytes, &plan.docker_args)),
    );
    put("distribution".into(), json(&plan.distribution));
    if let Some(parallel) = &plan.parallel {
        put("parallel".into(), json(parallel));
    }
    for (name, value) in &plan.variables {
        put(format!("environment_variables.{name}"), value.clone());
    }
    for (name, input) in &plan.inputs {
        let value = match input {
            PlannedInput::Literal { value } => value.clone(),
            PlannedInput::Data { place, mode, .. } => json(&(place, mode)),
        };
        put(format!("inputs.{name}"), value);
    }
    for (name, output) in &plan.outputs {
        put(format!("outputs.{name}"), json(&(output.mode, output.file)));
        if let Some(datastore) = datastore(&output.uri) {
            put(format!("outputs.{name}.datastore"), datastore.to_owned());
        }
    }
    fields
}

/// The datastore that an address leads to.
pub fn datastore(uri: &str) -> Option<&str> {
    uri.split_once("/datastores/")?.1.split('/').next()
}

/// The fields in which two differ, those that only one has included.
pub fn differing(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let mut names: Vec<&String> =
        one.keys().chain(other.keys()).filter(|name| one.get(*name) != other.get(*name)).collect();
    names.sort();
    names.dedup();
    names.into_iter().cloned().collect()
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("plans are made of texts and numbers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, PlannedOutput, assignment::OutputMode};

    fn plan(command: &str, rate: &str, name: &str) -> Plan {
        let output = PlannedOutput {
            place: Place::Folder { path: format!("/data/{name}/o").into() },
            mode: OutputMode::RwMount,
            uri: format!("azureml://datastores/d/paths/azureml/{name}/o/"),
            file: false,
        };
        Plan {
            command: command.into(),
            inputs: [("rate".to_owned(), PlannedInput::Literal { value: rate.into() })].into(),
            outputs: [("o".to_owned(), output)].into(),
            ..Plan::default()
        }
    }

    #[test]
    fn where_outputs_go_makes_no_difference_and_everything_else_is_named() {
        let first = of(&plan("train", "0.1", "a"));
        assert_eq!(first, of(&plan("train", "0.1", "b")));
        assert_eq!(differing(&first, &of(&plan("train", "0.2", "b"))), ["inputs.rate"]);
        let mut other = plan("train it", "0.1", "b");
        other.inputs.clear();
        other.variables.insert("N".into(), "1".into());
        assert_eq!(differing(&first, &of(&other)), ["command", "environment_variables.N", "inputs.rate"]);
        let mut elsewhere = plan("train", "0.1", "b");
        elsewhere.outputs.get_mut("o").unwrap().uri = "azureml://datastores/e/paths/azureml/b/o/".into();
        assert_eq!(differing(&first, &of(&elsewhere)), ["outputs.o.datastore"]);
    }
}
