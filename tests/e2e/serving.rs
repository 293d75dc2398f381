//! Online endpoints with the real binary: models that are really loaded, served through the router, scaled, replaced.
//!
//! Every test has a home and a router of its own; the environment of the models is built once and kept. Where it cannot
//! be built, the tests say so and pass.

mod alone;
pub(crate) mod blue_green;
mod codes;
mod corpus;
mod faults;
mod restart;
mod rollout;
mod sources;
mod streams;

use crate::{
    environments::shared_builds,
    harness::{Home, Said},
};
use serde_json::{Value, json};

/// Says its own name, and does as it is asked.
const SCORE: &str = r#"import json, os, time

def init():
    global NAME, WEIGHTS
    NAME = os.environ.get("NAME", "nameless")
    with open(os.path.join(os.environ["AZUREML_MODEL_DIR"], "model", "weights.txt")) as file:
        WEIGHTS = file.read().strip()
    print(f"{NAME} has loaded {WEIGHTS}", flush=True)

def run(data):
    asked = json.loads(data)
    print(f"{NAME} is asked for {json.dumps(asked)}", flush=True)
    time.sleep(asked.get("sleep", 0))
    if "raise" in asked:
        raise ValueError(asked["raise"])
    if asked.get("die"):
        os._exit(9)
    return {"by": NAME, "weights": WEIGHTS, "asked": asked}
"#;
const CONDA: &str = "name: serving\ndependencies:\n- python=3.11\n- pip:\n  - azureml-inference-server-http\n";

/// A home with a model, a scoring script and an environment for it.
fn home() -> Home {
    let home = shared_builds();
    home.file("src/score.py", SCORE);
    home.file("model/weights.txt", "1 2 3\n");
    home.file("conda.yml", CONDA);
    home.file("request.json", "{\"x\": 1}");
    home
}

/// Writes a deployment file; `more` is in YAML, at the top level.
fn deployment(home: &Home, name: &str, more: &str) -> String {
    let file = format!("{name}.yml");
    let text = format!(
        "name: {name}\nendpoint_name: iris\nmodel: {{path: model}}\ninstance_type: Standard_DS1_v2\ninstance_count: 1\n\
         code_configuration: {{code: src, scoring_script: score.py}}\n\
         environment: {{image: 'python:3.11-slim', conda_file: conda.yml}}\nenvironment_variables: {{NAME: {name}}}\n\
         readiness_probe: {{initial_delay: 0, period: 1, timeout: 2, failure_threshold: 30, success_threshold: 1}}\n{more}\n"
    );
    home.file(&file, &text);
    file
}

/// An endpoint with one deployment that has all traffic.
fn serving(more: &str) -> Home {
    let home = home();
    home.ok(&["online-endpoint", "create", "-n", "iris", "-o", "none"]);
    let file = deployment(&home, "blue", more);
    home.ok(&["online-deployment", "create", "-f", &file, "--all-traffic", "-o", "none"]);
    home
}

impl Home {
    /// Asks the endpoint, or one of its deployments.
    fn ask(&self, request: &Value, more: &[&str]) -> Said {
        self.file("asked.json", &request.to_string());
        let mut args = vec!["online-endpoint", "invoke", "-n", "iris", "-r", "asked.json"];
        args.extend(more);
        self.run(&args)
    }

    /// Who answers.
    fn answer(&self, more: &[&str]) -> Value {
        let said = self.ask(&json!({"x": 1}), more);
        assert_eq!(said.code, Some(0), "{}\n{}", said.out, said.err);
        serde_json::from_str(&said.out).unwrap()
    }

    fn traffic(&self, shares: &str) {
        self.ok(&["online-endpoint", "update", "-n", "iris", "--traffic", shares, "-o", "none"]);
    }

    fn show_deployment(&self, name: &str) -> Value {
        self.json(&["online-deployment", "show", "-n", name, "-e", "iris"])
    }

    fn deployment_log(&self, name: &str) -> String {
        self.ok(&["online-deployment", "get-logs", "-n", name, "-e", "iris", "--lines", "5000"])
    }
}
