//! Refusals in MLflow's envelope, and work in a transaction that may end in one.

use crate::{app::App, problem::Problem};
use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use domain::tracking::{Bad, ErrorCode};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use store::{Error, Tx};

/// A refusal: the code clients branch on, and a sentence for people.
#[derive(Debug)]
pub(crate) struct Fault {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Fault {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Fault {
        let status = StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Fault { status, code: code.as_str(), message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Fault {
        Fault::new(ErrorCode::InvalidParameterValue, message)
    }

    pub(super) fn missing(message: impl Into<String>) -> Fault {
        Fault::new(ErrorCode::ResourceDoesNotExist, message)
    }

    pub(super) fn exists(message: impl Into<String>) -> Fault {
        Fault::new(ErrorCode::ResourceAlreadyExists, message)
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Fault {
        Fault::new(ErrorCode::PermissionDenied, message)
    }

    /// A parameter that had to be there.
    pub(super) fn required(key: &str) -> Fault {
        let docs = "See the API docs for more information about request parameters.";
        Fault::invalid(format!("Missing value for required parameter '{key}'. {docs}"))
    }

    /// A parameter of another type than it has.
    pub(super) fn mistyped(key: &str, value: &Value) -> Fault {
        let kind = match value {
            Value::Null => "nothing",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "text",
            Value::Array(_) => "list",
            Value::Object(_) => "object",
        };
        let shown = domain::tracking::text::json(value);
        Fault::invalid(format!("Invalid value {shown} for parameter '{key}' supplied: its type is {kind}"))
    }
}

impl From<Bad> for Fault {
    fn from(bad: Bad) -> Fault {
        Fault::new(bad.code, bad.message)
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        let code = match problem.status {
            StatusCode::UNAUTHORIZED => ErrorCode::Unauthenticated,
            StatusCode::FORBIDDEN => ErrorCode::PermissionDenied,
            StatusCode::NOT_FOUND => ErrorCode::ResourceDoesNotExist,
            StatusCode::CONFLICT => ErrorCode::ResourceConflict,
            StatusCode::TOO_MANY_REQUESTS => ErrorCode::RequestLimitExceeded,
            status if status.is_client_error() => ErrorCode::InvalidParameterValue,
            StatusCode::SERVICE_UNAVAILABLE => ErrorCode::TemporarilyUnavailable,
            _ => ErrorCode::InternalError,
        };
        let fault = Fault { status: problem.status, code: code.as_str(), message: problem.message.clone() };
        problem.log();
        fault
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Problem::from(error).into()
    }
}

impl From<store::files::BadPath> for Fault {
    fn from(bad: store::files::BadPath) -> Fault {
        Fault::invalid(format!("Invalid path: {}", bad.0))
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        (self.status, Json(json!({"error_code": self.code, "message": self.message}))).into_response()
    }
}

/// Runs `work` in a transaction; a fault undoes everything it did.
pub(super) async fn write<T, F>(app: &App, work: F) -> Result<T, Fault>
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
{
    let fault: Arc<Mutex<Option<Fault>>> = Arc::default();
    let told = Arc::clone(&fault);
    let done = app.store.write(move |tx| {
        work(tx).map_err(|fault| {
            *told.lock().expect("nothing panics while it holds the fault") = Some(fault);
            Error::Refused
        })
    });
    let done = done.await;
    let fault = fault.lock().expect("nothing panics while it holds the fault").take();
    match fault {
        Some(fault) => Err(fault),
        None => Ok(done?),
    }
}

/// Runs `work` on a snapshot.
pub(super) async fn read<T, F>(app: &App, work: F) -> Result<T, Fault>
where
    T: Send + 'static,
    F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
{
    app.store.read(move |tx| Ok(work(tx))).await?
}
