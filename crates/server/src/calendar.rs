//! Schedules at work: the loop that starts what is due, and what has to happen when one is started.
//!
//! Starting something and moving its schedule on is one transaction, so that whatever dies when, nothing is started twice
//! and nothing is left out unseen. What could not be started is on record with its reason. It stands here and not among the
//! controller's loops because a schedule's job is submitted as anyone's is: its names mean what they mean at that moment.

mod make;
#[cfg(test)]
mod tests;

pub(crate) use make::{Order, rehearse};

use make::make;

use crate::{
    app::App,
    http::{change::Halt, records::Kind},
    problem::Problem,
};
use api::arm::schedule::trigger_said;
use axum::http::StatusCode;
use domain::{
    Timestamp,
    calendar::{self, MAX_EVENT_RUNS, Missed, Trigger},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use store::{Act, Bell, Error, RecordKey, RecordRow, ScheduleEvent, ScheduleRow, ScheduleRun, Tx, WorkspaceRow};

/// How long the loop sleeps at most: a clock may be set.
const LOOK: Duration = Duration::from_secs(10);
/// How soon it looks again after something went wrong or has to wait.
const SOON: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Starts what is due for as long as it is polled.
pub(crate) async fn run(app: App) {
    // Until the agent has said what its machine offers, a job could be refused that it can run.
    app.until_capacity_is_known().await;
    let mut bell = app.store.changed(Bell::Calendar);
    let mut adopted = false;
    loop {
        bell.mark_unchanged();
        let pause = match pass(&app, &mut adopted).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot look for schedules that are due");
                SOON
            }
        };
        tokio::select! {
            _ = bell.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// One round; how long there is nothing to do after it.
async fn pass(app: &App, adopted: &mut bool) -> Result<Duration, Error> {
    if !*adopted {
        let now = app.now();
        app.store.write(move |tx| adopt(tx, now)).await?;
        *adopted = true;
    }
    let now = app.now();
    let (due, events) = app.store.read(move |tx| Ok((tx.due_schedules(now)?, tx.schedule_events()?))).await?;
    let mut again = None;
    for row in due {
        let name = row.name.clone();
        if let Err(error) =
            with(app, row.workspace.clone(), move |app, place, tx| at_its_time(app, place, tx, &row)).await
        {
            tracing::error!(error = &error as &dyn std::error::Error, "schedule `{name}` cannot start this time");
            again = Some(SOON);
        }
    }
    for event in events {
        let name = event.schedule.clone();
        match with(app, event.workspace.clone(), move |app, place, tx| at_event(app, place, tx, &event)).await {
            Ok(Some(true)) => {}
            Ok(_) => again = Some(SOON),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "schedule `{name}` cannot start this time");
                again = Some(SOON);
            }
        }
    }
    let next = app.store.read(|tx| tx.next_due()).await?;
    let until = next.map_or(LOOK, |at| at.since(app.now()));
    Ok(again.unwrap_or(until).clamp(Duration::from_millis(10), LOOK))
}

/// Runs `work` in a transaction of the schedule's workspace, if that is there.
async fn with<T: Send + 'static>(
    app: &App,
    workspace: String,
    work: impl FnOnce(&App, &WorkspaceRow, &mut Tx<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<Option<T>, Error> {
    let Ok(place) = app.workspace(&workspace).await else { return Ok(None) };
    let (then, place) = (app.clone(), Arc::clone(&place));
    app.store.write(move |tx| work(&then, &place, tx).map(Some)).await
}

/// A schedule's record and what it means.
pub(crate) struct Schedule {
    pub(crate) row: RecordRow,
    pub(crate) body: Value,
    pub(crate) trigger: Trigger,
}

impl Schedule {
    pub(crate) fn key(workspace: &str, name: &str) -> RecordKey {
        RecordKey {
            workspace: workspace.to_owned(),
            kind: Kind::Schedule.table().to_owned(),
            parent: String::new(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn find(tx: &mut Tx<'_>, workspace: &str, name: &str) -> Result<Option<Schedule>, Error> {
        Ok(tx.record(&Schedule::key(workspace, name))?.and_then(Schedule::of))
    }

    /// Nothing where the record is of before triggers were understood, and makes no sense.
    pub(crate) fn of(row: RecordRow) -> Option<Schedule> {
        let body: Value = serde_json::from_str(&row.body).ok()?;
        let trigger = match calendar::read(&trigger_said(&body["properties"]["trigger"])).ok()? {
            Trigger::Time(calendar) => Trigger::Time(calendar.from(row.created_at)),
            event => event,
        };
        Some(Schedule { row, body, trigger })
    }

    pub(crate) fn is_on(&self) -> bool {
        self.body["properties"]["isEnabled"] != false && !self.row.archived
    }

    /// Whether its file says from when on.
    pub(crate) fn has_start(&self) -> bool {
        self.body["properties"]["trigger"]["startTime"].as_str().is_some_and(|text| !text.trim().is_empty())
    }

    fn missed(&self) -> Missed {
        let word = self.body["properties"]["properties"][Missed::KEY].as_str().unwrap_or_default();
        Missed::parse(word).unwrap_or_default()
    }

    /// What waits for it from now on; its first time is `first`, or the next of its calendar.
    pub(crate) fn waiting(&self, first: Option<Timestamp>, now: Timestamp) -> ScheduleRow {
        let (watch, due_at) = match &self.trigger {
            Trigger::Event(watch) => (Some(watch.clone()), None),
            Trigger::Time(calendar) => (None, first.or_else(|| calendar.next(now))),
        };
        let RecordKey { workspace, name, .. } = self.row.key.clone();
        ScheduleRow { workspace, name, watch, due_at }
    }
}

/// Schedules that were kept before anything started them are on from now on.
fn adopt(tx: &mut Tx<'_>, now: Timestamp) -> Result<(), Error> {
    for row in tx.records_of(Kind::Schedule.table())? {
        let Some(schedule) = Schedule::of(row).filter(Schedule::is_on) else { continue };
        let key = &schedule.row.key;
        if tx.schedule(&key.workspace, &key.name)?.is_none() {
            tx.put_schedule(&schedule.waiting(None, now))?;
        }
    }
    Ok(())
}

/// A schedule whose time has come: what it starts, what it passes over, and when it is due next.
fn at_its_time(app: &App, workspace: &WorkspaceRow, tx: &mut Tx<'_>, seen: &ScheduleRow) -> Result<(), Error> {
    let now = app.now();
    // Someone may have changed it since it was seen.
    let due = tx.schedule(&seen.workspace, &seen.name)?.and_then(|row| row.due_at).filter(|due| *due <= now);
    let Some(first) = due else { return Ok(()) };
    let found = Schedule::find(tx, &seen.workspace, &seen.name)?.filter(Schedule::is_on);
    let Some(schedule) = found else { return tx.delete_schedule(&seen.workspace, &seen.name) };
    let Trigger::Time(calendar) = &schedule.trigger else { return tx.put_schedule(&schedule.waiting(None, now)) };
    let missed = schedule.missed();
    let mut later = calendar.due(first, now, missed.most());
    if later.times.len() < missed.most() {
        later.times.insert(0, first);
    } else {
        later.more = true;
    }
    let chosen = missed.choose(&later.times, now);
    if later.more || chosen.len() < later.times.len() {
        let problem = format!("missed: times from {} to {} were passed over", first.iso(), now.iso());
        tx.insert_schedule_run(&ScheduleRun { problem: Some(problem), ..blank(&schedule, first, now) })?;
    }
    for at in chosen {
        let order = Order { due_at: *at, event: None, by: schedule.row.created_by.clone(), chain: Vec::new() };
        record(app, workspace, tx, &schedule, order)?;
    }
    tx.put_schedule(&schedule.waiting(None, now))
}

/// Something has happened that a schedule waits for; `false` when it has to wait for its turn.
fn at_event(app: &App, workspace: &WorkspaceRow, tx: &mut Tx<'_>, told: &ScheduleEvent) -> Result<bool, Error> {
    let now = app.now();
    let found = Schedule::find(tx, &told.workspace, &told.schedule)?.filter(Schedule::is_on);
    let Some(schedule) = found else { return tx.take_schedule_event(told.seq).map(|_| true) };
    let chain = led_by(tx, &told.workspace, &told.event.job)?;
    let often = tx.event_runs_since(&told.workspace, &told.schedule, now.before(HOUR))? >= MAX_EVENT_RUNS;
    let problem = if chain.contains(&told.schedule) {
        Some(format!("not started: it comes from job `{}`, which this schedule led to", told.event.job))
    } else if often {
        Some(format!("not started: events have started it {MAX_EVENT_RUNS} times within an hour"))
    } else {
        None
    };
    let order = Order { due_at: told.at, event: Some(told.event.clone()), by: schedule.row.created_by.clone(), chain };
    if let Some(problem) = problem {
        let cause = told.event.to_string();
        let run = ScheduleRun { problem: Some(problem), cause, by_event: true, ..blank(&schedule, told.at, now) };
        tx.insert_schedule_run(&run)?;
    } else if !record(app, workspace, tx, &schedule, order)? {
        return Ok(false);
    }
    tx.take_schedule_event(told.seq).map(|_| true)
}

/// The schedules that led to a job, by events and by making it or what it is a part of.
fn led_by(tx: &mut Tx<'_>, workspace: &str, job: &str) -> Result<Vec<String>, Error> {
    let mut name = job.to_owned();
    while let Some(parent) = tx.job(workspace, &name)?.and_then(|row| row.parent) {
        name = parent.name;
    }
    Ok(tx.schedule_run_of(workspace, &name)?.map(|run| run.chain).unwrap_or_default())
}

/// Starts what a schedule starts and writes down what became of it; `false` when it has to be tried again.
fn record(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    schedule: &Schedule,
    order: Order,
) -> Result<bool, Error> {
    let waits = order.event.is_some();
    let started = match lost(app, schedule) {
        None => start(app, workspace, tx, schedule, order.clone()),
        Some(why) => {
            tx.add_audit(&refusal(app, schedule, &order), i64::from(StatusCode::FORBIDDEN.as_u16()))?;
            Err(refused(&schedule.row.key, why).into())
        }
    };
    match started {
        Ok(_) => Ok(true),
        // A deployment that is being changed can be changed again afterwards.
        Err(Halt::Refused(problem)) if waits && problem.status == StatusCode::CONFLICT => Ok(false),
        Err(Halt::Refused(problem)) => {
            tracing::warn!("schedule `{}` could not start its job: {}", schedule.row.key.name, problem.message);
            let run = ScheduleRun { problem: Some(problem.message), ..order.run(schedule, app.now()) };
            tx.insert_schedule_run(&run).map(|()| true)
        }
        Err(Halt::Failed(error)) => Err(error),
    }
}

/// Why nothing is started in the name of whoever made a schedule, where they have lost their access.
pub(crate) fn lost(app: &App, schedule: &Schedule) -> Option<String> {
    let RecordRow { key, created_by, .. } = &schedule.row;
    let lost = app.tokens.have_lost(created_by, &key.workspace, app.now());
    lost.then(|| format!("`{created_by}`, who made it, may not submit work to this workspace any more"))
}

/// What the audit says of it.
fn refusal(app: &App, schedule: &Schedule, order: &Order) -> Act {
    let RecordKey { workspace, name, .. } = schedule.row.key.clone();
    let path = format!("/schedules/{name}/trigger");
    Act { at: app.now(), caller: order.by.clone(), workspace, route: "schedule_trigger", method: "POST".into(), path }
}

/// Starts what a schedule starts: the name of the job, or of the deployment that was changed.
pub(crate) fn start(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    schedule: &Schedule,
    order: Order,
) -> Result<String, Halt> {
    let made = make(app, workspace, tx, schedule, &order)?;
    tracing::info!("schedule `{}` has started `{made}`: {}", schedule.row.key.name, order.cause());
    let run = ScheduleRun { made: Some(made.clone()), ..order.run(schedule, app.now()) };
    tx.insert_schedule_run(&run)?;
    Ok(made)
}

fn blank(schedule: &Schedule, due_at: Timestamp, made_at: Timestamp) -> ScheduleRun {
    let RecordKey { workspace, name, .. } = schedule.row.key.clone();
    ScheduleRun {
        workspace,
        schedule: name.clone(),
        due_at,
        made_at,
        cause: "its time".to_owned(),
        by_event: false,
        made: None,
        problem: None,
        chain: vec![name],
    }
}

impl Order {
    fn cause(&self) -> String {
        self.event.as_ref().map_or_else(|| "its time".to_owned(), ToString::to_string)
    }

    fn run(&self, schedule: &Schedule, now: Timestamp) -> ScheduleRun {
        let blank = blank(schedule, self.due_at, now);
        let chain = self.chain.iter().cloned().chain(blank.chain).collect();
        ScheduleRun { cause: self.cause(), by_event: self.event.is_some(), chain, ..blank }
    }
}

/// What keeps a schedule from starting anything.
pub(crate) fn refused(schedule: &RecordKey, why: impl std::fmt::Display) -> Problem {
    Problem::bad(format!("schedule `{}` cannot start anything: {why}", schedule.name))
}
