//! What a record must say, by kind. All mistakes are told at once, each with its place.

mod batch;
mod online;
mod schedule;

use super::{Kind, references::References};
use crate::{app::App, http::change::Halt, problem::Problem};
use domain::time::parse_iso_duration;
use serde_json::Value;
use store::{RecordKey, Tx, WorkspaceRow};

/// Refuses a body that makes no sense, or refers to what is not there.
pub(super) fn body(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    kind: Kind,
    key: &RecordKey,
    body: &Value,
) -> Result<(), Halt> {
    let Some(properties) = body.get("properties").filter(|properties| properties.is_object()) else {
        return Err(Problem::bad(format!("`properties` of {} is not an object", kind.called(key))).into());
    };
    let mut checks = Checks { references: References { tx, workspace: &workspace.name, bad: Vec::new() } };
    checks.labels("tags", body.get("tags"));
    checks.labels("properties.tags", properties.get("tags"));
    checks.labels("properties.properties", properties.get("properties"));
    match kind {
        Kind::Schedule => checks.schedule(properties)?,
        Kind::OnlineEndpoint => checks.online_endpoint(key, properties)?,
        Kind::OnlineDeployment => {
            let offered: Vec<String> = app.instance_types().into_iter().map(|kind| kind.name).collect();
            checks.online_deployment(body, properties, &offered)?;
        }
        Kind::BatchEndpoint => checks.batch_endpoint(key, properties)?,
        Kind::BatchDeployment => checks.batch_deployment(properties)?,
    }
    let bad = checks.references.bad;
    if bad.is_empty() { Ok(()) } else { Err(Problem::mistakes(&kind.called(key), &bad).into()) }
}

/// A body under examination.
struct Checks<'t, 'c> {
    references: References<'t, 'c>,
}

impl Checks<'_, '_> {
    fn mistake(&mut self, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.references.mistake(key, message, fix);
    }

    /// One of some words, in any case; nothing is as good.
    fn word(&mut self, at: &str, value: Option<&Value>, words: &[&str]) {
        let Some(value) = there(value) else { return };
        if !value.as_str().is_some_and(|text| words.iter().any(|word| word.eq_ignore_ascii_case(text))) {
            let list = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            self.mistake(at, format!("{value} is not a word that is known here"), format!("write one of {list}"));
        }
    }

    /// A word that must be there.
    fn needed_word(&mut self, at: &str, value: Option<&Value>, words: &[&str]) {
        if there(value).is_none() {
            let list = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            self.mistake(at, "it is missing", format!("write one of {list}"));
        }
        self.word(at, value, words);
    }

    fn number(&mut self, at: &str, value: Option<&Value>, least: i64, most: i64) -> Option<i64> {
        let value = there(value)?;
        let number = value.as_i64().filter(|n| (least..=most).contains(n));
        if number.is_none() {
            let bounds = if most == i64::MAX { format!("{least} or more") } else { format!("{least} to {most}") };
            self.mistake(at, format!("{value} is not a number it can be"), format!("write a whole number, {bounds}"));
        }
        number
    }

    fn duration(&mut self, at: &str, value: Option<&Value>) {
        let Some(value) = there(value) else { return };
        if value.as_str().and_then(parse_iso_duration).is_none() {
            self.mistake(at, format!("{value} is not a duration"), "write it like `PT30S` or `PT1H`");
        }
    }

    /// A map of names to plain values.
    fn labels(&mut self, at: &str, value: Option<&Value>) {
        let Some(value) = there(value) else { return };
        let plain = |map: &serde_json::Map<String, Value>| map.values().all(|v| !v.is_object() && !v.is_array());
        if !value.as_object().is_some_and(plain) {
            self.mistake(at, "it is not a map of names to texts", "write it like `{\"team\": \"vision\"}`");
        }
    }

    fn text(&mut self, at: &str, value: Option<&Value>) -> Option<String> {
        match there(value)? {
            Value::String(text) => Some(text.clone()),
            other => {
                self.mistake(at, format!("{other} is not a text"), "write a text");
                None
            }
        }
    }

    fn asset(&mut self, at: &str, kind: &str, value: Option<&Value>) -> Result<(), store::Error> {
        match self.text(at, value) {
            Some(reference) => self.references.asset(at, kind, &reference),
            None => Ok(()),
        }
    }

    fn compute(&mut self, at: &str, value: Option<&Value>) -> Result<(), store::Error> {
        match self.text(at, value) {
            Some(reference) => self.references.compute(at, &reference),
            None => Ok(()),
        }
    }

    /// The names of deployments under an endpoint.
    fn deployments(&mut self, kind: Kind, key: &RecordKey) -> Result<Vec<String>, store::Error> {
        self.references.tx.record_names(&key.workspace, kind.table(), &key.name)
    }
}

/// A value that is there and says something.
fn there(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}
