//! Reading a trigger as files write it. All mistakes are told at once, each with its key below `trigger`.

use super::{Calendar, Days, Rule, Subject, Trigger, Watch, after_gap, cron, sorted, zone};
use crate::{
    Timestamp,
    spec::{Mistake, yaml::clip},
};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeZone};
use chrono_tz::Tz;
use serde_json::Value;

const WEEK_DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const ENDS: [&str; 3] = ["completed", "failed", "canceled"];
/// Nobody means less often than this by an interval.
const MAX_INTERVAL: i64 = 100_000;

/// What a trigger means, or everything that keeps it from meaning anything.
pub fn read(trigger: &Value) -> Result<Trigger, Vec<Mistake>> {
    let mut reading = Reading { trigger, bad: Vec::new() };
    let made = match reading.text("type").map(str::to_ascii_lowercase).as_deref() {
        Some("event") => reading.watch().map(Trigger::Event),
        Some("cron") => reading.calendar(Reading::cron).map(Trigger::Time),
        Some("recurrence") => reading.calendar(Reading::recurrence).map(Trigger::Time),
        _ => {
            reading.say("type", "it says not what kind of trigger this is", "write `cron`, `recurrence` or `event`");
            None
        }
    };
    match made {
        Some(made) if reading.bad.is_empty() => Ok(made),
        _ => Err(reading.bad),
    }
}

struct Reading<'v> {
    trigger: &'v Value,
    bad: Vec<Mistake>,
}

impl<'v> Reading<'v> {
    fn say(&mut self, key: &str, message: impl Into<String>, fix: impl Into<String>) {
        self.bad.push(Mistake::new(key, message, fix));
    }

    fn text(&self, key: &str) -> Option<&'v str> {
        self.trigger[key].as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    fn calendar(&mut self, rule: fn(&mut Self) -> Option<Rule>) -> Option<Calendar> {
        let zone = self.zone();
        let rule = rule(self);
        let (start, end) = (self.moment("start_time", zone), self.moment("end_time", zone));
        if start.zip(end).is_some_and(|(start, end)| end < start) {
            self.say("end_time", "it lies before `start_time`", "swap or change them");
            return None;
        }
        let calendar = Calendar { zone: zone?, start, end, rule: rule? };
        let never = |calendar: Calendar| calendar.from(Timestamp(0)).next(Timestamp(0)).is_none();
        if never(calendar.clone()) {
            let key = if self.text("expression").is_some() { "expression" } else { "schedule" };
            let message = match end {
                Some(_) if !never(Calendar { end: None, ..calendar }) => "no time of it lies before `end_time`",
                _ => "no such day exists, so it would never start anything",
            };
            self.say(key, message, "name days that exist, such as `0 9 28 2 *`");
            return None;
        }
        Some(calendar)
    }

    fn zone(&mut self) -> Option<Tz> {
        let Some(name) = self.text("time_zone") else { return Some(Tz::UTC) };
        match zone::parse(name) {
            Ok(zone) => Some(zone),
            Err(like) => {
                let fix = match like {
                    Some(like) => format!("did you mean `{like}`?"),
                    None => "write it like `Europe/Berlin` or `Pacific Standard Time`".to_owned(),
                };
                self.say("time_zone", format!("there is no time zone `{}`", clip(name)), fix);
                None
            }
        }
    }

    /// A time with an offset is that instant; one without is a time on the wall clock of the zone.
    fn moment(&mut self, key: &str, zone: Option<Tz>) -> Option<Timestamp> {
        let text = self.text(key)?;
        if let Some(at) = instant(text) {
            return Some(at);
        }
        let Some(local) = local_time(text) else {
            self.say(key, format!("`{}` is no time", clip(text)), "write it like `2026-01-31T08:00:00`");
            return None;
        };
        let zone = zone?;
        let at = zone.from_local_datetime(&local).earliest().or_else(|| after_gap(zone, local))?;
        Some(Timestamp(at.timestamp_millis()))
    }

    fn cron(&mut self) -> Option<Rule> {
        let Some(expression) = self.text("expression") else {
            self.say("expression", "it is missing", "write it like `0 9 * * 1-5`");
            return None;
        };
        match cron::parse(expression) {
            Ok((days, times, every_hour)) => Some(Rule::At { days, times, every_hour }),
            Err(why) => {
                self.say("expression", why, "write it like `0 9 * * 1-5`");
                None
            }
        }
    }

    fn recurrence(&mut self) -> Option<Rule> {
        let frequency = self.text("frequency").map(str::to_ascii_lowercase).unwrap_or_default();
        let interval = self.trigger["interval"].as_i64().filter(|n| (1..=MAX_INTERVAL).contains(n));
        if interval.is_none() {
            let message = match &self.trigger["interval"] {
                Value::Null => "it is missing".to_owned(),
                other => format!("{other} is no interval"),
            };
            self.say("interval", message, format!("write a whole number, 1 to {MAX_INTERVAL}"));
        }
        let hours = self.numbers("hours", 0..=23);
        let minutes = self.numbers("minutes", 0..=59);
        let month_days = self.numbers("month_days", 1..=31);
        let week_days = self.week_days();
        let units = ["minute", "hour", "day", "week", "month"];
        let Some(unit) = units.iter().position(|unit| *unit == frequency) else {
            self.say(
                "frequency",
                format!("`{}` is no frequency", clip(&frequency)),
                "write one of `minute`, `hour`, `day`, `week`, `month`",
            );
            return None;
        };
        for (key, given, fits, use_) in [
            ("hours", !hours.is_empty(), unit >= 2, "day"),
            ("minutes", !minutes.is_empty(), unit >= 2, "day"),
            ("week_days", !week_days.is_empty(), unit == 3, "week"),
            ("month_days", !month_days.is_empty(), unit == 4, "month"),
        ] {
            if given && !fits {
                let message = format!("`{key}` means nothing with `frequency: {frequency}`");
                self.say(&format!("schedule.{key}"), message, format!("use `frequency: {use_}`, or remove it"));
            }
        }
        let interval = interval?;
        let apart = u32::try_from(interval).ok()?;
        let days = match unit {
            0 => return Some(Rule::Every(interval * 60_000)),
            1 => return Some(Rule::Every(interval * 3_600_000)),
            2 => Days::Daily(apart),
            3 => Days::Weekly(apart, week_days),
            _ => Days::Monthly(apart, month_days),
        };
        if hours.is_empty() != minutes.is_empty() {
            self.say(
                "schedule",
                "times of a day need both `hours` and `minutes`",
                "add the other, such as `minutes: [0]`",
            );
        }
        let times = hours.iter().flat_map(|hour| minutes.iter().filter_map(|m| NaiveTime::from_hms_opt(*hour, *m, 0)));
        Some(Rule::At { days, times: times.collect(), every_hour: false })
    }

    /// The pattern has stood under two names.
    fn pattern(&self, key: &str) -> Vec<&'v Value> {
        let pattern =
            if self.trigger["schedule"].is_null() { &self.trigger["pattern"] } else { &self.trigger["schedule"] };
        match &pattern[key] {
            Value::Null => Vec::new(),
            Value::Array(items) => items.iter().collect(),
            one => vec![one],
        }
    }

    fn numbers(&mut self, key: &str, bounds: std::ops::RangeInclusive<u32>) -> Vec<u32> {
        let mut numbers = Vec::new();
        for value in self.pattern(key) {
            match value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| bounds.contains(n)) {
                Some(number) => numbers.push(number),
                None => {
                    let fix = format!("write whole numbers, {} to {}", bounds.start(), bounds.end());
                    self.say(&format!("schedule.{key}"), format!("{value} cannot be one of `{key}`"), fix);
                }
            }
        }
        sorted(numbers)
    }

    fn week_days(&mut self) -> Vec<u32> {
        let mut days = Vec::new();
        for value in self.pattern("week_days") {
            let at = value.as_str().and_then(|day| WEEK_DAYS.iter().position(|known| known.eq_ignore_ascii_case(day)));
            match at.and_then(|at| u32::try_from(at).ok()) {
                Some(day) => days.push(day),
                None => self.say("schedule.week_days", format!("{value} is no day"), "write it like `monday`"),
            }
        }
        sorted(days)
    }

    fn watch(&mut self) -> Option<Watch> {
        let on = match self.text("on") {
            Some("data") => Subject::Data,
            Some("model") => Subject::Model,
            Some("job") => Subject::Job,
            _ => {
                self.say("on", "it says not what to wait for", "write `data`, `model` or `job`");
                return None;
            }
        };
        let text = |key: &str| self.text(key).unwrap_or_default().to_owned();
        let (name, experiment) = (text("name"), text("experiment_name"));
        match on {
            Subject::Job if name.is_empty() && experiment.is_empty() => {
                self.say("experiment_name", "it waits for every job there is", "add `experiment_name` or `name`");
            }
            Subject::Data | Subject::Model if name.is_empty() => {
                self.say(
                    "name",
                    "it is missing",
                    format!("name the {}, or the beginning of its name and `*`", on.word()),
                );
            }
            Subject::Data | Subject::Model if !experiment.is_empty() || !self.trigger["status"].is_null() => {
                let message = format!("`experiment_name` and `status` are a job's, not of a {}", on.word());
                self.say("on", message, "remove them, or use `on: job`");
            }
            _ => {}
        }
        if name.find('*').is_some_and(|at| at + 1 != name.len()) {
            self.say("name", "`*` stands at the end of a name only", "shorten the name to its beginning and `*`");
        }
        let status = self.ends();
        Some(Watch { on, name, experiment, status })
    }

    /// How a job has to have ended; well, where nothing is said.
    fn ends(&mut self) -> Vec<String> {
        let asked: Vec<&Value> = match &self.trigger["status"] {
            Value::Null => return vec![ENDS[0].to_owned()],
            Value::Array(items) => items.iter().collect(),
            one => vec![one],
        };
        let mut ends = Vec::new();
        for value in asked {
            match value.as_str().map(str::to_ascii_lowercase).filter(|word| ENDS.contains(&word.as_str())) {
                Some(word) => ends.push(word),
                None => self.say(
                    "status",
                    format!("{value} is no end of a job"),
                    "write `completed`, `failed` or `canceled`",
                ),
            }
        }
        sorted(ends)
    }
}

fn instant(text: &str) -> Option<Timestamp> {
    Timestamp::parse_iso(&text.replacen(' ', "T", 1))
}

fn local_time(text: &str) -> Option<NaiveDateTime> {
    let text = text.replacen([' ', 't'], "T", 1);
    let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"];
    let midnight = || NaiveDate::parse_from_str(&text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0);
    forms.iter().find_map(|form| NaiveDateTime::parse_from_str(&text, form).ok()).or_else(midnight)
}
