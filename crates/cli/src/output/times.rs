//! Instants and durations as people read them.

use domain::{Timestamp, time::humane};
use serde_json::Value;
use std::time::Duration;

/// An instant from the wire: ISO 8601 text, or milliseconds since 1970.
pub(crate) fn instant(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => {
            let at = chrono::DateTime::parse_from_rfc3339(text).ok()?;
            Some(Timestamp(at.timestamp_millis()))
        }
        Value::Number(millis) => millis.as_i64().map(Timestamp),
        _ => None,
    }
}

/// `just now`, `5 min ago`, `3 h ago`, `2 d ago`; the date when it is longer than a month.
pub(crate) fn ago(value: &Value, now: Timestamp) -> String {
    let Some(at) = instant(value) else { return String::new() };
    match now.since(at).as_secs() {
        0..=9 => "just now".to_owned(),
        seconds @ 10..=59 => format!("{seconds} s ago"),
        seconds @ 60..=3_599 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..=86_399 => format!("{} h ago", seconds / 3_600),
        seconds @ 86_400..=2_591_999 => format!("{} d ago", seconds / 86_400),
        _ => at.iso()[..10].to_owned(),
    }
}

/// The time from one instant to the other, or to now.
pub(crate) fn duration_between(start: &Value, end: &Value, now: Timestamp) -> String {
    let Some(start) = instant(start) else { return String::new() };
    let duration: Duration = instant(end).unwrap_or(now).since(start);
    humane(duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ages_are_told_in_one_unit() {
        let now = Timestamp(100 * 86_400_000);
        for (seconds, expect) in
            [(3, "just now"), (59, "59 s ago"), (125, "2 min ago"), (7_300, "2 h ago"), (90_000, "1 d ago")]
        {
            assert_eq!(ago(&json!(now.0 - seconds * 1000), now), expect);
        }
        assert_eq!(ago(&json!("1970-01-01T00:00:00.000+00:00"), now), "1970-01-01");
        assert_eq!(ago(&json!(null), now), "");
    }

    #[test]
    fn a_duration_without_an_end_runs_until_now() {
        assert_eq!(duration_between(&json!(0), &json!(null), Timestamp(4_200)), "4.2 s");
        assert_eq!(duration_between(&json!(0), &json!(90_000), Timestamp(1)), "1 min 30 s");
    }
}
