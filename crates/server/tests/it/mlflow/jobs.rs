//! A job is its run, and its token opens that run while the job runs.

use super::{pairs, *};
use domain::report::{Poll, PollAnswer};
use store::Bell;

pub(super) async fn submitted(server: &Server, name: &str) {
    let body = json!({"properties": {
        "jobType": "Command", "command": "echo hi", "computeId": "azureml:local", "experimentName": "tests", "displayName": "shown",
        "environmentId": "azureml:AzureML-Minimal@latest", "tags": {"team": "a"},
        "inputs": {"lr": {"jobInputType": "literal", "value": "0.1"}},
    }});
    server.put(&format!("jobs/{name}"), body).await.expect(201);
}

/// The variables the process of a job is given.
pub(super) async fn variables(server: &Server, name: &str) -> std::collections::BTreeMap<String, String> {
    server.place(name).await;
    let poll = Poll { facts: crate::agents::facts("boot"), holds: Vec::new(), stopping: Vec::new(), joining: None };
    let answer: PollAnswer = server.agent.post("/agent/v1/poll", &poll).await.unwrap();
    answer.assignments.into_iter().find(|a| a.job.as_str() == name).unwrap().server_variables
}

#[tokio::test]
async fn a_job_shows_as_a_run_and_a_change_of_either_is_one_of_both() {
    let server = Server::start().await;
    submitted(&server, "train").await;
    let run = || async { server.question("runs/get", json!({"run_id": "train"})).await.expect(200)["run"].clone() };
    let shown = run().await;
    assert_eq!((&shown["info"]["status"], &shown["info"]["run_name"]), (&json!("SCHEDULED"), &json!("shown")));
    assert_eq!(pairs(&shown["data"]["params"]), json!({"lr": "0.1"}));
    assert_eq!(pairs(&shown["data"]["tags"])["team"], "a");
    server.tell("runs/set-tag", json!({"run_id": "train", "key": "note", "value": "good"})).await.expect(200);
    server
        .tell("runs/update", json!({"run_id": "train", "run_name": "renamed", "status": "FINISHED"}))
        .await
        .expect(200);
    let job = server.get("jobs/train").await.expect(200)["properties"].clone();
    assert_eq!((&job["tags"], &job["displayName"]), (&json!({"team": "a", "note": "good"}), &json!("renamed")));
    // What a job is up to is not its code's to say.
    assert_eq!(run().await["info"]["status"], "SCHEDULED");
    server.post("jobs/train/cancel", json!({})).await.expect(200);
    assert_eq!(run().await["info"]["status"], "KILLED");
    server.tell("runs/delete", json!({"run_id": "train"})).await.expect(200);
    assert_eq!(server.get("jobs/train").await.expect(200)["properties"]["isArchived"], true);
    assert_eq!(run().await["info"]["lifecycle_stage"], "deleted");
    let found = server.tell("runs/search", json!({"experiment_ids": ["1"], "run_view_type": "DELETED_ONLY", "filter": "params.lr = '0.1' and tags.note = 'good'"})).await.expect(200);
    assert_eq!(found["runs"][0]["info"]["run_id"], "train");
}

#[tokio::test]
async fn a_job_is_born_with_what_a_client_needs() {
    let server = Server::start().await;
    submitted(&server, "train").await;
    let variables = variables(&server, "train").await;
    for (name, expect) in [
        ("MLFLOW_TRACKING_URI", format!("{}/mlflow/v1.0{WS}", server.user.url())),
        ("MLFLOW_RUN_ID", "train".into()),
        ("MLFLOW_EXPERIMENT_ID", "1".into()),
        ("MLFLOW_EXPERIMENT_NAME", "tests".into()),
    ] {
        assert_eq!(variables.get(name), Some(&expect), "{name}");
    }
    assert!(variables.contains_key("MLFLOW_TRACKING_TOKEN"));
}

#[tokio::test]
async fn the_token_of_a_job_opens_its_own_run_and_those_below_and_ends_with_it() {
    let server = Server::start().await;
    let stranger = server.run("of someone else").await;
    submitted(&server, "train").await;
    let job = server.with_token(&variables(&server, "train").await["MLFLOW_TRACKING_TOKEN"]);
    let log = |run: &str| json!({"run_id": run, "key": "loss", "value": 1, "timestamp": 1});
    call(&job, Method::POST, "runs/log-metric", log("train")).await.expect(200);
    let child = json!({"experiment_id": "1", "tags": [{"key": "mlflow.parentRunId", "value": "train"}]});
    let child = call(&job, Method::POST, "runs/create", child).await.expect(200)["run"]["info"]["run_id"].clone();
    call(&job, Method::POST, "runs/log-metric", log(child.as_str().unwrap())).await.expect(200);
    assert_eq!(call(&job, Method::POST, "runs/log-metric", log(&stranger)).await.code(403), "PERMISSION_DENIED");
    let rootless = call(&job, Method::POST, "runs/create", json!({"experiment_id": "1"})).await;
    assert_eq!(rootless.code(403), "PERMISSION_DENIED");
    let found = call(&job, Method::POST, "runs/search", json!({"experiment_ids": ["0", "1"]})).await.expect(200);
    assert_eq!(found["runs"].as_array().unwrap().len(), 2);
    let other = WS.replace("default", "team");
    server.put(&other, json!({})).await;
    let path = format!("/mlflow/v1.0{other}{API}/experiments/get?experiment_id=0");
    assert_eq!(ask(&job, Method::GET, &path, None).await.code(403), "PERMISSION_DENIED");
    for (path, args) in [
        ("experiments/delete", json!({"experiment_id": "1"})),
        ("experiments/update", json!({"experiment_id": "1", "new_name": "mine"})),
        ("experiments/set-experiment-tag", json!({"experiment_id": "0", "key": "k", "value": "v"})),
        ("experiments/search-datasets", json!({"experiment_ids": ["0"]})),
        ("runs/delete", json!({"run_id": stranger})),
    ] {
        assert_eq!(call(&job, Method::POST, path, args).await.code(403), "PERMISSION_DENIED", "{path}");
    }
    let own = json!({"experiment_id": "1", "key": "k", "value": "v"});
    call(&job, Method::POST, "experiments/set-experiment-tag", own).await.expect(200);
    // Its token is no user's.
    assert_eq!(ask(&job, Method::GET, &format!("{WS}/jobs"), None).await.refused(403).0, "AuthorizationFailed");
    end(&server, "train").await;
    assert_eq!(call(&job, Method::POST, "runs/log-metric", log("train")).await.code(403), "PERMISSION_DENIED");
}

/// Ends a job, as a report of its agent does.
async fn end(server: &Server, name: &str) {
    let (name, now) = (name.to_owned(), server::clock::now());
    let ended = server.store.write(move |tx| {
        let mut job = tx.job("default", &name)?.unwrap().job;
        job.apply(domain::JobEvent::Over(domain::Outcome::Completed), now).unwrap();
        tx.put_job(&job, None, now)?;
        tx.ring(Bell::Jobs);
        Ok(())
    });
    ended.await.unwrap();
}
