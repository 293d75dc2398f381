//! Schedules: when, and what is started.

use super::{Checks, there};
use domain::cron;
use serde_json::Value;

const JOB_TYPES: &[&str] =
    &["Command", "Sweep", "Pipeline", "Spark", "AutoML", "FineTuning", "Labeling", "Distillation", "Base"];
const ACTIONS: &[&str] = &["CreateJob", "InvokeBatchEndpoint", "CreateMonitor", "ImportData"];
const FREQUENCIES: &[&str] = &["Minute", "Hour", "Day", "Week", "Month"];
const WEEK_DAYS: &[&str] = &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl Checks<'_, '_> {
    pub(super) fn schedule(&mut self, properties: &Value) -> Result<(), store::Error> {
        match there(properties.get("trigger")) {
            Some(trigger) => self.trigger(trigger),
            None => self.mistake("properties.trigger", "it is missing", "say when, by `Cron` or `Recurrence`"),
        }
        match there(properties.get("action")) {
            Some(action) => self.action(action),
            None => {
                self.mistake("properties.action", "it is missing", "say what to start, such as `CreateJob`");
                Ok(())
            }
        }
    }

    fn trigger(&mut self, trigger: &Value) {
        let at = |key: &str| format!("properties.trigger.{key}");
        self.needed_word(&at("triggerType"), trigger.get("triggerType"), &["Cron", "Recurrence"]);
        for key in ["startTime", "endTime", "timeZone"] {
            self.text(&at(key), trigger.get(key));
        }
        let kind = trigger["triggerType"].as_str().unwrap_or_default();
        if kind.eq_ignore_ascii_case("cron") {
            match self.text(&at("expression"), trigger.get("expression")) {
                Some(text) => {
                    if let Err(why) = cron::check(&text) {
                        self.mistake(&at("expression"), why, "write it like `0 9 * * 1-5`");
                    }
                }
                None => self.mistake(&at("expression"), "it is missing", "write it like `0 9 * * 1-5`"),
            }
        }
        if kind.eq_ignore_ascii_case("recurrence") {
            self.recurrence(trigger);
        }
    }

    fn recurrence(&mut self, trigger: &Value) {
        self.needed_word("properties.trigger.frequency", trigger.get("frequency"), FREQUENCIES);
        let interval = trigger.get("interval");
        if there(interval).is_none() {
            self.mistake("properties.trigger.interval", "it is missing", "write a whole number, 1 or more");
        }
        self.number("properties.trigger.interval", interval, 1, 100_000);
        let Some(pattern) = there(trigger.get("schedule")) else { return };
        for (key, least, most) in [("hours", 0, 23), ("minutes", 0, 59), ("monthDays", 1, 31)] {
            let at = format!("properties.trigger.schedule.{key}");
            self.each(&at, pattern.get(key), |checks, value| {
                checks.number(&at, Some(value), least, most);
            });
        }
        let at = "properties.trigger.schedule.weekDays";
        self.each(at, pattern.get("weekDays"), |checks, value| checks.word(at, Some(value), WEEK_DAYS));
    }

    fn each(&mut self, at: &str, value: Option<&Value>, mut check: impl FnMut(&mut Self, &Value)) {
        match there(value) {
            Some(Value::Array(items)) => items.iter().for_each(|item| check(self, item)),
            Some(other) => self.mistake(at, format!("{other} is not a list"), "write it like `[10, 12]`"),
            None => {}
        }
    }

    fn action(&mut self, action: &Value) -> Result<(), store::Error> {
        self.needed_word("properties.action.actionType", action.get("actionType"), ACTIONS);
        let kind = action["actionType"].as_str().unwrap_or_default();
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
