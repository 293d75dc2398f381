//! Experiments, runs, points, files.

use super::{pairs, *};

#[tokio::test]
async fn what_was_logged_comes_back() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let batch = json!({"run_id": run, "params": [{"key": "lr", "value": "0.1"}], "tags": [{"key": "team", "value": "a"}],
        "metrics": [{"key": "loss", "value": 0.1, "timestamp": 1, "step": 0}, {"key": "loss", "value": 123456789.12345679, "timestamp": 2, "step": 1},
                    {"key": "odd", "value": "NaN", "timestamp": 1}, {"key": "far", "value": "-Infinity", "timestamp": 1}]});
    server.tell("runs/log-batch", batch.clone()).await.expect(200);
    // A client that did not hear the answer sends it again.
    server.tell("runs/log-batch", batch).await.expect(200);
    let shown = server.question("runs/get", json!({"run_id": run})).await.expect(200)["run"].clone();
    assert_eq!(pairs(&shown["data"]["params"]), json!({"lr": "0.1"}));
    assert_eq!(pairs(&shown["data"]["tags"]), json!({"team": "a", "mlflow.runName": "one"}));
    let metrics = pairs(&shown["data"]["metrics"]);
    assert_eq!(metrics, json!({"loss": 123456789.12345679, "odd": "NaN", "far": f64::MIN}));
    let history =
        server.question("metrics/get-history", json!({"run_id": run, "metric_key": "loss"})).await.expect(200);
    let steps: Vec<i64> = history["metrics"].as_array().unwrap().iter().map(|m| m["step"].as_i64().unwrap()).collect();
    assert_eq!(steps, [0, 1]);
}

#[tokio::test]
async fn a_parameter_does_not_change_and_a_refused_batch_leaves_nothing() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let log = |value: &str, metric: &str| json!({"run_id": run, "params": [{"key": "lr", "value": value}], "metrics": [{"key": metric, "value": 1, "timestamp": 1}]});
    server.tell("runs/log-batch", log("1", "a")).await.expect(200);
    assert_eq!(server.tell("runs/log-batch", log("2", "b")).await.code(400), "INVALID_PARAMETER_VALUE");
    let shown = server.question("runs/get", json!({"run_id": run})).await.expect(200);
    assert_eq!(pairs(&shown["run"]["data"]["metrics"]), json!({"a": 1.0}));
    server.tell("runs/log-parameter", json!({"run_id": run, "key": "lr", "value": "1"})).await.expect(200);
}

#[tokio::test]
async fn history_comes_in_pages_and_charts_get_fewer_points() {
    let server = Server::start().await;
    let run = server.run("one").await;
    for from in [0, 1000, 2000] {
        let metrics: Vec<Value> =
            (from..from + 1000).map(|n| json!({"key": "m", "value": n % 7, "timestamp": n, "step": n})).collect();
        server.tell("runs/log-batch", json!({"run_id": run, "metrics": metrics})).await.expect(200);
    }
    let (mut token, mut seen) = (String::new(), 0);
    loop {
        let asked = json!({"run_id": run, "metric_key": "m", "max_results": 700, "page_token": token});
        let page = server.question("metrics/get-history", asked).await.expect(200);
        seen += page["metrics"].as_array().unwrap().len();
        match page["next_page_token"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, 3000);
    let asked = json!({"run_ids": run, "metric_key": "m", "max_results": 100});
    let thin = server.question("metrics/get-history-bulk-interval", asked).await.expect(200);
    let points = thin["metrics"].as_array().unwrap();
    assert!(points.len() <= 100, "{}", points.len());
    assert_eq!((&points[0]["step"], &points[points.len() - 1]["step"]), (&json!(0), &json!(2999)));
}

#[tokio::test]
async fn a_search_sees_what_was_logged_a_moment_ago() {
    let server = Server::start().await;
    let mut runs = Vec::new();
    for (name, loss) in [("a", 0.5), ("b", 0.1), ("c", 0.9)] {
        let run = server.run(name).await;
        server
            .tell("runs/log-metric", json!({"run_id": run, "key": "loss", "value": loss, "timestamp": 1}))
            .await
            .expect(200);
        runs.push(run);
    }
    let names = |found: &Value| -> Vec<String> {
        let runs = found["runs"].as_array().into_iter().flatten();
        runs.map(|run| run["info"]["run_name"].as_str().unwrap().to_owned()).collect()
    };
    let asked = json!({"experiment_ids": ["0"], "filter": "metrics.loss < 0.8", "order_by": ["metrics.loss"], "max_results": 1});
    let first = server.tell("runs/search", asked.clone()).await.expect(200);
    assert_eq!(names(&first), ["b"]);
    let mut next = asked.clone();
    next["page_token"] = first["next_page_token"].clone();
    let second = server.tell("runs/search", next).await.expect(200);
    assert_eq!(names(&second), ["a"]);
    assert_eq!(second["next_page_token"], Value::Null);
    server.tell("runs/delete", json!({"run_id": runs[1]})).await.expect(200);
    assert_eq!(names(&server.tell("runs/search", asked).await.expect(200)), ["a"]);
    let log = json!({"run_id": runs[1], "key": "loss", "value": 1, "timestamp": 2});
    assert_eq!(server.tell("runs/log-metric", log).await.code(400), "INVALID_PARAMETER_VALUE");
    server.tell("runs/restore", json!({"run_id": runs[1]})).await.expect(200);
}

#[tokio::test]
async fn runs_of_every_experiment_are_paged_past_what_comes_meanwhile_and_counted() {
    let server = Server::start().await;
    let other = server.tell("experiments/create", json!({"name": "other"})).await.expect(200);
    let mut started = 1_700_000_000_000_i64;
    let mut begin = async |name: &str, experiment: &Value| {
        started += 1000;
        let body = json!({"experiment_id": experiment, "run_name": name, "start_time": started});
        let made = server.tell("runs/create", body).await.expect(200);
        made["run"]["info"]["run_id"].as_str().unwrap().to_owned()
    };
    let mut ids = Vec::new();
    for (n, name) in ["a", "b", "c", "d", "e"].iter().enumerate() {
        let experiment = if n % 2 == 0 { json!("0") } else { other["experiment_id"].clone() };
        ids.push(begin(name, &experiment).await);
    }
    let names = |found: &Value| -> String {
        let runs = found["runs"].as_array().into_iter().flatten();
        runs.map(|run| run["info"]["run_name"].as_str().unwrap().to_owned()).collect()
    };
    let asked = json!({"experiment_ids": ["*"], "max_results": 2, "count_total": true});
    let first = server.tell("runs/search", asked.clone()).await.expect(200);
    assert_eq!((names(&first), &first["total"]), ("ed".into(), &json!({"runs": 5, "at_least": false})));
    begin("f", &json!("0")).await;
    let mut next = asked.clone();
    next["page_token"] = first["next_page_token"].clone();
    let second = server.tell("runs/search", next.clone()).await.expect(200);
    assert_eq!((names(&second), &second["total"]["runs"]), ("cb".into(), &json!(6)), "a new run moves nothing");
    next["page_token"] = second["next_page_token"].clone();
    assert_eq!(names(&server.tell("runs/search", next).await.expect(200)), "a");
    server.tell("runs/delete", json!({"run_id": ids[4]})).await.expect(200);
    server.tell("experiments/delete", json!({"experiment_id": other["experiment_id"]})).await.expect(200);
    let left = server.tell("runs/search", asked.clone()).await.expect(200);
    assert_eq!((names(&left), &left["total"]["runs"]), ("fc".into(), &json!(3)), "what is deleted is not counted");
    let mut few = asked;
    few["filter"] = json!("attributes.run_name = 'c'");
    assert_eq!(server.tell("runs/search", few.clone()).await.expect(200)["total"]["runs"], 1);
    few["experiment_ids"] = json!([]);
    let none = server.tell("runs/search", few).await.expect(200);
    assert_eq!((names(&none), &none["total"]["runs"]), (String::new(), &json!(0)), "nothing named is nothing asked");
    let plain = server.tell("runs/search", json!({"experiment_ids": ["0"]})).await.expect(200);
    assert_eq!(plain["total"], Value::Null, "who does not ask is not told");
}

#[tokio::test]
async fn an_experiment_goes_with_its_runs_and_comes_back_with_them() {
    let server = Server::start().await;
    let id =
        server.tell("experiments/create", json!({"name": "x", "tags": [{"key": "t", "value": "1"}]})).await.expect(200)
            ["experiment_id"]
            .clone();
    let run =
        server.tell("runs/create", json!({"experiment_id": id})).await.expect(200)["run"]["info"]["run_id"].clone();
    for (act, stage) in [("delete", "deleted"), ("restore", "active")] {
        server.tell(&format!("experiments/{act}"), json!({"experiment_id": id})).await.expect(200);
        assert_eq!(
            server.tell(&format!("experiments/{act}"), json!({"experiment_id": id})).await.code(404),
            "RESOURCE_DOES_NOT_EXIST"
        );
        let shown = server.question("runs/get", json!({"run_id": run})).await.expect(200);
        assert_eq!(shown["run"]["info"]["lifecycle_stage"], stage);
    }
    let found =
        server.tell("experiments/search", json!({"filter": "tags.t = '1'", "max_results": 5})).await.expect(200);
    assert_eq!(found["experiments"][0]["name"], "x");
}

#[tokio::test]
async fn files_of_a_run_are_written_listed_read_and_removed() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let root = format!("/api/2.0/mlflow-artifacts/artifacts/0/{run}/artifacts");
    let put = |path: String, bytes: Vec<u8>| crate::send(server.user.request(Method::PUT, &path).body(bytes));
    put(format!("{root}/a.txt"), b"first".to_vec()).await.expect(200);
    put(format!("{root}/deep/b.bin"), vec![7; 3 << 20]).await.expect(200);
    put(format!("{root}/a.txt"), b"again".to_vec()).await.expect(200);
    assert_eq!(server.get(&format!("{root}/a.txt")).await.text(), "again");
    assert_eq!(server.get(&format!("{root}/deep/b.bin")).await.bytes, vec![7; 3 << 20]);
    let listed = server.question("artifacts/list", json!({"run_id": run})).await.expect(200);
    assert_eq!(
        listed["files"],
        json!([{"path": "a.txt", "is_dir": false, "file_size": 5}, {"path": "deep", "is_dir": true}])
    );
    let listed =
        server.get(&format!("/api/2.0/mlflow-artifacts/artifacts?path=0/{run}/artifacts/deep")).await.expect(200);
    assert_eq!(listed["files"], json!([{"path": "b.bin", "is_dir": false, "file_size": 3 << 20}]));
    for wrong in [
        format!("{root}/%2e%2e/%2e%2e/x"),
        format!("{root}/..%2f..%2fx"),
        "/api/2.0/mlflow-artifacts/artifacts/0".into(),
    ] {
        assert_eq!(put(wrong.clone(), b"x".to_vec()).await.status / 100, 4, "{wrong}");
    }
    server.delete(&format!("{root}/deep")).await.expect(200);
    assert_eq!(server.get(&format!("{root}/deep/b.bin")).await.code(404), "RESOURCE_DOES_NOT_EXIST");
}

#[tokio::test]
async fn inputs_and_made_models_belong_to_the_run() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let dataset = json!({"dataset": {"name": "iris", "digest": "d1", "source_type": "code", "source": "{}"}, "tags": [{"key": "mlflow.data.context", "value": "train"}]});
    server.tell("runs/log-inputs", json!({"run_id": run, "datasets": [dataset]})).await.expect(200);
    server.tell("runs/outputs", json!({"run_id": run, "models": [{"model_id": "m-1", "step": 3}]})).await.expect(200);
    let shown = server.question("runs/get", json!({"run_id": run})).await.expect(200)["run"].clone();
    assert_eq!(shown["inputs"]["dataset_inputs"], json!([dataset]));
    assert_eq!(shown["outputs"]["model_outputs"], json!([{"model_id": "m-1", "step": 3}]));
    for (filter, found) in [("dataset.name = 'iris'", 1), ("dataset.context = 'eval'", 0)] {
        let got = server.tell("runs/search", json!({"experiment_ids": ["0"], "filter": filter})).await.expect(200);
        assert_eq!(got["runs"].as_array().map_or(0, Vec::len), found, "{filter}");
    }
}
