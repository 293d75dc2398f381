//! Parts of the platform that go away and come back: the API server, its database, an operator, a token, a definition, the time.
//!
//! Whatever was away, what ran before runs on, what was asked for meanwhile runs afterwards, and nothing does so twice.
//! `PEREGRINE_AWAY_SECONDS` keeps the API server away for longer than the moment that it takes to notice.

use crate::stage::{self, Stage};
use domain::{AttemptId, Timestamp};
use kubernetes::settings::{Gangs, Settings};
use std::time::Duration;

fn gates() -> Option<Stage> {
    Stage::set(Settings { training: true, gangs: Gangs::Gates, ..Settings::default() })
}

/// A gang of two that runs, and the pods it consists of.
fn running(stage: &Stage) -> (AttemptId, Vec<String>) {
    let attempt = stage.want(2, |_| {});
    stage.until("it to run", || stage.pods(&attempt, "Running").len() == 2);
    let pods = stage.uids(&attempt);
    (attempt, pods)
}

fn is_as_it_was(stage: &Stage, (attempt, pods): &(AttemptId, Vec<String>)) {
    assert_eq!(&stage.uids(attempt), pods, "what ran before runs on");
    assert_eq!(stage.wire.gone(attempt), None);
}

#[test]
fn an_api_server_or_its_database_that_was_away_costs_time_and_nothing_else() {
    let Some(stage) = gates() else { return };
    let before = running(&stage);
    let answers = || stage.cluster.kubectl(&["get", "--raw", "/readyz"]).status.success();
    stage.cluster.part("stop", "apiserver");
    let during = stage.want(2, |_| {});
    stage.until("the reason", || stage.wire.waiting(&during).contains("API server does not answer"));
    // Who cannot renew its lease stops acting, and asks for nothing.
    stage.until("the operator to fall silent", || {
        let polls = stage.wire.with().polls;
        std::thread::sleep(Duration::from_secs(1));
        stage.wire.with().polls == polls
    });
    std::thread::sleep(Duration::from_secs(stage::number("PEREGRINE_AWAY_SECONDS", 0)));
    stage.cluster.part("start", "apiserver");
    stage.until("the API server", answers);
    stage.until("what was wanted meanwhile to run", || stage.pods(&during, "Running").len() == 2);
    stage.cluster.part("stop", "etcd");
    let later = stage.want(2, |_| {});
    stage.cluster.part("start", "etcd");
    stage.until("the API server", answers);
    stage.until("what was wanted meanwhile to run", || stage.pods(&later, "Running").len() == 2);
    is_as_it_was(&stage, &before);
    for attempt in [&before.0, &during, &later] {
        assert_eq!(stage.count("secrets", attempt), 1);
        stage.drop_and_see_nothing_left(attempt);
    }
}

#[test]
fn of_two_operators_one_acts_and_the_other_goes_on_when_it_dies() {
    let Some(mut stage) = gates() else { return };
    stage.join();
    let before = running(&stage);
    stage.kill_first();
    let after = stage.want(2, |_| {});
    stage.until("the other to go on", || stage.pods(&after, "Running").len() == 2);
    is_as_it_was(&stage, &before);
    stage.drop_and_see_nothing_left(&before.0);
    stage.drop_and_see_nothing_left(&after);
}

#[test]
fn an_operator_whose_clock_is_an_hour_off_does_the_same() {
    let Some(mut stage) = gates() else { return };
    let nodes = stage.fake_nodes();
    let clocks: [fn() -> Timestamp; 2] = [|| later(1), || later(-1)];
    for clock in clocks {
        stage.kill();
        stage.clock = clock;
        stage.start();
        let runs = running(&stage);
        let waits = stage.want(nodes as u32 + 1, |_| {});
        stage.until("the reason", || stage.wire.waiting(&waits).contains("start together or not at all"));
        is_as_it_was(&stage, &runs);
        stage.drop_and_see_nothing_left(&waits);
        stage.drop_and_see_nothing_left(&runs.0);
    }
}

fn later(hours: i64) -> Timestamp {
    Timestamp(stage::now().0 + hours * 3_600_000)
}

#[test]
fn an_operator_whose_token_has_expired_goes_on_with_a_new_one() {
    let Some(stage) = gates() else { return };
    let (attempt, _) = running(&stage);
    stage.wire.with().token = Some("new".to_owned());
    stage.until("the old one to be turned away", || stage.wire.with().turned_away > 0);
    stage.cluster.ok(&["delete", &stage.pods(&attempt, "")[1]]);
    stage.until("the pod to be gone", || stage.pods(&attempt, "").len() < 2);
    std::fs::write(&stage.token, "new").unwrap();
    stage.until("what happened meanwhile", || stage.wire.gone(&attempt).is_some_and(|(code, ..)| code == "Deleted"));
    stage.drop_and_see_nothing_left(&attempt);
}

#[test]
fn instance_types_that_are_not_defined_are_waited_for_and_one_that_is_odd_hides_no_other() {
    let Some(stage) = gates() else { return };
    let before = running(&stage);
    let drop_definition = || stage.cluster.ok(&["delete", "crd", "instancetypes.amlarc.azureml.com"]);
    drop_definition();
    let lacking = stage.want(1, |_| {});
    stage.until("the reason", || stage.wire.waiting(&lacking).contains("no instance type `fake-gpus`"));
    // A definition of another making, which takes anything.
    stage.cluster.apply(
        r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "instancetypes.amlarc.azureml.com"},
        "spec": {"group": "amlarc.azureml.com", "scope": "Cluster", "names": {"kind": "InstanceType", "plural": "instancetypes"}, "versions":
        [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}}}]}}"#,
    );
    stage.cluster.ok(&["wait", "--for=condition=Established", "crd/instancetypes.amlarc.azureml.com", "--timeout=60s"]);
    stage.cluster.apply(
        r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "amlarc.azureml.com/v1alpha1", "kind": "InstanceType", "metadata": {"name": "a-odd"}, "spec": {"resources": "lots"}},
        {"apiVersion": "amlarc.azureml.com/v1alpha1", "kind": "InstanceType", "metadata": {"name": "fake-gpus"}, "spec":
        {"nodeSelector": {"peregrine.test/node": "fake"}, "tolerations": [{"key": "peregrine.test/fake", "operator": "Exists"}],
        "resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 8}}}}]}"#,
    );
    stage.until("it to run", || stage.pods(&lacking, "Running").len() == 1);
    is_as_it_was(&stage, &before);
    drop_definition();
    stage.define();
    stage.drop_and_see_nothing_left(&before.0);
    stage.drop_and_see_nothing_left(&lacking);
}

#[test]
fn where_kueue_is_a_queue_is_told_and_kueue_holds_the_gang() {
    let Some(mut stage) = gates() else { return };
    stage.cluster.apply(
        r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "localqueues.kueue.x-k8s.io"},
        "spec": {"group": "kueue.x-k8s.io", "scope": "Namespaced", "names": {"kind": "LocalQueue", "plural": "localqueues"}, "versions":
        [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}"#,
    );
    stage.cluster.ok(&["wait", "--for=condition=Established", "crd/localqueues.kueue.x-k8s.io", "--timeout=60s"]);
    stage.kill();
    stage.start();
    let attempt = stage.want(2, |launch| drop(launch.target.settings.insert("queue".into(), "team-a".into())));
    stage.until("its pods", || stage.pods(&attempt, "").len() == 2);
    let pod = stage.pods(&attempt, "")[1].clone();
    let shown = |path: &str| stage.cluster.field(&pod, path);
    assert_eq!(shown(r".metadata.labels.kueue\.x-k8s\.io/queue-name"), "team-a");
    assert_eq!(shown(r".metadata.labels.kueue\.x-k8s\.io/pod-group-name"), attempt.as_str().replace('_', "-"));
    assert_eq!(shown(r".metadata.annotations.kueue\.x-k8s\.io/pod-group-total-count"), "2");
    assert_eq!(shown(".spec.schedulingGates"), "", "the gate is Kueue's to set");
    stage.drop_and_see_nothing_left(&attempt);
    stage.cluster.ok(&["delete", "crd", "localqueues.kueue.x-k8s.io"]);
}
