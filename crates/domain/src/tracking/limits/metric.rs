//! One logged metric: from what JSON may hold to a point.
//!
//! Numbers arrive as numbers or in text, and what JSON has no number for as `"NaN"`, `"Infinity"` and
//! `"-Infinity"`. Reading them keeps what was sent, so a refusal can show it.

use super::names::{Place, invalid, metric_key};
use crate::tracking::{Bad, Point};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde_json::Value;
use std::fmt;

/// A field that should hold a number, as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    Integer(i64),
    Float(f64),
    Text(String),
    /// Not a number in any spelling: a boolean, a list, an object.
    Other(Value),
}

impl Number {
    /// The number as a float, when it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(whole) => Some(*whole as f64),
            Self::Float(float) => Some(*float),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Other(_) => None,
        }
    }

    /// The number as a whole, when it is one: `5`, `5.0` and `"5"` are.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Integer(whole) => Some(*whole),
            Self::Float(float) => whole(*float),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Other(_) => None,
        }
    }

    fn shown(&self) -> Value {
        match self {
            Self::Integer(whole) => (*whole).into(),
            Self::Float(float) => (*float).into(),
            Self::Text(text) => text.as_str().into(),
            Self::Other(value) => value.clone(),
        }
    }
}

/// A whole metric: its key, its value, when (milliseconds, not before 1970) and at which step; no step is step 0.
pub fn metric(
    key: &str,
    value: Option<&Number>,
    timestamp: Option<&Number>,
    step: Option<&Number>,
    place: Place,
) -> Result<Point, Bad> {
    metric_key(key, place)?;
    let value = metric_value(value, timestamp, place)?;
    let about = |what: &str| format!("metric '{key}' (value={value:?}). {what}");
    let timestamp = timestamp.ok_or_else(|| Bad::missing(&place.field("timestamp")))?;
    let timestamp_ms = timestamp.as_i64().filter(|at| *at >= 0).ok_or_else(|| {
        let reason = about("Timestamp must be a nonnegative long (64-bit integer) ");
        invalid(&place.field("timestamp"), timestamp.shown(), &reason)
    })?;
    let step = match step {
        None => 0,
        Some(step) => step.as_i64().ok_or_else(|| {
            let reason = about("Step must be a valid long (64-bit integer).");
            invalid(&place.field("step"), step.shown(), &reason)
        })?,
    };
    Ok(Point { timestamp_ms, step, value })
}

/// A metric's value: any double, the three that are not numbers included.
pub fn metric_value(value: Option<&Number>, timestamp: Option<&Number>, place: Place) -> Result<f64, Bad> {
    let value = value.ok_or_else(|| Bad::missing(&place.field("value")))?;
    value.as_f64().ok_or_else(|| {
        let at = timestamp.map_or(Value::Null, Number::shown);
        let reason = format!("(timestamp={at}). Please specify value as a valid double (64-bit floating point)");
        invalid(&place.field("value"), value.shown(), &reason)
    })
}

/// A field that must be a whole number; `None` stays `None`.
pub fn integer(value: Option<&Number>, path: &str) -> Result<Option<i64>, Bad> {
    let Some(value) = value else { return Ok(None) };
    value.as_i64().map(Some).ok_or_else(|| invalid(path, value.shown(), "Expected a 64-bit integer."))
}

/// A value as searches and comparisons hold it, and whether it is not a number: clients read an
/// infinity back as the largest double, and see a value that is not a number ordered like zero.
pub fn stored(value: f64) -> (f64, bool) {
    if value.is_nan() { (0.0, true) } else { (value.clamp(f64::MIN, f64::MAX), false) }
}

/// The whole number a float is, if it fits. Past 2^63 a float has no such whole.
fn whole(float: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    (float.fract() == 0.0 && (-END..END).contains(&float)).then_some(float as i64)
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Number, E> {
        Ok(Number::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Number, E> {
        Ok(i64::try_from(value).map_or(Number::Float(value as f64), Number::Integer))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Number, E> {
        Ok(Number::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Number, E> {
        Ok(Number::Text(value.to_owned()))
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Number, E> {
        Ok(Number::Other(value.into()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Number, E> {
        Ok(Number::Other(Value::Null))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Number, A::Error> {
        Value::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(Number::Other)
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Number, A::Error> {
        Value::deserialize(de::value::MapAccessDeserializer::new(map)).map(Number::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(json: &str) -> Number {
        serde_json::from_str(json).unwrap()
    }

    fn check(value: &str, timestamp: &str, step: &str) -> Result<Point, String> {
        let (value, timestamp, step) = (number(value), number(timestamp), number(step));
        metric("k", Some(&value), Some(&timestamp), Some(&step), Place::Item("metrics", 3)).map_err(|bad| bad.message)
    }

    #[test]
    fn a_value_may_be_written_in_every_way_clients_write_it() {
        let cases = [
            ("1", 1.0),
            ("-0.5", -0.5),
            ("\"0.25\"", 0.25),
            ("1e400", f64::INFINITY),
            ("\"Infinity\"", f64::INFINITY),
            ("\"-Infinity\"", f64::NEG_INFINITY),
            ("18446744073709551615", 18_446_744_073_709_551_615.0),
        ];
        for (text, expect) in cases {
            match serde_json::from_str::<Number>(text) {
                Ok(value) => assert_eq!(metric_value(Some(&value), None, Place::Top), Ok(expect), "{text}"),
                Err(_) => assert_eq!(text, "1e400", "only a number beyond doubles is not read"),
            }
        }
        assert!(metric_value(Some(&number("\"NaN\"")), None, Place::Top).unwrap().is_nan());
    }

    #[test]
    fn a_refused_metric_names_its_place_and_what_was_sent() {
        let value = "Please specify value as a valid double (64-bit floating point)";
        let cases = [
            (("\"x\"", "1", "0"), format!("Invalid value \"x\" for parameter 'metrics[3].value' supplied: (timestamp=1). {value}")),
            (("true", "1", "0"), format!("Invalid value true for parameter 'metrics[3].value' supplied: (timestamp=1). {value}")),
            (
                ("1", "-1", "0"),
                "Invalid value -1 for parameter 'metrics[3].timestamp' supplied: metric 'k' (value=1.0). Timestamp must be a \
                 nonnegative long (64-bit integer) "
                    .to_owned(),
            ),
            (
                ("1", "1", "1.5"),
                "Invalid value 1.5 for parameter 'metrics[3].step' supplied: metric 'k' (value=1.0). Step must be a valid long \
                 (64-bit integer)."
                    .to_owned(),
            ),
        ];
        for ((value, timestamp, step), expect) in cases {
            assert_eq!(check(value, timestamp, step), Err(expect));
        }
        for bad in ["[1]", "{\"a\":1}", "null", "false", "\"\"", "\"1,5\""] {
            assert!(check(bad, "1", "0").is_err(), "value {bad}");
            assert!(check("1", bad, "0").is_err(), "timestamp {bad}");
            assert!(check("1", "1", bad).is_err(), "step {bad}");
        }
        let bad = metric("k", None, None, None, Place::Top).unwrap_err();
        assert_eq!(bad.message, "Missing value for required parameter 'value'.");
    }

    #[test]
    fn whole_numbers_may_be_negative_steps_text_or_floats_without_fraction() {
        let expect = Point { timestamp_ms: 1_700_000_000_000, step: -7, value: 2.0 };
        assert_eq!(check("2", "\"1700000000000\"", "-7"), Ok(expect));
        assert_eq!(check("2.0", "1.7e12", "-7.0"), Ok(expect));
        assert!(check("1", "9.3e18", "0").is_err());
        let number = number("\"9223372036854775807\"");
        assert_eq!(integer(Some(&number), "end_time"), Ok(Some(i64::MAX)));
        assert_eq!(integer(None, "end_time"), Ok(None));
    }

    #[test]
    fn what_is_no_number_is_stored_apart_and_infinities_as_the_largest_double() {
        let cases = [
            (0.5, (0.5, false)),
            (f64::INFINITY, (1.7976931348623157e308, false)),
            (f64::NEG_INFINITY, (-1.7976931348623157e308, false)),
            (f64::NAN, (0.0, true)),
        ];
        for (value, expect) in cases {
            assert_eq!(stored(value), expect);
        }
    }
}
