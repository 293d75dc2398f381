//! A sweep as it is carried out: what is searched, and the job that every trial is.
//!
//! Made when the sweep is accepted and never changed. What its trials did is on record with their jobs.

use crate::{
    JobName, Plan,
    names::BadName,
    pipeline::StepJob,
    spec::sweep::{Sweep, Values, command},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The tag of a trial that holds its values.
pub const VALUES_TAG: &str = "hyperparameters";

/// What leads a sweep.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Search {
    pub sweep: Sweep,
    pub seed: u64,
    /// The job of a trial. Its name is not a job's: it stands, in plan and body, wherever a trial's own name goes.
    pub trial: StepJob,
    /// What earlier sweeps tried, and the metric it had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<(Values, f64)>,
}

impl Search {
    /// What stands for the names of the trials of a sweep.
    pub fn anybody(sweep: &JobName) -> Result<JobName, BadName> {
        JobName::parse(&format!("{sweep}_any-trial"))
    }

    /// Plan and body of a trial of this name.
    pub fn job_of(&self, name: &JobName, values: &Values) -> Result<(Plan, Value), serde_json::Error> {
        let anybody = self.trial.name.as_ref().map_or("", JobName::as_str);
        let named = |text: String| if anybody.is_empty() { text } else { text.replace(anybody, name.as_str()) };
        let mut plan: Plan = serde_json::from_str(&named(serde_json::to_string(&self.trial.plan)?))?;
        let mut body: Value = serde_json::from_str(&named(self.trial.body.to_string()))?;
        // The command was tried with other values when the sweep was accepted.
        if let Ok(text) = command(&plan.command, values, |input| plan.inputs.contains_key(input)) {
            plan.command = text;
        }
        body["command"] = json!(plan.command);
        body["displayName"] = json!(name);
        body["tags"][VALUES_TAG] = json!(serde_json::to_string(values)?);
        Ok((plan, body))
    }

    /// The values of a trial, from its body.
    pub fn values_of(body: &Value) -> Option<Values> {
        serde_json::from_str(body["tags"][VALUES_TAG].as_str()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Place, PlannedOutput, assignment::OutputMode};

    #[test]
    fn a_trial_has_its_own_name_and_values_everywhere() {
        let sweep = json!({
            "search_space": {"lr": {"type": "randint", "upper": 9}},
            "objective": {"goal": "minimize", "primary_metric": "loss"}, "limits": {"max_total_trials": 2},
        });
        let anybody = Search::anybody(&JobName::parse("s1").unwrap()).unwrap();
        let place = Place::Folder { path: format!("/data/{anybody}/model").into() };
        let output =
            PlannedOutput { place, mode: OutputMode::Upload, uri: format!("azureml://x/{anybody}/model"), file: false };
        let plan = Plan {
            command: "train --lr ${{search_space.lr}} --out ${{outputs.model}}".into(),
            outputs: [("model".to_owned(), output)].into(),
            ..Plan::default()
        };
        let search = Search {
            sweep: Sweep::of(&sweep).unwrap(),
            seed: 1,
            trial: StepJob { name: Some(anybody), body: json!({"tags": {"a": "b"}}), plan, ..StepJob::default() },
            earlier: Vec::new(),
        };
        let values = Values::from([("lr".to_owned(), json!(3))]);
        let (plan, body) = search.job_of(&JobName::parse("s1_0").unwrap(), &values).unwrap();
        assert_eq!(plan.command, "train --lr 3 --out ${{outputs.model}}");
        assert_eq!(plan.outputs["model"].uri, "azureml://x/s1_0/model");
        assert_eq!(plan.outputs["model"].place, Place::Folder { path: "/data/s1_0/model".into() });
        assert_eq!((&body["displayName"], &body["tags"]["a"]), (&json!("s1_0"), &json!("b")));
        assert_eq!(Search::values_of(&body), Some(values));
    }
}
