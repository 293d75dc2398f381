//! A model is replaced by another behind one address, as users script it: every step, by the command line and by the SDK.

use super::{deployment, faults::replicas, home, serving};
use crate::{
    corpus::{copy, corpus},
    harness::{Home, said},
    sdk::{NEWEST, variables, venv},
    skip::skip,
};
use serde_json::{Value, json};
use std::{path::Path, process::Command};

/// Room for a burst, so that a busy test machine costs no answer.
const ROOMY: &str = "request_settings: {max_concurrent_requests_per_instance: 4, max_queue_wait_ms: 20000, \
                     request_timeout_ms: 20000}";
/// What chi-square with one degree of freedom exceeds once in a thousand fair trials.
pub(crate) const UNLIKELY: f64 = 10.83;

#[test]
fn blue_becomes_green_without_a_change_for_callers() {
    let home = serving(ROOMY);
    let blue = home.show_deployment("blue");
    assert_eq!(blue["provisioning_state"], "Succeeded", "{blue}");
    assert_eq!(home.answer(&[]), json!({"by": "blue", "weights": "1 2 3", "asked": {"x": 1}}));

    let more = ["online-deployment", "update", "-n", "blue", "-e", "iris", "--set", "instance_count=2"];
    assert_eq!(home.json(&more)["instance_count"], 2);
    assert_eq!(home.answer(&[])["by"], "blue");

    home.file("model/weights.txt", "4 5 6\n");
    let file = deployment(&home, "green", ROOMY);
    home.ok(&["online-deployment", "create", "-f", &file, "-o", "none"]);
    assert_eq!(home.answer(&[])["by"], "blue", "a new deployment has no traffic of its own");
    assert_eq!(home.answer(&["-d", "green"])["weights"], "4 5 6");
    assert_eq!(home.answer(&["-d", "blue"])["weights"], "1 2 3", "each deployment has its own model");

    home.traffic("blue=90 green=10");
    let by = test(&home, "100", "5s");
    let [blue, green] = ["blue", "green"].map(|name| by[name].as_f64().unwrap_or(0.0));
    let n = blue + green;
    let chi = (blue - 0.9 * n).powi(2) / (0.9 * n) + (green - 0.1 * n).powi(2) / (0.1 * n);
    assert!(n >= 500.0 && chi < UNLIKELY, "90/10 became {by}: chi-square {chi:.1}");

    home.traffic("blue=0 green=100");
    assert_eq!(test(&home, "20", "2s"), json!({"green": 40}));

    home.ok(&["online-endpoint", "update", "-n", "iris", "--mirror-traffic", "blue=50", "-o", "none"]);
    home.ask(&json!({"mark": 0}), &[]).must(0, &[]);
    home.until("a copy of a request to reach `blue`", || {
        let said = home.ask(&json!({"mark": "copied"}), &[]);
        assert!(said.out.contains("\"green\""), "copies change nothing for callers: {}", said.out);
        home.deployment_log("blue").contains("copied")
    });
    home.ok(&["online-endpoint", "update", "-n", "iris", "--mirror-traffic", "blue=0", "-o", "none"]);

    let delete = |name: &str| home.run(&["online-deployment", "delete", "-n", name, "-e", "iris", "--yes"]);
    delete("green").must(2, &["100 % of the traffic"]);
    delete("blue").must(0, &["deleted online deployment `blue`"]);
    assert_eq!(home.answer(&[])["by"], "green");
    home.ask(&json!({}), &["-d", "blue"]).must(2, &["answered 404"]);
    home.ok(&["online-endpoint", "delete", "-n", "iris", "--yes"]);
    home.run(&["online-endpoint", "show", "-n", "iris"]).must(2, &["there is no online endpoint `iris`"]);
    home.until("the replicas to be gone", || replicas(&home).is_empty());
}

/// Multiplies by what its model says.
pub(crate) const FACTOR: &str = r#"import json, os, pathlib

def init():
    global FACTOR
    FACTOR = float(next(pathlib.Path(os.environ["AZUREML_MODEL_DIR"]).glob("*/factor.txt")).read_text())

def run(data):
    print("asked for", data, flush=True)
    return {"scores": [FACTOR * x for x in json.loads(data)["data"]]}
"#;
/// Files like those of Azure's examples, for where these are not.
const ENDPOINT: &str = "name: my-endpoint\nauth_mode: key\n";
const DEPLOYMENT: &str = "name: COLOUR\ntype: kubernetes\nendpoint_name: my-endpoint\nmodel: {path: ../model-NUMBER/model/}\n\
                          code_configuration: {code: ../model-NUMBER/onlinescoring/, scoring_script: score.py}\ninstance_count: 1\n";

#[test]
fn blue_becomes_green_through_the_sdk() {
    let Some(python) = venv::with_sdk(NEWEST) else {
        return skip(&format!("azure-ai-ml {NEWEST} is not kept here and the package index cannot be reached"));
    };
    let home = home();
    home.file("request.json", "{\"data\": [1, 2, 3]}");
    let create = ["environment", "create", "-n", "inference", "-v", "1", "--image", "python:3.11-slim"];
    home.ok(&[&create[..], &["--conda-file", "conda.yml", "-o", "none"]].concat());
    let files = sdk_files(&home);
    home.ok(&["sdk", "login", "--role", "owner", "--everywhere"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdk/blue_green.py");
    let mut driver = Command::new("timeout");
    driver.arg("300").arg(python).arg(script).args(["local", "azureml:inference:1"]).args(files);
    driver.current_dir(home.path()).env_remove("PYTHONPATH").envs(variables(&home));
    let told = said(driver.output().unwrap());
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
    assert!(told.out.ends_with("blue became green\n"), "{}", told.out);
    home.until("the replicas to be gone", || replicas(&home).is_empty());
}

/// Files of an endpoint, of blue and of green: Azure's where they are kept, with models and scripts of ours.
fn sdk_files(home: &Home) -> [String; 3] {
    let folder = "cli/endpoints/online/kubernetes";
    for (number, factor) in [("1", "3"), ("2", "5")] {
        let at = |file: &str| format!("corpus/cli/endpoints/online/model-{number}/{file}");
        home.file(&at("model/factor.txt"), factor);
        home.file(&at("onlinescoring/score.py"), FACTOR);
    }
    if let Some(corpus) = corpus() {
        let file = |name: &str| copy(home, &corpus, &format!("{folder}/kubernetes-{name}.yml"), &[]);
        return [file("endpoint"), file("blue-deployment"), file("green-deployment")];
    }
    let file = |name: &str, text: &str| home.file(&format!("corpus/{folder}/{name}.yml"), text).display().to_string();
    let deployment =
        |colour: &str, number: &str| file(colour, &DEPLOYMENT.replace("COLOUR", colour).replace("NUMBER", number));
    [file("endpoint", ENDPOINT), deployment("blue", "1"), deployment("green", "2")]
}

/// Answers by deployment; every request must be answered.
fn test(home: &Home, rps: &str, lasts: &str) -> Value {
    let args = ["online-endpoint", "test", "-n", "iris", "-r", "request.json", "--rps", rps, "--duration", lasts];
    let report = home.json(&args);
    assert_eq!(report["failed"], 0, "{report}");
    assert!(report["latency_ms"]["p99"].as_f64().unwrap() > 0.0, "{report}");
    report["deployments"].clone()
}
