//! What a job logs, at once and as it comes.

use super::*;

/// Reads a stream until an event of this name is whole; everything that came.
async fn until(answer: &mut reqwest::Response, name: &str) -> String {
    let mut all = String::new();
    let read = async {
        while !all
            .split("\n\n")
            .any(|event| event.starts_with(&format!("event: {name}\n")) && event.contains("\ndata: "))
            || !all.ends_with("\n\n")
        {
            match answer.chunk().await.unwrap() {
                Some(chunk) => all += &String::from_utf8_lossy(&chunk),
                None => panic!("the stream ended before `{name}`: {all}"),
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), read)
        .await
        .unwrap_or_else(|_| panic!("no event `{name}` came"));
    all
}

async fn open(server: &Server, run: &str, last: Option<&str>) -> reqwest::Response {
    let mut request = server.user.request(Method::GET, &format!("{WS}/jobs/{run}/metrics/stream"));
    if let Some(last) = last {
        request = request.header("last-event-id", last);
    }
    request.send().await.unwrap()
}

async fn log(server: &Server, run: &str, step: i64) {
    let point = json!({"run_id": run, "key": "loss", "value": step, "timestamp": step, "step": step});
    server.tell("runs/log-metric", point).await.expect(200);
}

#[tokio::test]
async fn a_stream_begins_with_what_there_is_and_goes_on_with_what_comes() {
    let server = Server::start().await;
    let run = server.run("one").await;
    log(&server, &run, 0).await;
    let mut answer = open(&server, &run, None).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let first = until(&mut answer, "metrics").await;
    assert!(first.contains("\"latest\":{\"step\":0"), "{first}");
    log(&server, &run, 1).await;
    let second = until(&mut answer, "points").await;
    assert!(second.contains("id: 1\n") && second.contains("\"step\":1") && !second.contains("\"step\":0"), "{second}");
    server.tell("runs/update", json!({"run_id": run, "status": "FINISHED"})).await.expect(200);
    let third = until(&mut answer, "end").await;
    assert!(third.contains("\"status\":\"FINISHED\""), "{third}");
    assert_eq!(answer.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn a_client_that_was_cut_off_gets_what_it_missed_and_no_more() {
    let server = Server::start().await;
    let run = server.run("one").await;
    for step in 0..3 {
        log(&server, &run, step).await;
    }
    let missed = until(&mut open(&server, &run, Some("0")).await, "points").await;
    assert!(
        missed.contains("\"step\":1") && missed.contains("\"step\":2") && !missed.contains("\"step\":0"),
        "{missed}"
    );
    // What was folded meanwhile cannot be told apart any more, so all of it is told.
    server.tell("runs/search", json!({"experiment_ids": ["0"], "order_by": ["metrics.loss"]})).await.expect(200);
    let anew = until(&mut open(&server, &run, Some("0")).await, "metrics").await;
    assert!(anew.contains("\"count\":3"), "{anew}");
}

#[tokio::test]
async fn a_chart_gets_every_metric_with_its_range_and_few_points() {
    let server = Server::start().await;
    let run = server.run("one").await;
    let metrics: Vec<Value> = (0..1000)
        .map(|n| json!({"key": if n % 2 == 0 { "a" } else { "b" }, "value": n, "timestamp": n, "step": n}))
        .collect();
    server.tell("runs/log-batch", json!({"run_id": run, "metrics": metrics})).await.expect(200);
    let shown = server.get(&format!("jobs/{run}/metrics?points=10")).await.expect(200);
    assert_eq!(shown["value"].as_array().unwrap().len(), 2);
    let a = &shown["value"][0];
    assert_eq!((&a["key"], &a["count"], &a["min"], &a["max"]), (&json!("a"), &json!(500), &json!(0.0), &json!(998.0)));
    assert!(a["points"].as_array().unwrap().len() <= 10);
    let only = server.get(&format!("jobs/{run}/metrics?key=b")).await.expect(200);
    assert_eq!(only["value"].as_array().unwrap().len(), 1);
    for (part, count) in [("b", 1), ("", 2), ("none", 0)] {
        let some = server.get(&format!("jobs/{run}/metrics?part={part}")).await.expect(200);
        assert_eq!(some["value"].as_array().unwrap().len(), count, "{part}");
    }
    assert!(shown.get("also").is_none(), "nobody asked for others");
    let two = server.run("two").await;
    log(&server, &two, 7).await;
    let both = server.get(&format!("jobs/{run}/metrics?points=10&also={two},nobody")).await.expect(200);
    assert_eq!(both["value"], shown["value"]);
    let also = both["also"].as_array().unwrap();
    assert_eq!((also.len(), &also[0]["name"]), (1, &json!(two)), "who does not exist is left out");
    assert_eq!(also[0]["value"][0]["points"][0]["step"], 7);
    server.get(&format!("jobs/{run}/metrics?also={}", vec!["x"; 51].join(","))).await.refused(400);
    assert_eq!(server.get("jobs/nobody/metrics").await.refused(404).0, "ResourceNotFound");
    server.get(&format!("jobs/{run}/metrics?points=0")).await.refused(400);
}
