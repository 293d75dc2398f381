//! Compute targets, workspaces and registries: the places that work happens in.

use super::{
    datastore::{camel, snake},
    endpoint::{capital, resource_identity},
    put,
    tree::{camel_deep, carry, entries, iso_seconds, labels, some, word},
};
use serde_json::{Map, Value, json};

/// Kinds of compute target: in files and on the wire.
pub const COMPUTES: &[(&str, &str)] = &[
    ("local", "Local"),
    ("amlcompute", "AmlCompute"),
    ("computeinstance", "ComputeInstance"),
    ("kubernetes", "Kubernetes"),
    ("virtualmachine", "VirtualMachine"),
    ("synapsespark", "SynapseSpark"),
    ("databricks", "Databricks"),
    ("hdinsight", "HDInsight"),
    ("batch", "Batch"),
    ("datalakeanalytics", "DataLakeAnalytics"),
    ("slurm", "Slurm"),
    ("pool", "Pool"),
];

/// The size meant by files that name none.
const SIZE: &str = "STANDARD_DS3_V2";

/// The body of a compute target.
pub fn compute(spec: &Value, location: &str) -> Value {
    let ours = word(spec, "type").unwrap_or_default().to_lowercase();
    let wire = COMPUTES.iter().find(|(known, _)| *known == ours).map_or(ours.as_str(), |(_, wire)| wire);
    let mut p = Map::from_iter([("computeType".to_owned(), json!(wire))]);
    carry(&mut p, spec, &[("description", "description"), ("resource_id", "resourceId")]);
    match wire {
        "AmlCompute" => cluster(&mut p, spec),
        "ComputeInstance" => instance(&mut p, spec),
        "Kubernetes" => {
            put(&mut p, "computeLocation", json!(word(spec, "location").unwrap_or(location)));
            let mut inner = rest(spec);
            // A file has more settings one level deeper than the wire.
            if let Some(Value::Object(more)) = inner.remove("properties") {
                for (key, value) in more {
                    inner.entry(camel(&key)).or_insert(value);
                }
            }
            inner.entry("namespace").or_insert_with(|| json!("default"));
            put(&mut p, "properties", Value::Object(inner));
        }
        "VirtualMachine" => virtual_machine(&mut p, spec),
        "Slurm" => {
            let mut inner = rest(spec);
            inner.remove("sshSettings");
            // `instanceTypes` is what the server makes of them.
            let shapes = inner.remove("instanceTypes");
            put(&mut inner, "shapes", shapes);
            account(&mut inner, spec);
            put(&mut p, "properties", Value::Object(inner));
        }
        _ => put(&mut p, "properties", Value::Object(rest(spec))),
    }
    let mut out = Map::new();
    put(&mut out, "location", json!(word(spec, "location").unwrap_or(location)));
    put(&mut out, "tags", some(spec, "tags").map(|_| labels(spec, "tags")));
    put(&mut out, "identity", some(spec, "identity").map(resource_identity));
    put(&mut out, "properties", Value::Object(p));
    Value::Object(out)
}

/// What is particular to a kind, under wire names.
fn rest(spec: &Value) -> Map<String, Value> {
    let known = ["name", "type", "description", "tags", "location", "identity", "resource_id", "$schema"];
    let own = entries(spec).filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null());
    own.map(|(key, value)| (camel(key), value.clone())).collect()
}

fn cluster(p: &mut Map<String, Value>, spec: &Value) {
    let mut inner = Map::new();
    put(&mut inner, "vmSize", json!(word(spec, "size").unwrap_or(SIZE)));
    let low = |tier: &str| tier.to_lowercase().replace(['_', '-'], "") == "lowpriority";
    let tier = word(spec, "tier").map(|tier| json!(if low(tier) { "LowPriority" } else { "Dedicated" }));
    put(&mut inner, "vmPriority", tier);
    put(&mut inner, "osType", json!("Linux"));
    let public = some(spec, "enable_node_public_ip") != Some(&json!(false));
    put(&mut inner, "enableNodePublicIp", json!(public));
    let access = match some(spec, "ssh_public_access_enabled") {
        None => "NotSpecified",
        Some(on) if *on == json!(true) => "Enabled",
        Some(_) => "Disabled",
    };
    put(&mut inner, "remoteLoginPortPublicAccess", json!(access));
    let idle = some(spec, "idle_time_before_scale_down").cloned().unwrap_or(json!(120));
    let scale = json!({
        "minNodeCount": some(spec, "min_instances").cloned().unwrap_or(json!(0)),
        "maxNodeCount": some(spec, "max_instances").cloned().unwrap_or(json!(4)),
        "nodeIdleTimeBeforeScaleDown": iso_seconds(&idle),
    });
    put(&mut inner, "scaleSettings", scale);
    carry(&mut inner, spec, &[("preemption", "preemption")]);
    put(&mut inner, "nodeProvider", some(spec, "provider").map(node_provider));
    put(&mut inner, "subnet", network(spec));
    let ssh = some(spec, "ssh_settings");
    if let Some(ssh) = ssh {
        let mut account = Map::new();
        let names = [("admin_username", "adminUserName"), ("admin_password", "adminUserPassword")];
        carry(&mut account, ssh, &names);
        carry(&mut account, ssh, &[("ssh_key_value", "adminUserSshPublicKey")]);
        put(&mut inner, "userAccountCredentials", Value::Object(account));
    }
    put(p, "disableLocalAuth", json!(ssh.is_none()));
    put(p, "properties", Value::Object(inner));
}

/// Who brings the nodes. Labels of machines are nobody's to respell.
fn node_provider(provider: &Value) -> Value {
    let mut out = camel_deep(provider);
    if let Some(labels) = some(provider, "node_selector") {
        out["nodeSelector"] = labels.clone();
    }
    out
}

fn instance(p: &mut Map<String, Value>, spec: &Value) {
    let mut inner = Map::new();
    put(&mut inner, "vmSize", json!(word(spec, "size").unwrap_or(SIZE)));
    let on = |key: &str, otherwise: bool| json!(some(spec, key).and_then(Value::as_bool).unwrap_or(otherwise));
    put(&mut inner, "enableNodePublicIp", on("enable_node_public_ip", true));
    put(&mut inner, "enableSSO", on("enable_sso", true));
    put(&mut inner, "enableRootAccess", on("enable_root_access", true));
    put(&mut inner, "releaseQuotaOnStop", on("release_quota_on_stop", false));
    put(&mut inner, "enableOSPatching", on("enable_os_patching", false));
    put(&mut inner, "applicationSharingPolicy", json!("Shared"));
    put(&mut inner, "computeInstanceAuthorizationType", json!("personal"));
    put(&mut inner, "subnet", network(spec));
    let ssh = some(spec, "ssh_settings");
    if let Some(ssh) = ssh {
        let access = if some(spec, "ssh_public_access_enabled") == Some(&json!(true)) { "Enabled" } else { "Disabled" };
        let mut made = Map::from_iter([("sshPublicAccess".to_owned(), json!(access))]);
        carry(&mut made, ssh, &[("ssh_key_value", "adminPublicKey")]);
        put(&mut inner, "sshSettings", Value::Object(made));
    }
    let idle = some(spec, "idle_time_before_shutdown_minutes").and_then(Value::as_u64);
    put(&mut inner, "idleTimeBeforeShutdown", idle.map(|minutes| json!(format!("PT{minutes}M"))));
    put(&mut inner, "schedules", some(spec, "schedules").map(schedules));
    put(p, "disableLocalAuth", json!(ssh.is_none()));
    put(p, "properties", Value::Object(inner));
}

/// When an instance starts and stops by itself.
fn schedules(value: &Value) -> Value {
    let one = |schedule: &Value| {
        let trigger = some(schedule, "trigger").unwrap_or(&Value::Null);
        let kind = capital(word(trigger, "type").unwrap_or("cron"));
        let mut inner = Map::from_iter([("triggerType".to_owned(), json!(kind))]);
        for (key, value) in entries(trigger).filter(|(key, value)| *key != "type" && !value.is_null()) {
            put(&mut inner, &camel(key), camel_deep(value));
        }
        let state = word(schedule, "state").or(word(schedule, "status")).unwrap_or("enabled");
        let mut out = Map::new();
        put(&mut out, "action", some(schedule, "action").cloned());
        put(&mut out, "status", json!(capital(state)));
        put(&mut out, "triggerType", json!(kind));
        put(&mut out, &kind.to_lowercase(), Value::Object(inner));
        Value::Object(out)
    };
    let all = some(value, "compute_start_stop").and_then(Value::as_array).into_iter().flatten();
    json!({"computeStartStop": all.map(one).collect::<Vec<_>>()})
}

fn virtual_machine(p: &mut Map<String, Value>, spec: &Value) {
    let mut inner = Map::new();
    account(&mut inner, spec);
    let own = [("address", "address"), ("host_key", "hostKey"), ("jump_host", "jumpHost"), ("slots", "slots")];
    carry(&mut inner, spec, &own);
    carry(&mut inner, spec, &[("preemption", "preemption")]);
    put(p, "properties", Value::Object(inner));
}

/// Who logs in to a machine, and with what.
fn account(inner: &mut Map<String, Value>, spec: &Value) {
    if let Some(ssh) = some(spec, "ssh_settings") {
        put(inner, "sshPort", some(ssh, "ssh_port").cloned().unwrap_or(json!(22)));
        let mut account = Map::new();
        let names = [("admin_username", "username"), ("admin_password", "password")];
        carry(&mut account, ssh, &names);
        carry(&mut account, ssh, &[("ssh_private_key", "privateKeyData")]);
        put(inner, "administratorAccount", Value::Object(account));
    }
}

fn network(spec: &Value) -> Option<Value> {
    let network = some(spec, "network_settings")?;
    some(network, "subnet").map(|subnet| json!({"id": subnet}))
}

/// A compute target in the words of its file, plus what the server knows about it.
pub fn show_compute(resource: &Value) -> Value {
    let p = resource.get("properties").unwrap_or(&Value::Null);
    let wire = word(p, "computeType").unwrap_or_default();
    let kind = COMPUTES.iter().find(|(_, known)| known.eq_ignore_ascii_case(wire)).map_or(wire, |(ours, _)| ours);
    let mut out = Map::new();
    carry(&mut out, resource, &[("name", "name")]);
    put(&mut out, "type", json!(kind));
    carry(&mut out, p, &[("provisioningState", "provisioning_state"), ("description", "description")]);
    carry(&mut out, p, &[("resourceId", "resource_id")]);
    for (key, value) in entries(p.get("properties").unwrap_or(&Value::Null)).filter(|(_, value)| !value.is_null()) {
        match key.as_str() {
            "vmSize" => put(&mut out, "size", value.clone()),
            "vmPriority" => put(&mut out, "tier", value.as_str().map(|tier| json!(snake(tier)))),
            "scaleSettings" => scale_shown(&mut out, value),
            "nodeProvider" => put(&mut out, "provider", value.clone()),
            other => put(&mut out, &snake(other), value.clone()),
        }
    }
    put(&mut out, "tags", some(resource, "tags").cloned().unwrap_or_else(|| json!({})));
    carry(&mut out, resource, &[("location", "location"), ("identity", "identity"), ("id", "id")]);
    Value::Object(out)
}

fn scale_shown(out: &mut Map<String, Value>, scale: &Value) {
    carry(out, scale, &[("minNodeCount", "min_instances"), ("maxNodeCount", "max_instances")]);
    let idle = word(scale, "nodeIdleTimeBeforeScaleDown").and_then(domain::time::parse_iso_duration);
    put(out, "idle_time_before_scale_down", idle.map(|idle| json!(idle.as_secs())));
}

/// The body of a workspace.
pub fn workspace(spec: &Value) -> Value {
    let known = ["name", "location", "tags", "display_name", "description", "identity", "kind", "type", "$schema"];
    let mut p = Map::new();
    carry(&mut p, spec, &[("display_name", "friendlyName"), ("description", "description")]);
    for (key, value) in entries(spec).filter(|(key, value)| !known.contains(&key.as_str()) && !value.is_null()) {
        match key.as_str() {
            "public_network_access" => {
                put(&mut p, "publicNetworkAccess", value.as_str().map(|word| json!(capital(word))))
            }
            other => put(&mut p, &camel(other), camel_deep(value)),
        }
    }
    let mut out = Map::new();
    carry(&mut out, spec, &[("location", "location"), ("kind", "kind")]);
    put(&mut out, "identity", some(spec, "identity").map(resource_identity));
    put(&mut out, "tags", labels(spec, "tags"));
    put(&mut out, "properties", Value::Object(p));
    Value::Object(out)
}

/// The body of a registry.
pub fn registry(spec: &Value) -> Value {
    let mut p = Map::new();
    carry(&mut p, spec, &[("description", "description"), ("intellectual_property", "intellectualPropertyPublisher")]);
    put(&mut p, "publicNetworkAccess", word(spec, "public_network_access").map(|word| json!(capital(word))));
    let places = some(spec, "replication_locations").and_then(Value::as_array).into_iter().flatten();
    let place = |one: &Value| {
        let mut made = Map::new();
        carry(&mut made, one, &[("location", "location")]);
        Value::Object(made)
    };
    put(&mut p, "regionDetails", places.map(place).collect::<Value>());
    let mut out = Map::new();
    carry(&mut out, spec, &[("location", "location")]);
    put(&mut out, "identity", json!({"type": "SystemAssigned"}));
    put(&mut out, "tags", labels(spec, "tags"));
    put(&mut out, "properties", Value::Object(p));
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_has_bounds_even_where_the_file_has_none() {
        let made = compute(&json!({"type": "amlcompute", "tier": "low_priority"}), "here");
        let inner = &made["properties"]["properties"];
        assert_eq!(inner["scaleSettings"]["maxNodeCount"], 4);
        assert_eq!(inner["scaleSettings"]["nodeIdleTimeBeforeScaleDown"], "PT2M");
        assert_eq!((&inner["vmPriority"], &made["location"]), (&json!("LowPriority"), &json!("here")));
    }

    #[test]
    fn labels_of_machines_are_spelled_as_they_were() {
        let provider = json!({"type": "kubernetes", "agent_image": "p:1", "node_selector": {"my_pool": "a_b"},
            "tolerations": [{"key": "my_taint", "toleration_seconds": 5}]});
        let made = compute(&json!({"type": "amlcompute", "provider": provider}), "here");
        let sent = &made["properties"]["properties"]["nodeProvider"];
        assert_eq!((&sent["agentImage"], &sent["nodeSelector"]), (&json!("p:1"), &json!({"my_pool": "a_b"})));
        assert_eq!(sent["tolerations"][0], json!({"key": "my_taint", "tolerationSeconds": 5}));
    }

    #[test]
    fn a_cluster_is_shown_in_the_words_of_its_file() {
        let spec = json!({"type": "amlcompute", "size": "S", "tier": "low_priority", "min_instances": 1, "max_instances": 3,
            "idle_time_before_scale_down": 90});
        let mut resource = compute(&spec, "here");
        resource["name"] = json!("c");
        let shown = show_compute(&resource);
        for (key, value) in entries(&spec) {
            assert_eq!(&shown[key], value, "{key}");
        }
    }

    #[test]
    fn kinds_of_our_own_keep_their_words() {
        let made =
            compute(&json!({"type": "local", "isolation": "required", "instance_types": {"gpu_small": {}}}), "here");
        assert_eq!(made["properties"]["computeType"], "Local");
        assert_eq!(made["properties"]["properties"]["instanceTypes"], json!({"gpu_small": {}}));
    }
}
