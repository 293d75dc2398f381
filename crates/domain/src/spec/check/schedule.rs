//! Whether a schedule makes sense: a trigger that can fire, and something for it to make.

use super::{names::Found, tree::text};
use crate::{
    names::JobName,
    spec::{Mistake, yaml::clip},
};
use serde_json::Value;

/// The fields of a cron expression and their bounds.
const FIELDS: [(&str, u32, u32); 5] =
    [("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("day of the week", 0, 7)];
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What makes no sense in a schedule.
pub(super) fn schedule(schedule: &Value) -> Vec<Mistake> {
    let mut found = Found::default();
    if let Some(name) = text(schedule, "name") {
        found.name("name", name, JobName::parse);
    }
    let actions = ["create_job", "create_monitor", "import_data"];
    match actions.iter().filter(|key| !schedule[**key].is_null()).count() {
        0 => found.say("create_job", "the schedule makes nothing", "add `create_job:` with a job's file"),
        1 => {}
        _ => found.say("create_job", "a schedule makes one thing", "keep one of `create_job` and the others"),
    }
    let trigger = &schedule["trigger"];
    if let Some(expression) = text(trigger, "expression") {
        cron(&mut found, expression);
    }
    recurrence(&mut found, trigger);
    times(&mut found, trigger);
    found.0
}

fn recurrence(found: &mut Found, trigger: &Value) {
    let Some(frequency) = text(trigger, "frequency") else { return };
    let pattern = &trigger["schedule"];
    for (key, needs) in [("week_days", "week"), ("month_days", "month")] {
        if !pattern[key].is_null() && frequency != needs {
            let message = format!("`{key}` means nothing with `frequency: {frequency}`");
            found.say(format!("trigger.schedule.{key}"), message, format!("use `frequency: {needs}`, or remove it"));
        }
    }
}

fn times(found: &mut Found, trigger: &Value) {
    let time = |key: &str| text(trigger, key).map(str::trim);
    for key in ["start_time", "end_time"] {
        if let Some(text) = time(key).filter(|text| !is_time(text)) {
            let message = format!("`{}` is no time", clip(text));
            found.say(format!("trigger.{key}"), message, "write it like `2026-01-31T08:00:00`");
        }
    }
    if let (Some(start), Some(end)) = (time("start_time"), time("end_time"))
        && let (Some(start), Some(end)) = (start.get(..19), end.get(..19))
        && end < start
    {
        found.say("trigger.end_time", "it lies before `start_time`", "swap or change them");
    }
}

/// A date and a time of day as ISO 8601 and YAML write them; seconds and zone may be left out.
fn is_time(text: &str) -> bool {
    let Some((date, time)) = text.split_at_checked(10) else { return false };
    let digits = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(b, s)| if s == b'0' { b.is_ascii_digit() } else { b == s })
    };
    let within = |at: std::ops::Range<usize>, low: u32, high: u32| {
        text.get(at).and_then(|part| part.parse().ok()).is_some_and(|part: u32| (low..=high).contains(&part))
    };
    let clock =
        time.get(1..6).is_some_and(|clock| digits(clock, "00:00")) && within(11..13, 0, 23) && within(14..16, 0, 59);
    digits(date, "0000-00-00")
        && within(5..7, 1, 12)
        && within(8..10, 1, 31)
        && (time.is_empty() || time.starts_with(['T', 't', ' ']) && clock)
}

fn cron(found: &mut Found, expression: &str) {
    const KEY: &str = "trigger.expression";
    let fields: Vec<&str> = expression.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let message = format!("`{}` has {} fields instead of 5", clip(expression), fields.len());
        return found.say(KEY, message, "write minute, hour, day, month and day of the week, such as `0 8 * * 1`");
    }
    for (text, (name, low, high)) in fields.iter().zip(FIELDS) {
        if !text.split(',').all(|part| is_field(part, low, high)) {
            let message = format!("`{}` is no {name} from {low} to {high}", clip(text));
            found.say(KEY, message, "use a number, `*`, a range such as `1-5`, or a step such as `*/15`");
        }
    }
}

/// `*`, a value or a range, each with or without a step.
fn is_field(part: &str, low: u32, high: u32) -> bool {
    let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
    if step.is_some_and(|step| step.parse::<u32>().is_ok_and(|step| step == 0) || step.parse::<u32>().is_err()) {
        return false;
    }
    let value = |text: &str| {
        let named = match high {
            12 => MONTHS.iter().position(|name| text.eq_ignore_ascii_case(name)).map(|at| at as u32 + 1),
            7 => DAYS.iter().position(|name| text.eq_ignore_ascii_case(name)).map(|at| at as u32),
            _ => None,
        };
        named.or_else(|| text.parse().ok()).filter(|value| (low..=high).contains(value))
    };
    match range.split_once('-') {
        _ if range == "*" || range == "?" => true,
        Some((from, to)) => value(from).zip(value(to)).is_some_and(|(from, to)| from <= to),
        None => value(range).is_some(),
    }
}
