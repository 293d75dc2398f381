//! Instants and ISO 8601 durations.
//!
//! Invariant: an instant is milliseconds since 1970 in UTC; it is turned into text only at the door.

use chrono::{DateTime, NaiveDateTime, SecondsFormat};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// ISO 8601 with an offset, as the resource API shows times.
    pub fn iso(self) -> String {
        match DateTime::from_timestamp_millis(self.0) {
            Some(at) => at.to_rfc3339_opts(SecondsFormat::Millis, false),
            None => "1970-01-01T00:00:00.000+00:00".to_owned(),
        }
    }

    /// Reads ISO 8601 with an offset.
    pub fn parse_iso(text: &str) -> Option<Timestamp> {
        DateTime::parse_from_rfc3339(text).ok().map(|at| Timestamp(at.timestamp_millis()))
    }

    /// The time an HTTP `Last-Modified` header carries.
    pub fn http_date(self) -> String {
        DateTime::from_timestamp_millis(self.0).unwrap_or_default().format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// Reads what [`Timestamp::http_date`] writes.
    pub fn from_http_date(text: &str) -> Option<Timestamp> {
        let at = NaiveDateTime::parse_from_str(text.trim(), "%a, %d %b %Y %H:%M:%S GMT").ok()?;
        Some(Timestamp(at.and_utc().timestamp_millis()))
    }

    /// The instant so long before this one.
    pub fn before(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0 - earlier.0).unwrap_or(0))
    }
}

/// Reads `PT10M`, `P1DT2H`, `PT0.5S`. Years and months have no fixed length and are refused.
pub fn parse_iso_duration(text: &str) -> Option<Duration> {
    let rest = text.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((date, time)) if !time.is_empty() => (date, time),
        Some(_) => return None,
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let seconds = sum_parts(date, &[('W', 604_800.0), ('D', 86_400.0)])?
        + sum_parts(time, &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)])?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// `PT90S` as the wire wants it: seconds, with a fraction only where there is one.
pub fn iso_duration(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("PT{}S", duration.as_secs()),
        millis => format!("PT{}.{millis:03}S", duration.as_secs()),
    }
}

/// A duration as people read it: `850 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`.
pub fn humane(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        s if s < 60 => format!("{:.1} s", duration.as_secs_f64()),
        s if s < 3_600 => format!("{} min {} s", s / 60, s % 60),
        s if s < 86_400 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        s => format!("{} d {} h", s / 86_400, s % 86_400 / 3_600),
    }
}

fn sum_parts(text: &str, units: &[(char, f64)]) -> Option<f64> {
    let mut rest = text;
    let mut sum = 0.0;
    for (unit, seconds) in units {
        if let Some((number, after)) = rest.split_once(*unit) {
            sum += number.parse::<f64>().ok().filter(|n| *n >= 0.0)? * seconds;
            rest = after;
        }
    }
    rest.is_empty().then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_iso_8601_says() {
        for (text, seconds) in [("PT10M", 600.0), ("P1DT2H", 93_600.0), ("PT0.5S", 0.5), ("P1W", 604_800.0)] {
            assert_eq!(parse_iso_duration(text), Some(Duration::from_secs_f64(seconds)), "{text}");
        }
        for bad in ["", "P", "PT", "10", "PT5X", "PT-1S", "P1M", "PTS"] {
            assert_eq!(parse_iso_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_date_of_a_header_reads_as_it_was_written() {
        let at = Timestamp(1_700_000_000_000);
        assert_eq!(Timestamp::from_http_date(&at.http_date()), Some(at));
        assert_eq!(Timestamp::from_http_date("yesterday"), None);
    }

    #[test]
    fn an_instant_shows_its_offset() {
        assert_eq!(Timestamp(0).iso(), "1970-01-01T00:00:00.000+00:00");
        assert_eq!(Timestamp::parse_iso("1970-01-01T01:00:01+01:00"), Some(Timestamp(1000)));
        assert_eq!(Timestamp::parse_iso("1970-01-01T01:00:01"), None, "without an offset it is no instant");
    }
}
