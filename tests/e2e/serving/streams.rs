//! What takes long: an answer that comes in pieces while its replica is replaced, and a log that is followed.

use super::{deployment, home, restart::uri, serving};
use crate::harness::{Home, said, signal};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

/// Answers with an event every 200 ms, until a file is there.
const EVENTS: &str = r#"import os, time
from flask import Response

def init():
    pass

def run(data):
    def events():
        number = 0
        while not os.path.exists(os.environ["DONE"]):
            number += 1
            yield f"event {number}\n"
            time.sleep(0.2)
        yield "the last event\n"
    return Response(events(), 200)
"#;

fn key(home: &Home) -> String {
    let keys = home.json(&["online-endpoint", "get-credentials", "-n", "iris"]);
    format!("authorization: Bearer {}", keys["primaryKey"].as_str().unwrap())
}

#[test]
fn a_stream_outlives_the_replacement_of_its_replica() {
    let home = home();
    home.file("src/score.py", EVENTS);
    home.ok(&["online-endpoint", "create", "-n", "iris", "-o", "none"]);
    let done = home.path().join("done");
    // What nobody speaks for goes after eleven seconds.
    let requests = "request_settings: {request_timeout_ms: 1000, max_queue_wait_ms: 20000}";
    let file = deployment(&home, "blue", requests);
    let text = fs::read_to_string(home.path().join(&file)).unwrap();
    let told = |name: &str| {
        let variables = format!("{{NAME: {name}, DONE: '{}'}}", done.display());
        home.file(&file, &text.replace("{NAME: blue}", &variables));
    };
    told("first");
    home.ok(&["online-deployment", "create", "-f", &file, "--all-traffic", "-o", "none"]);
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--no-buffer", "--cacert"]).arg(home.home().join("keys/authority.pem"));
    curl.args(["-H", &key(&home), "-d", "{}", &uri(&home)]);
    let mut stream = curl.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(stream.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("event 1"));
    told("second");
    home.ok(&["online-deployment", "update", "-f", &file, "-o", "none"]);
    // Fifteen seconds of events: past the time after which replicas of silent routers go.
    assert_eq!(lines.by_ref().take(75).filter(|line| line.starts_with("event ")).count(), 75, "it broke off");
    home.file("done", "");
    assert_eq!(lines.last().as_deref(), Some("the last event"));
    assert!(stream.wait().unwrap().success());
    home.until("the old replica is gone", || {
        home.show_deployment("blue")["properties"]["peregrine.state"] == "1 of 1 replicas are ready"
    });
}

#[test]
fn a_log_is_followed_and_every_line_is_shown_once() {
    let home = serving("");
    let args = ["online-deployment", "get-logs", "-n", "blue", "-e", "iris", "--follow", "--lines", "1"];
    let mut follow = home.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines().map(Result::unwrap);
    // Before its first line it is not known to look.
    assert!(lines.next().is_some(), "the log of a replica that serves is not empty");
    for word in ["one", "two"] {
        home.ask(&json!({ "word": word }), &[]).must(0, &[]);
        let asked = format!("blue is asked for {{\"word\": \"{word}\"}}");
        assert!(lines.by_ref().any(|line| line.contains(&asked)), "the log ends before {word}");
    }
    signal(i32::try_from(follow.id()).unwrap(), "INT");
    let rest: Vec<String> = lines.collect();
    assert!(!rest.iter().any(|line| line.contains("\"word\"")), "{rest:?}");
    assert!(follow.wait().unwrap().success());
    let named = ["online-deployment", "get-logs", "-n", "blue", "-e", "iris", "--replica"];
    let nobody = home.run(&[&named[..], &["nobody"]].concat());
    nobody.must(2, &["there is no replica `nobody` (there are: iris_blue_"]);
    let replica = nobody.err.split("there are: ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    assert!(home.ok(&[&named[..], &[replica]].concat()).contains("blue is asked for"));
}

#[test]
fn a_request_is_found_in_the_router_s_log_and_figures() {
    let home = serving("");
    home.ask(&json!({"raise": "a fault of mine"}), &[]).must(1, &["answered 502"]);
    let told = || fs::read_to_string(home.home().join("logs/router.log")).unwrap_or_default();
    home.until("the line of the request", || told().contains("\"status\":502"));
    let line = told().lines().find(|line| line.contains("\"status\":502")).unwrap().to_owned();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["endpoint"], &line["deployment"]), (&json!("iris"), &json!("blue")), "{line}");
    let token = fs::read_to_string(home.home().join("keys/user.token")).unwrap();
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--cacert"]).arg(home.home().join("keys/authority.pem"));
    let server: Value = serde_json::from_str(&fs::read_to_string(home.home().join("server.json")).unwrap()).unwrap();
    curl.args(["-H", &format!("authorization: Bearer {}", token.trim())]);
    curl.arg(format!("{}/metrics", server["url"].as_str().unwrap()));
    let metrics = said(curl.output().unwrap()).out;
    let wanted = "peregrine_router_requests_total{endpoint=\"iris\",deployment=\"blue\",code=\"502\"} 1";
    assert!(metrics.lines().any(|line| line == wanted) && metrics.ends_with("# EOF\n"), "{metrics}");
}
