//! `…/jobs`: accepted once, changed only where that makes sense, listed in pages that stay put.

use crate::{Server, job_body};
use serde_json::{Value, json};

#[tokio::test]
async fn a_job_is_accepted_shown_and_listed() {
    let server = Server::start().await;
    let accepted = server.submit("first").await;
    assert_eq!(accepted["properties"]["status"], "Queued");
    assert!(accepted["id"].as_str().unwrap().ends_with("/workspaces/default/jobs/first"));
    let shown = server.get("jobs/first").await.expect(200);
    assert_eq!(shown["properties"]["command"], "echo hi");
    assert_eq!(shown["properties"]["peregrine"]["phase"], "queued");
    assert_eq!(names(&server.get("jobs").await.expect(200)), ["first"]);
    assert_eq!(server.get("jobs/second").await.refused(404).0, "ResourceNotFound");
}

#[tokio::test]
async fn putting_a_job_again_changes_its_labels_and_nothing_it_runs() {
    let server = Server::start().await;
    server.submit("kept").await;
    server.put("jobs/kept", job_body()).await.expect(200);
    let mut labelled = job_body();
    labelled["properties"]["tags"] = json!({"team": "a"});
    labelled["properties"]["description"] = json!("a try");
    let changed = server.put("jobs/kept", labelled).await.expect(200);
    assert_eq!(changed["properties"]["tags"]["team"], "a");
    let mut other = job_body();
    other["properties"]["command"] = json!("echo something else");
    let (code, message) = server.put("jobs/kept", other).await.refused(409);
    assert!(code == "Conflict" && message.contains("`command`"), "{message}");
    assert_eq!(server.get("jobs/kept").await.expect(200)["properties"]["command"], "echo hi");
}

#[tokio::test]
async fn of_two_submits_of_one_name_at_one_moment_one_is_the_job() {
    let server = Server::start().await;
    let both = tokio::join!(server.put("jobs/race", job_body()), server.put("jobs/race", job_body()));
    let mut statuses = [both.0.status, both.1.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 201]);
    assert_eq!(names(&server.get("jobs").await.expect(200)), ["race"]);
}

#[tokio::test]
async fn every_mistake_of_a_body_is_told_at_once_with_the_names_there_are() {
    let server = Server::start().await;
    let mut body = job_body();
    body["properties"]["computeId"] = json!("azureml:gpu-cluster");
    body["properties"]["environmentId"] = json!("azureml:no-such-environment@latest");
    body["properties"]["command"] = json!("echo ${{inputs.missing}}");
    body["properties"]["resources"] = json!({"instanceType": "huge"});
    let answer = server.put("jobs/bad", body).await;
    answer.refused(400);
    let details = answer.expect(400)["error"]["details"].clone();
    let details: Vec<&str> =
        details.as_array().unwrap().iter().map(|detail| detail["message"].as_str().unwrap()).collect();
    let told = details.join("\n");
    for piece in ["gpu-cluster", "there are: local", "no-such-environment", "inputs.missing", "huge"] {
        assert!(told.contains(piece), "no `{piece}` in\n{told}");
    }
    server.get("jobs/bad").await.refused(404);
}

#[tokio::test]
async fn names_that_could_not_be_names_are_refused() {
    let server = Server::start().await;
    for name in ["-a", "a%20b", "a%2Fb", &"a".repeat(300)] {
        server.put(&format!("jobs/{name}"), job_body()).await.refused(400);
    }
}

#[tokio::test]
async fn pages_do_not_shift_while_jobs_arrive() {
    let server = Server::start().await;
    for n in 0..7 {
        server.submit(&format!("old-{n}")).await;
    }
    let (mut seen, mut next) = (Vec::new(), Some("jobs?$top=3".to_owned()));
    while let Some(page) = next {
        let page = server.get(&page).await.expect(200);
        seen.extend(names(&page));
        server.submit(&format!("new-{}", seen.len())).await;
        next = page["nextLink"].as_str().map(str::to_owned);
    }
    assert_eq!(seen, ["old-6", "old-5", "old-4", "old-3", "old-2", "old-1", "old-0"]);
}

#[tokio::test]
async fn a_job_that_waits_is_canceled_at_once_and_can_be_put_away() {
    let server = Server::start().await;
    server.submit("unwanted").await;
    let (_, message) = server.delete("jobs/unwanted").await.refused(409);
    assert!(message.contains("cancel it first"), "{message}");
    server.post("jobs/unwanted/cancel", json!({})).await.expect(200);
    server.post("jobs/unwanted/cancel", json!({})).await.expect(200);
    let shown = server.get("jobs/unwanted").await.expect(200);
    assert_eq!(shown["properties"]["status"], "Canceled");
    server.delete("jobs/unwanted").await.expect(200);
    assert!(names(&server.get("jobs").await.expect(200)).is_empty());
    assert_eq!(names(&server.get("jobs?listViewType=ArchivedOnly").await.expect(200)), ["unwanted"]);
    server.post("jobs/nobody/cancel", json!({})).await.refused(404);
}

#[tokio::test]
async fn a_cancel_is_over_when_the_processes_are_gone() {
    let server = Server::start().await;
    server.submit("busy").await;
    server.place("busy").await;
    for path in ["jobs/busy/cancel", "jobs/busy/cancel"] {
        let asked = server.post(path, json!({})).await;
        asked.expect(202);
        assert_eq!(asked.header("retry-after"), "1");
        let again = server.get(asked.header("location")).await;
        again.expect(202);
        assert_eq!(again.header("location"), asked.header("location"));
    }
    let now = server::clock::now();
    let gone = server.store.write(move |tx| {
        let mut job = tx.job("default", "busy")?.unwrap().job;
        job.apply(domain::JobEvent::Over(domain::Outcome::Canceled { reason: "asked".into() }), now).unwrap();
        tx.put_job(&job, None, now)
    });
    gone.await.unwrap();
    server.get("jobs/busy/cancel").await.expect(200);
    assert_eq!(server.get("jobs/busy").await.expect(200)["properties"]["status"], "Canceled");
}

#[tokio::test]
async fn a_client_may_send_back_the_whole_job_it_was_shown() {
    let server = Server::start().await;
    let mut body = job_body();
    body["properties"]["outputs"] = json!({"out": {"jobOutputType": "uri_folder"}});
    body["properties"]["services"] = json!({"Local": {"jobServiceType": "Custom"}, "none": null});
    server.put("jobs/whole", body).await.expect(201);
    let mut shown = server.get("jobs/whole").await.expect(200);
    let services = shown["properties"]["services"].as_object().unwrap();
    assert_eq!(services.keys().collect::<Vec<_>>(), ["Studio"], "clients run what is called `Local` themselves");
    assert!(shown["properties"]["outputs"]["default"].is_null());
    shown["properties"]["tags"] = json!({"seen": "yes"});
    shown["properties"]["isArchived"] = json!(true);
    let changed = server.put("jobs/whole", shown).await.expect(200);
    assert_eq!(changed["properties"]["tags"]["seen"], "yes");
    assert_eq!(names(&server.get("jobs?listViewType=All").await.expect(200)), ["whole"]);
    assert!(names(&server.get("jobs").await.expect(200)).is_empty());
    for wrong in [json!({"tags": 5}), json!({"isArchived": "yes"}), json!({"description": {}})] {
        server.put("jobs/whole", json!({"properties": wrong})).await.refused(400);
    }
}

#[tokio::test]
async fn lists_are_narrowed_by_type_and_tag_and_pages_end_where_jobs_end() {
    let server = Server::start().await;
    for (name, team) in [("one", "a"), ("two", "b"), ("three", "a"), ("four", "a")] {
        let mut body = job_body();
        body["properties"]["tags"] = json!({"team": team});
        server.put(&format!("jobs/{name}"), body).await.expect(201);
    }
    for (query, expect) in [
        ("tag=team%3Da", &["four", "three", "one"][..]),
        ("tag=team", &["four", "three", "two", "one"]),
        ("tag=colour", &[]),
        ("jobType=Command&tag=team%3Db", &["two"]),
        ("jobType=Sweep", &[]),
    ] {
        assert_eq!(names(&server.get(&format!("jobs?{query}")).await.expect(200)), expect, "{query}");
    }
    let page = server.get("jobs?$top=4").await.expect(200);
    assert!(page["nextLink"].is_null(), "there is nothing after the last: {page}");
    let page = server.get("jobs?$top=2&tag=team%3Da&listViewType=All").await.expect(200);
    let rest = server.get(page["nextLink"].as_str().unwrap()).await.expect(200);
    assert_eq!((names(&rest), &rest["nextLink"]), (vec!["one".to_owned()], &Value::Null));
    server.get("jobs?$skipToken=elsewhere").await.refused(400);
}

#[tokio::test]
async fn kinds_that_cannot_run_are_refused_in_their_own_words() {
    let server = Server::start().await;
    for (kind, more, words) in [
        ("AutoML", json!({"taskDetails": {}}), "choose models"),
        ("Spark", json!({"entry": {}, "codeId": "x"}), "Spark"),
        ("Quantum", json!({}), "one of Command"),
    ] {
        let mut body = more;
        body["jobType"] = json!(kind);
        let (_, message) = server.put("jobs/other", json!({"properties": body})).await.refused(400);
        assert!(message.contains(words), "{kind}: {message}");
    }
    server.get("jobs/other").await.refused(404);
}

#[tokio::test]
async fn why_tells_the_whole_story() {
    let server = Server::start().await;
    server.submit("ahead").await;
    server.submit("puzzling").await;
    let why = server.get("jobs/puzzling/why").await.expect(200);
    assert_eq!((&why["status"], &why["ahead"]), (&json!("Queued"), &json!(1)));
    assert!(why["summary"].as_str().unwrap().contains("waits for its turn"), "{why}");
    server.post("jobs/puzzling/cancel", json!({})).await.expect(200);
    let why = server.get("jobs/puzzling/why").await.expect(200);
    let kinds: Vec<&str> =
        why["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["accepted", "cancel"]);
}

#[tokio::test]
async fn the_queue_tells_of_every_job_that_waits() {
    let server = Server::start().await;
    for name in ["first", "second", "gone"] {
        server.submit(name).await;
    }
    server.post("jobs/gone/cancel", json!({})).await.expect(200);
    let queue = server.get("queue").await.expect(200);
    assert_eq!((names(&queue), &queue["more"]), (vec!["first".to_owned(), "second".to_owned()], &json!(false)));
    for waiting in queue["value"].as_array().unwrap() {
        let why = server.get(&format!("jobs/{}/why", waiting["name"].as_str().unwrap())).await.expect(200);
        for key in ["note", "target", "ahead", "expected"] {
            assert_eq!(waiting[key], why[key], "{key}");
        }
    }
}

fn names(page: &Value) -> Vec<String> {
    page["value"].as_array().unwrap().iter().map(|job| job["name"].as_str().unwrap().to_owned()).collect()
}
