//! What a schedule starts: a job made from its template, or a deployment that gets a new model.

use super::{Schedule, refused};
use crate::{
    app::{App, scope},
    http::{
        change::{Halt, merge},
        jobs::{Submitted, prepare, submit},
        records,
    },
    problem::Problem,
};
use domain::{JobName, Timestamp, calendar::Event};
use serde_json::{Map, Value, json};
use store::{RecordKey, Tx, WorkspaceRow};

/// Where a template may refer to what has started it.
const OPEN: [&str; 6] = ["displayName", "description", "tags", "inputs", "environmentVariables", "settings"];
/// The longest name of a schedule that leaves room for the time.
const NAME: usize = 200;

/// A run to be made.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) due_at: Timestamp,
    /// What has happened, where it is not a time that has come.
    pub(crate) event: Option<Event>,
    /// In whose name.
    pub(crate) by: String,
    /// The schedules that led to the event.
    pub(crate) chain: Vec<String>,
}

/// Starts it: the name of the job, or of the deployment that was changed.
pub(crate) fn make(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    schedule: &Schedule,
    order: &Order,
) -> Result<String, Halt> {
    let action = &schedule.body["properties"]["action"];
    let kind = action["actionType"].as_str().unwrap_or_default();
    if kind.eq_ignore_ascii_case("UpdateDeployment") {
        return update(app, workspace, tx, schedule, order);
    }
    if !kind.eq_ignore_ascii_case("CreateJob") {
        return Err(refused(&schedule.row.key, format!("`{kind}` is kept and cannot run here")).into());
    }
    let name = free_name(tx, schedule, order.due_at)?;
    let mut job = template(tx, &workspace.name, &action["jobDefinition"])
        .map_err(|why| Halt::from(refused(&schedule.row.key, why)))?;
    fill(&mut job, &name, order);
    if let Some(left) = unfilled(&job) {
        let why = format!("`{left}` has no value without an event of that kind");
        return Err(refused(&schedule.row.key, why).into());
    }
    let marks = [
        ("peregrine.schedule", schedule.row.key.name.clone()),
        ("peregrine.schedule.due", order.due_at.iso()),
        ("peregrine.schedule.cause", order.cause()),
    ];
    let properties = object(&mut job, "properties");
    properties.extend(marks.map(|(key, value)| (key.to_owned(), json!(value))));
    match submit(app, workspace, tx, name, &job, order.by.clone())? {
        Submitted::Accepted(row) => {
            app.metrics.accepted.inc();
            Ok(row.job.name.to_string())
        }
        Submitted::Changed(row) => Err(refused(&schedule.row.key, format!("job `{}` is there", row.job.name)).into()),
        Submitted::Refused(problem) => Err(problem.into()),
    }
}

/// Refuses a job that could not be started now, unless it needs an event for that.
pub(crate) fn rehearse(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (schedule, body, by): (&RecordKey, &Value, &str),
) -> Result<(), Halt> {
    let definition = &body["properties"]["action"]["jobDefinition"];
    if definition.is_null() {
        return Ok(());
    }
    let name = JobName::parse("rehearsal").expect("it is a name");
    let mut job = template(tx, &workspace.name, definition).map_err(|why| Halt::from(refused(schedule, why)))?;
    let order = Order { due_at: app.now(), event: None, by: by.to_owned(), chain: Vec::new() };
    fill(&mut job, &name, &order);
    if unfilled(&job).is_some() {
        return Ok(());
    }
    match prepare(app, workspace, tx, (&name, &job), order.by)? {
        Ok(_) => Ok(()),
        Err(mistakes) => Err(Problem::mistakes(&format!("the job of schedule `{}`", schedule.name), &mistakes).into()),
    }
}

/// The schedule's name and the time, with a number where both are taken.
fn free_name(tx: &mut Tx<'_>, schedule: &Schedule, due_at: Timestamp) -> Result<JobName, Halt> {
    let key = &schedule.row.key;
    let begin: String = key.name.chars().take(NAME).map(|c| if c == '.' { '-' } else { c }).collect();
    // Azure's SDK takes a capital in a name for a mistake.
    let time: String = due_at.iso().to_lowercase().chars().take(19).filter(|c| !matches!(c, '-' | ':')).collect();
    for number in 1.. {
        let number = if number == 1 { String::new() } else { format!("-{number}") };
        let name = format!("{begin}-{time}z{number}");
        if !tx.has_job(&key.workspace, &name)? {
            return JobName::parse(&name).map_err(|bad| refused(key, bad).into());
        }
    }
    unreachable!("there are more numbers than jobs")
}

/// The job to start, as a client would submit it. One that stands for an earlier job takes that one's body, and what the
/// schedule says besides is laid over it.
pub(crate) fn template(tx: &mut Tx<'_>, workspace: &str, definition: &Value) -> Result<Value, String> {
    let Some(id) = definition["sourceJobId"].as_str().filter(|id| !id.is_empty()) else {
        return Ok(definition.clone());
    };
    let name = id.rsplit('/').next().unwrap_or(id);
    let row = tx.job(workspace, name).map_err(|error| error.to_string())?;
    let row = row.ok_or_else(|| format!("there is no job `{name}`"))?;
    let mut job: Value = serde_json::from_str(&row.body).map_err(|error| error.to_string())?;
    let says = |(key, value): &(&String, &Value)| {
        let empty = value.is_null() || *value == "" || *value == &json!({}) || *value == &json!([]);
        !empty && !matches!(key.as_str(), "sourceJobId" | "jobType" | "isArchived")
    };
    let over: Map<String, Value> = definition
        .as_object()
        .into_iter()
        .flatten()
        .filter(says)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    merge(&mut job, &Value::Object(over));
    Ok(job)
}

/// Puts in what has started the job: its name, its time, and the event.
fn fill(job: &mut Value, name: &JobName, order: &Order) {
    let time = order.due_at.iso();
    let value = |key: &str| match key {
        "name" => Some(name.to_string()),
        "creation_context.trigger_time" => Some(time.clone()),
        key => order.event.as_ref()?.value(key.strip_prefix("trigger.")?),
    };
    for key in OPEN {
        if let Some(part) = job.get_mut(key) {
            texts(part, &mut |text| *text = filled(text, &value));
        }
    }
}

/// What refers to an event and stayed as it was.
fn unfilled(job: &Value) -> Option<String> {
    let mut left = None;
    for key in OPEN {
        let mut part = job[key].clone();
        texts(&mut part, &mut |text| {
            let found = text.split("${{").skip(1).find(|rest| rest.trim_start().starts_with("trigger."));
            left = left.take().or(found.map(|rest| format!("${{{{{}}}}}", rest.split("}}").next().unwrap_or(rest))));
        });
    }
    left
}

fn texts(value: &mut Value, work: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => work(text),
        Value::Array(items) => items.iter_mut().for_each(|item| texts(item, work)),
        Value::Object(map) => map.values_mut().for_each(|item| texts(item, work)),
        _ => {}
    }
}

/// A text with what is known in place of `${{…}}`; what is not known stays.
fn filled(text: &str, value: &impl Fn(&str) -> Option<String>) -> String {
    let mut parts = text.split("${{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("}}").and_then(|(key, rest)| Some((value(key.trim())?, rest))) {
            Some((known, rest)) => out.extend([known.as_str(), rest]),
            None => out.extend(["${{", part]),
        }
    }
    out
}

/// Gives a deployment the model that is new.
fn update(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    schedule: &Schedule,
    order: &Order,
) -> Result<String, Halt> {
    let Some(event) = &order.event else {
        return Err(refused(&schedule.row.key, "there is no new model to give to a deployment").into());
    };
    let action = &schedule.body["properties"]["action"];
    let text = |key: &str| action[key].as_str().unwrap_or_default().to_owned();
    let (endpoint, name) = (text("endpointName"), text("deploymentName"));
    let model = format!("{}/models/{}/versions/{}", scope(workspace).path(), event.name, event.version);
    let patch = json!({"properties": {"model": model}});
    records::amend_deployment(app, workspace, tx, (&endpoint, &name), patch, &order.by)?;
    Ok(format!("{endpoint}/{name}"))
}

fn object<'v>(value: &'v mut Value, key: &str) -> &'v mut Map<String, Value> {
    let at = &mut value[key];
    if !at.is_object() {
        *at = json!({});
    }
    at.as_object_mut().expect("it was made one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_takes_the_place_of_what_refers_to_it() {
        let value = |key: &str| (key == "trigger.version").then(|| "3".to_owned());
        for (text, expect) in [
            ("v${{trigger.version}}", "v3"),
            ("${{ trigger.version }}-${{name}}", "3-${{name}}"),
            ("plain", "plain"),
            ("${{trigger.version", "${{trigger.version"),
            ("${{x}}${{trigger.version}}!", "${{x}}3!"),
        ] {
            assert_eq!(filled(text, &value), expect);
        }
        assert_eq!(
            unfilled(&json!({"inputs": {"a": {"uri": "${{trigger.asset}}"}}})).as_deref(),
            Some("${{trigger.asset}}")
        );
        assert_eq!(unfilled(&json!({"inputs": {"a": {"uri": "${{parent.inputs.x}}"}}})), None);
    }
}
