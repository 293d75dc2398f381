//! Models that do not come up, or break while they serve: whoever deploys is told what broke, in the words of the model.

use super::{
    SCORE, deployment, home,
    restart::{CALLERS, disturbed, uri},
    serving,
};
use crate::harness::{Home, processes_with, signal};
use serde_json::json;
use std::fs;

/// What is wrong with a scoring script, and what must be said of it.
const BROKEN: [(&str, &str, &[&str]); 4] = [
    ("a syntax error", "def init(:\n    pass\n", &["SyntaxError"]),
    ("no init", "def run(data):\n    return data\n", &["init"]),
    (
        "an init that raises",
        "def init():\n    raise RuntimeError('no such colour')\ndef run(data):\n    return data\n",
        &["Traceback", "RuntimeError: no such colour", "in init"],
    ),
    (
        "a package that is not there",
        "import no_such_package\ndef init(): pass\ndef run(data): return data\n",
        &["no_such_package"],
    ),
];

#[test]
fn a_model_that_cannot_load_says_why_in_the_terminal() {
    let home = home();
    home.ok(&["online-endpoint", "create", "-n", "iris", "-o", "none"]);
    for (what, script, words) in BROKEN {
        home.file("src/score.py", script);
        let file = deployment(&home, "blue", "");
        let said = home.run(&["online-deployment", "create", "-f", &file, "--all-traffic"]);
        eprintln!("{what}:\n{}", said.err);
        said.must(1, words);
        assert_eq!(home.show_deployment("blue")["provisioning_state"], "Failed", "{what}");
        let endpoint = home.json(&["online-endpoint", "show", "-n", "iris"]);
        assert_eq!(endpoint["traffic"], json!({}), "{what}: traffic went to a deployment that failed");
    }
    // The same deployment, mended, comes up.
    home.file("src/score.py", SCORE);
    let file = deployment(&home, "blue", "");
    home.ok(&["online-deployment", "create", "-f", &file, "--all-traffic", "-o", "none"]);
    assert_eq!(home.answer(&[])["by"], "blue");
}

#[test]
fn a_replica_that_is_killed_is_replaced() {
    let home = serving("");
    let first = replicas(&home);
    assert!(!first.is_empty(), "no process serves");
    for pid in &first {
        signal(*pid, "KILL");
    }
    home.until("another replica to answer", || {
        let now = replicas(&home);
        !now.is_empty() && now.iter().all(|pid| !first.contains(pid)) && home.ask(&json!({}), &[]).code == Some(0)
    });
}

#[test]
fn a_replica_that_is_killed_under_load_loses_what_it_was_at_and_nothing_else() {
    let more = "request_settings: {max_concurrent_requests_per_instance: 4, max_queue_wait_ms: 20000, request_timeout_ms: 20000}";
    let home = serving(more);
    let file = deployment(&home, "blue", more);
    let text = fs::read_to_string(home.path().join(&file)).unwrap();
    home.file(&file, &text.replace("instance_count: 1", "instance_count: 2"));
    home.ok(&["online-deployment", "update", "-f", &file, "-o", "none"]);
    let uri = uri(&home);
    let ready = || home.show_deployment("blue")["properties"]["peregrine.state"].clone();
    home.until("two replicas", || ready() == "2 of 2 replicas are ready");
    let lost = disturbed(&home, &uri, |go_on| {
        go_on();
        // All processes of one replica: those that work in the same folder.
        let at = |pid: &i32| fs::read_link(format!("/proc/{pid}/cwd")).ok();
        let all = replicas(&home);
        let first = at(&all[0]);
        for pid in all.iter().filter(|pid| at(pid) == first) {
            signal(*pid, "KILL");
        }
        go_on();
        home.until("another in its place", || ready() == "2 of 2 replicas are ready" && replicas(&home) != all);
        go_on();
    });
    assert!(lost.len() <= CALLERS, "one call a caller is under way at a time: {lost:?}");
    assert!(lost.iter().all(|code| code == "502"), "the caller is told whose fault it was: {lost:?}");
}

#[test]
fn the_server_comes_back_and_replicas_have_served_on() {
    let home = serving("");
    let before = replicas(&home);
    home.ok(&["server", "stop"]);
    assert_eq!(replicas(&home), before, "a server that stops takes no replica with it");
    home.until("the endpoint to answer again", || home.ask(&json!({}), &[]).code == Some(0));
    assert_eq!(replicas(&home), before);
    assert_eq!(home.show_deployment("blue")["provisioning_state"], "Succeeded");
}

/// Processes of replicas of this home: those that work in the folder of an attempt.
pub(super) fn replicas(home: &Home) -> Vec<i32> {
    let attempts = home.home().join("agent/attempts");
    let works_there = |pid: i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&attempts));
    let mut pids: Vec<i32> = processes_with("").into_iter().map(|(pid, _)| pid).collect();
    pids.retain(|pid| works_there(*pid));
    pids.sort_unstable();
    pids
}

#[test]
fn endpoints_show_the_operators_certificate_and_come_up_whoever_believes_it() {
    let home = home();
    let settings =
        format!("[server]\ntls_cert = \"{0}/server.pem\"\ntls_key = \"{0}/server.key\"\n", home.path().display());
    home.configure(&settings);
    crate::certificates::certify(&home, "DNS:ml.example.org");
    home.ok(&["online-endpoint", "create", "-n", "iris", "-o", "none"]);
    let file = deployment(&home, "blue", "");
    home.ok(&["online-deployment", "create", "-f", &file, "--all-traffic", "-o", "none"]);
    // This machine does not believe it, and no command pretends to.
    home.ask(&json!({}), &[]).must(4, &["did not answer", "certificate"]);
    home.ok(&["server", "stop", "-o", "none"]);
    crate::certificates::certify(&home, "IP:127.0.0.1");
    home.configure(&format!("{settings}authority_file = \"{}/ca.pem\"\n", home.path().display()));
    home.ok(&["server", "start", "-o", "none"]);
    home.until("the replica", || home.ask(&json!({}), &[]).code == Some(0));
    assert_eq!(home.answer(&[])["by"], "blue");
}
