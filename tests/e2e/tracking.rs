//! MLflow's own client against a real server: from inside a job, where nothing is set up, and from outside, step by step
//! beside the answers of the reference server.

mod autolog;
mod crash;
mod retention;
mod webhooks;

use crate::{
    environments::shared_builds,
    harness::{Home, said},
    sdk::{variables, venv},
    skip::skip,
};
use serde_json::Value;
use std::{path::Path, process::Command};

const VERSION: &str = "3.17.2";
/// The last release before models got ids of their own.
const LAST_OF_2: &str = "2.22.5";
/// Azure's own plugin for MLflow.
const PLUGIN: &str = "1.62.0.post6";

#[test]
fn a_script_that_logs_runs_unchanged_and_its_run_is_its_job() {
    let home = shared_builds();
    let door = home.open_door();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/tracking/job.yml");
    home.ok(&["job", "create", "-f", &example.display().to_string(), "-n", "logged", "--set", "tags.team=birds"]);
    let job = home.ended("logged");
    assert_eq!(job["status"], "Completed", "{}", home.log("logged"));
    let (status, body) = door.ask("GET", "/api/2.0/mlflow/runs/get?run_id=logged", Some(&home.token("user")), "");
    assert_eq!(status, 200, "{body}");
    let run = &serde_json::from_str::<Value>(&body).unwrap()["run"];
    assert_eq!(run["info"]["status"], "FINISHED");
    assert_eq!(run["info"]["run_name"], "tracking");
    let value = |list: &str, key: &str| {
        let all = run["data"][list].as_array().unwrap();
        all.iter().find(|item| item["key"] == key).unwrap_or_else(|| panic!("no {list} {key} in {all:?}"))["value"]
            .clone()
    };
    assert!(value("metrics", "held_out_accuracy").as_f64().unwrap() > 0.8);
    assert!(value("metrics", "training_score").as_f64().unwrap() > 0.8, "autologging logs the score of the training");
    assert_eq!(value("params", "max_depth"), "4");
    assert_eq!(value("params", "depth"), "4", "an input of the job is a parameter of its run");
    assert_eq!(value("tags", "team"), "birds");
    assert_eq!(home.job("logged")["tags"]["kind"], "tree", "a tag of the run is a tag of the job");
    let history = "/api/2.0/mlflow/metrics/get-history?run_id=logged&metric_key=held_out_accuracy";
    let (_, body) = door.ask("GET", history, Some(&home.token("user")), "");
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["metrics"].as_array().unwrap().len(), 4);
    let files = home.artifacts("logged");
    assert!(files.join("model/MLmodel").is_file(), "the model is among the job's own files: {}", files.display());
}

#[test]
fn every_address_of_the_reference_is_served_or_left_out_for_a_reason() {
    let Some(python) = venv::with("mlflow", VERSION, &[]) else {
        skip(&format!("mlflow {VERSION} is not kept here and the package index cannot be reached"));
        return;
    };
    let told = driven(&Home::new(), &python, "routes.py", &[]);
    assert!(told["asked"].as_u64().unwrap() > 150, "{told}");
}

#[test]
fn azures_plugin_tracks_keeps_files_and_registers() {
    let Some(python) = venv::with("azureml-mlflow", PLUGIN, &["pandas", "cloudpickle"]) else {
        skip(&format!("azureml-mlflow {PLUGIN} is not kept here and the package index cannot be reached"));
        return;
    };
    let told = driven(&Home::new(), &python, "plugin.py", &[]);
    eprintln!("azureml-mlflow {PLUGIN}: {told}");
    assert!(told["checked"].as_u64().unwrap() >= 28, "{told}");
}

/// Runs a script of `tests/mlflow` against the server of a home, with what `sdk env` prints; its last line.
fn driven(home: &Home, python: &Path, script: &str, arguments: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mlflow").join(script);
    let mut client = Command::new("timeout");
    client.arg("400").arg(python).arg(script).args(arguments).current_dir(home.path()).env_remove("PYTHONPATH");
    let told = said(client.envs(variables(home)).output().unwrap());
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
    serde_json::from_str(told.out.lines().last().unwrap()).unwrap()
}

#[test]
fn the_whole_surface_answers_as_the_reference_does() {
    compare(VERSION);
}

#[test]
fn the_last_client_of_the_2_series_is_answered_as_by_the_reference() {
    compare(LAST_OF_2);
}

/// Walks the surface with a client of this release; what the reference answered it is kept.
fn compare(version: &str) {
    let Some(python) = venv::with("mlflow", version, &[]) else {
        skip(&format!("mlflow {version} is not kept here and the package index cannot be reached"));
        return;
    };
    // The client tags runs with the repository its script lies in: one that is the same wherever this one lies.
    let place = tempfile::tempdir().unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mlflow");
    let put = "cp -r \"$1\" \"$2/mlflow\" && cd \"$2\" && git init -q && git add -A && \
               git -c user.name=t -c user.email=t@example.org commit -qm t";
    let copied = Command::new("bash").args(["-c", put, "bash"]).arg(tests).arg(place.path()).status().unwrap();
    assert!(copied.success());
    let script = place.path().join("mlflow/differential.py");
    let mut test = Command::new("timeout");
    test.arg("500").arg(&python).arg(script).args(["--start", "--client"]).arg(&python);
    // A model is logged with all that lies in its folder: nothing compiled, as when the reference was asked.
    test.env("PYTHONDONTWRITEBYTECODE", "1");
    let told = said(test.env("PEREGRINE_BIN", crate::harness::binary()).env_remove("PYTHONPATH").output().unwrap());
    let end: Vec<&str> = told.out.lines().rev().take(40).collect();
    eprintln!("{}", end.into_iter().rev().collect::<Vec<_>>().join("\n"));
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
}
