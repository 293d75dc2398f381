//! What webhooks are told of the registry, whoever changed it: a client of MLflow, one of Azure's, or a job.

use super::{Model, Version};
use crate::webhooks::announce;
use api::arm;
use domain::{
    Timestamp,
    tracking::{WebhookEvent as Event, filter::PROMPT_TAG},
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{AssetKey, Error, Tx};

/// Tags that make a prompt of a model; receivers are told of a prompt in the first place.
const PROMPT_TYPE: &str = "_mlflow_prompt_type";
const PROMPT_TEXT: &str = "mlflow.prompt.text";

type Tags = BTreeMap<String, String>;

/// Whether tags say that what carries them is a prompt.
pub(in crate::http::mlflow) fn is_prompt(tags: &Tags) -> bool {
    tags.get(PROMPT_TAG).is_some_and(|word| word.eq_ignore_ascii_case("true"))
}

impl Model {
    /// Tells what became of it; `what` is said beside its name.
    pub(in crate::http::mlflow) fn tell(
        &self,
        tx: &mut Tx<'_>,
        event: Event,
        mut what: Value,
        now: Timestamp,
    ) -> Result<(), Error> {
        what["name"] = json!(self.name());
        let event = if is_prompt(&self.tags()) { event.of_prompt() } else { event };
        announce(tx, &self.row.key.workspace, event, what, now)
    }

    /// Tells that there is such a name now.
    pub(in crate::http::mlflow) fn tell_created(&self, tx: &mut Tx<'_>, now: Timestamp) -> Result<(), Error> {
        let description = arm::text(&self.said, "description").unwrap_or_default();
        self.tell(tx, Event::ModelCreated, json!({"tags": without_marks(self.tags()), "description": description}), now)
    }
}

/// Tells that a version was added; `first` when its name is new with it.
pub(crate) fn tell_added(tx: &mut Tx<'_>, key: &AssetKey, first: bool, now: Timestamp) -> Result<(), Error> {
    let Some(version) = tx.asset(key)?.filter(|row| !row.anonymous()).map(Version::of) else { return Ok(()) };
    if first {
        let what = json!({"name": key.name, "tags": {}, "description": ""});
        announce(tx, &key.workspace, Event::ModelCreated, what, now)?;
    }
    let mut tags = version.tags();
    let description = arm::text(&version.body, "description").filter(|text| !text.is_empty());
    let mut what = json!({"name": key.name, "version": key.version, "description": description});
    let event = if is_prompt(&tags) {
        what["template"] = json!(tags.remove(PROMPT_TEXT));
        Event::PromptVersionCreated
    } else {
        what["source"] = json!(version.source());
        what["run_id"] = json!(version.run_id());
        Event::VersionCreated
    };
    what["tags"] = json!(without_marks(tags));
    announce(tx, &key.workspace, event, what, now)
}

/// Tells which tags of a version were set and taken away, given all of them before and after.
pub(crate) fn tell_retagged(
    tx: &mut Tx<'_>,
    key: &AssetKey,
    (before, after): (&Tags, &Tags),
    now: Timestamp,
) -> Result<(), Error> {
    let told = |event: Event| if is_prompt(after) { event.of_prompt() } else { event };
    for (tag, value) in after.iter().filter(|(tag, value)| before.get(*tag) != Some(value)) {
        let what = json!({"name": key.name, "version": key.version, "key": tag, "value": value});
        announce(tx, &key.workspace, told(Event::VersionTagSet), what, now)?;
    }
    for tag in before.keys().filter(|tag| !after.contains_key(*tag)) {
        let what = json!({"name": key.name, "version": key.version, "key": tag});
        announce(tx, &key.workspace, told(Event::VersionTagDeleted), what, now)?;
    }
    Ok(())
}

fn without_marks(mut tags: Tags) -> Tags {
    if is_prompt(&tags) {
        tags.retain(|tag, _| tag != PROMPT_TAG && tag != PROMPT_TYPE);
    }
    tags
}
