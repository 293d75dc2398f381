//! Cron expressions: five fields, minute to day of the week.
//!
//! Invariant: what passes here can be asked for its next time; nothing else is kept.

/// A field's name, least and greatest value, and the words that stand for values.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    words: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, words: &[] },
    Field { name: "hour", least: 0, most: 23, words: &[] },
    Field { name: "day of the month", least: 1, most: 31, words: &[] },
    Field { name: "month", least: 1, most: 12, words: MONTHS },
    Field { name: "day of the week", least: 0, most: 7, words: DAYS },
];

/// Why an expression is not one, in words that name the field.
pub fn check(expression: &str) -> Result<(), String> {
    let parts: Vec<&str> = expression.split_whitespace().collect();
    if parts.len() != FIELDS.len() {
        return Err(format!(
            "`{expression}` has {} fields; five are needed: minute, hour, day of the month, month, day of the week",
            parts.len()
        ));
    }
    for (field, part) in FIELDS.iter().zip(parts) {
        if !part.split(',').all(|item| field.holds(item)) {
            return Err(format!(
                "`{part}` is not a {}: {} to {}, `*`, `a-b`, `*/n`",
                field.name, field.least, field.most
            ));
        }
    }
    Ok(())
}

impl Field {
    fn holds(&self, item: &str) -> bool {
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        if step.is_some_and(|step| !step.parse::<u32>().is_ok_and(|n| n > 0)) {
            return false;
        }
        if range == "*" || range == "?" {
            return true;
        }
        match range.split_once('-') {
            Some((from, to)) => match (self.value(from), self.value(to)) {
                (Some(from), Some(to)) => from <= to,
                _ => false,
            },
            None => self.value(range).is_some(),
        }
    }

    fn value(&self, text: &str) -> Option<u32> {
        if let Some(at) = self.words.iter().position(|word| word.eq_ignore_ascii_case(text)) {
            return u32::try_from(at).ok().map(|at| at + self.least);
        }
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.parse().ok().filter(|n| digits && (self.least..=self.most).contains(n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_fields_within_their_bounds_pass_and_nothing_else() {
        for good in ["0 * * * *", "*/15 9-17 * * MON-FRI", "0,30 0 1 jan *", "5/10 0 31 12 7", "0 0 ? * 1"] {
            assert_eq!(check(good), Ok(()), "{good}");
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
            ("0 * * * * *", "6 fields"),
        ] {
            let why = check(bad).expect_err(bad);
            assert!(why.contains(names), "{bad}: {why}");
        }
    }
}
