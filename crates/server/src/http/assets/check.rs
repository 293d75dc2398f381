//! What a version must say, and what of it may change.

use super::noun;
use crate::{http::At, problem::Problem};
use axum::http::StatusCode;
use domain::names::{AssetName, Version};
use serde_json::Value;
use store::AssetKey;

/// Whether name and version can be those of an asset.
pub(super) fn names(at: &At) -> Result<(), Problem> {
    let bad = |bad: domain::BadName| Problem::bad(bad.to_string());
    AssetName::parse(&at.name).map_err(bad)?;
    Version::parse(&at.version).map_err(bad)?;
    Ok(())
}

/// What data can be.
const DATA_TYPES: [&str; 3] = ["uri_file", "uri_folder", "mltable"];

/// What may change in a version.
pub(super) const CHANGEABLE: [&str; 6] = ["tags", "description", "properties", "isArchived", "stage", "isAnonymous"];

/// What a version cannot do without.
pub(super) fn body(key: &AssetKey, properties: &Value) -> Result<(), Problem> {
    let map = |field| properties.get(field).is_none_or(|value| value.is_object() || value.is_null());
    if !properties.is_object() || !map("tags") || !map("properties") {
        let called = format!("{} `{}`", noun(&key.kind), key.name);
        return Err(Problem::bad(format!(
            "{called} needs `properties`, an object whose `tags` and `properties` are maps"
        )));
    }
    let need = match key.kind.as_str() {
        "codes" => "codeUri",
        "data" => "dataUri",
        "models" => "modelUri",
        "components" => "componentSpec",
        _ => {
            let any =
                ["image", "condaFile", "build"].iter().any(|field| properties.get(field).is_some_and(|v| !v.is_null()));
            let message = format!("environment `{}` has neither `image`, `condaFile` nor `build`", key.name);
            return if any { Ok(()) } else { Err(Problem::bad(message)) };
        }
    };
    if let Some(kind) = properties.get("dataType").filter(|kind| key.kind == "data" && !kind.is_null())
        && !DATA_TYPES.iter().any(|known| kind == known)
    {
        let known = DATA_TYPES.join(", ");
        return Err(Problem::bad(format!("`dataType` of `{}` is {kind}; there are: {known}", key.name)));
    }
    let fits = match properties.get(need) {
        Some(Value::Object(spec)) => need == "componentSpec" && !spec.is_empty(),
        Some(Value::String(uri)) => need != "componentSpec" && !uri.is_empty(),
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => Err(Problem::bad(format!("{} `{}` has no `{need}`", noun(&key.kind), key.name))),
    }
}

/// The first content field that differs, if any. An anonymous component is named by a digest of what it does, so what
/// differs under one name is only how it was written.
pub(super) fn changed_content(kind: &str, old: &Value, new: &Value) -> Option<String> {
    let anonymous = |body: &Value| body.get("isAnonymous") == Some(&Value::Bool(true));
    if kind == "components" && anonymous(old) && anonymous(new) {
        return None;
    }
    // An environment is what it is made of; a part left out is a change as well.
    let parts: &[&str] = if kind == "environments" { &["image", "condaFile", "build"] } else { &[] };
    let there = |body: &Value, part: &str| body.get(part).is_some_and(|value| !value.is_null());
    if let Some(part) = parts.iter().find(|part| there(old, part) && !there(new, part)) {
        return Some((*part).to_owned());
    }
    let fields = new.as_object()?.iter();
    let server = ["provisioningState", "environmentType", "flavors", "osType"];
    let differs = |(field, value): &(&String, &Value)| {
        let free = CHANGEABLE.contains(&field.as_str()) || server.contains(&field.as_str()) || value.is_null();
        !free && old.get(field.as_str()) != Some(*value)
    };
    fields.filter(differs).map(|(field, _)| field.clone()).next()
}

pub(super) fn immutable(at: &At, field: &str) -> Problem {
    if at.kind == "data" && field == "dataUri" {
        return Problem::new(StatusCode::CONFLICT, "UserError", "Asset paths cannot be updated.");
    }
    let message = format!(
        "{} `{}:{}` exists with another `{field}`; a version's content never changes, so create a new version",
        noun(&at.kind),
        at.name,
        at.version
    );
    Problem::conflict(message)
}
