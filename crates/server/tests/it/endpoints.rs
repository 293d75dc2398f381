//! `…/onlineEndpoints`, `…/batchEndpoints` and their deployments: keys, traffic, addresses, and what routers are told.

mod routers;

use crate::{Server, WS};
use domain::{
    AttemptId, JobName, Plan, Timestamp,
    report::{Report, ReportBatch, What},
    serving::{Provisioning, RouterAnswer, RouterNews},
    spec::routes::Routes,
};
use serde_json::{Value, json};
use store::{HERE, NewJob, REPLICA, ServingKey};

#[tokio::test]
async fn an_endpoint_is_an_address_with_keys() {
    let server = Server::start().await;
    let made = server.put("onlineEndpoints/ep1", endpoint("Key")).await;
    let view = made.expect(201);
    assert_eq!(server.get(made.header("azure-asyncoperation")).await.expect(200)["status"], "Succeeded");
    let properties = &view["properties"];
    assert_eq!(properties["provisioningState"], "Succeeded");
    assert_eq!(properties["scoringUri"], json!(format!("{}/api/v1/endpoint/ep1/score", server.user.url())));
    assert_eq!((&properties["traffic"], &properties["mirrorTraffic"]), (&json!({}), &json!({})));
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
async fn keys_are_given_on_request_and_changed_one_at_a_time() {
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
    let renewed = server.post("onlineEndpoints/ep1/regenerateKeys", json!({"keyType": "Primary"})).await;
    assert_eq!(renewed.status, 202);
    assert_eq!(server.get(renewed.header("location")).await.status, 204);
    let keys = server.post("onlineEndpoints/ep1/listKeys", json!({})).await.expect(200);
    assert!(text(&keys, "primaryKey") != first && text(&keys, "secondaryKey") == second);
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(200);
    assert_eq!(
        server.post("onlineEndpoints/ep1/listKeys", json!({})).await.expect(200),
        keys,
        "an update keeps the keys"
    );
    server.post("onlineEndpoints/ep1/regenerateKeys", json!({"keyType": "Third"})).await.refused(400);
    server.post("onlineEndpoints/ep1/token", json!({})).await.refused(400);
    let audit = server.get("audit").await;
    assert_eq!(audit.text().matches("\"online_endpoint_keys\"").count(), 3, "whoever was told keys is on record");
    assert!(!audit.text().contains(&second) && !audit.text().contains("online_endpoint_token"), "{}", audit.text());
}

#[tokio::test]
async fn browsers_and_the_length_of_bodies_are_properties_of_an_endpoint() {
    let server = Server::start().await;
    let with = |key: &str, value: &str| {
        let mut body = endpoint("Key");
        body["properties"]["properties"] = json!({key: value});
        body
    };
    for (key, value, expect) in [
        ("peregrine.cors_origins", "https://app.example, app.example", "`app.example` is not an origin"),
        ("peregrine.max_body_bytes", "much", "not an amount of bytes"),
        ("peregrine.max_body_bytes", "0", "not an amount of bytes"),
    ] {
        let (_, message) = server.put("onlineEndpoints/ep1", with(key, value)).await.refused(400);
        assert!(message.contains(expect), "{message}");
    }
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    let usual = routes(&server).await.endpoints["ep1"].clone();
    assert_eq!((usual.max_body_bytes, usual.cors), (100 << 20, None));
    server.put("onlineEndpoints/ep1", with("peregrine.max_body_bytes", "2Mi")).await.expect(200);
    assert_eq!(routes(&server).await.endpoints["ep1"].max_body_bytes, 2 << 20);
    server.put("onlineEndpoints/ep1", with("peregrine.cors_origins", "https://a.example,*")).await.expect(200);
    assert_eq!(routes(&server).await.endpoints["ep1"].cors.clone().unwrap().origins, ["https://a.example", "*"]);
}

#[tokio::test]
async fn an_endpoint_says_whether_it_answers_and_why_not() {
    let server = Server::start().await;
    let made = server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    assert_eq!(health(&made), ("Empty".into(), "no deployment is behind it".into()));
    deploy(&server, "blue").await;
    let (word, why) = health(&server.get("onlineEndpoints/ep1").await.expect(200));
    assert_eq!(word, "Starting", "{why}");
    fail(&server, "blue").await;
    let failing = server.get("onlineEndpoints/ep1").await.expect(200);
    let (word, why) = health(&failing);
    assert_eq!((word.as_str(), &failing["properties"]["provisioningState"]), ("Failing", &json!("Succeeded")));
    assert!(why.contains("no deployment gets traffic") && why.contains("`blue`: 0 of 0 replicas"), "{why}");
    assert!(why.contains("the model is not there"), "{why}");
    deploy(&server, "green").await;
    succeed(&server, "green").await;
    assert_eq!(health(&server.get("onlineEndpoints/ep1").await.expect(200)).0, "Failing", "a replica is missing");
    let attempt = replica(&server, "green").await;
    answers(&server, &attempt).await;
    let listed = server.get("onlineEndpoints").await.expect(200);
    assert_eq!(health(&listed["value"][0]).0, "Degraded", "one of two answers");
    // What a client got goes back as it came and is not kept.
    let mut shared = server.get("onlineEndpoints/ep1").await.expect(200);
    shared["properties"]["traffic"] = json!({"green": 100});
    let shared = server.put("onlineEndpoints/ep1", shared).await.expect(200);
    assert_eq!(health(&shared), ("Healthy".into(), "`green`: 1 of 1 replicas are ready".into()));
}

#[tokio::test]
async fn a_token_names_the_endpoint_it_opens_and_when_it_ends() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("AMLToken")).await.expect(201);
    let given = server.post("onlineEndpoints/ep1/token", json!({})).await.expect(200);
    let token = text(&given, "accessToken");
    assert!(given["expiryTimeUtc"].as_i64() > given["refreshAfterTimeUtc"].as_i64());
    assert!(token.starts_with(&format!("ep1.{}.", given["expiryTimeUtc"])), "{token}");
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
    let mut body = served(&server);
    body["properties"]["endpointComputeType"] = json!("Kubernetes");
    body["properties"]["unheardOf"] = json!(true);
    let made = server.put("onlineEndpoints/ep1/deployments/blue", body.clone()).await;
    let view = made.expect(201);
    let properties = &view["properties"];
    assert_eq!(properties["scaleSettings"]["scaleType"], "Default");
    assert!(properties["containerResourceRequirements"].is_object() && view["sku"].is_object());
    assert_eq!((&properties["provisioningState"], &properties["unheardOf"]), (&json!("Creating"), &json!(true)));
    assert_eq!(server.get(made.header("azure-asyncoperation")).await.expect(200)["status"], "InProgress");
    assert!(text(&view, "id").ends_with("/onlineEndpoints/ep1/deployments/blue"));
    let log = server.post("onlineEndpoints/ep1/deployments/blue/getLogs", json!({"tail": 50})).await.expect(200);
    assert_eq!(log["content"], "", "nothing runs yet");
    let scaled = json!({"sku": {"capacity": 3}});
    let (_, message) = server.patch("onlineEndpoints/ep1/deployments/blue", scaled.clone()).await.refused(409);
    assert!(message.contains("being changed"), "{message}");
    succeed(&server, "blue").await;
    let again = server.put("onlineEndpoints/ep1/deployments/blue", body).await;
    assert_eq!(again.expect(200)["properties"]["provisioningState"], "Succeeded", "nothing is to change");
    assert_eq!(server.get(again.header("azure-asyncoperation")).await.expect(200)["status"], "Succeeded");
    let scaled = server.patch("onlineEndpoints/ep1/deployments/blue", scaled).await.expect(200);
    assert_eq!(
        (&scaled["sku"]["capacity"], &scaled["properties"]["provisioningState"]),
        (&json!(3), &json!("Updating"))
    );
    let row = serving(&server, "blue").await.unwrap();
    assert_eq!((row.generation, row.settings.scale.least), (1, 3), "more of the same is no new version");
    let (_, message) = server.get("onlineEndpoints/ep1/deployments/red").await.refused(404);
    assert!(message.contains("blue"), "{message}");
    let (_, message) = server.put("onlineEndpoints/none/deployments/blue", json!({})).await.refused(404);
    assert!(message.contains("ep1"), "{message}");
}

#[tokio::test]
async fn what_is_deleted_stays_until_its_replicas_are_gone() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    deploy(&server, "blue").await;
    let deleted = server.delete("onlineEndpoints/ep1/deployments/blue").await;
    assert_eq!(deleted.status, 202);
    assert_eq!(server.get(deleted.header("location")).await.status, 202, "it is under way");
    assert_eq!(serving(&server, "blue").await.unwrap().state, Provisioning::Deleting);
    server.get("onlineEndpoints/ep1/deployments/blue").await.refused(404);
    assert!(routes(&server).await.endpoints["ep1"].deployments.is_empty());
    deploy(&server, "blue").await;
    assert_eq!(serving(&server, "blue").await.unwrap().generation, 2);
    assert_eq!(server.get(deleted.header("location")).await.status, 204, "who wanted it gone waits no more");
}

#[tokio::test]
async fn a_replica_is_no_job_to_anyone() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    deploy(&server, "blue").await;
    let attempt = replica(&server, "blue").await;
    report(&server, &attempt, vec![What::Started { pid: 1 }]).await;
    let all = server.get("jobs").await.expect(200);
    assert!(all["value"].as_array().unwrap().is_empty(), "{all}");
    for path in ["jobs/ep1_blue_1", "jobs/ep1_blue_1/why", "jobs/ep1_blue_1/artifacts"] {
        server.get(path).await.refused(404);
    }
    server.post("jobs/ep1_blue_1/cancel", json!({})).await.refused(404);
    let found =
        server.post(&format!("/mlflow/v1.0{WS}/api/2.0/mlflow/runs/search"), json!({"experiment_ids": ["0"]})).await;
    assert!(!found.text().contains("ep1_blue_1"), "{}", found.text());
    let folder = server.store.files().artifacts("default", "ep1_blue_1").join("user_logs");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("std_log.txt"), "one\ntwo\n").unwrap();
    let at = "onlineEndpoints/ep1/deployments/blue/getLogs";
    let log = server.post(at, json!({"tail": 1})).await.expect(200);
    assert_eq!(log, json!({"content": "two\n", "replica": "ep1_blue_1", "next": 8}));
    server.post(at, json!({"replica": "other"})).await.refused(404);
}

#[tokio::test]
async fn a_deployment_of_what_is_not_there_is_refused_with_what_is() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    let folder = tempfile::tempdir().unwrap();
    let model = json!({"properties": {"modelUri": format!("file://{}", folder.path().display())}});
    server.put("models/net/versions/1", model).await.expect(201);
    let at = "onlineEndpoints/ep1/deployments/blue";
    for (properties, expect) in [
        (json!({"model": "azureml:net:2"}), "`net` has versions 1"),
        (json!({"model": format!("{WS}/models/nets/versions/1")}), "there are: net"),
        (json!({"environmentId": "azureml:none:1"}), "no environment `none:1`"),
        (json!({"codeConfiguration": {"codeId": "azureml:x:1"}}), "no code `x:1`"),
        (json!({"endpointComputeType": "Cloud"}), "`Managed`"),
        (json!({"instanceType": "Standard_Enormous"}), "`Standard_Enormous` (there are: "),
        (json!({"instanceType": "Standard_Enormous"}), "Standard_DS2_v2"),
        (
            json!({"scaleSettings": {"scaleType": "TargetUtilization", "minInstances": 3, "maxInstances": 1}}),
            "at most 1",
        ),
        (json!({"requestSettings": {"requestTimeout": "3s"}}), "not a duration"),
        (json!({"livenessProbe": {"failureThreshold": 0}}), "failureThreshold"),
        (json!({"model": "azureml:net:1"}), "nothing says what answers requests"),
        (json!({"codeConfiguration": {"scoringScript": "score.py"}}), "without the folder"),
    ] {
        let (_, message) = server.put(at, json!({"properties": properties})).await.refused(400);
        assert!(message.contains(expect), "{expect}: {message}");
    }
    let mut good = served(&server);
    good["properties"]["model"] = json!("azureml:net:1");
    let mut late = good.clone();
    late["properties"]["properties"] = json!({"peregrine.deploy_timeout_seconds": "soon"});
    let (_, message) = server.put(at, late).await.refused(400);
    assert!(message.contains("86400"), "{message}");
    for (key, text) in [("peregrine.drain_seconds", "0"), ("peregrine.idle_seconds", "soon")] {
        let mut bad = good.clone();
        bad["properties"]["properties"] = json!({key: text});
        let (_, message) = server.put(at, bad).await.refused(400);
        assert!(message.contains(key), "{message}");
    }
    server.put(at, good).await.expect(201);
    let plan = plan(&server, "blue").await;
    let serve = plan.serve.unwrap();
    assert_eq!((serve.scoring_path.as_str(), serve.readiness.initial_delay_ms), ("/score", 0));
    assert_eq!(serve.model_mount.as_deref(), Some("/var/azureml-app/azureml-models/net/1"));
    assert!(plan.inputs.contains_key("model") && plan.code.is_some());
    std::fs::write(folder.path().join("MLmodel"), "flavors: {}").unwrap();
    let without_code = json!({"properties": {"model": "azureml:net:1"}});
    server.put("onlineEndpoints/ep1/deployments/green", without_code).await.expect(201);
    assert_eq!(self::plan(&server, "green").await.serve.unwrap().kind, domain::ServingKind::MlflowModel);
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
    let folder = tempfile::tempdir().unwrap();
    let model =
        json!({"properties": {"modelUri": format!("file://{}", folder.path().display()), "modelType": "custom_model"}});
    server.put("models/net/versions/1", model).await.expect(201);
    let deployment = |size: i64| {
        let mut made = served(&server);
        made["properties"]["model"] = json!({"referenceType": "Id", "assetId": "azureml:net:1"});
        made["properties"]["compute"] = json!("azureml:local");
        made["properties"]["miniBatchSize"] = json!(size);
        made
    };
    server.put(at, deployment(0)).await.refused(400);
    let mut bare = deployment(10);
    bare["properties"]["codeConfiguration"] = Value::Null;
    let (_, message) = server.put(at, bare).await.refused(400);
    assert!(message.contains("nothing says how the model is asked"), "{message}");
    let (_, message) = server.put(at, json!({"properties": {"compute": "azureml:local"}})).await.refused(400);
    assert!(message.contains("there is no model"), "{message}");
    let address = text(&view["properties"], "scoringUri");
    let data = json!({"properties": {"inputData": {"d": {"jobInputType": "UriFolder", "uri": "azureml:net:1"}}}});
    let (_, message) = server.post(&address, data.clone()).await.refused(400);
    assert!(message.contains("no default deployment"), "{message}");
    let made = server.put(at, deployment(10)).await.expect(201);
    assert_eq!(made["properties"]["provisioningState"], "Succeeded");
    server.put("batchEndpoints/be1", batch(json!({"deploymentName": "bd1"}))).await.expect(200);
    let (_, message) = server.post(&address, json!({})).await.refused(400);
    assert!(message.contains("there is no data to score"), "{message}");
    let mut named = json!({"properties": {"name": "b1", "inputData": {"d": {"uri": format!("file://{}", folder.path().display())}}}});
    let job = server.post(&address, named.clone()).await.expect(201);
    assert_eq!((&job["name"], &job["properties"]["status"]), (&json!("b1"), &json!("Queued")));
    server.post(&address, named.clone()).await.refused(409);
    named["properties"]["name"] = json!("b2");
    server.post(&address, named).await.expect(201);
    let graph = server.store.read(|tx| {
        let seq = tx.job("default", "b1")?.unwrap().job.seq;
        tx.conductor::<domain::pipeline::Graph>(seq)
    });
    let step = graph.await.unwrap().unwrap().steps.remove(0);
    let parallel = step.job.plan.parallel.unwrap();
    assert_eq!((step.name.as_str(), parallel.mini_batch_size, parallel.max_retries), ("batchscoring", 10, 3));
    assert_eq!((parallel.inputs, parallel.model.as_deref()), (vec!["d".to_owned()], Some("azureml_model")));
    assert!(!step.job.reuse, "every call does its own work");
    let front = format!("/mferp/managementfrontend{WS}/batchEndpoints/be1");
    for at in [format!("{front}/jobs"), format!("{front}/deployments/bd1/jobs")] {
        let jobs = server.get(&at).await.expect(200);
        let names: Vec<&Value> = jobs["value"].as_array().unwrap().iter().map(|job| &job["name"]).collect();
        assert_eq!(names, ["b2", "b1"]);
        assert_eq!(jobs["value"][0]["properties"]["tags"]["azureml.batchrun"], "true");
    }
    server.get(&format!("/mferp/managementfrontend{WS}/batchEndpoints/none/jobs")).await.refused(404);
    assert_eq!(server.delete(at).await.status, 202);
    assert_eq!(server.get("batchEndpoints/be1").await.expect(200)["properties"]["defaults"], json!({}));
}

/// A deployment of a script.
fn served(server: &Server) -> Value {
    let code = format!("{}/blob/default.blob.peregrine.local/c", server.user.url());
    json!({"properties": {
        "endpointComputeType": "Managed", "environmentId": "azureml:AzureML-Minimal@latest",
        "codeConfiguration": {"codeId": code, "scoringScript": "score.py"},
    }})
}

async fn deploy(server: &Server, name: &str) {
    server.put(&format!("onlineEndpoints/ep1/deployments/{name}"), served(server)).await.expect(201);
}

fn key(name: &str) -> ServingKey {
    ServingKey { workspace: "default".into(), endpoint: "ep1".into(), deployment: name.into() }
}

async fn serving(server: &Server, name: &'static str) -> Option<store::ServingRow> {
    server.store.read(move |tx| tx.serving(&key(name))).await.unwrap()
}

async fn plan(server: &Server, name: &'static str) -> Plan {
    server.store.read(move |tx| tx.serving_plan(&key(name), 1)).await.unwrap().unwrap()
}

/// What the serving loop does once it has seen a deployment answer.
async fn succeed(server: &Server, name: &'static str) {
    let done = server.store.write(move |tx| {
        let mut row = tx.serving(&key(name))?.unwrap();
        tx.end_operation(&row.operation, None, row.begun_at)?;
        row.state = Provisioning::Succeeded;
        tx.serving_is_good(&row.key)?;
        tx.put_serving(&row, None)
    });
    done.await.unwrap();
}

/// A replica, handed to the node.
async fn replica(server: &Server, name: &'static str) -> AttemptId {
    let now = server::clock::now();
    let placed = server.store.write(move |tx| {
        let plan = tx.serving_plan(&key(name), 1)?.unwrap();
        let seq = tx.insert_job(&NewJob {
            workspace: "default".into(),
            name: JobName::parse(&format!("ep1_{name}_1")).unwrap(),
            body: "{}".into(),
            plan,
            kind: REPLICA,
            experiment: String::new(),
            target: "local".into(),
            cluster: HERE.into(),
            priority: 4,
            max_retries: 0,
            registers: false,
            created_by: "me".into(),
            at: now,
            parent: None,
            reused: None,
        })?;
        tx.insert_replica(seq, &key(name), 1)?;
        let mut job = tx.job_by_seq(seq)?.unwrap();
        let attempt = job.next_attempt();
        job.apply(domain::JobEvent::Placed(attempt.clone()), now).unwrap();
        tx.put_job(&job, None, now)?;
        Ok(attempt)
    });
    placed.await.unwrap()
}

async fn report(server: &Server, attempt: &AttemptId, what: Vec<What>) {
    let at = server::clock::now();
    let reports = what.into_iter().map(|what| Report { attempt: attempt.clone(), at, what }).collect();
    let batch =
        ReportBatch { facts: crate::agents::facts("boot"), reports, samples: Vec::new(), part: None, sent_at: None };
    let _: Value = server.agent.post("/agent/v1/report", &batch).await.unwrap();
}

/// What the serving loop does once it has given a deployment up.
async fn fail(server: &Server, name: &'static str) {
    let done = server.store.write(move |tx| {
        let mut row = tx.serving(&key(name))?.unwrap();
        row.state = Provisioning::Failed(domain::job::Failure::new("NoModel", "the model is not there"));
        tx.put_serving(&row, None)
    });
    done.await.unwrap();
}

/// What its agent says of a replica that takes requests.
async fn answers(server: &Server, attempt: &AttemptId) {
    let address = Some("127.0.0.1:5001".parse().unwrap());
    let serving = What::Serving { address, ready: true, text: "it answers".into() };
    report(server, attempt, vec![What::Started { pid: 1 }, serving]).await;
}

/// An endpoint's health and the reason for it.
fn health(view: &Value) -> (String, String) {
    let inner = &view["properties"]["properties"];
    (text(inner, "peregrine.health"), text(inner, "peregrine.state"))
}

async fn routes(server: &Server) -> Routes {
    let hello = RouterNews { router: "looker".into(), ..RouterNews::default() };
    let answer: RouterAnswer = server.user.post("/router/v1/exchange", &hello).await.unwrap();
    answer.routes.unwrap()
}

fn endpoint(mode: &str) -> Value {
    json!({"location": "local", "unheardOf": 1, "properties": {"authMode": mode, "properties": {}}})
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {value}")).to_owned()
}
