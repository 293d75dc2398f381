//! Models come from where they were made: a job's output, a run's artifacts, a registry.

use super::{deployment, home};
use serde_json::json;
use std::fs;

/// Says what its weights are, wherever in the model's folder they lie.
const SCORE: &str = r#"import os, pathlib

def init():
    global WEIGHTS
    WEIGHTS = next(pathlib.Path(os.environ["AZUREML_MODEL_DIR"]).rglob("weights.txt")).read_text().strip()

def run(data):
    return {"weights": WEIGHTS}
"#;

#[test]
fn a_deployment_takes_its_model_from_a_job_a_run_or_a_registry() {
    let home = home();
    home.file("src/score.py", SCORE);
    let command = "echo 'of the output' > ${{outputs.model}}/weights.txt && mkdir -p outputs/net && \
                   echo 'of the run' > outputs/net/weights.txt";
    home.job_file("train.yml", command, "outputs: {model: {type: uri_folder}}");
    let job = home.submit("train.yml");
    assert_eq!(home.ended(&job)["status"], "Completed");
    home.ok(&["registry", "create", "-n", "shared", "-o", "none"]);
    home.file("model/weights.txt", "of the registry\n");
    home.ok(&["model", "create", "-n", "net", "-v", "3", "--path", "model", "-o", "none"]);
    home.ok(&["model", "share", "-n", "net", "-v", "3", "--registry-name", "shared", "-o", "none"]);
    home.ok(&["online-endpoint", "create", "-n", "iris", "-o", "none"]);
    let file = deployment(&home, "blue", "");
    let text = fs::read_to_string(home.path().join(&file)).unwrap();
    for (verb, model, weights) in [
        ("create", format!("{{path: 'azureml://jobs/{job}/outputs/model'}}"), "of the output"),
        ("update", format!("{{path: 'runs:/{job}/outputs/net'}}"), "of the run"),
        ("update", "azureml://registries/shared/models/net/versions/3".to_owned(), "of the registry"),
    ] {
        home.file(&file, &text.replace("{path: model}", &model));
        let more: &[&str] = if verb == "create" { &["--all-traffic"] } else { &[] };
        home.ok(&[&["online-deployment", verb, "-f", &file, "-o", "none"], more].concat());
        assert_eq!(home.answer(&[]), json!({ "weights": weights }), "{model}");
    }
}
