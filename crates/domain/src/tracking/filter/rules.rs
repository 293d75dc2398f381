//! What each subject may be asked: its names and the comparators they allow.
//!
//! Attributes arrive under several spellings and leave under one, so the store knows one name each.

use super::shape::{Kind, Shape};
use super::{Clause, Comparator, Entity, FilterValue, Subject, unquote, value};
use crate::tracking::Bad;
use crate::tracking::text::{quoted, quoted_list, quoted_set, quoted_tuple, shown};

use Comparator::{Equal, Greater, GreaterEqual, ILike, In, IsNotNull, IsNull, Less, LessEqual, Like, NotEqual, NotIn};

const NUMERIC: &[Comparator] = &[Greater, GreaterEqual, NotEqual, Equal, Less, LessEqual];
const TEXT: &[Comparator] = &[NotEqual, Equal, Like, ILike];
const NULLABLE: &[Comparator] = &[NotEqual, Equal, Like, ILike, IsNull, IsNotNull];
const LISTED: &[Comparator] = &[NotEqual, Equal, Like, ILike, In, NotIn];
const NOMINAL: &[Comparator] = &[Equal, NotEqual, In, NotIn];
const LOGGED_NUMERIC: &[Comparator] = &[Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual];
const LOGGED_TEXT: &[Comparator] = &[Equal, NotEqual, Like, ILike, In, NotIn];

/// A clause whose comparator is still a word.
pub(super) struct Draft {
    entity: Entity,
    key: String,
    comparator: String,
    value: FilterValue,
}

/// An attribute: its spellings, the canonical one first, and whether it is a number.
struct Attribute {
    spellings: &'static [&'static str],
    numeric: bool,
}

const fn text(spellings: &'static [&'static str]) -> Attribute {
    Attribute { spellings, numeric: false }
}

const fn number(spellings: &'static [&'static str]) -> Attribute {
    Attribute { spellings, numeric: true }
}

const RUNS: &[Attribute] = &[
    text(&["artifact_uri"]),
    number(&["end_time"]),
    text(&["run_id"]),
    text(&["run_name", "run name", "Run name", "Run Name"]),
    number(&["start_time", "created", "Created"]),
    text(&["status"]),
    text(&["user_id"]),
];
const EXPERIMENTS: &[Attribute] =
    &[number(&["creation_time"]), text(&["experiment_id"]), number(&["last_update_time"]), text(&["name"])];
const REGISTERED_MODELS: &[Attribute] = &[text(&["name"])];
const MODEL_VERSIONS: &[Attribute] =
    &[text(&["name"]), text(&["run_id"]), text(&["source_path"]), number(&["version_number"])];
const LOGGED_MODELS: &[Attribute] = &[
    text(&["artifact_location"]),
    number(&["creation_timestamp", "creation_time", "creation_timestamp_ms"]),
    text(&["experiment_id"]),
    number(&["last_updated_timestamp", "last_updated_time", "last_updated_timestamp_ms"]),
    text(&["lifecycle_stage"]),
    text(&["model_id"]),
    text(&["model_type"]),
    text(&["name"]),
    text(&["source_run_id"]),
    text(&["status"]),
    text(&["status_message"]),
];

/// The name and value of a comparison; its comparator is judged later by `clause`.
pub(super) fn draft(subject: Subject, shape: &Shape) -> Result<Draft, Bad> {
    let Some(right) = shape.right else { return null_draft(subject, shape) };
    // Logged models take a left side as it is written: `tags.a-b` names a tag there.
    let is_name =
        shape.left.kind == Kind::Path || (subject == Subject::LoggedModels && shape.left.kind == Kind::Operation);
    if !is_name {
        let left = shown(shape.left.text);
        return Err(Bad::value(format!("Invalid comparison clause. Expected 'Identifier' found '{left}'")));
    }
    let (entity, key) = identifier(subject, shape.left.text)?;
    // Logged models judge the comparator before the value.
    if subject == Subject::LoggedModels {
        judge(subject, entity, &key, &shape.comparator)?;
    }
    let value = value::of(subject, entity, &key, &right)?;
    Ok(Draft { entity, key, comparator: shape.comparator.clone(), value })
}

/// The finished clause, if its comparator is allowed for what it compares.
pub(super) fn clause(subject: Subject, draft: Draft) -> Result<Clause, Bad> {
    let Draft { entity, key, comparator, value } = draft;
    let comparator = judge(subject, entity, &key, &comparator)?;
    let wants_list = matches!(comparator, In | NotIn);
    if wants_list != matches!(value, FilterValue::List(_)) {
        let word = comparator.as_str();
        return Err(Bad::value(format!("Invalid comparator '{word}' for a list of values. Use 'IN' or 'NOT IN'.")));
    }
    Ok(Clause { entity, key, comparator, value })
}

fn attributes(subject: Subject) -> &'static [Attribute] {
    match subject {
        Subject::Runs => RUNS,
        Subject::Experiments => EXPERIMENTS,
        Subject::RegisteredModels => REGISTERED_MODELS,
        Subject::ModelVersions => MODEL_VERSIONS,
        Subject::LoggedModels => LOGGED_MODELS,
    }
}

fn find(subject: Subject, key: &str) -> Option<&'static Attribute> {
    attributes(subject).iter().find(|attribute| attribute.spellings.contains(&key))
}

/// Whether a name holds numbers.
pub(super) fn is_numeric(subject: Subject, entity: Entity, key: &str) -> bool {
    match entity {
        Entity::Metric => true,
        Entity::Attribute => find(subject, key).is_some_and(|attribute| attribute.numeric),
        Entity::Param | Entity::Tag | Entity::Dataset => false,
    }
}

fn null_draft(subject: Subject, shape: &Shape) -> Result<Draft, Bad> {
    let (entity, key) = identifier(subject, shape.left.text)?;
    let allowed = match subject {
        Subject::Runs => matches!(entity, Entity::Tag | Entity::Param),
        Subject::Experiments => entity == Entity::Tag,
        _ => false,
    };
    if allowed {
        return Ok(Draft { entity, key, comparator: shape.comparator.clone(), value: FilterValue::Nothing });
    }
    let (word, key) = (entity.as_str(), shown(&key));
    Err(Bad::value(match subject {
        Subject::Runs => {
            format!("IS NULL / IS NOT NULL is only supported for tags and params, not for '{word}' '{key}'")
        }
        Subject::Experiments => format!("IS NULL / IS NOT NULL is only supported for tags, not for attribute '{key}'"),
        _ => format!("Invalid comparison: {}. Expected a comparison with 3 tokens.", shown(shape.whole.text)),
    }))
}

/// The entity and key a path names. The first dot separates them; further dots belong to the key.
pub(crate) fn identifier(subject: Subject, path: &str) -> Result<(Entity, String), Bad> {
    let (entity, key) = match path.split_once('.') {
        None => (Entity::Attribute, path),
        Some((prefix, key)) => (entity(subject, prefix)?, key),
    };
    let key = unquote(key);
    match entity {
        Entity::Attribute => {
            let known = find(subject, key).ok_or_else(|| unknown_attribute(subject, key))?;
            Ok((entity, known.spellings[0].to_owned()))
        }
        Entity::Dataset if !DATASET_KEYS.contains(&key) => Err(Bad::value(format!(
            "Invalid dataset key '{}' specified. Valid keys are '{}'",
            shown(key),
            quoted_set(DATASET_KEYS)
        ))),
        _ => Ok((entity, key.to_owned())),
    }
}

const DATASET_KEYS: [&str; 3] = ["context", "digest", "name"];

fn unknown_attribute(subject: Subject, key: &str) -> Bad {
    let known = attributes(subject).iter().flat_map(|attribute| attribute.spellings.iter().copied());
    Bad::value(format!("Invalid attribute key '{}' specified. Valid keys are '{}'", shown(key), quoted_set(known)))
}

/// The entity a prefix names.
pub(crate) fn entity(subject: Subject, prefix: &str) -> Result<Entity, Bad> {
    match subject {
        Subject::Runs => run_entity(unquote_backticks(prefix)),
        Subject::LoggedModels => logged_entity(prefix),
        _ => match prefix {
            "attribute" => Ok(Entity::Attribute),
            "tag" | "tags" => Ok(Entity::Tag),
            _ => Err(Bad::value(format!(
                "Invalid entity type '{}'. Valid entity types are {}",
                shown(prefix),
                quoted_tuple(["attribute", "tag", "tags"])
            ))),
        },
    }
}

fn run_entity(prefix: &str) -> Result<Entity, Bad> {
    match prefix {
        "metric" | "metrics" => Ok(Entity::Metric),
        "parameter" | "parameters" | "param" | "params" => Ok(Entity::Param),
        "tag" | "tags" => Ok(Entity::Tag),
        "attribute" | "attributes" | "attr" | "run" => Ok(Entity::Attribute),
        "dataset" | "datasets" => Ok(Entity::Dataset),
        _ => Err(Bad::value(format!(
            "Invalid entity type '{}'. Valid values are {}",
            shown(prefix),
            quoted_list(["metric", "parameter", "tag", "attribute", "dataset"])
        ))),
    }
}

fn logged_entity(prefix: &str) -> Result<Entity, Bad> {
    match prefix {
        "attributes" => Ok(Entity::Attribute),
        "metrics" => Ok(Entity::Metric),
        "params" => Ok(Entity::Param),
        "tags" => Ok(Entity::Tag),
        _ => Err(Bad::value(format!(
            "Invalid entity type: {}. Expected one of {}.",
            quoted(prefix),
            quoted_list(["attributes", "metrics", "params", "tags"])
        ))),
    }
}

fn unquote_backticks(text: &str) -> &str {
    if text.starts_with('`') { unquote(text) } else { text }
}

/// The comparators a name allows.
fn allowed(subject: Subject, entity: Entity, key: &str) -> &'static [Comparator] {
    let numeric = is_numeric(subject, entity, key);
    match (subject, entity) {
        (Subject::LoggedModels, _) if numeric => LOGGED_NUMERIC,
        (Subject::LoggedModels, _) => LOGGED_TEXT,
        _ if numeric => NUMERIC,
        (Subject::Runs, Entity::Attribute | Entity::Dataset) => LISTED,
        (Subject::Runs, _) | (Subject::Experiments, Entity::Tag) => NULLABLE,
        (Subject::Experiments, _) if key == "experiment_id" => NOMINAL,
        (Subject::RegisteredModels, Entity::Attribute) => LISTED,
        (Subject::ModelVersions, Entity::Attribute) if key != "source_path" => LISTED,
        _ => TEXT,
    }
}

fn judge(subject: Subject, entity: Entity, key: &str, word: &str) -> Result<Comparator, Bad> {
    let allowed = allowed(subject, entity, key);
    if let Some(comparator) = Comparator::parse(word).filter(|comparator| allowed.contains(comparator)) {
        return Ok(comparator);
    }
    let known = allowed.iter().map(|comparator| comparator.as_str());
    let word = shown(word);
    Err(Bad::value(match (subject, entity) {
        (Subject::LoggedModels, _) => format!(
            "Invalid comparison operator for {}.{}: {}. Expected one of {}.",
            plural(entity),
            shown(key),
            quoted(&word),
            quoted_tuple(known)
        ),
        (Subject::Runs, _) => format!("Invalid comparator '{word}' not one of '{}'", quoted_set(known)),
        (_, Entity::Tag) => format!("Invalid comparator for tag: {word}"),
        (Subject::Experiments, _) if key == "experiment_id" => {
            format!("Invalid comparator for experiment_id: {word}")
        }
        (Subject::Experiments, _) => format!("Invalid comparator '{word}' not one of '{}'", quoted_set(known)),
        (Subject::ModelVersions, _) if key == "version_number" => {
            format!("Invalid comparator for attribute {key}: {word}")
        }
        _ => format!("Invalid comparator for attribute: {word}"),
    }))
}

fn plural(entity: Entity) -> &'static str {
    match entity {
        Entity::Attribute => "attributes",
        Entity::Metric => "metrics",
        Entity::Param => "params",
        Entity::Tag => "tags",
        Entity::Dataset => "datasets",
    }
}
