//! Schedules as something that is on or off: when they are due, what is shown of them, and starting them by hand.

use super::{Kind, find};
use crate::{
    app::App,
    auth::Caller,
    calendar::{Order, Schedule, lost, refused, start},
    http::{At, Body, change},
    problem::Problem,
};
use axum::{
    Extension, Json,
    extract::{Path, State},
};
use domain::{
    Timestamp,
    calendar::{Event, Subject, Trigger, Watch},
};
use serde_json::{Value, json};
use store::{Error, RecordKey, RecordRow, ScheduleRow, ScheduleRun, Tx};

/// How many of its next times, and of what it has started, are shown.
const SHOWN: usize = 5;
const REMEMBERED: i64 = 20;

/// What a schedule is at this moment.
pub(super) struct Live {
    schedule: Schedule,
    waiting: Option<ScheduleRow>,
    runs: Vec<ScheduleRun>,
    /// Why it starts nothing although it is on.
    lost: Option<String>,
}

/// Switches a schedule on or off, as its record says. One that is new and names no start begins now.
pub(super) fn switch(
    tx: &mut Tx<'_>,
    row: &RecordRow,
    before: Option<&RecordRow>,
    now: Timestamp,
) -> Result<(), Error> {
    let key = &row.key;
    let Some(schedule) = Schedule::of(row.clone()).filter(Schedule::is_on) else {
        return tx.delete_schedule(&key.workspace, &key.name);
    };
    let was = before.cloned().and_then(Schedule::of).filter(Schedule::is_on);
    let same = was.is_some_and(|was| was.trigger == schedule.trigger);
    if same && tx.schedule(&key.workspace, &key.name)?.is_some() {
        return Ok(());
    }
    let first = (before.is_none() && !schedule.has_start()).then_some(now);
    tx.put_schedule(&schedule.waiting(first, now))
}

pub(super) fn live(app: &App, tx: &mut Tx<'_>, key: &RecordKey) -> Result<Option<Live>, Error> {
    let Some(schedule) = Schedule::find(tx, &key.workspace, &key.name)? else { return Ok(None) };
    let waiting = tx.schedule(&key.workspace, &key.name)?;
    let (runs, lost) = (tx.schedule_runs(&key.workspace, &key.name, REMEMBERED)?, lost(app, &schedule));
    Ok(Some(Live { schedule, waiting, runs, lost }))
}

impl Live {
    /// Where it is, in words for people.
    pub(super) fn words(&self) -> String {
        let Some(waiting) = &self.waiting else { return "off".to_owned() };
        if let Some(why) = &self.lost {
            return format!("starts nothing: {why}; delete it, and let someone who may make it anew");
        }
        match (&waiting.watch, waiting.due_at) {
            (Some(watch), _) => format!("waits for {}", awaited(watch)),
            (None, Some(due)) => format!("starts next at {}", due.iso()),
            (None, None) => "over: no time of it is left".to_owned(),
        }
    }

    /// Its next times, and what it has started.
    pub(super) fn details(&self) -> Value {
        let due = self.waiting.as_ref().and_then(|waiting| waiting.due_at);
        let next: Vec<String> = match &self.schedule.trigger {
            Trigger::Time(calendar) => {
                std::iter::successors(due, |at| calendar.next(*at)).take(SHOWN).map(Timestamp::iso).collect()
            }
            Trigger::Event(_) => Vec::new(),
        };
        let runs: Vec<Value> = self
            .runs
            .iter()
            .map(|run| json!({"dueAt": run.due_at.iso(), "cause": run.cause, "made": run.made, "problem": run.problem}))
            .collect();
        json!({"next": next, "runs": runs})
    }
}

fn awaited(watch: &Watch) -> String {
    let name = if watch.name.is_empty() { String::new() } else { format!(" `{}`", watch.name) };
    match watch.on {
        Subject::Job => {
            let of = if watch.experiment.is_empty() {
                String::new()
            } else {
                format!(" of experiment `{}`", watch.experiment)
            };
            format!("a job{name}{of} to be {}", watch.status.join(" or "))
        }
        on => format!("a new version of {}{name}", on.word()),
    }
}

/// Starts what a schedule starts, now. One that waits for an asset gets its latest version.
pub(crate) async fn trigger(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    Body(asked): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = Kind::Schedule.key(&workspace.name, &at);
    let due_at = asked["scheduleTime"].as_str().and_then(Timestamp::parse_iso).unwrap_or_else(|| app.now());
    let then = app.clone();
    let (kind, made) = change::change(&app, move |tx| {
        let row = find(tx, Kind::Schedule, &key)?;
        let schedule = Schedule::of(row).ok_or_else(|| refused(&key, "its trigger makes no sense"))?;
        let event = match &schedule.trigger {
            Trigger::Event(watch) => latest(tx, &key.workspace, watch)?,
            Trigger::Time(_) => None,
        };
        let order = Order { due_at, event, by: caller.name, chain: Vec::new() };
        let made = start(&then, &workspace, tx, &schedule, order)?;
        Ok((schedule.body["properties"]["action"]["actionType"].clone(), made))
    })
    .await?;
    Ok(Json(json!({"scheduleActionType": kind, "submissionId": made})))
}

/// The event that a schedule would have been told of last.
fn latest(tx: &mut Tx<'_>, workspace: &str, watch: &Watch) -> Result<Option<Event>, Error> {
    let kind = match watch.on {
        Subject::Data => "data",
        Subject::Model => "models",
        Subject::Job => return Ok(None),
    };
    let found = tx.latest_asset(workspace, kind, &watch.name)?.filter(|row| !row.archived);
    Ok(found.map(|row| Event {
        on: watch.on,
        name: row.key.name,
        version: row.key.version,
        experiment: String::new(),
        status: String::new(),
        job: String::new(),
    }))
}
