//! Triggers that are not times: a new version of data or of a model, or a job that has ended.

use serde::{Deserialize, Serialize};

/// Events start a schedule at most so often in an hour: more is most likely two schedules that start each other.
pub const MAX_EVENT_RUNS: i64 = 60;

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    Data,
    Model,
    Job,
}

/// Which events a schedule waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    pub on: Subject,
    /// A name, or the beginning of one and `*`; any when empty.
    pub name: String,
    /// The experiment of a job; any when empty.
    pub experiment: String,
    /// How a job has ended, in lower case.
    pub status: Vec<String>,
}

/// Something that happened in a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub on: Subject,
    pub name: String,
    /// Of an asset.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Of a job.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub experiment: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The job that made the asset, or is what the event is about; empty where someone else did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub job: String,
}

impl Subject {
    pub fn word(self) -> &'static str {
        match self {
            Subject::Data => "data",
            Subject::Model => "model",
            Subject::Job => "job",
        }
    }

    /// What a collection of assets is about, where schedules wait for it.
    pub fn of_collection(kind: &str) -> Option<Subject> {
        match kind {
            "data" => Some(Subject::Data),
            "models" => Some(Subject::Model),
            _ => None,
        }
    }
}

impl Watch {
    /// Whether this is what the schedule waits for.
    pub fn sees(&self, event: &Event) -> bool {
        let named = match self.name.strip_suffix('*') {
            Some(begin) => event.name.starts_with(begin),
            None => self.name.is_empty() || self.name == event.name,
        };
        let job = self.on != Subject::Job
            || (self.experiment.is_empty() || self.experiment == event.experiment)
                && self.status.iter().any(|status| status.eq_ignore_ascii_case(&event.status));
        self.on == event.on && named && job
    }
}

impl Event {
    /// `azureml:name:version` of an asset; a job's name.
    pub fn reference(&self) -> String {
        match self.on {
            Subject::Job => self.name.clone(),
            _ => format!("azureml:{}:{}", self.name, self.version),
        }
    }

    /// What `${{trigger.…}}` stands for.
    pub fn value(&self, key: &str) -> Option<String> {
        let value = match key {
            "asset" if self.on != Subject::Job => self.reference(),
            "name" => self.name.clone(),
            "version" if self.on != Subject::Job => self.version.clone(),
            "job" => self.job.clone(),
            "status" if self.on == Subject::Job => self.status.clone(),
            _ => return None,
        };
        Some(value)
    }
}

impl std::fmt::Display for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.on {
            Subject::Job => write!(f, "job `{}` is {}", self.name, self.status.to_lowercase()),
            _ => write!(f, "{} `{}:{}` is new", self.on.word(), self.name, self.version),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(on: Subject, name: &str) -> Event {
        let (version, experiment, status) = match on {
            Subject::Job => ("", "nightly", "Completed"),
            _ => ("3", "", ""),
        };
        let text = str::to_owned;
        Event {
            on,
            name: text(name),
            version: text(version),
            experiment: text(experiment),
            status: text(status),
            job: text("j"),
        }
    }

    #[test]
    fn a_watch_sees_its_subject_name_experiment_and_end() {
        let watch = |on, name: &str, experiment: &str, status: &str| Watch {
            on,
            name: name.into(),
            experiment: experiment.into(),
            status: vec![status.into()],
        };
        for (watch, seen, sees) in [
            (watch(Subject::Data, "iris", "", ""), event(Subject::Data, "iris"), true),
            (watch(Subject::Data, "iris", "", ""), event(Subject::Data, "iris2"), false),
            (watch(Subject::Data, "iris*", "", ""), event(Subject::Data, "iris2"), true),
            (watch(Subject::Model, "iris", "", ""), event(Subject::Data, "iris"), false),
            (watch(Subject::Job, "", "nightly", "completed"), event(Subject::Job, "x"), true),
            (watch(Subject::Job, "", "nightly", "failed"), event(Subject::Job, "x"), false),
            (watch(Subject::Job, "", "daily", "completed"), event(Subject::Job, "x"), false),
            (watch(Subject::Job, "train*", "", "completed"), event(Subject::Job, "x"), false),
        ] {
            assert_eq!(watch.sees(&seen), sees, "{watch:?} {seen:?}");
        }
    }
}
