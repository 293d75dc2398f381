//! Whether endpoints and deployments make sense.

use super::{
    names::{Found, is_placeholder},
    tree::{map, number, text},
};
use crate::spec::{Mistake, yaml::clip};
use serde_json::Value;

/// What makes no sense in an online or batch endpoint.
pub(super) fn endpoint(endpoint: &Value) -> Vec<Mistake> {
    let mut found = Found::default();
    if let Some(name) = text(endpoint, "name") {
        endpoint_name(&mut found, "name", name);
    }
    let share = |key: &str| map(&endpoint[key]).values().filter_map(Value::as_i64).collect::<Vec<_>>();
    let sum: i64 = share("traffic").iter().sum();
    if sum != 0 && sum != 100 {
        found.say("traffic", format!("the shares add up to {sum}"), "let them add up to 100, or to 0 for no traffic");
    }
    match share("mirror_traffic").as_slice() {
        [] => {}
        [one] if *one <= 50 => {}
        [_] => found.say("mirror_traffic", "at most 50 of 100 requests can be copied", "lower it"),
        _ => found.say("mirror_traffic", "only one deployment can get copies", "keep one"),
    }
    found.0
}

fn endpoint_name(found: &mut Found, key: &str, name: &str) {
    let head = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    let tail = name.bytes().last().is_some_and(|b| b.is_ascii_alphanumeric());
    let all = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match head && tail && all && (3..=32).contains(&name.len()) {
        true => {}
        false if is_placeholder(name) => {
            found.say(key, format!("`{}` is a placeholder", clip(name)), "put the real name in its place");
        }
        false => {
            let fix = "use 3 to 32 letters, digits and `-`, starting with a letter and ending with no `-`";
            found.say(key, format!("`{}` cannot name an endpoint", clip(name)), fix);
        }
    }
}

fn deployment_name(found: &mut Found, name: &str) {
    let first = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    let all = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if !first || !all || name.len() > 255 {
        let message = format!("`{}` cannot name a deployment", clip(name));
        found.say("name", message, "use letters, digits, `-` and `_`, starting with a letter or digit");
    }
}

/// What makes no sense in an online deployment.
pub(super) fn online_deployment(deployment: &Value) -> Vec<Mistake> {
    let mut found = both(deployment);
    let scale = &deployment["scale_settings"];
    if let (Some(min), Some(max)) = (number(scale, "min_instances"), number(scale, "max_instances"))
        && min > max
    {
        found.say("scale_settings.min_instances", "it is larger than `max_instances`", "raise `max_instances`");
    }
    if text(scale, "type") == Some("target_utilization") && text(deployment, "type") != Some("kubernetes") {
        let fix = "use `type: default`, or `type: kubernetes` for the deployment";
        found.say("scale_settings.type", "only deployments of `type: kubernetes` scale by themselves", fix);
    }
    let collector = &deployment["data_collector"];
    if number(collector, "sampling_rate").is_some_and(|rate| !(0.0..=1.0).contains(&rate)) {
        found.say("data_collector.sampling_rate", "it must be from 0 to 1", "change the number");
    }
    found.0
}

/// What makes no sense in a batch deployment.
pub(super) fn batch_deployment(deployment: &Value) -> Vec<Mistake> {
    let mut found = both(deployment);
    for (at, settings) in [("", deployment), ("settings.", &deployment["settings"])] {
        if text(settings, "output_action") == Some("summary_only") && text(settings, "output_file_name").is_some() {
            let key = format!("{at}output_file_name");
            found.say(key, "with `output_action: summary_only` there is no file", "remove one of both");
        }
    }
    if !deployment["component"].is_null() && !deployment["job_definition"].is_null() {
        found.say("job_definition", "`component` and `job_definition` exclude each other", "keep one");
    }
    found.0
}

fn both(deployment: &Value) -> Found {
    let mut found = Found::default();
    if let Some(name) = text(deployment, "name") {
        deployment_name(&mut found, name);
    }
    if let Some(name) = text(deployment, "endpoint_name") {
        endpoint_name(&mut found, "endpoint_name", name);
    }
    let model = &deployment["model"];
    if text(model, "version").is_some() && text(model, "name").is_none() {
        found.say("model.name", "a version is of no use without a name", "add `name:`, or remove `version:`");
    }
    let script = &deployment["code_configuration"];
    if script.is_object() && (text(script, "code").is_none() != text(script, "scoring_script").is_none()) {
        let fix = "give both `code` and `scoring_script`";
        found.say("code_configuration", "a scoring program is a file in a folder", fix);
    }
    found
}
