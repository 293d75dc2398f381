//! How far the addresses in a body reach: whose files a job is given, and what a registry takes.

use crate::{Answer, Server, WS, ask, job_body, send};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const REGISTRY: &str =
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/registries/shared";

/// A server with a second workspace, `team-b`, in which a file lies that is nobody else's.
async fn with_neighbour() -> (Server, PathBuf) {
    let server = Server::start().await;
    server.put(&WS.replace("default", "team-b"), json!({})).await.expect(200);
    let secret = server.home.path().join("blobs/team-b/c/secret.txt");
    write(&secret, "secret");
    (server, secret)
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn blob(server: &Server, rest: &str) -> String {
    format!("{}/blob/{rest}", server.user.url())
}

async fn datastore(server: &Server, name: &str, path: &Path) {
    let body =
        json!({"properties": {"datastoreType": "Local", "path": path, "credentials": {"credentialsType": "None"}}});
    server.put(&format!("datastores/{name}"), body).await.expect(201);
}

async fn job_reading(server: &Server, name: &str, uri: &str) -> Answer {
    let mut job = job_body();
    job["properties"]["inputs"] = json!({"x": {"jobInputType": "uri_file", "uri": uri, "mode": "Download"}});
    server.put(&format!("jobs/{name}"), job).await
}

/// Addresses that lead out of workspace `default`, each in its own way.
async fn ways_out(server: &Server, secret: &Path) -> Vec<String> {
    let home = server.home.path();
    let id = server.get(&WS.replace("default", "team-b")).await.expect(200)["properties"]["workspaceId"].clone();
    let id = id.as_str().unwrap();
    write(&home.join(format!("blobs/team-b/azureml-blobstore-{id}/secret.txt")), "secret");
    let link = home.join("blobs/default/c/link");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(secret, &link).unwrap();
    datastore(server, "keys", &home.join("keys")).await;
    datastore(server, "whole", home.parent().unwrap()).await;
    let port = server.user.url().rsplit_once(':').unwrap().1;
    vec![
        blob(server, "team-b.blob.peregrine.local/c/secret.txt"),
        blob(server, "TEAM-B.blob.peregrine.local/c/secret.txt"),
        blob(server, &format!("azureml-blobstore-{id}/secret.txt")),
        format!("https://localhost:{port}/blob/team-b.blob.peregrine.local/c/secret.txt"),
        blob(server, "default.blob.peregrine.local/c/link"),
        blob(server, "default.blob.peregrine.local/c/..%2F..%2Fteam-b/c/secret.txt"),
        format!("file://{}", secret.display()),
        format!("file://{}/keys/user.token", home.display()),
        format!("file://{}/../{}/keys/user.token", home.display(), home.file_name().unwrap().display()),
        format!("file://{}", home.display()),
        format!("file://{}", home.parent().unwrap().display()),
        "azureml://datastores/keys/paths/user.token".to_owned(),
        format!("azureml://datastores/whole/paths/{}/keys/user.token", home.file_name().unwrap().display()),
    ]
}

#[tokio::test]
async fn a_job_is_given_nothing_of_another_workspace_or_of_the_servers_own() {
    let (server, secret) = with_neighbour().await;
    for (n, uri) in ways_out(&server, &secret).await.iter().enumerate() {
        let (_, message) = job_reading(&server, &format!("a{n}"), uri).await.refused(400);
        assert!(message.contains("inputs.x"), "{uri}: {message}");
        // Nor by way of an asset.
        let asset = json!({"properties": {"dataType": "uri_file", "dataUri": uri}});
        server.put(&format!("data/d{n}/versions/1"), asset).await.expect(201);
        job_reading(&server, &format!("b{n}"), &format!("azureml:d{n}:1")).await.refused(400);
    }
    let (_, message) =
        job_reading(&server, "c", &blob(&server, "team-b.blob.peregrine.local/c/secret.txt")).await.refused(400);
    assert!(message.contains("lies in `team-b`"), "{message}");
}

#[tokio::test]
async fn code_and_outputs_reach_no_further_than_inputs() {
    let (server, _) = with_neighbour().await;
    let foreign = blob(&server, "team-b.blob.peregrine.local/c");
    server.put("codes/c/versions/1", json!({"properties": {"codeUri": foreign}})).await.expect(201);
    for (n, code) in [foreign.clone(), format!("{WS}/codes/c/versions/1")].into_iter().enumerate() {
        let mut job = job_body();
        job["properties"]["codeId"] = json!(code);
        let (_, message) = server.put(&format!("jobs/a{n}"), job).await.refused(400);
        assert!(message.contains("team-b"), "{message}");
    }
    datastore(&server, "keys", &server.home.path().join("keys")).await;
    datastore(&server, "round", &server.home.path().join("none/../keys")).await;
    for (n, uri) in [
        "azureml://datastores/keys/paths/new".to_owned(),
        "azureml://datastores/round/paths/new".to_owned(),
        format!("file://{}", server.home.path().join("keys").display()),
    ]
    .into_iter()
    .enumerate()
    {
        let mut job = job_body();
        job["properties"]["outputs"] = json!({"o": {"jobOutputType": "uri_folder", "uri": uri}});
        let (_, message) = server.put(&format!("jobs/o{n}"), job).await.refused(400);
        assert!(message.contains("outputs.o"), "{message}");
    }
}

#[tokio::test]
async fn a_reference_that_names_another_workspace_is_not_looked_up_here() {
    let (server, _) = with_neighbour().await;
    let id = server.get(WS).await.expect(200)["properties"]["workspaceId"].as_str().unwrap().to_owned();
    write(&server.home.path().join(format!("blobs/default/azureml-blobstore-{id}/a.txt")), "a");
    let uri = "azureml://datastores/workspaceblobstore/paths/a.txt";
    server.put("data/d/versions/1", json!({"properties": {"dataType": "uri_file", "dataUri": uri}})).await.expect(201);
    server.put("environments/e/versions/1", json!({"properties": {"image": "i"}})).await.expect(201);
    let code = json!({"properties": {"codeUri": blob(&server, "default.blob.peregrine.local/c")}});
    server.put("codes/c/versions/1", code).await.expect(201);
    let long =
        "azureml://subscriptions/s/resourcegroups/g/workspaces/default/datastores/workspaceblobstore/paths/a.txt";
    let data = format!("{WS}/data/d/versions/1");
    for (n, (place, reference)) in [
        ("/inputs/x/uri", long.to_owned()),
        ("/inputs/x/uri", data.clone()),
        ("/inputs/x/uri", format!("azureml:{data}")),
        ("/outputs/o/uri", long.to_owned()),
        ("/environmentId", format!("{WS}/environments/e/versions/1")),
        ("/codeId", format!("{WS}/codes/c/versions/1")),
    ]
    .into_iter()
    .enumerate()
    {
        let mut job = job_body();
        job["properties"]["inputs"] = json!({"x": {"jobInputType": "uri_file", "uri": uri}});
        job["properties"]["outputs"] = json!({"o": {"jobOutputType": "uri_file", "uri": null}});
        job["properties"]["codeId"] = Value::Null;
        let at = |job: &mut Value, text: &str| {
            *job["properties"].pointer_mut(place).unwrap() = json!(text);
        };
        at(&mut job, &reference.replace("/default", "/team-b"));
        let (_, message) = server.put(&format!("jobs/a{n}"), job.clone()).await.refused(400);
        assert!(message.contains("lies in `team-b`"), "{place}: {message}");
        at(&mut job, &reference.replace("/default", "/DEFAULT"));
        let own = server.put(&format!("jobs/b{n}"), job).await;
        assert_eq!(own.status, 201, "{place}: {}", own.text());
    }
}

#[tokio::test]
async fn a_registry_takes_nothing_but_what_is_the_workspaces_own() {
    let (server, secret) = with_neighbour().await;
    server.put(REGISTRY, json!({})).await.expect(201);
    let outside = tempfile::tempdir().unwrap();
    write(&outside.path().join("a.txt"), "a");
    let mut ways = ways_out(&server, &secret).await;
    ways.push(format!("file://{}", outside.path().join("a.txt").display()));
    for (n, uri) in ways.iter().enumerate() {
        let asset = json!({"properties": {"dataType": "uri_file", "dataUri": uri}});
        server.put(&format!("data/d{n}/versions/1"), asset).await.expect(201);
        let around = json!({"properties": {"dataType": "uri_file", "dataUri": format!("azureml:d{n}:1")}});
        server.put(&format!("data/e{n}/versions/1"), around).await.expect(201);
        for name in ["d", "e"] {
            let id = format!("{WS}/data/{name}{n}/versions/1");
            let shared = server.post(&format!("{REGISTRY}/import"), json!({"properties": {"sourceAssetId": id}})).await;
            assert_eq!(shared.status, 400, "{uri}: {}", shared.text());
        }
    }
    assert!(!server.home.path().join("blobs/@shared").exists());
}

#[tokio::test]
async fn what_is_a_jobs_own_is_found_under_every_address_it_has() {
    let (server, _) = with_neighbour().await;
    let id = server.get(WS).await.expect(200)["properties"]["workspaceId"].as_str().unwrap().to_owned();
    let container = format!("azureml-blobstore-{id}");
    write(&server.home.path().join(format!("blobs/default/{container}/d/a.txt")), "a");
    write(&server.home.path().join("blobs/@shared/c/a.txt"), "a");
    let outside = tempfile::tempdir().unwrap();
    write(&outside.path().join("a.txt"), "a");
    datastore(&server, "folder", outside.path()).await;
    for (n, uri) in [
        blob(&server, &format!("default.blob.peregrine.local/{container}/d/a.txt")),
        blob(&server, &format!("DEFAULT.blob.peregrine.local/{container}/d/")),
        blob(&server, &format!("{container}/d/a.txt")),
        format!("https://127.0.0.1:1/blob/default.blob.peregrine.local/{container}/d/a.txt"),
        format!("{}/blobs~shared~c/a.txt", server.user.url()),
        format!("file://{}", outside.path().join("a.txt").display()),
        "azureml://datastores/folder/paths/a.txt".to_owned(),
        "azureml://datastores/workspaceblobstore/paths/d/a.txt".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        let accepted = job_reading(&server, &format!("j{n}"), &uri).await;
        assert_eq!(accepted.status, 201, "{uri}: {}", accepted.text());
    }
}

#[tokio::test]
async fn a_workspace_in_another_case_is_the_same_workspace() {
    let (server, _) = with_neighbour().await;
    let put = server.user.request(Method::PUT, "/blob/TEAM-B.blob.peregrine.local/c/new.txt");
    assert_eq!(send(put.header("x-ms-blob-type", "BlockBlob").body("new")).await.status, 201);
    let got = ask(&server.user, Method::GET, "/blob/team-b.blob.peregrine.local/c/new.txt", None).await;
    assert_eq!((got.status, got.text().as_str()), (200, "new"));
    assert!(!server.home.path().join("blobs/TEAM-B").exists());
    let got = ask(&server.user, Method::GET, "/blob/Team-B.blob.peregrine.local/c/secret.txt", None).await;
    assert_eq!((got.status, got.text().as_str()), (200, "secret"));
    let made = json!({"name": "ana", "role": "reader", "workspace": "default"});
    let made: Value = server.post("/admin/v1/principals", made).await.expect(201);
    let ana = server.with_token(made["token"].as_str().unwrap());
    for name in ["team-b", "TEAM-B", "nowhere"] {
        let path = format!("/blob/{name}.blob.peregrine.local/c/secret.txt");
        assert_eq!(ask(&ana, Method::GET, &path, None).await.status, 403, "{name}");
    }
}

#[tokio::test]
async fn a_short_address_is_known_from_the_first_request_on_and_whatever_else_is_made() {
    let server = Server::start().await;
    // Answered once the server has set up its workspace.
    server.get("/healthz").await.expect(200);
    let id = server.store.read(|tx| Ok(tx.workspaces()?[0].id.clone())).await.unwrap();
    write(&server.home.path().join(format!("blobs/default/azureml-blobstore-{id}/a.txt")), "a");
    let path = format!("/blob/azureml-blobstore-{id}/a.txt");
    assert_eq!(ask(&server.user, Method::GET, &path, None).await.status, 200);
    server.put(&WS.replace("default", "other"), json!({})).await.expect(200);
    assert_eq!(ask(&server.user, Method::GET, &path, None).await.status, 200);
}

#[tokio::test]
async fn operations_and_deployments_are_shown_to_those_they_concern() {
    let (server, _) = with_neighbour().await;
    let group = "/subscriptions/s/resourceGroups/g/providers";
    let deployment = format!("{group}/Microsoft.Resources/deployments/dep");
    let parameters = json!({"workspaceName": {"value": "team-c"}});
    server.put(&deployment, json!({"properties": {"parameters": parameters}})).await.expect(201);
    let team = WS.replace("default", "team-c");
    let body = json!({"properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_DS3_v2",
        "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 1}}}});
    let made = server.put(&format!("{team}/computes/lab1"), body).await;
    let operation = made.header("azure-asyncoperation").to_owned();
    assert!(!operation.is_empty(), "{} {}", made.status, made.text());
    for (workspace, status) in [("team-b", 404), ("team-c", 200)] {
        let someone = json!({"name": workspace, "role": "reader", "workspace": workspace});
        let someone = server.post("/admin/v1/principals", someone).await.expect(201);
        let client = server.with_token(someone["token"].as_str().unwrap());
        for path in [&deployment, &operation] {
            let answer = ask(&client, Method::GET, path, None).await;
            assert_eq!(answer.status, status, "{workspace} {path}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_node_does_not_tell_one_workspace_of_the_work_of_another() {
    let (server, _) = with_neighbour().await;
    let facts = domain::report::NodeFacts {
        node: "vm".into(),
        boot_id: "b".into(),
        version: "t".into(),
        capacity: domain::Resources::default(),
        gpu_models: Vec::new(),
    };
    server.store.write(move |tx| tx.see_node(&facts, server::clock::now())).await.unwrap();
    server.submit("mine").await;
    server.place("mine").await;
    let now = server::clock::now();
    let started = server.store.write(move |tx| {
        let mut job = tx.job("default", "mine")?.unwrap().job;
        for event in [domain::JobEvent::Preparing, domain::JobEvent::Started] {
            job.apply(event, now).unwrap();
        }
        tx.put_job(&job, None, now)
    });
    started.await.unwrap();
    for (workspace, run) in [("default", json!("mine")), ("team-b", Value::Null)] {
        let path = format!("{}/computes/local/listNodes", WS.replace("default", workspace));
        let nodes = server.post(&path, json!({})).await.expect(200);
        assert_eq!((&nodes["nodes"][0]["nodeState"], &nodes["nodes"][0]["runId"]), (&json!("running"), &run));
    }
}

#[tokio::test]
async fn a_credential_that_would_not_be_sealed_is_not_taken() {
    let server = Server::start().await;
    let store = |credentials: Value| json!({"properties": {"datastoreType": "AzureBlob", "accountName": "a", "containerName": "c", "credentials": credentials}});
    let loose = store(json!({"credentialsType": "AccountKey", "accountKey": "s3cr3t"}));
    let refused = server.put("datastores/lake", loose).await;
    let (_, message) = refused.refused(400);
    assert!(message.contains("`accountKey`") && !message.contains("s3cr3t"), "{message}");
    let sealed = store(json!({"credentialsType": "AccountKey", "clientId": "c", "secrets": {"key": "s3cr3t"}}));
    let shown = server.put("datastores/lake", sealed).await.expect(201);
    assert_eq!(shown["properties"]["credentials"], json!({"credentialsType": "AccountKey", "clientId": "c"}));
}
