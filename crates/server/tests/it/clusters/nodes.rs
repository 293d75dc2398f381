//! The agent of a node of a managed cluster, as far as a server can tell: what it is given, gives back and may not touch.

use super::{Operator, on_lab, over};
use crate::{Server, send};
use api::{Client, ClientError};
use domain::{
    AttemptId, Outcome, Resources,
    machine::{MachineFacts, NodeJoin, NodeJoined, Standing},
    report::{Poll, PollAnswer, Report, ReportAnswer, ReportBatch, What},
};
use reqwest::Method;
use serde_json::json;
use std::{slice::from_ref, time::Duration};
use store::MachineRow;

struct Agent(Client);

impl Agent {
    /// A machine that has joined under this name.
    async fn join(server: &Server, name: &str) -> Agent {
        let now = server::clock::now();
        let row = MachineRow {
            cluster: "lab".into(),
            name: name.into(),
            standing: Standing::Preparing,
            reason: String::new(),
            ordered: Resources::default(),
            facts: MachineFacts::default(),
            joined: String::new(),
            created_at: now,
            since: now,
            seen_at: None,
        };
        server.store.write(move |tx| tx.put_machine(&row)).await.unwrap();
        let joining = server.with_token(&server::join_token(server.store.keyring(), "lab", name));
        let join = NodeJoin { key: "k".repeat(64), facts: MachineFacts::default(), request: None };
        let NodeJoined { token, .. } = joining.post("/node/v1/join", &join).await.unwrap();
        Agent(server.with_token(&token))
    }

    async fn poll(&self, holds: &[&AttemptId]) -> PollAnswer {
        let holds = holds.iter().copied().cloned().collect();
        let poll = Poll { facts: super::node(), holds, stopping: Vec::new(), joining: None };
        self.0.post("/agent/v1/poll", &poll).await.unwrap()
    }

    async fn report(&self, attempt: &AttemptId, what: Vec<What>) -> Vec<AttemptId> {
        let at = server::clock::now();
        let reports = what.into_iter().map(|what| Report { attempt: attempt.clone(), at, what }).collect();
        let batch = ReportBatch { facts: super::node(), reports, samples: Vec::new(), part: None, sent_at: None };
        self.0.post::<ReportAnswer>("/agent/v1/report", &batch).await.unwrap().recorded
    }

    async fn log(&self, attempt: &AttemptId) -> u16 {
        let path = format!("/agent/v1/attempts/{attempt}/logs/user_logs/std_log.txt?offset=0");
        send(self.0.request(Method::PUT, &path).body("x\n")).await.status
    }
}

async fn placed(server: &Server, name: &str, more: serde_json::Value) -> AttemptId {
    server.put(&format!("jobs/{name}"), on_lab(more)).await.expect(201);
    server.place(name).await
}

async fn status(server: &Server, name: &str) -> String {
    let shown = server.get(&format!("jobs/{name}")).await.expect(200);
    shown["properties"]["status"].as_str().unwrap().to_owned()
}

fn done() -> Vec<What> {
    let exited = What::Exited { code: Some(0), signal: None };
    vec![What::Preparing, What::Started { pid: 7 }, exited, over(Outcome::Completed)]
}

fn offered(answer: &PollAnswer) -> Vec<&AttemptId> {
    answer.assignments.iter().map(|one| &one.attempt).collect()
}

#[tokio::test]
async fn a_node_that_is_done_with_a_short_attempt_has_the_next_ones_at_once() {
    let server = Server::start().await;
    let _operator = Operator::attached(&server).await;
    let (one, two) = (Agent::join(&server, "crew-a").await, Agent::join(&server, "crew-b").await);
    let mut all = Vec::new();
    for name in ["a", "b", "c", "d"] {
        all.push(placed(&server, name, json!({})).await);
    }
    let gang = placed(&server, "gang", json!({"resources": {"instanceCount": 2}, "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1}})).await;
    let after = placed(&server, "after", json!({})).await;
    let [a, b, c, d] = &all[..] else { unreachable!() };
    let first = a.clone();
    server.store.write(move |tx| tx.give_whole("lab", &first, "crew-a")).await.unwrap();
    assert_eq!(offered(&one.poll(&[]).await), [a], "its own, and no other");
    assert_eq!((one.log(a).await, two.log(a).await), (200, 410), "logs are for whoever has the attempt");
    assert_eq!(two.report(a, done()).await, from_ref(a), "what is not its own it may forget");
    assert_eq!(status(&server, "a").await, "Queued", "and has no say in");

    assert_eq!(one.report(a, done()).await, from_ref(a));
    assert_eq!(status(&server, "a").await, "Completed");
    let answer = one.poll(&[]).await;
    assert_eq!(offered(&answer), [b, c, d], "as far as the gang, which nobody overtakes");
    assert!(!server.store.read(move |tx| Ok(tx.is_given_whole(&gang)? || tx.is_given_whole(&after)?)).await.unwrap());

    // What stood in line for too long is anyone's.
    assert_eq!(one.report(c, vec![What::Returned]).await, from_ref(c));
    let returned = c.clone();
    assert!(!server.store.read(move |tx| tx.is_given_whole(&returned)).await.unwrap());
    assert_eq!(status(&server, "c").await, "Queued");

    // One that is canceled ends when its agent says so.
    server.post("jobs/d/cancel", json!({})).await;
    assert_eq!(status(&server, "d").await, "CancelRequested");
    assert_eq!(one.poll(&[b, d]).await.stop, from_ref(d));
    one.report(d, vec![over(Outcome::Canceled { reason: "asked".into() })]).await;
    assert_eq!(status(&server, "d").await, "Canceled");

    // One that began and that its agent knows no more is over, and is tried again.
    one.report(b, vec![What::Preparing, What::Started { pid: 8 }]).await;
    assert_eq!(status(&server, "b").await, "Running");
    let _ = tokio::time::timeout(Duration::from_secs(1), one.poll(&[])).await;
    assert_ne!(status(&server, "b").await, "Running");
}

#[tokio::test]
async fn a_node_neither_hears_of_nor_answers_for_the_services_of_another() {
    let server = Server::start().await;
    let _operator = Operator::attached(&server).await;
    let (one, two) = (Agent::join(&server, "crew-a").await, Agent::join(&server, "crew-b").await);
    let services = json!({"web": {"jobServiceType": "Custom", "port": 8080}});
    let open = placed(&server, "open", json!({"services": services})).await;
    let other = placed(&server, "other", json!({})).await;
    let (given, given_too) = (open.clone(), other.clone());
    let both = server.store.write(move |tx| {
        tx.give_whole("lab", &given, "crew-a")?;
        tx.give_whole("lab", &given_too, "crew-b")
    });
    both.await.unwrap();
    one.report(&open, vec![What::Preparing, What::Started { pid: 7 }]).await;
    two.report(&other, vec![What::Preparing, What::Started { pid: 8 }]).await;
    let path = crate::under_workspace("jobs/open/services/web/connect");
    let nodes = async {
        // It says that it holds what is the first one's, also when somebody waits for the way there.
        loop {
            let why = server.get("jobs/open/why").await.expect(200);
            let asked = why["events"].as_array().unwrap().iter().any(|event| event["kind"] == "service");
            let told = two.poll(&[&open, &other]).await;
            assert!(told.tunnels.is_empty() && told.unknown == from_ref(&open), "{told:?}");
            if asked {
                break;
            }
        }
        let told = one.poll(&[&open]).await.tunnels;
        assert_eq!(told.iter().map(|tunnel| &tunnel.attempt).collect::<Vec<_>>(), [&open]);
        let tunnel = format!("/agent/v1/tunnels/{}", told[0].id);
        let refused = two.0.stream(&tunnel).await;
        assert!(matches!(refused, Err(ClientError::Refused { status: 404, .. })), "{refused:?}");
        one.0.stream(&tunnel).await.unwrap()
    };
    let (_far, near) = tokio::join!(nodes, server.user.stream(&path));
    near.unwrap();
}

#[tokio::test]
async fn a_node_that_is_about_to_go_is_told_so_and_gets_nothing_more() {
    let server = Server::start().await;
    let _operator = Operator::attached(&server).await;
    let agent = Agent::join(&server, "crew-a").await;
    let (first, _) = (placed(&server, "a", json!({})).await, placed(&server, "b", json!({})).await);
    let given = first.clone();
    let leaves = server.store.write(move |tx| {
        tx.give_whole("lab", &given, "crew-a")?;
        let row = tx.machine("lab", "crew-a")?.unwrap();
        tx.put_machine(&MachineRow { standing: Standing::Leaving, ..row })
    });
    leaves.await.unwrap();
    let answer = agent.poll(&[]).await;
    assert!(answer.leave && answer.assignments.is_empty(), "{answer:?}");
    assert_eq!(agent.report(&first, done()).await, [first]);
    let parts = server.store.read(|tx| tx.machine_parts("lab")).await.unwrap();
    assert!(parts.is_empty(), "{parts:?}");
}
