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
    let refusal = &server.get("audit").await.expect(200)["value"][0];
    assert_eq!((&refusal["operation"], &refusal["result"]), (&json!("datastore_secrets"), &json!("refused")));
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

#[tokio::test]
async fn datastores_are_listed_in_pages_and_changed_only_from_the_state_one_saw() {
    let server = Server::start().await;
    let mark = server.put("datastores/lake", lake()).await.header("etag").to_owned();
    server.put("datastores/pond", lake()).await.expect(201);
    let first = server.get("datastores?count=3").await.expect(200);
    let names = |page: &Value| {
        page["value"].as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&first), ["workspaceblobstore", "lake", "pond"]);
    let rest = server.get(first["nextLink"].as_str().unwrap()).await.expect(200);
    assert_eq!(names(&rest), ["workspaceartifactstore"]);
    assert_eq!(names(&server.get("datastores?searchText=ON").await.expect(200)), ["pond"]);
    assert_eq!(names(&server.get("datastores?names=lake,pond").await.expect(200)), ["lake", "pond"]);
    server.ask_with(Method::PUT, "datastores/lake", ("if-none-match", "*"), Some(lake())).await.refused(412);
    let mut other = lake();
    other["properties"]["description"] = json!("deep");
    server.ask_with(Method::PUT, "datastores/lake", ("if-match", &mark), Some(other)).await.expect(200);
    server.ask_with(Method::DELETE, "datastores/lake", ("if-match", &mark), None).await.refused(412);
    server.put("datastores/lake", json!({"properties": 3})).await.refused(400);
}

fn lake() -> Value {
    json!({"properties": {
        "datastoreType": "AzureBlob", "accountName": "lake", "containerName": "c", "endpoint": "core.windows.net",
        "credentials": {"credentialsType": "AccountKey", "secrets": {"secretsType": "AccountKey", "key": KEY}},
    }})
}
