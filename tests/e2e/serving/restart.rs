//! Servers and routers come and go under steady load, and no caller notices.

use super::{codes::codes, serving};
use crate::harness::{Home, processes_with, signal};
use std::{
    io::{BufRead, BufReader, Lines},
    net::TcpListener,
    process::{Child, ChildStderr, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    thread,
};

const ROOMY: &str = "request_settings: {max_concurrent_requests_per_instance: 8, max_queue_wait_ms: 20000, \
                     request_timeout_ms: 20000}";

/// How many call at a time.
pub(super) const CALLERS: usize = 3;

/// Calls `uri` on connections that are kept, and on one connection a call, while `disturb` runs; every answer is 200.
/// `disturb` gets what waits for a few more answers.
fn undisturbed(home: &Home, uri: &str, disturb: impl FnOnce(&dyn Fn())) {
    let lost = disturbed(home, uri, disturb);
    assert!(lost.is_empty(), "{} calls failed: {lost:?}", lost.len());
}

/// The same; the statuses of calls that failed.
pub(super) fn disturbed(home: &Home, uri: &str, disturb: impl FnOnce(&dyn Fn())) -> Vec<String> {
    let key = home.json(&["online-endpoint", "get-credentials", "-n", "iris"])["primaryKey"].clone();
    let key = format!("authorization: Bearer {}", key.as_str().unwrap());
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let call = |kept: usize| {
        let mut answers = Vec::new();
        while !over.load(Relaxed) {
            answers.extend(codes(home, &["-H", &key], &vec![uri; kept]));
            answered.fetch_add(kept, Relaxed);
        }
        answers
    };
    let go_on = || {
        let until = answered.load(Relaxed) + 30;
        home.until("more answers", || answered.load(Relaxed) >= until);
    };
    thread::scope(|scope| {
        let call = &call;
        let callers: [_; CALLERS] = [1, 1, 20].map(|kept| scope.spawn(move || call(kept)));
        disturb(&go_on);
        over.store(true, Relaxed);
        let answers = callers.into_iter().flat_map(|caller| caller.join().unwrap());
        answers.filter(|code| code != "200").collect()
    })
}

#[test]
fn a_server_that_restarts_refuses_no_call_and_loses_none() {
    let home = serving(ROOMY);
    let uri = uri(&home);
    undisturbed(&home, &uri, |go_on| {
        for _ in 0..3 {
            home.ok(&["server", "stop"]);
            home.ok(&["server", "start", "-o", "none"]);
            go_on();
        }
    });
    assert_eq!(uri, self::uri(&home), "endpoints keep their address");
}

#[test]
fn an_agent_that_is_killed_costs_no_call() {
    let home = serving(ROOMY);
    let uri = uri(&home);
    let agent = || {
        let all = processes_with(&home.home().display().to_string()).into_iter();
        all.filter(|(_, line)| line.contains("agent run")).map(|(pid, _)| pid).next()
    };
    undisturbed(&home, &uri, |go_on| {
        for _ in 0..3 {
            let before = agent();
            signal(before.unwrap(), "KILL");
            home.until("the agent to be back", || agent().is_some_and(|pid| Some(pid) != before));
            go_on();
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
fn a_server_that_is_killed_under_load_loses_what_it_was_at_and_nothing_else() {
    const KILLS: usize = 2;
    let home = serving(ROOMY);
    let uri = uri(&home);
    let lost = disturbed(&home, &uri, |go_on| {
        for _ in 0..KILLS {
            go_on();
            assert!(home.kill("server"), "there is a server");
            home.ok(&["server", "start", "-o", "none"]);
            go_on();
        }
    });
    assert!(lost.len() <= KILLS * CALLERS, "one call a caller is under way at a time: {lost:?}");
    assert!(lost.iter().all(|code| code == "000"), "others waited for the next server: {lost:?}");
}

#[test]
fn a_router_that_is_replaced_refuses_no_call_and_loses_none() {
    let home = serving(ROOMY);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let uri = format!("http://{address}/api/v1/endpoint/iris/score");
    let start = |more: &[&str]| {
        let listen = address.to_string();
        let args = [&["router", "--server", "--workers", "2", "--listen", &listen], more].concat();
        Running::router(home.command(&args))
    };
    let mut router = start(&[]);
    undisturbed(&home, &uri, |go_on| {
        for _ in 0..3 {
            go_on();
            let next = start(&["--share-port"]);
            assert!(std::mem::replace(&mut router, next).signal("TERM"));
        }
        go_on();
    });
}

/// A router that ends with the test, and what it says.
pub(super) struct Running(
    Child,
    #[expect(dead_code, reason = "held open: it may say more")] Lines<BufReader<ChildStderr>>,
);

impl Running {
    /// A router that answers.
    pub(super) fn router(mut command: Command) -> Running {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().contains("the router answers at")), "it does not start");
        Running(child, said)
    }

    /// Sends it this signal and waits for its end; true when that was a good one.
    pub(super) fn signal(mut self, name: &str) -> bool {
        signal(i32::try_from(self.0.id()).unwrap(), name);
        self.0.wait().unwrap().success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn uri(home: &Home) -> String {
    home.json(&["online-endpoint", "show", "-n", "iris"])["scoring_uri"].as_str().unwrap().to_owned()
}
