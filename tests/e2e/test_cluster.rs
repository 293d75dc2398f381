//! What tests may rely on in the cluster that `cargo xtask cluster up` gives them.

use crate::cluster::Cluster;
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
};

#[test]
fn a_pod_prints_and_ends_and_one_over_its_limit_is_killed() {
    let Some(cluster) = Cluster::lease() else { return };
    cluster.apply(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "prints"}, "spec": {"restartPolicy": "Never", "containers":
        [{"name": "main", "image": "$PYTHON_IMAGE", "command": ["python3", "-c", "print(6 * 7)"]}]}}"#,
    );
    cluster.apply(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hog"}, "spec": {"restartPolicy": "Never", "containers":
        [{"name": "main", "image": "$PYTHON_IMAGE", "command": ["python3", "-c", "len(bytearray(300_000_000))"],
        "resources": {"limits": {"memory": "64Mi"}}}]}}"#,
    );
    cluster.until_field("pod/prints", ".status.phase", "Succeeded");
    assert_eq!(cluster.ok(&["logs", "prints"]), "42");
    cluster.until_field("pod/hog", ".status.phase", "Failed");
    assert_eq!(cluster.field("pod/hog", ".status.containerStatuses[0].state.terminated.reason"), "OOMKilled");
}

#[test]
fn pods_and_this_machine_reach_each_other() {
    let Some(cluster) = Cluster::lease() else { return };
    let listener = TcpListener::bind((cluster.fact("HOST_ADDRESS"), 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = std::thread::spawn(move || listener.accept().unwrap().0.write_all(b"from the host\n").unwrap());
    cluster.apply(&format!(
        r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "talks"}}, "spec": {{"containers": [{{"name": "main",
        "image": "$MINIMAL_IMAGE", "command": ["sh", "-c", "nc $HOST_ADDRESS {port} < /dev/null; nc -ll -p 9000 -e echo from the pod"]}}]}}}}"#
    ));
    cluster.until("the host's answer in the pod's log", || {
        cluster.kubectl(&["logs", "talks"]).stdout.starts_with(b"from the host")
    });
    answer.join().unwrap();
    let address = cluster.field("pod/talks", ".status.podIP");
    let mut heard = String::new();
    cluster.until("an answer from the pod", || {
        TcpStream::connect((address.as_str(), 9000)).is_ok_and(|mut pod| pod.read_to_string(&mut heard).is_ok())
    });
    assert_eq!(heard, "from the pod\n");
}

#[test]
fn a_gang_of_two_completes_on_the_real_node() {
    let Some(cluster) = Cluster::lease() else { return };
    cluster.apply(
        r#"{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "pair"}, "spec": {"minAvailable": 2,
        "schedulerName": "volcano", "queue": "default", "tasks": [{"name": "part", "replicas": 2, "template": {"spec":
        {"restartPolicy": "Never", "containers": [{"name": "main", "image": "$MINIMAL_IMAGE", "command": ["true"]}]}}}]}}"#,
    );
    cluster.until_field("vcjob/pair", ".status.state.phase", "Completed");
    assert_eq!(cluster.field("pods", ".items[*].status.phase"), "Succeeded Succeeded");
}

#[test]
fn fake_pods_live_as_their_annotations_say() {
    let Some(cluster) = Cluster::lease() else { return };
    let ended = ".status.containerStatuses[0].state.terminated.reason";
    let waiting = ".status.containerStatuses[0].state.waiting.reason";
    let lives = [
        ("well", &[("seconds", "0")][..], "Succeeded", ended, "Completed"),
        ("badly", &[("seconds", "0"), ("exit-code", "3")], "Failed", ended, "Error"),
        ("hog", &[("seconds", "0"), ("reason", "OOMKilled")], "Failed", ended, "OOMKilled"),
        ("evicted", &[("seconds", "0"), ("reason", "Evicted")], "Failed", ".status.reason", "Evicted"),
        ("lacking", &[("reason", "ErrImagePull")], "Pending", waiting, "ErrImagePull"),
    ];
    for (name, says, ..) in lives {
        let annotations: Vec<String> =
            says.iter().map(|(key, value)| format!(r#""fake.peregrine.test/{key}": "{value}""#)).collect();
        let annotations = annotations.join(", ");
        cluster.apply(&format!(
            r#"{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{name}", "annotations": {{{annotations}}}}}, "spec":
            {{"restartPolicy": "Never", "nodeSelector": {{"peregrine.test/node": "fake"}},
            "tolerations": [{{"key": "peregrine.test/fake", "operator": "Exists"}}],
            "containers": [{{"name": "main", "image": "none"}}]}}}}"#
        ));
    }
    for (name, _, phase, path, reason) in lives {
        cluster.until_field(&format!("pod/{name}"), path, reason);
        assert_eq!(cluster.field(&format!("pod/{name}"), ".status.phase"), phase, "{name}");
    }
}

#[test]
fn our_image_runs_as_nobody_in_a_restricted_namespace() {
    let Some(cluster) = Cluster::lease() else { return };
    let namespace = cluster.field("serviceaccount/default", ".metadata.namespace");
    cluster.ok(&["label", "namespace", &namespace, "pod-security.kubernetes.io/enforce=restricted"]);
    cluster.apply(
        r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ours"}, "spec": {"restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}, "containers": [{"name": "main",
        "image": "$PEREGRINE_IMAGE", "args": ["--version"],
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}]}}"#,
    );
    cluster.until_field("pod/ours", ".status.phase", "Succeeded");
    assert!(cluster.ok(&["logs", "ours"]).starts_with("peregrine "));
}
