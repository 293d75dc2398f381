//! `/clusters` and `/cluster/v1`: a stand-in operator and stand-in pods speak the wire.

mod attach;
mod chaos;
mod data;
mod gangs;
mod nodes;
mod peers;
mod serving;

use crate::{Answer, Server, ask, job_body, send};
use api::Client;
use domain::{
    AttemptId, Outcome, Resources, Timestamp,
    cluster::{
        AttemptNews, CheckResult, ClusterAnswer, ClusterFacts, ClusterInstanceType, ClusterNode, ClusterPoll,
        ClusterReport, ClusterWhat, Finding,
    },
    job::Failure,
    report::{Joining, NodeFacts, Poll, PollAnswer, Report, ReportAnswer, ReportBatch, What},
};
use reqwest::Method;
use serde_json::{Value, json};

/// The operator of cluster `lab`, as far as a server can tell.
struct Operator<'s> {
    server: &'s Server,
    client: Client,
}

impl<'s> Operator<'s> {
    /// Registers the cluster, tells what it has, and attaches namespace `ml` of it as `lab`.
    async fn attached(server: &'s Server) -> Operator<'s> {
        let operator = Operator::registered(server).await;
        operator.report(ClusterReport { facts: Some(facts()), ..ClusterReport::default() }).await;
        server.put("computes/lab", target("/x/connectedClusters/lab", "ml")).await.expect(201);
        let asked = operator.poll(&[]).await;
        operator.check(&asked.checks[0].id, vec![passed("namespace"), passed("canary")]).await;
        operator
    }

    async fn registered(server: &'s Server) -> Operator<'s> {
        let made = ask(&server.user, Method::PUT, "/clusters/lab", Some(json!({}))).await;
        let token = made.expect(201)["token"].as_str().unwrap().to_owned();
        let operator = Operator { server, client: server.with_token(&token) };
        operator.poll(&[]).await;
        operator
    }

    /// Asks what there is to do. Something must be there, or it takes long.
    async fn poll(&self, holds: &[AttemptId]) -> ClusterAnswer {
        self.client.post("/cluster/v1/poll", &polling(&facts().uid, holds)).await.unwrap()
    }

    async fn report(&self, report: ClusterReport) {
        self.client.post::<Value>("/cluster/v1/report", &report).await.unwrap();
    }

    async fn news(&self, attempt: &AttemptId, what: ClusterWhat) {
        let news = vec![AttemptNews { attempt: attempt.clone(), at: server::clock::now(), what }];
        self.report(ClusterReport { news, ..ClusterReport::default() }).await;
    }

    async fn check(&self, id: &str, findings: Vec<Finding>) {
        let checks = vec![CheckResult { id: id.to_owned(), done: true, findings }];
        self.report(ClusterReport { checks, ..ClusterReport::default() }).await;
    }

    /// Submits a job, hands it out as the scheduler does, and takes the launch of its pods.
    async fn launch(&self, name: &str, more: Value) -> Launched<'s> {
        self.server.put(&format!("jobs/{name}"), on_lab(more)).await.expect(201);
        let attempt = self.server.place(name).await;
        let mut launches = self.poll(&[]).await.launch;
        let at = launches.iter().position(|launch| launch.attempt == attempt).expect("it is to be launched");
        let launch = launches.swap_remove(at);
        Launched { server: self.server, pod: self.server.with_token(&launch.token), launch }
    }
}

/// The pods of one attempt.
struct Launched<'s> {
    server: &'s Server,
    pod: Client,
    launch: domain::cluster::Launch,
}

impl Launched<'_> {
    fn attempt(&self) -> &AttemptId {
        &self.launch.attempt
    }

    fn asking(&self, part: u32, address: &str, holds: bool) -> Poll {
        let holds = if holds { vec![self.attempt().clone()] } else { Vec::new() };
        let joining = Some(Joining { part, address: address.to_owned() });
        Poll { facts: node(), holds, stopping: Vec::new(), joining }
    }

    async fn poll(&self, part: u32, address: &str, holds: bool) -> PollAnswer {
        self.pod.post("/agent/v1/poll", &self.asking(part, address, holds)).await.unwrap()
    }

    async fn report(&self, part: u32, what: Vec<What>) -> ReportAnswer {
        let at = server::clock::now();
        let reports = what.into_iter().map(|what| Report { attempt: self.attempt().clone(), at, what }).collect();
        let batch = ReportBatch { facts: node(), reports, samples: Vec::new(), part: Some(part), sent_at: None };
        self.pod.post("/agent/v1/report", &batch).await.unwrap()
    }

    async fn log(&self, path: &str, offset: u64, bytes: &str) -> Answer {
        let path = format!("/agent/v1/attempts/{}/logs/{path}?offset={offset}", self.attempt());
        send(self.pod.request(Method::PUT, &path).body(bytes.to_owned())).await
    }

    async fn status(&self) -> String {
        let shown = self.server.get(&format!("jobs/{}", self.launch.job)).await.expect(200);
        shown["properties"]["status"].as_str().unwrap().to_owned()
    }

    async fn why(&self) -> Value {
        self.server.get(&format!("jobs/{}/why", self.launch.job)).await.expect(200)
    }
}

fn node() -> NodeFacts {
    let capacity = Resources { cpu_milli: 2000, memory_bytes: 4 << 30, gpus: 0 };
    NodeFacts { node: "pod".into(), boot_id: "b".into(), version: "t".into(), capacity, gpu_models: Vec::new() }
}

fn facts() -> ClusterFacts {
    let kind = |name: &str, cpu_milli: u64, gpus: u32, fits_ever: bool| {
        let requests = Resources { cpu_milli, memory_bytes: 1 << 30, gpus };
        ClusterInstanceType {
            name: name.into(),
            requests,
            limits: requests,
            fits_now: 3,
            fits_ever,
            ..Default::default()
        }
    };
    let has = Resources { cpu_milli: 4000, memory_bytes: 16 << 30, gpus: 1 };
    let node =
        |name: &str| ClusterNode { name: name.into(), ready: true, allocatable: has, free: has, ..Default::default() };
    ClusterFacts {
        uid: "uid-1".into(),
        version: "0.1".into(),
        kubernetes_version: "v1.34".into(),
        gangs: "gates".into(),
        training: true,
        nodes: vec![node("n1"), node("n2")],
        instance_types: vec![
            kind("defaultinstancetype", 1000, 0, true),
            kind("gpu", 1000, 1, true),
            kind("huge", 64_000, 8, false),
        ],
        ..ClusterFacts::default()
    }
}

/// What the operator of the cluster with this uid asks.
fn polling(uid: &str, holds: &[AttemptId]) -> ClusterPoll {
    let (now, uid, holds) = (server::clock::now(), uid.to_owned(), holds.to_vec());
    ClusterPoll { now, uid, facts: facts().uid, holds, leaving: Vec::new() }
}

fn target(resource_id: &str, namespace: &str) -> Value {
    json!({"properties": {"computeType": "Kubernetes", "resourceId": resource_id, "properties":
        {"namespace": namespace, "default_image": "python:3.12"}}})
}

/// A job for target `lab`, with more said of it.
fn on_lab(more: Value) -> Value {
    let mut body = job_body();
    body["properties"]["computeId"] = json!("azureml:lab");
    for (key, value) in more.as_object().into_iter().flatten() {
        body["properties"][key] = value.clone();
    }
    body
}

fn passed(check: &str) -> Finding {
    Finding { check: check.into(), passed: true, detail: "as it should be".into() }
}

fn over(outcome: Outcome) -> What {
    What::Over { outcome, isolation: "container".into() }
}

fn gone(part: u32, retryable: bool) -> ClusterWhat {
    ClusterWhat::Gone { part, code: "PodEvicted".into(), why: "the node was drained".into(), retryable }
}

#[tokio::test]
async fn a_cluster_is_registered_shown_and_forgotten_and_its_token_opens_its_own_routes_only() {
    let server = Server::start().await;
    let operator = Operator::registered(&server).await;
    operator.report(ClusterReport { facts: Some(facts()), ..ClusterReport::default() }).await;
    let shown = ask(&server.user, Method::GET, "/clusters/lab", None).await.expect(200);
    assert_eq!((&shown["uid"], &shown["answers"], &shown["nodeCount"]), (&json!("uid-1"), &json!(true), &json!(2)));
    assert!(shown["seenAt"].is_string() && shown.get("token").is_none(), "{shown}");
    let all = ask(&server.user, Method::GET, "/clusters", None).await.expect(200);
    assert_eq!(all["value"][0]["name"], "lab");
    for (method, path) in [
        (Method::GET, "/clusters"),
        (Method::GET, crate::WS),
        (Method::POST, "/agent/v1/poll"),
        (Method::PUT, "/agent/v1/attempts/att_1_0/logs/user_logs/x"),
    ] {
        ask(&operator.client, method, path, Some(json!({}))).await.refused(403);
    }
    for client in [&server.user, &server.agent] {
        ask(client, Method::POST, "/cluster/v1/poll", Some(json!({}))).await.refused(403);
    }
    let other = ClusterFacts { uid: "uid-2".into(), ..facts() };
    let report = json!(ClusterReport { facts: Some(other), ..ClusterReport::default() });
    let (_, message) = ask(&operator.client, Method::POST, "/cluster/v1/report", Some(report)).await.refused(409);
    assert!(message.contains("uid-1") && message.contains("uid-2"), "{message}");
    ask(&server.user, Method::PUT, "/clusters/lab", Some(json!({}))).await.expect(200);
    let (_, message) = ask(&operator.client, Method::POST, "/cluster/v1/poll", Some(json!({}))).await.refused(401);
    assert!(message.contains("renewed"), "{message}");
    ask(&server.user, Method::PUT, "/clusters/-x", Some(json!({}))).await.refused(400);
    ask(&server.user, Method::DELETE, "/clusters/lab", None).await.expect(200);
    let (_, message) = ask(&server.user, Method::GET, "/clusters/lab", None).await.refused(404);
    assert!(message.contains("`lab`"), "{message}");
}

#[tokio::test]
async fn a_job_on_a_cluster_goes_from_launch_to_its_end() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("train", json!({"resources": {"instanceType": "gpu"}, "displayName": "my run"})).await;
    let launch = &one.launch;
    assert_eq!((launch.parts, launch.instance_type.as_str(), launch.target.namespace.as_str()), (1, "gpu", "ml"));
    assert_eq!((launch.display_name.as_str(), launch.server.as_str()), ("my run", server.user.url()));
    assert_eq!(launch.image, "python:3.12", "its environment is a curated one, which names no image");
    operator.news(one.attempt(), ClusterWhat::Waiting { text: "no node has a free GPU".into() }).await;
    let why = one.why().await;
    assert!(why["summary"].as_str().unwrap().contains("no node has a free GPU"), "{why}");
    for _ in 0..2 {
        operator.news(one.attempt(), ClusterWhat::Bound { part: 0, node: "n1".into() }).await;
    }
    let assignment = one.poll(0, "10.0.0.1", false).await.assignments.remove(0);
    assert_eq!((assignment.plan.command.as_str(), assignment.part), ("echo hi", None));
    let steps = [
        (What::Preparing, "Preparing"),
        (What::Started { pid: 7 }, "Running"),
        (What::Exited { code: Some(0), signal: None }, "Finalizing"),
        (over(Outcome::Completed), "Completed"),
    ];
    for (what, status) in steps {
        let end = matches!(what, What::Over { .. });
        assert_eq!(one.report(0, vec![what]).await.recorded.contains(one.attempt()), end);
        assert_eq!(one.status().await, status);
    }
    assert_eq!(operator.poll(std::slice::from_ref(one.attempt())).await.remove, [one.attempt().clone()]);
    let log = server.get("jobs/train/artifacts/system_logs/amlarc_cr_bootstrap.log").await;
    assert_eq!(log.text(), "Run on node: n1\n");
    assert!(one.poll(0, "10.0.0.1", true).await.unknown.contains(one.attempt()), "what is over is to be left");
}

#[tokio::test]
async fn this_machines_agent_is_never_offered_a_clusters_job_nor_loses_one() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let far = operator.launch("far", json!({})).await;
    far.poll(0, "a", false).await;
    far.report(0, vec![What::Started { pid: 1 }]).await;
    server.submit("near").await;
    let near = server.place("near").await;
    let poll = Poll { facts: crate::agents::facts("boot"), holds: Vec::new(), stopping: Vec::new(), joining: None };
    let offered: PollAnswer = server.agent.post("/agent/v1/poll", &poll).await.unwrap();
    let attempts: Vec<AttemptId> = offered.assignments.into_iter().map(|one| one.attempt).collect();
    assert_eq!(attempts, [near]);
    // The machine restarts: what it ran is lost, and what runs elsewhere is not.
    let again = Poll { facts: crate::agents::facts("another boot"), ..poll };
    server.agent.post::<PollAnswer>("/agent/v1/poll", &again).await.unwrap();
    assert_eq!(far.status().await, "Running");
    let shown = server.get("jobs/near").await.expect(200);
    assert_eq!(shown["properties"]["peregrine"]["attempts"], 1);
    assert_eq!(shown["properties"]["status"], "Queued");
}

#[tokio::test]
async fn a_pod_that_goes_away_is_tried_again_and_its_late_words_count_for_nothing() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let first = operator.launch("again", json!({})).await;
    first.poll(0, "a", false).await;
    first.report(0, vec![What::Preparing, What::Started { pid: 1 }]).await;
    first.log("user_logs/std_log.txt", 0, "first\n").await.expect(200);
    for _ in 0..2 {
        operator.news(first.attempt(), gone(0, true)).await;
    }
    assert_eq!(first.status().await, "Queued");
    first.report(0, vec![over(Outcome::Completed)]).await;
    assert_eq!(first.status().await, "Queued", "an attempt that is over on record stays so");
    assert_eq!(first.log("user_logs/std_log.txt", 6, "late\n").await.status, 410);
    let second_id = server.place("again").await;
    let answer = operator.poll(std::slice::from_ref(first.attempt())).await;
    assert_eq!(answer.remove, [first.attempt().clone()]);
    assert_eq!((answer.launch.len(), answer.launch[0].number), (1, 1));
    let second =
        Launched { server: &server, pod: server.with_token(&answer.launch[0].token), launch: answer.launch[0].clone() };
    assert_eq!(second.attempt(), &second_id);
    assert!(first.poll(0, "a", true).await.unknown.contains(first.attempt()));
    second.poll(0, "b", false).await;
    second.log("user_logs/std_log.txt", 0, "second\n").await.expect(200);
    second.report(0, vec![What::Started { pid: 1 }, over(Outcome::Completed)]).await;
    assert_eq!(second.status().await, "Completed");
    for (path, text) in [("user_logs/std_log.txt", "first\n"), ("retry-001/user_logs/std_log.txt", "second\n")] {
        assert_eq!(server.get(&format!("jobs/again/artifacts/{path}")).await.text(), text, "{path}");
    }
}

#[tokio::test]
async fn a_failure_that_no_new_attempt_would_cure_ends_the_job_with_the_clusters_words() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("bad", json!({})).await;
    let what =
        ClusterWhat::Gone { part: 0, code: "ImagePull".into(), why: "no such image `x`".into(), retryable: false };
    operator.news(one.attempt(), what).await;
    assert_eq!(one.status().await, "Failed");
    assert_eq!(one.why().await["failure"], json!(Failure::new("ImagePull", "no such image `x`")));
}

#[tokio::test]
async fn a_job_is_canceled_at_once_before_anyone_was_handed_it_and_through_its_agent_afterwards() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let early = operator.launch("early", json!({})).await;
    server.post("jobs/early/cancel", json!({})).await.expect(200);
    assert_eq!(early.status().await, "Canceled");
    assert!(early.poll(0, "a", false).await.unknown.contains(early.attempt()), "its pod is sent home");
    assert_eq!(operator.poll(std::slice::from_ref(early.attempt())).await.remove, [early.attempt().clone()]);
    let late = operator.launch("late", json!({})).await;
    late.poll(0, "a", false).await;
    late.report(0, vec![What::Started { pid: 1 }]).await;
    let held = late.asking(0, "a", true);
    let waits = late.pod.post::<PollAnswer>("/agent/v1/poll", &held);
    let (told, _) = tokio::join!(waits, server.post("jobs/late/cancel", json!({})));
    assert_eq!(told.unwrap().stop, [late.attempt().clone()]);
    let answer = operator.poll(std::slice::from_ref(late.attempt())).await;
    assert_eq!((answer.stop.as_slice(), answer.remove.len()), ([late.attempt().clone()].as_slice(), 0));
    late.report(0, vec![over(Outcome::Canceled { reason: "asked".into() })]).await;
    assert_eq!(late.status().await, "Canceled");
}

#[tokio::test]
async fn a_launch_is_told_again_until_it_is_held_and_never_after_it_was_begun() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("once", json!({})).await;
    assert_eq!(operator.poll(&[]).await.launch, std::slice::from_ref(&one.launch), "the answer may have been lost");
    one.poll(0, "a", false).await;
    // The operator forgets, or is another one; the pod may run by now.
    let other = operator.launch("other", json!({})).await;
    assert_eq!(operator.poll(&[]).await.launch, [other.launch]);
    assert_eq!(one.status().await, "Queued", "it is placed and nobody said that it is gone");
}

#[tokio::test]
async fn a_second_cluster_with_the_same_token_gets_no_work_and_is_told_why() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    server.put("jobs/mine", on_lab(json!({}))).await.expect(201);
    let attempt = server.place("mine").await;
    let stranger = json!(polling("uid-2", &[]));
    let (_, message) = ask(&operator.client, Method::POST, "/cluster/v1/poll", Some(stranger)).await.refused(409);
    assert!(message.contains("uid-1") && message.contains("uid-2") && message.contains("--cluster-name"), "{message}");
    let shown = ask(&server.user, Method::GET, "/clusters/lab", None).await.expect(200);
    assert!(shown["refused"].as_str().unwrap().contains("uid-2"), "{shown}");
    assert_eq!(operator.poll(&[]).await.launch[0].attempt, attempt, "the cluster itself is served as ever");
    // Registered anew, the name is free for whoever comes first.
    let made = ask(&server.user, Method::PUT, "/clusters/lab", Some(json!({}))).await.expect(200);
    let client = server.with_token(made["token"].as_str().unwrap());
    let answer: ClusterAnswer = client.post("/cluster/v1/poll", &polling("uid-2", &[])).await.unwrap();
    assert_eq!(answer.launch[0].attempt, attempt);
    let shown = ask(&server.user, Method::GET, "/clusters/lab", None).await.expect(200);
    assert!(shown.get("refused").is_none(), "{shown}");
}

#[tokio::test]
async fn clocks_elsewhere_do_not_make_things_happen_in_the_future() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("skewed", json!({})).await;
    one.poll(0, "a", false).await;
    let at = Timestamp(server::clock::now().0 + 3_600_000);
    let reports = vec![Report { attempt: one.attempt().clone(), at, what: What::Started { pid: 1 } }];
    let batch = ReportBatch { facts: node(), reports, samples: Vec::new(), part: Some(0), sent_at: None };
    one.pod.post::<ReportAnswer>("/agent/v1/report", &batch).await.unwrap();
    let job = server.store.read(|tx| tx.job("default", "skewed")).await.unwrap().unwrap().job;
    assert!(job.state.started_at().unwrap() <= server::clock::now());
}
