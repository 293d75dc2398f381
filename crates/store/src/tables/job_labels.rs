//! Labels: what a job's body says that lists and searches look for, each in a row of its own.
//!
//! Invariant: written in the transaction that writes the body.

use crate::{Error, Tx};
use serde_json::Value;

/// Nobody looks for a longer key, and an index of Postgres has no room for one.
const KEY_BYTES: usize = 1000;

impl Tx<'_> {
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
