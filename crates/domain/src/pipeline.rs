//! A pipeline as it is carried out: steps that are jobs, what each waits for, and where its inputs come from.
//!
//! Pipelines inside pipelines are taken apart when a pipeline is accepted, so there is one flat list; a step inside
//! another goes by its path, `outer.inner`. Loops are written out as far as they may go.
//! Invariant: steps stand in an order in which each comes after everything it waits for.

mod each;

pub use each::{Each, Fallback, ITEMS, Item, items, items_in};

use crate::{JobName, Plan, Resources, Search};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A whole pipeline.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Graph {
    pub steps: Vec<Step>,
    /// What each output of the pipeline is.
    #[serde(default)]
    pub outputs: BTreeMap<String, Source>,
    #[serde(default)]
    pub settings: Settings,
    /// How many steps of each group may be under way at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<usize>,
    /// Loops that end because they may not go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited: Vec<Limited>,
}

/// A loop that was written out as far as it may go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limited {
    /// Its path.
    pub name: String,
    pub turns: u64,
    /// What the last turn says about another one.
    pub source: Source,
}

/// What holds for all steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// After a failure, what does not depend on it goes on.
    pub continue_on_step_failure: bool,
    /// Nothing is taken from earlier runs, and nothing of this one is taken later.
    pub force_rerun: bool,
    /// An optional input whose maker failed is left out instead of holding up its step.
    pub continue_run_on_failed_optional_input: bool,
}

/// One vertex.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Step {
    /// Its path.
    pub name: String,
    /// Inputs that other steps make.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound: BTreeMap<String, Source>,
    /// Steps that must be over before it starts although nothing is taken from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
    /// All of these must hold, or it does not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Condition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<usize>,
    pub job: StepJob,
    /// Set where the step is a sweep: what leads it. Inputs from other steps go to its trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Box<Search>>,
    /// Set where the step is a loop over items that another step makes: its job is a pipeline of all turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Box<Each>>,
}

/// Where a value comes from: the last of these steps that was not left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub steps: Vec<usize>,
    pub output: String,
    /// Whoever wants it can do without.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// On what it depends whether a step runs at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum Condition {
    Never,
    /// What the output of a step says.
    Said {
        source: Source,
        is: bool,
    },
}

impl Condition {
    /// What it asks about.
    pub fn source(&self) -> Option<&Source> {
        match self {
            Condition::Never => None,
            Condition::Said { source, .. } => Some(source),
        }
    }
}

/// The job of a step, as far as it is known before the others have run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StepJob {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<JobName>,
    /// The resource's properties.
    pub body: Value,
    pub plan: Plan,
    pub target: String,
    pub cluster: String,
    pub max_retries: u32,
    /// Its own, where it is not that of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    pub registers: bool,
    /// Where it may run, in order, if its target is a pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<StepPlace>,
    /// An earlier job that was the same in all that matters may stand for it.
    #[serde(default)]
    pub reuse: bool,
}

/// One of a pool's targets, and what of a plan is different there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepPlace {
    pub target: String,
    pub cluster: String,
    pub requests: Resources,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Resources>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
}

impl StepPlace {
    pub fn of(target: &str, cluster: &str, plan: &Plan) -> StepPlace {
        StepPlace {
            target: target.to_owned(),
            cluster: cluster.to_owned(),
            requests: plan.requests,
            limits: plan.limits,
            instance_type: plan.instance_type.clone(),
        }
    }

    /// What a plan is at this place.
    pub fn plan(&self, plan: &Plan) -> Plan {
        let StepPlace { requests, limits, instance_type, .. } = self.clone();
        Plan { requests, limits, instance_type, ..plan.clone() }
    }
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Completed,
    Failed,
    Canceled,
    /// It did not run: a condition said so, or what it needs was not made.
    Skipped,
}

impl Step {
    /// Every step it waits for, each once.
    pub fn waits(&self) -> Vec<usize> {
        let said = self.when.iter().filter_map(Condition::source);
        let sources = self.bound.values().chain(said).flat_map(|source| &source.steps);
        let mut all: Vec<usize> = sources.chain(&self.after).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
