//! Schedules: when, and what is started.

use super::{super::Kind, Checks, there};
use api::arm::schedule::{trigger_key, trigger_said};
use domain::calendar::{self, Missed};
use serde_json::Value;

const JOB_TYPES: &[&str] =
    &["Command", "Sweep", "Pipeline", "Spark", "AutoML", "FineTuning", "Labeling", "Distillation", "Base"];
const ACTIONS: &[&str] = &["CreateJob", "UpdateDeployment", "InvokeBatchEndpoint", "CreateMonitor", "ImportData"];

impl Checks<'_, '_> {
    pub(super) fn schedule(&mut self, properties: &Value) -> Result<(), store::Error> {
        match there(properties.get("trigger")) {
            Some(trigger) => self.trigger(trigger),
            None => self.mistake("properties.trigger", "it is missing", "say when, by `Cron` or `Recurrence`"),
        }
        let missed = &properties["properties"][Missed::KEY];
        if !missed.is_null() && missed.as_str().and_then(Missed::parse).is_none() {
            let at = format!("properties.properties.{}", Missed::KEY);
            self.mistake(&at, format!("{missed} is no policy"), "write `skip`, `once` or `all`");
        }
        match there(properties.get("action")) {
            Some(action) => self.action(action, &properties["trigger"]),
            None => {
                self.mistake("properties.action", "it is missing", "say what to start, such as `CreateJob`");
                Ok(())
            }
        }
    }

    fn trigger(&mut self, trigger: &Value) {
        let at = |key: &str| format!("properties.trigger.{}", trigger_key(key));
        self.needed_word(&at("type"), trigger.get("triggerType"), &["Cron", "Recurrence", "Event"]);
        for key in ["start_time", "end_time", "time_zone", "expression", "frequency"] {
            self.text(&at(key), trigger.get(trigger_key(key)));
        }
        let bad = calendar::read(&trigger_said(trigger)).err().unwrap_or_default();
        for bad in bad.into_iter().filter(|bad| bad.key != "type") {
            self.mistake(&at(&bad.key), bad.message, bad.fix);
        }
    }

    fn action(&mut self, action: &Value, trigger: &Value) -> Result<(), store::Error> {
        self.needed_word("properties.action.actionType", action.get("actionType"), ACTIONS);
        let kind = action["actionType"].as_str().unwrap_or_default();
        if kind.eq_ignore_ascii_case("UpdateDeployment") {
            return self.update(action, trigger);
        }
        if ACTIONS[2..].iter().any(|known| known.eq_ignore_ascii_case(kind)) {
            let message = format!("`{kind}` cannot run here");
            self.mistake("properties.action.actionType", message, "start a job that does it, with `CreateJob`");
        }
        if !kind.eq_ignore_ascii_case("CreateJob") {
            return Ok(());
        }
        let at = |key: &str| format!("properties.action.jobDefinition.{key}");
        let Some(job) = there(action.get("jobDefinition")).filter(|job| job.is_object()) else {
            self.mistake("properties.action.jobDefinition", "it is missing", "describe the job to start");
            return Ok(());
        };
        self.needed_word(&at("jobType"), job.get("jobType"), JOB_TYPES);
        self.compute(&at("computeId"), job.get("computeId").filter(|id| id.as_str() != Some("")))?;
        self.asset(&at("environmentId"), "environments", job.get("environmentId"))?;
        self.asset(&at("codeId"), "codes", job.get("codeId"))?;
        let default = job.get("settings").and_then(|settings| settings.get("default_compute"));
        self.compute(&at("settings.default_compute"), default.filter(|name| *name != "serverless"))?;
        self.nodes(&at("jobs"), job.get("jobs"))?;
        self.source(&at("sourceJobId"), job.get("sourceJobId"))
    }

    /// A deployment that gets a new model: it is there, and there will be one.
    fn update(&mut self, action: &Value, trigger: &Value) -> Result<(), store::Error> {
        if trigger["on"] != "model" {
            let fix = "use a trigger of type `Event` with `on: model`";
            self.mistake("properties.trigger", "a deployment is updated when there is a new model", fix);
        }
        let names = ["endpointName", "deploymentName"].map(|key| {
            let at = format!("properties.action.{key}");
            let name = self.text(&at, action.get(key)).filter(|name| !name.is_empty());
            if name.is_none() {
                self.mistake(&at, "it is missing", "name the online endpoint and its deployment");
            }
            name
        });
        let [Some(endpoint), Some(deployment)] = names else { return Ok(()) };
        let tx = &mut *self.references.tx;
        let known = tx.record_names(self.references.workspace, Kind::OnlineDeployment.table(), &endpoint)?;
        if !known.contains(&deployment) {
            let message = format!("there is no deployment `{deployment}` under online endpoint `{endpoint}`");
            self.mistake("properties.action.deploymentName", message, "create it first");
        }
        Ok(())
    }

    /// The steps of a pipeline: their components must be there.
    fn nodes(&mut self, at: &str, nodes: Option<&Value>) -> Result<(), store::Error> {
        for (name, node) in nodes.and_then(Value::as_object).into_iter().flatten() {
            self.asset(&format!("{at}.{name}.componentId"), "components", node.get("componentId"))?;
        }
        Ok(())
    }

    /// A job that is there already may stand for its own definition.
    fn source(&mut self, at: &str, value: Option<&Value>) -> Result<(), store::Error> {
        let Some(text) = self.text(at, value) else { return Ok(()) };
        let name = text.rsplit('/').next().unwrap_or(&text);
        if self.references.tx.job(self.references.workspace, name)?.is_none() {
            self.mistake(at, format!("there is no job `{name}`"), "name a job of this workspace");
        }
        Ok(())
    }
}
