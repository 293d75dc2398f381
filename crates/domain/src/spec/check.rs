//! From a file's text to a spec that makes sense, or every mistake in it at once.
//!
//! The way: read the text, apply `--set`, compare with the table of keys, convert, check for sense. A later step
//! sees whatever the earlier ones could read, and says nothing about a key that is already reported.
//! Invariant: mistakes come in the order of their lines, each with file, place and key.

mod assets;
mod bindings;
mod component;
mod endpoint;
mod foreign;
mod job;
mod locate;
mod names;
mod pipeline;
mod routes;
mod schedule;
mod set;
mod sweep;
mod targets;
mod tree;

pub use assets::{data, environment, model};
pub use job::command_job;
pub(crate) use names::is_placeholder;
pub(crate) use sweep::senseless_sweep;
pub use targets::{compute, datastore, workspace};

use super::{
    CommandJob, Compute, Data, Datastore, Environment, Mistake, Model, Workspace,
    shape::{self, Noun},
    yaml::{self, Node, Raw},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// More than anyone mends at once; the rest is counted.
const MOST: usize = 100;

/// A checked file.
#[derive(Debug, Clone, PartialEq)]
pub enum Spec {
    Job(Box<CommandJob>),
    Environment(Environment),
    Data(Data),
    Model(Model),
    Datastore(Datastore),
    Compute(Compute),
    Workspace(Workspace),
    /// A file of a noun, or of a kind of job, that has no type of its own: its keys as they are written, everything
    /// checked and nothing filled in.
    Tree(Noun, Value),
}

/// Why a valid spec cannot run: it is of a kind that is known, and that nothing here carries out yet.
pub fn cannot_run(spec: &Spec) -> Option<Mistake> {
    const FIX: &str = "write each command as a job of `type: command`";
    match spec {
        Spec::Tree(Noun::Job, job) => {
            let kind = job["type"].as_str().unwrap_or("command");
            let message = || format!("`type: {kind}` jobs cannot run yet; command, pipeline and sweep jobs can");
            (!matches!(kind, "pipeline" | "sweep")).then(|| Mistake::new("type", message(), FIX))
        }
        _ => None,
    }
}

/// Reads and checks a noun's file. `sets` are `a.b=c` overrides, applied in order before anything is checked.
/// Whether the paths in it exist is the caller's to check.
pub fn read(noun: Noun, file: &str, text: &str, sets: &[String]) -> Result<Spec, Vec<Mistake>> {
    let mut root = yaml::parse(file, text)?;
    if let Some(mistake) = not_a_map(noun, &root) {
        return Err(finished(file, vec![mistake]));
    }
    let mut mistakes = set::apply(&mut root, sets);
    if let Some(mistake) = foreign::refused(noun, &root) {
        mistakes.push(mistake);
        return Err(finished(file, mistakes));
    }
    let (value, shape_mistakes) = shape::compare(noun, &root);
    mistakes.extend(shape_mistakes);
    let (spec, senseless) = converted(noun, value);
    add_new(&mut mistakes, senseless, &root);
    match spec {
        Some(spec) if mistakes.is_empty() => Ok(spec),
        _ => Err(finished(file, mistakes)),
    }
}

fn not_a_map(noun: Noun, root: &Node) -> Option<Mistake> {
    if matches!(root.value, Raw::Map(_)) {
        return None;
    }
    let message = format!("a {noun} file is a map of keys, and this is {}", root.in_words());
    Some(Mistake { line: root.line, column: root.column, ..Mistake::new("", message, "write `key: value` lines") })
}

/// The typed spec, as far as it can be made, and what makes no sense in it.
fn converted(noun: Noun, value: Value) -> (Option<Spec>, Vec<Mistake>) {
    match noun {
        Noun::Job if !is_command(&value) => tree(noun, value),
        Noun::Job => checked(value, command_job, |job| Spec::Job(Box::new(job))),
        Noun::Environment => checked(value, environment, Spec::Environment),
        Noun::Data => checked(value, data, Spec::Data),
        Noun::Model => checked(value, model, Spec::Model),
        Noun::Datastore => checked(value, datastore, Spec::Datastore),
        Noun::Compute => checked(value, compute, Spec::Compute),
        Noun::Workspace => checked(value, workspace, Spec::Workspace),
        other => tree(other, value),
    }
}

fn is_command(job: &Value) -> bool {
    job["type"].as_str().is_none_or(|kind| kind == "command")
}

fn tree(noun: Noun, mut value: Value) -> (Option<Spec>, Vec<Mistake>) {
    if let Value::Object(map) = &mut value {
        map.shift_remove("$schema");
    }
    let mistakes = tree::tree(noun, &value);
    (Some(Spec::Tree(noun, value)), mistakes)
}

fn checked<T: DeserializeOwned>(
    mut value: Value,
    check: impl Fn(&T) -> Vec<Mistake>,
    wrap: impl Fn(T) -> Spec,
) -> (Option<Spec>, Vec<Mistake>) {
    if let Value::Object(map) = &mut value {
        map.shift_remove("$schema");
    }
    match serde_json::from_value::<T>(value) {
        Ok(spec) => {
            let mistakes = check(&spec);
            (Some(wrap(spec)), mistakes)
        }
        Err(error) => (None, vec![Mistake::new("", format!("the file cannot be understood: {error}"), "")]),
    }
}

/// Adds mistakes found without places, except where a part of the same value is already reported.
fn add_new(mistakes: &mut Vec<Mistake>, found: Vec<Mistake>, root: &Node) {
    let known: Vec<String> = mistakes.iter().map(|m| m.key.clone()).collect();
    // Far more than is shown; a file made of mistakes must not take long to refuse.
    for mut mistake in found.into_iter().take(10 * MOST) {
        let related = |key: &String| key == &mistake.key || within(key, &mistake.key) || within(&mistake.key, key);
        if known.iter().any(related) || (mistake.key.is_empty() && !known.is_empty()) {
            continue;
        }
        (mistake.line, mistake.column) = locate::place_of(root, &mistake.key).unwrap_or((root.line, root.column));
        mistakes.push(mistake);
    }
}

/// Whether `inner` names a part of what `outer` names.
fn within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with(['.', '[']))
}

fn finished(file: &str, mut mistakes: Vec<Mistake>) -> Vec<Mistake> {
    mistakes.sort_by_key(|m| (m.line, m.column));
    let more = mistakes.len().saturating_sub(MOST);
    if more > 0 {
        mistakes.truncate(MOST);
        mistakes.push(Mistake::new("", format!("and {more} more mistakes"), "mend these first"));
    }
    for mistake in &mut mistakes {
        mistake.file = file.to_owned();
    }
    mistakes
}

#[cfg(test)]
mod tests;
