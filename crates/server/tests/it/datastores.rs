//! `…/datastores`: secrets go in and never come out; the workspace's own stores open by link.

use crate::{Server, send, without_token};
use reqwest::Method;
use serde_json::{Value, json};

const KEY: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQ=";

#[tokio::test]
async fn every_workspace_has_its_own_stores() {
    let server = Server::start().await;
    let all = server.get("datastores").await.expect(200);
    let names: Vec<&str> = all["value"].as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["workspaceblobstore", "workspaceartifactstore"]);
    let default = server.get("datastores?isDefault=true").await.expect(200);
    assert_eq!(default["value"][0]["name"], "workspaceblobstore");
}

#[tokio::test]
async fn a_link_to_the_default_store_writes_where_data_is_looked_for() {
    let server = Server::start().await;
    let store = server.get("datastores/workspaceblobstore").await.expect(200)["properties"].clone();
    let link = server.post("datastores/workspaceblobstore/listSecrets", json!({})).await.expect(200);
    let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    let account = text(&store, "accountName").split_once("/blob/").unwrap().1.to_owned();
    let url = format!(
        "{}/blob/{account}.blob.{}/{}/data/iris.csv?{}",
        server.user.url(),
        text(&store, "endpoint"),
        text(&store, "containerName"),
        text(&link, "sasToken")
    );
    assert_eq!(send(without_token(server.user.request(Method::PUT, &url)).body("a,b\n")).await.status, 201);
    let found = server.home.path().join("blobs/default").join(text(&store, "containerName")).join("data/iris.csv");
    assert_eq!(std::fs::read_to_string(found).unwrap(), "a,b\n");
}

#[tokio::test]
async fn credentials_go_in_and_never_come_out() {
    let server = Server::start().await;
    let made = server.put("datastores/lake", lake()).await;
    made.expect(201);
    for answer in [made, server.get("datastores/lake").await, server.get("datastores").await] {
        assert!(!answer.text().contains(KEY), "{}", answer.text());
    }
    let (_, message) = server.post("datastores/lake/listSecrets", json!({})).await.refused(403);
    assert!(message.contains("jobs that use it"), "{message}");
    let kept = server.store.read(|tx| tx.datastore_secret("default", "lake")).await.unwrap();
    assert!(kept.values().any(|value| value == KEY), "the secret was not kept");
}

#[tokio::test]
async fn the_workspaces_own_stores_stay_as_they_are() {
    let server = Server::start().await;
    server.put("datastores/workspaceblobstore", lake()).await.refused(409);
    server.delete("datastores/workspaceblobstore").await.refused(409);
    server.put("datastores/lake", lake()).await.expect(201);
    server.delete("datastores/lake").await.expect(200);
    let (_, message) = server.get("datastores/lake").await.refused(404);
    assert!(message.contains("workspaceblobstore"), "{message}");
    server.put("datastores/lake", json!({"properties": {}})).await.refused(400);
}

fn lake() -> Value {
    json!({"properties": {
        "datastoreType": "AzureBlob", "accountName": "lake", "containerName": "c", "endpoint": "core.windows.net",
        "credentials": {"credentialsType": "AccountKey", "secrets": {"secretsType": "AccountKey", "key": KEY}},
    }})
}
