//! What goes wrong on clusters, and what the server hears of it.

use crate::stage::{Stage, TYPE};
use domain::cluster::{Check, ClusterFacts, ClusterTarget};
use kubernetes::settings::{Gangs, Settings};

pub(crate) fn a_pod_that_is_deleted_may_be_tried_again(stage: &Stage) {
    let attempt = stage.want(2, |_| {});
    stage.until("it to run", || stage.pods(&attempt, "Running").len() == 2);
    stage.cluster.ok(&["delete", &stage.pods(&attempt, "")[1]]);
    stage.until("word of it", || stage.wire.gone(&attempt).is_some());
    let (code, why, retryable) = stage.wire.gone(&attempt).unwrap();
    assert!(code == "Deleted" && retryable, "{code}: {why}");
    stage.drop_and_see_nothing_left(&attempt);
}

pub(crate) fn a_pod_whose_node_leaves_the_cluster_may_be_tried_again(stage: &Stage) {
    // A node of the test's own, which no kubelet brings back.
    let name = format!("leaves-{}", stage.namespace());
    let node = format!(
        r#"{{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "{name}", "labels": {{"test": "{name}"}}}}}}"#
    );
    stage.cluster.apply(&node);
    let has = r#"{"cpu": "4", "memory": "8Gi", "pods": "10"}"#;
    let status = format!(
        r#"{{"status": {{"capacity": {has}, "allocatable": {has}, "conditions": [{{"type": "Ready", "status": "True", "reason": "Test",
        "lastHeartbeatTime": "2099-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}}]}}}}"#
    );
    stage.cluster.ok(&["patch", "node", &name, "--subresource=status", "--type=merge", "-p", &status]);
    stage.cluster.apply(&format!(
        r#"{{"apiVersion": "amlarc.azureml.com/v1alpha1", "kind": "InstanceType", "metadata": {{"name": "{name}"}}, "spec":
        {{"nodeSelector": {{"test": "{name}"}}, "tolerations": [{{"operator": "Exists"}}],
        "resources": {{"requests": {{"cpu": "1", "memory": "1Gi"}}, "limits": {{"cpu": "1", "memory": "1Gi"}}}}}}}}"#
    ));
    let attempt = stage.want(1, |launch| launch.instance_type.clone_from(&name));
    stage.until("it to have the node", || stage.wire.bound(&attempt) == 1);
    stage.cluster.ok(&["delete", "node", &name]);
    let known = |facts: &ClusterFacts| facts.nodes.iter().any(|node| node.name == name);
    stage.until("it to be missed", || stage.wire.with().facts.as_ref().is_some_and(|facts| !known(facts)));
    // As the platform does a minute later, when it is sure that no kubelet will.
    stage.cluster.ok(&["delete", &stage.pods(&attempt, "")[0], "--force", "--grace-period=0"]);
    stage.until("word of it", || stage.wire.gone(&attempt).is_some());
    let (code, why, retryable) = stage.wire.gone(&attempt).unwrap();
    assert!(code == "NodeLost" && retryable, "{code}: {why}");
    stage.cluster.ok(&["delete", "instancetype", &name]);
    stage.drop_and_see_nothing_left(&attempt);
}

pub(crate) fn a_quota_is_waited_for_and_a_refusal_is_final(stage: &Stage) {
    stage.cluster.apply(
        r#"{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard":
        {"pods": "1", "limits.cpu": "100", "limits.memory": "100Gi"}}}"#,
    );
    stage.cluster.until_field("resourcequota/small", ".status.hard.pods", "1");
    let two = stage.want(2, |_| {});
    stage.until("the quota's name", || stage.wire.waiting(&two).contains("exceeded quota: small"));
    let wider = r#"{"spec": {"hard": {"pods": "2"}}}"#;
    stage.cluster.ok(&["patch", "resourcequota", "small", "--type=merge", "-p", wider]);
    stage.until("it to run after all", || stage.pods(&two, "Running").len() == 2);
    stage.cluster.ok(&["delete", "resourcequota", "small"]);
    stage.drop_and_see_nothing_left(&two);
    stage.cluster.ok(&["label", "namespace", &stage.namespace(), "pod-security.kubernetes.io/enforce=restricted"]);
    let refused = stage.want(1, |_| {});
    stage.until("the refusal", || stage.wire.gone(&refused).is_some());
    let (code, why, retryable) = stage.wire.gone(&refused).unwrap();
    assert!(code == "Refused" && !retryable && why.contains("violates PodSecurity"), "{code}: {why}");
    let strict =
        stage.want(1, |launch| drop(launch.target.settings.insert("pod_security".into(), "restricted".into())));
    stage.until("one that keeps the rule to run", || stage.pods(&strict, "Running").len() == 1);
    stage.drop_and_see_nothing_left(&refused);
    stage.drop_and_see_nothing_left(&strict);
}

#[test]
fn a_server_that_was_away_finds_everything_as_it_left_it() {
    let Some(stage) = Stage::set(Settings { training: true, gangs: Gangs::Gates, ..Settings::default() }) else {
        return;
    };
    let attempt = stage.want(2, |_| {});
    stage.until("it to run", || stage.pods(&attempt, "Running").len() == 2);
    stage.wire.with().away = true;
    stage.cluster.ok(&["delete", &stage.pods(&attempt, "")[1]]);
    stage.until("the pod to be gone", || stage.pods(&attempt, "").len() < 2);
    assert_eq!(stage.wire.gone(&attempt), None);
    stage.wire.with().away = false;
    stage.until("word of it", || stage.wire.gone(&attempt).is_some());
    stage.drop_and_see_nothing_left(&attempt);
}

pub(crate) fn what_is_stopped_before_it_ran_is_gone_at_once(stage: &Stage) {
    let nodes = stage.fake_nodes();
    let attempt = stage.want(nodes as u32 + 1, |launch| launch.instance_type = TYPE.to_owned());
    stage.until("it to wait", || !stage.wire.waiting(&attempt).is_empty());
    stage.wire.with().stop.insert(attempt.clone());
    stage.until("the end", || stage.wire.gone(&attempt).is_some_and(|(code, ..)| code == "Stopped"));
    stage.drop_and_see_nothing_left(&attempt);
}

pub(crate) fn what_is_stopped_and_has_ended_is_removed_at_once(stage: &Stage) {
    let attempt = stage.want(1, |_| {});
    stage.until("it to run", || stage.pods(&attempt, "Running").len() == 1);
    // The operator hears of that a moment later; until then nothing of it ran, and a stop would be its end.
    std::thread::sleep(std::time::Duration::from_secs(2));
    stage.wire.with().stop.insert(attempt.clone());
    // Its agent would end the command and leave.
    let pod = stage.pods(&attempt, "")[0].clone();
    let ended = r#"{"status": {"phase": "Failed", "containerStatuses": [{"name": "job", "ready": false, "restartCount": 0, "image": "", "imageID": "",
        "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}}"#;
    stage.cluster.ok(&["patch", &pod, "--subresource=status", "--type=merge", "-p", ended]);
    stage.until("word of its end", || stage.wire.gone(&attempt).is_some());
    let began = std::time::Instant::now();
    stage.drop_and_see_nothing_left(&attempt);
    assert!(began.elapsed().as_secs() < 30, "it took {:?}", began.elapsed());
}

pub(crate) fn a_target_is_checked_in_its_own_namespace(stage: &Stage) {
    let check = |id: &str, namespace: String| Check {
        id: id.to_owned(),
        target: ClusterTarget { namespace, ..ClusterTarget::default() },
    };
    stage.wire.with().checks.push(check("none", "no-such-namespace".to_owned()));
    stage.wire.with().checks.push(check("cluster's", "kube-system".to_owned()));
    stage.wire.with().checks.push(check("some", stage.namespace()));
    stage.until("all results", || stage.wire.with().checked.len() == 3);
    let told = stage.wire.with();
    let shown = |id: &str| -> Vec<(String, bool)> {
        let result = told.checked.iter().find(|result| result.id == id).unwrap();
        result.findings.iter().map(|finding| (finding.check.clone(), finding.passed)).collect()
    };
    assert_eq!(shown("none"), [("namespace".to_owned(), false)]);
    assert_eq!(shown("cluster's"), [("namespace".to_owned(), false)]);
    assert_eq!(shown("some")[..2], [("namespace".to_owned(), true), ("permission".to_owned(), true)]);
    assert_eq!(shown("some").last().unwrap(), &("image".to_owned(), true), "{:?}", told.checked);
    let facts = told.facts.as_ref().unwrap();
    assert!(facts.nodes.len() > 1 && facts.instance_types.iter().any(|kind| kind.fits_ever && kind.fits_now > 0));
}
