//! Attempts of several parts: all begin or none, and the first failure ends them all.

use super::*;
use domain::report::Sample;

fn of_two() -> Value {
    json!({"resources": {"instanceCount": 2}, "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1}})
}

#[tokio::test]
async fn no_part_is_handed_out_before_every_part_is_there() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let gang = operator.launch("gang", of_two()).await;
    assert_eq!(gang.launch.parts, 2);
    // The first part waits for the second, and both are then told where everyone is.
    let (first, second) = tokio::join!(gang.poll(0, "10.0.0.1", false), gang.poll(1, "10.0.0.2", false));
    for (index, answer) in [first, second].into_iter().enumerate() {
        let part = answer.assignments[0].part.clone().unwrap();
        assert_eq!((part.index as usize, part.addresses.join(" ")), (index, "10.0.0.1 10.0.0.2".to_owned()));
    }
    let stranger = gang.poll(1, "10.0.0.9", false).await;
    assert_eq!(stranger.unknown, [gang.attempt().clone()], "a part that was taken is not handed to another pod");
    gang.report(0, vec![What::Preparing, What::Started { pid: 1 }]).await;
    assert_eq!(gang.status().await, "Preparing", "part 1 does not run yet");
    gang.report(1, vec![What::Preparing, What::Started { pid: 1 }]).await;
    assert_eq!(gang.status().await, "Running");
    assert_eq!(gang.report(1, vec![over(Outcome::Completed)]).await.recorded, [gang.attempt().clone()]);
    assert_eq!(gang.status().await, "Running");
    gang.report(0, vec![over(Outcome::Completed)]).await;
    assert_eq!(gang.status().await, "Completed");
}

#[tokio::test]
async fn readings_of_each_part_say_whose_they_are() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let gang = operator.launch("gang", of_two()).await;
    tokio::join!(gang.poll(0, "a", false), gang.poll(1, "b", false));
    for part in [0, 1] {
        gang.report(part, vec![What::Started { pid: 1 }]).await;
        let at = server::clock::now();
        let cpu_percent = f64::from(part) + 1.0;
        let sample = Sample { at, cpu_percent, memory_used_bytes: 1, memory_total_bytes: 2, gpus: Vec::new() };
        let (facts, samples) = (node(), vec![sample]);
        let batch = ReportBatch { facts, reports: Vec::new(), samples, part: Some(part), sent_at: None };
        gang.pod.post::<ReportAnswer>("/agent/v1/report", &batch).await.unwrap();
    }
    let shown = server.get("jobs/gang/samples").await.expect(200);
    let read = |at: usize| (&shown["value"][at]["part"], &shown["value"][at]["cpu_percent"]);
    assert_eq!([read(0), read(1)], [(&json!(0), &json!(1.0)), (&json!(1), &json!(2.0))], "{shown}");
}

#[tokio::test]
async fn parameter_servers_have_pods_of_their_own() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let spread = json!({"distributionType": "TensorFlow", "workerCount": 2, "parameterServerCount": 1});
    let gang = operator.launch("servers", json!({"resources": {"instanceCount": 2}, "distribution": spread})).await;
    assert_eq!(gang.launch.parts, 3);
    let all = tokio::join!(gang.poll(0, "a", false), gang.poll(1, "b", false), gang.poll(2, "c", false));
    assert_eq!(all.2.assignments[0].part.clone().unwrap().addresses, ["a", "b", "c"]);
}

#[tokio::test]
async fn when_one_part_fails_the_others_are_stopped_and_its_reason_is_the_jobs() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let gang = operator.launch("gang", of_two()).await;
    tokio::join!(gang.poll(0, "a", false), gang.poll(1, "b", false));
    for part in [0, 1] {
        gang.report(part, vec![What::Started { pid: 1 }]).await;
    }
    let failure =
        Failure { exit_code: Some(3), ..Failure::new("UserError.ExitCode", "the command exited with code 3") };
    let (told, _) = tokio::join!(gang.poll(0, "a", true), gang.report(1, vec![over(Outcome::Failed(failure))]));
    assert_eq!(told.stop, [gang.attempt().clone()]);
    assert_eq!(gang.status().await, "Running", "part 0 may still have processes");
    gang.report(0, vec![over(Outcome::Canceled { reason: "stopped".into() })]).await;
    assert_eq!(gang.status().await, "Failed");
    let why = gang.why().await;
    assert_eq!(why["failure"]["message"], "part 1 of 2: the command exited with code 3");
    assert_eq!(why["failure"]["exit_code"], 3);
}

#[tokio::test]
async fn a_part_that_goes_before_all_are_there_ends_the_attempt_and_nobody_begins() {
    let server = Server::start().await;
    let operator = Operator::attached(&server).await;
    let gang = operator.launch("gang", of_two()).await;
    let waits = gang.poll(0, "a", false);
    let (told, ()) = tokio::join!(waits, operator.news(gang.attempt(), gone(1, true)));
    assert!(told.assignments.is_empty() && told.unknown == [gang.attempt().clone()], "{told:?}");
    assert_eq!(gang.status().await, "Queued", "a new attempt may have more luck");
}
