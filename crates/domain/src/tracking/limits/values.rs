//! Values of params, tags and dataset inputs.
//!
//! A run's param and tag values are cut to their limit; every other text past its limit is refused.

use super::names::{Place, at_most, param_key, tag_key};
use super::{MAX_EXPERIMENT_TAG_CHARS, MAX_MODEL_TAG_CHARS, MAX_PARAM_CHARS, MAX_TAG_CHARS};
use crate::tracking::Bad;

const MAX_DATASET_NAME_CHARS: usize = 500;
const MAX_DATASET_DIGEST_CHARS: usize = 36;
const MAX_DATASET_SOURCE_CHARS: usize = 65_535;
const MAX_DATASET_SCHEMA_CHARS: usize = 1_048_575;
const MAX_DATASET_PROFILE_CHARS: usize = 16_777_215;
const MAX_INPUT_TAG_KEY_CHARS: usize = 255;
const MAX_INPUT_TAG_VALUE_CHARS: usize = 500;

/// The tag that holds the text of a prompt; its length has its own message.
const PROMPT_TEXT: &str = "mlflow.prompt.text";

/// A param; returns the value to store, cut if need be.
pub fn param<'a>(key: &str, value: &'a str, place: Place) -> Result<&'a str, Bad> {
    param_key(key, place)?;
    Ok(cut(value, MAX_PARAM_CHARS))
}

/// A run's tag; returns the value to store, cut if need be.
pub fn tag<'a>(key: &str, value: &'a str, place: Place) -> Result<&'a str, Bad> {
    tag_key(key, place)?;
    Ok(cut(value, MAX_TAG_CHARS))
}

/// An experiment's tag.
pub fn experiment_tag(key: &str, value: &str) -> Result<(), Bad> {
    tag_key(key, Place::Top)?;
    at_most("value", MAX_EXPERIMENT_TAG_CHARS, value)
}

/// A registered model's tag.
pub fn registered_model_tag(key: &str, value: &str) -> Result<(), Bad> {
    tag_key(key, Place::Top)?;
    at_most("value", MAX_MODEL_TAG_CHARS, value)
}

/// A model version's tag.
pub fn model_version_tag(key: &str, value: &str) -> Result<(), Bad> {
    tag_key(key, Place::Top)?;
    at_most("value", MAX_MODEL_TAG_CHARS, value).map_err(|bad| match key {
        PROMPT_TEXT => Bad::value(format!("Prompt text exceeds max length of {MAX_MODEL_TAG_CHARS} characters.")),
        _ => bad,
    })
}

/// A dataset a run was given, as a request holds it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dataset<'a> {
    pub name: Option<&'a str>,
    pub digest: Option<&'a str>,
    pub source_type: Option<&'a str>,
    pub source: Option<&'a str>,
    pub schema: Option<&'a str>,
    pub profile: Option<&'a str>,
}

/// A dataset: who and where it is must be said; each text within its limit.
pub fn dataset(dataset: &Dataset) -> Result<(), Bad> {
    let needed = [
        ("name", dataset.name),
        ("digest", dataset.digest),
        ("source_type", dataset.source_type),
        ("source", dataset.source),
    ];
    if let Some((field, _)) = needed.into_iter().find(|(_, value)| value.is_none()) {
        return Err(Bad::value(format!("Dataset {field} cannot be None")));
    }
    let sized = [
        ("name", MAX_DATASET_NAME_CHARS, dataset.name),
        ("digest", MAX_DATASET_DIGEST_CHARS, dataset.digest),
        ("source", MAX_DATASET_SOURCE_CHARS, dataset.source),
        ("schema", MAX_DATASET_SCHEMA_CHARS, dataset.schema),
        ("profile", MAX_DATASET_PROFILE_CHARS, dataset.profile),
    ];
    sized.into_iter().try_for_each(|(field, most, value)| at_most(field, most, value.unwrap_or_default()))
}

/// A tag on a run's use of a dataset.
pub fn input_tag(key: Option<&str>, value: Option<&str>) -> Result<(), Bad> {
    let key = key.ok_or_else(|| Bad::value("InputTag key cannot be None"))?;
    let value = value.ok_or_else(|| Bad::value("InputTag value cannot be None"))?;
    at_most("key", MAX_INPUT_TAG_KEY_CHARS, key)?;
    at_most("value", MAX_INPUT_TAG_VALUE_CHARS, value)
}

fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_run_values_are_cut_between_characters() {
        let long = "é".repeat(MAX_TAG_CHARS + 5);
        assert_eq!(param("k", &long, Place::Top).unwrap().chars().count(), MAX_PARAM_CHARS);
        assert_eq!(tag("k", &long, Place::Top).unwrap().chars().count(), MAX_TAG_CHARS);
        let fits = "é".repeat(MAX_PARAM_CHARS);
        assert_eq!(param("k", &fits, Place::Top), Ok(fits.as_str()));
    }

    #[test]
    fn other_long_values_are_refused() {
        let text = |count: usize| "v".repeat(count);
        let refused = |result: Result<(), Bad>| result.unwrap_err().message;
        assert_eq!(
            refused(experiment_tag("k", &text(20_001))),
            "'value' exceeds the maximum length of 20000 characters"
        );
        assert_eq!(
            refused(registered_model_tag("k", &text(100_001))),
            "'value' exceeds the maximum length of 100000 characters"
        );
        assert_eq!(
            refused(model_version_tag("mlflow.prompt.text", &text(100_001))),
            "Prompt text exceeds max length of 100000 characters."
        );
        assert_eq!(refused(experiment_tag(&text(251), "v")), "'key' exceeds the maximum length of 250 characters");
        assert!(experiment_tag("k", &text(20_000)).is_ok() && model_version_tag("k", "").is_ok());
    }

    #[test]
    fn a_dataset_says_who_and_where_it_is() {
        let whole = Dataset {
            name: Some("n"),
            digest: Some("d"),
            source_type: Some("s"),
            source: Some("u"),
            ..Dataset::default()
        };
        assert!(dataset(&whole).is_ok());
        let cases = [
            (Dataset { name: None, ..whole }, "Dataset name cannot be None"),
            (Dataset { digest: None, ..whole }, "Dataset digest cannot be None"),
            (Dataset { source: None, ..whole }, "Dataset source cannot be None"),
            (
                Dataset { digest: Some("0123456789012345678901234567890123456"), ..whole },
                "'digest' exceeds the maximum length of 36 characters",
            ),
        ];
        for (given, expect) in cases {
            assert_eq!(dataset(&given).unwrap_err().message, expect);
        }
        assert!(input_tag(Some("k"), Some("v")).is_ok());
        assert_eq!(input_tag(None, Some("v")).unwrap_err().message, "InputTag key cannot be None");
    }
}
