//! The laws of tracking: what a client may log, how it may ask for it, and how points are kept.
//!
//! Runs, experiments and models are spoken of in MLflow's language, so the rules, limits and error
//! codes here are those its clients expect. A value that passed `limits` may be stored as it is; a
//! `Filter` or an `Order` holds only keys and values, never text that could become part of a query.

pub mod filter;
pub mod limits;
pub mod order;
pub mod points;
pub mod text;
pub mod webhooks;

pub use filter::{Clause, Comparator, Entity, Field, Fields, Filter, FilterValue, Subject};
pub use limits::{Lifecycle, RunStatus, Stage, ViewType};
pub use order::{Order, OrderKey};
pub use points::{Corrupt, Point};
pub use webhooks::WebhookEvent;

/// Why a request was refused: the code clients branch on, and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Bad {
    pub code: ErrorCode,
    pub message: String,
}

impl Bad {
    /// A mistake in what the client sent.
    pub fn value(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::InvalidParameterValue, message: message.into() }
    }

    /// A field that had to be there and is not.
    pub fn missing(path: &str) -> Self {
        Self::value(format!("Missing value for required parameter '{path}'."))
    }
}

/// The error codes of the protocol, each with the HTTP status it travels under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    InternalError,
    TemporarilyUnavailable,
    BadRequest,
    InvalidParameterValue,
    EndpointNotFound,
    InvalidState,
    PermissionDenied,
    Unauthenticated,
    RequestLimitExceeded,
    ResourceConflict,
    ResourceAlreadyExists,
    ResourceDoesNotExist,
    NotImplemented,
}

impl ErrorCode {
    /// Every code, for tables and tests.
    pub const ALL: [Self; 13] = [
        Self::InternalError,
        Self::TemporarilyUnavailable,
        Self::BadRequest,
        Self::InvalidParameterValue,
        Self::EndpointNotFound,
        Self::InvalidState,
        Self::PermissionDenied,
        Self::Unauthenticated,
        Self::RequestLimitExceeded,
        Self::ResourceConflict,
        Self::ResourceAlreadyExists,
        Self::ResourceDoesNotExist,
        Self::NotImplemented,
    ];

    /// The word in `error_code`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InternalError => "INTERNAL_ERROR",
            Self::TemporarilyUnavailable => "TEMPORARILY_UNAVAILABLE",
            Self::BadRequest => "BAD_REQUEST",
            Self::InvalidParameterValue => "INVALID_PARAMETER_VALUE",
            Self::EndpointNotFound => "ENDPOINT_NOT_FOUND",
            Self::InvalidState => "INVALID_STATE",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::RequestLimitExceeded => "REQUEST_LIMIT_EXCEEDED",
            Self::ResourceConflict => "RESOURCE_CONFLICT",
            Self::ResourceAlreadyExists => "RESOURCE_ALREADY_EXISTS",
            Self::ResourceDoesNotExist => "RESOURCE_DOES_NOT_EXIST",
            Self::NotImplemented => "NOT_IMPLEMENTED",
        }
    }

    /// The status clients of the protocol expect with the code. An existing resource is a 400 there.
    pub fn http_status(self) -> u16 {
        match self {
            Self::InternalError | Self::InvalidState => 500,
            Self::TemporarilyUnavailable => 503,
            Self::BadRequest | Self::InvalidParameterValue | Self::ResourceAlreadyExists => 400,
            Self::EndpointNotFound | Self::ResourceDoesNotExist => 404,
            Self::PermissionDenied => 403,
            Self::Unauthenticated => 401,
            Self::RequestLimitExceeded => 429,
            Self::ResourceConflict => 409,
            Self::NotImplemented => 501,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_has_its_own_word_and_an_error_status() {
        let words: HashSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(words.len(), ErrorCode::ALL.len());
        assert!(ErrorCode::ALL.iter().all(|code| (400..600).contains(&code.http_status())));
    }

    #[test]
    fn a_bad_request_says_its_message() {
        let bad = Bad::missing("run_id");
        assert_eq!(bad.to_string(), "Missing value for required parameter 'run_id'.");
        assert_eq!(bad.code.as_str(), "INVALID_PARAMETER_VALUE");
    }
}
