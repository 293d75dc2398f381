//! `…/data|models|environments|codes`: versions that never change, labels, what is listed.

use crate::Server;
use reqwest::Method;
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

#[tokio::test]
async fn a_whole_name_is_archived_and_restored() {
    let server = Server::start().await;
    for version in ["1", "2"] {
        server.put(&format!("models/net/versions/{version}"), model(version)).await.expect(201);
    }
    let mut name = server.get("models/net").await.expect(200);
    name["properties"]["isArchived"] = json!(true);
    name["properties"]["description"] = json!("old");
    let archived = server.put("models/net", name.clone()).await.expect(200);
    assert_eq!(
        (&archived["properties"]["isArchived"], &archived["properties"]["latestVersion"]),
        (&json!(true), &json!("2"))
    );
    assert!(versions(&server.get("models").await.expect(200)).is_empty());
    assert_eq!(versions(&server.get("models?listViewType=ArchivedOnly").await.expect(200)), ["net"]);
    assert_eq!(server.get("models/net/versions/1").await.expect(200)["properties"]["isArchived"], false);
    name["properties"]["isArchived"] = json!(false);
    let restored = server.put("models/net", name).await.expect(200);
    assert_eq!(restored["properties"]["description"], "old");
    assert_eq!(versions(&server.get("models").await.expect(200)), ["net"]);
    server.put("models/none", json!({"properties": {"isArchived": true}})).await.refused(404);
    server.put("models/net", json!({"properties": 3})).await.refused(400);
    let mark = restored["etag"].as_str().unwrap();
    server.put("models/net/versions/3", model("3")).await.expect(201);
    let late = server.ask_with(Method::PUT, "models/net", ("if-match", mark), Some(json!({"properties": {}}))).await;
    late.refused(412);
}

#[tokio::test]
async fn an_old_version_stands_in_when_the_newest_is_archived() {
    let server = Server::start().await;
    for version in ["1", "2"] {
        server.put(&format!("data/iris/versions/{version}"), data(version)).await.expect(201);
    }
    let mut body = data("2");
    body["properties"]["isArchived"] = json!(true);
    server.put("data/iris/versions/2", body).await.expect(200);
    assert_eq!(versions(&server.get("data").await.expect(200)), ["iris"]);
}

#[tokio::test]
async fn pages_of_names_and_versions_skip_nothing_that_was_there() {
    let server = Server::start().await;
    for n in 0..5 {
        let mut body = data("x");
        body["properties"]["tags"] = json!({"even": (n % 2 == 0).to_string()});
        server.put(&format!("data/d{n}/versions/1"), body).await.expect(201);
        server.put(&format!("data/many/versions/{n}"), data(&n.to_string())).await.expect(201);
    }
    let walk = async |first: &str, between: &str| {
        let (mut link, mut seen) = (first.to_owned(), Vec::new());
        loop {
            let page = server.get(&link).await.expect(200);
            seen.extend(versions(&page));
            server.put(&format!("data/{between}"), data("new")).await;
            match page["nextLink"].as_str() {
                Some(next) => link = next.to_owned(),
                None => return seen,
            }
        }
    };
    assert_eq!(walk("data?$top=2", "a0/versions/1").await, ["d0", "d1", "d2", "d3", "d4", "many"]);
    assert_eq!(walk("data/many/versions?$top=2", "many/versions/9").await, ["4", "3", "2", "1", "0"]);
    let oldest = walk("data/many/versions?$top=2&$orderBy=createdtime%20asc", "many/versions/9").await;
    assert_eq!(oldest, ["0", "1", "2", "3", "4", "9"]);
    assert_eq!(versions(&server.get("data?tags=even=False,even").await.expect(200)), Vec::<String>::new());
    assert_eq!(versions(&server.get("data?tags=even=false").await.expect(200)), ["d1", "d3"]);
    assert_eq!(versions(&server.get("data?searchName=AN").await.expect(200)), ["many"]);
    server.get("data/many/versions?$skipToken=x").await.refused(400);
}

#[tokio::test]
async fn of_two_writers_of_one_version_the_first_wins() {
    let server = Server::start().await;
    let (one, two) =
        tokio::join!(server.put("data/iris/versions/1", data("one")), server.put("data/iris/versions/1", data("two")));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
    let first = server.put("models/net/versions/1", model("a")).await;
    let mark = first.header("etag").to_owned();
    assert_eq!(first.expect(201)["etag"], json!(mark));
    let again = Some(model("a"));
    server.ask_with(Method::PUT, "models/net/versions/1", ("if-none-match", "*"), again.clone()).await.refused(412);
    let mut tagged = model("a");
    tagged["properties"]["tags"] = json!({"a": "b"});
    server.ask_with(Method::PUT, "models/net/versions/1", ("if-match", &mark), Some(tagged)).await.expect(200);
    server.ask_with(Method::PUT, "models/net/versions/1", ("if-match", &mark), again).await.refused(412);
    server.ask_with(Method::DELETE, "models/net/versions/1", ("if-match", &mark), None).await.refused(412);
}

#[tokio::test]
async fn an_environment_that_lost_a_part_is_another_one() {
    let server = Server::start().await;
    let both = json!({"properties": {"image": "python:3.11", "condaFile": "dependencies: [python=3.11]"}});
    server.put("environments/train/versions/1", both.clone()).await.expect(201);
    server.put("environments/train/versions/1", both).await.expect(200);
    let (_, message) =
        server.put("environments/train/versions/1", json!({"properties": {"image": "python:3.11"}})).await.refused(409);
    assert!(message.contains("`condaFile`"), "{message}");
}

#[tokio::test]
async fn a_components_spec_comes_back_as_it_was_sent() {
    let server = Server::start().await;
    let spec = json!({"name": "step", "type": "command", "command": "x", "_source": "YAML", "inputs": {"a": {"type": "number"}}});
    server.put("components/step/versions/1", json!({"properties": {"componentSpec": spec}})).await.expect(201);
    let view = server.get("components/step/versions/1").await.expect(200);
    assert_eq!(view["properties"]["componentSpec"], spec);
    for bad in [json!(3), json!({"componentSpec": {}, "tags": 3})] {
        server.put("components/step/versions/2", json!({"properties": bad})).await.refused(400);
    }
}

#[tokio::test]
async fn an_anonymous_component_may_be_sent_again_in_other_words_and_stays_as_it_was() {
    let server = Server::start().await;
    let body = |source: &str, anonymous: bool| {
        let spec = json!({"name": "step", "type": "command", "command": "x", "_source": source});
        json!({"properties": {"componentSpec": spec, "isAnonymous": anonymous}})
    };
    let path = "components/azureml_anonymous/versions/4d3b";
    server.put(path, body("DSL", true)).await.expect(201);
    let again = server.put(path, body("YAML", true)).await.expect(200);
    assert_eq!(again["properties"]["componentSpec"]["_source"], "DSL");
    server.put("components/named/versions/1", body("DSL", false)).await.expect(201);
    server.put("components/named/versions/1", body("YAML", false)).await.refused(409);
}

fn model(path: &str) -> Value {
    json!({"properties": {"modelUri": format!("azureml://datastores/workspaceblobstore/paths/{path}")}})
}

fn data(path: &str) -> Value {
    json!({"properties": {"dataType": "uri_file", "dataUri": format!("azureml://datastores/workspaceblobstore/paths/{path}")}})
}

/// The names in a list: of versions, or of assets.
fn versions(page: &Value) -> Vec<String> {
    page["value"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}
