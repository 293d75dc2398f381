//! Records through the command line: what is created is shown in the words of its file, changed, refused clearly where it
//! cannot run, and gone when deleted.

use crate::harness::Home;
use serde_json::json;

const COMPONENT: &str = "name: train\nversion: 1\ntype: command\ncommand: python a.py --x ${{inputs.x}}\ncode: src\n\
                         environment: {image: 'python:3.12'}\ninputs: {x: {type: number, default: 2}}\n";
const PIPELINE: &str = "type: pipeline\njobs:\n  a: {type: command, component: ./train.yml, inputs: {x: 3}}\n  \
                        b: {type: command, component: 'azureml:train:1', inputs: {x: 4}}\n";
const SCHEDULE: &str = "name: nightly\ntrigger: {type: cron, expression: '0 3 * * *', start_time: '2026-01-01T00:00:00'}\ncreate_job: ./pipeline.yml\n";
const BATCH: &str = "name: blue\nendpoint_name: scoring\ntype: model\nmodel: azureml:flower@latest\ncompute: azureml:local\n\
                     resources: {instance_count: 1}\nsettings: {mini_batch_size: 3}\n\
                     code_configuration: {code: src, scoring_script: a.py}\nenvironment: {image: 'python:3.12'}\n";

fn home() -> Home {
    let home = Home::new();
    home.file("src/a.py", "print(1)\n");
    home.file("model/weights", "1 2 3\n");
    for (name, text) in [("train.yml", COMPONENT), ("pipeline.yml", PIPELINE), ("nightly.yml", SCHEDULE)] {
        home.file(name, text);
    }
    home.file("batch.yml", BATCH);
    home
}

#[test]
fn a_component_is_kept_changed_archived_and_shared() {
    let home = home();
    let made = home.json(&["component", "create", "-f", "train.yml"]);
    assert_eq!((&made["version"], &made["inputs"]["x"]["default"]), (&json!("1"), &json!("2.0")), "{made}");
    let changed = home.json(&["component", "update", "-n", "train", "-v", "1", "--set", "description=faster"]);
    assert_eq!(changed["description"], "faster");
    home.ok(&["component", "archive", "-n", "train", "-v", "1"]);
    assert_eq!(home.json(&["component", "list", "-n", "train"]), json!([]));
    home.ok(&["component", "restore", "-n", "train", "-v", "1"]);
    home.ok(&["registry", "create", "-n", "shared", "-o", "none"]);
    home.ok(&["component", "share", "-n", "train", "-v", "1", "--registry-name", "shared", "-o", "none"]);
    let shared = home.json(&["component", "show", "-n", "train", "-v", "1", "--registry", "shared"]);
    assert!(shared["id"].as_str().unwrap().contains("/registries/shared/components/train/"), "{shared}");
    home.ok(&["registry", "delete", "-n", "shared", "--yes"]);
    home.run(&["registry", "show", "-n", "shared"]).must(2, &["there is no registry `shared`"]);
}

#[test]
fn a_schedule_registers_its_steps_and_can_be_switched_off() {
    let home = home();
    home.ok(&["component", "create", "-f", "train.yml", "-o", "none"]);
    let made = home.json(&["schedule", "create", "-f", "nightly.yml"]);
    assert_eq!(made["trigger"]["expression"], "0 3 * * *");
    assert_eq!(made["provisioning_state"], "Succeeded");
    assert_eq!(made["peregrine"]["next"].as_array().unwrap().len(), 5, "{made}");
    let steps = &made["create_job"]["jobs"];
    assert!(steps["a"]["componentId"].as_str().unwrap().contains("/components/azureml_anonymous/"), "{steps}");
    assert!(steps["b"]["componentId"].as_str().unwrap().ends_with("/components/train/versions/1"), "{steps}");
    assert_eq!(home.json(&["schedule", "disable", "-n", "nightly"])["is_enabled"], false);
    assert_eq!(home.json(&["schedule", "enable", "-n", "nightly"])["is_enabled"], true);
    let job = home.json(&["schedule", "trigger", "-n", "nightly"])["job_name"].as_str().unwrap().to_owned();
    let job = home.json(&["job", "show", "-n", &job]);
    assert_eq!(job["properties"]["peregrine.schedule"], "nightly", "{job}");
    home.ok(&["job", "cancel", "-n", job["name"].as_str().unwrap()]);
    home.ok(&["schedule", "delete", "-n", "nightly", "--yes"]);
    assert_eq!(home.json(&["schedule", "list"]), json!([]));
}

#[test]
fn a_batch_deployment_finds_the_latest_model_and_becomes_the_default() {
    let home = home();
    home.ok(&["model", "create", "-n", "flower", "--path", "model", "-o", "none"]);
    home.ok(&["batch-endpoint", "create", "-n", "scoring", "-o", "none"]);
    let made = home.json(&["batch-deployment", "create", "-f", "batch.yml", "--set-default"]);
    assert!(made["model"].as_str().unwrap().ends_with("/models/flower/versions/1"), "{made}");
    let endpoint = home.json(&["batch-endpoint", "show", "-n", "scoring"]);
    assert_eq!(endpoint["defaults"]["deployment_name"], "blue");
    home.ok(&["batch-endpoint", "delete", "-n", "scoring", "--yes"]);
    home.run(&["batch-endpoint", "show", "-n", "scoring"]).must(2, &["there is no batch endpoint `scoring`"]);
}

#[test]
fn a_dry_run_says_what_would_be_sent_and_starts_nothing() {
    let home = home();
    let sheet = home.json(&["job", "create", "-f", "pipeline.yml", "--dry-run"]);
    let paths: Vec<&str> = sheet.as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    let kinds = ["/codes/", "/environments/", "/components/azureml_anonymous/", "/jobs/"];
    assert_eq!(paths.len(), kinds.len(), "{paths:?}");
    for (path, kind) in paths.iter().zip(kinds) {
        assert!(path.contains(kind), "{path} is no {kind}");
    }
    assert!(!home.home().join("server.lock").exists(), "a server was started");
}
