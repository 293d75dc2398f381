//! Instance types that go with the nodes there are: a whole node of each shape, a half and a quarter.
//!
//! A node's name says what it has, `32cpu128g`; a job that asked for all of that would wait for ever, because the system,
//! daemons and the memory reservation have their part. These types ask for what is left. Invariant: on a node of its shape
//! that runs nothing but its daemons, as many fit as the name promises.

use super::{GPU, InstanceType, InstanceTypeSpec};
use crate::{quantity, reservation};
use domain::Resources;
use k8s_openapi::api::core::v1::{Node, Pod};
use std::collections::BTreeMap;

/// How a shape is divided.
const SHARES: [u64; 3] = [1, 2, 4];
const GIB: u64 = 1 << 30;

/// Types for these nodes, largest first. `pods` are those of the whole cluster: what daemons ask for is theirs.
pub fn for_nodes(nodes: &[Node], pods: &[Pod], reserved: bool) -> Vec<InstanceType> {
    let mut shapes: BTreeMap<(u64, u64, u32), Resources> = BTreeMap::new();
    for node in nodes {
        let Some((shape, left)) = shape(node, pods, reserved) else { continue };
        let least = shapes.entry(shape).or_insert(left);
        least.cpu_milli = least.cpu_milli.min(left.cpu_milli);
        least.memory_bytes = least.memory_bytes.min(left.memory_bytes);
    }
    let mut found = BTreeMap::new();
    for ((cores, gib, gpus), left) in shapes.iter().rev() {
        for share in SHARES {
            let whole = cores % share == 0 && gib % share == 0 && u64::from(*gpus) % share == 0;
            if share > 1 && !whole {
                continue;
            }
            let name = name(cores / share, gib / share, u64::from(*gpus) / share);
            // A half of one shape may have the name of another; what fits on both is the lesser.
            let (cpu, memory) = (left.cpu_milli / share / 10 * 10, (left.memory_bytes / share) >> 20);
            let known = found.entry(name).or_insert((cpu, memory, u64::from(*gpus) / share));
            (known.0, known.1) = (known.0.min(cpu), known.1.min(memory));
        }
    }
    let mut all: Vec<_> = found.into_iter().filter(|(_, (cpu, memory, _))| *cpu > 0 && *memory > 0).collect();
    all.sort_by_key(|(_, amounts)| std::cmp::Reverse(*amounts));
    all.into_iter().map(|(name, (cpu, memory, gpus))| made(&name, cpu, memory, gpus)).collect()
}

fn made(name: &str, cpu_milli: u64, memory_mib: u64, gpus: u64) -> InstanceType {
    let (cpu, memory, gpus) = (format!("{cpu_milli}m"), format!("{memory_mib}Mi"), gpus.to_string());
    let mut limits = vec![("cpu", cpu.as_str()), ("memory", memory.as_str())];
    if gpus != "0" {
        limits.push((GPU, &gpus));
    }
    InstanceType::new(name, InstanceTypeSpec::of(&[("cpu", &cpu), ("memory", &memory)], &limits))
}

fn name(cores: u64, gib: u64, gpus: u64) -> String {
    match gpus {
        0 => format!("{cores}cpu{gib}g"),
        n => format!("{cores}cpu{gib}g{n}gpu"),
    }
}

/// What a node is called by, and what of it is left for work; `None` for nodes that take none.
fn shape(node: &Node, pods: &[Pod], reserved: bool) -> Option<((u64, u64, u32), Resources)> {
    let status = node.status.as_ref()?;
    let (capacity, allocatable) = (status.capacity.as_ref()?, status.allocatable.as_ref()?);
    let at = |amounts: &BTreeMap<String, _>, name: &str| amounts.get(name).and_then(quantity::units).unwrap_or(0);
    let gpus = u32::try_from(at(allocatable, GPU)).unwrap_or(u32::MAX);
    let cores = capacity.get("cpu").and_then(quantity::milli)? / 1000;
    let gib = sold_with(at(capacity, "memory"), cores);
    let used = daemons(node.metadata.name.as_deref()?, pods);
    let kept = if reserved { reservation::bytes(node) } else { 0 };
    let left = Resources {
        cpu_milli: allocatable.get("cpu").and_then(quantity::milli)?.saturating_sub(used.cpu_milli + 1),
        memory_bytes: at(allocatable, "memory").saturating_sub(used.memory_bytes + kept),
        gpus,
    };
    (cores > 0 && gib > 0).then_some(((cores, gib, gpus), left))
}

/// The memory a machine is known by, in GiB. Its kernel sees a little less, so a round amount for each core just above
/// that is taken to be meant.
fn sold_with(bytes: u64, cores: u64) -> u64 {
    let round = bytes.div_ceil(GIB).next_multiple_of(cores.max(1));
    if round * GIB / 100 * 93 <= bytes { round } else { (bytes + GIB / 2) / GIB }
}

/// What pods that are on every node ask for: daemons, and those the kubelet starts by itself.
fn daemons(node: &str, pods: &[Pod]) -> Resources {
    let here = pods.iter().filter(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node)));
    let stays = |pod: &&Pod| {
        let owners = pod.metadata.owner_references.iter().flatten();
        let ours = pod.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(reservation::LABEL));
        !ours && owners.into_iter().any(|owner| owner.kind == "DaemonSet" || owner.kind == "Node")
    };
    let containers = here.filter(stays).flat_map(|pod| pod.spec.iter().flat_map(|spec| &spec.containers));
    containers.fold(Resources::default(), |sum, container| {
        let asked = container.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let of =
            |name: &str, read: fn(&_) -> Option<u64>| asked.and_then(|all| all.get(name)).and_then(read).unwrap_or(0);
        sum.plus(&Resources {
            cpu_milli: of("cpu", quantity::milli),
            memory_bytes: of("memory", quantity::units),
            gpus: 0,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(name: &str, cpu: &str, memory: &str, gpus: u32) -> Node {
        let amounts = json!({"cpu": cpu, "memory": memory, GPU: gpus.to_string()});
        let node = json!({"metadata": {"name": name}, "status": {"capacity": amounts, "allocatable": amounts}});
        serde_json::from_value(node).unwrap()
    }

    fn pod(node: &str, owner: &str, labels: Value) -> Pod {
        let requests = json!({"cpu": "100m", "memory": "1Gi"});
        let pod = json!({
            "metadata": {"labels": labels, "ownerReferences": [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u"}]},
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": requests}}]},
        });
        serde_json::from_value(pod).unwrap()
    }

    fn shown(types: &[InstanceType]) -> Vec<String> {
        let one = |it: &InstanceType| {
            let it = it.spec.to_domain(it.metadata.name.as_deref().unwrap());
            format!("{} {}m {}Mi {}", it.name, it.requests.cpu_milli, it.requests.memory_bytes >> 20, it.requests.gpus)
        };
        types.iter().map(one).collect()
    }

    #[test]
    fn a_whole_a_half_and_a_quarter_of_each_shape_leave_room_for_what_is_reserved() {
        let nodes = [node("a", "32", "128Gi", 0), node("b", "32", "128Gi", 0)];
        let pods = [pod("a", "DaemonSet", json!({})), pod("a", "ReplicaSet", json!({}))];
        // 131072 Mi less 6553 Mi reserved less 1024 Mi of the daemon on `a`.
        let expect = ["32cpu128g 31890m 123495Mi 0", "16cpu64g 15940m 61747Mi 0", "8cpu32g 7970m 30873Mi 0"];
        assert_eq!(shown(&for_nodes(&nodes, &pods, true)), expect);
    }

    #[test]
    fn our_own_reservation_is_not_counted_twice() {
        let held = pod("a", "Node", json!({reservation::LABEL: "x"}));
        let nodes = [node("a", "4", "100Gi", 0)];
        assert_eq!(shown(&for_nodes(&nodes, &[held], true))[0], "4cpu100g 3990m 97280Mi 0");
    }

    #[test]
    fn gpus_are_in_the_name_and_divided_whole() {
        let types = for_nodes(&[node("a", "64", "256Gi", 2)], &[], false);
        assert_eq!(shown(&types), ["64cpu256g2gpu 63990m 262144Mi 2", "32cpu128g1gpu 31990m 131072Mi 1"]);
    }

    #[test]
    fn two_shapes_that_share_a_name_fit_on_both() {
        let nodes = [node("big", "8", "32Gi", 0), node("small", "4", "15800Mi", 0)];
        assert_eq!(shown(&for_nodes(&nodes, &[], false))[1], "4cpu16g 3990m 15800Mi 0");
    }

    #[test]
    fn machines_are_called_by_the_memory_they_were_sold_with() {
        for (mib, cores, expect) in
            [(128_800, 32, 128), (3900, 2, 4), (257_000, 64, 256), (56_320, 6, 55), (32_768, 8, 32)]
        {
            assert_eq!(sold_with(mib << 20, cores), expect, "{mib} Mi on {cores} cores");
        }
    }
}
