//! Files that are of another kind than the one asked for: one clear mistake instead of twenty unknown keys.

use crate::spec::{
    Mistake,
    shape::Noun,
    yaml::{Node, Raw},
};

/// The mistake of giving this file to this noun, if it plainly belongs elsewhere.
pub(super) fn refused(noun: Noun, root: &Node) -> Option<Mistake> {
    let schema = root.get("$schema").and_then(schema_name);
    if noun == Noun::Job
        && let Some(mistake) = untyped_job(root, schema.as_deref())
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

/// A job that is plainly no command job and does not say so: without `type`, it would be taken for one.
fn untyped_job(root: &Node, schema: Option<&str>) -> Option<Mistake> {
    if root.get("type").is_some_and(|node| node.value != Raw::Null) {
        return None;
    }
    let fix = |kind: &str| format!("add `type: {kind}`");
    let by_schema = |name: &str| JOBS.into_iter().find(|kind| name.starts_with(kind) && name.contains("job"));
    if let Some(kind) = schema.and_then(by_schema) {
        let message = format!("the schema says that this is a {kind} job, and `type` is missing");
        return Some(at(root, "$schema", message, &fix(kind)));
    }
    let (key, kind) =
        [("jobs", "pipeline"), ("search_space", "sweep")].into_iter().find(|(key, _)| root.get(key).is_some())?;
    let message = format!("`{key}` makes this a {kind} job, and `type` is missing");
    Some(at(root, key, message, &fix(kind)))
}

/// Kinds of jobs whose schema files say so.
const JOBS: [&str; 4] = ["pipeline", "sweep", "spark", "automl"];

/// How the names of schema files begin, in lowercase, and what the file is for. Longer beginnings come first.
const SCHEMAS: &[(&str, &str)] = &[
    ("commandjob", "job"),
    ("sweepjob", "job"),
    ("pipelinejob", "job"),
    ("sparkjob", "job"),
    ("automl", "job"),
    ("pipelinecomponentbatchdeployment", "batch-deployment"),
    ("commandcomponent", "component"),
    ("pipelinecomponent", "component"),
    ("sparkcomponent", "component"),
    ("parallelcomponent", "component"),
    ("environment", "environment"),
    ("dataimport", "data import"),
    ("data.", "data"),
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
    ("managedonlineendpoint", "online-endpoint"),
    ("kubernetesonlineendpoint", "online-endpoint"),
    ("managedonlinedeployment", "online-deployment"),
    ("kubernetesonlinedeployment", "online-deployment"),
    ("batchendpoint", "batch-endpoint"),
    ("batchdeployment", "batch-deployment"),
    ("modelbatchdeployment", "batch-deployment"),
];

/// The last part of the schema's address, in lowercase.
fn schema_name(node: &Node) -> Option<String> {
    let Raw::Text { text, .. } = &node.value else { return None };
    text.trim().rsplit('/').next().map(str::to_lowercase)
}

fn at(root: &Node, key: &str, message: String, fix: &str) -> Mistake {
    let (line, column) = super::locate::place_of(root, key).unwrap_or((root.line, root.column));
    Mistake { line, column, ..Mistake::new(key, message, fix) }
}
