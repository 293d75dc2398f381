//! What an attempt elsewhere may read and write, and its logs.

use super::*;
use domain::{Place, PlannedInput};

/// The address of an `az://` place on this server.
fn address(place: &Place) -> String {
    let Place::Object { url, options, datastore } = place else { panic!("{place:?} is not for agents elsewhere") };
    assert_eq!(datastore, "@server");
    format!("{}/{}", options["endpoint"], url.strip_prefix("az://").unwrap())
}

#[tokio::test]
async fn an_attempt_reads_its_inputs_and_writes_its_outputs_while_it_lives_and_nothing_else() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let workspace = server.get("").await.expect(200);
    let container = format!("azureml-blobstore-{}", workspace["properties"]["workspaceId"].as_str().unwrap());
    let blob = |path: &str| format!("{}/blob/default.blob.peregrine.local/{container}/{path}", server.user.url());
    for path in ["in/a.txt", "secret/b.txt", "in2/c.txt"] {
        let sent = server.user.request(Method::PUT, &blob(path)).header("x-ms-blob-type", "BlockBlob").body("data");
        assert_eq!(send(sent).await.status, 201);
    }
    let store = "azureml://datastores/workspaceblobstore/paths";
    let one = operator
        .launch(
            "reader",
            json!({
                "command": "cp ${{inputs.x}} ${{outputs.y}}",
                "inputs": {"x": {"jobInputType": "uri_folder", "uri": format!("{store}/in/")}},
                "outputs": {"y": {"jobOutputType": "uri_folder", "uri": format!("{store}/out/")}},
            }),
        )
        .await;
    let assignment = one.poll(0, "a", false).await.assignments.remove(0);
    let pod = server.with_token(&assignment.secrets["@server"]["bearer_token"]);
    let PlannedInput::Data { place, .. } = &assignment.plan.inputs["x"] else { panic!() };
    let (input, output) = (address(place), address(&assignment.plan.outputs["y"].place));
    let artifacts = address(&assignment.plan.artifacts);
    let get = async |path: &str| send(pod.request(Method::GET, path)).await.status;
    let put = async |path: &str| {
        send(pod.request(Method::PUT, path).header("x-ms-blob-type", "BlockBlob").body("made")).await.status
    };
    assert_eq!(get(&format!("{}/a.txt", input.trim_end_matches('/'))).await, 200);
    let list = |prefix: &str| blob(&format!("?restype=container&comp=list&prefix={prefix}"));
    assert_eq!((get(&list("in/")).await, get(&list("")).await, get(&list("secret/")).await), (200, 403, 403));
    assert_eq!(get(&list("in")).await, 403, "that would show the names in `in2`");
    assert_eq!((get(&blob("secret/b.txt")).await, get(&blob("in2/c.txt")).await), (403, 403), "names are whole");
    assert_eq!((put(&format!("{output}/m.bin")).await, put(&format!("{artifacts}/outputs/o.txt")).await), (201, 201));
    assert_eq!((put(&blob("in/a.txt")).await, put(&blob("elsewhere")).await), (403, 403));
    for (method, path) in [
        (Method::GET, crate::WS),
        (Method::GET, "/clusters"),
        (Method::POST, "/cluster/v1/poll"),
        (Method::GET, "/metrics"),
    ] {
        ask(&pod, method, path, Some(json!({}))).await.refused(403);
    }
    one.report(0, vec![What::Started { pid: 1 }, over(Outcome::Completed)]).await;
    assert_eq!(get(&format!("{}/a.txt", input.trim_end_matches('/'))).await, 403, "its time is over");
}

#[tokio::test]
async fn a_log_grows_by_offset_and_streams_as_any_other() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("talks", json!({})).await;
    one.poll(0, "a", false).await;
    one.report(0, vec![What::Started { pid: 1 }]).await;
    for (offset, bytes, status, length) in [
        (0, "hello ", 200, 6),
        (0, "hello ", 200, 6),
        (9, "gap", 409, 6),
        (2, "llo world", 200, 11),
        (11, "", 200, 11),
        (12, "", 409, 11),
    ] {
        let answer = one.log("user_logs/std_log.txt", offset, bytes).await;
        assert_eq!((answer.status, answer.header("x-peregrine-next")), (status, &*length.to_string()), "{bytes:?}");
        assert_eq!(answer.expect(status)["length"], length);
    }
    let shown = server.get("jobs/talks/artifacts/user_logs/std_log.txt").await;
    assert_eq!((shown.text().as_str(), shown.header("x-peregrine-status")), ("hello world", "Running"));
    for path in ["outputs/x", "user_logs/%2fetc", "user_logs/a%2f..%2f..%2fx"] {
        assert_eq!(one.log(path, 0, "x").await.status, 400, "{path}");
    }
    let other = operator.launch("other", json!({})).await;
    let path = format!("/agent/v1/attempts/{}/logs/user_logs/std_log.txt?offset=0", other.attempt());
    assert_eq!(send(one.pod.request(Method::PUT, &path).body("x")).await.status, 403);
}

#[tokio::test]
async fn an_agent_tells_of_its_own_attempt_only() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let one = operator.launch("one", json!({})).await;
    let two = operator.launch("two", json!({})).await;
    let what = over(Outcome::Completed);
    let reports = vec![Report { attempt: two.attempt().clone(), at: server::clock::now(), what }];
    let batch = json!(ReportBatch { facts: node(), reports, samples: Vec::new(), part: Some(0), sent_at: None });
    ask(&one.pod, Method::POST, "/agent/v1/report", Some(batch)).await.refused(403);
    assert_eq!(two.status().await, "Queued");
}
