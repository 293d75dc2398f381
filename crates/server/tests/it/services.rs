//! `services` of jobs: streams between users and what runs beside a command.

use crate::{
    Server,
    access::someone,
    agents::{poll, report},
    ask, job_body, under_workspace,
};
use api::ClientError;
use domain::{
    AttemptId, Role,
    report::What,
    tunnel::{Unopened, Way},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CONNECT: &str = "jobs/open/services/web/connect";

/// A server with a job `open` that runs and has services.
async fn running() -> (Server, AttemptId) {
    let server = Server::start().await;
    let mut body = job_body();
    body["properties"]["services"] = json!({
        "web": {"jobServiceType": "Custom", "port": 8080}, "code": {"jobServiceType": "VSCode"},
    });
    server.put("jobs/open", body).await.expect(201);
    let attempt = server.place("open").await;
    report(&server, &attempt, vec![What::Started { pid: 7 }]).await;
    (server, attempt)
}

#[tokio::test]
async fn bytes_go_both_ways_between_a_user_and_the_agent_that_was_asked() {
    let (server, attempt) = running().await;
    let agent = async {
        let told = poll(&server, "boot", std::slice::from_ref(&attempt)).await.tunnels;
        assert_eq!((told.len(), &told[0].attempt, &told[0].way), (1, &attempt, &Way::Port(8080)));
        let path = format!("/agent/v1/tunnels/{}", told[0].id);
        let mut far = server.agent.stream(&path).await.unwrap();
        let mut heard = [0; 4];
        far.read_exact(&mut heard).await.unwrap();
        far.write_all(b"pong").await.unwrap();
        far.shutdown().await.unwrap();
        assert_eq!(&heard, b"ping");
        assert!(server.agent.stream(&path).await.is_err(), "a tunnel is opened once");
    };
    let user = async {
        let mut near = server.user.stream(&under_workspace(CONNECT)).await.unwrap();
        near.write_all(b"ping").await.unwrap();
        let mut heard = Vec::new();
        near.read_to_end(&mut heard).await.unwrap();
        assert_eq!(heard, b"pong");
    };
    tokio::join!(agent, user);
    let why = server.get("jobs/open/why").await.expect(200);
    assert!(why["events"].as_array().unwrap().iter().any(|event| event["kind"] == "service"), "{why:#}");
}

#[tokio::test]
async fn an_agent_that_cannot_reach_a_service_says_why() {
    let (server, attempt) = running().await;
    let agent = async {
        let told = poll(&server, "boot", std::slice::from_ref(&attempt)).await.tunnels;
        let why = "nothing answers on port 8080".to_owned();
        // The answer has no body, which is nothing to read.
        let _ = server.agent.post::<Value>(&format!("/agent/v1/tunnels/{}", told[0].id), &Unopened { why }).await;
    };
    let connect = under_workspace(CONNECT);
    let (_, refused) = tokio::join!(agent, server.user.stream(&connect));
    let Err(ClientError::Refused { status, code, message, .. }) = refused else { panic!("it was not refused") };
    assert_eq!((status, code.as_str(), message.as_str()), (409, "ServiceUnreachable", "nothing answers on port 8080"));
}

#[tokio::test]
async fn services_are_the_jobs_users_while_it_runs_and_streams_are_asked_for_as_such() {
    let (server, attempt) = running().await;
    let status = async |client: &api::Client, path: &str| match client.stream(&under_workspace(path)).await {
        Err(ClientError::Refused { status, .. }) => status,
        other => panic!("{other:?}"),
    };
    let (other, _) = someone(&server, "ben", Role::Contributor, None).await;
    assert_eq!(status(&other, CONNECT).await, 403);
    for (path, expected) in [
        ("jobs/open/services/none/connect", 404),
        ("jobs/none/services/web/connect", 404),
        ("jobs/open/services/web/connect?node=1", 404),
        ("jobs/open/services/code/connect", 400),
        ("jobs/open/services/web/connect?node=x", 400),
    ] {
        assert_eq!(status(&server.user, path).await, expected, "{path}");
    }
    ask(&server.user, Method::POST, &under_workspace(CONNECT), None).await.refused(426);
    assert_eq!(status(&server.agent, "/agent/v1/tunnels/none").await, 404);
    report(&server, &attempt, vec![What::Exited { code: Some(0), signal: None }]).await;
    assert_eq!(status(&server.user, CONNECT).await, 409);
}
