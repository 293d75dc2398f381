//! Instance types: named shapes of work on a cluster, kept as resources of the cluster.
//!
//! The resource has Azure's group, version and kind, so that files people have apply as they are. What makes no sense is
//! refused by the cluster itself (see [`rules`]), whoever applies it and with whatever tool. Invariant: an instance type
//! that exists has CPU and memory, whole devices and limits that are not below what is asked for.

#![expect(unreachable_pub, reason = "the schema is derived from copies of these types that nobody else sees")]
#![expect(clippy::duplicated_attributes, reason = "columns of one type")]

pub mod cluster;
pub mod files;
mod rules;
pub mod sizes;

use crate::quantity;
use domain::{Resources, cluster::ClusterInstanceType, resources::DEFAULT_INSTANCE_TYPE};
use k8s_openapi::{
    api::core::v1::{Affinity, ResourceRequirements, Toleration},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The name under which GPUs are asked for by number alone.
pub const GPU: &str = "nvidia.com/gpu";
/// What a pod may ask for without a device plugin.
const PLAIN: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Amounts by name. `null` is the same as leaving the name out.
pub type Amounts = BTreeMap<String, Option<Quantity>>;

/// What pods of this type ask for and where they may run.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[kube(
    group = "amlarc.azureml.com",
    version = "v1alpha1",
    kind = "InstanceType",
    plural = "instancetypes",
    singular = "instancetype",
    doc = "A named shape of work: what a pod of a job asks for, and which nodes may run it.",
    derive = "Default",
    derive = "PartialEq",
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.resources.requests.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.resources.requests.memory"),
    printcolumn(name = "GPUs", type_ = "string", json_path = r".spec.resources.limits.nvidia\.com/gpu"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct InstanceTypeSpec {
    /// Labels a node must have; absent: any node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// What a pod asks for and may use at most.
    pub resources: InstanceTypeResources,
    /// Taints that pods of this type may run in spite of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// Finer wishes about nodes and neighbours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Priority class of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
}

/// Amounts asked for and allowed.
#[derive(KubeSchema, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
#[x_kube(validation = rules::not_below("cpu"))]
#[x_kube(validation = rules::not_below("memory"))]
#[x_kube(validation = rules::not_below("ephemeral-storage"))]
pub struct InstanceTypeResources {
    /// What is set aside for a pod: `cpu` and `memory`, and `ephemeral-storage` where it matters.
    #[schemars(schema_with = "rules::amounts")]
    #[x_kube(validation = rules::required("requests", "cpu"))]
    #[x_kube(validation = rules::required("requests", "memory"))]
    #[x_kube(validation = rules::only_plain())]
    #[x_kube(validation = rules::amounts_parse("requests"))]
    pub requests: Amounts,
    /// What a pod may use at most, and its devices, such as `nvidia.com/gpu`.
    #[schemars(schema_with = "rules::amounts")]
    #[x_kube(validation = rules::required("limits", "cpu"))]
    #[x_kube(validation = rules::required("limits", "memory"))]
    #[x_kube(validation = rules::names_known())]
    #[x_kube(validation = rules::amounts_parse("limits"))]
    #[x_kube(validation = rules::devices_whole())]
    pub limits: Amounts,
}

impl InstanceTypeSpec {
    /// A type that asks for what it may use and runs anywhere.
    pub fn of(requests: &[(&str, &str)], limits: &[(&str, &str)]) -> InstanceTypeSpec {
        let amounts = |all: &[(&str, &str)]| {
            all.iter().map(|(name, amount)| ((*name).to_owned(), Some(Quantity((*amount).to_owned())))).collect()
        };
        let resources = InstanceTypeResources { requests: amounts(requests), limits: amounts(limits) };
        InstanceTypeSpec { resources, ..InstanceTypeSpec::default() }
    }

    /// The same type for one that says itself what it needs; an amount of zero stays as it is.
    pub fn with(mut self, requests: &Resources, limits: &Resources) -> InstanceTypeSpec {
        let put = |into: &mut Amounts, amounts: &Resources| {
            let named = [("cpu", amounts.cpu_milli, "m"), ("memory", amounts.memory_bytes, "")];
            for (name, amount, unit) in named.into_iter().filter(|(_, amount, _)| *amount > 0) {
                into.insert(name.to_owned(), Some(Quantity(format!("{amount}{unit}"))));
            }
        };
        put(&mut self.resources.requests, requests);
        put(&mut self.resources.limits, limits);
        // Devices are asked for by their limit.
        let gpus = requests.gpus.max(limits.gpus);
        if gpus > 0 {
            self.resources.limits.insert(GPU.to_owned(), Some(Quantity(gpus.to_string())));
        }
        self
    }

    /// As a container asks for it: what is `null` or zero is left out.
    pub fn requirements(&self) -> ResourceRequirements {
        let kept = |amounts: &Amounts| {
            let all = amounts.iter().filter_map(|(name, amount)| Some((name.clone(), amount.clone()?)));
            Some(all.filter(|(_, amount)| quantity::milli(amount) != Some(0)).collect())
        };
        ResourceRequirements {
            requests: kept(&self.resources.requests),
            limits: kept(&self.resources.limits),
            ..ResourceRequirements::default()
        }
    }

    /// In Peregrine's words. How many fit is not known here.
    pub fn to_domain(&self, name: &str) -> ClusterInstanceType {
        let InstanceTypeResources { requests, limits } = &self.resources;
        // Devices are asked for by their limit.
        let gpus = amount(limits, GPU).try_into().unwrap_or(u32::MAX);
        let resources = |amounts: &Amounts| Resources {
            cpu_milli: of(amounts, "cpu").and_then(quantity::milli).unwrap_or_default(),
            memory_bytes: amount(amounts, "memory"),
            gpus,
        };
        let devices = limits.keys().filter(|name| *name != GPU && !PLAIN.contains(&name.as_str()));
        ClusterInstanceType {
            name: name.to_owned(),
            requests: resources(requests),
            limits: resources(limits),
            node_selector: self.node_selector.clone().unwrap_or_default(),
            extended: devices.map(|name| (name.clone(), amount(limits, name))).filter(|(_, n)| *n > 0).collect(),
            ..ClusterInstanceType::default()
        }
    }
}

/// The type of jobs that name none, unless the cluster has one of this name itself.
pub fn built_in() -> InstanceType {
    let spec = InstanceTypeSpec::of(&[("cpu", "100m"), ("memory", "2Gi")], &[("cpu", "2"), ("memory", "2Gi")]);
    InstanceType::new(DEFAULT_INSTANCE_TYPE, spec)
}

/// The definition of the resource, as the cluster is told it. What Kubernetes says of its own fields is left out: it is
/// most of the text and stands in Kubernetes' documentation.
pub fn definition() -> Value {
    let mut definition = json!(InstanceType::crd());
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    for field in ["affinity", "tolerations"] {
        let about = spec[field]["description"].clone();
        strip(&mut spec[field]);
        spec[field]["description"] = about;
    }
    definition
}

/// Takes descriptions away, at every depth. One that is a schema is a field of that name.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|key, value| key != "description" || !value.is_string());
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn of<'a>(amounts: &'a Amounts, name: &str) -> Option<&'a Quantity> {
    amounts.get(name)?.as_ref()
}

fn amount(amounts: &Amounts, name: &str) -> u64 {
    of(amounts, name).and_then(quantity::units).unwrap_or_default()
}

#[cfg(test)]
mod tests;
