//! Data near compute: what was moved is counted once, and nodes that have a piece are named to attempts of their cluster.

use super::*;
use domain::{
    kept::{Door, Kept, Moved, Peers, Wanted},
    machine::{MachineFacts, Standing},
};
use store::MachineRow;

/// A node of cluster `lab` that has one piece, with this digest.
async fn keeper(server: &Server, name: &'static str, sum: &'static str, door: bool) {
    let door = door.then(|| Door { address: "10.0.0.7:4000".into(), authority: "pem".into(), apart: false });
    let row = MachineRow {
        cluster: "lab".into(),
        name: name.into(),
        standing: Standing::Ready,
        reason: String::new(),
        ordered: Resources::default(),
        facts: MachineFacts { door, ..MachineFacts::default() },
        joined: "key".into(),
        created_at: server::clock::now(),
        since: server::clock::now(),
        seen_at: Some(server::clock::now()),
    };
    let kept = Kept { key: "k".into(), source: "s3://b/k".into(), bytes: 7, sum: sum.into() };
    let put = server.store.write(move |tx| {
        tx.put_machine(&row)?;
        tx.put_kept("lab", name, &[kept])
    });
    put.await.unwrap();
}

#[tokio::test]
async fn nodes_that_have_a_piece_are_named_to_attempts_of_their_cluster_while_they_agree() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let (job, other) = (operator.launch("one", json!({})).await, operator.launch("two", json!({})).await);
    let path = format!("/agent/v1/attempts/{}/peers", job.attempt());
    let asked = async |client: &Client, key: &str| client.post::<Peers>(&path, &Wanted { key: key.into() }).await;
    assert!(asked(&job.pod, "k").await.unwrap().peers.is_empty());
    keeper(&server, "a", "sum", true).await;
    keeper(&server, "b", "sum", false).await;
    keeper(&server, "c", "", true).await;
    let peers = asked(&job.pod, "k").await.unwrap().peers;
    assert_eq!(
        peers.iter().map(|peer| peer.node.as_str()).collect::<Vec<_>>(),
        ["a"],
        "`b` has no door, `c` no digest"
    );
    assert_eq!((peers[0].sum.as_str(), peers[0].door.address.as_str()), ("sum", "10.0.0.7:4000"));
    assert!(asked(&job.pod, "l").await.unwrap().peers.is_empty());
    assert!(asked(&other.pod, "k").await.is_err(), "a token is for its own attempt");
    assert!(asked(&server.user, "k").await.is_err(), "people have no use for it");
    keeper(&server, "d", "another", true).await;
    assert!(asked(&job.pod, "k").await.unwrap().peers.is_empty(), "somebody is wrong");
    server.store.write(|tx| tx.drop_machine("lab", "d")).await.unwrap();
    assert_eq!(asked(&job.pod, "k").await.unwrap().peers.len(), 1);
    job.poll(0, "10.0.0.1", false).await;
    job.report(0, vec![over(Outcome::Completed)]).await;
    assert!(asked(&job.pod, "k").await.unwrap().peers.is_empty(), "it is over");
}

#[tokio::test]
async fn what_was_moved_for_a_job_is_counted_once() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let job = operator.launch("one", json!({})).await;
    job.poll(0, "10.0.0.1", false).await;
    let moved = Moved { store: 5, peers: 7, cache: 11 };
    let kept = Kept { key: "k".into(), source: "s3://b/k".into(), bytes: 23, sum: String::new() };
    for _ in 0..2 {
        job.report(0, vec![What::Preparing, What::Staged { moved, keeps: vec![kept.clone()] }]).await;
    }
    let shown = server.get("jobs/one").await.expect(200);
    assert_eq!(shown["properties"]["peregrine"]["dataBytes"], json!({"store": 5, "peers": 7, "cache": 11}));
    let metrics = server.user.send(server.user.request(Method::GET, "/metrics")).await.unwrap().text().await.unwrap();
    assert!(metrics.contains("peregrine_data_bytes_total{is=\"peers\"} 7"), "{metrics}");
    let shown = server.get("computes/lab").await.expect(200);
    let kept = &shown["properties"]["properties"]["keptData"];
    assert_eq!((&kept[0]["source"], &kept[0]["bytes"]), (&json!("s3://b/k"), &json!(23)));
}
