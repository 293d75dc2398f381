//! `…/workspaces`: what one holds the others do not see.

use crate::{Server, WS, job_body};
use serde_json::json;

#[tokio::test]
async fn a_workspace_keeps_its_jobs_and_assets_to_itself() {
    let server = Server::start().await;
    let other = WS.replace("default", "team");
    server.put(&other, json!({"location": "here", "properties": {"description": "ours"}})).await.expect(200);
    server.put(&format!("{other}/jobs/theirs"), job_body()).await.expect(201);
    server.get("jobs/theirs").await.refused(404);
    server.submit("theirs").await;
    let shown = server.get(&other).await.expect(200);
    assert_eq!(shown["properties"]["description"], "ours");
    let all = server.get(WS.trim_end_matches("/default")).await.expect(200);
    assert_eq!(all["value"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_workspace_goes_only_when_nothing_runs_in_it() {
    let server = Server::start().await;
    let other = WS.replace("default", "team");
    server.put(&other, json!({})).await.expect(200);
    server.put(&format!("{other}/jobs/open"), job_body()).await.expect(201);
    server.delete(&other).await.refused(409);
    server.post(&format!("{other}/jobs/open/cancel"), json!({})).await.expect(200);
    server.delete(&other).await.expect(200);
    let (_, message) = server.get(&format!("{other}/jobs")).await.refused(404);
    assert!(message.contains("there are: default"), "{message}");
    server.delete(WS).await.refused(409);
    server.put(&WS.replace("default", "a%20b"), json!({})).await.refused(400);
}
