//! What can go wrong with a request, and how it is told.
//!
//! Outside: a stable `code`, a plain `message`, details. Inside: the whole chain, logged once with the request's id.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{Illegal, spec::Mistake};
use serde_json::json;

/// An answer that is not what was asked for.
#[derive(Debug)]
pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: String,
    pub details: Vec<(String, String)>,
    /// For the log only.
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem { status, code, message: message.into(), details: Vec::new(), cause: None }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, "UserError", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, "Conflict", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::FORBIDDEN, "AuthorizationFailed", message)
    }

    pub(crate) fn gone(message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::GONE, "Gone", message)
    }

    pub(crate) fn not_found(noun: &str, name: &str) -> Problem {
        let message = format!("there is no {noun} `{name}`");
        Problem::new(StatusCode::NOT_FOUND, "ResourceNotFound", message)
    }

    /// A 404 that names what does exist.
    pub(crate) fn missing(noun: &str, name: &str, known: &[String]) -> Problem {
        let mut problem = Problem::not_found(noun, name);
        problem.message += &match known {
            [] => String::new(),
            names => format!(" (there are: {})", names.iter().take(20).cloned().collect::<Vec<_>>().join(", ")),
        };
        problem
    }

    /// All mistakes of a body at once.
    pub(crate) fn mistakes(what: &str, mistakes: &[Mistake]) -> Problem {
        let first = mistakes.first().map_or_else(String::new, ToString::to_string);
        let message = match mistakes.len() {
            1 => format!("{what} is refused: {first}"),
            n => format!("{what} is refused for {n} reasons; the first: {first}"),
        };
        let mut problem = Problem::bad(message);
        problem.details = mistakes.iter().map(|m| ("InvalidValue".to_owned(), m.to_string())).collect();
        problem
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Problem {
        use store::Error as E;
        let (status, code, message) = match &error {
            E::Conflict => (StatusCode::CONFLICT, "Conflict", "someone else changed it at the same moment; try again"),
            E::Exists => (StatusCode::CONFLICT, "AlreadyExists", "it exists already"),
            E::Full { .. } => (
                StatusCode::INSUFFICIENT_STORAGE,
                "DiskFull",
                "the server's disk is full and nothing was changed; free some space and try again",
            ),
            E::Refused => (StatusCode::BAD_REQUEST, "UserError", "this cannot be done; nothing was changed"),
            E::Unreachable { .. } | E::Taken { .. } | E::Open { .. } => (
                StatusCode::SERVICE_UNAVAILABLE,
                "DatabaseUnavailable",
                "the server's database does not answer, and what was asked may not have been done; try again",
            ),
            E::Closed => (StatusCode::SERVICE_UNAVAILABLE, "ShuttingDown", "the server is shutting down"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "the server could not do this; its log says why"),
        };
        Problem { cause: Some(Box::new(error)), ..Problem::new(status, code, message) }
    }
}

/// What a [`Problem`] said, kept with the answer for those who say it in another dialect.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl From<store::files::NoRoom> for Problem {
    fn from(full: store::files::NoRoom) -> Problem {
        let message = format!("{full}; delete what is not needed, or raise `storage.quota`");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "QuotaExceeded", message)
    }
}

impl From<Illegal> for Problem {
    fn from(illegal: Illegal) -> Problem {
        Problem::conflict(illegal.to_string())
    }
}

impl From<store::files::BadPath> for Problem {
    fn from(bad: store::files::BadPath) -> Problem {
        Problem::bad(bad.to_string())
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Problem {
        store::files::full_or(error, "use a file in", "blobs".into()).into()
    }
}

impl Problem {
    /// Writes down what is no client's fault.
    pub(crate) fn log(&self) {
        if self.status.is_server_error() {
            let cause =
                self.cause.as_ref().map(|cause| domain::causes::in_one_line(cause.as_ref())).unwrap_or_default();
            tracing::error!(status = self.status.as_u16(), code = self.code, cause, "{}", self.message);
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.log();
        let details: Vec<_> =
            self.details.iter().map(|(code, message)| json!({"code": code, "message": message})).collect();
        let body =
            json!({"error": {"code": self.code, "message": self.message, "details": details, "additionalInfo": []}});
        let mut answer = (self.status, Json(body)).into_response();
        answer.extensions_mut().insert(Told { code: self.code, message: self.message });
        if matches!(self.status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}
