//! Files that are of another kind than the one asked for: one clear mistake instead of twenty unknown keys.

use crate::spec::{
    Mistake,
    shape::Noun,
    yaml::{Node, Raw, clip},
};

/// The mistake of giving this file to this noun, if it plainly belongs elsewhere.
pub(super) fn refused(noun: Noun, root: &Node) -> Option<Mistake> {
    let schema = root.get("$schema").and_then(schema_name);
    if noun == Noun::Job
        && let Some(mistake) = other_job(root, schema.as_deref())
    {
        return Some(mistake);
    }
    let (_, other) = SCHEMAS.iter().find(|(part, _)| schema.as_deref().is_some_and(|name| name.starts_with(part)))?;
    if *other == noun.as_str() {
        return None;
    }
    let fix = match Noun::parse(other) {
        Some(_) => format!("use `peregrine {other} create -f`"),
        None => format!("give a {noun} file"),
    };
    let message = format!("the schema says that this is a file for a {other}, not for a {noun}");
    Some(at(root, "$schema", message, &fix))
}

/// A job of a kind that is known and cannot run.
fn other_job(root: &Node, schema: Option<&str>) -> Option<Mistake> {
    let kind = root.get("type").and_then(Node::scalar_text).map(str::to_lowercase);
    if let Some(kind) = kind.as_deref().filter(|kind| OTHER_JOBS.contains(kind)) {
        return Some(at(root, "type", cannot_run(&format!("`type: {}` jobs", clip(kind))), FIX));
    }
    if kind.is_some() {
        return None;
    }
    if let Some(kind) =
        schema.and_then(|name| OTHER_JOBS.iter().find(|kind| name.starts_with(*kind) && name.contains("job")))
    {
        return Some(at(root, "$schema", cannot_run(&format!("{kind} jobs")), FIX));
    }
    let (key, kind) = [("jobs", "pipeline"), ("search_space", "sweep"), ("mini_batch_size", "parallel")]
        .into_iter()
        .find(|(key, _)| root.get(key).is_some())?;
    Some(at(root, key, cannot_run(&format!("`{key}` makes this a {kind} job, and {kind} jobs")), FIX))
}

const FIX: &str = "write each command as a job of `type: command`";

/// Kinds of jobs that files in the field have.
const OTHER_JOBS: &[&str] =
    &["pipeline", "sweep", "parallel", "spark", "automl", "import", "finetuning", "distillation", "base"];

/// How the names of schema files begin, in lowercase, and what the file is for. Longer beginnings come first.
const SCHEMAS: &[(&str, &str)] = &[
    ("commandjob", "job"),
    ("commandcomponent", "component"),
    ("pipelinecomponent", "component"),
    ("sparkcomponent", "component"),
    ("parallelcomponent", "component"),
    ("environment", "environment"),
    ("data.", "data"),
    ("dataimport", "data import"),
    ("model.", "model"),
    ("azureblob", "datastore"),
    ("azurefile", "datastore"),
    ("azuredatalake", "datastore"),
    ("amlcompute", "compute"),
    ("computeinstance", "compute"),
    ("vmcompute", "compute"),
    ("kubernetescompute", "compute"),
    ("workspaceconnection", "connection"),
    ("workspace", "workspace"),
    ("registry", "registry"),
    ("schedule", "schedule"),
    ("managedonline", "online endpoint"),
    ("kubernetesonline", "online endpoint"),
    ("batchendpoint", "batch endpoint"),
    ("batchdeployment", "batch deployment"),
    ("modelbatchdeployment", "batch deployment"),
    ("pipelinecomponentbatchdeployment", "batch deployment"),
];

fn cannot_run(what: &str) -> String {
    format!("{what} cannot run yet; command jobs can")
}

/// The last part of the schema's address, in lowercase.
fn schema_name(node: &Node) -> Option<String> {
    let Raw::Text { text, .. } = &node.value else { return None };
    text.trim().rsplit('/').next().map(str::to_lowercase)
}

fn at(root: &Node, key: &str, message: String, fix: &str) -> Mistake {
    let (line, column) = super::locate::place_of(root, key).unwrap_or((root.line, root.column));
    Mistake { line, column, ..Mistake::new(key, message, fix) }
}
