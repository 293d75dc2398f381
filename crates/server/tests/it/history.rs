//! Run history: jobs in other words, changed in one place, their logs open to whoever holds the link.

use crate::{Answer, Server, WS, ask, job_body, send, without_token};
use domain::{JobEvent, Outcome, job::Failure};
use reqwest::Method;
use serde_json::{Value, json};

fn run(path: &str) -> String {
    format!("/history/v1.0{WS}/{path}")
}

async fn patch(server: &Server, experiment: &str, name: &str, body: Value) -> Answer {
    ask(&server.user, Method::PATCH, &run(&format!("experiments/{experiment}/runs/{name}")), Some(body)).await
}

impl Server {
    /// Gives a job a log and lets it end.
    async fn end(&self, name: &str, log: &str, outcome: Outcome) {
        self.place(name).await;
        let folder = self.home.path().join(format!("blobs/default/azureml/ExperimentRun/dcid.{name}/user_logs"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("std_log.txt"), log).unwrap();
        let (name, now) = (name.to_owned(), server::clock::now());
        let ended = self.store.write(move |tx| {
            let mut job = tx.job("default", &name)?.unwrap().job;
            for event in [JobEvent::Started, JobEvent::Exited, JobEvent::Over(outcome)] {
                job.apply(event, now).unwrap();
            }
            tx.put_job(&job, None, now)
        });
        ended.await.unwrap();
    }

    async fn with_outputs(&self, name: &str) {
        let mut body = job_body();
        body["properties"]["outputs"] = json!({
            "model": {"jobOutputType": "uri_folder"}, "file": {"jobOutputType": "uri_file"},
            "best": {"jobOutputType": "mlflow_model"},
        });
        self.put(&format!("jobs/{name}"), body).await.expect(201);
    }
}

#[tokio::test]
async fn details_link_to_logs_that_open_without_a_token_and_open_nothing_else() {
    let server = Server::start().await;
    server.submit("loud").await;
    server.submit("other").await;
    let before = server.get(&run("runs/loud/details")).await.expect(200);
    assert_eq!((&before["status"], &before["logFiles"]), (&json!("Queued"), &json!({})));
    server.end("loud", "line 1\nline 2\n", Outcome::Completed).await;
    server.end("other", "not yours\n", Outcome::Completed).await;
    let details = server.get(&run("runs/loud/details")).await.expect(200);
    assert_eq!(details["status"], "Completed");
    let link = details["logFiles"]["user_logs/std_log.txt"].as_str().unwrap();
    let open = async |link: &str| send(without_token(server.user.request(Method::GET, link))).await;
    let log = open(link).await;
    assert_eq!((log.status, log.text().as_str()), (200, "line 1\nline 2\n"));
    let (bare, query) = link.split_once('?').unwrap();
    for (wrong, status) in [
        (bare.to_owned(), 401),
        (link.replace("dcid%2Eloud", "dcid%2Eother"), 403),
        (link.replace("sig=", "sig=0"), 403),
        (link.replace("se=", "se=9"), 403),
        (format!("{}/nothing.txt?{query}", bare.rsplit_once('/').unwrap().0), 404),
        (format!("{}?{query}", bare.replace("user%5Flogs", "outputs")), 403),
    ] {
        assert_ne!(wrong, link);
        assert_eq!(open(&wrong).await.status, status, "{wrong}");
    }
}

#[tokio::test]
async fn a_failed_run_tells_its_error_and_the_end_of_its_log() {
    let server = Server::start().await;
    server.submit("broken").await;
    let failure = Failure {
        code: "UserError.ExitCode".into(),
        message: "the command ended with exit code 3".into(),
        exit_code: Some(3),
        signal: None,
        last_lines: "Traceback".into(),
        retryable: false,
    };
    server.end("broken", "Traceback\n", Outcome::Failed(failure)).await;
    let details = server.get(&run("runs/broken/details")).await.expect(200);
    assert_eq!(details["status"], "Failed");
    assert_eq!(details["error"]["error"]["code"], "UserError.ExitCode");
    assert_eq!(details["error"]["error"]["details"][0]["message"], "Traceback");
    assert!(details["endTimeUtc"].is_string() && details["startTimeUtc"].is_string(), "{details}");
}

#[tokio::test]
async fn a_patched_run_is_a_changed_job() {
    let server = Server::start().await;
    let mut body = job_body();
    body["properties"]["tags"] = json!({"old": "tag"});
    server.put("jobs/labelled", body).await.expect(201);
    let wanted = json!({"displayName": "shown", "description": null, "tags": {"new": "tag"}, "hidden": true});
    let changed = patch(&server, "tests", "labelled", wanted).await.expect(200);
    assert_eq!((&changed["runId"], &changed["hidden"]), (&json!("labelled"), &json!(true)));
    let job = server.get("jobs/labelled").await.expect(200)["properties"].clone();
    assert_eq!(job["tags"], json!({"old": "tag", "new": "tag"}));
    assert_eq!((&job["displayName"], &job["isArchived"]), (&json!("shown"), &json!(true)));
    assert_eq!(server.get("jobs").await.expect(200)["value"], json!([]));
    patch(&server, "tests", "labelled", json!({"hidden": false})).await.expect(200);
    assert_eq!(server.get("jobs").await.expect(200)["value"][0]["name"], "labelled");
    for (body, status) in [(json!({"hidden": "yes"}), 400), (json!({"tags": [1]}), 400), (json!([]), 400)] {
        patch(&server, "tests", "labelled", body).await.refused(status);
    }
    let (_, message) = patch(&server, "elsewhere", "labelled", json!({"hidden": true})).await.refused(404);
    assert!(message.contains("`tests`"), "{message}");
}

#[tokio::test]
async fn output_ids_that_a_run_hands_out_lead_to_its_outputs() {
    let server = Server::start().await;
    server.with_outputs("maker_output_data_1").await;
    let data = async |query: &str| {
        let path = run(&format!("rundata{query}"));
        server.post(&path, json!({"runId": "maker_output_data_1"})).await.expect(200)["runMetadata"]["outputs"].clone()
    };
    let (new, old) = (data("?api-version=v1.0").await, data("").await);
    for (name, new_word, old_word) in
        [("model", "uri_folder", "UriFolder"), ("file", "uri_file", "UriFile"), ("best", "MLFlowModel", "MLFlowModel")]
    {
        assert_eq!((&new[name]["type"], &old[name]["type"]), (&json!(new_word), &json!(old_word)), "{name}");
    }
    let id = new["model"]["assetId"].as_str().unwrap();
    let path = format!("/data/v1.0{WS}/dataversion/batchGetResolvedUris");
    let led = server.post(&path, json!({"values": [id]})).await.expect(200);
    assert_eq!(
        led["values"][id]["uri"],
        "azureml://subscriptions/s/resourcegroups/g/workspaces/default/datastores/workspaceblobstore/paths/azureml/maker_output_data_1/model/"
    );
    let id = new["best"]["assetId"].as_str().unwrap();
    let models = format!("/modelregistry/v1.0{WS}/models/batchGetResolvedUris");
    let led = server.post(&models, json!({"values": [id]})).await.expect(200);
    assert!(led["values"][id]["path"].as_str().unwrap().ends_with("/maker_output_data_1/best/"), "{led}");
    let unknown = "azureml://locations/local/workspaces/x/data/azureml_nobody_output_data_model/versions/1";
    let (_, message) = server.post(&path, json!({"values": [unknown]})).await.refused(404);
    assert!(message.contains(unknown), "{message}");
    server.post(&path, json!({"values": "all"})).await.refused(400);
}

#[tokio::test]
async fn runs_that_are_not_there_are_not_found() {
    let server = Server::start().await;
    server.submit("alone").await;
    let children = server.get(&run("runs/alone/children?$top=5")).await.expect(200);
    assert_eq!(children, json!({"value": [], "continuationToken": null, "nextLink": null}));
    assert_eq!(server.get(&run("runs/alone/serviceinstances/0")).await.expect(200), json!({"instances": {}}));
    server.get(&run("runs/alone/serviceinstances/7")).await.refused(404);
    assert_eq!(server.get(&run("runs/alone")).await.expect(200)["experimentId"], "tests");
    assert_eq!(server.get(&run("experiments/tests/runs/alone/details")).await.expect(200)["runId"], "alone");
    for path in ["runs/nobody", "runs/nobody/details", "runs/nobody/children", "runs/nobody/serviceinstances/0"] {
        server.get(&run(path)).await.refused(404);
    }
    server.post(&run("rundata"), json!({"runId": "nobody"})).await.refused(404);
    server.post(&run("rundata"), json!({})).await.refused(400);
    let shouted = run("runs/alone").replace("/history/", "/HISTORY/").replace("resourceGroups", "resourcegroups");
    server.get(&shouted).await.expect(200);
}
