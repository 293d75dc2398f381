//! One attempt as objects of the cluster: a Volcano Job or gated pods, and a Secret with the attempt's token.
//!
//! One object owns all others, so that deleting it removes everything: the Volcano Job, or the pod of part 0. Names come from
//! the attempt, so that making it twice makes it once. Invariants: no secret stands in a pod; an image runs unchanged, the
//! agent being brought in by an init container; nothing is privileged.

use super::{claims::Claim, labels};
use crate::{instance_type::InstanceTypeSpec, names};
use domain::{
    Probe,
    cluster::{ClusterTarget, Launch},
};
use k8s_openapi::api::core::v1::{Pod, Secret, Toleration};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where the agent's program lies in a job's container.
const PROGRAM: &str = "/peregrine-bin";
/// Where token and authority lie.
const KEYS: &str = "/peregrine-keys";
const HOME: &str = "/peregrine-home";
/// Where nobody else's volumes go.
pub(crate) const OWN: [&str; 3] = [PROGRAM, KEYS, HOME];
/// Time for the agent to end the command and to save what there is, when the pod is asked to leave.
pub(crate) const GRACE_SECONDS: u32 = 60;
/// Group of pods that Pod Security `restricted` keeps from running as root, and their user.
const PLAIN_USER: i64 = 1000;

/// Who sees to it that the gang starts whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gang {
    Volcano,
    Gates,
    /// Kueue admits the pods as a group.
    Kueue,
}

/// What is the same for all attempts on a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Our own image.
    pub(crate) image: String,
    /// Labels of nodes that all work is limited to.
    pub(crate) node_selector: BTreeMap<String, String>,
    /// Pods are confined as `restricted` says, on every target.
    pub(crate) restricted: bool,
    /// The cluster itself gives each namespace the ids that its pods run as.
    pub(crate) ids_are_given: bool,
    /// Variables that lead out of the cluster; they may hold a password.
    pub(crate) proxy: BTreeMap<String, String>,
}

/// What an attempt is made of.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    pub(crate) body: Body,
    /// To be owned by the first object of the body.
    pub(crate) secret: Secret,
}

#[derive(Debug, Clone)]
pub(crate) enum Body {
    Job(Box<DynamicObject>),
    /// In the order of the parts. The first owns the others.
    Pods(Vec<Pod>),
}

/// The objects of an attempt. `nonce` tells the Secret of this making from one that is just being deleted.
pub(crate) fn objects(
    launch: &Launch,
    shape: &InstanceTypeSpec,
    claims: &[Claim],
    options: &Options,
    gang: Gang,
    nonce: &str,
) -> Objects {
    let maker = Maker { launch, shape, claims, options, gang, name: name(launch), nonce };
    let body = match gang {
        Gang::Volcano => Body::Job(Box::new(maker.job())),
        Gang::Gates | Gang::Kueue => Body::Pods((0..launch.parts.max(1)).map(|part| maker.pod(part)).collect()),
    };
    Objects { body, secret: maker.secret() }
}

/// The kind of Volcano's jobs.
pub(crate) fn volcano_job() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("batch.volcano.sh", "v1alpha1", "Job"))
}

/// The kind in which Volcano's scheduler says how a gang is doing.
pub(crate) fn volcano_group() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("scheduling.volcano.sh", "v1beta1", "PodGroup"))
}

/// The name all objects of an attempt start with.
fn name(launch: &Launch) -> String {
    launch.attempt.to_string().replace('_', "-")
}

struct Maker<'a> {
    launch: &'a Launch,
    shape: &'a InstanceTypeSpec,
    claims: &'a [Claim],
    options: &'a Options,
    gang: Gang,
    name: String,
    nonce: &'a str,
}

impl Maker<'_> {
    fn secret(&self) -> Secret {
        let mut data = self.options.proxy.clone();
        data.insert("token".to_owned(), self.launch.token.clone());
        if !self.launch.authority.is_empty() {
            data.insert("authority.pem".to_owned(), self.launch.authority.clone());
        }
        let mut secret = Secret { string_data: Some(data), immutable: Some(true), ..Secret::default() };
        secret.metadata.name = Some(self.secret_name());
        secret.metadata.namespace = Some(self.launch.target.namespace.clone());
        secret.metadata.labels = Some(self.labels(None));
        secret
    }

    fn secret_name(&self) -> String {
        format!("{}-{}", self.name, self.nonce)
    }

    fn pod(&self, part: u32) -> Pod {
        let mut labels = self.labels(Some(part));
        let mut annotations = self.annotations();
        let mut spec = self.spec(json!({"name": "PEREGRINE_PART", "value": part.to_string()}));
        match (self.gang, self.setting("queue")) {
            (Gang::Kueue, Some(queue)) => {
                labels.insert("kueue.x-k8s.io/queue-name".to_owned(), queue.to_owned());
                labels.insert("kueue.x-k8s.io/pod-group-name".to_owned(), self.name.clone());
                let parts = self.launch.parts.max(1).to_string();
                annotations.insert("kueue.x-k8s.io/pod-group-total-count".to_owned(), parts);
            }
            _ => spec["schedulingGates"] = json!([{"name": labels::GATE}]),
        }
        let pod = json!({
            "metadata": {
                "name": format!("{}-{part}", self.name), "namespace": self.launch.target.namespace,
                "labels": labels, "annotations": annotations,
            },
            "spec": spec,
        });
        serde_json::from_value(pod).expect("a pod of ours is a pod")
    }

    fn job(&self) -> DynamicObject {
        let index = "metadata.annotations['volcano.sh/task-index']";
        let part = json!({"name": "PEREGRINE_PART", "valueFrom": {"fieldRef": {"fieldPath": index}}});
        let mut spec = json!({
            "minAvailable": self.launch.parts.max(1),
            "schedulerName": "volcano",
            // A pod that went away is not to be made again: another try is another attempt.
            "policies": [{"event": "PodEvicted", "action": "TerminateJob"}],
            "maxRetry": 1,
            "tasks": [{
                "name": "part",
                "replicas": self.launch.parts.max(1),
                "template": {
                    "metadata": {"labels": self.labels(None), "annotations": self.annotations()},
                    "spec": self.spec(part),
                },
            }],
        });
        if let Some(queue) = self.setting("queue") {
            spec["queue"] = json!(queue);
        }
        if let Some(class) = self.priority_class() {
            spec["priorityClassName"] = json!(class);
        }
        let mut job = DynamicObject::new(&self.name, &volcano_job()).within(&self.launch.target.namespace);
        job.metadata.labels = Some(self.labels(None));
        job.metadata.annotations = Some(self.annotations());
        job.data = json!({"spec": spec});
        job
    }

    fn labels(&self, part: Option<u32>) -> BTreeMap<String, String> {
        let target = &self.launch.target;
        let own = [
            (names::PART_OF, names::PRODUCT.to_owned()),
            (names::ATTEMPT, self.launch.attempt.to_string()),
            (labels::JOB, labels::value(self.launch.job.as_str())),
            (labels::COMPUTE, labels::value(&target.compute)),
            (labels::WORKSPACE, labels::value(&target.workspace)),
            (labels::PARTS, self.launch.parts.max(1).to_string()),
        ];
        let given = self.launch.labels.iter().filter(|(key, _)| labels::is_key(key));
        let mut all: BTreeMap<_, _> = given.map(|(key, text)| (key.clone(), labels::value(text))).collect();
        all.extend(own.map(|(key, text)| (key.to_owned(), text)));
        if let Some(replica) = &self.launch.replica {
            all.insert(labels::ENDPOINT.to_owned(), labels::value(&replica.endpoint));
            all.insert(labels::DEPLOYMENT.to_owned(), labels::value(&replica.deployment));
        }
        if let Some(part) = part {
            all.insert(labels::PART.to_owned(), part.to_string());
        }
        all
    }

    fn annotations(&self) -> BTreeMap<String, String> {
        let all = [
            (labels::JOB_NAME, self.launch.job.to_string()),
            (labels::DISPLAY_NAME, self.launch.display_name.clone()),
            (labels::USER, self.launch.user.clone()),
            (labels::PRIORITY, self.launch.priority.to_string()),
            (labels::SECRET, self.secret_name()),
        ];
        let mut all: BTreeMap<_, _> = all.into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
        if self.launch.replica.is_none() {
            // Whoever tidies up nodes moves what can begin again elsewhere, which a job should not have to.
            all.insert("cluster-autoscaler.kubernetes.io/safe-to-evict".to_owned(), "false".to_owned());
            all.insert("karpenter.sh/do-not-disrupt".to_owned(), "true".to_owned());
        }
        all
    }

    fn spec(&self, part: Value) -> Value {
        let mut spec = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "securityContext": self.pod_security(),
            "tolerations": self.tolerations(),
            "initContainers": [self.init_container()],
            "containers": [self.container(part)],
            "volumes": self.volumes(),
        });
        let mut selector = self.shape.node_selector.clone().unwrap_or_default();
        // The extension's own limits cannot be lifted by an instance type.
        selector.extend(self.options.node_selector.clone());
        if !selector.is_empty() {
            spec["nodeSelector"] = json!(selector);
        }
        if let Some(affinity) = &self.shape.affinity {
            spec["affinity"] = json!(affinity);
        }
        if let Some(class) = self.priority_class() {
            spec["priorityClassName"] = json!(class);
        }
        if let Some(seconds) = self.launch.deadline_seconds {
            spec["activeDeadlineSeconds"] = json!(seconds.max(1));
        }
        if let Some(account) = self.setting("service_account") {
            spec["serviceAccountName"] = json!(account);
            spec["automountServiceAccountToken"] = json!(true);
        }
        spec["imagePullSecrets"] = pull_secrets(&self.launch.target);
        spec
    }

    fn init_container(&self) -> Value {
        let mut security = names::container_security();
        security["runAsNonRoot"] = json!(true);
        // A quota of limits asks for one of every container; as much as the job's own makes the pod no larger.
        let limits = self.shape.requirements().limits.unwrap_or_default();
        let cpu = limits.get("cpu").map_or("1", |cpu| cpu.0.as_str());
        json!({
            "name": "peregrine",
            "image": self.options.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/peregrine", "agent", "place", PROGRAM],
            "securityContext": security,
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": cpu, "memory": "64Mi"}},
            "volumeMounts": [{"name": "peregrine-bin", "mountPath": PROGRAM}],
            "terminationMessagePolicy": "FallbackToLogsOnError",
        })
    }

    fn container(&self, part: Value) -> Value {
        let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        let plain = |name: &str, value: &str| json!({"name": name, "value": value});
        let mut env = vec![
            plain("PEREGRINE_SERVER", &self.launch.server),
            plain("PEREGRINE_ATTEMPT", self.launch.attempt.as_str()),
            part,
            plain("PEREGRINE_HOME", HOME),
            plain("PEREGRINE_TOKEN_FILE", &format!("{KEYS}/token")),
            field("POD_IP", "status.podIP"),
            field("POD_NAME", "metadata.name"),
            field("NODE_NAME", "spec.nodeName"),
        ];
        if !self.launch.authority.is_empty() {
            env.push(plain("PEREGRINE_CA_FILE", &format!("{KEYS}/authority.pem")));
        }
        env.extend(self.options.proxy.keys().map(
            |name| json!({"name": name, "valueFrom": {"secretKeyRef": {"name": self.secret_name(), "key": name}}}),
        ));
        let mut mounts = vec![
            json!({"name": "peregrine-bin", "mountPath": PROGRAM, "readOnly": true}),
            json!({"name": "peregrine-keys", "mountPath": KEYS, "readOnly": true}),
            json!({"name": "peregrine-home", "mountPath": HOME}),
        ];
        if self.launch.shm_bytes.is_some() {
            mounts.push(json!({"name": "peregrine-shm", "mountPath": "/dev/shm"}));
        }
        let claims = self.claims.iter().enumerate();
        mounts.extend(claims.map(|(at, claim)| json!({"name": format!("claim-{at}"), "mountPath": claim.path})));
        let mut container = json!({
            "name": "job",
            "image": self.launch.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [format!("{PROGRAM}/peregrine"), "agent", "pod"],
            "env": env,
            "resources": self.shape.requirements(),
            "volumeMounts": mounts,
            "terminationMessagePolicy": "FallbackToLogsOnError",
        });
        if let Some(replica) = &self.launch.replica {
            container["name"] = json!("inference-server");
            container["ports"] = json!([{"name": "scoring", "containerPort": replica.port}]);
            container["readinessProbe"] = probe(&replica.readiness, replica.port);
        }
        if self.restricted() {
            container["securityContext"] =
                json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
        }
        container
    }

    fn volumes(&self) -> Vec<Value> {
        let mut volumes = vec![
            json!({"name": "peregrine-bin", "emptyDir": {}}),
            json!({"name": "peregrine-home", "emptyDir": {}}),
            // Readable by whichever user the image has; the token is good for this attempt alone.
            json!({"name": "peregrine-keys", "secret": {"secretName": self.secret_name(), "defaultMode": 0o444}}),
        ];
        if let Some(bytes) = self.launch.shm_bytes {
            volumes.push(
                json!({"name": "peregrine-shm", "emptyDir": {"medium": "Memory", "sizeLimit": bytes.to_string()}}),
            );
        }
        let claims = self.claims.iter().enumerate();
        volumes.extend(claims.map(
            |(at, claim)| json!({"name": format!("claim-{at}"), "persistentVolumeClaim": {"claimName": claim.name}}),
        ));
        volumes
    }

    fn pod_security(&self) -> Value {
        let mut security = json!({"seccompProfile": {"type": "RuntimeDefault"}});
        if self.restricted() {
            security["runAsNonRoot"] = json!(true);
            let chosen = self.setting("run_as_user").and_then(|id| id.parse::<i64>().ok());
            if let Some(user) = chosen.or((!self.options.ids_are_given).then_some(PLAIN_USER)) {
                security["runAsUser"] = json!(user);
                security["fsGroup"] = json!(user);
            }
        }
        security
    }

    /// A target may be stricter than the extension, and no laxer.
    fn restricted(&self) -> bool {
        self.options.restricted || is_restricted(&self.launch.target)
    }

    fn tolerations(&self) -> Vec<Toleration> {
        let own = self.shape.tolerations.clone().unwrap_or_default();
        tolerations(&self.launch.target).into_iter().chain(own).collect()
    }

    fn priority_class(&self) -> Option<&str> {
        let level = match self.launch.priority {
            ..=1 => "priority_class_low",
            2 => "priority_class_medium",
            _ => "priority_class_high",
        };
        let given = self.setting(level).or_else(|| self.setting("priority_class"));
        given.or(self.shape.priority_class_name.as_deref())
    }

    /// A setting of the target; an empty one is none.
    fn setting(&self, key: &str) -> Option<&str> {
        self.launch.target.settings.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }
}

/// Whether a target's own setting confines its pods as `restricted` says.
pub(crate) fn is_restricted(target: &ClusterTarget) -> bool {
    target.settings.get("pod_security").is_some_and(|level| level.eq_ignore_ascii_case("restricted"))
}

/// A probe in the cluster's words: for those who look at pods. Its times are whole seconds.
fn probe(probe: &Probe, port: u16) -> Value {
    let seconds = |millis: u64| millis.div_ceil(1000).max(1);
    let mut told = json!({
        "initialDelaySeconds": probe.initial_delay_ms.div_ceil(1000),
        "periodSeconds": seconds(probe.period_ms),
        "timeoutSeconds": seconds(probe.timeout_ms),
        "successThreshold": probe.success_threshold.max(1),
        "failureThreshold": probe.failure_threshold.max(1),
    });
    match &probe.path {
        Some(path) => told["httpGet"] = json!({"path": path, "port": port}),
        None => told["tcpSocket"] = json!({"port": port}),
    }
    told
}

/// The taints that all work of a target runs in spite of.
pub(crate) fn tolerations(target: &ClusterTarget) -> Vec<Toleration> {
    let all = [
        ("ml.azure.com/amlarc", "true"),
        ("ml.azure.com/amlarc-workload", "true"),
        ("ml.azure.com/resource-group", &target.resource_group),
        ("ml.azure.com/workspace", &target.workspace),
        ("ml.azure.com/compute", &target.compute),
    ];
    let tolerate = |(key, value): (&str, &str)| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Equal".to_owned()),
        value: Some(value.to_owned()),
        ..Toleration::default()
    };
    all.into_iter().map(tolerate).collect()
}

/// What images of a target are pulled with.
pub(crate) fn pull_secrets(target: &ClusterTarget) -> Value {
    let names = target.settings.get("image_pull_secrets").map(String::as_str).unwrap_or_default();
    names::references(names.split([',', ' ']).filter(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests;
