//! MLflow's API: runs and what is logged to them, and that a job is its run.

mod carried;
mod faults;
mod jobs;
mod models;
mod runs;
mod stream;
mod webhooks;

use crate::{Answer, Server, WS, ask};
use api::Client;
use reqwest::Method;
use serde_json::{Value, json};

const API: &str = "/api/2.0/mlflow";

/// A call of MLflow's: questions in the query, everything else in the body.
async fn call(client: &Client, method: Method, path: &str, args: Value) -> Answer {
    if method != Method::GET {
        return ask(client, method, &format!("{API}/{path}"), Some(args)).await;
    }
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let query: Vec<String> = args
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{key}={}", text(value).replace(' ', "%20")))
        .collect();
    ask(client, method, &format!("{API}/{path}?{}", query.join("&")), None).await
}

impl Server {
    async fn tell(&self, path: &str, args: Value) -> Answer {
        call(&self.user, Method::POST, path, args).await
    }

    async fn question(&self, path: &str, args: Value) -> Answer {
        call(&self.user, Method::GET, path, args).await
    }

    /// A run of experiment 0.
    async fn run(&self, name: &str) -> String {
        let made = self.tell("runs/create", json!({"experiment_id": "0", "run_name": name, "start_time": 5})).await;
        made.expect(200)["run"]["info"]["run_id"].as_str().unwrap().to_owned()
    }
}

impl Answer {
    /// The code of a refusal in MLflow's envelope.
    fn code(&self, status: u16) -> String {
        let body = self.expect(status);
        assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()), "{body}");
        body["error_code"].as_str().unwrap_or_else(|| panic!("no envelope: {}", self.text())).to_owned()
    }
}

/// Keys and values of a list of pairs, as one map.
fn pairs(list: &Value) -> Value {
    let pairs = list.as_array().into_iter().flatten();
    pairs
        .map(|pair| (pair["key"].as_str().unwrap().to_owned(), pair["value"].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test]
async fn the_same_runs_are_found_under_every_prefix() {
    let server = Server::start().await;
    let run = server.run("one").await;
    for (prefix, artifacts) in [
        ("".to_owned(), format!("mlflow-artifacts:/0/{run}/artifacts")),
        (format!("/mlflow/v1.0{WS}"), format!("mlflow-artifacts:/0/{run}/artifacts")),
        (
            format!("/mlflow/v2.0{WS}"),
            format!(
                "{}/mlflow/v2.0{WS}/experiments/0/runs/{run}/artifacts",
                server.user.url().replace("https", "azureml")
            ),
        ),
    ] {
        let path = format!("{prefix}{API}/runs/get?run_id={run}");
        let shown = ask(&server.user, Method::GET, &path, None).await.expect(200);
        assert_eq!(shown["run"]["info"]["artifact_uri"], artifacts);
        let path = format!("{prefix}/ajax-api/2.0/mlflow/runs/get?run_id={run}");
        ask(&server.user, Method::GET, &path, None).await.expect(200);
    }
}

#[tokio::test]
async fn workspaces_do_not_see_each_others_runs() {
    let server = Server::start().await;
    let run = server.run("mine").await;
    let other = WS.replace("default", "team");
    server.put(&other, json!({})).await;
    let path = format!("/mlflow/v1.0{other}{API}/runs/get?run_id={run}");
    assert_eq!(ask(&server.user, Method::GET, &path, None).await.code(404), "RESOURCE_DOES_NOT_EXIST");
    let path = format!("/mlflow/v1.0{other}{API}/experiments/get-by-name?experiment_name=Default");
    assert_eq!(ask(&server.user, Method::GET, &path, None).await.expect(200)["experiment"]["experiment_id"], "0");
}

#[tokio::test]
async fn refusals_are_in_mlflows_words() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let point = json!({"run_id": run, "key": "k", "value": 1.0, "timestamp": 1});
    let with = |key: &str, value: Value| {
        let mut point = point.clone();
        point[key] = value;
        point
    };
    let many = |n: usize| json!({"run_id": run, "metrics": vec![json!({"key": "k", "value": 1, "timestamp": 1}); n]});
    for (path, args, status, code) in [
        ("runs/log-metric", with("run_id", json!("0".repeat(32))), 404, "RESOURCE_DOES_NOT_EXIST"),
        ("runs/log-metric", with("run_id", json!(null)), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/log-metric", with("value", json!("abc")), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/log-metric", with("value", json!([])), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/log-metric", with("timestamp", json!(-1)), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/log-metric", with("key", json!("../up")), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/log-batch", many(1001), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/log-batch", json!({"run_id": run, "metrics": "x"}), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/search", json!({"experiment_ids": ["0"], "filter": "a' or 1=1 --"}), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/search", json!({"experiment_ids": ["0"], "page_token": "nonsense"}), 400, "INVALID_PARAMETER_VALUE"),
        ("runs/create", json!({"experiment_id": "77"}), 404, "RESOURCE_DOES_NOT_EXIST"),
        ("experiments/create", json!({"name": "Default"}), 400, "RESOURCE_ALREADY_EXISTS"),
        ("experiments/delete", json!({"experiment_id": "0"}), 400, "INVALID_PARAMETER_VALUE"),
    ] {
        let answer = server.tell(path, args.clone()).await;
        assert_eq!(answer.code(status), code, "{path} {args}");
    }
    server.tell("runs/log-batch", many(1000)).await.expect(200);
}

#[tokio::test]
async fn who_may_not_is_told_in_mlflows_words_too() {
    let server = Server::start().await;
    let stranger = server.with_token("nonsense");
    let answer = call(&stranger, Method::GET, "runs/get", json!({"run_id": "x"})).await;
    assert_eq!(answer.code(401), "UNAUTHENTICATED");
    let answer = call(&server.agent, Method::GET, "runs/get", json!({"run_id": "x"})).await;
    assert_eq!(answer.code(403), "PERMISSION_DENIED");
}
