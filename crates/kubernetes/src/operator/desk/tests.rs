//! The desk beside a cluster that takes everything and writes down what it was sent.

use super::*;
use crate::{
    names,
    operator::watch::{Change, Seen},
    settings::Gangs,
};
use axum::{Json, Router, extract::Request};
use domain::cluster::ClusterTarget;
use kube::runtime::events::Reporter;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Mutex;

/// What the API server was sent: methods, paths and bodies.
type Sent = Arc<Mutex<Vec<(String, Value)>>>;

fn cluster(sent: Sent) -> Client {
    let take = move |request: Request| async move {
        let path = format!("{} {}", request.method(), request.uri().path());
        let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = match path.split(' ').next() {
            Some("DELETE") => json!({"apiVersion": "v1", "kind": "Status", "status": "Success"}),
            Some("PATCH") => json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "patched"}}),
            _ => body.clone(),
        };
        sent.lock().unwrap().push((path, body));
        Json(answer)
    };
    Client::new(Router::new().fallback(take), "default")
}

fn desk(settings: Settings) -> (Desk, Sent) {
    let sent = Sent::default();
    let client = cluster(Arc::clone(&sent));
    let options = Options {
        image: "ours:1".into(),
        node_selector: BTreeMap::new(),
        restricted: false,
        ids_are_given: false,
        proxy: BTreeMap::new(),
    };
    let reporter = Reporter { controller: names::OPERATOR.to_owned(), instance: None };
    let context = Context {
        client: client.clone(),
        settings,
        options: Arc::new(options),
        about: About::default(),
        namespace: "peregrine".into(),
        volcano: false,
        kueue: false,
        clock: || Timestamp(1_800_000_000_000),
        skew_ms: Arc::default(),
        metrics: Arc::default(),
        outbox: Arc::default(),
        recorder: Recorder::new(client, reporter),
    };
    let mut desk = Desk::new(context, watch::channel(None).0);
    for wrap in [Seen::Pod(Change::Start), Seen::Bound(Change::Start), Seen::Node(Change::Start)] {
        desk.hear(wrap);
    }
    for all in [Seen::Pod(Change::Listed), Seen::Bound(Change::Listed), Seen::Node(Change::Listed)] {
        desk.hear(all);
    }
    desk.hear(Seen::Type(Change::Listed));
    desk.hear(Seen::Claim(Change::Listed));
    (desk, sent)
}

fn seen<K: DeserializeOwned>(object: Value) -> Change<Box<K>> {
    Change::Seen(Box::new(serde_json::from_value(object).unwrap()))
}

fn node(name: &str, cpus: u32) -> Seen {
    Seen::Node(seen(json!({
        "metadata": {"name": name, "uid": name},
        "status": {
            "allocatable": {"cpu": cpus.to_string(), "memory": "8Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })))
}

fn attempt() -> AttemptId {
    AttemptId::parse("att_1_0").unwrap()
}

fn launch() -> Launch {
    let target = ClusterTarget { compute: "lab".into(), namespace: "ml".into(), ..ClusterTarget::default() };
    Launch {
        target,
        instance_type: "defaultinstancetype".into(),
        image: "i:1".into(),
        server: "https://s".into(),
        ..Launch::fixture(attempt())
    }
}

/// Carries out what was begun.
async fn settle(desk: &mut Desk) {
    desk.pass();
    while let Some(done) = desk.acts.next().await {
        desk.done(done);
    }
}

/// What the cluster was sent to a path that ends so.
fn sent_to(sent: &Sent, end: &str) -> Vec<Value> {
    let all = sent.lock().unwrap();
    all.iter()
        .filter(|(path, _)| path.starts_with("POST") && path.ends_with(end))
        .map(|(_, body)| body.clone())
        .collect()
}

/// The pod as the watches bring it after it was made.
fn bring(desk: &mut Desk, mut pod: Value) {
    pod["metadata"]["uid"] = json!("pod-uid");
    pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    pod["status"] = json!({"phase": "Pending"});
    desk.hear(Seen::Pod(seen(pod)));
}

fn told(desk: &Desk) -> Vec<ClusterWhat> {
    desk.cx.outbox.take(1000).news.into_iter().map(|news| news.what).collect()
}

#[tokio::test]
async fn a_service_that_went_while_nobody_watched_is_gone() {
    let (mut desk, _) = desk(Settings::default());
    let service = |uid: &str| Seen::Service(seen(json!({"metadata": {"name": "r", "uid": uid}})));
    desk.hear(Seen::Service(Change::Start));
    desk.hear(service("one"));
    desk.hear(Seen::Service(Change::Listed));
    assert!(desk.world.router.is_some());
    desk.hear(Seen::Service(Change::Start));
    assert!(desk.world.router.is_some(), "until all is listed it may still be there");
    desk.hear(Seen::Service(Change::Listed));
    assert!(desk.world.router.is_none(), "its address must not be given to callers any more");
}

#[tokio::test]
async fn notes_tell_that_a_job_was_made_and_why_it_waits_and_not_at_every_change() {
    let (mut desk, sent) = desk(Settings::default());
    desk.take_on(launch());
    settle(&mut desk).await;
    bring(&mut desk, sent_to(&sent, "/namespaces/ml/pods")[0].clone());
    desk.waits_at = Instant::now();
    settle(&mut desk).await;
    desk.say(&attempt(), "a different reason".to_owned());
    desk.notes.last = None;
    settle(&mut desk).await;
    let mut notes = sent_to(&sent, "/namespaces/ml/events");
    notes.sort_by_key(|note| note["reason"].to_string());
    let told: Vec<_> =
        notes.iter().map(|note| (note["reason"].as_str().unwrap(), note["note"].as_str().unwrap())).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[0].0, "Made");
    assert!(told[0].1.starts_with("1 pod, "), "{told:?}");
    assert_eq!(told[1].0, "Waiting");
    assert!(told[1].1.contains("the cluster has no nodes"), "{told:?}");
    assert_eq!(notes[1]["regarding"]["name"], "att-1-0-0");
}

#[tokio::test]
async fn a_claim_with_the_label_reaches_the_pod_and_one_that_cannot_is_told_of() {
    let (mut desk, sent) = desk(Settings::default());
    for (name, path) in [("data", "/data"), ("more", "/data"), ("odd", "/peregrine-home")] {
        desk.hear(Seen::Claim(seen(json!({
            "metadata": {
                "name": name, "namespace": "ml", "uid": name,
                "labels": {"ml.azure.com/pvc": "true"}, "annotations": {"ml.azure.com/mountpath": path},
            },
        }))));
    }
    desk.take_on(launch());
    settle(&mut desk).await;
    let pod = &sent_to(&sent, "/namespaces/ml/pods")[0]["spec"];
    let volumes =
        pod["volumes"].as_array().unwrap().iter().filter_map(|one| one["persistentVolumeClaim"]["claimName"].as_str());
    assert_eq!(volumes.collect::<Vec<_>>(), ["data"]);
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().any(|mount| mount["mountPath"] == "/data"), "{mounts:?}");
    let told = told(&desk);
    let [ClusterWhat::Notice { text }] = told.as_slice() else { panic!("{told:?}") };
    assert!(text.contains("`more`") && text.contains("`odd`") && !text.contains("claim `data` is not"), "{text}");
}

#[tokio::test]
async fn what_volcano_may_have_goes_whole_although_new_gangs_are_behind_gates() {
    let (mut desk, sent) = desk(Settings { gangs: Gangs::Gates, ..Settings::default() });
    desk.cx.volcano = true;
    desk.take_on(launch());
    settle(&mut desk).await;
    bring(&mut desk, sent_to(&sent, "/namespaces/ml/pods")[0].clone());
    desk.let_go(vec![attempt()]);
    settle(&mut desk).await;
    let removed = |(path, _): &(String, Value)| path.starts_with("DELETE") && path.ends_with("/namespaces/ml/jobs");
    assert!(sent.lock().unwrap().iter().any(removed));
}

#[tokio::test]
async fn a_gang_that_fitted_and_found_only_some_nodes_stays_behind_its_gate_for_a_while() {
    let (mut desk, sent) = desk(Settings::default());
    desk.hear(node("n1", 8));
    desk.take_on(Launch { parts: 2, ..launch() });
    settle(&mut desk).await;
    let pods = sent_to(&sent, "/namespaces/ml/pods");
    let again = |desk: &mut Desk, bound: bool, gated: bool| {
        for (at, pod) in pods.iter().enumerate() {
            let mut pod = pod.clone();
            pod["metadata"]["uid"] = json!(format!("u{at}"));
            pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["status"] = json!({"phase": "Pending"});
            if !gated {
                pod["spec"]["schedulingGates"] = json!([]);
            }
            if bound && at == 0 {
                pod["spec"]["nodeName"] = json!("n1");
            }
            desk.hear(Seen::Pod(seen(pod)));
        }
    };
    let freed = |sent: &Sent| sent.lock().unwrap().iter().filter(|(path, _)| path.starts_with("PATCH")).count();
    again(&mut desk, false, true);
    settle(&mut desk).await;
    assert_eq!(freed(&sent), 2, "it fits and is given to the scheduler");
    // The scheduler places one of two.
    again(&mut desk, true, false);
    settle(&mut desk).await;
    assert!(desk.rests.contains_key(&attempt()), "it was taken back");
    for (at, pod) in pods.iter().enumerate() {
        let meta = json!({"name": "x", "uid": format!("u{at}"), "labels": pod["metadata"]["labels"]});
        desk.hear(Seen::Pod(Change::Gone(Box::new(serde_json::from_value(json!({"metadata": meta})).unwrap()))));
    }
    // The server sends it again, and it is made again.
    desk.take_on(Launch { parts: 2, ..launch() });
    settle(&mut desk).await;
    again(&mut desk, false, true);
    desk.cx.outbox.take(1000);
    settle(&mut desk).await;
    assert_eq!(freed(&sent), 2, "there is room by its amounts, as before; it is not let go at once");
    desk.waits_at = Instant::now();
    desk.pass();
    let waits = told(&desk);
    assert!(
        waits.iter().any(|what| matches!(what, ClusterWhat::Waiting { text } if text.contains("placed only a part"))),
        "{waits:?}"
    );
}

/// A gang of two whose pods are made and placed on `n1`, as the watches show it.
async fn placed(desk: &mut Desk, sent: &Sent) -> Vec<Value> {
    desk.hear(node("n1", 8));
    desk.take_on(Launch { parts: 2, ..launch() });
    settle(desk).await;
    let mut pods = sent_to(sent, "/pods");
    for (at, pod) in pods.iter_mut().enumerate() {
        pod["metadata"]["uid"] = json!(format!("u{at}"));
        pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod["spec"]["schedulingGates"] = json!([]);
        pod["spec"]["nodeName"] = json!("n1");
        pod["status"] = json!({"phase": "Running"});
    }
    pods
}

fn gone(desk: &Desk) -> Vec<(u32, String, bool)> {
    let all = told(desk).into_iter().filter_map(|what| match what {
        ClusterWhat::Gone { part, code, retryable, .. } => Some((part, code, retryable)),
        _ => None,
    });
    all.collect()
}

fn deletions(sent: &Sent) -> usize {
    sent.lock().unwrap().iter().filter(|(path, _)| path.starts_with("DELETE")).count()
}

#[tokio::test]
async fn a_part_that_went_while_no_operator_was_there_is_told_and_the_others_are_not_taken_back() {
    let (mut desk, sent) = desk(Settings::default());
    let pods = placed(&mut desk, &sent).await;
    desk.hear(Seen::Pod(seen(pods[0].clone())));
    told(&desk);
    settle(&mut desk).await;
    assert_eq!(gone(&desk), [(1, "Deleted".to_owned(), true)]);
    assert_eq!(deletions(&sent), 0, "the server says what becomes of the rest");
}

#[tokio::test]
async fn what_was_stopped_on_a_node_that_does_not_answer_ends_all_the_same() {
    let (mut desk, sent) = desk(Settings::default());
    let pods = placed(&mut desk, &sent).await;
    for mut pod in pods {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:01:00Z");
        desk.hear(Seen::Pod(seen(pod)));
    }
    settle(&mut desk).await;
    assert!(desk.held().leaving.is_empty(), "its owner may still stop it");
    desk.stop(attempt());
    let long_ago = Instant::now() - Duration::from_secs(100);
    desk.memos.get_mut(&attempt()).unwrap().stop_since = Some(long_ago);
    settle(&mut desk).await;
    assert_eq!(gone(&desk), [], "its node is there and sees to it");
    desk.hear(Seen::Node(seen(json!({"metadata": {"name": "n1", "uid": "n1"}, "status": {
        "conditions": [{"type": "Ready", "status": "Unknown"}]}}))));
    settle(&mut desk).await;
    assert_eq!(gone(&desk), [(0, "Stopped".to_owned(), false)]);
}

#[tokio::test]
async fn a_gang_whose_volume_claim_was_deleted_is_made_anew() {
    let (mut desk, sent) = desk(Settings::default());
    let pods = placed(&mut desk, &sent).await;
    for mut pod in pods {
        pod["spec"]["nodeName"] = Value::Null;
        pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "message": "0/1 nodes are available: persistentvolumeclaim \"data\" not found."}]});
        desk.hear(Seen::Pod(seen(pod)));
    }
    settle(&mut desk).await;
    assert!(deletions(&sent) > 0, "without its pods the server sends the launch again");
    assert_eq!(gone(&desk), [], "which is no end of the attempt");
}

#[tokio::test]
async fn what_volcano_says_of_a_gang_is_kept_until_its_job_is_seen() {
    let (mut desk, _) = desk(Settings::default());
    let meta = json!({"name": "g", "namespace": "ml", "uid": "u", "labels": {names::ATTEMPT: attempt().as_str()}});
    let status =
        json!({"phase": "Inqueue", "conditions": [{"type": "Unschedulable", "status": "True", "message": "no room"}]});
    desk.hear(Seen::Group(seen(json!({"metadata": meta, "status": status}))));
    desk.hear(Seen::Job(seen(json!({"metadata": meta}))));
    let job = desk.world.gangs[&attempt()].job.clone().unwrap();
    assert_eq!((job.says.as_str(), job.enqueued), ("no room", true));
}
