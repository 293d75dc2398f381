//! Command jobs: `properties` of the resource, to and from [`CommandJob`].

mod kinds;
mod words;

pub use kinds::parent_kind;
pub use words::{distribution_of, resources_of, service_of};

use super::{put, scalar, text, texts, tree::entries};
use domain::{
    assignment::{InputMode, OutputMode},
    spec::{
        CommandJob, DataInput, DataType, Distribution, EnvironmentRef, Identity, Input, JobResources, Limits, Mistake,
        Output, Priority, QueueSettings, Service,
    },
    time,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};

/// The body of a `PUT`: what the client wants run. Inline environments and local paths must be
/// references by now.
pub fn body(job: &CommandJob) -> Value {
    let mut p = Map::new();
    put(&mut p, "jobType", json!("Command"));
    put(&mut p, "displayName", job.display_name.clone().map(Value::from));
    put(&mut p, "experimentName", job.experiment_name.clone().map(Value::from));
    put(&mut p, "description", job.description.clone().map(Value::from));
    put(&mut p, "tags", json!(job.tags));
    put(&mut p, "properties", json!(job.properties));
    put(&mut p, "isArchived", json!(false));
    put(&mut p, "command", json!(job.command));
    put(&mut p, "codeId", job.code.clone().map(Value::from));
    if let Some(EnvironmentRef::Named(reference)) = &job.environment {
        put(&mut p, "environmentId", json!(reference));
    }
    put(&mut p, "environmentVariables", json!(job.environment_variables));
    put(&mut p, "computeId", job.compute.clone().map(Value::from));
    put(&mut p, "distribution", job.distribution.as_ref().map(distribution_body));
    put(&mut p, "resources", (!job.resources.is_default()).then(|| resources_body(&job.resources)));
    if let Some(seconds) = job.limits.timeout {
        let timeout = time::iso_duration(Duration::from_secs(seconds));
        put(&mut p, "limits", json!({"jobLimitsType": "Command", "timeout": timeout}));
    }
    put(&mut p, "inputs", job.inputs.iter().map(|(n, i)| (n.clone(), input_body(i))).collect::<Value>());
    put(&mut p, "outputs", job.outputs.iter().map(|(n, o)| (n.clone(), output_body(o))).collect::<Value>());
    let services = || job.services.iter().map(|(n, s)| (n.clone(), service_body(s))).collect::<Value>();
    put(&mut p, "services", (!job.services.is_empty()).then(services));
    put(&mut p, "queueSettings", queue_body(&job.queue_settings));
    put(&mut p, "identity", job.identity.as_ref().map(identity_body));
    Value::Object(p)
}

/// Reads a body; all that is wrong with its shape, at once.
pub fn spec(body: &Value) -> Result<CommandJob, Vec<Mistake>> {
    let mut bad = Vec::new();
    if !body.is_object() {
        return Err(vec![Mistake::new("properties", "must be an object", "send the job under `properties`")]);
    }
    bad.extend(kinds::mistakes(body));
    if !kinds::runs(body) {
        return Err(bad);
    }
    let job = CommandJob {
        display_name: text(body, "displayName"),
        experiment_name: text(body, "experimentName"),
        description: text(body, "description"),
        tags: texts(body, "tags"),
        properties: texts(body, "properties"),
        command: text(body, "command").unwrap_or_default(),
        code: text(body, "codeId"),
        environment: text(body, "environmentId").map(EnvironmentRef::Named),
        environment_variables: texts(body, "environmentVariables"),
        distribution: body.get("distribution").filter(|d| !d.is_null()).and_then(|d| distribution(d, &mut bad)),
        // The Python client wraps `azureml:name` in an id as it stands.
        compute: text(body, "computeId").map(|id| id.replace("/computes/azureml:", "/computes/")),
        resources: resources(body.get("resources")),
        limits: limits(body.get("limits"), &mut bad),
        inputs: each(body, "inputs", &mut bad, input),
        outputs: each(body, "outputs", &mut bad, output),
        services: each(body, "services", &mut bad, service),
        queue_settings: queue(body.get("queueSettings"), &mut bad),
        identity: body.get("identity").filter(|i| !i.is_null()).map(identity),
        ..CommandJob::default()
    };
    if bad.is_empty() { Ok(job) } else { Err(bad) }
}

fn each<T>(
    body: &Value,
    key: &str,
    bad: &mut Vec<Mistake>,
    read: impl Fn(&str, &Value, &mut Vec<Mistake>) -> Option<T>,
) -> BTreeMap<String, T> {
    let Some(Value::Object(map)) = body.get(key) else { return BTreeMap::new() };
    map.iter().filter_map(|(name, value)| Some((name.clone(), read(name, value, bad)?))).collect()
}

fn input(name: &str, value: &Value, bad: &mut Vec<Mistake>) -> Option<Input> {
    let key = format!("inputs.{name}");
    let kind = text(value, "jobInputType").unwrap_or_else(|| "literal".into());
    if kind == "literal" {
        return value.get("value").and_then(scalar).map(|text| Input::Literal(Value::String(text)));
    }
    let kind = word(&key, &kind, DATA_TYPES, bad)?;
    let mode = match text(value, "mode") {
        Some(mode) => Some(word(&key, &mode, INPUT_MODES, bad)?),
        None => None,
    };
    let Some(path) = text(value, "uri").filter(|uri| !uri.is_empty()) else {
        bad.push(Mistake::new(key, "has no `uri`", "give the data's address"));
        return None;
    };
    Some(Input::Data(DataInput { kind, path, mode }))
}

fn output(name: &str, value: &Value, bad: &mut Vec<Mistake>) -> Option<Output> {
    let key = format!("outputs.{name}");
    let kind = text(value, "jobOutputType").unwrap_or_else(|| "uri_folder".into());
    let mode = match text(value, "mode") {
        Some(mode) => Some(word(&key, &mode, OUTPUT_MODES, bad)?),
        None => None,
    };
    Some(Output {
        kind: word(&key, &kind, DATA_TYPES, bad)?,
        path: text(value, "uri"),
        mode,
        name: text(value, "assetName"),
        version: text(value, "assetVersion"),
        description: text(value, "description"),
        tags: texts(value, "tags"),
    })
}

fn input_body(input: &Input) -> Value {
    match input {
        Input::Literal(value) => json!({"jobInputType": "literal", "value": scalar(value).unwrap_or_default()}),
        Input::Data(data) => {
            let mut map = Map::new();
            put(&mut map, "jobInputType", json!(data.kind.as_str()));
            put(&mut map, "uri", json!(data.path));
            put(&mut map, "mode", data.mode.map(|m| json!(wire(m, INPUT_MODES))));
            Value::Object(map)
        }
    }
}

fn output_body(output: &Output) -> Value {
    let mut map = Map::new();
    put(&mut map, "jobOutputType", json!(output.kind.as_str()));
    put(&mut map, "uri", output.path.clone().map(Value::from));
    put(&mut map, "mode", output.mode.map(|m| json!(wire(m, OUTPUT_MODES))));
    put(&mut map, "assetName", output.name.clone().map(Value::from));
    put(&mut map, "assetVersion", output.version.clone().map(Value::from));
    put(&mut map, "description", output.description.clone().map(Value::from));
    put(&mut map, "tags", (!output.tags.is_empty()).then(|| json!(output.tags)));
    Value::Object(map)
}

const SERVICES: &[(&str, &str)] = &[
    ("jupyter_lab", "JupyterLab"),
    ("vs_code", "VSCode"),
    ("tensor_board", "TensorBoard"),
    ("ssh", "SSH"),
    ("custom", "Custom"),
];

/// The services of a job's body by name, without those that the server adds.
pub fn services(body: &Value) -> BTreeMap<String, Service> {
    each(body, "services", &mut Vec::new(), service)
}

fn service(_: &str, value: &Value, _: &mut Vec<Mistake>) -> Option<Service> {
    let wire = text(value, "jobServiceType")?;
    if wire == "Tracking" || wire == "Studio" {
        return None;
    }
    let kind = SERVICES.iter().find(|(_, w)| *w == wire).map_or(wire.clone(), |(ours, _)| (*ours).to_owned());
    let mut settings: BTreeMap<String, Value> = BTreeMap::new();
    for key in ["port", "nodes", "properties"] {
        if let Some(value) = value.get(key).filter(|v| !v.is_null()) {
            let all = value.get("nodesValueType").is_some_and(|kind| kind == "All");
            settings.insert(key.to_owned(), if all { json!("all") } else { value.clone() });
        }
    }
    Some(Service { kind: Some(kind), settings })
}

fn service_body(service: &Service) -> Value {
    let ours = service.kind.as_deref().unwrap_or("custom");
    let wire = SERVICES.iter().find(|(o, _)| *o == ours).map_or(ours, |(_, w)| w);
    let mut map = Map::new();
    put(&mut map, "jobServiceType", json!(wire));
    let mut properties = Map::new();
    for (key, value) in &service.settings {
        match key.as_str() {
            "port" => put(&mut map, "port", value.clone()),
            "nodes" if value == "all" => put(&mut map, "nodes", json!({"nodesValueType": "All"})),
            "nodes" | "properties" => put(&mut map, key, value.clone()),
            "log_dir" => put(&mut properties, "logDir", value.clone()),
            "ssh_public_keys" => put(&mut properties, "sshPublicKeys", value.clone()),
            other => put(&mut properties, other, value.clone()),
        }
    }
    if !properties.is_empty() {
        put(&mut map, "properties", Value::Object(properties));
    }
    Value::Object(map)
}

fn resources(value: Option<&Value>) -> JobResources {
    let Some(value) = value else { return JobResources::default() };
    let count = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    JobResources {
        instance_count: count("instanceCount"),
        instance_type: text(value, "instanceType"),
        shm_size: text(value, "shmSize"),
        docker_args: match value.get("dockerArgs") {
            Some(Value::String(one)) => one.split_whitespace().map(str::to_owned).collect(),
            Some(Value::Array(many)) => many.iter().filter_map(scalar).collect(),
            _ => Vec::new(),
        },
        max_instance_count: count("maxInstanceCount"),
        locations: match value.get("locations") {
            Some(Value::Array(many)) => many.iter().filter_map(scalar).collect(),
            _ => Vec::new(),
        },
        properties: match value.get("properties") {
            Some(Value::Object(map)) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            _ => BTreeMap::new(),
        },
    }
}

fn resources_body(resources: &JobResources) -> Value {
    let mut map = Map::new();
    put(&mut map, "instanceCount", resources.instance_count.map(Value::from));
    put(&mut map, "instanceType", resources.instance_type.clone().map(Value::from));
    put(&mut map, "shmSize", resources.shm_size.clone().map(Value::from));
    put(&mut map, "dockerArgs", (!resources.docker_args.is_empty()).then(|| json!(resources.docker_args.join(" "))));
    put(&mut map, "maxInstanceCount", resources.max_instance_count.map(Value::from));
    put(&mut map, "locations", (!resources.locations.is_empty()).then(|| json!(resources.locations)));
    put(&mut map, "properties", json!(resources.properties));
    Value::Object(map)
}

fn limits(value: Option<&Value>, bad: &mut Vec<Mistake>) -> Limits {
    let Some(iso) = value.and_then(|v| text(v, "timeout")) else { return Limits::default() };
    match time::parse_iso_duration(&iso) {
        Some(duration) => Limits { timeout: Some(duration.as_secs().max(1)) },
        None => {
            bad.push(Mistake::new(
                "limits.timeout",
                format!("`{iso}` is not an ISO 8601 duration"),
                "write it like `PT10M`",
            ));
            Limits::default()
        }
    }
}

fn distribution(value: &Value, bad: &mut Vec<Mistake>) -> Option<Distribution> {
    let count = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    Some(match text(value, "distributionType").unwrap_or_default().as_str() {
        "PyTorch" => Distribution::PyTorch { process_count_per_instance: count("processCountPerInstance") },
        "Mpi" => Distribution::Mpi { process_count_per_instance: count("processCountPerInstance") },
        "TensorFlow" => Distribution::TensorFlow {
            worker_count: count("workerCount"),
            parameter_server_count: count("parameterServerCount"),
        },
        "Ray" => Distribution::Ray {
            settings: entries(value)
                .filter(|(key, value)| *key != "distributionType" && !value.is_null())
                .map(|(key, value)| (super::datastore::snake(key), value.clone()))
                .collect(),
        },
        other => {
            let message = format!("`{other}` is not a distribution");
            bad.push(Mistake::new("distribution.distributionType", message, "one of PyTorch, TensorFlow, Mpi, Ray"));
            return None;
        }
    })
}

fn distribution_body(distribution: &Distribution) -> Value {
    match distribution {
        Distribution::PyTorch { process_count_per_instance: n } => per_instance("PyTorch", *n),
        Distribution::Mpi { process_count_per_instance: n } => per_instance("Mpi", *n),
        Distribution::TensorFlow { worker_count, parameter_server_count } => {
            let servers = parameter_server_count.unwrap_or(0);
            let mut map = Map::from_iter([("distributionType".to_owned(), json!("TensorFlow"))]);
            put(&mut map, "parameterServerCount", json!(servers));
            put(&mut map, "workerCount", worker_count.map(Value::from));
            Value::Object(map)
        }
        Distribution::Ray { settings } => {
            let mut map = Map::from_iter(settings.clone());
            put(&mut map, "distributionType", json!("Ray"));
            Value::Object(map)
        }
    }
}

fn per_instance(kind: &str, count: Option<u32>) -> Value {
    let mut map = Map::from_iter([("distributionType".to_owned(), json!(kind))]);
    put(&mut map, "processCountPerInstance", count.map(Value::from));
    Value::Object(map)
}

fn queue(value: Option<&Value>, bad: &mut Vec<Mistake>) -> QueueSettings {
    let Some(value) = value else { return QueueSettings::default() };
    let priority = match value.get("priority") {
        None | Some(Value::Null) => None,
        Some(Value::Number(n)) => match n.as_i64() {
            Some(1) => Some(Priority::Low),
            Some(2) => Some(Priority::Medium),
            Some(3) => Some(Priority::High),
            _ => {
                bad.push(Mistake::new("queueSettings.priority", format!("`{n}` is not a priority"), "1, 2 or 3"));
                None
            }
        },
        Some(other) => serde_json::from_value(json!(scalar(other).unwrap_or_default().to_lowercase())).ok(),
    };
    QueueSettings { job_tier: text(value, "jobTier").map(|t| t.to_lowercase()), priority }
}

fn queue_body(queue: &QueueSettings) -> Option<Value> {
    if queue.is_default() {
        return None;
    }
    let mut map = Map::new();
    put(&mut map, "jobTier", queue.job_tier.as_deref().map(|t| json!(capital(t))));
    put(&mut map, "priority", queue.priority.map(|p| json!(p as i64 + 1)));
    Some(Value::Object(map))
}

const IDENTITIES: &[(&str, &str)] = &[
    ("aml_token", "AMLToken"),
    ("managed_identity", "Managed"),
    ("managed", "Managed"),
    ("user_identity", "UserIdentity"),
];

fn identity(value: &Value) -> Identity {
    let wire = text(value, "identityType").unwrap_or_default();
    let kind = IDENTITIES.iter().find(|(_, w)| *w == wire).map_or(wire.clone(), |(ours, _)| (*ours).to_owned());
    Identity { kind, settings: BTreeMap::new() }
}

fn identity_body(identity: &Identity) -> Value {
    let wire = IDENTITIES.iter().find(|(ours, _)| *ours == identity.kind).map_or(identity.kind.as_str(), |(_, w)| w);
    json!({"identityType": wire})
}

const DATA_TYPES: &[(DataType, &str)] = &[
    (DataType::UriFile, "uri_file"),
    (DataType::UriFolder, "uri_folder"),
    (DataType::MlTable, "mltable"),
    (DataType::MlflowModel, "mlflow_model"),
    (DataType::CustomModel, "custom_model"),
    (DataType::TritonModel, "triton_model"),
];
const INPUT_MODES: &[(InputMode, &str)] = &[
    (InputMode::RoMount, "ReadOnlyMount"),
    (InputMode::RwMount, "ReadWriteMount"),
    (InputMode::Download, "Download"),
    (InputMode::Direct, "Direct"),
    (InputMode::EvalMount, "EvalMount"),
    (InputMode::EvalDownload, "EvalDownload"),
];
const OUTPUT_MODES: &[(OutputMode, &str)] =
    &[(OutputMode::RwMount, "ReadWriteMount"), (OutputMode::Upload, "Upload"), (OutputMode::Direct, "Direct")];

fn word<T: Copy>(key: &str, text: &str, words: &[(T, &str)], bad: &mut Vec<Mistake>) -> Option<T> {
    if let Some((value, _)) = words.iter().find(|(_, word)| word.eq_ignore_ascii_case(text)) {
        return Some(*value);
    }
    let known: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
    bad.push(Mistake::new(key, format!("`{text}` is not known here"), format!("one of {}", known.join(", "))));
    None
}

fn wire<T: Copy + PartialEq>(value: T, words: &[(T, &'static str)]) -> &'static str {
    words.iter().find(|(known, _)| *known == value).map_or("", |(_, word)| word)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_the_wire() {
        let yaml = json!({
            "command": "python a.py --lr ${{inputs.lr}} --data ${{inputs.d}}",
            "code": "/c/1", "environment": "azureml:e:1", "compute": "azureml:local",
            "inputs": {"lr": "0.1", "d": {"type": "uri_file", "path": "azureml://datastores/x/paths/a", "mode": "download"}},
            "outputs": {"o": {"type": "uri_folder", "mode": "upload", "name": "m"}},
            "limits": {"timeout": 600}, "queue_settings": {"priority": "high", "job_tier": "standard"},
            "resources": {"instance_count": 2, "instance_type": "gpu", "shm_size": "2g"},
            "distribution": {"type": "pytorch", "process_count_per_instance": 2},
            "tags": {"a": "b"}, "environment_variables": {"K": "V"}, "identity": {"type": "user_identity"},
            "services": {"lab": {"type": "jupyter_lab", "nodes": "all"}, "own": {"type": "custom", "port": 80, "nodes": "0"}},
        });
        let job: CommandJob = serde_json::from_value(yaml).unwrap();
        let back = spec(&body(&job)).unwrap();
        assert_eq!(back, job);
    }

    #[test]
    fn every_mistake_of_a_body_is_told_at_once() {
        let bad = spec(&json!({
            "jobType": "Command", "limits": {"timeout": "10"}, "inputs": {"d": {"jobInputType": "folder", "uri": "x"}},
            "distribution": {"distributionType": "Carrier"},
        }))
        .unwrap_err();
        assert_eq!(bad.len(), 3, "{bad:?}");
    }
}
