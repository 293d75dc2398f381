//! Online and batch endpoints, and the deployments behind them.

use super::{
    put,
    tree::{carry, entries, iso_millis, iso_seconds, labels, map_or_empty, python, some, word},
};
use serde_json::{Map, Value, json};

/// The body of an online endpoint.
pub fn online(spec: &Value, location: &str) -> Value {
    let mut p = Map::new();
    let mode = match word(spec, "auth_mode").unwrap_or("key").to_lowercase().as_str() {
        "aml_token" | "amltoken" => "AMLToken",
        "aad_token" | "aadtoken" => "AADToken",
        _ => "Key",
    };
    put(&mut p, "authMode", json!(mode));
    carry(&mut p, spec, &[("description", "description"), ("compute", "compute")]);
    put(&mut p, "properties", labels(spec, "properties"));
    put(&mut p, "traffic", map_or_empty(spec, "traffic"));
    put(&mut p, "mirrorTraffic", map_or_empty(spec, "mirror_traffic"));
    put(&mut p, "publicNetworkAccess", some(spec, "public_network_access").cloned());
    let identity = some(spec, "identity").map_or_else(|| json!({"type": "SystemAssigned"}), resource_identity);
    json!({"location": location_of(spec, location), "tags": labels(spec, "tags"), "identity": identity, "properties": p})
}

/// The body of a batch endpoint.
pub fn batch(spec: &Value, location: &str) -> Value {
    let mut p = Map::new();
    put(&mut p, "authMode", json!("aadToken"));
    carry(&mut p, spec, &[("description", "description")]);
    put(&mut p, "properties", labels(spec, "properties"));
    let default = some(spec, "defaults").and_then(|defaults| some(defaults, "deployment_name"));
    put(&mut p, "defaults", default.map(|name| json!({"deploymentName": name})));
    json!({"location": location_of(spec, location), "tags": labels(spec, "tags"), "properties": p})
}

/// The body of an online deployment; model, code and environment must be references by now.
pub fn online_deployment(spec: &Value, location: &str) -> Value {
    let mut p = Map::new();
    let kubernetes = word(spec, "type") == Some("kubernetes");
    put(&mut p, "endpointComputeType", json!(if kubernetes { "Kubernetes" } else { "Managed" }));
    let same = [("description", "description"), ("model", "model"), ("environment", "environmentId")];
    carry(&mut p, spec, &same);
    carry(&mut p, spec, &[("model_mount_path", "modelMountPath"), ("instance_type", "instanceType")]);
    put(&mut p, "codeConfiguration", some(spec, "code_configuration").map(code_configuration));
    put(&mut p, "environmentVariables", labels(spec, "environment_variables"));
    put(&mut p, "properties", labels(spec, "properties"));
    put(&mut p, "appInsightsEnabled", json!(some(spec, "app_insights_enabled") == Some(&json!(true))));
    put(&mut p, "scaleSettings", some(spec, "scale_settings").map(scale));
    put(&mut p, "requestSettings", some(spec, "request_settings").map(request));
    for (ours, wire) in
        [("liveness_probe", "livenessProbe"), ("readiness_probe", "readinessProbe"), ("startup_probe", "startupProbe")]
    {
        put(&mut p, wire, some(spec, ours).map(probe));
    }
    put(&mut p, "dataCollector", some(spec, "data_collector").map(data_collector));
    if kubernetes {
        put(&mut p, "containerResourceRequirements", some(spec, "resources").map(container_resources));
    } else {
        put(&mut p, "egressPublicNetworkAccess", some(spec, "egress_public_network_access").cloned());
    }
    let mut sku = Map::from_iter([("name".to_owned(), json!("Default"))]);
    put(&mut sku, "capacity", some(spec, "instance_count").cloned());
    json!({"location": location_of(spec, location), "tags": labels(spec, "tags"), "sku": sku, "properties": p})
}

/// The body of a batch deployment that scores a model.
pub fn batch_deployment(spec: &Value, location: &str) -> Value {
    let empty = json!({});
    // Newer files put these under `settings`, older ones at the top.
    let settings = some(spec, "settings").unwrap_or(&empty);
    let find = |key: &str| some(settings, key).or_else(|| some(spec, key));
    let mut p = Map::new();
    carry(&mut p, spec, &[("description", "description"), ("compute", "compute"), ("environment", "environmentId")]);
    put(&mut p, "model", some(spec, "model").map(|model| json!({"referenceType": "Id", "assetId": model})));
    put(&mut p, "codeConfiguration", some(spec, "code_configuration").map(code_configuration));
    for (ours, wire) in [
        ("mini_batch_size", "miniBatchSize"),
        ("max_concurrency_per_instance", "maxConcurrencyPerInstance"),
        ("error_threshold", "errorThreshold"),
        ("output_file_name", "outputFileName"),
        ("logging_level", "loggingLevel"),
    ] {
        put(&mut p, wire, find(ours).cloned());
    }
    let action = find("output_action").and_then(Value::as_str);
    put(
        &mut p,
        "outputAction",
        action.map(|word| json!(if word == "summary_only" { "SummaryOnly" } else { "AppendRow" })),
    );
    put(&mut p, "retrySettings", find("retry_settings").map(retry));
    put(&mut p, "resources", some(spec, "resources").map(super::job::resources_of));
    let variables = find("environment_variables").map(|_| {
        labels(if some(settings, "environment_variables").is_some() { settings } else { spec }, "environment_variables")
    });
    put(&mut p, "environmentVariables", variables);
    put(&mut p, "properties", labels(spec, "properties"));
    json!({"location": location_of(spec, location), "tags": labels(spec, "tags"), "properties": p})
}

/// The body of a batch deployment that runs a pipeline component.
///
/// `defined` is the component's own definition, where the file has it.
pub fn batch_pipeline(spec: &Value, component: &str, defined: Option<&Value>, location: &str) -> Value {
    let mut configuration = Map::new();
    put(&mut configuration, "deploymentConfigurationType", json!("PipelineComponent"));
    put(&mut configuration, "componentId", json!({"referenceType": "Id", "assetId": component}));
    put(&mut configuration, "settings", map_or_empty(spec, "settings"));
    if let Some(defined) = defined {
        put(&mut configuration, "description", some(defined, "description").cloned());
        put(&mut configuration, "tags", labels(defined, "tags"));
    }
    let mut p = Map::new();
    put(&mut p, "description", some(spec, "description").cloned());
    put(&mut p, "deploymentConfiguration", Value::Object(configuration));
    for (key, value) in [("errorThreshold", -1), ("maxConcurrencyPerInstance", 1), ("miniBatchSize", 10)] {
        put(&mut p, key, json!(value));
    }
    put(&mut p, "outputFileName", json!("predictions.csv"));
    json!({"location": location_of(spec, location), "tags": labels(spec, "tags"), "properties": p})
}

fn location_of(spec: &Value, location: &str) -> String {
    word(spec, "location").unwrap_or(location).to_owned()
}

fn code_configuration(value: &Value) -> Value {
    let mut out = Map::new();
    carry(&mut out, value, &[("code", "codeId"), ("scoring_script", "scoringScript")]);
    Value::Object(out)
}

fn scale(value: &Value) -> Value {
    if word(value, "type") != Some("target_utilization") {
        return json!({"scaleType": "Default"});
    }
    let mut out = Map::from_iter([("scaleType".to_owned(), json!("TargetUtilization"))]);
    carry(&mut out, value, &[("min_instances", "minInstances"), ("max_instances", "maxInstances")]);
    carry(&mut out, value, &[("target_utilization_percentage", "targetUtilizationPercentage")]);
    put(&mut out, "pollingInterval", some(value, "polling_interval").map(iso_seconds));
    Value::Object(out)
}

fn request(value: &Value) -> Value {
    let mut out = Map::new();
    let most = [("max_concurrent_requests_per_instance", "maxConcurrentRequestsPerInstance")];
    carry(&mut out, value, &most);
    for (ours, wire) in [("request_timeout_ms", "requestTimeout"), ("max_queue_wait_ms", "maxQueueWait")] {
        put(&mut out, wire, some(value, ours).map(iso_millis));
    }
    Value::Object(out)
}

fn probe(value: &Value) -> Value {
    let mut out = Map::new();
    carry(&mut out, value, &[("failure_threshold", "failureThreshold"), ("success_threshold", "successThreshold")]);
    for (ours, wire) in [("initial_delay", "initialDelay"), ("period", "period"), ("timeout", "timeout")] {
        put(&mut out, wire, some(value, ours).map(iso_seconds));
    }
    Value::Object(out)
}

fn retry(value: &Value) -> Value {
    let mut out = Map::new();
    put(&mut out, "maxRetries", some(value, "max_retries").cloned());
    put(&mut out, "timeout", some(value, "timeout").map(iso_seconds));
    Value::Object(out)
}

fn container_resources(value: &Value) -> Value {
    let amounts = |side: &Value| {
        let mut out = Map::new();
        for (ours, wire) in [("cpu", "cpu"), ("memory", "memory"), ("nvidia.com/gpu", "gpu")] {
            put(&mut out, wire, some(side, ours).and_then(python).map(Value::from));
        }
        Value::Object(out)
    };
    let mut out = Map::new();
    put(&mut out, "containerResourceRequests", some(value, "requests").map(amounts));
    put(&mut out, "containerResourceLimits", some(value, "limits").map(amounts));
    Value::Object(out)
}

fn data_collector(value: &Value) -> Value {
    let mut out = Map::new();
    let collection = |one: &Value| {
        let mut made = Map::new();
        let on = some(one, "enabled").and_then(python).is_some_and(|text| text.eq_ignore_ascii_case("true"));
        put(&mut made, "dataCollectionMode", json!(if on { "enabled" } else { "disabled" }));
        put(&mut made, "samplingRate", some(one, "sampling_rate").cloned());
        put(&mut made, "dataId", some(one, "data").cloned());
        Value::Object(made)
    };
    let all = entries(some(value, "collections").unwrap_or(&Value::Null));
    put(&mut out, "collections", all.map(|(name, one)| (name.clone(), collection(one))).collect::<Value>());
    put(&mut out, "rollingRate", some(value, "rolling_rate").cloned());
    if let Some(logging) = some(value, "request_logging") {
        put(&mut out, "requestLogging", json!({"captureHeaders": logging["capture_headers"]}));
    }
    Value::Object(out)
}

/// The identity of a resource, as compute targets and endpoints have it.
pub(crate) fn resource_identity(value: &Value) -> Value {
    let kind = match word(value, "type").unwrap_or_default().to_lowercase().replace('_', "").as_str() {
        "userassigned" => "UserAssigned",
        "none" => "None",
        "systemassigned,userassigned" => "SystemAssigned,UserAssigned",
        _ => "SystemAssigned",
    };
    let mut out = Map::from_iter([("type".to_owned(), json!(kind))]);
    let ids = some(value, "user_assigned_identities").and_then(Value::as_array).into_iter().flatten();
    let ids: Map<String, Value> =
        ids.filter_map(|one| Some((word(one, "resource_id").or(one.as_str())?.to_owned(), json!({})))).collect();
    put(&mut out, "userAssignedIdentities", (!ids.is_empty()).then_some(Value::Object(ids)));
    Value::Object(out)
}

/// `enabled` as `Enabled`.
pub(crate) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_names_its_durations_in_iso() {
        let made = online_deployment(
            &json!({"type": "kubernetes", "instance_count": 2, "model": "/m",
                "request_settings": {"request_timeout_ms": 3000, "max_queue_wait_ms": 100},
                "liveness_probe": {"period": 10, "failure_threshold": 3},
                "resources": {"requests": {"cpu": 0.1, "memory": "1Gi", "nvidia.com/gpu": 1}}}),
            "here",
        );
        let p = &made["properties"];
        assert_eq!(p["requestSettings"], json!({"requestTimeout": "PT3S", "maxQueueWait": "PT0.1S"}));
        assert_eq!(p["livenessProbe"], json!({"failureThreshold": 3, "period": "PT10S"}));
        let asked = &p["containerResourceRequirements"]["containerResourceRequests"];
        assert_eq!(*asked, json!({"cpu": "0.1", "memory": "1Gi", "gpu": "1"}));
        assert_eq!(made["sku"], json!({"name": "Default", "capacity": 2}));
    }

    #[test]
    fn older_and_newer_batch_files_say_the_same() {
        let newer = json!({"model": "/m", "settings": {"mini_batch_size": 2, "output_action": "summary_only"}});
        let older = json!({"model": "/m", "mini_batch_size": 2, "output_action": "summary_only"});
        assert_eq!(batch_deployment(&newer, "l"), batch_deployment(&older, "l"));
        assert_eq!(batch_deployment(&newer, "l")["properties"]["outputAction"], "SummaryOnly");
    }
}
