//! Deployments: what a replica is to run, and how many there are, from what a record says.
//!
//! A replica's plan is that of a command job without a command: code, environment, model and target are looked up the same
//! way. What is new is how it is reached and judged.

use super::{Lookup, Resolved, body_text};
use crate::app::App;
use api::arm::AssetRef;
use domain::{
    JobName, Place, Plan, PlannedInput, Probe, Resources, Serving, ServingKind,
    assignment::InputMode,
    resources::{parse_bytes, parse_cpu},
    serving::{Scale, ServingSettings},
    spec::{CommandJob, DataType, EnvironmentRef, Input, Mistake, nouns::DataInput, routes::RequestSettings},
    time::parse_iso_duration,
};
use serde_json::Value;
use std::time::Duration;
use store::{AssetRow, RecordKey, Tx, WorkspaceRow};

/// What this machine sets aside for a replica that does not say what it needs: replicas mostly wait, and share it.
const CPU_MILLI: u64 = 100;
/// Where scripts of Azure's look for models.
const MODELS: &str = "/var/azureml-app/azureml-models";
/// What the public inference server listens on and answers at.
const USUAL_ROUTE: (u64, &str) = (5001, "/score");

/// Where a deployment says what a custom container is to run.
const COMMAND: &str = "peregrine.command";
/// How long a replica that has to go may finish what it has begun to answer.
const DRAIN: &str = "peregrine.drain_seconds";
/// How long nothing is asked for before the last replica goes.
const IDLE: &str = "peregrine.idle_seconds";
/// What makes a cluster one that serves.
const ENABLE: &str = "run `peregrine extension upgrade --config enableInference=True inferenceRouterServiceType=loadBalancer \
                      sslSecret=NAME sslCname=HOST` with the cluster's kubeconfig (for plain http `allowInsecureConnections=True` \
                      instead of the last two), or serve here: leave `compute` out of the endpoint";

/// What serves for a deployment.
pub(crate) struct Served {
    pub(crate) plan: Plan,
    pub(crate) settings: ServingSettings,
    pub(crate) target: String,
    pub(crate) cluster: String,
}

/// A deployment's record, with that of its endpoint.
pub(crate) struct Deployment<'b> {
    pub(crate) key: &'b RecordKey,
    pub(crate) body: &'b Value,
    pub(crate) endpoint: &'b Value,
}

/// What is to serve, or all that stands in its way.
pub(crate) fn serving(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    deployment: &Deployment<'_>,
) -> Result<Result<Served, Vec<Mistake>>, store::Error> {
    let mut lookup = Lookup { app, workspace, tx, to_share: false, datastore: None, bad: Vec::new() };
    let served = lookup.deployment(deployment)?;
    Ok(if lookup.bad.is_empty() { Ok(served) } else { Err(lookup.bad) })
}

/// What is known of a model before it is fetched.
#[derive(Default)]
struct Model {
    named: Option<(String, String)>,
    is_mlflow: bool,
}

impl Lookup<'_, '_> {
    fn deployment(&mut self, deployment: &Deployment<'_>) -> Result<Served, store::Error> {
        let properties = &deployment.body["properties"];
        let spec = job_of(properties, deployment.endpoint);
        let name = JobName::parse("replica").expect("the word is a name");
        let Resolved { mut plan, target, cluster, .. } = self.resolve(&name, &spec)?;
        for mistake in &mut self.bad {
            mistake.key = match mistake.key.as_str() {
                "inputs.model" => "properties.model".to_owned(),
                "code" => "properties.codeConfiguration.codeId".to_owned(),
                "environment" => "properties.environmentId".to_owned(),
                "resources.instance_type" | "resources" => "properties.instanceType".to_owned(),
                _ => std::mem::take(&mut mistake.key),
            };
        }
        self.serves(&target, &cluster)?;
        if let Some(PlannedInput::Data { place: Place::Folder { path }, file, .. }) = plan.inputs.get_mut("model") {
            *file = path.is_file();
        }
        let inference = self.inference_config(properties)?;
        let model = self.model(properties, &plan)?;
        let Some(kind) = self.kind(properties, &inference, &model, &plan) else {
            let settings = settings(deployment.body, &Serving::default());
            return Ok(Served { plan, settings, target, cluster });
        };
        if let (ServingKind::Container, Some(script)) = (&kind, script(properties)) {
            plan.variables.entry("AZUREML_ENTRY_SCRIPT".to_owned()).or_insert(script.to_owned());
        }
        if kind == ServingKind::Container {
            plan.command = self.command(properties, &cluster);
        }
        share(&mut plan, properties, cluster == store::HERE);
        let serve = Serving {
            endpoint: deployment.key.parent.clone(),
            deployment: deployment.key.name.clone(),
            port: inference["scoringRoute"]["port"].as_u64().and_then(|port| u16::try_from(port).ok()),
            scoring_path: inference["scoringRoute"]["path"].as_str().unwrap_or(USUAL_ROUTE.1).to_owned(),
            liveness: probe(&properties["livenessProbe"], &inference["livenessRoute"]),
            readiness: Probe {
                initial_delay_ms: millis(&properties["readinessProbe"]["initialDelay"]).unwrap_or(0),
                ..probe(&properties["readinessProbe"], &inference["readinessRoute"])
            },
            start_seconds: self.seconds(properties, "peregrine.deploy_timeout_seconds", 600),
            kind,
            model_mount: model.named.map(|(name, version)| {
                let folder = properties["modelMountPath"].as_str().unwrap_or(MODELS).trim_end_matches('/');
                format!("{folder}/{name}/{version}")
            }),
        };
        self.seconds(properties, DRAIN, 300);
        if label(properties, IDLE).is_some_and(|text| text.parse::<u64>().is_err()) {
            self.mistake(format!("properties.properties.{IDLE}"), "it is not a number of seconds", "such as `\"300\"`");
        }
        let settings = settings(deployment.body, &serve);
        plan.serve = Some(serve);
        Ok(Served { plan, settings, target, cluster })
    }

    /// Whether anybody could reach replicas where they are to run.
    fn serves(&mut self, target: &str, cluster: &str) -> Result<(), store::Error> {
        if cluster.starts_with('@') {
            let message = format!("compute target `{target}` is a machine that serves no endpoints yet");
            self.mistake("compute", message, "serve here: leave `compute` out of the endpoint");
        } else if cluster != store::HERE && !self.app.facts(self.tx, cluster)?.inference {
            let message = format!("compute target `{target}` lies on cluster `{cluster}`, where no router runs");
            self.mistake("compute", message, ENABLE);
        }
        Ok(())
    }

    /// What a custom container is to run; nothing where its image says so.
    fn command(&mut self, properties: &Value, cluster: &str) -> String {
        let command = label(properties, COMMAND).unwrap_or_default().to_owned();
        if command.trim().is_empty() && cluster != store::HERE {
            let message =
                "in a pod our agent is what the image starts, and it cannot see what the image would start itself";
            let fix = "say what to run: `gunicorn --bind 0.0.0.0:$SERVER_PORT app:app`, or whatever the image's entry point is";
            self.mistake(format!("properties.properties.{COMMAND}"), message, fix);
        }
        command
    }

    /// How a custom container is called, where the environment says so.
    fn inference_config(&mut self, properties: &Value) -> Result<Value, store::Error> {
        let reference = properties["environmentId"].as_str().and_then(|text| AssetRef::parse("environments", text));
        let Some(reference) = reference else { return Ok(Value::Null) };
        let row = self.referred("environments", &reference)?;
        let body: Value = row.and_then(|row| serde_json::from_str(&row.body).ok()).unwrap_or_default();
        Ok(body["inferenceConfig"].clone())
    }

    fn model(&mut self, properties: &Value, plan: &Plan) -> Result<Model, store::Error> {
        let Some(text) = properties["model"].as_str() else { return Ok(Model::default()) };
        let here = matches!(plan.inputs.get("model"),
            Some(PlannedInput::Data { place: Place::Folder { path }, .. }) if path.join("MLmodel").is_file());
        let row: Option<AssetRow> = match AssetRef::parse("models", text) {
            Some(reference) if !text.contains("://") || text.contains("://registries/") => {
                self.referred("models", &reference)?
            }
            _ => None,
        };
        let typed = row.as_ref().and_then(|row| body_text(row, "modelType")).is_some_and(|kind| kind == "mlflow_model");
        let named = row.map_or(("model".to_owned(), "1".to_owned()), |row| (row.key.name, row.key.version));
        Ok(Model { named: Some(named), is_mlflow: typed || here })
    }

    /// Who answers; nobody after a mistake was noted.
    fn kind(&mut self, properties: &Value, inference: &Value, model: &Model, plan: &Plan) -> Option<ServingKind> {
        let route = &inference["scoringRoute"];
        let usual = (route["port"].as_u64(), route["path"].as_str()) == (Some(USUAL_ROUTE.0), Some(USUAL_ROUTE.1));
        let image = plan.environment.image.is_some() || plan.environment.build.is_some();
        match script(properties) {
            Some(entry) if inference.is_null() || usual => {
                if plan.code.is_none() && self.bad.is_empty() {
                    let message = "a scoring script is named without the folder it lies in";
                    self.mistake("properties.codeConfiguration.codeId", message, "set `code_configuration.code`");
                }
                Some(ServingKind::ScoringScript { entry: entry.to_owned() })
            }
            None if model.is_mlflow => Some(ServingKind::MlflowModel),
            _ if !inference.is_null() && image => Some(ServingKind::Container),
            _ => {
                let message = "nothing says what answers requests";
                let fix = "give it `code_configuration` with a scoring script, an MLflow model, or an environment with an \
                           image and `inference_config`";
                self.mistake("properties.codeConfiguration", message, fix);
                None
            }
        }
    }

    /// A number of seconds among the properties.
    fn seconds(&mut self, properties: &Value, key: &str, usual: u64) -> u64 {
        match label(properties, key).map(str::parse::<u64>) {
            None => usual,
            Some(Ok(seconds)) if (1..=86_400).contains(&seconds) => seconds,
            Some(_) => {
                let (at, fix) = (format!("properties.properties.{key}"), "such as `\"900\"`");
                self.mistake(at, "it is not 1 to 86400 seconds", fix);
                usual
            }
        }
    }
}

/// The command job whose plan a replica has.
fn job_of(properties: &Value, endpoint: &Value) -> CommandJob {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let mut spec = CommandJob {
        code: text(&properties["codeConfiguration"]["codeId"]),
        environment: text(&properties["environmentId"]).map(EnvironmentRef::Named),
        compute: text(&endpoint["properties"]["compute"]),
        ..CommandJob::default()
    };
    spec.resources.instance_type = text(&properties["instanceType"]);
    for (name, value) in properties["environmentVariables"].as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        spec.environment_variables.insert(name.clone(), value);
    }
    if let Some(path) = text(&properties["model"]) {
        let data = DataInput { kind: DataType::CustomModel, path, mode: Some(InputMode::RoMount) };
        spec.inputs.insert("model".to_owned(), Input::Data(data));
    }
    spec
}

fn script(properties: &Value) -> Option<&str> {
    properties["codeConfiguration"]["scoringScript"].as_str().filter(|text| !text.is_empty())
}

/// One of the texts that clients pass through to us.
fn label<'p>(properties: &'p Value, key: &str) -> Option<&'p str> {
    properties["properties"][key].as_str()
}

/// What a replica takes and may take: what it says itself; otherwise, on this machine, a small part of it and up to the
/// memory of the size it names.
fn share(plan: &mut Plan, properties: &Value, here: bool) {
    let asked = &properties["containerResourceRequirements"];
    let requests = amounts(&asked["containerResourceRequests"]);
    let limits = amounts(&asked["containerResourceLimits"]);
    if here {
        let memory = Resources { cpu_milli: 0, memory_bytes: plan.requests.memory_bytes, gpus: 0 };
        plan.limits = plan.limits.or((memory.memory_bytes > 0).then_some(memory));
        plan.requests =
            Resources { cpu_milli: plan.requests.cpu_milli.min(CPU_MILLI), memory_bytes: 0, ..plan.requests };
    }
    if let Some(requests) = requests {
        plan.requests = requests;
    }
    plan.limits = limits.or(plan.limits);
    if let (false, Some(limits)) = (here, &mut plan.limits) {
        // A cluster refuses pods that ask for more than they may have.
        limits.cpu_milli = limits.cpu_milli.max(plan.requests.cpu_milli);
        limits.memory_bytes = limits.memory_bytes.max(plan.requests.memory_bytes);
    }
}

fn amounts(side: &Value) -> Option<Resources> {
    let text = |key: &str| match &side[key] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let found = Resources {
        cpu_milli: text("cpu").as_deref().and_then(parse_cpu).unwrap_or(0),
        memory_bytes: text("memory").as_deref().and_then(parse_bytes).unwrap_or(0),
        gpus: text("gpu").and_then(|gpus| gpus.parse().ok()).unwrap_or(0),
    };
    (found != Resources::default()).then_some(found)
}

fn probe(sent: &Value, route: &Value) -> Probe {
    let usual = Probe::default();
    let count = |key: &str, usual: u32| sent[key].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(usual);
    Probe {
        path: sent["path"].as_str().or(route["path"].as_str()).map(str::to_owned),
        initial_delay_ms: millis(&sent["initialDelay"]).unwrap_or(usual.initial_delay_ms),
        period_ms: millis(&sent["period"]).unwrap_or(usual.period_ms),
        timeout_ms: millis(&sent["timeout"]).unwrap_or(usual.timeout_ms),
        success_threshold: count("successThreshold", usual.success_threshold),
        failure_threshold: count("failureThreshold", usual.failure_threshold),
    }
}

fn settings(body: &Value, serve: &Serving) -> ServingSettings {
    let properties = &body["properties"];
    let sent = &properties["requestSettings"];
    let usual = RequestSettings::default();
    let count = |value: &Value, usual: u32| value.as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(usual);
    let requests = RequestSettings {
        request_timeout_ms: millis(&sent["requestTimeout"]).unwrap_or(usual.request_timeout_ms),
        max_concurrent_requests_per_instance: count(
            &sent["maxConcurrentRequestsPerInstance"],
            usual.max_concurrent_requests_per_instance,
        ),
        max_queue_wait_ms: millis(&sent["maxQueueWait"]).unwrap_or(usual.max_queue_wait_ms),
    };
    let (sent, usual) = (&properties["scaleSettings"], Scale::default());
    let by_use = sent["scaleType"].as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("TargetUtilization"));
    let fixed = count(&body["sku"]["capacity"], usual.least);
    let least = if by_use { count(&sent["minInstances"], usual.least) } else { fixed };
    let most = if by_use { count(&sent["maxInstances"], usual.most.max(least)) } else { fixed };
    let idle = label(properties, IDLE).and_then(|text| text.parse::<u64>().ok());
    let scale = Scale {
        least,
        most: most.max(least),
        target_percent: count(&sent["targetUtilizationPercentage"], usual.target_percent),
        polling_ms: millis(&sent["pollingInterval"]).unwrap_or(usual.polling_ms).max(1),
        idle_ms: idle.map_or(usual.idle_ms, |seconds| seconds.saturating_mul(1000)),
    };
    let drain_seconds = label(properties, DRAIN).and_then(|text| text.parse().ok()).unwrap_or(300);
    let (scoring_path, start_seconds) = (serve.scoring_path.clone(), serve.start_seconds);
    ServingSettings { scale, requests, scoring_path, start_seconds, drain_seconds }
}

fn millis(value: &Value) -> Option<u64> {
    value
        .as_str()
        .and_then(parse_iso_duration)
        .map(|span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn how_many_follows_from_the_scale_type() {
        for (scale, capacity, expected) in [
            (json!(null), json!(3), (3, 3)),
            (json!({"scaleType": "Default"}), json!(null), (1, 1)),
            (json!({"scaleType": "TargetUtilization", "minInstances": 0, "maxInstances": 4}), json!(2), (0, 4)),
            (json!({"scaleType": "targetutilization", "minInstances": 2}), json!(9), (2, 2)),
        ] {
            let body = json!({"sku": {"capacity": capacity}, "properties": {"scaleSettings": scale}});
            let made = settings(&body, &Serving::default()).scale;
            assert_eq!((made.least, made.most), expected, "{body}");
        }
    }

    #[test]
    fn a_replica_sets_little_aside_here_unless_it_says_what_it_needs() {
        let size = Resources { cpu_milli: 4000, memory_bytes: 16 << 30, gpus: 1 };
        let mut plan = Plan { requests: size, ..Plan::default() };
        share(&mut plan, &json!({}), true);
        assert_eq!(plan.requests, Resources { cpu_milli: CPU_MILLI, memory_bytes: 0, gpus: 1 });
        assert_eq!(plan.limits.map(|limits| limits.memory_bytes), Some(16 << 30));
        let asked = json!({"containerResourceRequirements": {
            "containerResourceRequests": {"cpu": "0.5", "memory": "1Gi"}, "containerResourceLimits": {"memory": "2Gi"}}});
        share(&mut plan, &asked, true);
        assert_eq!((plan.requests.cpu_milli, plan.requests.memory_bytes), (500, 1 << 30));
        assert_eq!(plan.limits.map(|limits| limits.memory_bytes), Some(2 << 30));
    }
}
