//! Whether a schedule makes sense: a trigger that can fire, and something for it to make.

use super::{names::Found, tree::text};
use crate::{calendar, names::ScheduleName, spec::Mistake};
use serde_json::Value;

/// What a schedule can do.
const ACTIONS: [&str; 4] = ["create_job", "update_deployment", "create_monitor", "import_data"];

/// What makes no sense in a schedule.
pub(super) fn schedule(schedule: &Value) -> Vec<Mistake> {
    let mut found = Found::default();
    if let Some(name) = text(schedule, "name") {
        found.name("name", name, ScheduleName::parse);
    }
    match ACTIONS.iter().filter(|key| !schedule[**key].is_null()).count() {
        0 => found.say("create_job", "the schedule makes nothing", "add `create_job:` with a job's file"),
        1 => {}
        _ => found.say("create_job", "a schedule makes one thing", "keep one of `create_job` and the others"),
    }
    let trigger = &schedule["trigger"];
    if !schedule["update_deployment"].is_null() && text(trigger, "on") != Some("model") {
        let fix = "use `trigger: {type: event, on: model, name: …}`";
        found.say("update_deployment", "a deployment is updated when there is a new model", fix);
    }
    if trigger.is_object()
        && let Err(mistakes) = calendar::read(trigger)
    {
        found.0.extend(mistakes.into_iter().map(|bad| Mistake { key: format!("trigger.{}", bad.key), ..bad }));
    }
    found.0
}
