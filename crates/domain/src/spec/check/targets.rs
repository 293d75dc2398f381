//! Whether datastores, compute targets and workspaces make sense.

use super::names::{Found, is_placeholder};
use crate::{
    names::{ComputeName, DatastoreName, WorkspaceName},
    resources::{parse_bytes, parse_cpu},
    spec::{Compute, Datastore, Mistake, Workspace, yaml::clip},
};
use serde_json::Value;
use std::collections::BTreeMap;

type Settings = BTreeMap<String, Value>;

/// What makes no sense in a datastore. Values of credentials never stand in a message.
pub fn datastore(datastore: &Datastore) -> Vec<Mistake> {
    let mut found = Found::default();
    if let Some(name) = &datastore.name {
        found.name("name", name, DatastoreName::parse);
    }
    found.labels("tags", &datastore.tags);
    for (key, value) in &datastore.settings {
        match value.as_str() {
            Some(text) if text.trim().is_empty() => found.filled(key, Some(text), &format!("`{key}`")),
            Some(text) if is_placeholder(text) => {
                found.say(key, format!("`{}` is a placeholder", clip(text)), "put the real value in its place");
            }
            _ => {}
        }
    }
    if matches!(datastore.kind.as_str(), "local" | "nfs")
        && text(&datastore.settings, "path").is_some_and(|path| !path.starts_with('/'))
    {
        found.say("path", "the folder must be an absolute path", "start it with `/`");
    }
    credentials(&mut found, &datastore.credentials);
    found.0
}

/// Keys that are of no use without each other.
fn credentials(found: &mut Found, given: &BTreeMap<String, String>) {
    for (key, value) in given {
        found.filled(&format!("credentials.{key}"), Some(value), &format!("`{key}`"));
    }
    let has = |key: &str| given.contains_key(key);
    for (one, other) in [("access_key_id", "secret_access_key"), ("client_id", "tenant_id")] {
        for (have, lack) in [(one, other), (other, one)] {
            if has(have) && !has(lack) {
                found.say(
                    format!("credentials.{have}"),
                    format!("`{have}` is of no use without `{lack}`"),
                    format!("add `{lack}:`"),
                );
            }
        }
    }
    if has("account_key") && has("sas_token") {
        found.say("credentials", "`account_key` and `sas_token` exclude each other", "keep one");
    }
}

/// What makes no sense in a compute target.
pub fn compute(compute: &Compute) -> Vec<Mistake> {
    let mut found = Found::default();
    if let Some(name) = &compute.name {
        found.name("name", name, ComputeName::parse);
    }
    found.labels("tags", &compute.tags);
    let count = |key: &str| compute.settings.get(key).and_then(Value::as_u64);
    if let (Some(min), Some(max)) = (count("min_instances"), count("max_instances"))
        && min > max
    {
        found.say("min_instances", "it is larger than `max_instances`", "raise `max_instances`, or lower this");
    }
    if let Some(types) = compute.settings.get("instance_types").and_then(Value::as_object) {
        types.iter().for_each(|(name, shape)| instance_type(&mut found, name, shape));
    }
    found.0
}

/// Amounts that can be read, GPUs under `limits` only.
fn instance_type(found: &mut Found, name: &str, shape: &Value) {
    for part in ["requests", "limits"] {
        let amounts = &shape["resources"][part];
        let at = |key: &str| format!("instance_types.{}.resources.{part}.{key}", clip(name));
        let given = |key: &str| amounts[key].as_str().map(str::to_owned);
        if let Some(cpu) = given("cpu").filter(|cpu| parse_cpu(cpu).is_none_or(|milli| milli == 0)) {
            found.say(at("cpu"), format!("`{}` is no amount of CPU", clip(&cpu)), "write `2` or `500m`");
        }
        if let Some(memory) = given("memory").filter(|memory| parse_bytes(memory).is_none_or(|bytes| bytes == 0)) {
            found.say(at("memory"), format!("`{}` is no amount of memory", clip(&memory)), "write `4Gi` or `512Mi`");
        }
        match given("nvidia.com/gpu") {
            Some(gpus) if part == "requests" && gpus != "0" => {
                found.say(at("nvidia.com/gpu"), "GPUs are given under `limits` only", "move it there");
            }
            Some(gpus) if gpus.parse::<u32>().is_err() => {
                found.say(
                    at("nvidia.com/gpu"),
                    format!("`{}` is no number of GPUs", clip(&gpus)),
                    "write a whole number",
                );
            }
            _ => {}
        }
    }
}

/// What makes no sense in a workspace.
pub fn workspace(workspace: &Workspace) -> Vec<Mistake> {
    let mut found = Found::default();
    if let Some(name) = &workspace.name {
        found.name("name", name, WorkspaceName::parse);
    }
    found.labels("tags", &workspace.tags);
    for key in ["storage_account", "container_registry", "key_vault", "application_insights", "workspace_hub"] {
        if let Some(id) = text(&workspace.settings, key).filter(|id| !is_resource_id(id)) {
            let fix = "write `/subscriptions/<id>/resourceGroups/<group>/providers/<provider>/<type>/<name>`";
            found.say(key, format!("`{}` is no resource id", clip(id)), fix);
        }
    }
    let customer_key = workspace.settings.get("customer_managed_key");
    if let Some(uri) = customer_key.and_then(|key| key["key_uri"].as_str()).filter(|uri| !is_url(uri)) {
        let message = format!("`{}` is no URL", clip(uri));
        found.say("customer_managed_key.key_uri", message, "write the key's address, `https://...`");
    }
    found.0
}

/// An Azure resource id with a real subscription: `/subscriptions/<guid>/resourceGroups/g/providers/p/type/name`.
fn is_resource_id(id: &str) -> bool {
    let parts: Vec<&str> = id.split('/').collect();
    let guid = |text: &str| {
        text.split('-').map(str::len).eq([8, 4, 4, 4, 12]) && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
    };
    match parts.as_slice() {
        ["", subscriptions, subscription, groups, _, providers, _, kind, name, ..] => {
            subscriptions.eq_ignore_ascii_case("subscriptions")
                && guid(subscription)
                && groups.eq_ignore_ascii_case("resourcegroups")
                && providers.eq_ignore_ascii_case("providers")
                && kind.bytes().all(|b| b.is_ascii_alphabetic())
                && !name.is_empty()
        }
        _ => false,
    }
}

fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let host = rest.split(['/', '?', '#', ':']).next().unwrap_or(rest);
    ["http", "https"].contains(&scheme.to_ascii_lowercase().as_str())
        && host.contains('.')
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
}

fn text<'s>(settings: &'s Settings, key: &str) -> Option<&'s str> {
    settings.get(key).and_then(Value::as_str)
}
