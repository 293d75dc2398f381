//! The registry: what MLflow registers is what Azure's clients see, and the reverse.

use super::*;

async fn version(server: &Server, name: &str, run: &str) -> Value {
    let source = format!("mlflow-artifacts:/0/{run}/artifacts/model");
    let args = json!({"name": name, "source": source, "run_id": run, "tags": [{"key": "t", "value": "1"}]});
    server.tell("model-versions/create", args).await.expect(200)["model_version"].clone()
}

#[tokio::test]
async fn a_model_registered_through_mlflow_is_an_asset() {
    let server = Server::start().await;
    let run = server.run("one").await;
    server.tell("registered-models/create", json!({"name": "net", "description": "words"})).await.expect(200);
    assert_eq!(
        server.tell("registered-models/create", json!({"name": "net"})).await.code(400),
        "RESOURCE_ALREADY_EXISTS"
    );
    let made = version(&server, "net", &run).await;
    assert_eq!(
        (&made["version"], &made["status"], &made["current_stage"]),
        (&json!("1"), &json!("READY"), &json!("None"))
    );
    let asset = server.get("models/net/versions/1").await.expect(200)["properties"].clone();
    assert_eq!(asset["modelType"], "mlflow_model");
    assert_eq!(asset["jobName"], json!(run));
    let uri = asset["modelUri"].as_str().unwrap();
    assert!(
        uri.ends_with(&format!("/datastores/workspaceartifactstore/paths/ExperimentRun/dcid.{run}/model")),
        "{uri}"
    );
    assert_eq!(server.get("models/net").await.expect(200)["properties"]["description"], "words");
}

#[tokio::test]
async fn an_asset_is_a_registered_model_whose_files_can_be_read() {
    let server = Server::start().await;
    let container =
        server.get("datastores/workspaceblobstore").await.expect(200)["properties"]["containerName"].clone();
    let path = format!("/blob/default.blob.peregrine.local/{}/m/weights.bin", container.as_str().unwrap());
    let put = server.user.request(Method::PUT, &path).header("x-ms-blob-type", "BlockBlob").body("data");
    crate::send(put).await.expect(201);
    let uri = "azureml://datastores/workspaceblobstore/paths/m";
    let body = json!({"properties": {"modelUri": uri, "modelType": "custom_model", "description": "made by hand"}});
    server.put("models/hand/versions/7", body).await.expect(201);
    let shown = server.question("model-versions/get", json!({"name": "hand", "version": "7"})).await.expect(200);
    assert_eq!(shown["model_version"]["description"], "made by hand");
    let uri =
        server.question("model-versions/get-download-uri", json!({"name": "hand", "version": "7"})).await.expect(200);
    let at = uri["artifact_uri"].as_str().unwrap().strip_prefix("mlflow-artifacts:/").unwrap().to_owned();
    let listed = server.get(&format!("/api/2.0/mlflow-artifacts/artifacts?path={at}")).await.expect(200);
    assert_eq!(listed["files"], json!([{"path": "weights.bin", "is_dir": false, "file_size": 4}]));
    assert_eq!(server.get(&format!("/api/2.0/mlflow-artifacts/artifacts/{at}/weights.bin")).await.text(), "data");
    let found = server.question("registered-models/search", json!({"filter": "name = 'hand'"})).await.expect(200);
    assert_eq!(found["registered_models"][0]["latest_versions"][0]["version"], "7");
}

#[tokio::test]
async fn aliases_stages_and_tags_move_as_they_are_told() {
    let server = Server::start().await;
    let run = server.run("one").await;
    server.tell("registered-models/create", json!({"name": "net"})).await.expect(200);
    for _ in 0..3 {
        version(&server, "net", &run).await;
    }
    let alias = |version: &str| json!({"name": "net", "alias": "champion", "version": version});
    server.tell("registered-models/alias", alias("1")).await.expect(200);
    server.tell("registered-models/alias", alias("2")).await.expect(200);
    let by_alias =
        server.question("registered-models/alias", json!({"name": "net", "alias": "champion"})).await.expect(200);
    assert_eq!(by_alias["model_version"]["version"], "2");
    assert_eq!(server.tell("registered-models/alias", alias("9")).await.code(404), "RESOURCE_DOES_NOT_EXIST");
    let stage = |version: &str, archive: bool| json!({"name": "net", "version": version, "stage": "production", "archive_existing_versions": archive});
    server.tell("model-versions/transition-stage", stage("1", false)).await.expect(200);
    server.tell("model-versions/transition-stage", stage("2", true)).await.expect(200);
    let latest = server.tell("registered-models/get-latest-versions", json!({"name": "net"})).await.expect(200);
    let shown: Vec<String> = latest["model_versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| format!("{} {}", v["current_stage"].as_str().unwrap(), v["version"].as_str().unwrap()))
        .collect();
    assert_eq!(shown, ["Archived 1", "None 3", "Production 2"]);
    // A number is not given out twice, and an alias goes with its version.
    for gone in ["2", "3"] {
        call(&server.user, Method::DELETE, "model-versions/delete", json!({"name": "net", "version": gone}))
            .await
            .expect(200);
    }
    assert_eq!(version(&server, "net", &run).await["version"], "4");
    assert_eq!(
        server.question("registered-models/alias", json!({"name": "net", "alias": "champion"})).await.code(400),
        "INVALID_PARAMETER_VALUE"
    );
    server.tell("registered-models/rename", json!({"name": "net", "new_name": "mesh"})).await.expect(200);
    let found =
        server.question("model-versions/search", json!({"filter": "name = 'mesh' and tags.t = '1'"})).await.expect(200);
    assert_eq!(found["model_versions"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("models/mesh/versions/4").await.expect(200)["name"], "4");
}

#[tokio::test]
async fn a_source_outside_of_what_is_named_is_refused() {
    let server = Server::start().await;
    let (mine, other) = (server.run("mine").await, server.run("other").await);
    server.tell("registered-models/create", json!({"name": "net"})).await.expect(200);
    for (source, run) in [
        (format!("mlflow-artifacts:/0/{other}/artifacts/m"), mine.as_str()),
        (format!("mlflow-artifacts:/0/{mine}/artifacts/../../{other}/artifacts"), mine.as_str()),
        (format!("mlflow-artifacts:/0/{mine}/artifacts/%2e%2e/x"), mine.as_str()),
        ("/etc".to_owned(), ""),
        ("file:///etc".to_owned(), mine.as_str()),
    ] {
        let args = json!({"name": "net", "source": source, "run_id": run});
        assert_eq!(server.tell("model-versions/create", args).await.code(400), "INVALID_PARAMETER_VALUE", "{source}");
    }
}

#[tokio::test]
async fn a_logged_model_is_made_finished_found_and_registered() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let args =
        json!({"experiment_id": "0", "name": "net", "source_run_id": run, "params": [{"key": "layers", "value": "2"}]});
    let made = server.tell("logged-models", args).await.expect(200)["model"].clone();
    let id = made["info"]["model_id"].as_str().unwrap().to_owned();
    assert_eq!(made["info"]["status"], "LOGGED_MODEL_PENDING");
    let file = format!("/api/2.0/mlflow-artifacts/artifacts/0/models/{id}/artifacts/MLmodel");
    crate::send(server.user.request(Method::PUT, &file).body("flavors: {}")).await.expect(200);
    let ready = json!({"model_id": id, "status": 2});
    let done = call(&server.user, Method::PATCH, &format!("logged-models/{id}"), ready).await.expect(200);
    assert_eq!(done["model"]["info"]["status"], "LOGGED_MODEL_READY");
    let point =
        json!({"run_id": run, "key": "acc", "value": 0.9, "timestamp": 1, "model_id": id, "dataset_name": "iris"});
    server.tell("runs/log-metric", point).await.expect(200);
    for (filter, found) in [("metrics.acc > 0.5 AND params.layers = '2'", 1), ("metrics.acc > 0.95", 0)] {
        let got =
            server.tell("logged-models/search", json!({"experiment_ids": ["0"], "filter": filter})).await.expect(200);
        assert_eq!(got["models"].as_array().map_or(0, Vec::len), found, "{filter}");
    }
    server.tell("registered-models/create", json!({"name": "net"})).await.expect(200);
    let args = json!({"name": "net", "source": format!("models:/{id}"), "model_id": id});
    let registered = server.tell("model-versions/create", args).await.expect(200)["model_version"].clone();
    assert_eq!(registered["run_id"], json!(run));
    let uri =
        server.question("model-versions/get-download-uri", json!({"name": "net", "version": "1"})).await.expect(200);
    assert_eq!(uri["artifact_uri"], format!("mlflow-artifacts:/0/models/{id}/artifacts"));
    let asset = server.get("models/net/versions/1").await.expect(200);
    assert!(asset["properties"]["modelUri"].as_str().unwrap().ends_with(&format!("/paths/LoggedModels/{id}")));
}
