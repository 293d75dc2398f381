//! What the operator reads of the cluster's objects: a few fields of each, and nothing else.
//!
//! A pod as the API server sends it takes ten kilobytes, most of them about who changed which field; what is kept of it here takes
//! two hundred bytes. Invariant: what is not named here is skipped while reading and never allocated.

use super::{
    affinity::Affinity,
    amounts::{Amounts, Need, Taint, Tolerance},
};
use crate::quantity;
use domain::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, PersistentVolumeClaim, Pod, Service},
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{ObjectMeta, Time},
    },
};
use kube::{Resource, core::DynamicObject};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use std::{borrow::Cow, collections::BTreeMap, fmt::Debug, marker::PhantomData};

/// An object of kind `K` of which only `S` of its spec and `T` of its status is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = "S: Deserialize<'de> + Default, T: Deserialize<'de> + Default"))]
pub(crate) struct Trimmed<K, S, T> {
    #[serde(default, deserialize_with = "light")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: S,
    #[serde(default)]
    pub(crate) status: T,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

/// A pod of ours.
pub(crate) type PodSeen = Trimmed<Pod, PodSpec, PodStatus>;
/// Anybody's pod, as far as it takes room on a node.
pub(crate) type BoundSeen = Trimmed<Pod, BoundSpec, IgnoredAny>;
pub(crate) type NodeSeen = Trimmed<Node, NodeSpec, NodeStatus>;
pub(crate) type ClaimSeen = Trimmed<PersistentVolumeClaim, IgnoredAny, IgnoredAny>;
/// The router's own.
pub(crate) type ServiceSeen = Trimmed<Service, ServiceSpec, ServiceStatus>;
/// A Volcano Job of ours.
pub(crate) type JobSeen = Trimmed<DynamicObject, JobSpec, JobStatus>;
/// What Volcano's scheduler says of a gang.
pub(crate) type GroupSeen = Trimmed<DynamicObject, IgnoredAny, GroupStatus>;

impl<K: Resource, S, T> Resource for Trimmed<K, S, T> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &K::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }
    fn group(of: &K::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }
    fn version(of: &K::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }
    fn plural(of: &K::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct LightMeta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
}

fn light<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    let meta = LightMeta::deserialize(from)?;
    Ok(ObjectMeta {
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        labels: meta.labels,
        annotations: meta.annotations,
        creation_timestamp: meta.creation_timestamp,
        deletion_timestamp: meta.deletion_timestamp,
        ..ObjectMeta::default()
    })
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSpec {
    pub(crate) node_name: Option<String>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    overhead: BTreeMap<String, Quantity>,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Tolerance>,
    affinity: Affinity,
    pub(crate) scheduling_gates: Vec<Gate>,
    /// Written into every pod by the API server, from its class.
    pub(crate) priority: i64,
    pub(crate) preemption_policy: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct BoundSpec {
    pub(crate) node_name: Option<String>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    overhead: BTreeMap<String, Quantity>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    resources: Asked,
    restart_policy: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    requests: BTreeMap<String, Quantity>,
    limits: BTreeMap<String, Quantity>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Gate {
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodStatus {
    pub(crate) phase: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) container_statuses: Vec<ContainerStatus>,
    pub(crate) init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Condition {
    pub(crate) r#type: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) last_transition_time: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerStatus {
    pub(crate) state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContainerState {
    pub(crate) waiting: Option<Paused>,
    pub(crate) terminated: Option<Ended>,
    pub(crate) running: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Paused {
    pub(crate) reason: String,
    pub(crate) message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Ended {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) exit_code: i32,
    pub(crate) signal: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeSpec {
    pub(crate) unschedulable: bool,
    pub(crate) taints: Vec<Taint>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeStatus {
    pub(crate) allocatable: BTreeMap<String, Quantity>,
    pub(crate) capacity: BTreeMap<String, Quantity>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) addresses: Vec<NodeAddress>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NodeAddress {
    pub(crate) r#type: String,
    pub(crate) address: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceSpec {
    #[serde(rename = "clusterIP")]
    pub(crate) cluster_ip: String,
    pub(crate) ports: Vec<ServicePort>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServicePort {
    pub(crate) node_port: u16,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ServiceStatus {
    pub(crate) load_balancer: LoadBalancer,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LoadBalancer {
    pub(crate) ingress: Vec<Ingress>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ingress {
    pub(crate) ip: String,
    pub(crate) hostname: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct JobSpec {
    tasks: Vec<Task>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Task {
    template: Template,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: PodSpec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct JobStatus {
    pub(crate) state: JobState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct JobState {
    pub(crate) phase: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct GroupStatus {
    pub(crate) phase: String,
    pub(crate) conditions: Vec<Condition>,
}

impl Asked {
    /// What is limited and not asked for is asked for as well. The API server writes that into pods, but not into the
    /// template of a Volcano Job, where devices stand among the limits alone.
    fn amounts(&self) -> Amounts {
        let mut all = self.limits.clone();
        all.extend(self.requests.clone());
        Amounts::of(&all)
    }
}

impl PodSpec {
    /// What a pod of this spec needs of a node.
    pub(crate) fn need(&self) -> Need {
        let amounts = asked(&self.containers, &self.init_containers, &self.overhead);
        Need {
            amounts,
            selector: self.node_selector.clone(),
            affinity: self.affinity.clone(),
            tolerations: self.tolerations.clone(),
        }
    }

    /// What the job's container may use at most; 0 where there is no limit.
    pub(crate) fn memory_limit(&self) -> u64 {
        let limit = self.containers.first().and_then(|container| container.resources.limits.get("memory"));
        limit.and_then(quantity::units).unwrap_or_default()
    }
}

impl BoundSpec {
    pub(crate) fn amounts(&self) -> Amounts {
        asked(&self.containers, &self.init_containers, &self.overhead)
    }
}

impl JobSpec {
    /// What each pod of the gang needs.
    pub(crate) fn need(&self) -> Need {
        self.tasks.first().map(|task| task.template.spec.need()).unwrap_or_default()
    }
}

/// As schedulers count: containers add up, ordinary init containers run one by one before them.
fn asked(containers: &[Container], before: &[Container], overhead: &BTreeMap<String, Quantity>) -> Amounts {
    let mut sum = Amounts::default();
    let (stay, pass): (Vec<_>, Vec<_>) = before.iter().partition(|container| container.restart_policy == "Always");
    for container in containers.iter().chain(stay) {
        sum.add(&container.resources.amounts());
    }
    for container in pass {
        sum.at_least(&container.resources.amounts());
    }
    sum.add(&Amounts::of(overhead));
    sum
}

pub(crate) fn condition<'a>(all: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    all.iter().find(|condition| condition.r#type == kind)
}

pub(crate) fn instant(time: &Time) -> Timestamp {
    Timestamp(time.0.as_millisecond())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_named_is_read() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "uid": "u", "managedFields": [{"manager": "x", "fieldsV1": {"f:spec": {}}}]},
            "spec": {
                "nodeName": "n", "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                    {"name": "d", "image": "i", "resources": {"requests": {"cpu": "500m"}}},
                ],
                "initContainers": [{"name": "e", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "64Mi"}}}],
            },
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
        });
        let seen: PodSeen = serde_json::from_value(pod).unwrap();
        assert_eq!(seen.metadata.managed_fields, None);
        assert_eq!(seen.spec.need().amounts.humane(), "2 CPUs, 1 GiB memory");
        assert_eq!(seen.status.phase, "Running");
        assert_eq!(PodSeen::url_path(&(), Some("ml")), "/api/v1/namespaces/ml/pods");
    }

    #[test]
    fn a_gang_of_volcano_needs_the_devices_that_stand_among_its_limits_alone() {
        let shape = crate::instance_type::InstanceTypeSpec::of(
            &[("cpu", "1"), ("memory", "1Gi")],
            &[("cpu", "4"), ("memory", "2Gi"), ("nvidia.com/gpu", "8")],
        );
        let container = json!({"name": "job", "resources": shape.requirements()});
        let job = json!({
            "metadata": {"name": "a"},
            "spec": {"tasks": [{"template": {"spec": {"containers": [container]}}}]},
        });
        let seen: JobSeen = serde_json::from_value(job).unwrap();
        assert_eq!(seen.spec.need().amounts.humane(), "8 GPUs, 1 CPU, 1 GiB memory");
    }
}
