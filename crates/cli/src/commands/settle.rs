//! Operations that take a while: send, then ask again until the server says that it is over.

use super::Session;
use crate::failure::{Done, Exit, Failure};
use reqwest::{Method, Response, StatusCode, header::HeaderMap};
use serde_json::Value;
use std::time::Duration;

/// Puts a resource and, with `wait`, answers it as it is once the operation is over.
pub(crate) async fn put(session: &Session<'_>, path: &str, body: &Value, wait: bool) -> Done<Value> {
    let answer = session.client.send(session.client.request(Method::PUT, path).json(body)).await?;
    changed(session, path, answer, wait).await
}

/// Removes a resource and, with `wait`, returns when it is gone.
pub(crate) async fn delete(session: &Session<'_>, path: &str, wait: bool) -> Done {
    let answer = session.client.send(session.client.request(Method::DELETE, path)).await?;
    if wait {
        until_over(session, answer.status(), answer.headers()).await?;
    }
    Ok(())
}

/// Asks for an action; its answer, where it has one.
pub(crate) async fn post(session: &Session<'_>, path: &str, body: &Value, wait: bool) -> Done<Value> {
    let answer = session.client.send(session.client.request(Method::POST, path).json(body)).await?;
    if wait {
        until_over(session, answer.status(), answer.headers()).await?;
    }
    let text = answer.bytes().await.map_err(|error| session.client.unreachable(error))?;
    Ok(serde_json::from_slice(&text).unwrap_or(Value::Null))
}

async fn changed(session: &Session<'_>, path: &str, answer: Response, wait: bool) -> Done<Value> {
    let (status, headers) = (answer.status(), answer.headers().clone());
    let text = answer.bytes().await.map_err(|error| session.client.unreachable(error))?;
    if wait && until_over(session, status, &headers).await? {
        let path = path.split('?').next().unwrap_or(path);
        return Ok(session.client.get(path).await?);
    }
    Ok(serde_json::from_slice(&text).unwrap_or(Value::Null))
}

/// Follows an operation to its end; whether there was one to follow.
async fn until_over(session: &Session<'_>, status: StatusCode, headers: &HeaderMap) -> Done<bool> {
    let at = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    match (at("azure-asyncoperation"), at("location")) {
        (Some(operation), _) => follow(session, &operation, pause(headers)).await.map(|()| true),
        (None, Some(location)) if status == StatusCode::ACCEPTED => {
            poll(session, &location, pause(headers)).await.map(|()| true)
        }
        _ => Ok(false),
    }
}

/// An operation of its own, with a status.
async fn follow(session: &Session<'_>, operation: &str, mut wait: Duration) -> Done {
    loop {
        let answer = session.client.send(session.client.request(Method::GET, operation)).await?;
        let next = pause(answer.headers());
        let text = answer.bytes().await.map_err(|error| session.client.unreachable(error))?;
        let state: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
        match state["status"].as_str().unwrap_or("Succeeded").to_lowercase().as_str() {
            "succeeded" => return Ok(()),
            "failed" | "canceled" => return Err(failed(&state)),
            _ => tokio::time::sleep(wait).await,
        }
        wait = next;
    }
}

/// An address that answers 202 until it is done.
async fn poll(session: &Session<'_>, location: &str, mut wait: Duration) -> Done {
    loop {
        let answer = session.client.send(session.client.request(Method::GET, location)).await?;
        if answer.status() != StatusCode::ACCEPTED {
            return Ok(());
        }
        tokio::time::sleep(wait).await;
        wait = pause(answer.headers());
    }
}

fn failed(state: &Value) -> Failure {
    let word = |key: &str| state["error"][key].as_str().map(str::to_owned);
    let message = word("message").unwrap_or_else(|| "the server could not finish the operation".to_owned());
    Failure::new(Exit::Input, message)
}

/// How long the server would like to be left alone; on this machine it need not be long.
fn pause(headers: &HeaderMap) -> Duration {
    let seconds = headers.get("retry-after").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    Duration::from_millis(seconds.unwrap_or(1).clamp(0, 30) * 1_000).max(Duration::from_millis(50))
}
