//! The server is killed while clients log to it: what it has acknowledged is there when it is back, and once.

use crate::{faults::door::Door, harness::Home};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

const WRITERS: usize = 4;
/// Acknowledged requests before the server is killed, in each round.
const ENOUGH: usize = 150;

/// Logs steps of one metric until the server is gone; those that were acknowledged, and the first that was not.
fn log(door: &Door, token: &str, run: &str, key: &str, from: i64, acknowledged: &AtomicUsize) -> (Vec<i64>, i64) {
    let mut done = Vec::new();
    for step in from.. {
        let point = json!({"key": key, "value": step, "timestamp": step, "step": step});
        let body = json!({"run_id": run, "metrics": [point]}).to_string();
        match door.try_ask("POST", "/api/2.0/mlflow/runs/log-batch", Some(token), &body) {
            Some((200, _)) => done.push(step),
            _ => return (done, step),
        }
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    unreachable!("a server that is killed stops answering")
}

#[test]
fn what_was_acknowledged_outlives_a_killed_server_and_what_is_sent_again_is_kept_once() {
    let home = Home::new();
    let mut door = home.open_door();
    let token = home.token("user");
    let (_, made) = door.ask("POST", "/api/2.0/mlflow/runs/create", Some(&token), r#"{"experiment_id": "0"}"#);
    let made: Value = serde_json::from_str(&made).unwrap();
    let run = made["run"]["info"]["run_id"].as_str().unwrap().to_owned();
    let mut next = [0i64; WRITERS];
    let mut told: [BTreeSet<i64>; WRITERS] = Default::default();
    for _ in 0..3 {
        let acknowledged = AtomicUsize::new(0);
        thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|n| {
                    let (door, token, run, acknowledged, from) = (&door, &token, &run, &acknowledged, next[n]);
                    scope.spawn(move || log(door, token, run, &format!("m{n}"), from, acknowledged))
                })
                .collect();
            home.until("enough to be logged", || acknowledged.load(Ordering::Relaxed) >= ENOUGH);
            assert!(home.kill("server"));
            for (n, writer) in writers.into_iter().enumerate() {
                let (done, first_lost) = writer.join().unwrap();
                told[n].extend(done);
                // A client that got no answer sends the same again, whether or not it had arrived.
                next[n] = first_lost;
            }
        });
        home.until("the server to be gone", || home.pid("server").is_none());
        door = home.open_door();
    }
    for (n, told) in told.iter().enumerate() {
        let path = format!("/api/2.0/mlflow/metrics/get-history?run_id={run}&metric_key=m{n}");
        let (_, history) = door.ask("GET", &path, Some(&token), "");
        let history: Value = serde_json::from_str(&history).unwrap();
        let steps: Vec<i64> =
            history["metrics"].as_array().unwrap().iter().map(|point| point["step"].as_i64().unwrap()).collect();
        let there: BTreeSet<i64> = steps.iter().copied().collect();
        assert_eq!(steps.len(), there.len(), "a point is there twice");
        assert!(told.is_subset(&there), "lost: {:?}", told.difference(&there).collect::<Vec<_>>());
    }
}
