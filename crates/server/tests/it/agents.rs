//! `/agent/v1`: offers out, reports in, and what becomes of attempts that nobody knows any more.

use crate::{Server, ask, job_body};
use domain::{
    AttemptId, Outcome, Resources, Timestamp,
    job::Failure,
    report::{NodeFacts, Poll, PollAnswer, Report, ReportAnswer, ReportBatch, Sample, What},
};
use reqwest::Method;
use serde_json::{Value, json};
use store::Bell;

#[tokio::test]
async fn a_job_goes_from_offer_to_its_end_by_reports() {
    let server = Server::start().await;
    server.submit("train").await;
    let attempt = server.place("train").await;
    let offered = poll(&server, "boot", &[]).await;
    assert_eq!(offered.assignments.len(), 1);
    let assignment = &offered.assignments[0];
    assert_eq!((&assignment.attempt, assignment.plan.command.as_str()), (&attempt, "echo hi"));
    let steps = [
        (What::Preparing, "Preparing"),
        (What::Started { pid: 7 }, "Running"),
        (What::Exited { code: Some(0), signal: None }, "Finalizing"),
        (over(Outcome::Completed), "Completed"),
    ];
    for (what, status) in steps {
        let end = matches!(what, What::Over { .. });
        let answer = report(&server, &attempt, vec![what]).await;
        assert_eq!(answer.recorded.contains(&attempt), end);
        assert_eq!(status_of(&server, "train").await, status);
    }
}

#[tokio::test]
async fn a_report_that_comes_twice_changes_nothing_and_is_acknowledged_again() {
    let server = Server::start().await;
    server.submit("twice").await;
    let attempt = server.place("twice").await;
    let all = vec![
        What::Preparing,
        What::Started { pid: 7 },
        What::Exited { code: Some(0), signal: None },
        over(Outcome::Completed),
    ];
    for _ in 0..2 {
        let answer = report(&server, &attempt, all.clone()).await;
        assert!(answer.recorded.contains(&attempt));
    }
    let late = Failure::new("UserError.ExitCode", "too late");
    report(&server, &attempt, vec![over(Outcome::Failed(late))]).await;
    assert_eq!(status_of(&server, "twice").await, "Completed");
    assert_eq!(kinds(&server, "twice").await, ["accepted", "preparing", "running", "exited", "ended"]);
}

#[tokio::test]
async fn news_of_an_attempt_that_is_not_the_current_one_is_old_news() {
    let server = Server::start().await;
    server.submit("again").await;
    let first = server.place("again").await;
    let lost = Failure { retryable: true, ..Failure::new("NodeDiskFull", "no space") };
    report(&server, &first, vec![over(Outcome::Failed(lost))]).await;
    assert_eq!(status_of(&server, "again").await, "Queued");
    let second = server.place("again").await;
    assert_ne!(first, second);
    report(&server, &first, vec![What::Started { pid: 1 }, over(Outcome::Completed)]).await;
    assert_eq!(status_of(&server, "again").await, "Queued");
    let stranger = AttemptId::of(4711, 0);
    assert_eq!(report(&server, &stranger, vec![over(Outcome::Completed)]).await.recorded, [stranger]);
}

#[tokio::test]
async fn a_held_attempt_is_not_offered_again_and_learns_of_its_stop() {
    let server = Server::start().await;
    server.submit("stopped").await;
    let attempt = server.place("stopped").await;
    report(&server, &attempt, vec![What::Started { pid: 7 }]).await;
    let held = [attempt.clone()];
    // The poll waits, because there is nothing to say until the stop.
    let (answer, _) = tokio::join!(poll(&server, "boot", &held), server.post("jobs/stopped/cancel", json!({})));
    assert!(answer.assignments.is_empty());
    assert_eq!(answer.stop, held);
    assert_eq!(status_of(&server, "stopped").await, "CancelRequested");
    report(&server, &attempt, vec![over(Outcome::Canceled { reason: "asked".into() })]).await;
    assert_eq!(status_of(&server, "stopped").await, "Canceled");
}

#[tokio::test]
async fn work_the_agent_has_forgotten_is_lost_and_tried_again_as_often_as_allowed() {
    let server = Server::start().await;
    server.submit("lost").await;
    for (round, status) in ["Queued", "Failed"].into_iter().enumerate() {
        let attempt = server.place("lost").await;
        report(&server, &attempt, vec![What::Preparing, What::Started { pid: 7 }]).await;
        // Another boot each time: the machine restarted, so nothing it ran can be alive.
        poll_until(&server, &format!("boot-{round}"), "lost", status).await;
    }
    let why = server.get("jobs/lost/why").await.expect(200);
    assert_eq!(why["failure"]["code"], "AttemptLost");
    assert_eq!(kinds(&server, "lost").await.iter().filter(|kind| *kind == "lost").count(), 2);
}

#[tokio::test]
async fn a_stop_that_never_had_to_reach_the_node_is_done() {
    let server = Server::start().await;
    server.submit("never").await;
    server.place("never").await;
    server.post("jobs/never/cancel", json!({})).await.expect(202);
    poll_until(&server, "boot", "never", "Canceled").await;
}

#[tokio::test]
async fn an_attempt_the_server_knows_nothing_of_is_to_be_dropped() {
    let server = Server::start().await;
    let stranger = AttemptId::of(4711, 0);
    assert_eq!(poll(&server, "boot", std::slice::from_ref(&stranger)).await.unknown, [stranger]);
}

#[tokio::test]
async fn a_named_output_becomes_an_asset_when_its_job_completes() {
    let server = Server::start().await;
    let mut body = job_body();
    body["properties"]["command"] = json!("cp x ${{outputs.model}}");
    body["properties"]["outputs"] =
        json!({"model": {"jobOutputType": "uri_folder", "mode": "ReadWriteMount", "assetName": "weights"}});
    server.put("jobs/maker", body).await.expect(201);
    let attempt = server.place("maker").await;
    server.get("data/weights").await.refused(404);
    for _ in 0..2 {
        report(&server, &attempt, vec![What::Started { pid: 7 }, over(Outcome::Completed)]).await;
    }
    let asset = server.get("data/weights/versions/1").await.expect(200);
    assert_eq!(asset["properties"]["jobName"], "maker");
    assert_eq!(server.get("data/weights").await.expect(200)["properties"]["nextVersion"], "2");
}

#[tokio::test]
async fn a_jobs_token_reads_its_own_job_and_nothing_else() {
    let server = Server::start().await;
    server.submit("mine").await;
    server.submit("yours").await;
    server.place("mine").await;
    let assignment = poll(&server, "boot", &[]).await.assignments.remove(0);
    let inside = server.with_token(&assignment.server_variables["AZUREML_RUN_TOKEN"]);
    let path = |rest: &str| format!("{}/jobs/{rest}", crate::WS);
    assert_eq!(ask(&inside, Method::GET, &path("mine"), None).await.status, 200);
    assert_eq!(ask(&inside, Method::GET, &path("mine/why"), None).await.status, 200);
    ask(&inside, Method::GET, &path("yours"), None).await.refused(403);
    ask(&inside, Method::GET, &path("mine2"), None).await.refused(403);
    ask(&inside, Method::POST, &path("mine/cancel"), Some(json!({}))).await.refused(403);
    ask(&inside, Method::POST, "/agent/v1/poll", Some(json!({}))).await.refused(403);
}

#[tokio::test]
async fn readings_of_the_node_are_shown_with_the_job_that_ran_then() {
    let server = Server::start().await;
    server.submit("sampled").await;
    let attempt = server.place("sampled").await;
    poll(&server, "boot", &[]).await;
    report(&server, &attempt, vec![What::Started { pid: 7 }]).await;
    let at = server::clock::now();
    let sample = |at| Sample { at, cpu_percent: 50.0, memory_used_bytes: 1, memory_total_bytes: 2, gpus: Vec::new() };
    let samples = vec![sample(at), sample(at), sample(Timestamp(at.0 - 3_600_000))];
    let batch = ReportBatch { facts: facts("boot"), reports: Vec::new(), samples, part: None, sent_at: None };
    server.agent.post::<ReportAnswer>("/agent/v1/report", &batch).await.unwrap();
    let shown = server.get("jobs/sampled/samples").await.expect(200);
    assert_eq!(shown["value"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["value"][0]["part"], 0, "{shown}");
}

pub(crate) fn facts(boot: &str) -> NodeFacts {
    let capacity = Resources { cpu_milli: 4000, memory_bytes: 8 << 30, gpus: 0 };
    NodeFacts { node: "node".into(), boot_id: boot.into(), version: "t".into(), capacity, gpu_models: Vec::new() }
}

pub(crate) async fn poll(server: &Server, boot: &str, holds: &[AttemptId]) -> PollAnswer {
    let poll = Poll { facts: facts(boot), holds: holds.to_vec(), stopping: Vec::new(), joining: None };
    server.agent.post("/agent/v1/poll", &poll).await.unwrap()
}

/// Polls without holding anything until the job is so far. The poll itself may well go on waiting.
async fn poll_until(server: &Server, boot: &str, job: &str, status: &str) {
    let mut bell = server.store.changed(Bell::Jobs);
    let reached = async {
        while status_of(server, job).await != status {
            bell.changed().await.unwrap();
        }
    };
    tokio::select! {
        _ = poll(server, boot, &[]) => assert_eq!(status_of(server, job).await, status),
        () = reached => {}
    }
}

pub(crate) async fn report(server: &Server, attempt: &AttemptId, what: Vec<What>) -> ReportAnswer {
    let at = server::clock::now();
    let reports = what.into_iter().map(|what| Report { attempt: attempt.clone(), at, what }).collect();
    let batch = ReportBatch { facts: facts("boot"), reports, samples: Vec::new(), part: None, sent_at: None };
    server.agent.post("/agent/v1/report", &batch).await.unwrap()
}

fn over(outcome: Outcome) -> What {
    What::Over { outcome, isolation: "none".into() }
}

async fn status_of(server: &Server, job: &str) -> String {
    let shown: Value = server.get(&format!("jobs/{job}")).await.expect(200);
    shown["properties"]["status"].as_str().unwrap().to_owned()
}

async fn kinds(server: &Server, job: &str) -> Vec<String> {
    let why = server.get(&format!("jobs/{job}/why")).await.expect(200);
    why["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}
