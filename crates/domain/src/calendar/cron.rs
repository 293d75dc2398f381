//! Cron expressions: five fields, minute to day of the week, as NCronTab reads them.
//!
//! A day must satisfy the day of the month, the month *and* the day of the week: where other crons take either of two
//! days that are both restricted, NCronTab takes both.

use super::Days;
use chrono::{Datelike, NaiveDate, NaiveTime};

/// A field's name, least and greatest value, and the words that stand for values.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    words: &'static [&'static str],
}

const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const DAYS: &[&str] = &["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, words: &[] },
    Field { name: "hour", least: 0, most: 23, words: &[] },
    Field { name: "day of the month", least: 1, most: 31, words: &[] },
    Field { name: "month", least: 1, most: 12, words: MONTHS },
    Field { name: "day of the week", least: 0, most: 7, words: DAYS },
];

/// The values of a field that are meant, one bit each.
type Set = u64;

/// Days that an expression means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CronDays {
    days: Set,
    months: Set,
    week_days: Set,
}

/// When an expression fires: its days, its times of a day, and whether it means every hour.
pub(super) fn parse(expression: &str) -> Result<(Days, Vec<NaiveTime>, bool), String> {
    let parts: Vec<&str> = expression.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!(
            "`{expression}` has {} fields; five are needed: minute, hour, day of the month, month, day of the week",
            parts.len()
        ));
    }
    let mut sets = [0; 5];
    for ((set, field), part) in sets.iter_mut().zip(&FIELDS).zip(parts) {
        *set = field.set(part).ok_or_else(|| {
            format!("`{part}` is not a {}: {} to {}, `*`, `a-b`, `*/n`", field.name, field.least, field.most)
        })?;
    }
    let [minutes, hours, days, months, week_days] = sets;
    // Both 0 and 7 are Sunday.
    let week_days = (week_days | week_days >> 7) & 0x7f;
    let times = values(hours).flat_map(|hour| values(minutes).filter_map(move |m| NaiveTime::from_hms_opt(hour, m, 0)));
    Ok((Days::Cron(CronDays { days, months, week_days }), times.collect(), hours.count_ones() == 24))
}

impl CronDays {
    pub(super) fn hold(&self, date: NaiveDate) -> bool {
        let has = |set: Set, value: u32| set & 1 << value != 0;
        has(self.months, date.month())
            && has(self.days, date.day())
            && has(self.week_days, date.weekday().num_days_from_sunday())
    }
}

fn values(set: Set) -> impl Iterator<Item = u32> {
    (0..64).filter(move |value| set & 1 << value != 0)
}

impl Field {
    fn set(&self, part: &str) -> Option<Set> {
        part.split(',').try_fold(0, |set, item| Some(set | self.item(item)?))
    }

    /// `*`, a value or a range, each with or without a step.
    fn item(&self, item: &str) -> Option<Set> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(number(step).filter(|step| *step > 0)?)),
            None => (item, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (self.least, self.most),
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            None => {
                let from = self.value(range)?;
                (from, if step.is_some() { self.most } else { from })
            }
        };
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        (from <= to).then(|| (from..=to).step_by(step).fold(0, |set, value| set | 1 << value))
    }

    fn value(&self, text: &str) -> Option<u32> {
        let word = text.to_ascii_lowercase();
        if word.len() >= 3
            && let Some(at) = self.words.iter().position(|known| known.starts_with(&word))
        {
            return u32::try_from(at).ok().map(|at| at + self.least);
        }
        number(text).filter(|n| (self.least..=self.most).contains(n))
    }
}

fn number(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_fields_within_their_bounds_pass_and_nothing_else() {
        for (good, times) in [
            ("0 * * * *", 24),
            ("*/15 9-17 * * MON-FRI", 36),
            ("0,30 0 1 jan *", 2),
            ("5/10 0 31 12 7", 6),
            ("0 0 ? * 1", 1),
            ("0 0 * February Sunday", 1),
        ] {
            assert_eq!(parse(good).map(|(_, all, _)| all.len()), Ok(times), "{good}");
        }
        for (bad, names) in [
            ("", "five are needed"),
            ("* * * *", "4 fields"),
            ("60 * * * *", "minute"),
            ("0 24 * * *", "hour"),
            ("0 0 0 * *", "day of the month"),
            ("0 0 1 13 *", "month"),
            ("0 0 1 1 8", "day of the week"),
            ("5-1 * * * *", "minute"),
            ("*/0 * * * *", "minute"),
            ("a * * * *", "minute"),
            ("+1 * * * *", "minute"),
            ("0 0 * ma *", "month"),
            ("0 * * * * *", "6 fields"),
        ] {
            let why = parse(bad).expect_err(bad);
            assert!(why.contains(names), "{bad}: {why}");
        }
    }

    #[test]
    fn a_day_satisfies_all_three_of_its_fields() {
        let (days, ..) = parse("0 0 13 * fri").unwrap();
        let Days::Cron(days) = days else { panic!("it is a cron expression") };
        let day = |month| NaiveDate::from_ymd_opt(2026, month, 13).unwrap();
        let fridays: Vec<u32> = (1..=12).filter(|month| days.hold(day(*month))).collect();
        assert_eq!(fridays, [2, 3, 11], "the thirteenths of 2026 that are Fridays");
    }
}
