//! Targets on clusters: the list of checks that attaching ends with, and what a cluster has.

use crate::{
    commands::{Context, Session},
    failure::{Done, Failure},
    output::Column,
};
use api::arm::{place::show_compute, text};
use domain::{
    names::ComputeName,
    resources::{humane_bytes, parse_bytes, parse_cpu},
};
use serde_json::{Value, json};
use std::time::Duration;

/// The kind of these targets, as files spell it.
pub(super) const KIND: &str = "kubernetes";

/// How often a target that is being checked is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(300);

const CHECKS: &[Column] = &[
    Column::new("CHECK", |item| word(item, "check")).whole(),
    Column::new("PASSED", |item| if item["passed"] == json!(true) { "yes".into() } else { "NO".into() }),
    Column::new("DETAIL", |item| word(item, "detail")),
];
const NODES: &[Column] = &[
    Column::new("NODE", |item| word(item, "name")).whole(),
    Column::new("READY", |item| if item["ready"] == json!(true) { "yes".into() } else { "no".into() }),
    Column::new("FREE", |item| amounts(&item["free"])),
    Column::new("OF", |item| amounts(&item["allocatable"])),
];
const TYPES: &[Column] = &[
    Column::new("INSTANCE TYPE", |item| word(item, "name")).whole(),
    Column::new("REQUESTS", |item| amounts(&item["resources"]["requests"])),
    Column::new("LIMITS", |item| amounts(&item["resources"]["limits"])),
    Column::new("FIT NOW", |item| word(item, "fitsNow")),
];

pub(super) fn is_one(resource: &Value) -> bool {
    resource["properties"]["properties"]["checks"].is_array()
}

/// A target once its checks are over.
pub(super) async fn settled(session: &Session<'_>, name: &ComputeName, made: Value) -> Done<Value> {
    let mut target = made;
    let missing = failed_checks(&target).join("; ");
    if state(&target) == "Creating" && !missing.is_empty() {
        session.context.output.note(&format!("waiting up to 30 s for the {missing}"));
    }
    while state(&target) == "Creating" {
        tokio::time::sleep(LOOK_EVERY).await;
        target = super::fetch(session, name).await?;
    }
    Ok(target)
}

/// With `wait`, looks at a target until its checks are over; shows it, and fails where one of them did.
pub(super) async fn follow(session: &Session<'_>, name: &ComputeName, made: Value, wait: bool) -> Done {
    let output = &session.context.output;
    let target = if wait { settled(session, name, made).await? } else { made };
    let checks = target["properties"]["properties"]["checks"].as_array().cloned().unwrap_or_default();
    match output.is_for_people() {
        true => output.text(&output.table_text(&checks, CHECKS))?,
        false => output.show(&show_compute(&target))?,
    }
    if state(&target) == "Failed" {
        let message = format!("compute target `{name}` is not fit for work: {}", failed_checks(&target).join("; "));
        return Err(Failure::input(message).hint("mend that and attach it again"));
    }
    if state(&target) == "Succeeded" {
        let made = if target["properties"]["isAttachedCompute"] == json!(true) { "attached" } else { "created" };
        output.note(&format!("{made} compute target `{name}`"));
    }
    Ok(())
}

/// What stands in the way of work, one line each.
fn failed_checks(target: &Value) -> Vec<String> {
    let checks = target["properties"]["properties"]["checks"].as_array().into_iter().flatten();
    let failed = checks.filter(|check| check["passed"] == json!(false));
    failed.map(|check| format!("{}: {}", word(check, "check"), word(check, "detail"))).collect()
}

/// A target, its checks, its nodes and its instance types.
pub(super) fn in_words(context: &Context, resource: &Value) -> String {
    let (properties, inner) = (&resource["properties"], &resource["properties"]["properties"]);
    let place = match text(inner, "namespace") {
        Some(namespace) => format!("namespace `{namespace}` of cluster `{}`", word(inner, "cluster")),
        None if word(properties, "computeType") == "Slurm" => match text(inner, "host") {
            Some(host) => format!("the Slurm cluster behind `{host}`"),
            None => "the Slurm cluster of the server's machine".to_owned(),
        },
        None => {
            let named = text(properties, "resourceId").unwrap_or_default();
            let last = named.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
            format!("`{}`, reached by SSH", text(inner, "address").unwrap_or(last))
        }
    };
    let mut out = format!("compute target `{}` is {}: {place}\n", word(resource, "name"), state(resource));
    if let Some(text) = text(properties, "description") {
        out.push_str(&format!("{text}\n"));
    }
    let named = |(name, kind): (&String, &Value)| {
        let mut kind = kind.clone();
        kind["name"] = json!(name);
        kind
    };
    let types: Vec<Value> = inner["instanceTypes"].as_object().into_iter().flatten().map(named).collect();
    let listed = |key: &str| inner[key].as_array().cloned().unwrap_or_default();
    for (items, columns) in [(listed("checks"), CHECKS), (listed("nodes"), NODES), (types, TYPES)] {
        if !items.is_empty() {
            out.push('\n');
            out.push_str(&context.output.table_text(&items, columns));
        }
    }
    out
}

fn state(resource: &Value) -> String {
    text(&resource["properties"], "provisioningState").unwrap_or_default()
}

/// Quantities as Kubernetes writes them, in words.
fn amounts(value: &Value) -> String {
    let one = |(key, value): (&String, &Value)| {
        let value = api::arm::scalar(value).unwrap_or_default();
        match key.as_str() {
            "cpu" => parse_cpu(&value).map(|milli| format!("{} CPU", milli as f64 / 1000.0)),
            "memory" => parse_bytes(&value).map(humane_bytes),
            other => Some(format!("{value} {other}")),
        }
    };
    value.as_object().into_iter().flatten().filter_map(one).collect::<Vec<_>>().join(", ")
}

fn word(item: &Value, key: &str) -> String {
    item.get(key).and_then(api::arm::scalar).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_told_in_words() {
        let shape = json!({"cpu": "1500m", "memory": "2048Mi", "nvidia.com/gpu": 2});
        assert_eq!(amounts(&shape), "1.5 CPU, 2 GiB, 2 nvidia.com/gpu");
    }
}
