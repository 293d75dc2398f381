//! Every status code that callers of an endpoint can meet, provoked one by one, and what the command line makes of it.

use super::{deployment, serving};
use crate::harness::{Home, said};
use serde_json::json;
use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

const TIGHT: &str =
    "request_settings: {max_concurrent_requests_per_instance: 1, max_queue_wait_ms: 300, request_timeout_ms: 8000}";

#[test]
fn every_status_code_can_be_met_and_is_explained() {
    let home = serving(TIGHT);
    home.ask(&json!({}), &[]).must(0, &[]);
    assert_eq!(status(&home, &[]), "401", "without a key");
    assert_eq!(status(&home, &["-H", "authorization: Bearer wrong"]), "401");
    home.ask(&json!({}), &["-d", "nobody"]).must(2, &["answered 404", "nobody"]);
    home.ask(&json!({"raise": "a fault of mine"}), &[]).must(1, &["answered 502", "answered 500", "get-logs"]);
    assert!(home.deployment_log("blue").contains("ValueError: a fault of mine"));
    home.ask(&json!({"sleep": 12}), &[]).must(1, &["answered 504", "request_timeout_ms"]);
    busy(&home);
    home.until("the replica to be free again", || home.ask(&json!({}), &[]).code == Some(0));
    wrong_keys(&home);
    home.traffic("blue=0");
    home.ask(&json!({}), &[]).must(2, &["answered 404", "traffic"]);
}

#[test]
fn a_token_opens_its_own_endpoint_and_no_other() {
    let home = super::home();
    for name in ["iris", "rose"] {
        home.ok(&["online-endpoint", "create", "-n", name, "--auth-mode", "aml_token", "-o", "none"]);
    }
    let file = deployment(&home, "blue", TIGHT);
    home.ok(&["online-deployment", "create", "-f", &file, "--all-traffic", "-o", "none"]);
    home.ask(&json!({}), &[]).must(0, &[]);
    let token = |name: &str| {
        let given = home.json(&["online-endpoint", "get-credentials", "-n", name]);
        format!("authorization: Bearer {}", given["accessToken"].as_str().unwrap())
    };
    assert_eq!(status(&home, &["-H", &token("iris")]), "200");
    // Each endpoint signs with a key of its own, so the token of another is one that nobody knows.
    assert_eq!(status(&home, &["-H", &token("rose")]), "401");
}

#[test]
fn a_key_can_be_changed_while_callers_use_the_other() {
    let home = serving(TIGHT);
    let keys = home.json(&["online-endpoint", "get-credentials", "-n", "iris"]);
    let with = |key: &str| format!("authorization: Bearer {}", keys[key].as_str().unwrap());
    home.ok(&["online-endpoint", "regenerate-keys", "-n", "iris", "--key-type", "primary"]);
    assert_eq!(status(&home, &["-H", &with("secondaryKey")]), "200");
    home.until("the old key to be refused", || status(&home, &["-H", &with("primaryKey")]) == "401");
    home.ask(&json!({}), &[]).must(0, &[]);
}

/// While the one slot is taken, a second request waits its time and is turned away.
fn busy(home: &Home) {
    thread::scope(|scope| {
        let slow =
            scope.spawn(|| said(home.command(&invoke("slow.json", home, &json!({"sleep": 3.0}))).output().unwrap()));
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let turned_away = home.ask(&json!({}), &[]);
            if turned_away.code == Some(4) {
                turned_away.must(4, &["answered 503", "max_queue_wait_ms"]);
                break;
            }
            assert!(Instant::now() < deadline && !slow.is_finished(), "no request was turned away");
        }
        slow.join().unwrap().must(0, &[]);
    });
}

fn invoke<'a>(file: &'a str, home: &Home, request: &serde_json::Value) -> [&'a str; 6] {
    home.file(file, &request.to_string());
    ["online-endpoint", "invoke", "-n", "iris", "-r", file]
}

/// A flood of wrong keys is told to wait, and right keys are not held up by it.
fn wrong_keys(home: &Home) {
    let uri = home.json(&["online-endpoint", "show", "-n", "iris"])["scoring_uri"].as_str().unwrap().to_owned();
    let answers = codes(home, &["-H", "authorization: Bearer wrong"], &vec![uri.as_str(); 100]);
    assert!(answers.iter().any(|code| code == "429"), "nobody was told to slow down: {answers:?}");
    home.ask(&json!({}), &[]).must(0, &[]);
}

/// The status of a request made by hand.
fn status(home: &Home, more: &[&str]) -> String {
    let uri = home.json(&["online-endpoint", "show", "-n", "iris"])["scoring_uri"].as_str().unwrap().to_owned();
    codes(home, more, &[&uri]).remove(0)
}

/// The statuses of requests made by hand, one after the other on one connection.
pub(super) fn codes(home: &Home, more: &[&str], uris: &[&str]) -> Vec<String> {
    let authority = home.home().join("keys/authority.pem");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--write-out", "%{http_code}\n", "--cacert"]).arg(authority).args(more).args([
        "-H",
        "content-type: application/json",
        "-d",
        "{}",
    ]);
    for uri in uris {
        curl.args(["--output", "/dev/null", uri]);
    }
    said(curl.output().unwrap()).out.lines().map(str::to_owned).collect()
}
