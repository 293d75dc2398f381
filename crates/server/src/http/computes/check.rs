//! What a compute target must say, by kind, and which parts of it are secrets.

use crate::problem::Problem;
use api::arm::text;
use domain::{cluster::LOWER_PRIORITY, resources::parse_bytes, sizes, spec::Mistake, time::parse_iso_duration};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::ComputeRow;

/// A kind of target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Something that was there before, and is not made by its record.
    pub(crate) attached: bool,
}

const fn kind(name: &'static str, attached: bool) -> Kind {
    Kind { name, attached }
}

static KINDS: &[Kind] = &[
    kind("Local", false),
    kind("AmlCompute", false),
    kind("ComputeInstance", false),
    kind("Kubernetes", true),
    kind("AKS", true),
    kind(MACHINE, true),
    kind("SynapseSpark", true),
    kind("Databricks", true),
    kind("HDInsight", true),
    kind("DataFactory", true),
    kind("DataLakeAnalytics", true),
    kind(SLURM, true),
    kind(POOL, false),
];

/// A machine reached by SSH.
pub(super) const MACHINE: &str = "VirtualMachine";
/// Other targets, tried in order.
pub(super) const POOL: &str = "Pool";
/// A cluster under Slurm.
pub(super) const SLURM: &str = "Slurm";

/// Fields that hold secrets wherever they stand in a target.
const SECRETS: &[&str] = &[
    "password",
    "privateKeyData",
    "adminUserPassword",
    "adminUserSshPrivateKey",
    "databricksAccessToken",
    "accessToken",
    "accountKey",
    "clientSecret",
    "sasToken",
    "privateKey",
    "kubeconfig",
    "kubeConfig",
    "secret",
    "secrets",
];

/// Takes every secret out of a body, by its path.
pub(crate) fn take_secrets(body: &mut Value) -> BTreeMap<String, String> {
    let mut taken = BTreeMap::new();
    take(body, "", &mut taken);
    taken
}

fn take(value: &mut Value, at: &str, taken: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            let secret = |key: &&String| SECRETS.iter().any(|word| word.eq_ignore_ascii_case(key));
            let keys: Vec<String> = map.keys().filter(secret).cloned().collect();
            for key in keys {
                match map.remove(&key) {
                    Some(Value::Null) | None => {}
                    Some(Value::String(text)) => drop(taken.insert(format!("{at}{key}"), text)),
                    Some(other) => drop(taken.insert(format!("{at}{key}"), other.to_string())),
                }
            }
            map.iter_mut().for_each(|(key, value)| take(value, &format!("{at}{key}."), taken));
        }
        Value::Array(items) => {
            items.iter_mut().enumerate().for_each(|(n, item)| take(item, &format!("{at}{n}."), taken));
        }
        _ => {}
    }
}

/// Older clients send `scaleSettings` one level higher than it is kept.
pub(crate) fn inner_form(mut body: Value) -> Value {
    if let Some(scale) =
        body.get_mut("properties").and_then(Value::as_object_mut).and_then(|p| p.remove("scaleSettings"))
    {
        body["properties"]["properties"]["scaleSettings"] = scale;
    }
    body
}

/// Checks a body and spells its kind as the others do.
pub(crate) fn body(name: &str, body: &mut Value) -> Result<&'static Kind, Problem> {
    let what = format!("compute target `{name}`");
    let Some(properties) = body.get("properties").filter(|properties| properties.is_object()) else {
        return Err(Problem::bad(format!("{what} has no `properties`; send an object with `computeType` in it")));
    };
    let Some(word) = text(properties, "computeType") else {
        return Err(Problem::bad(format!("{what} has no `properties.computeType`; it is one of {}", known())));
    };
    let Some(kind) = find(&word) else {
        return Err(Problem::bad(format!("{what} has the unknown `computeType` `{word}`; it is one of {}", known())));
    };
    let inner = properties.get("properties").cloned().unwrap_or(Value::Null);
    if !inner.is_object() && !inner.is_null() {
        return Err(Problem::bad(format!("`properties.properties` of {what} is not an object")));
    }
    let mut bad = mistakes(kind.name, &inner);
    if kind.name == MACHINE && text(&inner, "address").or_else(|| text(properties, "resourceId")).is_none() {
        bad.push(Mistake::new("properties.address", "the machine is missing", "give its name or address as `address`"));
    }
    if !bad.is_empty() {
        return Err(Problem::mistakes(&what, &bad));
    }
    body["properties"]["computeType"] = json!(kind.name);
    Ok(kind)
}

/// A name stands for one kind of thing for as long as it is there.
pub(crate) fn same_kind(name: &str, before: Option<&ComputeRow>, kind: &Kind) -> Result<(), Problem> {
    let Some(before) = before.map(kind_of).filter(|before| before != kind.name) else { return Ok(()) };
    Err(Problem::conflict(format!(
        "compute target `{name}` is of type `{before}` and cannot become `{}`; delete it first, or choose another name",
        kind.name
    )))
}

/// The kind of a kept target, as its record spells it.
pub(crate) fn kind_of(row: &ComputeRow) -> String {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    body.get("properties").and_then(|properties| text(properties, "computeType")).unwrap_or_default()
}

/// Whether work sent to this target runs: another name for this machine does, everything else waits for its driver.
pub(crate) fn runs_here(row: &ComputeRow) -> bool {
    kind_of(row).eq_ignore_ascii_case(super::LOCAL)
}

pub(crate) fn is_pool(row: &ComputeRow) -> bool {
    kind_of(row).eq_ignore_ascii_case(POOL)
}

pub(crate) fn find(word: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name.eq_ignore_ascii_case(word))
}

fn known() -> String {
    KINDS.iter().map(|kind| format!("`{}`", kind.name)).collect::<Vec<_>>().join(", ")
}

fn mistakes(kind: &str, inner: &Value) -> Vec<Mistake> {
    let mut bad = Vec::new();
    if matches!(kind, "AmlCompute" | "ComputeInstance") {
        size(inner, &mut bad);
        word(inner, "vmPriority", &["Dedicated", "LowPriority"], &mut bad);
        duration(inner, "idleTimeBeforeShutdown", "idleTimeBeforeShutdown", &mut bad);
        super::managed::mistakes(inner, &mut bad);
    }
    if let Some(scale) = inner.get("scaleSettings").filter(|scale| !scale.is_null()) {
        nodes(scale, &mut bad);
    }
    if kind == MACHINE && text(&inner["administratorAccount"], "username").is_none() {
        let at = "properties.administratorAccount.username";
        bad.push(Mistake::new(
            at,
            "who to log in as is missing",
            "name a user of the machine (`admin_username` in a file)",
        ));
    }
    if kind == SLURM {
        shape(inner, "properties", &mut bad);
        for (name, named) in inner["shapes"].as_object().into_iter().flatten() {
            let at = format!("properties.shapes.{name}");
            let known = |key: &&String| !SHAPE.contains(&key.as_str());
            if let Some(key) = named.as_object().into_iter().flat_map(serde_json::Map::keys).find(known) {
                let known = SHAPE.map(|key| format!("`{key}`")).join(", ");
                bad.push(Mistake::new(
                    format!("{at}.{key}"),
                    format!("unknown key `{key}`"),
                    format!("it has {known}"),
                ));
            }
            shape(named, &at, &mut bad);
        }
    }
    if matches!(kind, "Kubernetes" | "AKS") {
        pods(inner, &mut bad);
    }
    if kind == POOL {
        pool(inner, &mut bad);
    }
    preemption(kind, inner, &mut bad);
    if let Some(port) = inner.get("sshPort").filter(|port| !port.is_null())
        && !port.as_u64().is_some_and(|port| (1..=65_535).contains(&port))
    {
        bad.push(Mistake::new(
            "properties.sshPort",
            format!("`{port}` is not a port"),
            "write a number from 1 to 65535",
        ));
    }
    bad
}

/// How pods of a target are confined, in either spelling.
fn pods(inner: &Value, bad: &mut Vec<Mistake>) {
    for key in ["podSecurity", "pod_security"] {
        word(inner, key, &["baseline", "restricted"], bad);
    }
    for key in ["runAsUser", "run_as_user"] {
        let Some(id) = inner.get(key).and_then(api::arm::scalar) else { continue };
        if !id.parse::<u32>().is_ok_and(|id| id > 0) {
            let what = format!("`{id}` is not the id of a user who is not root");
            bad.push(Mistake::new(format!("properties.{key}"), what, "write a number such as 1000"));
        }
    }
}

/// Who makes way is ours to say where we give out the places.
fn preemption(kind: &str, inner: &Value, bad: &mut Vec<Mistake>) {
    if matches!(kind, "AmlCompute" | MACHINE) {
        return word(inner, "preemption", &["off", LOWER_PRIORITY], bad);
    }
    let Some(asked) = text(inner, "preemption").filter(|asked| asked != "off") else { return };
    let fix = match kind {
        "Kubernetes" | "AKS" => "Kubernetes itself says who makes way: give `priority_class_high` and the like",
        SLURM => "Slurm itself says who makes way, by `qos` and `partition`",
        "Local" => "set `local.preemption` in the server's configuration",
        _ => "leave it out",
    };
    let what = format!("`{asked}` cannot be had on a target of type `{kind}`");
    bad.push(Mistake::new("properties.preemption", what, fix));
}

/// What can be said of a pool without knowing its targets.
fn pool(inner: &Value, bad: &mut Vec<Mistake>) {
    let names: Vec<&str> = inner["targets"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if names.is_empty() {
        bad.push(Mistake::new("properties.targets", "the pool has no targets", "name those to try, in order"));
    }
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        let message = format!("`{}` is named twice", twice.1);
        bad.push(Mistake::new("properties.targets", message, "name each target once"));
    }
    if let Some(most) = inner.get("maxData").filter(|most| !most.is_null())
        && most.as_str().and_then(parse_bytes).is_none()
    {
        bad.push(Mistake::new("properties.maxData", format!("{most} is not an amount"), "write it like `10GiB`"));
    }
}

/// What an instance type of a Slurm cluster may say.
const SHAPE: [&str; 8] = ["partition", "account", "qos", "cpus", "memory", "gpus", "gres", "arguments"];

fn shape(value: &Value, at: &str, bad: &mut Vec<Mistake>) {
    if let Some(memory) = text(value, "memory").filter(|memory| parse_bytes(memory).is_none()) {
        let fix = "write it like `16Gi` or `500Mi`";
        bad.push(Mistake::new(format!("{at}.memory"), format!("`{memory}` is not an amount of memory"), fix));
    }
    for key in ["cpus", "gpus"] {
        let Some(count) = value.get(key).filter(|count| !count.is_null()) else { continue };
        if count.as_u64().is_none_or(|count| count > 100_000) {
            bad.push(Mistake::new(
                format!("{at}.{key}"),
                format!("`{count}` is not a number of them"),
                "write a whole number",
            ));
        }
    }
}

fn size(inner: &Value, bad: &mut Vec<Mistake>) {
    match text(inner, "vmSize") {
        None => bad.push(Mistake::new(
            "properties.vmSize",
            "the size of the machines is missing",
            "name one, such as `Standard_DS3_v2`; `peregrine compute list-sizes` shows all",
        )),
        Some(name) if sizes::find(&name).is_none() => {
            let near = nearest(&name);
            bad.push(Mistake::new(
                "properties.vmSize",
                format!("there is no size `{name}` (near it: {})", near.join(", ")),
                "name a known size; `peregrine compute list-sizes` shows all",
            ));
        }
        Some(_) => {}
    }
}

/// Sizes whose names begin most like this one.
fn nearest(name: &str) -> Vec<&'static str> {
    let shared = |known: &str| known.bytes().zip(name.bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let mut all: Vec<&'static str> = sizes::list().iter().map(|size| size.name).collect();
    all.sort_by_key(|known| std::cmp::Reverse(shared(known)));
    all.truncate(5);
    all
}

fn nodes(scale: &Value, bad: &mut Vec<Mistake>) {
    let mut count = |key: &str| {
        let value = scale.get(key).filter(|value| !value.is_null())?;
        let number = value.as_u64().filter(|n| *n <= 100_000);
        if number.is_none() {
            let at = format!("properties.scaleSettings.{key}");
            bad.push(Mistake::new(at, format!("`{value}` is not a number of nodes"), "write a whole number"));
        }
        number
    };
    if let (Some(least), Some(most)) = (count("minNodeCount"), count("maxNodeCount"))
        && least > most
    {
        let message = format!("at least {least} nodes are asked for and at most {most}");
        bad.push(Mistake::new("properties.scaleSettings.minNodeCount", message, "make it no more than `maxNodeCount`"));
    }
    duration(scale, "nodeIdleTimeBeforeScaleDown", "scaleSettings.nodeIdleTimeBeforeScaleDown", bad);
}

fn duration(inner: &Value, key: &str, at: &str, bad: &mut Vec<Mistake>) {
    let Some(value) = inner.get(key).filter(|value| !value.is_null()) else { return };
    if value.as_str().and_then(parse_iso_duration).is_none() {
        bad.push(Mistake::new(
            format!("properties.{at}"),
            format!("`{value}` is not a duration"),
            "write it like `PT2M` or `PT1H30M`",
        ));
    }
}

fn word(inner: &Value, key: &str, words: &[&str], bad: &mut Vec<Mistake>) {
    let Some(value) = inner.get(key).filter(|value| !value.is_null()) else { return };
    if !value.as_str().is_some_and(|text| words.iter().any(|word| word.eq_ignore_ascii_case(text))) {
        let list = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ");
        bad.push(Mistake::new(
            format!("properties.{key}"),
            format!("{value} is not a word it knows"),
            format!("write {list}"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_leave_the_body_wherever_they_stand() {
        let mut body = json!({"properties": {"properties": {
            "administratorAccount": {"username": "u", "password": "p1", "privateKeyData": "k1", "publicKeyData": "pub"},
            "nodes": [{"credentials": {"AdminUserPassword": "p2"}}],
        }}});
        let taken = take_secrets(&mut body);
        assert_eq!(taken.values().cloned().collect::<Vec<_>>(), ["p1", "k1", "p2"]);
        let rest = body.to_string();
        assert!(!rest.contains("p1") && !rest.contains("k1") && !rest.contains("p2"), "{rest}");
        assert!(rest.contains("\"pub\""), "{rest}");
    }

    #[test]
    fn a_target_that_makes_no_sense_is_refused_with_the_reason() {
        let aml = |inner: Value| json!({"properties": {"computeType": "amlcompute", "properties": inner}});
        let pods = |mut provider: Value| {
            provider["type"] = json!("kubernetes");
            aml(json!({"vmSize": "Standard_DS3_v2", "nodeProvider": provider}))
        };
        for (mut given, expect) in [
            (json!({}), "no `properties`"),
            (json!({"properties": {}}), "`AmlCompute`"),
            (json!({"properties": {"computeType": "Abacus"}}), "`Kubernetes`"),
            (json!({"properties": {"computeType": "Kubernetes", "properties": 3}}), "not an object"),
            (
                json!({"properties": {"computeType": "Kubernetes", "properties": {"pod_security": "strict"}}}),
                "`baseline` or `restricted`",
            ),
            (
                json!({"properties": {"computeType": "Kubernetes", "properties": {"runAsUser": "root"}}}),
                "not the id of a user",
            ),
            (aml(json!({})), "size of the machines"),
            (aml(json!({"vmSize": "Standard_DS3_v3"})), "Standard_DS3_v2"),
            (
                aml(json!({"vmSize": "Standard_DS3_v2", "scaleSettings": {"minNodeCount": 3, "maxNodeCount": 1}})),
                "at most 1",
            ),
            (aml(json!({"vmSize": "Standard_DS3_v2", "scaleSettings": {"maxNodeCount": -1}})), "number of nodes"),
            (
                aml(json!({"vmSize": "Standard_DS3_v2", "scaleSettings": {"nodeIdleTimeBeforeScaleDown": "2m"}})),
                "not a duration",
            ),
            (aml(json!({"vmSize": "Standard_DS3_v2", "vmPriority": "Cheap"})), "`LowPriority`"),
            (pods(json!({})), "no image is named"),
            (pods(json!({"image": "i", "namespace": "My Team"})), "`My Team` is not the name of a namespace"),
            (
                pods(json!({"image": "i", "serverUrl": "peregrine.lab"})),
                "`peregrine.lab` is not the address of a server",
            ),
            (pods(json!({"image": "i", "tolerations": {"key": "gpu"}})), "not a list"),
            (
                json!({"properties": {"computeType": "VirtualMachine", "resourceId": "/r/box", "properties": {
                    "sshPort": 0, "administratorAccount": {"username": "u"},
                }}}),
                "not a port",
            ),
            (json!({"properties": {"computeType": "VirtualMachine", "resourceId": "/r/box"}}), "who to log in as"),
            (
                json!({"properties": {"computeType": "Slurm", "properties": {"memory": "lots"}}}),
                "`lots` is not an amount",
            ),
            (
                json!({"properties": {"computeType": "Slurm", "properties": {"shapes": {"big": {"cpu": 2}}}}}),
                "unknown key `cpu`",
            ),
            (
                json!({"properties": {"computeType": "Slurm", "properties": {"shapes": {"big": {"cpus": -1}}}}}),
                "`-1` is not a number",
            ),
            (
                json!({"properties": {"computeType": "VirtualMachine", "properties": {"administratorAccount": {"username": "u"}}}}),
                "the machine is missing",
            ),
        ] {
            let refused = body("c1", &mut given).expect_err("it should be refused");
            assert!(refused.message.contains(expect), "{given}: {}", refused.message);
        }
        assert!(body("c1", &mut pods(json!({"image": "i", "namespace": "ml-2", "serverUrl": "https://s:1"}))).is_ok());
        let mut good = aml(json!({"vmSize": "STANDARD_D2_V2", "scaleSettings": {"maxNodeCount": 4}}));
        assert!(body("c1", &mut good).is_ok());
        assert_eq!(good["properties"]["computeType"], "AmlCompute");
    }
}
