//! The right side of a comparison: which kind of value a name takes, and how it is written.

use super::rules::is_numeric;
use super::shape::{Kind, Piece};
use super::{Entity, FilterValue, Subject, list};
use crate::tracking::Bad;
use crate::tracking::text::{quoted, quoted_list, shown};

/// The value a name takes, from the right side of its comparison.
pub(super) fn of(subject: Subject, entity: Entity, key: &str, right: &Piece) -> Result<FilterValue, Bad> {
    if is_numeric(subject, entity, key) {
        return numeric_value(subject, entity, key, right);
    }
    if subject == Subject::LoggedModels {
        return logged_value(right);
    }
    match (right.kind, entity) {
        (Kind::Text, _) => Ok(FilterValue::Text(unquote_text(right.text).to_owned())),
        (Kind::Path, _) if right.text.len() >= 2 && right.text.starts_with('"') && right.text.ends_with('"') => {
            Ok(FilterValue::Text(unquote_text(right.text).to_owned()))
        }
        (Kind::Path, _) => Err(Bad::value(format!(
            "Parameter value is either not quoted or unidentified quote types used for string value {}. Use either \
             single or double quotes.",
            shown(right.text)
        ))),
        (Kind::List, Entity::Attribute) => listable(subject, key).and_then(|()| list::read(right.text)),
        (Kind::List, Entity::Dataset) => list::read(right.text),
        _ => Err(unquoted(subject, entity, right)),
    }
}

/// Only these attributes may be compared with a list.
fn listable(subject: Subject, key: &str) -> Result<(), Bad> {
    let keys: &[&str] = match subject {
        Subject::Runs => &["run_id"],
        Subject::Experiments => &["experiment_id"],
        Subject::RegisteredModels => &["name"],
        Subject::ModelVersions | Subject::LoggedModels => &["name", "run_id"],
    };
    if keys.contains(&key) {
        return Ok(());
    }
    Err(unlistable(keys))
}

fn unlistable(keys: &[&str]) -> Bad {
    Bad::value(format!(
        "Only {} attributes support comparison with a list of quoted string values.",
        quoted_list(keys.iter().copied())
    ))
}

fn unquoted(subject: Subject, entity: Entity, right: &Piece) -> Bad {
    let given = shown(right.text);
    let is_number = matches!(right.kind, Kind::Integer | Kind::Float);
    Bad::value(match (subject, entity) {
        (_, Entity::Param | Entity::Tag) => {
            let word = entity.as_str();
            format!("Expected a quoted string value for {word} (e.g. 'my-value'). Got value {given}")
        }
        (_, Entity::Dataset) => format!("Expected a quoted string value for dataset attributes. Got value {given}"),
        (Subject::ModelVersions, _) if is_number => {
            "Only the '{'version_number'}' attributes support comparison with numeric values.".to_owned()
        }
        (Subject::RegisteredModels | Subject::ModelVersions, _) => {
            format!(
                "Expected a quoted string value or a list of quoted string values for attributes. Got value {given}"
            )
        }
        _ => format!("Expected a quoted string value for attributes. Got value {given}"),
    })
}

fn numeric_value(subject: Subject, entity: Entity, key: &str, right: &Piece) -> Result<FilterValue, Bad> {
    let given = shown(right.text);
    let number = || right.text.parse().map(FilterValue::Float).ok();
    match (right.kind, entity) {
        (Kind::Integer | Kind::Float, Entity::Metric) => number(),
        // Here too what is written counts: `1e+5` is a number though it is no token.
        (Kind::Operation | Kind::Path, _) if subject == Subject::LoggedModels => number(),
        (Kind::Integer, _) => right.text.parse().map(FilterValue::Integer).ok().or_else(number),
        (Kind::Float, _) if matches!(subject, Subject::Experiments | Subject::ModelVersions) => {
            return Err(Bad::value(format!("Invalid value for numeric attribute '{key}': '{given}'")));
        }
        (Kind::Float, _) => number(),
        (Kind::Text | Kind::Path, _) if subject == Subject::ModelVersions => {
            let inner = unquote_text(right.text);
            let whole = inner.trim().parse().map(FilterValue::Integer);
            return whole
                .map_err(|_| Bad::value(format!("Invalid value for numeric attribute '{key}': {}", quoted(inner))));
        }
        (Kind::List, _) if subject == Subject::ModelVersions => return Err(unlistable(&["name", "run_id"])),
        _ => None,
    }
    .ok_or_else(|| {
        Bad::value(match entity {
            Entity::Metric => format!("Expected numeric value type for metric. Found {given}"),
            _ => format!("Expected numeric value type for numeric attribute: {key}. Found {given}"),
        })
    })
}

/// Logged models take a value as it is written, quoted or not.
fn logged_value(right: &Piece) -> Result<FilterValue, Bad> {
    match right.kind {
        Kind::List => list::read(right.text),
        _ => Ok(FilterValue::Text(unquote_text(right.text).to_owned())),
    }
}

fn unquote_text(text: &str) -> &str {
    if text.starts_with('`') { text } else { unquote_once(text) }
}

/// Takes one pair of quotes away; backticks inside a text are part of it.
fn unquote_once(text: &str) -> &str {
    let paired = text.len() >= 2 && text.starts_with(['\'', '"']) && text.ends_with(&text[..1]);
    if paired { &text[1..text.len() - 1] } else { text }
}
