//! Endpoints on a cluster: where they are called, who is told of their replicas, and what is refused.

use super::{Operator, facts, on_lab};
use crate::Server;
use api::Client;
use domain::{
    cluster::{ClusterFacts, ClusterReport},
    serving::{RouterAnswer, RouterNews},
};
use serde_json::{Value, json};

const BLUE: &str = "onlineEndpoints/ep1/deployments/blue";

/// The endpoints that a router with this token is told of.
async fn told(client: &Client) -> Vec<String> {
    let hello = RouterNews { router: "r".into(), ..RouterNews::default() };
    let answer: RouterAnswer = client.post("/router/v1/exchange", &hello).await.unwrap();
    answer.routes.unwrap().endpoints.into_keys().collect()
}

fn script(server: &Server) -> Value {
    let code = format!("{}/blob/default.blob.peregrine.local/c", server.user.url());
    json!({"properties": {
        "endpointComputeType": "Kubernetes", "environmentId": "azureml:AzureML-Minimal@latest",
        "codeConfiguration": {"codeId": code, "scoringScript": "score.py"},
        "containerResourceRequirements": {"containerResourceRequests": {"cpu": "3", "memory": "64Mi"}},
    }})
}

#[tokio::test]
async fn an_endpoint_on_a_cluster_is_for_that_cluster_s_routers() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let on = |compute: Value| json!({"properties": {"authMode": "Key", "compute": compute}});
    server.put("onlineEndpoints/ep1", on(json!("azureml:lab"))).await.expect(201);
    server.put("onlineEndpoints/here", on(Value::Null)).await.expect(201);
    let (_, message) = server.put(BLUE, script(&server)).await.refused(400);
    assert!(message.contains("no router runs") && message.contains("enableInference=True"), "{message}");
    let inference = ClusterFacts { inference: true, ..facts() };
    operator.report(ClusterReport { facts: Some(inference.clone()), ..ClusterReport::default() }).await;
    let shown = server.get("onlineEndpoints/ep1").await.expect(200);
    assert!(shown["properties"]["scoringUri"].is_null(), "nobody knows yet where: {shown}");
    let served_only = ClusterFacts { training: false, ..inference.clone() };
    operator.report(ClusterReport { facts: Some(served_only), ..ClusterReport::default() }).await;
    let (_, message) = server.put("jobs/trains", on_lab(json!({}))).await.refused(400);
    assert!(message.contains("training is not enabled"), "{message}");
    let addressed = ClusterFacts { scoring_url: "http://192.0.2.1".into(), ..inference };
    operator.report(ClusterReport { facts: Some(addressed), ..ClusterReport::default() }).await;
    let shown = server.get("onlineEndpoints/ep1").await.expect(200);
    assert_eq!(shown["properties"]["scoringUri"], "http://192.0.2.1/api/v1/endpoint/ep1/score");
    server.put(BLUE, script(&server)).await.expect(201);
    assert_eq!((told(&operator.client).await, told(&server.user).await), (vec!["ep1".into()], vec!["here".into()]));
    let key = store::ServingKey { workspace: "default".into(), endpoint: "ep1".into(), deployment: "blue".into() };
    let read = server.store.read(move |tx| Ok((tx.serving(&key)?.unwrap(), tx.serving_plan(&key, 1)?.unwrap())));
    let (row, plan) = read.await.unwrap();
    assert_eq!((row.target.as_str(), row.cluster.as_str()), ("lab", "lab"));
    let limits = plan.limits.unwrap();
    assert_eq!((plan.requests.cpu_milli, limits.cpu_milli, limits.memory_bytes), (3000, 3000, 1 << 30));
}

#[tokio::test]
async fn a_container_on_a_cluster_says_what_it_runs() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let facts = ClusterFacts { inference: true, ..facts() };
    operator.report(ClusterReport { facts: Some(facts), ..ClusterReport::default() }).await;
    let endpoint = json!({"properties": {"authMode": "Key", "compute": "azureml:lab"}});
    server.put("onlineEndpoints/ep1", endpoint).await.expect(201);
    let route = json!({"port": 8000, "path": "/x"});
    let inference = json!({"scoringRoute": route, "livenessRoute": route, "readinessRoute": route});
    let environment = json!({"properties": {"image": "triton:1", "inferenceConfig": inference}});
    server.put("environments/triton/versions/1", environment).await.expect(201);
    let mut body = json!({"properties": {"endpointComputeType": "Kubernetes", "environmentId": "azureml:triton:1"}});
    let (_, message) = server.put(BLUE, body.clone()).await.refused(400);
    assert!(message.contains("peregrine.command"), "{message}");
    body["properties"]["properties"] = json!({"peregrine.command": "tritonserver"});
    server.put(BLUE, body).await.expect(201);
}
