//! When schedules start something: calendars of times, and events they wait for.
//!
//! A calendar is local: it means times on a wall clock in its zone. Where clocks are set forward, a time that does not exist
//! is the moment at which the clocks moved; where they are set back, a time that occurs twice is its first occurrence. A cron
//! expression that means every hour counts hours as they pass instead, so that none is left out and none is done twice.
//! Everything here is a function of its arguments. Invariant: what was read has a next time at least once.

mod cron;
mod event;
mod missed;
mod read;
mod zone;

pub use event::{Event, MAX_EVENT_RUNS, Subject, Watch};
pub use missed::Missed;
pub use read::read;

use crate::Timestamp;
use chrono::{
    DateTime, Datelike, Days as DayCount, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone,
    Timelike,
};
use chrono_tz::Tz;
use std::collections::BTreeSet;

/// After this many days every calendar has come around: leap years and days of the week together take 400 years.
const CYCLE_DAYS: u64 = 146_097;

/// A little more than a day: no clock was ever moved by more.
const DAY_MS: i64 = 25 * 3_600_000;

/// What a schedule waits for.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    Time(Calendar),
    Event(Watch),
}

/// Times that follow each other by a rule, from a start to an end.
#[derive(Debug, Clone, PartialEq)]
pub struct Calendar {
    zone: Tz,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    rule: Rule,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    /// So many milliseconds apart, counted from the start.
    Every(i64),
    /// At these times of certain days; at the start's time of day where there are none.
    At { days: Days, times: Vec<NaiveTime>, every_hour: bool },
}

#[derive(Debug, Clone, PartialEq)]
enum Days {
    Cron(cron::CronDays),
    /// Every so many days, weeks or months from the start's, on days of the week (0 is Monday) or month.
    Daily(u32),
    Weekly(u32, Vec<u32>),
    Monthly(u32, Vec<u32>),
}

/// Times that have come and were not looked at yet, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub times: Vec<Timestamp>,
    /// There were more of them, which are older.
    pub more: bool,
}

impl Calendar {
    /// The same from `since` on, where its file names no start.
    pub fn from(mut self, since: Timestamp) -> Calendar {
        self.start.get_or_insert(since);
        self
    }

    /// The first time after `after`, if there is one.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let start = self.start.unwrap_or(after);
        let after = after.max(Timestamp(start.0 - 1));
        let next = match &self.rule {
            Rule::Every(millis) => Some(Timestamp(start.0 + ((after.0 - start.0).div_euclid(*millis) + 1) * millis)),
            Rule::At { days, times, every_hour } => self.next_at(after, start, (days, times), *every_hour),
        };
        next.filter(|next| self.end.is_none_or(|end| *next <= end))
    }

    /// What came due after `after` and until `now`: the latest `most` of it.
    pub fn due(&self, after: Timestamp, now: Timestamp, most: usize) -> Due {
        let mut window = 60_000;
        loop {
            let from = after.max(Timestamp(now.0.saturating_sub(window)));
            let mut times: Vec<Timestamp> =
                std::iter::successors(self.next(from), |at| self.next(*at)).take_while(|at| *at <= now).collect();
            if from == after || times.len() > most {
                let old = times.len().saturating_sub(most);
                return Due {
                    more: old > 0 || self.next(after).is_some_and(|at| at <= from),
                    times: times.split_off(old),
                };
            }
            window *= 2;
        }
    }

    fn next_at(
        &self,
        after: Timestamp,
        start: Timestamp,
        (days, times): (&Days, &[NaiveTime]),
        every_hour: bool,
    ) -> Option<Timestamp> {
        let anchor = self.local(start)?;
        let own = [anchor.time()];
        let times = if times.is_empty() { &own[..] } else { times };
        // Where the clocks move, times this far apart on the wall may lie in another order than on a line.
        let moved = self.moved(after)?;
        let from = self.local(after)? - moved;
        let mut date = from.date();
        let mut best: Option<(Timestamp, NaiveDateTime)> = None;
        for _ in 0..CYCLE_DAYS {
            let today = if days.hold(date, anchor.date()) { times } else { &[] };
            for local in today.iter().map(|time| date.and_time(*time)).filter(|local| *local >= from) {
                if best.is_some_and(|(_, at)| local > at + moved) {
                    break;
                }
                let instants = self.instants(local, every_hour).into_iter().filter(|at| *at > after);
                best = instants.map(|at| (at, local)).chain(best).min();
            }
            date = date.checked_add_days(DayCount::new(1))?;
            if best.is_some_and(|(_, at)| date.and_time(NaiveTime::MIN) > at + moved) {
                break;
            }
        }
        best.map(|(at, _)| at)
    }

    /// How far the clocks move within a day of this.
    fn moved(&self, at: Timestamp) -> Option<TimeDelta> {
        let ahead = |millis: i64| {
            Some(self.local(Timestamp(at.0 + millis))? - self.local(at)? - TimeDelta::milliseconds(millis))
        };
        Some((ahead(DAY_MS)? - ahead(-DAY_MS)?).abs())
    }

    /// When a wall clock shows a time.
    fn instants(&self, local: NaiveDateTime, every_hour: bool) -> Vec<Timestamp> {
        let at = |at: DateTime<Tz>| Timestamp(at.timestamp_millis());
        match self.zone.from_local_datetime(&local) {
            LocalResult::Single(only) => vec![at(only)],
            LocalResult::Ambiguous(first, second) if every_hour => vec![at(first), at(second)],
            LocalResult::Ambiguous(first, _) => vec![at(first)],
            LocalResult::None if every_hour => Vec::new(),
            LocalResult::None => after_gap(self.zone, local).map(at).into_iter().collect(),
        }
    }

    fn local(&self, at: Timestamp) -> Option<NaiveDateTime> {
        Some(self.zone.timestamp_millis_opt(at.0).single()?.naive_local())
    }
}

impl Days {
    fn hold(&self, date: NaiveDate, anchor: NaiveDate) -> bool {
        let apart = |interval: u32, distance: i64| distance >= 0 && distance % i64::from(interval) == 0;
        match self {
            Days::Cron(days) => days.hold(date),
            Days::Daily(interval) => apart(*interval, (date - anchor).num_days()),
            Days::Weekly(interval, on) => {
                let weeks = (monday(date) - monday(anchor)).num_days() / 7;
                let own = [anchor.weekday().num_days_from_monday()];
                apart(*interval, weeks) && or(on, &own).contains(&date.weekday().num_days_from_monday())
            }
            Days::Monthly(interval, on) => {
                let month = |date: NaiveDate| i64::from(date.year()) * 12 + i64::from(date.month0());
                apart(*interval, month(date) - month(anchor)) && or(on, &[anchor.day()]).contains(&date.day())
            }
        }
    }
}

/// The moment at which clocks jumped over a time. They jump by whole minutes, and never by more than a day.
fn after_gap(zone: Tz, local: NaiveDateTime) -> Option<DateTime<Tz>> {
    let whole = local.with_second(0)?.with_nanosecond(0)?;
    (1..=24 * 60).find_map(|minutes| zone.from_local_datetime(&(whole + TimeDelta::minutes(minutes))).earliest())
}

fn or<'v>(values: &'v [u32], own: &'v [u32]) -> &'v [u32] {
    if values.is_empty() { own } else { values }
}

fn monday(date: NaiveDate) -> NaiveDate {
    date - TimeDelta::days(i64::from(date.weekday().num_days_from_monday()))
}

/// Sorted, each once.
fn sorted<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    values.into_iter().collect::<BTreeSet<T>>().into_iter().collect()
}

#[cfg(test)]
mod tests;
