//! `…/computes`: this machine is there from the start; what could run nothing is refused.

use crate::Server;
use domain::{Resources, report::NodeFacts};
use serde_json::json;

#[tokio::test]
async fn this_machine_is_a_target_and_stays_one() {
    let server = Server::start().await;
    let all = server.get("computes").await.expect(200);
    assert_eq!(all["value"].as_array().unwrap().len(), 1);
    let local = server.get("computes/local").await.expect(200);
    assert_eq!(local["properties"]["computeType"], "Local");
    assert_eq!(local["properties"]["provisioningState"], "Creating", "no agent has been heard of");
    server.delete("computes/local").await.refused(409);
    let (_, message) = server.get("computes/gpu").await.refused(404);
    assert!(message.contains("local"), "{message}");
}

#[tokio::test]
async fn a_target_that_could_run_nothing_is_refused() {
    let server = Server::start().await;
    let body = json!({"properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_DS3_v2"}}});
    let (_, message) = server.put("computes/cpu-cluster", body).await.refused(400);
    assert!(message.contains("`AmlCompute`"), "{message}");
    server.put("computes/here", json!({"properties": {"computeType": "local"}})).await.expect(200);
    let mut job = crate::job_body();
    job["properties"]["computeId"] = json!("azureml:here");
    server.put("jobs/there", job).await.expect(201);
    server.delete("computes/here").await.expect(200);
    server.delete("computes/here").await.refused(404);
}

#[tokio::test]
async fn a_node_that_was_heard_of_is_shown_with_what_it_has() {
    let server = Server::start().await;
    let capacity = Resources { cpu_milli: 2000, memory_bytes: 4 << 30, gpus: 0 };
    let facts =
        NodeFacts { node: "vm".into(), boot_id: "b".into(), version: "t".into(), capacity, gpu_models: Vec::new() };
    server.store.write(move |tx| tx.see_node(&facts, server::clock::now())).await.unwrap();
    let nodes = server.post("computes/local/listNodes", json!({})).await.expect(200);
    assert_eq!((&nodes["nodes"][0]["nodeId"], &nodes["nodes"][0]["nodeState"]), (&json!("vm"), &json!("idle")));
    let local = server.get("computes/local").await.expect(200);
    assert_eq!(local["properties"]["provisioningState"], "Succeeded");
    server.post("computes/gpu/listNodes", json!({})).await.refused(404);
}
