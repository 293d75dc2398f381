//! Keys and maps that the files of several nouns share.

use super::{Key, Kind, Object, PLAIN, assets, key};

pub(super) const SCHEMA: Key = key("$schema", Kind::Text, "The address of a schema for editors; ignored.");
pub(super) const DESCRIPTION: Key = key("description", Kind::Label, "Free text.");
pub(super) const TAGS: Key = key("tags", Kind::Labels, "Words to find it by.");

pub(super) const ID: Key = key("id", Kind::Shown, "Filled in by the server.");
pub(super) const CONTEXT: Key = key("creation_context", Kind::Shown, "Filled in by the server.");
pub(super) const STATE: Key = key("provisioning_state", Kind::Shown, "Filled in by the server.");
pub(super) const LATEST: Key = key("latest_version", Kind::Shown, "Filled in by the server.");

/// An environment by reference, or defined on the spot.
pub(super) const ENVIRONMENT: Kind =
    Kind::Either(&[Kind::Reference { to: "environments", version: true }, Kind::Object(&assets::INLINE_ENVIRONMENT)]);

pub(super) const VARIABLES: Key = key("environment_variables", Kind::Labels, "Set for the process.");
pub(super) const CODE: Key = key("code", Kind::Text, "A folder that is uploaded, or a code asset.");
pub(super) const COMPUTE: Key = key("compute", Kind::Text, "The compute target: `azureml:name`, or `local`.");

/// Where a step runs again after it failed.
pub(super) static RETRIES: Object = Object {
    name: "retry_settings",
    doc: "What happens to a mini-batch that fails.",
    keys: &[
        key("max_retries", Kind::COUNT, "How often it is tried again.").or("2"),
        key("timeout", Kind::POSITIVE, "Seconds one try may take.").or("60"),
    ],
    ..PLAIN
};

pub(super) const LOG_LEVELS: &[&str] = &["DEBUG", "INFO", "WARNING"];
