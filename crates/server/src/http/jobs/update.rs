//! What may change of a job once it is accepted: its labels and its archive mark, never what it runs.
//!
//! Clients change a job in two ways: they put back the whole resource they were shown, or they patch its run.
//! Both end here, so there is one truth.

use crate::problem::Problem;
use domain::Timestamp;
use serde_json::{Map, Value};
use store::{Error, JobRow, Tx};

/// How sent tags and properties meet those on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    /// What is sent is all there is, as when a resource is put.
    Replaced,
    /// What is sent is added, as when a run is patched.
    Added,
}

/// What only the server writes; clients send it back as they got it.
const SERVERS: [&str; 5] = ["status", "services", "peregrine", "creationContext", "provisioningState"];

/// Changes what may change and writes it; anything else that differs is a refusal and nothing is written.
pub(crate) fn change(
    tx: &mut Tx<'_>,
    mut row: JobRow,
    asked: &Value,
    labels: Labels,
    now: Timestamp,
) -> Result<Result<JobRow, Problem>, Error> {
    if let Err(problem) = apply(&mut row, asked, labels) {
        return Ok(Err(problem));
    }
    row.changed_at = now;
    tx.put_job_body(row.job.seq, &row.body, row.archived, now)?;
    Ok(Ok(row))
}

fn apply(row: &mut JobRow, asked: &Value, labels: Labels) -> Result<(), Problem> {
    let mut body: Map<String, Value> = serde_json::from_str(&row.body).unwrap_or_default();
    let asked = asked.as_object().ok_or_else(|| Problem::bad("`properties` must be an object: send the job in it"))?;
    for (key, value) in asked {
        match key.as_str() {
            "isArchived" => row.archived = flag(key, value)?.unwrap_or(row.archived),
            "description" | "displayName" => {
                if !(value.is_string() || value.is_null()) {
                    return Err(Problem::bad(format!("`{key}` must be text")));
                }
                body.insert(key.clone(), value.clone());
            }
            "tags" | "properties" => label(&mut body, key, value, labels)?,
            key if SERVERS.contains(&key) || value.is_null() => {}
            key if same(key, body.get(key), value) => {}
            key => {
                let name = &row.job.name;
                let message = format!("job `{name}` exists; its `{key}` cannot change, submit a new job instead");
                return Err(Problem::conflict(message));
            }
        }
    }
    row.body = Value::Object(body).to_string();
    Ok(())
}

fn flag(key: &str, value: &Value) -> Result<Option<bool>, Problem> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        _ => Err(Problem::bad(format!("`{key}` must be true or false"))),
    }
}

fn label(body: &mut Map<String, Value>, key: &str, value: &Value, labels: Labels) -> Result<(), Problem> {
    let sent = match value {
        Value::Null if labels == Labels::Added => return Ok(()),
        Value::Null => Map::new(),
        Value::Object(sent) => sent.clone(),
        _ => return Err(Problem::bad(format!("`{key}` must be an object of texts"))),
    };
    if let Some((name, _)) = sent.iter().find(|(_, value)| value.is_object() || value.is_array()) {
        return Err(Problem::bad(format!("`{key}.{name}` must be text")));
    }
    let mut all = match (labels, body.remove(key)) {
        (Labels::Added, Some(Value::Object(kept))) => kept,
        _ => Map::new(),
    };
    all.extend(sent);
    body.insert(key.to_owned(), Value::Object(all));
    Ok(())
}

/// Whether a client sends back what is on record. What was added when it was shown (addresses of outputs, the
/// default experiment) and what clients leave out when it says nothing (nulls, empty maps) makes no difference.
fn same(key: &str, kept: Option<&Value>, sent: &Value) -> bool {
    let kept = kept.map_or(Value::Null, |kept| plain(key, kept));
    kept == plain(key, sent) || (kept.is_null() && key == "experimentName" && sent == super::submit::DEFAULT_EXPERIMENT)
}

fn plain(key: &str, value: &Value) -> Value {
    let mut value = bare(value);
    if key == "outputs" {
        let outputs = value.as_object_mut().into_iter().flat_map(|map| map.values_mut());
        outputs.filter_map(Value::as_object_mut).for_each(|output| drop(output.remove("uri")));
    }
    value
}

/// A value without its nulls and empty maps and lists, all the way down.
fn bare(value: &Value) -> Value {
    let says_something = |value: &Value| match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    match value {
        Value::Object(map) => {
            let kept: Map<String, Value> = map
                .iter()
                .map(|(key, value)| (key.clone(), bare(value)))
                .filter(|(_, value)| says_something(value))
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Value::Array(list) if list.is_empty() => Value::Null,
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_client_that_sends_back_what_it_was_shown_changes_nothing() {
        let kept = json!({"out": {"jobOutputType": "uri_folder"}});
        let shown = json!({"out": {"jobOutputType": "uri_folder", "uri": "azureml://x", "mode": null}});
        assert!(same("outputs", Some(&kept), &shown));
        assert!(same("resources", Some(&json!({"instanceCount": 1, "properties": {}})), &json!({"instanceCount": 1})));
        assert!(same("environmentVariables", None, &json!({})));
        assert!(same("experimentName", None, &json!("Default")));
        assert!(!same("experimentName", None, &json!("another")));
        assert!(!same("command", Some(&json!("a")), &json!("b")));
        assert!(!same("outputs", Some(&kept), &json!({"out": {"jobOutputType": "uri_file"}})));
    }

    #[test]
    fn patched_labels_are_added_and_put_labels_replace() {
        let mut body = json!({"tags": {"a": "1"}}).as_object().cloned().unwrap();
        label(&mut body, "tags", &json!({"b": "2"}), Labels::Added).unwrap();
        assert_eq!(body["tags"], json!({"a": "1", "b": "2"}));
        label(&mut body, "tags", &json!({"c": "3"}), Labels::Replaced).unwrap();
        assert_eq!(body["tags"], json!({"c": "3"}));
        assert!(label(&mut body, "tags", &json!(5), Labels::Added).is_err());
        assert!(label(&mut body, "tags", &json!({"a": [1]}), Labels::Added).is_err());
    }
}
