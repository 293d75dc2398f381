//! Deleted runs go for good when they are told to, and their space with them.

use crate::{faults::door::Door, harness::Home};
use serde_json::{Value, json};
use std::fs;

fn tell(home: &Home, door: &Door, path: &str, body: Value) -> Value {
    let (status, answer) =
        door.ask("POST", &format!("/api/2.0/mlflow/{path}"), Some(&home.token("user")), &body.to_string());
    assert_eq!(status, 200, "{path}: {answer}");
    serde_json::from_str(&answer).unwrap()
}

/// An experiment of runs with points and a file each.
fn fill(home: &Home, door: &Door) -> (String, Vec<String>) {
    let made = tell(home, door, "experiments/create", json!({"name": "large"}));
    let experiment = made["experiment_id"].as_str().unwrap().to_owned();
    let begin = |n: i64| {
        let made = tell(home, door, "runs/create", json!({"experiment_id": experiment}));
        let run = made["run"]["info"]["run_id"].as_str().unwrap().to_owned();
        for batch in 0..4 {
            let noise = |step: i64| ((n * 7919 + step) * 2_654_435_761 % 1_000_003) as f64 / 7.0;
            let points: Vec<Value> = (batch * 1000..batch * 1000 + 1000)
                .map(|step| json!({"key": "m", "value": noise(step), "timestamp": noise(step) as i64, "step": step}))
                .collect();
            tell(home, door, "runs/log-batch", json!({"run_id": run, "metrics": points}));
        }
        let path = format!("/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/weights.bin");
        let (status, answer) = door.ask("PUT", &path, Some(&home.token("user")), &"w".repeat(50_000));
        assert_eq!(status, 200, "{answer}");
        run
    };
    let runs = (0..30).map(begin).collect();
    (experiment, runs)
}

#[test]
fn what_was_deleted_is_gone_after_gc_and_so_is_the_space_it_took() {
    let home = Home::new();
    home.open_door();
    let database = || {
        home.ok(&["server", "stop"]);
        fs::metadata(home.home().join("peregrine.db")).unwrap().len()
    };
    let empty = database();
    let door = home.open_door();
    let (experiment, runs) = fill(&home, &door);
    let full = database();
    assert!(full > empty + 500_000, "{empty} bytes when empty, {full} when full");
    let door = home.open_door();
    tell(&home, &door, "experiments/delete", json!({"experiment_id": experiment}));
    let young = home.json(&["server", "gc"]);
    assert_eq!((&young["runs"], &young["experiments"]), (&json!(0), &json!(0)), "deleted a moment ago: {young}");
    let freed = home.json(&["server", "gc", "--older-than", "0d"]);
    let counts = json!({"runs": freed["runs"], "experiments": freed["experiments"], "file_bytes": freed["file_bytes"]});
    assert_eq!(counts, json!({"runs": 30, "experiments": 1, "file_bytes": 30 * 50_000}));
    for run in &runs {
        assert!(!home.artifacts(run).exists());
    }
    let (status, _) =
        door.ask("GET", &format!("/api/2.0/mlflow/runs/get?run_id={}", runs[0]), Some(&home.token("user")), "");
    assert_eq!(status, 404);
    let after = database();
    assert!(after < empty + 100_000, "{after} bytes are left of {full}; {empty} were there before");
}
