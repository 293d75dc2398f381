//! Replicas as they are: real keeper and agent processes, the real inference server, against a stand-in for the server.

mod container;
mod mlflow;
pub(crate) mod site;

use crate::pod::house::{kill, skipped, wait_for};
use domain::{Outcome, Place, Plan, PlannedInput, Probe, Resources, ServingKind, assignment::InputMode, report::What};
use site::{Site, command, probe, script};
use std::{fs, net::TcpStream};

const GOOD: &str = "
import json, os

def init():
    global weights
    with open(os.path.join(os.environ['AZUREML_MODEL_DIR'], 'model', 'w.txt')) as file:
        weights = file.read()

def run(data):
    asked = json.loads(data)
    if asked.get('fail'):
        raise ValueError('no such thing')
    while asked.get('loop'):
        pass
    if asked.get('eat'):
        return len(bytearray(asked['eat']))
    return {'weights': weights, 'server': os.getppid()}
";

/// A little server of the standard library: what it answers to `/` is in a file.
const LITTLE: &str = r#"exec python3 -uc '
import http.server, os
print("little server", os.getpid())
class Handler(http.server.BaseHTTPRequestHandler):
    count = 0
    def do_GET(self):
        word = open(os.environ["F"] + "/status").read().strip()
        Handler.count += 1
        with open(os.environ["F"] + "/asked", "a") as asked:
            asked.write("x")
        if self.path == "/eat":
            print(len(bytearray(1 << 30)))
        self.send_response((200, 503)[Handler.count % 2] if word == "flap" else int(word))
        self.end_headers()
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["SERVER_PORT"])), Handler).serve_forever()'"#;

fn with_model(mut plan: Plan, site: &Site) -> Plan {
    let model = site.path().join("registered/model");
    fs::create_dir_all(&model).unwrap();
    fs::write(model.join("w.txt"), "heavy").unwrap();
    let place = Place::Folder { path: model };
    let input = PlannedInput::Data { place, mode: InputMode::RoMount, uri: "azureml:m:1".into(), file: false };
    plan.inputs.insert("model".into(), input);
    plan
}

#[test]
fn a_script_with_its_model_answers_on_loopback_alone_and_is_stopped_politely() {
    let Some(site) = Site::new() else { return };
    let plan = with_model(script(&site, GOOD), &site);
    let house = site.house(plan, &[]);
    let address = house.ready();
    let (status, body) = house.post("/score", "{}");
    assert!(status == 200 && body.contains("\"weights\": \"heavy\""), "{status} {body}");
    assert!(address.ip().is_loopback());
    if let Some(own) = site::own_address() {
        assert!(TcpStream::connect((own, address.port())).is_err(), "nobody passes by the router");
    }
    assert!(site.log("system_logs/storage-initializer.log").contains("input `model` is there: "));
    house.server.stop(0);
    assert!(matches!(house.outcome(), Outcome::Canceled { .. }));
    assert!(TcpStream::connect(address).is_err(), "nothing is left of it");
    assert!(site.log("user_logs/std_log.txt").contains("Users's init has completed successfully"));
}

#[test]
fn a_script_that_cannot_serve_says_why_in_its_authors_terms() {
    let Some(site) = Site::new() else { return };
    for (text, code, told, line) in [
        ("def init(:\n    pass\n", "UserScriptImportError", "SyntaxError", "def init(:"),
        ("import nowhere_to_be_found\n", "UserScriptImportError", "nowhere_to_be_found", "line 1"),
        ("def run(data):\n    return 1\n", "UserScriptFunctionNotFound", "init()", "init()"),
        ("def init():\n    pass\n", "UserScriptFunctionNotFound", "run()", "run()"),
        (
            "def init():\n    raise RuntimeError('boom')\ndef run(d):\n    pass\n",
            "UserScriptInitFailed",
            "boom",
            "line 2, in init",
        ),
        (&GOOD.replace("'w.txt'", "'v.txt'"), "UserScriptInitFailed", "v.txt", "FileNotFoundError"),
    ] {
        let house = site.house(with_model(script(&site, text), &site), &[]);
        let failure = house.failure();
        assert_eq!(failure.code, code, "{failure:?}");
        assert!(failure.message.contains(told) && failure.message.contains("`score.py`"), "{failure:?}");
        assert!(failure.last_lines.contains(line), "{failure:?}");
        assert!(
            !failure.last_lines.contains("UserScriptException"),
            "the server's own frames are left out: {failure:?}"
        );
    }
}

#[test]
fn what_is_missing_is_found_out_before_anything_is_built() {
    let Some(site) = Site::new() else { return };
    let mut absent = with_model(script(&site, GOOD), &site);
    let place = Place::Folder { path: "/nowhere/model".into() };
    let input = PlannedInput::Data { place, mode: InputMode::RoMount, uri: "azureml:m:1".into(), file: false };
    absent.inputs.insert("model".into(), input);
    let mut elsewhere = script(&site, GOOD);
    elsewhere.serve.as_mut().unwrap().kind = ServingKind::ScoringScript { entry: "src/score.py".into() };
    let mut outside = script(&site, GOOD);
    outside.serve.as_mut().unwrap().kind = ServingKind::ScoringScript { entry: "../work/score.py".into() };
    let mut bare = script(&site, GOOD);
    bare.serve.as_mut().unwrap().kind = ServingKind::MlflowModel;
    let mut image = command("true");
    image.environment.image = Some("localhost/none:1".into());
    for (plan, code, told) in [
        (absent, "DataAccessError", "`/nowhere/model`"),
        (elsewhere, "UserScriptNotFound", "`src/score.py`"),
        (outside, "UserScriptNotFound", "`../work/score.py`"),
        (bare, "UserError.NotAnMlflowModel", "`MLmodel`"),
        (image, "NoContainerEngine", "podman"),
    ] {
        let house = site.house(plan, &[("PATH", &site.path_without_engine())]);
        let failure = house.failure();
        assert!(failure.code == code && failure.message.contains(told), "{failure:?}");
        assert!(!site.log("system_logs/environment.log").contains("building"), "{failure:?}");
    }
}

#[test]
fn a_request_that_fails_is_the_requests_problem() {
    let Some(site) = Site::new() else { return };
    let house = site.house(with_model(script(&site, GOOD), &site), &[]);
    house.ready();
    let (status, body) = house.post("/score", "{\"fail\": true}");
    assert!(status == 500 && body.contains("scoring script"), "{status} {body}");
    assert_eq!(house.post("/score", "{}").0, 200);
    assert!(house.serving().pop().unwrap().0, "it stays ready: {:?}", house.serving());
}

#[test]
fn a_replica_that_answers_no_more_is_ended_and_says_what_was_seen() {
    let Some(site) = Site::new() else { return };
    let mut plan = with_model(script(&site, GOOD), &site);
    plan.serve.as_mut().unwrap().liveness = Probe { timeout_ms: 300, failure_threshold: 3, ..probe() };
    let house = site.house(plan, &[]);
    house.ready();
    let stuck = house.send("/score", "{\"loop\": true}");
    let failure = house.failure();
    assert_eq!(failure.code, "ReplicaUnhealthy", "{failure:?}");
    assert!(failure.message.contains("3 times in a row (`GET /` on port"), "{failure:?}");
    assert!(failure.message.contains("no answer within 300 ms"), "{failure:?}");
    drop(stuck);
}

#[test]
fn a_port_that_never_opens_is_a_failure_with_the_end_of_the_log() {
    let Some(site) = Site::new() else { return };
    let mut plan = command("echo busy with other things; exec sleep 600");
    plan.serve.as_mut().unwrap().start_seconds = 2;
    let failure = site.house(plan, &[]).failure();
    assert_eq!(failure.code, "ReplicaNotReady");
    assert!(failure.message.contains("within 2 s") && failure.message.contains("nothing listens there"), "{failure:?}");
    assert_eq!(failure.last_lines, "busy with other things");
}

#[test]
fn a_replica_that_ends_by_itself_or_is_killed_says_how() {
    let Some(site) = Site::new() else { return };
    let failure = site.house(command("echo done"), &[]).failure();
    assert!(failure.code == "ReplicaEnded" && failure.last_lines == "done", "{failure:?}");
    let house = site.house(command(LITTLE), &[]);
    house.answers("200");
    house.ready();
    kill(house.pid(), "KILL");
    let failure = house.failure();
    assert_eq!((failure.code.as_str(), failure.signal), ("UserError.Signal", Some(9)), "{failure:?}");
    assert!(failure.message.contains("SIGKILL"), "{failure:?}");
}

#[test]
fn only_what_lasts_makes_a_replica_unready_or_ready_again() {
    let Some(site) = Site::new() else { return };
    let mut plan = command(LITTLE);
    let serving = plan.serve.as_mut().unwrap();
    serving.readiness = Probe { path: Some("/".into()), failure_threshold: 2, success_threshold: 1, ..probe() };
    let house = site.house(plan, &[]);
    house.answers("503");
    wait_for("the first word on it", || !house.serving().is_empty());
    house.answers("200");
    house.ready();
    house.answers("flap");
    house.wait_for_questions(12);
    assert_eq!(house.serving().iter().filter(|(ready, _)| *ready).count(), 1, "{:?}", house.serving());
    let told = house.serving().len();
    house.answers("503");
    wait_for("it to be told", || house.serving().len() == told + 1);
    let (ready, text) = house.serving().pop().unwrap();
    assert!(!ready && text.contains("status 503"), "{text}");
    house.answers("200");
    wait_for("it to be told", || house.serving().len() == told + 2);
    assert!(house.serving().pop().unwrap().0);
}

#[test]
fn an_agent_that_is_killed_comes_back_to_a_replica_that_served_on() {
    let Some(site) = Site::new() else { return };
    let house = site.house(with_model(script(&site, GOOD), &site), &[]);
    let address = house.ready();
    let (_, before) = house.post("/score", "{}");
    let told = house.serving().len();
    let first = house.house.kill_agent();
    assert_eq!(house.post("/score", "{}").1, before, "no agent is needed to answer");
    wait_for("another agent", || house.house.agent().is_some_and(|pid| pid != first));
    wait_for("it to be told again", || house.serving().len() > told);
    let news = house.serving().split_off(told);
    assert!(news.iter().all(|(ready, _)| *ready), "nothing is taken back: {news:?}");
    assert_eq!(house.ready(), address);
    assert_eq!(house.post("/score", "{}").1, before, "the same process");
    house.server.stop(0);
    assert!(matches!(house.outcome(), Outcome::Canceled { .. }));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_replica_outlives_its_keeper_and_is_still_watched_and_stopped() {
    let Some(site) = Site::new() else { return };
    let mut plan = command(LITTLE);
    plan.serve.as_mut().unwrap().liveness = Probe { path: Some("/".into()), failure_threshold: 3, ..probe() };
    for ends_by in ["a stop", "its liveness"] {
        let house = site.house(plan.clone(), &[]);
        house.answers("200");
        let address = house.ready();
        let told = house.serving().len();
        house.house.replace_keeper();
        wait_for("it to be told again", || house.serving().len() > told);
        assert_eq!(house.ready(), address);
        if ends_by == "a stop" {
            house.server.stop(0);
            assert!(matches!(house.outcome(), Outcome::Canceled { .. }));
        } else {
            house.answers("500");
            assert_eq!(house.failure().code, "ReplicaUnhealthy");
        }
        assert!(TcpStream::connect(address).is_err(), "nothing is left of it after {ends_by}");
    }
}

#[test]
fn memory_over_the_limit_is_the_replicas_own_problem() {
    let Some(site) = Site::new() else { return };
    let limits = Some(Resources { cpu_milli: 0, memory_bytes: 300 << 20, gpus: 0 });
    let house = site.house(Plan { limits, ..with_model(script(&site, GOOD), &site) }, &[]);
    house.ready();
    if site.log("system_logs/lifecycle.log").contains("limits are not enforced") {
        return skipped("memory limits of replicas (no right to control groups)");
    }
    drop(house.send("/score", "{\"eat\": 1073741824}"));
    let told = |what: &What| matches!(what, What::Notice { text } if text.contains("more memory than its limit"));
    wait_for("the kill to be told", || house.server.reports(0).iter().any(told));
    wait_for("another worker", || house.try_post("/score", "{}").is_some_and(|(status, _)| status == 200));
    drop(house);

    let house = site.house(Plan { limits, ..command(LITTLE) }, &[]);
    house.answers("200");
    house.ready();
    drop(house.send("/eat", ""));
    let failure = house.failure();
    assert_eq!(failure.code, "UserError.OutOfMemory", "{failure:?}");
    assert!(failure.message.contains("300 MiB"), "{failure:?}");
}

#[test]
fn a_replica_in_a_pod_is_reached_and_asked_at_the_pods_address() {
    let Some(site) = Site::new() else { return };
    let port = std::net::TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap().port();
    let mut plan = command(&LITTLE.replace("127.0.0.1", "127.0.0.2"));
    plan.serve.as_mut().unwrap().port = Some(port);
    let house = site.pod(plan, &[("TEST_ADDRESS", "127.0.0.2")]);
    house.answers("200");
    assert_eq!(house.ready().to_string(), format!("127.0.0.2:{port}"));
    wait_for("its log", || house.server.log("user_logs/std_log.txt").starts_with("little server"));
    house.server.stop(0);
    assert!(matches!(house.outcome(), Outcome::Canceled { .. }));
}
