//! `…/data|models|environments|codes`: versions that never change, labels, what is listed.

use crate::Server;
use serde_json::{Value, json};

#[tokio::test]
async fn versions_count_up_and_the_newest_is_latest() {
    let server = Server::start().await;
    for version in ["1", "2"] {
        server.put(&format!("data/iris/versions/{version}"), data(version)).await.expect(201);
    }
    let name = server.get("data/iris").await.expect(200);
    assert_eq!((&name["properties"]["latestVersion"], &name["properties"]["nextVersion"]), (&json!("2"), &json!("3")));
    assert_eq!(versions(&server.get("data/iris/versions").await.expect(200)), ["2", "1"]);
    assert_eq!(versions(&server.get("data/iris/versions?$top=1").await.expect(200)), ["2"]);
    assert_eq!(versions(&server.get("data").await.expect(200)), ["iris"]);
}

#[tokio::test]
async fn the_content_of_a_version_never_changes_and_its_labels_may() {
    let server = Server::start().await;
    server.put("data/iris/versions/1", data("here")).await.expect(201);
    server.put("data/iris/versions/1", data("here")).await.expect(200);
    server.put("data/iris/versions/1", data("there")).await.refused(409);
    let mut tagged = data("here");
    tagged["properties"]["tags"] = json!({"state": "clean"});
    assert_eq!(server.put("data/iris/versions/1", tagged).await.expect(200)["properties"]["tags"]["state"], "clean");
    let environment = |python: &str| json!({"properties": {"condaFile": format!("dependencies: [python={python}]")}});
    server.put("environments/train/versions/1", environment("3.10")).await.expect(201);
    let (_, message) = server.put("environments/train/versions/1", environment("3.11")).await.refused(409);
    assert!(message.contains("`condaFile`") && message.contains("new version"), "{message}");
}

#[tokio::test]
async fn an_archived_version_is_neither_latest_nor_listed() {
    let server = Server::start().await;
    for version in ["1", "2"] {
        server.put(&format!("data/iris/versions/{version}"), data(version)).await.expect(201);
    }
    let mut archived = data("2");
    archived["properties"]["isArchived"] = json!(true);
    server.put("data/iris/versions/2", archived).await.expect(200);
    assert_eq!(server.get("data/iris").await.expect(200)["properties"]["latestVersion"], "1");
    assert_eq!(versions(&server.get("data/iris/versions").await.expect(200)), ["1"]);
    assert_eq!(versions(&server.get("data/iris/versions?listViewType=ArchivedOnly").await.expect(200)), ["2"]);
    assert_eq!(versions(&server.get("data/iris/versions?listViewType=All").await.expect(200)), ["2", "1"]);
    server.get("data/iris/versions/2").await.expect(200);
}

#[tokio::test]
async fn a_job_runs_what_latest_meant_when_it_was_submitted() {
    let server = Server::start().await;
    let environment =
        |line: &str| json!({"properties": {"condaFile": format!("dependencies: [python=3.10, pip: [{line}]]")}});
    server.put("environments/train/versions/1", environment("six")).await.expect(201);
    let mut body = crate::job_body();
    body["properties"]["environmentId"] = json!("azureml:train@latest");
    server.put("jobs/early", body).await.expect(201);
    server.put("environments/train/versions/2", environment("idna")).await.expect(201);
    let plan = server.store.read(|tx| {
        let seq = tx.job("default", "early")?.unwrap().job.seq;
        tx.plan(seq)
    });
    assert!(plan.await.unwrap().unwrap().environment.conda.unwrap().contains("six"));
}

#[tokio::test]
async fn code_is_found_by_its_content() {
    let server = Server::start().await;
    let code = json!({"properties": {
        "codeUri": "https://x/blob/default.blob.x/snap-1/src", "isAnonymous": true,
        "properties": {"hash_sha256": "abc", "hash_version": "202208"},
    }});
    server.put("codes/any/versions/1", code).await.expect(201);
    let found = server.get("codes/other/versions?hash=abc&hashVersion=202208").await.expect(200);
    assert_eq!(found["value"].as_array().unwrap().len(), 1);
    assert!(found["value"][0]["id"].as_str().unwrap().ends_with("/codes/any/versions/1"));
    assert!(server.get("codes/other/versions?hash=abd").await.expect(200)["value"].as_array().unwrap().is_empty());
    assert!(versions(&server.get("codes").await.expect(200)).is_empty(), "anonymous assets are not listed");
}

#[tokio::test]
async fn curated_environments_are_there_without_being_made() {
    let server = Server::start().await;
    let listed = versions(&server.get("environments?registry=azureml").await.expect(200));
    assert!(listed.len() > 5, "{listed:?}");
    let shown = server.get("environments/AzureML-sklearn-1.5/versions/1").await.expect(200);
    assert!(shown["properties"]["condaFile"].as_str().unwrap().contains("scikit-learn"), "{shown}");
}

#[tokio::test]
async fn what_cannot_be_an_asset_is_refused() {
    let server = Server::start().await;
    server.put("data/iris/versions/1", json!({"properties": {"dataType": "uri_file"}})).await.refused(400);
    server.put("environments/e/versions/1", json!({"properties": {}})).await.refused(400);
    server.put("data/..%2Fx/versions/1", data("a")).await.refused(400);
    server.get("data/none/versions/1").await.refused(404);
    let (_, message) = server.get("gadgets").await.refused(404);
    assert!(message.contains("environments"), "{message}");
}

#[tokio::test]
async fn a_deleted_version_is_gone() {
    let server = Server::start().await;
    server.put("models/net/versions/1", json!({"properties": {"modelUri": "azureml://x"}})).await.expect(201);
    assert_eq!(server.delete("models/net/versions/1").await.status, 200);
    assert_eq!(server.delete("models/net/versions/1").await.status, 204);
    server.get("models/net/versions/1").await.refused(404);
}

fn data(path: &str) -> Value {
    json!({"properties": {"dataType": "uri_file", "dataUri": format!("azureml://datastores/workspaceblobstore/paths/{path}")}})
}

/// The names in a list: of versions, or of assets.
fn versions(page: &Value) -> Vec<String> {
    page["value"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}
