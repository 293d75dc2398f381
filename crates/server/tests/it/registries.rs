//! `…/registries`: assets that workspaces share, with files of their own.

use crate::{Server, WS, send, without_token};
use reqwest::Method;
use serde_json::{Value, json};

const REGISTRY: &str =
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/registries/shared";

#[tokio::test]
async fn a_registry_is_made_found_by_name_and_removed_with_its_files() {
    let server = Server::start().await;
    let made = server.put(REGISTRY, json!({"location": "attic", "newField": 1, "properties": {"x": [1]}})).await;
    let view = made.expect(201);
    assert_eq!((&view["newField"], &view["properties"]["x"]), (&json!(1), &json!([1])));
    assert_eq!(server.get(made.header("azure-asyncoperation")).await.expect(200)["status"], "Succeeded");
    assert_eq!(server.get(REGISTRY).await.expect(200), view);
    assert_eq!(server.patch(REGISTRY, json!({"tags": {"a": "b"}})).await.expect(200)["tags"]["a"], "b");
    let found = server.get("/registrymanagement/v1.0/registries/shared/discovery").await.expect(200);
    assert_eq!((&found["subscriptionId"], &found["resourceGroup"]), (&json!("s"), &json!("g")));
    assert_eq!(found["primaryRegionResourceProviderUri"], json!(format!("{}/", server.user.url())));
    for list in [
        REGISTRY.trim_end_matches("/shared"),
        "/subscriptions/s/providers/Microsoft.MachineLearningServices/registries",
    ] {
        assert_eq!(server.get(list).await.expect(200)["value"].as_array().unwrap().len(), 1, "{list}");
    }
    let (_, message) = server.get(&REGISTRY.replace("shared", "other")).await.refused(404);
    assert!(message.contains("shared"), "{message}");
    server.put(&REGISTRY.replace("shared", "azureml"), json!({})).await.refused(409);
    server.put(&REGISTRY.replace("shared", "a%2Fb"), json!({})).await.refused(400);
    server.put(&format!("{REGISTRY}/data/iris/versions/1"), data("azureml://x")).await.expect(201);
    assert_eq!(server.delete(REGISTRY).await.status, 202);
    server.get(REGISTRY).await.refused(404);
    server.put(REGISTRY, json!({})).await.expect(201);
    assert_eq!(server.get(&format!("{REGISTRY}/data")).await.expect(200)["value"], json!([]));
}

#[tokio::test]
async fn assets_of_a_registry_have_versions_of_their_own() {
    let server = Server::start().await;
    server.put(REGISTRY, json!({})).await.expect(201);
    server.put("data/iris/versions/1", data("azureml://here")).await.expect(201);
    // The front of the management plane is the same tree.
    let at = format!("/mferp/managementfrontend{REGISTRY}/data/iris/versions/1");
    let view = server.put(&at, data("azureml://there")).await.expect(201);
    assert_eq!(view["id"], "azureml://registries/shared/data/iris/versions/1");
    assert_eq!(view["type"], "Microsoft.MachineLearningServices/registries/data/versions");
    assert_eq!(server.get("data/iris/versions/1").await.expect(200)["properties"]["dataUri"], "azureml://here");
    let name = server.get(&format!("{REGISTRY}/data/iris")).await.expect(200);
    assert_eq!(name["properties"]["nextVersion"], "2");
    // A registry is no workspace.
    server.get(&format!("{}/jobs", WS.replace("default", "@shared"))).await.refused(404);
    let shipped = REGISTRY.replace("shared", "azureml");
    let curated = server.get(&format!("{shipped}/environments")).await.expect(200);
    assert!(curated["value"].as_array().unwrap().len() > 5);
    server.get(&format!("{shipped}/environments/AzureML-sklearn-1.5/versions/1")).await.expect(200);
    server.put(&format!("{shipped}/data/iris/versions/1"), data("azureml://x")).await.refused(409);
}

#[tokio::test]
async fn files_are_uploaded_by_link_and_read_by_link() {
    let server = Server::start().await;
    server.put(REGISTRY, json!({})).await.expect(201);
    let asked = json!({"assetId": "azureml://registries/shared/models/net/versions/1"});
    let place = server.put(&format!("{REGISTRY}/tempdatarefs/net/versions/1"), asked.clone()).await.expect(200);
    let reference = &place["blobReferenceForConsumption"];
    let uri = reference["blobUri"].as_str().unwrap();
    let link = reference["credential"]["sasUri"].as_str().unwrap().split_once('?').unwrap().1.to_owned();
    // Clients take the first part of the path for the container.
    assert_eq!(uri.trim_start_matches(server.user.url()).matches('/').count(), 1, "{uri}");
    let upload = server.user.request(Method::PUT, &format!("{uri}/net/weights.bin?{link}"));
    assert_eq!(send(without_token(upload).header("x-ms-blob-type", "BlockBlob").body("w")).await.status, 201);
    let model = json!({"properties": {"modelUri": format!("{uri}/net"), "modelType": "custom_model"}});
    server.put(&format!("{REGISTRY}/models/net/versions/1"), model).await.expect(201);
    server.put(&format!("{REGISTRY}/tempdatarefs/net/versions/1"), asked).await.refused(409);
    let wanted = json!({"assetId": "x", "blobUri": format!("{uri}/net")});
    let opened = server.post(&format!("{REGISTRY}/datarefs/net/versions/1"), wanted).await.expect(200);
    let read = opened["blobReferenceForConsumption"]["credential"]["sasUri"].as_str().unwrap();
    let (base, link) = read.split_once('?').unwrap();
    let got = send(without_token(server.user.request(Method::GET, &format!("{base}/net/weights.bin?{link}")))).await;
    assert_eq!((got.status, got.text().as_str()), (200, "w"));
    let write = server.user.request(Method::PUT, &format!("{base}/net/other.bin?{link}"));
    assert_eq!(send(without_token(write).header("x-ms-blob-type", "BlockBlob").body("w")).await.status, 403);
    let elsewhere = json!({"blobUri": "https://elsewhere/x"});
    server.post(&format!("{REGISTRY}/datarefs/net/versions/1"), elsewhere).await.refused(400);
}

#[tokio::test]
async fn a_shared_model_is_a_copy_that_outlives_its_source() {
    let server = Server::start().await;
    server.put(REGISTRY, json!({})).await.expect(201);
    let id = server.get(WS).await.expect(200)["properties"]["workspaceId"].as_str().unwrap().to_owned();
    let source = server.home.path().join(format!("blobs/default/azureml-blobstore-{id}/LocalUpload/abc/net"));
    std::fs::create_dir_all(&source).unwrap();
    std::fs::write(source.join("weights.bin"), "w").unwrap();
    let body = json!({"properties": {
        "modelUri": "azureml://datastores/workspaceblobstore/paths/LocalUpload/abc/net", "modelType": "custom_model",
        "tags": {"a": "b"},
    }});
    server.put("models/net/versions/1", body).await.expect(201);
    let share = |name: &str, version: &str, id: String| {
        json!({"properties": {
            "referenceType": "Id", "destinationName": name, "destinationVersion": version,
            "sourceAssetId": format!("azureml://locations/local/workspaces/{id}/models/net/versions/1"),
        }})
    };
    let shared = server.post(&format!("{REGISTRY}/import"), share("net", "7", id.clone())).await;
    assert_eq!((shared.status, shared.text().as_str()), (202, ""));
    assert_eq!(server.get(shared.header("location")).await.status, 204);
    server.post(&format!("{REGISTRY}/import"), share("net", "7", id)).await.refused(409);
    let by_name = server.post(&format!("{REGISTRY}/import"), share("again", "1", "default".into())).await;
    assert_eq!(by_name.status, 202);
    server.post(&format!("{REGISTRY}/import"), share("none", "1", "nowhere".into())).await.refused(404);
    server.post(&format!("{REGISTRY}/import"), json!({"properties": {"sourceAssetId": "x"}})).await.refused(400);
    std::fs::remove_dir_all(&source).unwrap();
    server.delete("models/net/versions/1").await.expect(200);
    let copy = server.get(&format!("{REGISTRY}/models/net/versions/7")).await.expect(200);
    assert_eq!(copy["properties"]["tags"]["a"], "b");
    let uri = copy["properties"]["modelUri"].as_str().unwrap();
    let got = server.get(&format!("{uri}/weights.bin")).await;
    assert_eq!((got.status, got.text().as_str()), (200, "w"), "{uri}");
    // And a job can read it.
    let mut job = crate::job_body();
    job["properties"]["inputs"] = json!({"m": {
        "jobInputType": "custom_model", "uri": "azureml://registries/shared/models/net/versions/7",
    }});
    server.put("jobs/reads", job.clone()).await.expect(201);
    job["properties"]["inputs"]["m"]["uri"] = json!("azureml://registries/shared/models/net/labels/latest");
    server.put("jobs/reads2", job.clone()).await.expect(201);
    job["properties"]["inputs"]["m"]["uri"] = json!("azureml://registries/shared/models/net/versions/8");
    server.put("jobs/reads3", job).await.refused(400);
    let (_, message) = server.delete(REGISTRY).await.refused(409);
    assert!(message.contains("job `reads`"), "{message}");
    for name in ["reads", "reads2"] {
        server.post(&format!("jobs/{name}/cancel"), json!({})).await;
    }
    assert_eq!(server.delete(REGISTRY).await.status, 202);
}

#[tokio::test]
async fn a_shared_component_brings_its_code_and_environment_along() {
    let server = Server::start().await;
    server.put(REGISTRY, json!({})).await.expect(201);
    let started = server.post("codes/c1/versions/1/startPendingUpload", json!({})).await.expect(200);
    let reference = &started["blobReferenceForConsumption"];
    let (uri, sas) = (reference["blobUri"].as_str().unwrap(), reference["credential"]["sasUri"].as_str().unwrap());
    let link = sas.split_once('?').unwrap().1;
    let upload = server.user.request(Method::PUT, &format!("{uri}/src/train.py?{link}"));
    assert_eq!(send(without_token(upload).header("x-ms-blob-type", "BlockBlob").body("print()")).await.status, 201);
    server.put("codes/c1/versions/1", json!({"properties": {"codeUri": format!("{uri}/src")}})).await.expect(201);
    let environment = json!({"properties": {"condaFile": "dependencies: [python=3.10]"}});
    server.put("environments/train/versions/1", environment).await.expect(201);
    let spec = json!({
        "name": "step", "version": "1", "type": "command", "command": "python train.py",
        "code": format!("azureml:{WS}/codes/c1/versions/1"), "environment": format!("azureml:{WS}/environments/train/versions/1"),
    });
    server.put("components/step/versions/1", json!({"properties": {"componentSpec": spec}})).await.expect(201);
    let id = format!("{WS}/components/step/versions/1");
    let body = json!({"properties": {"destinationName": "step", "destinationVersion": "1", "sourceAssetId": id}});
    assert_eq!(server.post(&format!("{REGISTRY}/import"), body).await.status, 202);
    let copy = server.get(&format!("{REGISTRY}/components/step/versions/1")).await.expect(200);
    let spec = &copy["properties"]["componentSpec"];
    assert_eq!(spec["code"], "azureml://registries/shared/codes/c1/versions/1");
    assert_eq!(spec["environment"], "azureml://registries/shared/environments/train/versions/1");
    let code = server.get(&format!("{REGISTRY}/codes/c1/versions/1")).await.expect(200);
    let file = format!("{}/train.py", code["properties"]["codeUri"].as_str().unwrap());
    assert_eq!(server.get(&file).await.text(), "print()");
    // A job of the workspace runs with what the registry holds.
    let mut job = crate::job_body();
    job["properties"]["environmentId"] = spec["environment"].clone();
    job["properties"]["codeId"] = spec["code"].clone();
    server.put("jobs/runs", job).await.expect(201);
    let plan = server.store.read(|tx| {
        let seq = tx.job("default", "runs")?.unwrap().job.seq;
        tx.plan(seq)
    });
    let plan = plan.await.unwrap().unwrap();
    assert!(plan.environment.conda.unwrap().contains("python=3.10"));
    assert!(format!("{:?}", plan.code).contains("@shared"), "{:?}", plan.code);
}

fn data(uri: &str) -> Value {
    json!({"properties": {"dataType": "uri_folder", "dataUri": uri}})
}
