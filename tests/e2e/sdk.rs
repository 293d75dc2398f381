//! The unmodified Azure ML SDK against a real server: `tests/sdk/drive.py` in a virtual environment, configured by what
//! `peregrine sdk env` prints and by nothing else.
//!
//! Packages come from the package index once and are kept; where the index cannot be reached and nothing is kept, the
//! test says so and passes.

mod bodies;
pub(crate) mod venv;

use crate::{
    environments::shared_builds,
    harness::{Home, binary, said},
    ssh::Machine,
};
use serde_json::Value;
use std::{path::Path, process::Command, time::Instant};

pub(crate) const NEWEST: &str = "1.35.2";
const A_YEAR_OLD: &str = "1.27.1";
/// Fewer operations than this would be another test.
const OPERATIONS: usize = 80;

#[test]
fn the_newest_sdk_drives_a_real_server() {
    drive(NEWEST);
}

#[test]
fn an_sdk_of_a_year_ago_drives_a_real_server() {
    drive(A_YEAR_OLD);
}

fn drive(version: &str) {
    let Some(python) = venv::with_sdk(version) else {
        crate::skip::skip(&format!("azure-ai-ml {version} is not kept here and the package index cannot be reached"));
        return;
    };
    let home = shared_builds();
    home.ok(&["sdk", "login", "--role", "owner", "--everywhere"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdk/drive.py");
    let begin = Instant::now();
    let mut driver = Command::new("timeout");
    driver.arg("700").arg(python).arg(script).current_dir(home.path()).env_remove("PYTHONPATH");
    driver.envs(variables(&home)).env("PEREGRINE_BIN", binary()).env("PEREGRINE_HOME", home.home());
    let driven = said(driver.env("SDK_WORK", home.path().join("work")).output().unwrap());
    eprintln!("azure-ai-ml {version}, {:.0} s\n{}", begin.elapsed().as_secs_f64(), driven.out);
    let summary = driven.out.lines().last().unwrap_or_default();
    let summary: Value = serde_json::from_str(summary).unwrap_or_else(|_| panic!("{}\n{}", driven.out, driven.err));
    assert_eq!(summary["failed"], serde_json::json!([]), "{}", driven.err);
    assert_eq!(summary["sdk"], version);
    let count = |key: &str| usize::try_from(summary[key].as_u64().unwrap()).unwrap();
    assert!(count("passed") + count("refused") >= OPERATIONS, "{summary}");
    assert_eq!(driven.code, Some(0));
}

#[test]
fn the_example_of_a_notebook_runs_as_it_stands() {
    let Some(python) = venv::with_sdk(NEWEST) else { return };
    let home = Home::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/from-azure-ml/submit.py");
    let mut notebook = Command::new("timeout");
    notebook.arg("200").arg(python).arg(script).current_dir(home.path()).env_remove("PYTHONPATH");
    let told = said(notebook.envs(variables(&home)).output().unwrap());
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
    let line: Value = serde_json::from_str(told.out.lines().last().unwrap()).unwrap();
    assert_eq!(line, serde_json::json!({"points": 4, "slope": 2.0, "offset": 1.0}));
}

#[test]
fn jobs_of_the_sdk_run_on_a_managed_cluster_and_on_a_machine_over_ssh() {
    let home = Home::new();
    let Some(python) = venv::with_sdk(NEWEST) else { return };
    let Some(machine) = Machine::start(&home) else { return };
    // The SDK has no word for a host's key: whoever runs the server knows it.
    let key = std::fs::read_to_string(machine.folder.join("host.pub")).unwrap();
    home.file("own/.ssh/known_hosts", &format!("[127.0.0.1]:{} {key}", machine.port));
    let mut server = home.command(&["server", "start", "-o", "none"]);
    assert!(server.env("HOME", home.path().join("own")).status().unwrap().success());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sdk/targets.py");
    let mut driver = Command::new("timeout");
    driver.arg("200").arg(python).arg(script).args([&machine.address, &machine.port.to_string(), &machine.user]);
    driver.arg(machine.folder.join("id")).current_dir(home.path()).env_remove("PYTHONPATH");
    let told = said(driver.envs(variables(&home)).output().unwrap());
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
    assert!(told.out.ends_with("both ran it\n"), "{}", told.out);
}

/// What `sdk env` prints, as a program reads it.
pub(crate) fn variables(home: &Home) -> Vec<(String, String)> {
    let printed = home.ok(&["sdk", "env", "--dotenv"]);
    let pair = |line: &str| {
        let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("not a variable: {line}"));
        (name.to_owned(), value.trim_matches('"').to_owned())
    };
    printed.lines().map(pair).collect()
}
