//! Servers and routers come and go under steady load, and no caller notices.

use super::{codes::codes, serving};
use crate::harness::{Home, said, signal};
use std::{
    net::TcpListener,
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

const ROOMY: &str = "request_settings: {max_concurrent_requests_per_instance: 8, max_queue_wait_ms: 20000, \
                     request_timeout_ms: 20000}";

/// Calls `uri` on connections that are kept, and on one connection a call, while `disturb` runs; every answer is 200.
fn undisturbed(home: &Home, uri: &str, disturb: impl FnOnce()) {
    let key = home.json(&["online-endpoint", "get-credentials", "-n", "iris"])["primaryKey"].clone();
    let key = format!("authorization: Bearer {}", key.as_str().unwrap());
    let over = AtomicBool::new(false);
    let call = |kept: usize| {
        let mut answers = Vec::new();
        while !over.load(Relaxed) {
            answers.extend(codes(home, &["-H", &key, "--show-error"], &vec![uri; kept]));
        }
        answers
    };
    thread::scope(|scope| {
        let callers = [1, 1, 20].map(|kept| scope.spawn(move || call(kept)));
        disturb();
        over.store(true, Relaxed);
        for caller in callers {
            let answers = caller.join().unwrap();
            let lost: Vec<&String> = answers.iter().filter(|code| *code != "200").collect();
            assert!(lost.is_empty() && answers.len() > 10, "{} of {} failed: {lost:?}", lost.len(), answers.len());
        }
    });
}

#[test]
fn a_server_that_restarts_refuses_no_call_and_loses_none() {
    let home = serving(ROOMY);
    let uri = uri(&home);
    undisturbed(&home, &uri, || {
        for _ in 0..3 {
            home.ok(&["server", "stop"]);
            home.ok(&["server", "start", "-o", "none"]);
        }
    });
    assert_eq!(uri, self::uri(&home), "endpoints keep their address");
    // What is kept is in nobody's way who wants the port for another address.
    home.ok(&["server", "stop"]);
    let port = uri.split([':', '/']).nth(4).unwrap();
    let mut start = home.command(&["server", "start", "-o", "none"]);
    said(start.env("PEREGRINE_ROUTER_LISTEN", format!("0.0.0.0:{port}")).output().unwrap()).must(0, &[]);
    assert!(self::uri(&home).starts_with(&format!("https://localhost:{port}/")));
}

#[test]
fn an_agent_that_is_killed_costs_no_call() {
    let home = serving(ROOMY);
    let uri = uri(&home);
    undisturbed(&home, &uri, || {
        for _ in 0..3 {
            let before = home.pid("agent");
            home.kill("agent");
            home.until("the agent to be back", || home.pid("agent").is_some_and(|pid| Some(pid) != before));
        }
    });
}

#[test]
fn a_server_that_is_killed_refuses_no_call() {
    let home = serving(ROOMY);
    let uri = uri(&home);
    home.kill("server");
    thread::scope(|scope| {
        let call = scope.spawn(|| codes(&home, &[], &[&uri]));
        home.ok(&["server", "start", "-o", "none"]);
        assert_eq!(call.join().unwrap(), ["401"], "the call waited for the server");
    });
}

#[test]
fn a_router_that_is_replaced_refuses_no_call_and_loses_none() {
    let home = serving(ROOMY);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let uri = format!("http://{address}/api/v1/endpoint/iris/score");
    let start = |more: &[&str]| {
        let mut router = home.command(&["router", "--server", "--workers", "2", "--listen", &address.to_string()]);
        let router = Running(router.args(more).stderr(Stdio::null()).spawn().unwrap());
        home.until("the router to answer", || codes(&home, &[], &[&uri]) == ["401"]);
        router
    };
    let mut router = start(&[]);
    undisturbed(&home, &uri, || {
        for _ in 0..3 {
            let next = start(&["--share-port"]);
            signal(i32::try_from(router.0.id()).unwrap(), "TERM");
            assert!(router.0.wait().unwrap().success());
            router = next;
        }
    });
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn uri(home: &Home) -> String {
    home.json(&["online-endpoint", "show", "-n", "iris"])["scoring_uri"].as_str().unwrap().to_owned()
}
