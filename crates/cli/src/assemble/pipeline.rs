//! Components, and the nodes of pipelines that run them.

use super::{code_in, compute_in, environment_in, id_of, inputs, looks_local, plain};
use crate::{
    failure::{Doing, Done, Failure},
    post::Post,
    spec_file::{self, Base},
};
use api::{
    arm::{
        component::{self as body, ANONYMOUS, FROM_FILE, FROM_JOB},
        pipeline,
        tree::{entries, python, some, word},
    },
    blob::sha256,
};
use domain::spec::shape::Noun;
use serde_json::{Map, Value, json};
use std::{future::Future, pin::Pin};

/// Where a component comes from.
pub(crate) enum Source {
    /// A file or a map that defines it, where its paths start, and the word for which of the two.
    Defined { spec: Box<Value>, base: Base, source: &'static str },
    /// One that is registered: its id, and the word for where.
    Registered { id: String, source: &'static str },
    /// The node is itself the definition.
    Itself,
}

impl Source {
    /// Reads what a `component` or `trial` key says.
    pub(crate) async fn of(post: &Post<'_>, base: &Base, value: Option<&Value>) -> Done<Source> {
        let Some(value) = value else { return Ok(Source::Itself) };
        let Some(text) = value.as_str() else {
            return Ok(Source::Defined { spec: Box::new(value.clone()), base: base.clone(), source: FROM_JOB });
        };
        if text.starts_with("azureml:") || text.starts_with('/') && !looks_local(text) {
            let source = if text.contains("//registries/") { "REMOTE.REGISTRY" } else { "REMOTE.WORKSPACE.COMPONENT" };
            return Ok(Source::Registered { id: post.resolve("components", text).await?, source });
        }
        let path = base.existing("component", plain(text))?;
        // Inside another file a component goes by its content, whatever its own name is.
        let (spec, base) = spec_file::tree(Noun::Component, &path, &[format!("name={ANONYMOUS}")])?;
        // A file spliced in counts as written in place.
        let source = if text.starts_with("file:") { FROM_JOB } else { FROM_FILE };
        Ok(Source::Defined { spec: Box::new(spec), base, source })
    }
}

/// Registers a component that a file defines, without a name of its own; its id.
pub(super) async fn anonymous(post: &Post<'_>, base: &Base, spec: &Value) -> Done<String> {
    let spec = resolved(post, base, spec).await?;
    register(post, &spec, FROM_FILE).await
}

/// The resource of a component: the body, with all that it refers to sent before.
pub(crate) async fn component(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    let resolved = resolved(post, base, spec).await?;
    Ok(body::body(&resolved, FROM_FILE, false))
}

/// A component whose code, environment and nodes are references.
async fn resolved(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    let mut spec = spec.clone();
    code_in(post, base, &mut spec).await?;
    environment_in(post, base, &mut spec, false).await?;
    if let Some(task) = spec.get_mut("task").filter(|task| task.is_object()) {
        code_in(post, base, task).await?;
        environment_in(post, base, task, false).await?;
    }
    if let Some(keys) = some(&spec, "partition_keys").filter(|keys| keys.is_array()) {
        spec["partition_keys"] = json!(pipeline::python_list(keys));
    }
    if some(&spec, "partition_keys").is_some() && some(&spec, "mini_batch_size").is_none() {
        spec["mini_batch_size"] = json!(0);
    }
    if let Some(size) = some(&spec, "mini_batch_size") {
        spec["mini_batch_size"] = json!(python(&pipeline::bytes_of(size)));
    }
    if word(&spec, "type") == Some("pipeline") || some(&spec, "jobs").is_some() {
        spec["type"] = json!("pipeline");
        spec["jobs"] = Value::Object(nodes(post, base, &spec).await?);
    }
    Ok(spec)
}

/// Registers a component without a name of its own; its id.
async fn register(post: &Post<'_>, spec: &Value, source: &str) -> Done<String> {
    let body = body::body(spec, source, true);
    let hash = sha256(body.to_string().as_bytes());
    let guid = format!("{}-{}-{}-{}-{}", &hash[..8], &hash[8..12], &hash[12..16], &hash[16..20], &hash[20..32]);
    Ok(id_of(&post.put(&format!("components/{ANONYMOUS}/versions/{guid}"), &body).await?))
}

type Nodes<'f> = Pin<Box<dyn Future<Output = Done<Map<String, Value>>> + 'f>>;

/// The nodes of a pipeline or pipeline component; whatever they run is registered on the way.
pub(super) fn nodes<'f>(post: &'f Post<'_>, base: &'f Base, pipeline: &'f Value) -> Nodes<'f> {
    Box::pin(async move {
        let mut parts = Vec::new();
        // What components declare tells the types of what other nodes are bound to.
        let mut known = pipeline.clone();
        for (name, job) in some(pipeline, "jobs").map(entries).into_iter().flatten() {
            let source = Source::of(post, base, some(job, "component").or_else(|| some(job, "trial")))
                .await
                .doing(|| format!("cannot use node `{name}`"))?;
            if let Source::Defined { spec, .. } = &source {
                known["jobs"][name]["$interface"] = json!({"inputs": spec["inputs"], "outputs": spec["outputs"]});
            }
            parts.push((name, job, source));
        }
        let mut made = Map::new();
        for (name, job, source) in parts {
            let node = node(post, base, name, job, source, &known).await;
            made.insert(name.clone(), node.doing(|| format!("cannot use node `{name}`"))?);
        }
        Ok(made)
    })
}

async fn node(post: &Post<'_>, base: &Base, name: &str, job: &Value, source: Source, pipeline: &Value) -> Done<Value> {
    let mut job = job.clone();
    let kind = kind_of(&job, &source);
    if kind == "automl" {
        return Err(Failure::input("`automl` nodes cannot run").hint("replace the node by one that trains the model"));
    }
    compute_in(post, &mut job);
    inputs(post, base, &mut job).await?;
    let (id, word) = match source {
        Source::Registered { id, source } => (id, source),
        Source::Defined { spec, base, source } => {
            let spec = resolved(post, &base, &spec).await?;
            inherit(&mut job, &spec, &kind);
            (register(post, &spec, source).await?, source)
        }
        Source::Itself => {
            let whole = resolved(post, base, &job).await?;
            if let Some(task) = some(&whole, "task") {
                job["task"] = task.clone();
            }
            if some(&job, "partition_keys").is_some() && some(&job, "mini_batch_size").is_none() {
                job["mini_batch_size"] = json!(0);
            }
            (register(post, &body::of_job(&whole, pipeline), FROM_JOB).await?, FROM_JOB)
        }
    };
    Ok(pipeline::node(name, &kind, &job, &id, word))
}

/// What the node runs: as it says, else as its component says.
fn kind_of(job: &Value, source: &Source) -> String {
    let declared = match source {
        Source::Defined { spec, .. } => word(spec, "type"),
        _ => None,
    };
    word(job, "type").or(declared).unwrap_or("command").to_owned()
}

/// Nodes of some kinds repeat what their component says, unless they say otherwise.
fn inherit(job: &mut Value, spec: &Value, kind: &str) {
    let keys: &[&str] = match kind {
        "parallel" => &[
            "task",
            "input_data",
            "mini_batch_size",
            "mini_batch_error_threshold",
            "error_threshold",
            "max_concurrency_per_instance",
            "logging_level",
            "retry_settings",
            "partition_keys",
            "resources",
        ],
        "spark" => &["entry", "conf", "args", "py_files", "jars", "files", "archives"],
        "command" => &["resources", "distribution"],
        _ => &[],
    };
    for key in keys {
        if some(job, key).is_none()
            && let Some(value) = some(spec, key)
        {
            job[*key] = value.clone();
        }
    }
}
