//! Operations that take a while: send, then ask again until the server says that it is over.

use super::Session;
use crate::failure::{Done, Exit, Failure};
use reqwest::{Method, Response, StatusCode, header::HeaderMap};
use serde_json::Value;
use std::time::Duration;

/// A change that the server may still be carrying out.
pub(crate) struct Operation {
    asked: Asked,
    pause: Duration,
}

enum Asked {
    /// An operation of its own, with a status.
    Status(String),
    /// An address that answers 202 until it is done.
    Result(String),
    Nobody,
}

impl Operation {
    fn of(answer: &Response) -> Operation {
        let headers = answer.headers();
        let at = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let asked = match (at("azure-asyncoperation"), at("location")) {
            (Some(operation), _) => Asked::Status(operation),
            (None, Some(location)) if answer.status() == StatusCode::ACCEPTED => Asked::Result(location),
            _ => Asked::Nobody,
        };
        Operation { asked, pause: pause(headers) }
    }

    /// Asks whether it is over; one that failed is a failure.
    pub(crate) async fn is_over(&mut self, session: &Session<'_>) -> Done<bool> {
        let (Asked::Status(address) | Asked::Result(address)) = &self.asked else { return Ok(true) };
        let answer = session.client.send(session.client.request(Method::GET, address)).await?;
        self.pause = pause(answer.headers());
        if let Asked::Result(_) = self.asked {
            return Ok(answer.status() != StatusCode::ACCEPTED);
        }
        let text = answer.bytes().await.map_err(|error| session.client.unreachable(error))?;
        let state: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
        match state["status"].as_str().unwrap_or("Succeeded").to_lowercase().as_str() {
            "succeeded" => Ok(true),
            "failed" | "canceled" => Err(failed(&state)),
            _ => Ok(false),
        }
    }

    /// Waits until it is over.
    async fn end(mut self, session: &Session<'_>) -> Done {
        while !self.is_over(session).await? {
            tokio::time::sleep(self.pause).await;
        }
        Ok(())
    }
}

/// Puts a resource; what the server says of it, and the operation to follow.
pub(crate) async fn begin(session: &Session<'_>, path: &str, body: &Value) -> Done<(Value, Operation)> {
    let answer = session.client.send(session.client.request(Method::PUT, path).json(body)).await?;
    let operation = Operation::of(&answer);
    let text = answer.bytes().await.map_err(|error| session.client.unreachable(error))?;
    Ok((serde_json::from_slice(&text).unwrap_or(Value::Null), operation))
}

/// Puts a resource and, with `wait`, answers it as it is once the operation is over.
pub(crate) async fn put(session: &Session<'_>, path: &str, body: &Value, wait: bool) -> Done<Value> {
    let (made, operation) = begin(session, path, body).await?;
    if !wait || matches!(operation.asked, Asked::Nobody) {
        return Ok(made);
    }
    operation.end(session).await?;
    Ok(session.client.get(path.split('?').next().unwrap_or(path)).await?)
}

/// Removes a resource and, with `wait`, returns when it is gone.
pub(crate) async fn delete(session: &Session<'_>, path: &str, wait: bool) -> Done<Value> {
    let answer = session.client.send(session.client.request(Method::DELETE, path)).await?;
    let operation = Operation::of(&answer);
    let text = answer.bytes().await.map_err(|error| session.client.unreachable(error))?;
    if wait {
        operation.end(session).await?;
    }
    Ok(serde_json::from_slice(&text).unwrap_or(Value::Null))
}

/// Asks for an action; its answer, where it has one.
pub(crate) async fn post(session: &Session<'_>, path: &str, body: &Value, wait: bool) -> Done<Value> {
    let answer = session.client.send(session.client.request(Method::POST, path).json(body)).await?;
    let operation = Operation::of(&answer);
    let text = answer.bytes().await.map_err(|error| session.client.unreachable(error))?;
    if wait {
        operation.end(session).await?;
    }
    Ok(serde_json::from_slice(&text).unwrap_or(Value::Null))
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
