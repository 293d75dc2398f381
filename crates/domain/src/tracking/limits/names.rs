//! Names and ids: which characters, which shapes, how long.
//!
//! Metric, param and tag keys become paths in some clients, so a key must be the one spelling of
//! its own path: `a//b` and `./a` are refused.

use super::{MAX_ALIAS_CHARS, MAX_ARTIFACT_LOCATION_CHARS, MAX_EXPERIMENT_NAME_CHARS, MAX_KEY_CHARS};
use crate::tracking::Bad;
use crate::tracking::text::{json, quoted, quoted_tuple, shown};

/// Where a value stands in a request; messages name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A field of the request itself.
    Top,
    /// A field of the item with this index in the list of this name: `metrics[3]`.
    Item(&'static str, usize),
}

impl Place {
    /// The path of a field there.
    pub fn field(self, field: &str) -> String {
        match self {
            Self::Top => field.to_owned(),
            Self::Item(list, at) => format!("{list}[{at}].{field}"),
        }
    }
}

/// A metric's key.
pub fn metric_key(key: &str, place: Place) -> Result<(), Bad> {
    path_like(key, place, "name")?;
    at_most("Metric name", MAX_KEY_CHARS, key)
}

/// A param's key.
pub fn param_key(key: &str, place: Place) -> Result<(), Bad> {
    path_like(key, place, "key")?;
    at_most("Param key", MAX_KEY_CHARS, key)
}

/// The key of any tag.
pub fn tag_key(key: &str, place: Place) -> Result<(), Bad> {
    path_like(key, place, "key")?;
    if key.len() <= MAX_KEY_CHARS { Ok(()) } else { at_most(&place.field("key"), MAX_KEY_CHARS, key) }
}

/// A run's id: a letter or digit, then at most 255 word characters or dashes.
pub fn run_id(id: &str) -> Result<(), Bad> {
    if is_id(id, 256) { Ok(()) } else { Err(invalid("run_id", id, "")) }
}

/// An experiment's id: a letter or digit, then at most 63 word characters or dashes.
pub fn experiment_id(id: &str) -> Result<(), Bad> {
    if is_id(id, 64) { Ok(()) } else { Err(Bad::value(format!("Invalid experiment ID: '{}'", shown(id)))) }
}

/// An experiment's name: anything but nothing, within its length.
pub fn experiment_name(name: &str) -> Result<(), Bad> {
    if name.is_empty() {
        return Err(Bad::value("Invalid experiment name: ''"));
    }
    at_most("name", MAX_EXPERIMENT_NAME_CHARS, name)
}

/// Where an experiment keeps artifacts: not inside a run, no fragment, no climbing out through the query.
pub fn artifact_location(location: &str) -> Result<(), Bad> {
    if location.contains('#') {
        return Err(Bad::value("'artifact_location' URL can't include fragments or params."));
    }
    if location.split_once('?').is_some_and(|(_, query)| climbs(query)) {
        return Err(Bad::value("Invalid query string"));
    }
    if location.starts_with("runs:") {
        return Err(Bad::value(format!("Artifact location cannot be a runs:/ URI. Given: '{}'", shown(location))));
    }
    if location.chars().count() > MAX_ARTIFACT_LOCATION_CHARS {
        return Err(Bad::value(format!(
            "Invalid artifact path length. The length of the artifact path cannot be greater than \
             {MAX_ARTIFACT_LOCATION_CHARS} characters."
        )));
    }
    Ok(())
}

/// The name a new run gets: the argument or the `mlflow.runName` tag, which must not contradict each
/// other. `None` when neither is given and one must be made up.
pub fn run_name<'a>(argument: Option<&'a str>, tag: Option<&'a str>) -> Result<Option<&'a str>, Bad> {
    match (argument.filter(|name| !name.is_empty()), tag.filter(|name| !name.is_empty())) {
        (Some(name), Some(tag)) if name != tag => Err(Bad::value(format!(
            "Both 'run_name' argument and 'mlflow.runName' tag are specified, but with different values \
             (run_name='{}', mlflow.runName='{}').",
            shown(name),
            shown(tag)
        ))),
        (name, tag) => Ok(name.or(tag)),
    }
}

/// A registered model's name.
pub fn model_name(name: &str) -> Result<(), Bad> {
    if name.trim().is_empty() {
        return Err(Bad::missing("name"));
    }
    if name.contains(['/', ':']) {
        return Err(Bad::value(format!("Invalid model name '{}'. Names cannot contain '/' or ':'.", shown(name))));
    }
    own_path(name, Place::Top, "name")
}

/// The name a registered model is given instead of its old one.
pub fn new_model_name(name: &str) -> Result<(), Bad> {
    if name.trim().is_empty() {
        return Err(Bad::missing("new_name"));
    }
    model_name(name)
}

/// A model version as clients write it: a number in text. Numbers below one name no version but are well-formed.
pub fn model_version(version: &str) -> Result<i64, Bad> {
    let bad = || Bad::value(format!("Parameter 'version' must be an integer, got '{}'.", shown(version)));
    version.trim().parse().map_err(|_| bad())
}

/// An alias in a question: well-formed, reserved words included.
pub fn alias(alias: &str) -> Result<(), Bad> {
    if alias.is_empty() {
        return Err(Bad::value("Registered model alias name cannot be empty."));
    }
    if !alias.chars().all(|c| is_word(c) || c == '-') {
        return Err(Bad::value(format!(
            "Invalid alias name: '{}'. Names may only contain alphanumerics, underscores (_), and dashes (-).",
            shown(alias)
        )));
    }
    at_most("Registered model alias name", MAX_ALIAS_CHARS, alias)
}

/// An alias to be set: well-formed and neither `latest` nor like a version (`v3`).
pub fn new_alias(name: &str) -> Result<(), Bad> {
    alias(name)?;
    if name.eq_ignore_ascii_case("latest") {
        return Err(Bad::value("'latest' alias name (case insensitive) is reserved."));
    }
    let digits = name.strip_prefix(['v', 'V']).unwrap_or_default();
    if !digits.is_empty() && digits.chars().all(char::is_numeric) {
        return Err(Bad::value(format!("Version alias name '{}' is reserved.", shown(name))));
    }
    Ok(())
}

/// The name of a logged model.
pub fn logged_model_name(name: &str) -> Result<(), Bad> {
    const BARRED: [&str; 6] = ["/", ":", ".", "%", "\"", "'"];
    if !name.is_empty() && !BARRED.iter().any(|barred| name.contains(barred)) {
        return Ok(());
    }
    Err(Bad::value(format!(
        "Invalid model name ({}) provided. Model name must be a non-empty string and cannot contain the following \
         characters: {}",
        quoted(name),
        quoted_tuple(BARRED)
    )))
}

/// A webhook's name: 1 to 63 letters, digits, dots, underscores and dashes, ending as it begins with a letter or digit.
pub fn webhook_name(name: &str) -> Result<(), Bad> {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inside = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if inside && name.len() <= 63 && ends(name.chars().next()) && ends(name.chars().last()) {
        return Ok(());
    }
    Err(Bad::value(format!(
        "Webhook name {} is invalid. It must start and end with a letter or digit, be less than 63 characters long, and \
         contain only letters, digits, dots (.), underscores (_), and hyphens (-).",
        quoted(name)
    )))
}

/// Refuses a text longer than `limit` characters.
pub(super) fn at_most(what: &str, limit: usize, text: &str) -> Result<(), Bad> {
    if text.len() <= limit || text.chars().count() <= limit {
        return Ok(());
    }
    Err(Bad::value(format!("'{what}' exceeds the maximum length of {limit} characters")))
}

/// The refusal of a value, with a reason when there is more to say.
pub(super) fn invalid(path: &str, value: impl Into<serde_json::Value>, reason: &str) -> Bad {
    let value = json(&value.into());
    let tail = if reason.is_empty() { ".".to_owned() } else { format!(": {reason}") };
    Bad::value(format!("Invalid value {value} for parameter '{path}' supplied{tail}"))
}

fn path_like(name: &str, place: Place, field: &str) -> Result<(), Bad> {
    if name.chars().all(|c| is_word(c) || matches!(c, '/' | '.' | '-' | ' ' | ':')) {
        return own_path(name, place, field);
    }
    let reason = "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) \
                  and slashes (/).";
    Err(invalid(&place.field(field), name, reason))
}

fn own_path(name: &str, place: Place, field: &str) -> Result<(), Bad> {
    if !name.is_empty() && !name.contains('/') && !name.starts_with('.') {
        return Ok(());
    }
    let resolved = resolve(name);
    if resolved == name && resolved != "." && !resolved.starts_with("..") && !resolved.starts_with('/') {
        return Ok(());
    }
    let reason = format!(
        "Names may be treated as files in certain cases, and must not resolve to other names when treated as such. \
         This name would resolve to {}",
        quoted(&resolved)
    );
    Err(invalid(&place.field(field), name, reason.as_str()))
}

/// The shortest spelling of a path. Exactly two leading slashes stay two, as POSIX has it.
fn resolve(path: &str) -> String {
    let root = match path.len() - path.trim_start_matches('/').len() {
        0 => "",
        2 => "//",
        _ => "/",
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let climbs = part == "..";
        if !climbs || (root.is_empty() && parts.last().is_none_or(|last| *last == "..")) {
            parts.push(part);
        } else {
            parts.pop();
        }
    }
    let resolved = format!("{root}{}", parts.join("/"));
    if resolved.is_empty() { ".".to_owned() } else { resolved }
}

/// Whether a query string holds `..`, plainly or behind percent signs.
fn climbs(query: &str) -> bool {
    let mut query = query.to_ascii_lowercase();
    for _ in 0..10 {
        let plain = query.replace("%2e", ".").replace("%25", "%");
        if plain == query {
            break;
        }
        query = plain;
    }
    query.contains("..")
}

fn is_id(id: &str, most: usize) -> bool {
    id.chars().count() <= most
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(|c| is_word(c) || c == '-')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
