//! Nodes that are pods of a real Kubernetes cluster, made with no more than the role that the guide shows.

use super::{nodes, states, why};
use crate::{
    cluster::Cluster,
    extension::{alone, serve},
    harness::Home,
};
use serde_json::{Value, json};
use std::{fs, path::Path};

const OURS: [&str; 3] = ["get", "pods,secrets", "-lapp.kubernetes.io/name=peregrine-node"];

/// The role that the guide tells people to apply, in the test's own namespace.
fn apply_role(cluster: &Cluster, namespace: &str) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/clusters.md");
    let guide = fs::read_to_string(guide).unwrap();
    let block = guide.split("```yaml\n").find(|block| block.contains("kind: RoleBinding")).unwrap();
    let manifest = block.split("```").next().unwrap();
    cluster.apply(
        &manifest
            .replace("namespace: ml", &format!("namespace: {namespace}"))
            .replace("[ml]", &format!("[{namespace}]")),
    );
}

/// A kubeconfig for whoever has this token.
fn kubeconfig(home: &Home, cluster: &Cluster, name: &str, user: &Value) -> String {
    let admin = cluster.ok(&["config", "view", "--raw", "--minify", "-o", "json"]);
    let mut config: Value = serde_json::from_str(&admin).unwrap();
    let place = config["clusters"][0]["name"].clone();
    config["users"] = json!([{"name": "nodes", "user": user}]);
    config["contexts"] = json!([{"name": "nodes", "context": {"cluster": place, "user": "nodes"}}]);
    config["current-context"] = json!("nodes");
    home.file(name, &config.to_string());
    name.to_owned()
}

fn file(home: &Home, provider: &str, more: &str) {
    let text = format!(
        "name: crew\ntype: amlcompute\nsize: Standard_D1_v2\n{more}\nprovider: {{type: kubernetes, {provider}}}\n"
    );
    home.file("crew.yml", &text);
}

fn refused(home: &Home, provider: &str, words: &[&str]) {
    file(home, provider, "max_instances: 2");
    home.run(&["compute", "create", "-f", "crew.yml"]).must(2, words);
}

fn until(cluster: &Cluster, home: &Home, what: &str, so: impl Fn() -> bool) {
    let shown = || home.run(&["compute", "list-nodes", "-n", "crew"]).out;
    cluster.until(&format!("{what}\n{}", shown()), so);
}

fn begin(home: &Home, name: &str, command: &str) {
    home.begin(name, command, super::ON);
}

fn completed(cluster: &Cluster, home: &Home, job: &str) {
    let over = || !matches!(home.job(job)["status"].as_str(), Some("Queued" | "Preparing" | "Starting" | "Running"));
    until(cluster, home, &format!("the end of `{job}`"), over);
    assert_eq!(home.job(job)["status"], "Completed", "{}\n{}", why(home, job), home.log(job));
}

#[test]
fn pods_are_nodes_and_nothing_of_them_is_left() {
    let Some(cluster) = Cluster::lease() else { return };
    let _alone = alone();
    let home = Home::new();
    let url = serve(&home, &cluster);
    let namespace = cluster.field("serviceaccount/default", ".metadata.namespace");
    // The strictest that a namespace can be.
    cluster.ok(&["label", "namespace", &namespace, "pod-security.kubernetes.io/enforce=restricted"]);
    apply_role(&cluster, &namespace);
    let token = cluster.ok(&["create", "token", "peregrine-nodes"]);
    let config = kubeconfig(&home, &cluster, "nodes.json", &json!({"token": token}));
    let images =
        format!("image: '{}', agent_image: '{}'", cluster.fact("PYTHON_IMAGE"), cluster.fact("PEREGRINE_IMAGE"));

    what_is_wrong_is_said_before_anybody_waits(&home, &cluster, (&config, &namespace, &images, &url));

    let provider = format!("{images}, namespace: {namespace}, kubeconfig_file: {config}, server_url: '{url}'");
    file(&home, &provider, "max_instances: 2\nidle_time_before_scale_down: 5");
    home.ok(&["compute", "create", "-f", "crew.yml"]);
    let shown = home.json(&["compute", "show", "-n", "crew"]).to_string();
    assert!(!shown.contains(&token) && !shown.contains("certificate-authority"), "{shown}");
    assert!(nodes(&home).is_empty());

    // Two jobs, and nobody left when both are done.
    begin(&home, "one", "echo one on $(cat /etc/hostname)");
    begin(&home, "two", "echo two; id -u");
    completed(&cluster, &home, "one");
    completed(&cluster, &home, "two");
    assert!(home.log("one").starts_with("one on crew-"), "{}", home.log("one"));
    assert_eq!(home.log("two"), "two\n1000\n");
    until(&cluster, &home, "the nodes to go", || nodes(&home).is_empty());
    assert_eq!(cluster.ok(&[&OURS[..], &["-o", "name"]].concat()), "");

    lives_through_the_loss_of_server_and_agent(&home, &cluster, &url);
    a_pod_that_is_deleted_has_its_job_tried_again(&home, &cluster);

    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    assert_eq!(cluster.ok(&[&OURS[..], &["-o", "name"]].concat()), "");

    // A node that cannot come says why, and goes.
    let nowhere = provider.replace(cluster.fact("PYTHON_IMAGE"), "peregrine.test/nowhere:1");
    file(&home, &nowhere, "max_instances: 1");
    home.ok(&["compute", "create", "-f", "crew.yml"]);
    begin(&home, "stuck", "true");
    let said =
        || home.run(&["compute", "list-nodes", "-n", "crew", "-o", "json"]).out.contains("the image cannot be pulled");
    until(&cluster, &home, "the reason", said);
    until(&cluster, &home, "the reason for the job", || why(&home, "stuck").contains("the image cannot be pulled"));
    home.ok(&["job", "cancel", "-n", "stuck"]);
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    assert_eq!(cluster.ok(&[&OURS[..], &["-o", "name"]].concat()), "");
}

fn what_is_wrong_is_said_before_anybody_waits(
    home: &Home,
    cluster: &Cluster,
    (config, namespace, images, url): (&str, &str, &str, &str),
) {
    refused(home, "kubeconfig_file: nodes.json", &["no image is named for the nodes"]);
    refused(home, &format!("{images}, nodeselector: {{a: b}}"), &["nodeselector", "node_selector"]);
    refused(home, &format!("{images}, kubeconfig_file: absent.yml"), &["`absent.yml` cannot be used"]);
    refused(home, &format!("{images}, kubeconfig_file: {config}, context: away"), &["away", "get-contexts"]);
    let exec = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "touch", "interactiveMode": "Never"}});
    let exec = kubeconfig(home, cluster, "exec.json", &exec);
    refused(home, &format!("{images}, kubeconfig_file: {exec}"), &["signs in with the program `touch`"]);
    // First, for a target that is changed without one keeps the one it has.
    let server = format!("server_url: '{url}'");
    refused(home, &format!("{images}, {server}"), &["no kubeconfig was given", "kubeconfig_file"]);
    let stranger = kubeconfig(home, cluster, "stranger.json", &json!({"token": "nobody"}));
    refused(home, &format!("{images}, kubeconfig_file: {stranger}, {server}"), &["does not accept these credentials"]);
    let of_others = format!("{images}, kubeconfig_file: {config}, {server}, namespace: kube-system");
    refused(home, &of_others, &["may not create pods", "in `kube-system`"]);
    let admin = cluster.fact("KUBECONFIG");
    let missing = format!("{images}, kubeconfig_file: '{admin}', {server}, namespace: absent");
    refused(home, &missing, &["there is no namespace `absent`"]);
    let account =
        format!("{images}, kubeconfig_file: {config}, {server}, namespace: {namespace}, service_account: nobody");
    refused(home, &account, &["nobody"]);
    let loopback =
        format!("{images}, kubeconfig_file: {config}, namespace: {namespace}, server_url: 'https://127.0.0.1:1'");
    refused(home, &loopback, &["is the pod itself", "server_url"]);
}

/// The agent of a node is killed, and the server too: the job does not notice.
fn lives_through_the_loss_of_server_and_agent(home: &Home, cluster: &Cluster, url: &str) {
    begin(home, "steps", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo step $i; sleep 1; done");
    until(cluster, home, "its first line", || home.log("steps").contains("step 1"));
    let name = nodes(home)[0].0.clone();
    let find = "for p in /proc/[0-9]*; do n=${p##*/}; [ $n -gt 1 ] && tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '[a]gent node' && kill -9 $n; done; true";
    cluster.ok(&["exec", &name, "-c", "node", "--", "sh", "-c", find]);
    assert!(home.kill("server"));
    let listen = url.trim_start_matches("https://");
    home.ok(&["server", "start", "--listen", listen, "--tls-cert", "certificate.pem", "--tls-key", "key.pem"]);
    completed(cluster, home, "steps");
    let all: String = (1..=12).map(|n| format!("step {n}\n")).collect();
    assert_eq!(home.log("steps"), all, "{}", why(home, "steps"));
    assert_eq!(nodes(home).iter().filter(|(node, _)| *node == name).count(), 1, "{:?}", nodes(home));
    until(cluster, home, "the node to go", || nodes(home).is_empty());
}

fn a_pod_that_is_deleted_has_its_job_tried_again(home: &Home, cluster: &Cluster) {
    begin(home, "moved", "trap 'echo told; exit 143' TERM\necho attempt\nfor i in $(seq 6000); do sleep 0.1; done");
    until(cluster, home, "the first attempt", || home.log("moved") == "attempt\n");
    let name = nodes(home)[0].0.clone();
    cluster.ok(&["delete", "pod", &name, "--wait=false"]);
    until(cluster, home, "the node to be shown as it is", || {
        nodes(home).iter().all(|(node, state)| *node != name || state == "preempted")
    });
    let second =
        || fs::read_to_string(home.artifacts("moved").join("retry-001/user_logs/std_log.txt")).unwrap_or_default();
    until(cluster, home, "a second attempt", || second() == "attempt\n");
    assert!(home.log("moved").ends_with("told\n"), "{}", home.log("moved"));

    // And without a word: the object is gone, and its node with it.
    let next = nodes(home).into_iter().find(|(_, state)| state == "running").unwrap().0;
    cluster.ok(&["delete", "pod", &next, "--grace-period=0", "--force"]);
    let lost =
        || home.run(&["compute", "list-nodes", "-n", "crew", "-o", "json"]).out.contains("its provider has it no more");
    until(cluster, home, "the node to be shown as lost", lost);
    let third =
        || fs::read_to_string(home.artifacts("moved").join("retry-002/user_logs/std_log.txt")).unwrap_or_default();
    until(cluster, home, "a third attempt", || third() == "attempt\n");
    home.ok(&["job", "cancel", "-n", "moved"]);
    until(cluster, home, "the end of it", || home.job("moved")["status"] == "Canceled");
    assert!(states(home).iter().all(|state| state != "running"));
}
