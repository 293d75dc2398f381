//! Schedules: a trigger, and what it starts.

use super::{
    datastore::{camel, snake},
    put,
    tree::{camel_deep, carry, labels, some, word},
};
use serde_json::{Map, Value, json};

/// The body of a schedule. `job` is the `properties` of what it starts, where it starts a job.
pub fn body(spec: &Value, job: Option<Value>) -> Value {
    let mut p = Map::new();
    carry(
        &mut p,
        spec,
        &[("display_name", "displayName"), ("description", "description"), ("is_enabled", "isEnabled")],
    );
    put(&mut p, "tags", labels(spec, "tags"));
    put(&mut p, "properties", labels(spec, "properties"));
    put(&mut p, "trigger", some(spec, "trigger").map(trigger));
    put(&mut p, "action", action(spec, job));
    json!({"properties": p})
}

/// A trigger as its file says it.
pub fn trigger_said(wire: &Value) -> Value {
    let mut out = Map::new();
    for (key, value) in super::tree::entries(wire).filter(|(_, value)| !value.is_null()) {
        let value = match (key.as_str(), value) {
            ("triggerType" | "frequency", Value::String(word)) => json!(word.to_lowercase()),
            ("schedule", Value::Object(pattern)) => {
                pattern.iter().map(|(key, value)| (snake(key), value.clone())).collect()
            }
            (_, value) => value.clone(),
        };
        out.insert(if key == "triggerType" { "type".to_owned() } else { snake(key) }, value);
    }
    Value::Object(out)
}

/// The key of a trigger's part on the wire.
pub fn trigger_key(key: &str) -> String {
    if key == "type" { "triggerType".to_owned() } else { camel(key) }
}

fn action(spec: &Value, job: Option<Value>) -> Option<Value> {
    if let Some(job) = job {
        return Some(json!({"actionType": "CreateJob", "jobDefinition": job}));
    }
    if let Some(data) = some(spec, "import_data") {
        return Some(json!({"actionType": "ImportData", "dataImportDefinition": import(data)}));
    }
    if let Some(deployment) = some(spec, "update_deployment") {
        let mut out = Map::new();
        put(&mut out, "actionType", json!("UpdateDeployment"));
        carry(&mut out, deployment, &[("endpoint_name", "endpointName"), ("name", "deploymentName")]);
        return Some(Value::Object(out));
    }
    some(spec, "create_monitor")
        .map(|monitor| json!({"actionType": "CreateMonitor", "monitorDefinition": camel_deep(monitor)}))
}

fn import(data: &Value) -> Value {
    let mut out = Map::new();
    put(&mut out, "assetName", some(data, "name").cloned());
    put(&mut out, "dataType", json!(word(data, "type").unwrap_or("uri_folder")));
    put(&mut out, "dataUri", some(data, "path").cloned());
    put(&mut out, "isAnonymous", json!(false));
    put(&mut out, "isArchived", json!(false));
    put(&mut out, "description", some(data, "description").cloned());
    put(&mut out, "tags", labels(data, "tags"));
    put(&mut out, "properties", labels(data, "properties"));
    if let Some(source) = some(data, "source") {
        let mut made = Map::new();
        put(&mut made, "sourceType", json!(word(source, "type").unwrap_or("database")));
        for (key, value) in super::tree::entries(source).filter(|(key, _)| *key != "type") {
            put(&mut made, &camel(key), value.clone());
        }
        put(&mut out, "source", Value::Object(made));
    }
    Value::Object(out)
}

fn trigger(value: &Value) -> Value {
    let mut out = Map::new();
    match word(value, "type").unwrap_or_default() {
        "cron" => {
            put(&mut out, "triggerType", json!("Cron"));
            put(&mut out, "expression", some(value, "expression").cloned());
        }
        "event" => {
            put(&mut out, "triggerType", json!("Event"));
            let keys = [("on", "on"), ("name", "name"), ("experiment_name", "experimentName"), ("status", "status")];
            carry(&mut out, value, &keys);
            return Value::Object(out);
        }
        _ => {
            put(&mut out, "triggerType", json!("Recurrence"));
            carry(&mut out, value, &[("frequency", "frequency"), ("interval", "interval")]);
            put(&mut out, "schedule", pattern(some(value, "schedule").or(some(value, "pattern"))));
        }
    }
    put(&mut out, "timeZone", json!(word(value, "time_zone").unwrap_or("UTC")));
    for (ours, wire) in [("start_time", "startTime"), ("end_time", "endTime")] {
        put(&mut out, wire, word(value, ours).map(|at| json!(moment(at))));
    }
    Value::Object(out)
}

/// One value or a list of them becomes a list.
fn pattern(value: Option<&Value>) -> Value {
    let mut out = Map::new();
    for (ours, wire) in
        [("hours", "hours"), ("minutes", "minutes"), ("week_days", "weekDays"), ("month_days", "monthDays")]
    {
        let Some(inner) = value.and_then(|value| some(value, ours)) else { continue };
        put(&mut out, wire, if inner.is_array() { inner.clone() } else { json!([inner]) });
    }
    for key in ["hours", "minutes"] {
        out.entry(key).or_insert_with(|| json!([]));
    }
    Value::Object(out)
}

/// `2022-07-10T10:00:00` with a blank in the middle, without what follows the seconds.
fn moment(text: &str) -> String {
    match text.split_once('T') {
        Some((day, time)) => format!("{day} {}", time.trim_end_matches('Z')),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_keeps_its_pattern() {
        let made = trigger(&json!({"type": "recurrence", "frequency": "week", "interval": 2,
            "schedule": {"hours": 4, "minutes": [0, 30], "week_days": ["monday"]}, "start_time": "2022-07-10T10:00:00"}));
        assert_eq!(made["schedule"], json!({"hours": [4], "minutes": [0, 30], "weekDays": ["monday"]}));
        assert_eq!((&made["startTime"], &made["timeZone"]), (&json!("2022-07-10 10:00:00"), &json!("UTC")));
        assert_eq!(trigger(&json!({"type": "cron", "expression": "0 * * * *"}))["triggerType"], "Cron");
        let said = trigger_said(&made);
        assert_eq!((&said["type"], &said["schedule"]["week_days"]), (&json!("recurrence"), &json!(["monday"])));
        assert_eq!(
            (&said["start_time"], trigger_key("start_time")),
            (&json!("2022-07-10 10:00:00"), "startTime".into())
        );
        let event = trigger(&json!({"type": "event", "on": "job", "experiment_name": "e", "status": ["failed"]}));
        assert_eq!(trigger_said(&event)["experiment_name"], "e");
    }
}
