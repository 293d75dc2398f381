//! Conditions in a request's headers: go on only if the blob is, or is not, what the client thinks.

use super::etag;
use crate::problem::Problem;
use axum::http::{HeaderMap, StatusCode, header};
use domain::Timestamp;
use store::files::{Found, Note};

/// The conditions of a request, as it gave them.
#[derive(Debug, Default, Clone)]
pub(super) struct Conditions {
    matches: Option<String>,
    none_match: Option<String>,
    modified_since: Option<Timestamp>,
    unmodified_since: Option<Timestamp>,
}

/// What the conditions make of a blob that someone wants to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Go,
    NotModified,
    Unmet,
}

impl Conditions {
    pub(super) fn of(headers: &HeaderMap) -> Conditions {
        let word = |name| headers.get(name).and_then(|value| value.to_str().ok());
        Conditions {
            matches: word(header::IF_MATCH).map(str::to_owned),
            none_match: word(header::IF_NONE_MATCH).map(str::to_owned),
            modified_since: word(header::IF_MODIFIED_SINCE).and_then(Timestamp::from_http_date),
            unmodified_since: word(header::IF_UNMODIFIED_SINCE).and_then(Timestamp::from_http_date),
        }
    }

    /// Whether only a blob that is not there yet may be written.
    pub(super) fn only_new(&self) -> bool {
        self.none_match.as_deref().is_some_and(|tags| tags.trim() == "*")
    }

    /// Whether anything but newness is asked of the blob.
    pub(super) fn look_first(&self) -> bool {
        let tags = self.none_match.is_some() && !self.only_new();
        self.matches.is_some() || tags || self.modified_since.is_some() || self.unmodified_since.is_some()
    }

    pub(super) fn to_read(&self, found: &Found, note: &Note) -> Verdict {
        let tag = etag(found, note);
        let changed = found.modified.0 / 1000;
        let unmet = match (&self.matches, self.unmodified_since) {
            (Some(tags), _) => !names(tags, &tag),
            (None, Some(since)) => changed > since.0 / 1000,
            (None, None) => false,
        };
        let known = match (&self.none_match, self.modified_since) {
            (Some(tags), _) => names(tags, &tag),
            (None, Some(since)) => changed <= since.0 / 1000,
            (None, None) => false,
        };
        match (unmet, known) {
            (true, _) => Verdict::Unmet,
            (_, true) => Verdict::NotModified,
            _ => Verdict::Go,
        }
    }

    /// Whether what is there may be written over.
    pub(super) fn to_write(&self, current: Option<(&Found, &Note)>) -> bool {
        match current {
            Some((found, note)) if self.only_new() => {
                Conditions { none_match: None, ..self.clone() }.to_read(found, note) == Verdict::Go
            }
            Some((found, note)) => self.to_read(found, note) == Verdict::Go,
            None => self.matches.is_none(),
        }
    }
}

pub(super) fn unmet() -> Problem {
    let message = "the blob is not what the request's conditions ask for; read it anew and try again";
    Problem::new(StatusCode::PRECONDITION_FAILED, "ConditionNotMet", message)
}

fn names(tags: &str, tag: &str) -> bool {
    let bare = |text: &str| text.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    tags.split(',').map(bare).any(|named| named == "*" || named == tag)
}
