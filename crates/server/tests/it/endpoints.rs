//! `…/onlineEndpoints`, `…/batchEndpoints` and their deployments: records with keys, traffic and addresses.

use crate::{Server, WS, send, without_token};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn an_endpoint_is_kept_with_its_address_and_does_not_claim_to_serve() {
    let server = Server::start().await;
    let made = server.put("onlineEndpoints/ep1", endpoint("Key")).await;
    let view = made.expect(201);
    assert_eq!(server.get(made.header("azure-asyncoperation")).await.expect(200)["status"], "Succeeded");
    let properties = &view["properties"];
    assert_eq!(properties["provisioningState"], "Unknown");
    assert_eq!(properties["scoringUri"], json!(format!("{}/api/v1/endpoint/ep1/score", server.user.url())));
    assert_eq!((&properties["traffic"], &properties["mirrorTraffic"]), (&json!({}), &json!({})));
    assert!(properties["properties"]["peregrine.state"].as_str().unwrap().contains("not served online yet"));
    assert!(view["systemData"]["createdAt"].is_string() && view["systemData"]["lastModifiedAt"].is_string());
    assert_eq!(view["unheardOf"], 1);
    assert_eq!(server.get("onlineendpoints/ep1").await.expect(200), view);
    for (name, body, expect) in [
        ("e", endpoint("Key"), "3 to 32"),
        ("1ep", endpoint("Key"), "starting with a letter"),
        ("ep2", endpoint("Handshake"), "`AMLToken`"),
        ("ep2", json!({"properties": {"compute": "azureml:moon"}}), "there are: local"),
    ] {
        let (_, message) = server.put(&format!("onlineEndpoints/{name}"), body).await.refused(400);
        assert!(message.contains(expect), "{message}");
    }
}

#[tokio::test]
async fn keys_are_real_given_on_request_and_open_the_endpoint() {
    let server = Server::start().await;
    let mut body = endpoint("Key");
    body["properties"]["keys"] = json!({"primaryKey": "chosen-by-me"});
    let made = server.put("onlineEndpoints/ep1", body).await;
    made.expect(201);
    let keys = server.post("onlineEndpoints/ep1/listKeys", json!({})).await.expect(200);
    let (first, second) = (text(&keys, "primaryKey"), text(&keys, "secondaryKey"));
    assert_eq!((first.as_str(), second.len()), ("chosen-by-me", 64));
    for answer in [made, server.get("onlineEndpoints/ep1").await, server.get("onlineEndpoints").await] {
        assert!(!answer.text().contains(&first) && !answer.text().contains(&second), "{}", answer.text());
    }
    for key in [&first, &second] {
        let (code, message) = score(&server, "ep1", Some(key)).await.refused(503);
        assert!(code == "NotServing" && message.contains("kept as a record"), "{message}");
    }
    for (name, key) in [("ep1", Some("wrong")), ("ep1", None), ("nowhere", Some(first.as_str()))] {
        score(&server, name, key).await.refused(401);
    }
    let renewed = server.post("onlineEndpoints/ep1/regenerateKeys", json!({"keyType": "Primary"})).await;
    assert_eq!(renewed.status, 202);
    assert_eq!(server.get(renewed.header("location")).await.status, 204);
    let keys = server.post("onlineEndpoints/ep1/listKeys", json!({})).await.expect(200);
    assert!(text(&keys, "primaryKey") != first && text(&keys, "secondaryKey") == second);
    score(&server, "ep1", Some(&first)).await.refused(401);
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(200);
    assert_eq!(
        server.post("onlineEndpoints/ep1/listKeys", json!({})).await.expect(200),
        keys,
        "an update keeps the keys"
    );
    server.post("onlineEndpoints/ep1/regenerateKeys", json!({"keyType": "Third"})).await.refused(400);
    server.post("onlineEndpoints/ep1/token", json!({})).await.refused(400);
}

#[tokio::test]
async fn a_token_opens_the_endpoint_it_was_made_for_and_no_other() {
    let server = Server::start().await;
    for name in ["ep1", "ep2"] {
        server.put(&format!("onlineEndpoints/{name}"), endpoint("AMLToken")).await.expect(201);
    }
    let given = server.post("onlineEndpoints/ep1/token", json!({})).await.expect(200);
    let token = text(&given, "accessToken");
    assert!(given["expiryTimeUtc"].as_i64() > given["refreshAfterTimeUtc"].as_i64());
    score(&server, "ep1", Some(&token)).await.refused(503);
    score(&server, "ep2", Some(&token)).await.refused(401);
    score(&server, "ep1", Some(&token.replace("endpoint.default/ep1/", "endpoint.default/ep1/9"))).await.refused(401);
    server.post("onlineEndpoints/ep1/listKeys", json!({})).await.refused(400);
}

#[tokio::test]
async fn traffic_goes_to_deployments_that_are_there_in_shares_that_add_up() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    for name in ["blue", "green"] {
        deploy(&server, name).await;
    }
    let with = |traffic: Value, mirror: Value| {
        let mut body = endpoint("Key");
        body["properties"]["traffic"] = traffic;
        body["properties"]["mirrorTraffic"] = mirror;
        body
    };
    for (traffic, mirror, expect) in [
        (json!({"blue": 50}), json!({}), "add up to 50"),
        (json!({"blue": 101}), json!({}), "0 to 100"),
        (json!({"red": 100}), json!({}), "there are: blue, green"),
        (json!({"blue": "all"}), json!({}), "0 to 100"),
        (json!([]), json!({}), "shares"),
        (json!({"blue": 100}), json!({"blue": 10}), "live traffic"),
        (json!({"blue": 100}), json!({"green": 60}), "0 to 50"),
    ] {
        let (_, message) = server.put("onlineEndpoints/ep1", with(traffic, mirror)).await.refused(400);
        assert!(message.contains(expect), "{expect}: {message}");
    }
    server.put("onlineEndpoints/ep1", with(json!({"blue": 90, "green": 10}), json!({}))).await.expect(200);
    let (_, message) = server.delete("onlineEndpoints/ep1/deployments/green").await.refused(409);
    assert!(message.contains("10 %"), "{message}");
    server.put("onlineEndpoints/ep1", with(json!({"blue": 100}), json!({"green": 10}))).await.expect(200);
    assert_eq!(server.delete("onlineEndpoints/ep1/deployments/green").await.status, 202);
    let shown = server.get("onlineEndpoints/ep1").await.expect(200);
    assert_eq!(shown["properties"]["mirrorTraffic"], json!({}), "nothing points at what is gone");
    assert_eq!(server.delete("onlineEndpoints/ep1").await.status, 202);
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    let left = server.get("onlineEndpoints/ep1/deployments").await.expect(200);
    assert!(left["value"].as_array().unwrap().is_empty(), "deployments go with their endpoint");
}

#[tokio::test]
async fn a_deployment_comes_back_with_what_clients_look_into() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    let body = json!({"properties": {"endpointComputeType": "Kubernetes", "unheardOf": true}});
    let view = server.put("onlineEndpoints/ep1/deployments/blue", body).await.expect(201);
    let properties = &view["properties"];
    assert_eq!(properties["scaleSettings"]["scaleType"], "Default");
    assert!(properties["containerResourceRequirements"].is_object() && view["sku"].is_object());
    assert_eq!((&properties["provisioningState"], &properties["unheardOf"]), (&json!("Unknown"), &json!(true)));
    assert!(text(&view, "id").ends_with("/onlineEndpoints/ep1/deployments/blue"));
    let log = server.post("onlineEndpoints/ep1/deployments/blue/getLogs", json!({"tail": 50})).await.expect(200);
    assert!(text(&log, "content").contains("not deployed"), "{log}");
    let scaled =
        server.patch("onlineEndpoints/ep1/deployments/blue", json!({"sku": {"capacity": 3}})).await.expect(200);
    assert_eq!(scaled["sku"]["capacity"], 3);
    let (_, message) = server.get("onlineEndpoints/ep1/deployments/red").await.refused(404);
    assert!(message.contains("blue"), "{message}");
    let (_, message) = server.put("onlineEndpoints/none/deployments/blue", json!({})).await.refused(404);
    assert!(message.contains("ep1"), "{message}");
}

#[tokio::test]
async fn a_deployment_of_what_is_not_there_is_refused_with_what_is() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    server.put("models/net/versions/1", json!({"properties": {"modelUri": "azureml://x"}})).await.expect(201);
    let at = "onlineEndpoints/ep1/deployments/blue";
    for (properties, expect) in [
        (json!({"model": "azureml:net:2"}), "`net` has versions 1"),
        (json!({"model": format!("{WS}/models/nets/versions/1")}), "there are: net"),
        (json!({"environmentId": "azureml:none:1"}), "no environment `none:1`"),
        (json!({"codeConfiguration": {"codeId": "azureml:x:1"}}), "no code `x:1`"),
        (json!({"endpointComputeType": "Cloud"}), "`Managed`"),
        (json!({"instanceType": "Standard_Enormous"}), "Standard_Enormous"),
        (
            json!({"scaleSettings": {"scaleType": "TargetUtilization", "minInstances": 3, "maxInstances": 1}}),
            "at most 1",
        ),
        (json!({"requestSettings": {"requestTimeout": "3s"}}), "not a duration"),
        (json!({"livenessProbe": {"failureThreshold": 0}}), "failureThreshold"),
    ] {
        let (_, message) = server.put(at, json!({"properties": properties})).await.refused(400);
        assert!(message.contains(expect), "{expect}: {message}");
    }
    let good = json!({"model": "azureml:net:1", "environmentId": "azureml:AzureML-sklearn-1.5@latest"});
    server.put(at, json!({"properties": good})).await.expect(201);
}

#[tokio::test]
async fn a_batch_endpoint_keeps_its_deployments_and_its_default() {
    let server = Server::start().await;
    let batch = |default: Value| json!({"properties": {"authMode": "aadToken", "defaults": default}});
    let view = server.put("batchEndpoints/be1", batch(Value::Null)).await.expect(201);
    assert_eq!(view["properties"]["defaults"], json!({}));
    let (_, message) = server.put("batchEndpoints/be1", batch(json!({"deploymentName": "bd1"}))).await.refused(400);
    assert!(message.contains("none yet"), "{message}");
    let at = "batchEndpoints/be1/deployments/bd1";
    let deployment = |size: i64| json!({"properties": {"compute": "azureml:local", "miniBatchSize": size}});
    server.put(at, deployment(0)).await.refused(400);
    server.put(at, deployment(10)).await.expect(201);
    server.put("batchEndpoints/be1", batch(json!({"deploymentName": "bd1"}))).await.expect(200);
    let address = text(&view["properties"], "scoringUri");
    let (code, _) = server.post(&address, json!({})).await.refused(503);
    assert_eq!(code, "NotServing");
    let jobs = server.get(&format!("/mferp/managementfrontend{WS}/batchEndpoints/be1/jobs")).await.expect(200);
    assert_eq!(jobs, json!({"value": [], "nextLink": null}));
    server.get(&format!("/mferp/managementfrontend{WS}/batchEndpoints/none/jobs")).await.refused(404);
    assert_eq!(server.delete(at).await.status, 202);
    assert_eq!(server.get("batchEndpoints/be1").await.expect(200)["properties"]["defaults"], json!({}));
}

async fn score(server: &Server, name: &str, key: Option<&str>) -> crate::Answer {
    let request = server.user.request(Method::POST, &format!("/api/v1/endpoint/{name}/score")).json(&json!({}));
    let request = without_token(request);
    send(if let Some(key) = key { request.bearer_auth(key) } else { request }).await
}

async fn deploy(server: &Server, name: &str) {
    let body = json!({"properties": {"endpointComputeType": "Managed"}});
    server.put(&format!("onlineEndpoints/ep1/deployments/{name}"), body).await.expect(201);
}

fn endpoint(mode: &str) -> Value {
    json!({"location": "local", "unheardOf": 1, "properties": {"authMode": mode, "properties": {}}})
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {value}")).to_owned()
}
