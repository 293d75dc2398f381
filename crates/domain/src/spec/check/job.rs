//! Whether a command job makes sense.

use super::{
    assets,
    bindings::bindings,
    names::{Found, is_placeholder, split_version},
};
use crate::{
    names::{AssetName, JobName, Version},
    spec::{CommandJob, Distribution, EnvironmentRef, JobResources, Mistake, Service, yaml::clip},
};
use serde_json::Value;

const MAX_NODES: u32 = 10_000;
const MAX_PROCESSES: u32 = 1_024;
const JOB_TIERS: [&str; 5] = ["spot", "basic", "standard", "premium", "null"];

/// Everything in a command job that makes no sense, by key path and without places: the same rules hold for
/// files and for what arrives over the wire.
pub fn command_job(job: &CommandJob) -> Vec<Mistake> {
    let mut found = Found::default();
    command(&mut found, &job.command);
    if let Some(name) = &job.name {
        found.name("name", name, JobName::parse);
    }
    if let Some(compute) = &job.compute {
        found.compute("compute", compute);
    }
    experiment(&mut found, job.experiment_name.as_deref());
    found.filled("code", job.code.as_deref(), "the path");
    environment(&mut found, job.environment.as_ref());
    found.labels("tags", &job.tags);
    found.labels("properties", &job.properties);
    found.variables("environment_variables", &job.environment_variables);
    resources(&mut found, &job.resources);
    if job.limits.timeout == Some(0) {
        found.say("limits.timeout", "the timeout must be at least 1 second", "give seconds, or remove the key");
    }
    if let Some(distribution) = &job.distribution {
        processes(&mut found, distribution);
    }
    queue(&mut found, job);
    for (name, service) in &job.services {
        nodes(&mut found, name, service, job.resources.instance_count.unwrap_or(1));
    }
    bindings(&mut found, job);
    found.0
}

fn command(found: &mut Found, command: &str) {
    if command.trim().is_empty() {
        found.say("command", "the command is empty", "write what to run, such as `python train.py`");
    } else if !command.chars().any(|c| c.is_alphanumeric() || c == '_') {
        found.say("command", format!("`{}` names no program", clip(command)), "write what to run");
    }
    if command.contains('\0') {
        found.say("command", "the command holds a NUL character", "remove it");
    }
}

fn experiment(found: &mut Found, name: Option<&str>) {
    found.filled("experiment_name", name, "the name");
    if name.is_some_and(|name| name.len() > 255 || name.contains(char::is_control)) {
        found.say("experiment_name", "an experiment's name has up to 255 bytes on one line", "shorten it");
    }
}

fn environment(found: &mut Found, environment: Option<&EnvironmentRef>) {
    match environment {
        None => found.say(
            "environment",
            "`environment` is required",
            "name one, such as `azureml:sklearn-1.5@latest`, or define one here",
        ),
        Some(EnvironmentRef::Named(text)) => named_environment(found, text),
        Some(EnvironmentRef::Inline(inline)) => {
            for mut mistake in assets::environment(inline) {
                mistake.key = format!("environment.{}", mistake.key);
                found.0.push(mistake);
            }
        }
    }
}

/// `azureml:name:version`, `azureml:name@label`, the same without `azureml:`, a registry URI, a resource id, or
/// `file:` and the path of an environment file.
fn named_environment(found: &mut Found, text: &str) {
    const FIX: &str = "write `azureml:name:version`, `azureml:name@latest`, or define the environment here";
    let text = text.trim();
    if text.is_empty() {
        return found.say("environment", "the environment's name is empty", FIX);
    }
    if is_placeholder(text) {
        return found.say("environment", format!("`{}` is a placeholder", clip(text)), FIX);
    }
    if text.starts_with('/') || text.starts_with("azureml://") {
        if !text.contains("/environments/") {
            found.say("environment", format!("`{}` does not lead to an environment", clip(text)), FIX);
        }
        return;
    }
    if let Some(path) = text.strip_prefix("file:") {
        return found.filled("environment", Some(path), "the path after `file:`");
    }
    let (name, version) = split_version(text.strip_prefix("azureml:").unwrap_or(text));
    let bad = AssetName::parse(name).err().or_else(|| version.and_then(|v| Version::parse(v).err()));
    if let Some(bad) = bad {
        found.say("environment", bad.to_string(), FIX);
    }
}

fn resources(found: &mut Found, resources: &JobResources) {
    let count = resources.instance_count;
    if count == Some(0) {
        found.say("resources.instance_count", "a job needs at least 1 node", "write 1 or more");
    }
    for (key, count) in [("instance_count", count), ("max_instance_count", resources.max_instance_count)] {
        if count.is_some_and(|count| count > MAX_NODES) {
            found.say(format!("resources.{key}"), format!("the limit is {MAX_NODES} nodes"), "ask for fewer");
        }
    }
    if resources.max_instance_count.is_some_and(|max| max < count.unwrap_or(1)) {
        found.say("resources.max_instance_count", "it is smaller than `instance_count`", "raise it, or remove it");
    }
    found.filled("resources.instance_type", resources.instance_type.as_deref(), "the instance type");
    if let Some(size) = resources.shm_size.as_deref().filter(|size| !is_size(size)) {
        let message = format!("`{}` is not a size", clip(size));
        found.say("resources.shm_size", message, "write a number and `b`, `k`, `m` or `g`, such as `2g`");
    }
}

/// Digits, not all zero, and one letter for the unit.
fn is_size(text: &str) -> bool {
    let Some(digits) = text.strip_suffix(|c: char| "bBkKmMgG".contains(c)) else { return false };
    (1..=15).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) && digits.bytes().any(|b| b != b'0')
}

fn processes(found: &mut Found, distribution: &Distribution) {
    let counts = match distribution {
        Distribution::PyTorch { process_count_per_instance: count }
        | Distribution::Mpi { process_count_per_instance: count } => {
            vec![("process_count_per_instance", *count, 1)]
        }
        Distribution::TensorFlow { worker_count, parameter_server_count } => {
            vec![("worker_count", *worker_count, 1), ("parameter_server_count", *parameter_server_count, 0)]
        }
        Distribution::Ray { .. } => Vec::new(),
    };
    for (key, count, least) in counts {
        if count.is_some_and(|count| !(least..=MAX_PROCESSES).contains(&count)) {
            let message = format!("the number must be from {least} to {MAX_PROCESSES}");
            found.say(format!("distribution.{key}"), message, "change the number");
        }
    }
}

fn queue(found: &mut Found, job: &CommandJob) {
    if let Some(tier) = &job.queue_settings.job_tier
        && !JOB_TIERS.iter().any(|known| known.eq_ignore_ascii_case(tier))
    {
        found.say(
            "queue_settings.job_tier",
            format!("`{}` is no tier", clip(tier)),
            "use `spot`, `basic`, `standard` or `premium`",
        );
    }
}

/// `nodes` of a service: `all`, or the index of one.
fn nodes(found: &mut Found, name: &str, service: &Service, count: u32) {
    let text = match service.settings.get("nodes") {
        None | Some(Value::Null) => return,
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let one = text.parse().is_ok_and(|index: u32| index < count.max(1));
    if !one && !text.eq_ignore_ascii_case("all") {
        let message = format!("`{}` is neither `all` nor the index of a node", clip(&text));
        found.say(
            format!("services.{}.nodes", clip(name)),
            message,
            format!("use `all`, or 0 to {}", count.max(1) - 1),
        );
    }
}
