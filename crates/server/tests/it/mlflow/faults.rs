//! What clients should not send and do: too much, too often, at the wrong time. Nothing breaks, and nothing is lost.

use super::*;
use std::collections::BTreeSet;

#[tokio::test]
async fn too_much_at_once_is_refused_in_words_and_leaves_nothing() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let with = |key: &str, list: Value| {
        let mut args = json!({"run_id": run});
        args[key] = list;
        args
    };
    let many = |n: usize| (0..n).map(|n| json!({"key": format!("k{n}"), "value": "v"})).collect::<Value>();
    let points = |n: usize| (0..n).map(|n| json!({"key": "m", "value": n, "timestamp": n})).collect::<Value>();
    for (what, path, args) in [
        ("1,001 points", "runs/log-batch", with("metrics", points(1001))),
        ("101 params", "runs/log-batch", with("params", many(101))),
        ("101 tags", "runs/log-batch", with("tags", many(101))),
        ("a body of 9 MB", "runs/log-parameter", json!({"run_id": run, "key": "p", "value": "v".repeat(9_000_000)})),
        ("a key of 5 MB", "runs/log-parameter", json!({"run_id": run, "key": "k".repeat(5_000_000), "value": "1"})),
        ("a name of 5 MB", "experiments/create", json!({"name": "e".repeat(5_000_000)})),
    ] {
        let answer = server.tell(path, args).await;
        assert_eq!(answer.code(400), "INVALID_PARAMETER_VALUE", "{what}");
        assert!(answer.text().len() < 2000, "{what} is repeated to its sender");
    }
    // The value of a parameter is cut, as clients expect.
    let long = json!({"run_id": run, "key": "long", "value": "v".repeat(5_000_000)});
    server.tell("runs/log-parameter", long).await.expect(200);
    let data = server.question("runs/get", json!({"run_id": run})).await.expect(200)["run"]["data"].clone();
    assert_eq!(pairs(&data["params"])["long"].as_str().map(str::len), Some(6000));
    assert_eq!((data["metrics"].as_array(), pairs(&data["tags"]).as_object().map(|tags| tags.len())), (None, Some(1)));
}

#[tokio::test]
async fn filters_that_try_to_be_statements_find_nothing_and_change_nothing() {
    let server = Server::start().await;
    let run = server.run("one").await;
    server
        .tell("runs/set-tag", json!({"run_id": run, "key": "t", "value": "it's; drop table runs; --"}))
        .await
        .expect(200);
    let search = |filter: &str| server.tell("runs/search", json!({"experiment_ids": ["0"], "filter": filter}));
    for filter in [
        "tags.t = 'x'; drop table runs; --",
        "tags.t = 'x' or 1 = 1",
        "tags.t = 'x' union select * from principals",
        "metrics.`a' or '1'='1` > 0; delete from runs",
        "attributes.status = (select secret from records)",
        "params.\"a\"\"b\" like '%' escape 'x'",
    ] {
        assert_eq!(search(filter).await.code(400), "INVALID_PARAMETER_VALUE", "{filter}");
    }
    for (filter, found) in [
        ("tags.t = \"it's; drop table runs; --\"", 1),
        ("tags.t = 'x'' or 1=1 --'", 0),
        ("tags.`t' or '1'='1` = 'x'", 0),
        ("params.`\"); drop table runs; --` = '1'", 0),
        ("metrics.`a` > 1", 0),
    ] {
        let answer = search(filter).await;
        let runs = answer.expect(200)["runs"].as_array().map_or(0, Vec::len);
        assert_eq!(runs, found, "{filter}");
    }
    assert_eq!(search("").await.expect(200)["runs"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_client_whose_clock_is_wrong_loses_nothing() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let (year, now) = (365 * 24 * 3_600_000i64, server::clock::now().0);
    let told = [(0, now + 100 * year), (1, 0), (2, now), (3, now - 50 * year), (4, 9_007_199_254_740_991)];
    for (step, timestamp) in told {
        let point = json!({"run_id": run, "key": "m", "value": step, "timestamp": timestamp, "step": step});
        server.tell("runs/log-metric", point).await.expect(200);
    }
    let history = server.question("metrics/get-history", json!({"run_id": run, "metric_key": "m"})).await.expect(200);
    let seen: BTreeSet<(i64, i64)> = history["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|point| (point["step"].as_i64().unwrap(), point["timestamp"].as_i64().unwrap()))
        .collect();
    assert_eq!(seen, told.into());
    let shown = server.question("runs/get", json!({"run_id": run})).await.expect(200)["run"].clone();
    assert_eq!(shown["data"]["metrics"][0]["value"], 4.0, "the last step is the latest, whatever its clock said");
    // A run that ends before it began is shown as it was told.
    let end = json!({"run_id": run, "status": "FINISHED", "end_time": 1});
    server.tell("runs/update", end).await.expect(200);
    let late =
        server.tell("runs/create", json!({"experiment_id": "0", "start_time": now + 100 * year})).await.expect(200);
    assert_eq!(late["run"]["info"]["start_time"], now + 100 * year);
    let found =
        server.tell("runs/search", json!({"experiment_ids": ["0"], "filter": "metrics.m = 4"})).await.expect(200);
    assert_eq!(found["runs"][0]["info"]["end_time"], 1);
}

#[tokio::test]
async fn a_batch_that_is_sent_again_is_kept_once() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let points: Vec<Value> = (0..100).map(|n| json!({"key": "m", "value": n, "timestamp": n, "step": n})).collect();
    let batch = json!({"run_id": run, "metrics": points, "params": [{"key": "p", "value": "1"}], "tags": [{"key": "t", "value": "1"}]});
    for _ in 0..3 {
        server.tell("runs/log-batch", batch.clone()).await.expect(200);
    }
    let history = server.question("metrics/get-history", json!({"run_id": run, "metric_key": "m"})).await.expect(200);
    assert_eq!(history["metrics"].as_array().map(Vec::len), Some(100));
}
