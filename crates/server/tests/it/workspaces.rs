//! `…/workspaces`: what one holds the others do not see.

use crate::{Server, WS, job_body};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn a_workspace_keeps_its_jobs_and_assets_to_itself() {
    let server = Server::start().await;
    let other = WS.replace("default", "team");
    server.put(&other, json!({"location": "here", "properties": {"description": "ours"}})).await.expect(200);
    server.put(&format!("{other}/jobs/theirs"), job_body()).await.expect(201);
    server.get("jobs/theirs").await.refused(404);
    server.submit("theirs").await;
    let shown = server.get(&other).await.expect(200);
    assert_eq!(shown["properties"]["description"], "ours");
    let all = server.get(WS.trim_end_matches("/default")).await.expect(200);
    assert_eq!(all["value"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_workspace_goes_only_when_nothing_runs_in_it() {
    let server = Server::start().await;
    let other = WS.replace("default", "team");
    server.put(&other, json!({})).await.expect(200);
    server.put(&format!("{other}/jobs/open"), job_body()).await.expect(201);
    server.delete(&other).await.refused(409);
    server.post(&format!("{other}/jobs/open/cancel"), json!({})).await.expect(200);
    let gone = server.delete(&other).await;
    assert_eq!(gone.status, 202);
    assert_eq!(server.get(gone.header("location")).await.status, 204);
    let (_, message) = server.get(&format!("{other}/jobs")).await.refused(404);
    assert!(message.contains("there are: default"), "{message}");
    server.delete(WS).await.refused(409);
    server.put(&WS.replace("default", "a%20b"), json!({})).await.refused(400);
}

#[tokio::test]
async fn a_workspace_stands_in_its_own_group_and_is_listed_there() {
    let server = Server::start().await;
    let there = WS.replace("/s/", "/s2/").replace("/g/", "/g2/").replace("default", "lab");
    server.put(&there, json!({"location": "attic", "tags": {"a": "b"}})).await.expect(200);
    let shown = server.get(&there).await;
    let view = shown.expect(200);
    assert_eq!(view["id"], json!(there));
    assert_eq!(view["etag"], json!(shown.header("etag")));
    let properties = &view["properties"];
    let tracking = format!("{}/mlflow/v1.0{there}", server.user.url());
    assert_eq!(properties["mlFlowTrackingUri"], json!(tracking));
    assert!(properties["storageAccount"].is_string() && properties["workspaceId"].is_string(), "{properties}");
    let names = async |path: &str| {
        let page = server.get(path).await.expect(200);
        page["value"].as_array().unwrap().iter().map(|w| w["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(there.trim_end_matches("/lab")).await, ["lab"]);
    assert_eq!(names(WS.trim_end_matches("/default")).await, ["default"]);
    let subscription = "/subscriptions/s2/providers/Microsoft.MachineLearningServices/workspaces";
    assert_eq!(names(subscription).await, ["lab"]);
    let elsewhere = WS.replace("default", "lab");
    let (_, message) = server.get(&elsewhere).await.refused(404);
    assert!(message.contains("`g2`"), "{message}");
    let (_, message) = server.put(&elsewhere, json!({})).await.refused(409);
    assert!(message.contains("`g2`") && message.contains("another name"), "{message}");
    server.put(&there.replace("g2", "g%2F3"), json!({})).await.refused(400);
}

#[tokio::test]
async fn an_update_changes_what_it_names_and_unknown_fields_come_back() {
    let server = Server::start().await;
    let other = WS.replace("default", "team");
    let body = json!({"newField": [1], "tags": {"a": "1", "b": "2"}, "properties": {
        "description": "d", "friendlyName": "Team", "alsoNew": {"x": null}, "provisioningState": "Failed",
    }});
    server.put(&other, body).await.expect(200);
    let update = json!({"tags": {"a": "3"}, "properties": {"description": "e", "friendlyName": null}});
    let view = server.patch(&other, update).await.expect(200);
    assert_eq!((&view["newField"], &view["tags"]), (&json!([1]), &json!({"a": "3"})));
    let properties = &view["properties"];
    assert_eq!((&properties["description"], &properties["friendlyName"]), (&json!("e"), &json!("team")));
    assert_eq!((&properties["alsoNew"], &properties["provisioningState"]), (&json!({"x": null}), &json!("Succeeded")));
    server.patch(&other, json!({"tags": 3})).await.refused(400);
    server.patch(&WS.replace("default", "none"), json!({})).await.refused(404);
    let old = view["etag"].as_str().unwrap();
    server.patch(&other, json!({"tags": {}})).await.expect(200);
    server.ask_with(Method::PATCH, &other, ("if-match", old), Some(json!({}))).await.refused(412);
    server.ask_with(Method::DELETE, &other, ("if-match", old), None).await.refused(412);
    let keys = server.post(&format!("{other}/listKeys"), json!({})).await.expect(200);
    assert!(keys["userStorageResourceId"].is_string() && keys["userStorageKey"].is_null(), "{keys}");
}

#[tokio::test]
async fn a_template_makes_the_workspace_its_parameters_describe() {
    let server = Server::start().await;
    let at = "/subscriptions/s/resourcegroups/g/providers/Microsoft.Resources/deployments/lab-123";
    let parameters = json!({
        "workspaceName": {"value": "lab"}, "location": {"value": "attic"}, "description": {"value": "d"},
        "friendlyName": {"value": "The lab"}, "tagValues": {"value": {"by": "sdk"}}, "kind": {"value": "default"},
        "identity": {"value": {"type": "SystemAssigned"}}, "keyVaultName": {"value": "ignored"},
    });
    let body = json!({"properties": {"template": {}, "parameters": parameters, "mode": "incremental"}});
    let made = server.put(at, body).await.expect(201);
    assert_eq!(made["properties"]["provisioningState"], "Succeeded");
    assert_eq!(server.get(at).await.expect(200), made);
    let steps = server.get("/subscriptions/s/resourcegroups/g/deployments/lab-123/operations").await.expect(200);
    assert_eq!(steps["value"], json!([]));
    let view = server.get(&WS.replace("default", "lab")).await.expect(200);
    assert_eq!(
        (&view["location"], &view["tags"]["by"], &view["kind"]),
        (&json!("attic"), &json!("sdk"), &json!("Default"))
    );
    assert_eq!(view["properties"]["friendlyName"], "The lab");
    let (_, message) = server.put(at, json!({"properties": {"parameters": {}}})).await.refused(400);
    assert!(message.contains("`workspaceName`"), "{message}");
    server.get(&at.replace("lab-123", "lab-124")).await.refused(404);
}

#[tokio::test]
async fn the_files_of_a_workspace_go_with_it() {
    let server = Server::start().await;
    let other = WS.replace("default", "team");
    server.put(&other, json!({})).await.expect(200);
    let file = server.home.path().join("blobs/team/azureml/ExperimentRun/dcid.j/log.txt");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "theirs").unwrap();
    server.put(&format!("{other}/schedules/s1"), schedule()).await.expect(201);
    assert_eq!(server.delete(&other).await.status, 202);
    assert!(!file.exists());
    assert!(!server.home.path().join("blobs/.removed").exists());
    // What a crash left behind is not the next one's.
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "left").unwrap();
    server.put(&other, json!({})).await.expect(200);
    assert!(!file.exists());
    assert_eq!(server.get(&format!("{other}/schedules")).await.expect(200)["value"], json!([]));
}

fn schedule() -> serde_json::Value {
    json!({"properties": {
        "trigger": {"triggerType": "Cron", "expression": "0 0 1 1 *", "startTime": "2026-01-01T00:00:00"},
        "action": {"actionType": "CreateJob", "jobDefinition": crate::job_body()["properties"]},
    }})
}
