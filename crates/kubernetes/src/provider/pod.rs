//! A node as objects of the cluster: a pod, and the Secret with which it joins.
//!
//! The image is the machine: what a job finds there is what the image has. Our program is brought in by an init container, as
//! for jobs of the extension. Invariants: no secret stands in the pod; nothing is privileged, and nobody is root.

use super::{PodSettings, labelled};
use crate::{instance_type::GPU, names};
use compute::{Order, Trouble};
use k8s_openapi::{
    api::core::v1::{Pod, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PROGRAM: &str = "/peregrine-bin";
const KEYS: &str = "/peregrine-keys";
/// Everything of a node's: short, for the agent has sockets below it.
const HOME: &str = "/peregrine-home";
/// What runs on a pod that has to go is asked to end within this time.
const GRACE_SECONDS: u32 = 60;
const USER: i64 = 1000;

/// The name of a node's objects. A node's name has letters, digits and `-`; a pod's has small letters.
pub(super) fn name(node: &str) -> String {
    node.to_ascii_lowercase()
}

/// The pod of a node. Fails where what its file says is nothing that a pod has.
pub(super) fn pod(settings: &PodSettings, order: &Order) -> Result<Pod, Trouble> {
    let pod = json!({
        "metadata": {
            "name": name(&order.name), "labels": labelled(settings, &order.name),
            // A node without work goes by itself; one with work is not to be moved for the sake of order.
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"},
        },
        "spec": spec(settings, order),
    });
    serde_json::from_value(pod).map_err(|error| Trouble::new("pod", format!("this cannot be made into a pod: {error}")))
}

/// The Secret of a node, which is its pod's.
pub(super) fn secret(settings: &PodSettings, order: &Order, owner: &Pod) -> Secret {
    let mut data = BTreeMap::from([("join".to_owned(), order.token.clone())]);
    if !settings.authority.is_empty() {
        data.insert("authority.pem".to_owned(), settings.authority.clone());
    }
    let mut secret = Secret { string_data: Some(data), immutable: Some(true), ..Secret::default() };
    secret.metadata.name = Some(name(&order.name));
    secret.metadata.labels = Some(labelled(settings, &order.name));
    secret.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: name(&order.name),
        uid: owner.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }]);
    secret
}

fn spec(settings: &PodSettings, order: &Order) -> Value {
    let shape = &settings.shape;
    let mut spec = json!({
        // A node has one life. What its agent needs to come back is in the container; what needs more is another node.
        "restartPolicy": "Never",
        "automountServiceAccountToken": shape.service_account.is_some(),
        "enableServiceLinks": false,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER, "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [init_container(settings)],
        "containers": [container(settings, order)],
        "volumes": [
            {"name": "peregrine-bin", "emptyDir": {}},
            {"name": "peregrine-home", "emptyDir": {}},
            {"name": "peregrine-shm", "emptyDir": {"medium": "Memory"}},
            {"name": "peregrine-keys", "secret": {"secretName": name(&order.name), "defaultMode": 0o440}},
        ],
    });
    if !shape.node_selector.is_empty() {
        spec["nodeSelector"] = json!(shape.node_selector);
    }
    if !shape.tolerations.is_empty() {
        spec["tolerations"] = json!(shape.tolerations);
    }
    if let Some(class) = &shape.priority_class {
        spec["priorityClassName"] = json!(class);
    }
    if let Some(account) = &shape.service_account {
        spec["serviceAccountName"] = json!(account);
    }
    if !shape.pull_secrets.is_empty() {
        spec["imagePullSecrets"] = shape.pull_secrets.iter().map(|name| json!({"name": name})).collect();
    }
    spec
}

fn init_container(settings: &PodSettings) -> Value {
    json!({
        "name": "peregrine",
        "image": settings.shape.agent_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/peregrine", "agent", "place", PROGRAM],
        "securityContext": names::container_security(),
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "500m", "memory": "64Mi"}},
        "volumeMounts": [{"name": "peregrine-bin", "mountPath": PROGRAM}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

fn container(settings: &PodSettings, order: &Order) -> Value {
    let plain = |name: &str, value: &str| json!({"name": name, "value": value});
    let mut env = vec![
        plain("PEREGRINE_NODE", &order.name),
        plain("PEREGRINE_SERVER", &settings.server),
        plain("PEREGRINE_JOIN_FILE", &format!("{KEYS}/join")),
        plain("PEREGRINE_TOP", HOME),
        plain("HOME", HOME),
        json!({"name": "PEREGRINE_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
    ];
    if !settings.authority.is_empty() {
        env.push(plain("PEREGRINE_CA_FILE", &format!("{KEYS}/authority.pem")));
    }
    let amounts = &order.amounts;
    let mut limits = json!({"cpu": format!("{}m", amounts.cpu_milli), "memory": amounts.memory_bytes.to_string()});
    if amounts.gpus > 0 {
        limits[GPU] = json!(amounts.gpus.to_string());
    }
    json!({
        "name": "node",
        "image": settings.shape.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [format!("{PROGRAM}/peregrine"), "agent", "node"],
        "env": env,
        "resources": {"requests": limits, "limits": limits},
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "peregrine-bin", "mountPath": PROGRAM, "readOnly": true},
            {"name": "peregrine-keys", "mountPath": KEYS, "readOnly": true},
            {"name": "peregrine-home", "mountPath": HOME},
            {"name": "peregrine-shm", "mountPath": "/dev/shm"},
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    })
}

#[cfg(test)]
mod tests {
    use super::{super::PodSettings, *};
    use domain::{Resources, Timestamp};

    fn settings(provider: Value) -> PodSettings {
        let of = ("k1".to_owned(), "default".to_owned(), "Crew".to_owned());
        let server = ("https://s:7423/".to_owned(), "pem".to_owned());
        PodSettings::of(&provider, of, None, server, || Timestamp(0))
    }

    fn order() -> Order {
        let amounts = Resources { cpu_milli: 4000, memory_bytes: 14 << 30, gpus: 2 };
        Order {
            name: "Crew-0a1b2c".into(),
            token: "join.secret".into(),
            size: "S".into(),
            amounts,
            tier: Default::default(),
        }
    }

    #[test]
    fn a_node_asks_for_all_it_may_use_and_holds_no_secret() {
        let provider = json!({
            "type": "kubernetes", "image": "lab/train:1", "namespace": "ml", "serviceAccount": "sa",
            "nodeSelector": {"pool": "gpu"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "priorityClass": "low", "imagePullSecrets": ["regcred"],
        });
        let settings = settings(provider);
        let made = serde_json::to_value(pod(&settings, &order()).unwrap()).unwrap();
        assert_eq!(made["metadata"]["name"], "crew-0a1b2c");
        assert_eq!(made["metadata"]["labels"]["peregrine.dev/node"], "Crew-0a1b2c");
        let spec = &made["spec"];
        let resources = &spec["containers"][0]["resources"];
        assert_eq!(resources["limits"], json!({"cpu": "4000m", "memory": (14_u64 << 30).to_string(), GPU: "2"}));
        assert_eq!(resources["limits"], resources["requests"]);
        let chosen = (&spec["nodeSelector"]["pool"], &spec["tolerations"][0]["key"], &spec["priorityClassName"]);
        assert_eq!(chosen, (&json!("gpu"), &json!("gpu"), &json!("low")));
        assert_eq!(
            (&spec["serviceAccountName"], &spec["imagePullSecrets"][0]["name"]),
            (&json!("sa"), &json!("regcred"))
        );
        assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
        assert!(!made.to_string().contains("join.secret"), "{made}");
        assert!(made.to_string().contains("\"https://s:7423\""), "{made}");
        let mut owner = Pod::default();
        owner.metadata.uid = Some("u1".into());
        let secret = secret(&settings, &order(), &owner);
        assert_eq!(secret.metadata.owner_references.unwrap()[0].uid, "u1");
        assert_eq!(secret.string_data.unwrap()["join"], "join.secret");
    }

    #[test]
    fn what_no_pod_has_is_said_and_is_no_panic() {
        let provider = json!({"type": "kubernetes", "image": "i", "tolerations": [{"key": 5}]});
        let refused = pod(&settings(provider), &order()).unwrap_err();
        assert!(refused.why.contains("cannot be made into a pod"), "{refused}");
    }
}
