//! MLflow's own client against a real server: from inside a job, where nothing is set up, and from outside, step by step
//! beside the answers of the reference server.

use crate::{environments::shared_builds, harness::said, sdk::venv};
use serde_json::Value;
use std::{path::Path, process::Command};

const VERSION: &str = "3.17.2";

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
fn the_whole_surface_answers_as_the_reference_does() {
    let Some(python) = venv::with("mlflow", VERSION, &[]) else {
        crate::skip::skip(&format!("mlflow {VERSION} is not kept here and the package index cannot be reached"));
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
    let told = said(test.env("PEREGRINE_BIN", crate::harness::binary()).env_remove("PYTHONPATH").output().unwrap());
    let end: Vec<&str> = told.out.lines().rev().take(40).collect();
    eprintln!("{}", end.into_iter().rev().collect::<Vec<_>>().join("\n"));
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
}
