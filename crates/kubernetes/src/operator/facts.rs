//! The cluster in the server's words: nodes, what is free on them, instance types and how many of each would fit.

use super::{
    affinity::Affinity,
    amounts::{Amounts, Need, Tolerance},
    fit::{Room, fits_now},
    world::World,
};
use crate::{
    instance_type::{GPU, InstanceTypeSpec},
    settings::{Inference, ServiceType},
};
use domain::cluster::{ClusterFacts, ClusterInstanceType, ClusterNode};
use std::collections::{BTreeMap, BTreeSet};

/// Labels that tell nodes apart, besides those that selectors name.
const TELLING: [&str; 3] = ["kubernetes.io/arch", "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"];

/// What does not come from watching.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) kubernetes_version: String,
    pub(crate) gangs: String,
    pub(crate) training: bool,
    pub(crate) inference: Option<Inference>,
    pub(crate) grows: bool,
    /// Labels of nodes that all work is limited to.
    pub(crate) node_selector: BTreeMap<String, String>,
    /// A share of every node's memory is held back.
    pub(crate) reserves: bool,
}

pub(crate) fn facts(world: &World, about: &About) -> ClusterFacts {
    let rooms = world.rooms();
    let types = world.instance_types();
    let selectors = types.values().filter_map(|spec| spec.node_selector.as_ref()).chain([&about.node_selector]);
    let telling: BTreeSet<&str> = selectors.flat_map(BTreeMap::keys).map(String::as_str).chain(TELLING).collect();
    ClusterFacts {
        uid: about.uid.clone(),
        version: about.version.clone(),
        kubernetes_version: about.kubernetes_version.clone(),
        gangs: about.gangs.clone(),
        training: about.training,
        inference: about.inference.is_some(),
        scoring_url: about.inference.as_ref().and_then(|inference| scoring_url(inference, world)).unwrap_or_default(),
        grows: about.grows,
        nodes: rooms.iter().map(|room| node(room, &telling)).collect(),
        instance_types: types.iter().map(|(name, spec)| instance_type(name, spec, &rooms, about)).collect(),
        places: None,
    }
}

/// Where callers find the router, once the cluster has given it an address.
fn scoring_url(inference: &Inference, world: &World) -> Option<String> {
    let service = world.router.as_ref()?;
    let named = Some(&inference.host).filter(|host| !host.is_empty());
    let (address, port) = match inference.service {
        ServiceType::ClusterIp => (Some(&service.spec.cluster_ip), String::new()),
        ServiceType::NodePort => {
            let port = service.spec.ports.first().map(|port| port.node_port).filter(|port| *port > 0)?;
            let mut nodes = world.nodes.values().filter(|node| node.ready);
            (nodes.find(|node| !node.address.is_empty()).map(|node| &node.address), format!(":{port}"))
        }
        ServiceType::LoadBalancer => {
            let given = service.status.load_balancer.ingress.first();
            (given.map(|given| if given.hostname.is_empty() { &given.ip } else { &given.hostname }), String::new())
        }
    };
    let host = named.or(address).filter(|host| !host.is_empty())?;
    // An address of IPv6 has colons of its own.
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    Some(format!("{}://{host}{port}", inference.scheme()))
}

fn node(room: &Room, telling: &BTreeSet<&str>) -> ClusterNode {
    let (allocatable, extended) = room.node.allocatable.to_domain();
    let labels = room.node.labels.iter().filter(|(key, _)| telling.contains(key.as_str()));
    ClusterNode {
        name: room.node.name.clone(),
        ready: room.node.ready && !room.node.cordoned,
        allocatable,
        free: room.free.to_domain().0,
        labels: labels.map(|(key, value)| (key.clone(), value.clone())).collect(),
        extended,
    }
}

fn instance_type(name: &str, spec: &InstanceTypeSpec, rooms: &[Room], about: &About) -> ClusterInstanceType {
    let need = need(spec, &about.node_selector);
    let empty = rooms.iter().map(|room| room.node.could_hold(&need, room.node.reserved(about.reserves)));
    let empty = empty.fold(0, u64::saturating_add);
    ClusterInstanceType {
        fits_now: fits_now(&need, rooms),
        fits_ever: empty > 0,
        fits_empty: Some(empty),
        ..spec.to_domain(name)
    }
}

/// What one pod of a type needs on any target of this cluster.
pub(crate) fn need(spec: &InstanceTypeSpec, node_selector: &BTreeMap<String, String>) -> Need {
    let requirements = spec.requirements();
    let mut amounts = Amounts::of(&requirements.requests.unwrap_or_default());
    // Devices are asked for by their limit.
    let limits = Amounts::of(&requirements.limits.unwrap_or_default());
    amounts.others.extend(limits.others.into_iter().filter(|(name, _)| name == GPU || name.contains('/')));
    let mut selector = spec.node_selector.clone().unwrap_or_default();
    selector.extend(node_selector.clone());
    let tolerance = |key: &str| Tolerance { key: key.to_owned(), value: "true".to_owned(), ..Tolerance::default() };
    let mut tolerations = vec![tolerance("ml.azure.com/amlarc"), tolerance("ml.azure.com/amlarc-workload")];
    // Nodes may be kept for one of the targets; which is not asked here, so that nobody is refused what is theirs.
    let kept = ["ml.azure.com/resource-group", "ml.azure.com/workspace", "ml.azure.com/compute"];
    tolerations.extend(kept.map(|key| Tolerance { operator: "Exists".to_owned(), ..tolerance(key) }));
    tolerations.extend(spec.tolerations.iter().flatten().map(|given| Tolerance {
        key: given.key.clone().unwrap_or_default(),
        operator: given.operator.clone().unwrap_or_default(),
        value: given.value.clone().unwrap_or_default(),
        effect: given.effect.clone().unwrap_or_default(),
    }));
    Need { amounts, selector, affinity: Affinity::of(spec.affinity.as_ref()), tolerations }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Certificate;
    use serde_json::json;

    #[test]
    fn callers_are_sent_where_the_cluster_put_the_router() {
        let mut world = World::default();
        let node = json!({
            "metadata": {"name": "n1", "uid": "n"},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "10.0.0.7"}],
            },
        });
        world.see_node(serde_json::from_value(node).unwrap());
        let told = |service, host: &str, world: &World| {
            let certificate = if host.is_empty() { Certificate::None } else { Certificate::Protected };
            scoring_url(&Inference { service, host: host.into(), certificate, ..Inference::default() }, world)
        };
        assert_eq!(told(ServiceType::ClusterIp, "", &world), None, "there is no service yet");
        let service = |status: serde_json::Value| {
            let spec = json!({"clusterIP": "fd00::1", "ports": [{"nodePort": 30080}]});
            Some(serde_json::from_value(json!({"metadata": {"name": "r"}, "spec": spec, "status": status})).unwrap())
        };
        world.router = service(json!({}));
        for (kind, host, expect) in [
            (ServiceType::ClusterIp, "", Some("http://[fd00::1]")),
            (ServiceType::NodePort, "", Some("http://10.0.0.7:30080")),
            (ServiceType::NodePort, "serve.example.org", Some("https://serve.example.org:30080")),
            (ServiceType::LoadBalancer, "", None),
            (ServiceType::LoadBalancer, "serve.example.org", Some("https://serve.example.org")),
        ] {
            assert_eq!(told(kind, host, &world).as_deref(), expect, "{kind:?} {host}");
        }
        world.router = service(json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}));
        assert_eq!(told(ServiceType::LoadBalancer, "", &world).as_deref(), Some("http://192.0.2.1"));
    }

    #[test]
    fn types_say_how_many_fit_and_whether_any_ever_could() {
        let mut world = World::default();
        let node = json!({
            "metadata": {"name": "n1", "uid": "n", "labels": {"gpu": "a100", "team": "x", "pool": "ml"}},
            // Kept for one workspace.
            "spec": {"taints": [{"key": "ml.azure.com/workspace", "value": "team-a", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "4", "memory": "8Gi"},
                "allocatable": {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "amd.com/gpu": "1", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        world.see_node(serde_json::from_value(node).unwrap());
        let plain = [("cpu", "1"), ("memory", "1Gi")];
        let mut gpu = InstanceTypeSpec::of(&plain, &[("cpu", "1"), ("memory", "1Gi"), (GPU, "1")]);
        gpu.node_selector = Some(BTreeMap::from([("gpu".into(), "a100".into())]));
        let mut elsewhere = InstanceTypeSpec::of(&plain, &plain);
        elsewhere.affinity = serde_json::from_value(json!({"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
            ]},
        }}))
        .unwrap();
        // All that pods may have, of which a share is held back.
        let whole = InstanceTypeSpec::of(&[("cpu", "1"), ("memory", "8Gi")], &[("cpu", "1"), ("memory", "8Gi")]);
        let huge = InstanceTypeSpec::of(&[("cpu", "64"), ("memory", "1Gi")], &[("cpu", "64"), ("memory", "1Gi")]);
        for (name, spec) in [("elsewhere", elsewhere), ("gpu", gpu), ("huge", huge), ("whole", whole)] {
            world.see_type(crate::instance_type::InstanceType::new(name, spec));
        }
        let pool = BTreeMap::from([("pool".into(), "ml".into())]);
        let about = About { node_selector: pool, reserves: true, ..About::default() };
        let facts = facts(&world, &about);
        let fits = facts.instance_types.iter().map(|t| (t.name.as_str(), t.fits_now, t.fits_ever, t.fits_empty));
        let expect = [
            ("defaultinstancetype", 4, true, Some(3)),
            ("elsewhere", 0, false, Some(0)),
            ("gpu", 2, true, Some(2)),
            ("huge", 0, false, Some(0)),
            ("whole", 1, false, Some(0)),
        ];
        assert_eq!(fits.collect::<Vec<_>>(), expect, "the pod that holds back memory is not there yet");
        let labels: Vec<_> = facts.nodes[0].labels.keys().map(String::as_str).collect();
        assert_eq!(labels, ["gpu", "pool"], "only what tells nodes apart");
        assert_eq!(facts.nodes[0].extended, BTreeMap::from([("amd.com/gpu".into(), 1)]));
    }
}
