//! Labels: what a job's body says that lists and searches look for, and where its plan finds data, each in a row of its
//! own.
//!
//! Invariant: written in the transaction that writes the body or the plan.

use crate::{Error, Tx, secrets::hex, tables::jobs::json};
use domain::{Place, Plan, PlannedInput};
use serde_json::Value;
use std::{collections::BTreeSet, path::PathBuf};

/// Nobody looks for a longer key, and an index of Postgres has no room for one.
const KEY_BYTES: usize = 1000;

/// The kind of those that say what a job uses; the key is the input, nothing for the environment, or the component itself.
pub(super) const USES: &str = "uses";

/// A job that uses something, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserRow {
    pub job: String,
    /// Its display name.
    pub shown: String,
    pub status: String,
    /// As what it uses it.
    pub input: String,
}

/// What of a plan can be used by many.
#[derive(Debug, Clone, Copy)]
pub enum Used<'u> {
    Data(&'u Place),
    /// By its label.
    Environment(&'u str),
    /// By its label.
    Component(&'u str),
}

impl Used<'_> {
    /// Addresses are long, and some are nobody's business.
    fn mark(self) -> Result<String, Error> {
        let text = match self {
            // With a slash at its end or without, it is the same folder.
            Used::Data(Place::Folder { path }) => {
                json(&Place::Folder { path: path.components().collect::<PathBuf>() })?
            }
            Used::Data(place) => json(place)?,
            Used::Environment(label) => format!("environment {label}"),
            Used::Component(label) => format!("component {label}"),
        };
        Ok(hex(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref()))
    }
}

impl Tx<'_> {
    /// Writes down what a plan uses.
    pub(super) fn add_uses(&mut self, job_seq: i64, plan: &Plan) -> Result<(), Error> {
        let inputs = plan.inputs.iter().filter_map(|(name, input)| match input {
            PlannedInput::Data { place, .. } => Some((name.as_str(), Used::Data(place))),
            PlannedInput::Literal { .. } => None,
        });
        let environment =
            Some(("", Used::Environment(&plan.environment.label))).filter(|_| !plan.environment.label.is_empty());
        inputs.chain(environment).try_for_each(|(key, used)| self.add_use(job_seq, key, used))
    }

    /// Writes down which components a pipeline is made of, by their labels.
    pub fn add_components(&mut self, job_seq: i64, labels: &BTreeSet<String>) -> Result<(), Error> {
        labels.iter().try_for_each(|label| self.add_use(job_seq, label, Used::Component(label)))
    }

    fn add_use(&mut self, job_seq: i64, key: &str, used: Used<'_>) -> Result<(), Error> {
        if key.len() <= KEY_BYTES {
            self.exec(
                "insert into job_labels (job_seq, kind, key, value) values (?1, ?2, ?3, ?4)",
                &[job_seq.into(), USES.into(), key.into(), used.mark()?.into()],
            )?;
        }
        Ok(())
    }

    /// The newest jobs of a workspace that use something.
    pub fn users_of(&mut self, workspace: &str, used: Used<'_>, limit: i64) -> Result<Vec<UserRow>, Error> {
        let rows = self.fetch(
            "select j.name, coalesce((select n.value from job_labels n where n.job_seq = j.seq and n.kind = 'name'), j.name), \
             j.status, l.key from job_labels l join jobs j on j.seq = l.job_seq \
             where l.kind = ?1 and l.value = ?2 and j.workspace = ?3 order by j.seq desc limit ?4",
            &[USES.into(), used.mark()?.into(), workspace.into(), limit.into()],
        )?;
        let user = |mut row: crate::Row| {
            Ok(UserRow { job: row.text(0)?, shown: row.text(1)?, status: row.text(2)?, input: row.text(3)? })
        };
        rows.into_iter().map(user).collect()
    }

    /// Writes down the display name, the tags and the literal inputs of a job's body.
    pub(super) fn add_labels(&mut self, job_seq: i64, body: &str) -> Result<(), Error> {
        let body: Value = serde_json::from_str(body).map_err(|error| Error::Decode(error.to_string()))?;
        let entries = |of: &str| body.get(of).and_then(Value::as_object).into_iter().flatten();
        let name = body.get("displayName").map(|name| ("name", "", name));
        let tags = entries("tags").map(|(key, tag)| ("tag", key.as_str(), tag));
        let inputs = entries("inputs").filter_map(|(key, input)| Some(("param", key.as_str(), input.get("value")?)));
        let labels: Vec<_> = name.into_iter().chain(tags).chain(inputs).collect();
        for (kind, key, value) in labels {
            let Some(text) = scalar(value).filter(|_| key.len() <= KEY_BYTES) else { continue };
            self.exec(
                "insert into job_labels (job_seq, kind, key, value) values (?1, ?2, ?3, ?4)",
                &[job_seq.into(), kind.into(), key.into(), text.into()],
            )?;
        }
        Ok(())
    }
}

/// A value as runs show it.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(n) => Some(n.to_string()),
        Value::Bool(true) => Some("True".into()),
        Value::Bool(false) => Some("False".into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
