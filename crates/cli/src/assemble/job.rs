//! Jobs of every type, and schedules that start them.

use super::{Source, code_in, compute_in, environment_in, inputs, looks_local, pipeline, plain, typed};
use crate::{
    commands::resolve_command,
    failure::{Done, Failure},
    post::Post,
    spec_file::{self, Base},
};
use api::arm::{
    self,
    tree::{entries, some, word},
};
use domain::spec::CommandJob;
use domain::spec::shape::Noun;
use serde_json::{Value, json};

/// The `properties` of a job, with all that it refers to sent before.
pub(crate) async fn job(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    let mut spec = spec.clone();
    match word(&spec, "type").unwrap_or("command").to_owned().as_str() {
        "pipeline" => pipeline_job(post, base, &mut spec).await,
        "sweep" => {
            compute_in(post, &mut spec);
            inputs(post, base, &mut spec).await?;
            if let Some(trial) = spec.get_mut("trial").filter(|trial| trial.is_object()) {
                code_in(post, base, trial).await?;
                environment_in(post, base, trial, false).await?;
            }
            Ok(arm::sweep::body(&spec))
        }
        "spark" => {
            compute_in(post, &mut spec);
            inputs(post, base, &mut spec).await?;
            code_in(post, base, &mut spec).await?;
            environment_in(post, base, &mut spec, false).await?;
            Ok(arm::spark::body(&spec))
        }
        "command" => {
            let mut job: CommandJob = typed(&spec, "job")?;
            resolve_command(post, &mut job, base).await?;
            Ok(arm::job::body(&job))
        }
        other => Err(Failure::input(format!("`{other}` jobs cannot run"))
            .hint("write it as a command, sweep, pipeline or spark job")),
    }
}

async fn pipeline_job(post: &Post<'_>, base: &Base, spec: &mut Value) -> Done<Value> {
    compute_in(post, spec);
    inputs(post, base, spec).await?;
    if let Some(settings) = spec.get_mut("settings").filter(|settings| settings.is_object()) {
        for (key, kind) in [("default_compute", "computes"), ("default_datastore", "datastores")] {
            if let Some(name) = word(settings, key) {
                settings[key] = json!(post.scope.named(kind, name));
            }
        }
    }
    let id = match Source::of(post, base, some(spec, "component")).await? {
        Source::Itself => None,
        Source::Registered { id, .. } => Some(id),
        Source::Defined { spec, base, .. } => Some(pipeline::anonymous(post, &base, &spec).await?),
    };
    if let Some(id) = id {
        spec["component"] = json!(id);
    }
    let nodes = pipeline::nodes(post, base, spec).await?;
    Ok(arm::pipeline::body(spec, nodes))
}

/// The resource of a schedule.
pub(crate) async fn schedule(post: &Post<'_>, base: &Base, spec: &Value) -> Done<Value> {
    if let Some(text) = word(spec, "import_data") {
        let mut whole = spec.clone();
        whole["import_data"] = spec_file::raw(&base.existing("import_data", plain(text))?)?;
        return Ok(arm::schedule::body(&whole, None));
    }
    let Some(create) = some(spec, "create_job") else { return Ok(arm::schedule::body(spec, None)) };
    let (mut job_spec, job_base) = match create {
        Value::String(text) => match named(post, text) {
            Some(known) => return Ok(arm::schedule::body(spec, Some(known))),
            None => spec_file::tree(Noun::Job, &base.existing("create_job", plain(text))?, &[])?,
        },
        map => match word(map, "job") {
            Some(text) => {
                if let Some(mut known) = named(post, text) {
                    changes(post, base, map, &mut known).await?;
                    return Ok(arm::schedule::body(spec, Some(known)));
                }
                spec_file::tree(Noun::Job, &base.existing("create_job.job", plain(text))?, &[])?
            }
            None => (map.clone(), base.clone()),
        },
    };
    overlay(&mut job_spec, create);
    let made = job(post, &job_base, &job_spec).await?;
    Ok(arm::schedule::body(spec, Some(made)))
}

/// What a schedule changes about a job that exists, beside its id.
async fn changes(post: &Post<'_>, base: &Base, create: &Value, known: &mut Value) -> Done {
    let mut spec = create.clone();
    if let Some(map) = spec.as_object_mut() {
        map.retain(|key, _| key != "job");
    }
    let made = pipeline_job(post, base, &mut spec).await?;
    let says = |value: &Value| !value.is_null() && *value != json!({}) && *value != json!("");
    for (key, value) in entries(&made).filter(|(key, value)| *key != "jobType" && says(value)) {
        known[key] = value.clone();
    }
    Ok(())
}

/// A job that exists, by its name.
fn named(post: &Post<'_>, text: &str) -> Option<Value> {
    let rest = text.strip_prefix("azureml:")?;
    if looks_local(rest) {
        return None;
    }
    Some(json!({"jobType": "Pipeline", "sourceJobId": post.scope.named("jobs", rest)}))
}

/// What a schedule changes about the job it starts.
fn overlay(job: &mut Value, create: &Value) {
    for (key, value) in entries(create).filter(|(key, value)| *key != "job" && *key != "type" && !value.is_null()) {
        match (job.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                old.extend(new.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            _ => job[key] = value.clone(),
        }
    }
}
