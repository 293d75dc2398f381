//! A rollout moves traffic by steps, takes it back from a bad deployment, and says what it did; so does the load test.

use super::{
    deployment,
    restart::{Running, disturbed},
    serving,
};
use crate::harness::{Home, said};
use serde_json::{Value, json};
use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

const ROOMY: &str = "request_settings: {max_concurrent_requests_per_instance: 4, max_queue_wait_ms: 20000, \
                     request_timeout_ms: 20000}";
/// Steps that a test has the time for. What a busy machine does to times is not what is tested.
const QUICK: [&str; 8] =
    ["--steps", "20,100", "--step-duration", "2s", "--min-requests", "10", "--max-slowdown", "1000"];

fn two() -> Home {
    let home = serving(ROOMY);
    let file = deployment(&home, "green", ROOMY);
    home.ok(&["online-deployment", "create", "-f", &file, "-o", "none"]);
    home
}

fn rollout(home: &Home, request: &Value) -> (Option<i32>, String, Value) {
    home.file("probe.json", &request.to_string());
    let mut args = vec!["online-deployment", "rollout", "-n", "green", "-e", "iris", "-o", "json"];
    args.extend(QUICK);
    args.extend(["-r", "probe.json", "--rps", "10"]);
    let said = home.run(&args);
    let report = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}\n{}", said.out, said.err));
    (said.code, said.err, report)
}

#[test]
fn a_good_deployment_gets_all_traffic_and_a_bad_one_gives_it_back() {
    let home = two();
    let (code, told, report) = rollout(&home, &json!({"raise": "bad weights"}));
    assert_eq!((code, &report["outcome"]), (Some(1), &json!("rolled back")), "{told}");
    assert!(report["because"].as_str().unwrap().contains("requests failed"), "{report}");
    assert!(told.contains("traffic is blue=100 again"), "{told}");
    assert_eq!(traffic(&home), json!({"blue": 100}));

    let (code, told, report) = rollout(&home, &json!({"x": 1}));
    assert_eq!((code, &report["outcome"]), (Some(0), &json!("completed")), "{told}");
    let verdicts: Vec<&Value> = report["steps"].as_array().unwrap().iter().map(|step| &step["verdict"]).collect();
    assert_eq!(verdicts, [&json!("good"), &json!("good")], "{report}");
    assert_eq!(traffic(&home), json!({"green": 100}));
    assert_eq!(home.answer(&[])["by"], "green");
}

#[test]
fn a_deployment_that_is_slow_gives_the_traffic_back() {
    let home = two();
    home.file("probe.json", "{\"sleep\": 0.3}");
    let args = ["online-deployment", "rollout", "-n", "green", "-e", "iris", "-o", "json", "--steps", "20,100"];
    let rules = ["--step-duration", "5s", "--min-requests", "5", "--max-latency-ms", "100"];
    let said = home.run(&[&args[..], &rules, &["-r", "probe.json", "--rps", "3"]].concat());
    said.must(1, &["rolled back", "traffic is blue=100 again"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert!(report["because"].as_str().unwrap().contains("95 of 100"), "{report}");
    assert_eq!((&report["steps"][0]["errors"], &report["steps"][0]["verdict"]), (&json!(0), &json!("bad")), "{report}");
    assert_eq!(traffic(&home), json!({"blue": 100}));
}

#[test]
fn a_rollout_judges_by_the_traffic_of_a_router_elsewhere() {
    let home = two();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _router = Running::router(home.command(&["router", "--server", "--listen", &address.to_string()]));
    let uri = format!("http://{address}/api/v1/endpoint/iris/score");
    let mut outcome = None;
    let lost = disturbed(&home, &uri, |go_on| {
        go_on();
        // Without requests of its own, it has nothing else to judge by.
        let args = ["online-deployment", "rollout", "-n", "green", "-e", "iris", "-o", "json"];
        outcome = Some(home.run(&[&args[..], &QUICK].concat()));
    });
    let said = outcome.unwrap();
    assert_eq!(said.code, Some(0), "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["outcome"], "completed", "{report}");
    assert!(report["steps"].as_array().unwrap().iter().all(|step| step["requests"].as_u64() >= Some(10)), "{report}");
    assert_eq!((traffic(&home), lost), (json!({"green": 100}), vec![]));
}

#[test]
fn ctrl_c_leaves_the_traffic_where_the_message_says() {
    let home = two();
    home.file("probe.json", "{}");
    let args =
        ["online-deployment", "rollout", "-n", "green", "-e", "iris", "--steps", "20,100", "--step-duration", "10m"];
    let mut command = home.command(&args);
    command.args(["-r", "probe.json"]).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let running = command.spawn().unwrap();
    home.until("the first step", || traffic(&home) == json!({"blue": 80, "green": 20}));
    crate::harness::signal(i32::try_from(running.id()).unwrap(), "INT");
    said(running.wait_with_output().unwrap()).must(130, &["interrupted; traffic stays blue=80 green=20", "goes back"]);
    assert_eq!(traffic(&home), json!({"blue": 80, "green": 20}));
}

#[test]
fn a_load_test_keeps_its_pace_whatever_the_model_does() {
    let home = serving("request_settings: {max_concurrent_requests_per_instance: 1, max_queue_wait_ms: 100}");
    home.file("slow.json", "{\"sleep\": 0.5}");
    let begin = Instant::now();
    let said = home.run(&[
        "online-endpoint",
        "test",
        "-n",
        "iris",
        "-r",
        "slow.json",
        "--rps",
        "20",
        "--duration",
        "3s",
        "-o",
        "json",
    ]);
    assert!(begin.elapsed() < Duration::from_secs(30));
    said.must(1, &["requests failed; the first:"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(report["requests"], 60, "{report}");
    assert!(
        report["codes"]["503"].as_u64().unwrap() > 20,
        "one slot of half a second cannot serve 20 a second: {report}"
    );
}

fn traffic(home: &Home) -> Value {
    let shares = home.json(&["online-endpoint", "show", "-n", "iris"])["traffic"].clone();
    let kept = shares.as_object().unwrap().iter().filter(|(_, share)| **share != json!(0));
    kept.map(|(name, share)| (name.clone(), share.clone())).collect::<serde_json::Map<_, _>>().into()
}
