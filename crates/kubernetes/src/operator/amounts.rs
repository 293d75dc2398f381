//! What pods ask for and nodes have, in numbers, and what else decides where a pod may run.
//!
//! Invariant: CPU is counted in thousandths, memory and storage in bytes, devices whole. A pod that asks for nothing of a
//! kind fits whatever is left of it.

use super::affinity::Affinity;
use crate::{instance_type::GPU, quantity};
use domain::{Resources, resources::humane_bytes};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Amounts of everything a pod can ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Amounts {
    pub(crate) cpu_milli: u64,
    pub(crate) memory_bytes: u64,
    /// By name: GPUs, other devices, storage.
    pub(crate) others: BTreeMap<String, u64>,
}

/// What one pod of a gang needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Need {
    pub(crate) amounts: Amounts,
    pub(crate) selector: BTreeMap<String, String>,
    pub(crate) affinity: Affinity,
    pub(crate) tolerations: Vec<Tolerance>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
pub(crate) struct Taint {
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) value: String,
    pub(crate) effect: String,
}

/// A taint that a pod may run in spite of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub(crate) struct Tolerance {
    pub(crate) key: String,
    pub(crate) operator: String,
    pub(crate) value: String,
    pub(crate) effect: String,
}

impl Amounts {
    /// What cannot be read counts as nothing; the API server would not have let it pass.
    pub(crate) fn of(amounts: &BTreeMap<String, Quantity>) -> Amounts {
        let mut all = Amounts::default();
        for (name, amount) in amounts {
            match name.as_str() {
                "cpu" => all.cpu_milli = quantity::milli(amount).unwrap_or_default(),
                "memory" => all.memory_bytes = quantity::units(amount).unwrap_or_default(),
                "pods" => {}
                _ => {
                    all.others.insert(name.clone(), quantity::units(amount).unwrap_or_default());
                }
            }
        }
        all.others.retain(|_, amount| *amount > 0);
        all
    }

    pub(crate) fn add(&mut self, other: &Amounts) {
        self.cpu_milli = self.cpu_milli.saturating_add(other.cpu_milli);
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        for (name, amount) in &other.others {
            *self.others.entry(name.clone()).or_default() += amount;
        }
    }

    /// Takes away `times` of another; what is not there stays at zero.
    pub(crate) fn take(&mut self, other: &Amounts, times: u64) {
        self.cpu_milli = self.cpu_milli.saturating_sub(other.cpu_milli.saturating_mul(times));
        self.memory_bytes = self.memory_bytes.saturating_sub(other.memory_bytes.saturating_mul(times));
        for (name, amount) in &other.others {
            if let Some(left) = self.others.get_mut(name) {
                *left = left.saturating_sub(amount.saturating_mul(times));
            }
        }
    }

    /// The larger of two, kind by kind.
    pub(crate) fn at_least(&mut self, other: &Amounts) {
        self.cpu_milli = self.cpu_milli.max(other.cpu_milli);
        self.memory_bytes = self.memory_bytes.max(other.memory_bytes);
        for (name, amount) in &other.others {
            let mine = self.others.entry(name.clone()).or_default();
            *mine = (*mine).max(*amount);
        }
    }

    /// How many of `need` this holds; without bound when nothing is needed.
    pub(crate) fn holds(&self, need: &Amounts) -> u64 {
        let times = |have: u64, need: u64| have.checked_div(need).unwrap_or(u64::MAX);
        let plain = times(self.cpu_milli, need.cpu_milli).min(times(self.memory_bytes, need.memory_bytes));
        need.others.iter().fold(plain, |least, (name, amount)| least.min(times(self.amount(name), *amount)))
    }

    /// By the name Kubernetes has for it.
    pub(crate) fn amount(&self, name: &str) -> u64 {
        match name {
            "cpu" => self.cpu_milli,
            "memory" => self.memory_bytes,
            _ => self.others.get(name).copied().unwrap_or_default(),
        }
    }

    /// Names of which there is any.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let plain = [("cpu", self.cpu_milli), ("memory", self.memory_bytes)];
        let plain = plain.into_iter().filter(|(_, amount)| *amount > 0).map(|(name, _)| name);
        // Devices first: they are what a cluster is short of.
        self.others.keys().map(String::as_str).chain(plain)
    }

    /// As the server counts; what it has no field for comes by name.
    pub(crate) fn to_domain(&self) -> (Resources, BTreeMap<String, u64>) {
        let gpus = self.amount(GPU).try_into().unwrap_or(u32::MAX);
        let resources = Resources { cpu_milli: self.cpu_milli, memory_bytes: self.memory_bytes, gpus };
        let devices = self.others.iter().filter(|(name, _)| is_device(name) && *name != GPU);
        (resources, devices.map(|(name, amount)| (name.clone(), *amount)).collect())
    }

    /// `8 GPUs, 4 CPUs, 16 GiB memory`.
    pub(crate) fn humane(&self) -> String {
        let all: Vec<_> = self.names().map(|name| humane(name, self.amount(name))).collect();
        if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
    }
}

/// Whether a node hands it out in whole pieces.
fn is_device(name: &str) -> bool {
    name.contains('/') && !name.starts_with("hugepages-")
}

/// An amount of one kind: `1 GPU`, `1.5 CPUs`, `2 GiB memory`, `2 x amd.com/gpu`.
pub(crate) fn humane(name: &str, amount: u64) -> String {
    match (name, amount) {
        ("cpu", 1000) => "1 CPU".to_owned(),
        ("cpu", milli) => format!("{} CPUs", milli as f64 / 1000.0),
        ("memory", bytes) => format!("{} memory", humane_bytes(bytes)),
        (GPU, 1) => "1 GPU".to_owned(),
        (GPU, n) => format!("{n} GPUs"),
        (name, n) if is_device(name) => format!("{n} x {name}"),
        (name, bytes) => format!("{} {name}", humane_bytes(bytes)),
    }
}

impl Tolerance {
    pub(crate) fn covers(&self, taint: &Taint) -> bool {
        let key = self.key.is_empty() || self.key == taint.key;
        let effect = self.effect.is_empty() || self.effect == taint.effect;
        let value = self.operator == "Exists" || self.value == taint.value;
        key && effect && value
    }
}

impl Taint {
    /// Whether it keeps pods away that do not tolerate it.
    pub(crate) fn repels(&self) -> bool {
        self.effect == "NoSchedule" || self.effect == "NoExecute"
    }

    /// Whether it does so for good. Those of Kubernetes itself come and go with how a node is doing.
    pub(crate) fn stays(&self) -> bool {
        let passing = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
        self.repels() && !passing.iter().any(|prefix| self.key.starts_with(prefix))
    }
}

impl std::fmt::Display for Taint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.value.as_str() {
            "" => write!(f, "{}:{}", self.key, self.effect),
            value => write!(f, "{}={value}:{}", self.key, self.effect),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(all: &[(&str, &str)]) -> Amounts {
        Amounts::of(&all.iter().map(|(k, v)| ((*k).to_owned(), Quantity((*v).to_owned()))).collect())
    }

    #[test]
    fn the_scarcest_kind_decides_how_many_fit() {
        let node = amounts(&[("cpu", "8"), ("memory", "32Gi"), (GPU, "2"), ("pods", "110")]);
        for (need, fits) in [
            (amounts(&[("cpu", "1500m"), ("memory", "1Gi")]), 5),
            (amounts(&[("cpu", "1"), ("memory", "16Gi")]), 2),
            (amounts(&[("cpu", "100m"), (GPU, "1")]), 2),
            (amounts(&[("cpu", "1"), ("amd.com/gpu", "1")]), 0),
            (amounts(&[]), u64::MAX),
        ] {
            assert_eq!(node.holds(&need), fits, "{}", need.humane());
        }
    }

    #[test]
    fn amounts_read_well() {
        let need = amounts(&[("cpu", "4"), ("memory", "16Gi"), (GPU, "8"), ("amd.com/gpu", "2")]);
        assert_eq!(need.humane(), "2 x amd.com/gpu, 8 GPUs, 4 CPUs, 16 GiB memory");
        assert_eq!(need.to_domain().1, BTreeMap::from([("amd.com/gpu".to_owned(), 2)]));
    }

    #[test]
    fn a_taint_is_tolerated_as_kubernetes_says() {
        let taint = Taint { key: "team".into(), value: "red".into(), effect: "NoSchedule".into() };
        let tolerance = |key: &str, operator: &str, value: &str, effect: &str| Tolerance {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
            effect: effect.into(),
        };
        assert!(tolerance("team", "Equal", "red", "NoSchedule").covers(&taint));
        assert!(tolerance("team", "", "red", "").covers(&taint));
        assert!(tolerance("", "Exists", "", "").covers(&taint));
        assert!(!tolerance("team", "Equal", "blue", "").covers(&taint));
        assert!(!tolerance("team", "Exists", "", "NoExecute").covers(&taint));
    }
}
