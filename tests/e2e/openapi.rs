//! The server against its own description: schemathesis reads `/openapi.json` and tries everything it allows and much
//! that it does not, with a token and without.

use crate::{
    harness::{Home, is_long, said},
    sdk::venv,
};
use std::{fs, process::Command};

const VERSION: &str = "4.32.5";
/// Rules that do not hold here by design. Bodies are described by their envelope only, so a body that fits the envelope
/// may still make no sense; and a job is a record that stays when it is deleted.
const NOT_OURS: &str = "positive_data_acceptance,use_after_free";

#[test]
fn nothing_the_description_allows_breaks_the_server() {
    let home = Home::new();
    home.ok(&["server", "start"]);
    let token = fs::read_to_string(home.home().join("keys/user.token")).unwrap();
    tried(&home, "with a token", &["-H", &format!("Authorization: Bearer {}", token.trim())]);
    home.is_well();
}

#[test]
fn nothing_a_stranger_sends_breaks_the_server() {
    let home = Home::new();
    home.ok(&["server", "start"]);
    tried(&home, "without a token", &[]);
    home.is_well();
}

fn tried(home: &Home, how: &str, more: &[&str]) {
    let Some(python) = venv::with("schemathesis", VERSION, &[]) else {
        crate::skip::skip(&format!("schemathesis {VERSION} is not kept here and the package index cannot be reached"));
        return;
    };
    // Names that exist, so that more than 404 is seen; the routes of agents and routers wait for news by design.
    let settings = "[parameters]\nworkspace = \"default\"\ngroup = \"default\"\nlocation = \"local\"\n\
                    subscription = \"00000000-0000-0000-0000-000000000000\"\n";
    let config = home.file("schemathesis.toml", settings);
    let url = home.json(&["server", "status"])["url"].as_str().unwrap().to_owned();
    let mut st = Command::new("timeout");
    st.arg("600").arg(python.with_file_name("st")).arg("--config-file").arg(config).arg("run");
    st.arg(format!("{url}/openapi.json")).arg("--tls-verify").arg(home.home().join("keys/authority.pem"));
    // As many requests are made up for each operation.
    let examples = if is_long() { "8" } else { "2" };
    // MLflow's calls are the same under each of their prefixes, so one is tried. Uploads in parts (`mpu`) answer 501, the
    // status by which MLflow's clients know to send a file whole; `tests/mlflow` holds it against the reference.
    st.args([
        "-n",
        examples,
        "--exclude-path-regex",
        "^/agent/|^/router/|^/mlflow/v2|^/api/2.0/mlflow|/mpu/",
        "--no-color",
        "--request-timeout",
        "20",
    ]);
    st.args(["--exclude-checks", NOT_OURS, "--generation-database", "none", "--seed", "7423", "--continue-on-failure"]);
    let told = said(st.args(more).current_dir(home.path()).output().unwrap());
    let summary = told.out.find("= SUMMARY =").map_or(told.out.as_str(), |at| &told.out[at..]);
    eprintln!("schemathesis {how}\n{summary}");
    assert_eq!(told.code, Some(0), "{}\n{}", told.out, told.err);
}
