//! Memory that no job may have: one small pod on each node, asking for a share of the node's own memory.
//!
//! Work that fills a node's memory to the last page takes the kubelet down with it. A DaemonSet cannot ask for a share of
//! what each node has, so the operator keeps one pod a node, owned by the node and gone with it. It uses next to nothing; what
//! it asks for is what nobody else gets. Invariants: the same node gives the same pod; it has no priority, so it waits for
//! room and pushes no ordinary work aside.

use crate::{names, operator::refusal::is_there, quantity, settings::Settings};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

/// Names the node in a label of its pod.
pub const LABEL: &str = "peregrine.dev/reservation";
/// Of a node's memory, in hundredths.
const PERCENT: u64 = 5;

/// Memory set aside on a node, in whole mebibytes.
pub fn bytes(node: &Node) -> u64 {
    let status = node.status.as_ref();
    let memory = status.and_then(|status| status.capacity.as_ref()?.get("memory")).and_then(quantity::units);
    share(memory.unwrap_or_default())
}

/// Of a node with so much memory, in whole mebibytes.
pub(crate) fn share(memory_bytes: u64) -> u64 {
    (memory_bytes / 100 * PERCENT) >> 20 << 20
}

/// The pod that holds a node's share; `None` where there is nothing to hold or nobody wants it held.
pub fn pod(node: &Node, settings: &Settings, namespace: &str, image: &str) -> Option<Pod> {
    let (name, uid) = (node.metadata.name.as_deref()?, node.metadata.uid.as_deref()?);
    let amount = bytes(node);
    if !settings.memory_reservation || amount == 0 {
        return None;
    }
    // A node's own name may be too long for a pod's, and for a label.
    let suffix: String = uid.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    let labels = json!({
        names::PART_OF: names::PRODUCT, names::COMPONENT: "reservation", LABEL: suffix,
    });
    let pod = json!({
        "metadata": {
            "name": format!("reserve-{suffix}"),
            "namespace": namespace,
            "labels": labels,
            "annotations": {
                "peregrine.dev/node": name,
                // A pod without a controller would otherwise keep autoscalers from removing an idle node.
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
            },
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
        },
        "spec": {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]},
            ]}}},
            // It belongs on its node whatever the node is tainted with.
            "tolerations": [{"operator": "Exists"}],
            "imagePullSecrets": names::references(&settings.image_pull_secrets),
            "restartPolicy": "Always",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": 1,
            "securityContext": names::pod_security(),
            "containers": [{
                "name": "hold",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["/peregrine", "extension", "hold"],
                "securityContext": names::container_security(),
                "resources": {"requests": {"cpu": "1m", "memory": amount.to_string()}, "limits": {"cpu": "100m", "memory": amount.to_string()}},
            }],
        },
    });
    Some(serde_json::from_value(pod).expect("a pod of ours is a pod"))
}

/// Makes the pod of a node, in the place of one that has ended: evicted, or gone down with its node.
pub(crate) async fn keep(pods: &Api<Pod>, pod: &Pod) -> Result<(), kube::Error> {
    let made = pods.create(&PostParams::default(), pod).await;
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    match made {
        Err(error) if is_there(&error) => {
            let there = pods.get_opt(name).await?;
            let phase = there.and_then(|there| there.status?.phase).unwrap_or_default();
            if !matches!(phase.as_str(), "Failed" | "Succeeded") {
                return Ok(());
            }
            pods.delete(name, &DeleteParams::default().grace_period(0)).await?;
            pods.create(&PostParams::default(), pod).await.map(drop)
        }
        made => made.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(memory: &str) -> Node {
        let node = json!({
            "metadata": {"name": "n1", "uid": "0d3f-77aa-1b2c3d4e5f"},
            "status": {"capacity": {"cpu": "4", "memory": memory}},
        });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_pod_holds_five_hundredths_of_its_own_node() {
        let settings = Settings { memory_reservation: true, ..Settings::default() };
        let pod = pod(&node("131072Mi"), &settings, "peregrine", "ours:1").unwrap();
        let spec = pod.spec.unwrap();
        let asked = spec.containers[0].resources.clone().unwrap().requests.unwrap()["memory"].clone();
        assert_eq!(quantity::units(&asked), Some(6553 << 20));
        assert_eq!(pod.metadata.owner_references.unwrap()[0].kind, "Node");
        let terms = spec.affinity.unwrap().node_affinity.unwrap().required_during_scheduling_ignored_during_execution;
        assert_eq!(
            terms.unwrap().node_selector_terms[0].match_fields.as_ref().unwrap()[0].values,
            Some(vec!["n1".into()])
        );
    }

    #[test]
    fn nothing_is_held_where_nobody_wants_it_or_nothing_is_known() {
        let on = Settings { memory_reservation: true, ..Settings::default() };
        for (settings, memory) in [(&Settings::default(), "64Gi"), (&on, "0"), (&on, "nonsense")] {
            assert!(pod(&node(memory), settings, "peregrine", "ours:1").is_none(), "{memory}");
        }
    }
}
