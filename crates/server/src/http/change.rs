//! Changes that may be refused: what stands in the way is looked up in the transaction that would make the change.
//!
//! Invariants: a refusal leaves nothing behind if it comes before the first write; marks (`ETag`) are compared in the
//! same transaction as the write they guard.

use crate::{app::App, problem::Problem};
use axum::{
    Json,
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde_json::Value;
use std::convert::Infallible;
use store::Tx;

/// Why a change did not happen.
pub(crate) enum Halt {
    Refused(Problem),
    Failed(store::Error),
}

impl From<Problem> for Halt {
    fn from(problem: Problem) -> Halt {
        Halt::Refused(problem)
    }
}

impl From<store::Error> for Halt {
    fn from(error: store::Error) -> Halt {
        Halt::Failed(error)
    }
}

/// Runs `work` in a transaction; a refusal comes back as it is.
pub(crate) async fn change<T, F>(app: &App, work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<T, Halt> + Send + 'static,
{
    app.store.write(move |tx| settled(work(tx))).await?
}

/// The same for work that only looks.
pub(crate) async fn look<T, F>(app: &App, work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<T, Halt> + Send + 'static,
{
    app.store.read(move |tx| settled(work(tx))).await?
}

fn settled<T>(done: Result<T, Halt>) -> Result<Result<T, Problem>, store::Error> {
    match done {
        Ok(done) => Ok(Ok(done)),
        Err(Halt::Refused(problem)) => Ok(Err(problem)),
        Err(Halt::Failed(error)) => Err(error),
    }
}

/// The mark of one state of a resource: other content or another time of change, another mark.
pub(crate) fn mark(parts: &[&str]) -> String {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    for part in parts {
        context.update(part.as_bytes());
        context.update(b"\0");
    }
    format!("\"{}\"", store::secrets::hex(&context.finish().as_ref()[..8]))
}

/// `If-Match` and `If-None-Match` of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conditions {
    only_if: Option<String>,
    not_if: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Conditions {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Conditions, Infallible> {
        let text =
            |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
        Ok(Conditions { only_if: text(header::IF_MATCH), not_if: text(header::IF_NONE_MATCH) })
    }
}

impl Conditions {
    /// Whether a change may go on, given the mark of what is there now.
    pub(crate) fn hold(&self, what: &str, current: Option<&str>) -> Result<(), Problem> {
        let fails = |message: String| Err(Problem::new(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", message));
        if let Some(wanted) = &self.only_if
            && !matches(wanted, current)
        {
            return fails(match current {
                Some(_) => format!("{what} has changed since you read it; read it again and repeat your change"),
                None => format!("{what} does not exist, so it is not in the state that `If-Match` names"),
            });
        }
        if let Some(unwanted) = &self.not_if
            && matches(unwanted, current)
        {
            return fails(format!("{what} exists already, and `If-None-Match` asks for it not to"));
        }
        Ok(())
    }
}

fn matches(list: &str, current: Option<&str>) -> bool {
    let Some(current) = current else { return false };
    let bare = |text: &str| text.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    list.split(',').any(|one| one.trim() == "*" || bare(one) == bare(current))
}

/// A resource as the answer: with its mark, and after a change with the operation that made it.
pub(crate) struct Shown {
    status: StatusCode,
    body: Value,
    headers: HeaderMap,
}

impl Shown {
    pub(crate) fn found(body: Value) -> Shown {
        Shown { status: StatusCode::OK, body, headers: HeaderMap::new() }
    }

    /// What a `PUT` made, or changed if it `existed`.
    pub(crate) fn made(body: Value, existed: bool) -> Shown {
        let status = if existed { StatusCode::OK } else { StatusCode::CREATED };
        Shown { status, ..Shown::found(body) }
    }

    /// Nothing to show but where to ask whether it is done.
    pub(crate) fn accepted() -> Shown {
        Shown { status: StatusCode::ACCEPTED, ..Shown::found(Value::Null) }
    }

    /// With what is to be said of it after all.
    pub(crate) fn saying(self, body: Value) -> Shown {
        Shown { body, ..self }
    }

    /// With the address to ask at.
    pub(crate) fn tracked(mut self, header: &'static str, url: &str) -> Shown {
        if let Ok(value) = HeaderValue::from_str(url) {
            self.headers.insert(header, value);
            self.headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        self
    }
}

impl IntoResponse for Shown {
    fn into_response(mut self) -> Response {
        if let Some(mark) = self.body.get("etag").and_then(Value::as_str)
            && let Ok(value) = HeaderValue::from_str(mark)
        {
            self.headers.insert(header::ETAG, value);
        }
        match self.body {
            Value::Null => (self.status, self.headers).into_response(),
            body => (self.status, self.headers, Json(body)).into_response(),
        }
    }
}

/// What a `PATCH` says laid over what is there: objects are merged, a null takes away, anything else replaces.
pub(crate) fn merge(old: &mut Value, new: &Value) {
    let (Value::Object(old), Value::Object(new)) = (&mut *old, new) else {
        *old = new.clone();
        return;
    };
    for (key, value) in new {
        match value {
            Value::Null => drop(old.remove(key)),
            value => merge(old.entry(key).or_insert(Value::Null), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_hold_only_for_the_state_they_name() {
        let asked = |only: Option<&str>, not: Option<&str>| Conditions {
            only_if: only.map(str::to_owned),
            not_if: not.map(str::to_owned),
        };
        for (conditions, current, holds) in [
            (asked(None, None), None, true),
            (asked(Some("\"a\""), None), Some("\"a\""), true),
            (asked(Some("a"), None), Some("\"a\""), true),
            (asked(Some("\"b\", W/\"a\""), None), Some("\"a\""), true),
            (asked(Some("\"b\""), None), Some("\"a\""), false),
            (asked(Some("*"), None), Some("\"a\""), true),
            (asked(Some("*"), None), None, false),
            (asked(None, Some("*")), None, true),
            (asked(None, Some("*")), Some("\"a\""), false),
        ] {
            assert_eq!(conditions.hold("it", current).is_ok(), holds, "{conditions:?} {current:?}");
        }
    }

    #[test]
    fn a_patch_merges_objects_and_takes_away_nulls() {
        let mut kept = json!({"tags": {"a": "1", "b": "2"}, "properties": {"x": [1, 2], "y": {"z": 1}}});
        merge(&mut kept, &json!({"tags": {"b": null, "c": "3"}, "properties": {"x": [3], "y": {"w": 2}}}));
        assert_eq!(kept, json!({"tags": {"a": "1", "c": "3"}, "properties": {"x": [3], "y": {"z": 1, "w": 2}}}));
    }
}
