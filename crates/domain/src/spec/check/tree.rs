//! Reading checked trees: what is absent reads as empty.

use super::{component, endpoint, names::Found, pipeline, routes, schedule, sweep};
use crate::{
    names::JobName,
    spec::{Mistake, shape::Noun},
};
use serde_json::{Map, Value};
use std::sync::LazyLock;

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// What makes no sense in a file whose noun, or kind of job, has no type of its own.
pub(super) fn tree(noun: Noun, value: &Value) -> Vec<Mistake> {
    match noun {
        Noun::Job => job(value),
        Noun::Component => component::component(value),
        Noun::OnlineEndpoint | Noun::BatchEndpoint => endpoint::endpoint(value),
        Noun::OnlineDeployment => endpoint::online_deployment(value),
        Noun::BatchDeployment => endpoint::batch_deployment(value),
        Noun::Schedule => schedule::schedule(value),
        Noun::Routes => routes::routes(value),
        _ => Vec::new(),
    }
}

fn job(job: &Value) -> Vec<Mistake> {
    let mut found = Found::default();
    if let Some(name) = text(job, "name") {
        found.name("name", name, JobName::parse);
    }
    if let Some(compute) = text(job, "compute") {
        found.compute("compute", compute);
    }
    match text(job, "type") {
        Some("sweep") => sweep::sweep(&mut found, "", job),
        Some("pipeline") => {
            if job["jobs"].is_null() && job["component"].is_null() {
                found.say("jobs", "the pipeline has no steps", "add `jobs:` with at least one step");
            }
            pipeline::pipeline(&mut found, job);
        }
        Some("spark") => {
            let entry = &job["entry"];
            if entry.is_object() && text(entry, "file").is_some() == text(entry, "class_name").is_some() {
                found.say("entry", "a Spark program is a file or a class", "give `file` or `class_name`, and not both");
            }
        }
        Some("automl") => automl(&mut found, job),
        _ => {}
    }
    found.0
}

fn automl(found: &mut Found, job: &Value) {
    if text(job, "target_column_name").is_none() && text(job, "task").is_some_and(|task| task != "text_ner") {
        found.say("target_column_name", "`target_column_name` is required", "name the column to be predicted");
    }
}

/// The map, or an empty one.
pub(super) fn map(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or(&EMPTY)
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

pub(super) fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64()
}

pub(super) fn names(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    map.keys().map(String::as_str)
}
