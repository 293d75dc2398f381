//! Calendars over changes of the clocks, in tables and against a count of every minute.

use super::*;
use serde_json::{Value, json};

fn calendar(trigger: Value) -> Calendar {
    match read(&trigger) {
        Ok(Trigger::Time(calendar)) => calendar,
        other => panic!("{trigger}: {other:?}"),
    }
}

fn cron(expression: &str, zone: &str) -> Calendar {
    calendar(json!({"type": "cron", "expression": expression, "time_zone": zone}))
}

fn at(text: &str) -> Timestamp {
    Timestamp(DateTime::parse_from_rfc3339(text).expect(text).timestamp_millis())
}

fn shown(at: Timestamp, zone: Tz) -> String {
    zone.timestamp_millis_opt(at.0).unwrap().format("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// The times after one, as a clock in the calendar's zone shows them.
fn after(calendar: &Calendar, from: &str, count: usize) -> Vec<String> {
    let times = std::iter::successors(calendar.next(at(from)), |at| calendar.next(*at)).take(count);
    times.map(|at| shown(at, calendar.zone)).collect()
}

#[test]
fn a_cron_expression_follows_the_clock_on_the_wall() {
    for (expression, zone, from, expect) in [
        ("0 9 * * 1-5", "UTC", "2026-11-13T09:00:00Z", ["2026-11-16T09:00:00+00:00", "2026-11-17T09:00:00+00:00"]),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", ["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"]),
        // Forward: 02:30 does not exist and is 03:00, once.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
        ),
        (
            "0,30 2,3 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            ["2026-03-29T03:00:00+02:00", "2026-03-29T03:30:00+02:00"],
        ),
        (
            "30 2 * * *",
            "Pacific Standard Time",
            "2026-03-07T20:00:00Z",
            ["2026-03-08T03:00:00-07:00", "2026-03-09T02:30:00-07:00"],
        ),
        // Back: 02:30 occurs twice and is the first.
        (
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        ),
        // Every hour is every hour that passes.
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-10-25T00:00:00Z",
            ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"],
        ),
        (
            "30 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:00:00Z",
            ["2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"],
        ),
        // Half an hour in one place, a whole day in another, in which a day was left out.
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T00:00:00Z",
            ["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"],
        ),
        (
            "0 12 * * *",
            "Pacific/Apia",
            "2011-12-29T23:00:00Z",
            ["2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"],
        ),
    ] {
        assert_eq!(after(&cron(expression, zone), from, 2), expect, "{expression} in {zone}");
    }
}

#[test]
fn a_recurrence_counts_from_its_start() {
    let on = |frequency: &str, interval: i64, pattern: Value, start: &str| {
        calendar(json!({"type": "recurrence", "frequency": frequency, "interval": interval, "schedule": pattern,
            "start_time": start, "time_zone": "Europe/Berlin"}))
    };
    let none = json!({"hours": [], "minutes": []});
    for (calendar, from, expect) in [
        (
            on("minute", 90, none.clone(), "2026-01-01T00:00:00"),
            "2026-01-01T00:00:00Z",
            ["2026-01-01T01:30:00+01:00", "2026-01-01T03:00:00+01:00"],
        ),
        // An hour is an hour, whatever the clocks do.
        (
            on("hour", 24, none.clone(), "2026-03-28T12:00:00"),
            "2026-03-28T11:00:00Z",
            ["2026-03-29T13:00:00+02:00", "2026-03-30T13:00:00+02:00"],
        ),
        (
            on("day", 1, none.clone(), "2026-03-28T12:00:30"),
            "2026-03-28T12:00:00Z",
            ["2026-03-29T12:00:30+02:00", "2026-03-30T12:00:30+02:00"],
        ),
        (
            on("day", 2, json!({"hours": 4, "minutes": [0, 30]}), "2026-01-01T04:10:00"),
            "2020-01-01T00:00:00Z",
            ["2026-01-01T04:30:00+01:00", "2026-01-03T04:00:00+01:00"],
        ),
        (
            on(
                "week",
                2,
                json!({"hours": [8], "minutes": [0], "week_days": ["monday", "Wednesday"]}),
                "2026-01-07T00:00:00",
            ),
            "2026-01-07T08:00:00Z",
            ["2026-01-19T08:00:00+01:00", "2026-01-21T08:00:00+01:00"],
        ),
        (
            on("month", 1, json!({"hours": [8], "minutes": [0], "month_days": [31]}), "2026-01-31T00:00:00"),
            "2026-02-01T00:00:00Z",
            ["2026-03-31T08:00:00+02:00", "2026-05-31T08:00:00+02:00"],
        ),
        (
            on("month", 3, none, "2026-01-15T00:00:00"),
            "2026-01-15T00:00:00Z",
            ["2026-04-15T00:00:00+02:00", "2026-07-15T00:00:00+02:00"],
        ),
    ] {
        assert_eq!(after(&calendar, from, 2), expect, "{calendar:?}");
    }
}

#[test]
fn a_calendar_without_a_start_counts_from_when_it_was_made_and_none_outlives_its_end() {
    let every = json!({"type": "recurrence", "frequency": "hour", "interval": 2});
    let made = calendar(every).from(at("2026-01-01T00:10:00Z"));
    assert_eq!(after(&made, "2026-01-01T00:00:00Z", 2), ["2026-01-01T00:10:00+00:00", "2026-01-01T02:10:00+00:00"]);
    let ends = json!({"type": "cron", "expression": "0 * * * *", "start_time": "2026-01-01T01:00:00Z", "end_time": "2026-01-01 03:00:00"});
    assert_eq!(after(&calendar(ends), "2020-01-01T00:00:00Z", 9).len(), 3, "both ends are part of it");
}

#[test]
fn what_is_due_is_the_latest_of_what_was_missed() {
    let minutely = cron("* * * * *", "UTC");
    for (from, now, most, count, more) in [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:59Z", 10, 0, false),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", 10, 5, false),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z", 10, 10, false),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:11:00Z", 10, 10, true),
        ("2016-01-01T00:00:00Z", "2026-01-01T00:11:00Z", 1, 1, true),
    ] {
        let due = minutely.due(at(from), at(now), most);
        assert_eq!((due.times.len(), due.more), (count, more), "{from} to {now}");
        assert!(due.times.last().is_none_or(|last| at(now).0 - last.0 < 60_000));
    }
    let yearly = cron("0 0 1 1 *", "UTC").due(at("2020-06-01T00:00:00Z"), at("2026-06-01T00:00:00Z"), 2);
    assert_eq!(yearly, Due { times: vec![at("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z")], more: true });
}

#[test]
fn triggers_that_cannot_work_are_refused_with_their_reason() {
    let cron = |rest: Value| {
        let mut trigger = json!({"type": "cron", "expression": "0 8 * * *"});
        trigger.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        trigger
    };
    for (trigger, key, reason) in [
        (json!({}), "type", "kind of trigger"),
        (json!({"type": "cron"}), "expression", "missing"),
        (json!({"type": "cron", "expression": "0 0 31 2 *"}), "expression", "no such day exists"),
        (json!({"type": "cron", "expression": "0 0 31 4,6 *"}), "expression", "no such day exists"),
        (cron(json!({"time_zone": "Europe/Berlim"})), "time_zone", "did you mean `Europe/Berlin`?"),
        (cron(json!({"time_zone": "Nowhere"})), "time_zone", "write it like"),
        (cron(json!({"start_time": "2026-02-30T00:00:00"})), "start_time", "no time"),
        (cron(json!({"start_time": "2026-02-02", "end_time": "2026-02-01"})), "end_time", "before `start_time`"),
        (
            cron(json!({"start_time": "2026-02-01T09:00", "end_time": "2026-02-01T10:00"})),
            "expression",
            "before `end_time`",
        ),
        (json!({"type": "recurrence", "frequency": "day", "interval": 0}), "interval", "0 is no interval"),
        (json!({"type": "recurrence", "frequency": "day"}), "interval", "missing"),
        (json!({"type": "recurrence", "frequency": "era", "interval": 1}), "frequency", "`month`"),
        (
            json!({"type": "recurrence", "frequency": "hour", "interval": 1, "schedule": {"minutes": [3]}}),
            "schedule.minutes",
            "`frequency: hour`",
        ),
        (
            json!({"type": "recurrence", "frequency": "day", "interval": 1, "schedule": {"hours": [24], "minutes": 0}}),
            "schedule.hours",
            "0 to 23",
        ),
        (
            json!({"type": "recurrence", "frequency": "day", "interval": 1, "schedule": {"hours": [4]}}),
            "schedule",
            "both",
        ),
        (
            json!({"type": "recurrence", "frequency": "week", "interval": 1, "schedule": {"week_days": ["moonday"]}}),
            "schedule.week_days",
            "no day",
        ),
        (json!({"type": "event", "on": "moon"}), "on", "`data`"),
        (json!({"type": "event", "on": "data"}), "name", "missing"),
        (json!({"type": "event", "on": "job"}), "experiment_name", "every job"),
        (json!({"type": "event", "on": "job", "name": "x", "status": "odd"}), "status", "no end of a job"),
        (json!({"type": "event", "on": "model", "name": "a*b"}), "name", "at the end"),
    ] {
        let bad = read(&trigger).expect_err(&trigger.to_string());
        let said = format!("{} {}", bad[0].message, bad[0].fix);
        assert!(bad[0].key == key && said.contains(reason), "{trigger}: {} {said}", bad[0].key);
    }
}

/// Every minute of some days is looked at as someone before a wall clock would: what the clock shows is done, what it has
/// shown before is not, and what it skipped is done at once.
#[test]
fn no_minute_of_a_clock_change_is_lost_or_done_twice() {
    let mut seed = 7_u64;
    let mut draw = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let places = [
        ("Europe/Berlin", "2026-03-28T00:00:00Z"),
        ("Europe/Berlin", "2026-10-24T00:00:00Z"),
        ("America/New_York", "2026-03-07T00:00:00Z"),
        ("America/New_York", "2026-10-31T00:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-03T00:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-02T00:00:00Z"),
        ("America/Santiago", "2026-09-04T00:00:00Z"),
        ("Asia/Kolkata", "2026-06-01T00:00:00Z"),
    ];
    for round in 0..160 {
        let (place, from) = places[round % places.len()];
        let minute = ["*/7", "0", "30", "5-20/3"][draw(4) as usize];
        let hour = match draw(4) {
            0 => "*".to_owned(),
            1 => format!("{}", draw(24)),
            2 => "1-3".to_owned(),
            _ => format!("0,2,{}", draw(24)),
        };
        let day = ["*", "*", "mon-sat", "0"][draw(4) as usize];
        let expression = format!("{minute} {hour} * * {day}");
        let calendar = cron(&expression, place);
        let Rule::At { days, times, every_hour } = &calendar.rule else { panic!("it is a cron expression") };
        let means = |local: NaiveDateTime| days.hold(local.date(), local.date()) && times.contains(&local.time());
        let from = at(from);
        let minutes = (1..=3 * 24 * 60).map(|minute| Timestamp(from.0 + minute * 60_000));
        let mut newest = calendar.local(from).unwrap();
        let mut expect = Vec::new();
        for now in minutes {
            let local = calendar.local(now).unwrap();
            let skipped = (local - newest).num_minutes().max(1);
            let jumped = (1..skipped).any(|back| means(local - TimeDelta::minutes(back)));
            let fires = if *every_hour { means(local) } else { local > newest && (means(local) || jumped) };
            if fires {
                expect.push(now);
            }
            newest = newest.max(local);
        }
        let found = std::iter::successors(calendar.next(from), |at| calendar.next(*at));
        let found: Vec<Timestamp> = found.take_while(|at| at.0 <= from.0 + 3 * 24 * 3_600_000).collect();
        assert_eq!(found, expect, "{expression} in {place}");
    }
}
