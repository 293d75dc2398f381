//! Every status code that callers of an endpoint can meet, provoked one by one, and what the command line makes of it.

use super::{deployment, serving};
use crate::harness::{Home, said};
use serde_json::{Value, json};
use std::{
    fs,
    process::{Command, Stdio},
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
    home.ask(&json!({"die": true}), &[]).must(1, &["answered 502"]);
    home.until("another worker to answer", || home.ask(&json!({}), &[]).code == Some(0));
    assert_eq!(too_large(&home), "413");
    home.ask(&json!({"sleep": 9}), &[]).must(1, &["answered 504", "request_timeout_ms"]);
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
    // Each endpoint signs with a key of its own; whose a token is, its router knows all the same.
    assert_eq!(status(&home, &["-H", &token("rose")]), "403");
    assert_eq!(status(&home, &["-H", &token("rose").replace("rose", "tulip")]), "401");
}

#[test]
fn people_open_an_endpoint_by_who_they_are_and_what_they_may() {
    let home = super::home();
    home.ok(&["online-endpoint", "create", "-n", "iris", "--auth-mode", "aad_token", "-o", "none"]);
    let make = |name: &str, role: &str| home.json(&["principal", "create", "--name", name, "--role", role]);
    let (ana, reader) = (make("ana", "contributor"), make("bo", "reader"));
    let own = |of: &Value| format!("authorization: Bearer {}", of["token"].as_str().unwrap());
    // No deployment is there, which only those who may call are told.
    home.until("the router to know ana", || status(&home, &["-H", &own(&ana)]) == "404");
    assert_eq!(status(&home, &["-H", &own(&reader)]), "403");
    assert_eq!(status(&home, &["-H", &web_token(&home, &ana)]), "404");
    assert_eq!(status(&home, &["-H", &web_token(&home, &reader)]), "403");
    assert_eq!(status(&home, &["-H", &format!("{}x", web_token(&home, &ana))]), "401");
    home.ask(&json!({}), &[]).must(2, &["answered 404"]);
    home.ok(&["principal", "revoke", "--id", ana["client_id"].as_str().unwrap()]);
    home.until("ana to be refused", || status(&home, &["-H", &own(&ana)]) == "401");
}

/// The header of someone with a token as clients of Azure ask for it.
fn web_token(home: &Home, of: &Value) -> String {
    let server = home.json(&["server", "status"])["url"].as_str().unwrap().to_owned();
    let text = |key: &str| of[key].as_str().unwrap();
    let form = format!(
        "grant_type=client_credentials&client_id={}&client_secret={}&scope=https://ml.azure.com/.default",
        text("client_id"),
        text("client_secret")
    );
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--cacert"]).arg(home.home().join("keys/authority.pem"));
    let said = said(curl.args(["-d", &form, &format!("{server}/adfs/oauth2/v2.0/token")]).output().unwrap());
    let given: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
    format!("authorization: Bearer {}", given["access_token"].as_str().unwrap())
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

/// While the one slot is taken, a second request waits its time and is turned away. On a busy machine the first may be over
/// before the second is there; then another takes its place.
fn busy(home: &Home) {
    let slow = invoke("slow.json", home, &json!({"sleep": 3.0}));
    home.until("a request to be turned away", || {
        let mut taken = home.command(&slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut turned_away = false;
        while !turned_away && taken.try_wait().unwrap().is_none() {
            let said = home.ask(&json!({}), &[]);
            turned_away = said.code == Some(4);
            said.must(
                if turned_away { 4 } else { 0 },
                if turned_away { &["answered 503", "max_queue_wait_ms"] } else { &[] },
            );
        }
        taken.wait().unwrap();
        turned_away
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

/// The answer to a body that is over the limit by a byte.
fn too_large(home: &Home) -> String {
    let big = home.file("big", "");
    fs::File::options().write(true).open(&big).unwrap().set_len((100 << 20) + 1).unwrap();
    let key = home.json(&["online-endpoint", "get-credentials", "-n", "iris"])["primaryKey"].clone();
    let uri = home.json(&["online-endpoint", "show", "-n", "iris"])["scoring_uri"].clone();
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--request", "POST", "--cacert"]);
    curl.arg(home.home().join("keys/authority.pem")).arg("--upload-file").arg(&big);
    curl.arg("-H").arg(format!("authorization: Bearer {}", key.as_str().unwrap())).arg(uri.as_str().unwrap());
    said(curl.output().unwrap()).out
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
