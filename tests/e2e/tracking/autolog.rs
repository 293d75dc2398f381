//! Scripts that let MLflow log by itself, run as jobs without a change: the job is the run they log to.

use super::VERSION;
use crate::{
    environments::shared_builds,
    faults::door::Door,
    harness::{Home, is_long},
    sdk::venv,
    skip::skip,
};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What `mlflow.pytorch.autolog` hooks into, and what that needs beside PyTorch, by releases that fit the client.
const LIGHTNING: [&str; 4] =
    ["pytorch-lightning==2.5.1", "lightning-utilities==0.15.2", "torchmetrics==1.8.2", "tqdm==4.67.1"];

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/e2e/tracking/scripts")
}

fn ask(home: &Home, door: &Door, path: &str, body: Option<Value>) -> Value {
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = body.map(|body| body.to_string()).unwrap_or_default();
    let (status, answer) = door.ask(method, &format!("/api/2.0/mlflow/{path}"), Some(&home.token("user")), &body);
    assert_eq!(status, 200, "{path}: {answer}");
    serde_json::from_str(&answer).unwrap()
}

/// The values of a list of a run, by key.
fn values(run: &Value, list: &str) -> serde_json::Map<String, Value> {
    let all = run["data"][list].as_array().into_iter().flatten();
    all.map(|item| (item["key"].as_str().unwrap().to_owned(), item["value"].clone())).collect()
}

/// Runs a job to its good end; its run.
fn run(home: &Home, door: &Door, name: &str, job: &str) -> Value {
    let code = scripts().display().to_string();
    home.file(&format!("{name}.yml"), &format!("code: {code}\n{job}\n"));
    home.ok(&["job", "create", "-f", &format!("{name}.yml"), "-n", name, "-o", "none"]);
    // Frameworks take their time to import, the more so beside other tests.
    let streamed = home.run(&["job", "stream", "-n", name]);
    assert_eq!(streamed.code, Some(0), "{}\n{}", streamed.out, streamed.err);
    let run = ask(home, door, &format!("runs/get?run_id={name}"), None)["run"].clone();
    assert_eq!(run["info"]["status"], "FINISHED");
    run
}

#[test]
fn pytorch_logs_by_itself_from_inside_a_job() {
    if !is_long() {
        return;
    }
    let Some(site) = venv::folder_with("pytorch-lightning-2.5.1", &LIGHTNING) else {
        skip("pytorch-lightning is not kept here and the package index cannot be reached");
        return;
    };
    let home = shared_builds();
    let door = home.open_door();
    let job = format!(
        "command: python line.py\nenvironment: azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/1\n\
         environment_variables: {{PYTHONPATH: '{}'}}",
        site.display()
    );
    let run = run(&home, &door, "line", &job);
    let (params, tags) = (values(&run, "params"), values(&run, "tags"));
    assert_eq!(
        (&params["epochs"], &params["optimizer_name"], &params["lr"]),
        (&"5".into(), &"SGD".into(), &"0.1".into())
    );
    assert_eq!(tags["mlflow.autologging"], "pytorch");
    let history = ask(&home, &door, "metrics/get-history?run_id=line&metric_key=loss", None);
    let losses: Vec<f64> =
        history["metrics"].as_array().unwrap().iter().map(|point| point["value"].as_f64().unwrap()).collect();
    assert_eq!(losses.len(), 5, "one point an epoch: {losses:?}");
    assert!(losses[4] < losses[0] / 10.0, "it learned: {losses:?}");
    let files = home.artifacts("line");
    assert!(files.join("model/data/model.pth").is_file() && files.join("model_summary.txt").is_file());
}

#[test]
fn scikit_learn_logs_by_itself_from_inside_a_job_with_the_newest_client() {
    let Some(python) = venv::with("mlflow", VERSION, &[]) else {
        skip(&format!("mlflow {VERSION} is not kept here and the package index cannot be reached"));
        return;
    };
    let home = Home::new();
    let door = home.open_door();
    let job = format!("command: {} forest.py\nenvironment: {{image: 'python:3.12-slim'}}", python.display());
    let run = run(&home, &door, "forest", &job);
    assert!(home.log("forest").contains(&format!("mlflow {VERSION}")));
    let (metrics, params) = (values(&run, "metrics"), values(&run, "params"));
    assert!(metrics["best_cv_score"].as_f64().unwrap() > 0.8 && metrics["training_score"].as_f64().unwrap() > 0.8);
    assert_eq!(params["best_max_depth"].as_str().unwrap().parse::<u32>().map(|depth| depth > 1), Ok(true));
    assert_eq!(run["inputs"]["dataset_inputs"].as_array().map(Vec::len), Some(1), "the data it read is on record");
    let made = run["outputs"]["model_outputs"].as_array().map_or(0, Vec::len);
    assert_eq!(made, 2, "the search and its best estimator are logged models of the run: {run}");
    let below = serde_json::json!({"experiment_ids": [run["info"]["experiment_id"]], "filter": "tags.mlflow.parentRunId = 'forest'"});
    let children = ask(&home, &door, "runs/search", Some(below));
    assert_eq!(children["runs"].as_array().map(Vec::len), Some(4), "each combination is a run below the job's");
}
