//! Small tools over values that carry a file's own keys: the raw material of every body in this room.

use super::put;
use serde_json::{Map, Value, json};

/// What stands under `key`; null is as good as nothing.
pub fn some<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    value.get(key).filter(|inner| !inner.is_null())
}

/// Text under `key`, where it is text.
pub fn word<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    some(value, key).and_then(Value::as_str)
}

/// Takes keys over under their wire names.
pub(crate) fn carry(out: &mut Map<String, Value>, from: &Value, keys: &[(&str, &str)]) {
    for (ours, wire) in keys {
        put(out, wire, some(from, ours).cloned());
    }
}

/// A map under `key`, or an empty one.
pub(crate) fn map_or_empty(value: &Value, key: &str) -> Value {
    some(value, key).filter(|inner| inner.is_object()).cloned().unwrap_or_else(|| json!({}))
}

/// A map under `key` whose values are texts, or an empty one.
pub(crate) fn labels(value: &Value, key: &str) -> Value {
    json!(
        entries(some(value, key).unwrap_or(&Value::Null))
            .filter_map(|(name, inner)| Some((name.clone(), json!(python(inner)?))))
            .collect::<Map<_, _>>()
    )
}

/// The entries of a map; of anything else, none.
pub fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The same map with every key in the other case, at every depth.
pub(crate) fn camel_deep(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .filter(|(_, inner)| !inner.is_null())
            .map(|(key, inner)| (super::datastore::camel(key), camel_deep(inner)))
            .collect(),
        Value::Array(items) => items.iter().map(camel_deep).collect(),
        other => other.clone(),
    }
}

/// A scalar as Python writes it: files are written for a client that does so.
pub fn python(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => Some(python_float(float)),
            None => Some(number.to_string()),
        },
        other => super::scalar(other),
    }
}

fn python_float(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{float:e}");
        let (head, power) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = power.strip_prefix('-').map_or(('+', power), |digits| ('-', digits));
        return format!("{head}e{sign}{digits:0>2}");
    }
    format!("{float:?}")
}

/// Seconds as an ISO 8601 duration.
pub(crate) fn iso_seconds(value: &Value) -> Value {
    match value.as_f64() {
        Some(seconds) if seconds >= 0.0 => json!(iso(seconds)),
        _ => value.clone(),
    }
}

/// Milliseconds as an ISO 8601 duration.
pub(crate) fn iso_millis(value: &Value) -> Value {
    match value.as_f64() {
        Some(millis) if millis >= 0.0 => json!(iso(millis / 1000.0)),
        _ => value.clone(),
    }
}

/// Days, hours, minutes and seconds, each only where there are some.
fn iso(seconds: f64) -> String {
    let whole = seconds.trunc();
    let part = seconds - whole;
    let [mut days, mut hours, mut minutes, mut rest] = [0_u64; 4];
    let mut left = whole as u64;
    for (unit, into) in [(86_400, &mut days), (3_600, &mut hours), (60, &mut minutes), (1, &mut rest)] {
        *into = left / unit;
        left %= unit;
    }
    let mut out = String::from("P");
    if days > 0 {
        out.push_str(&format!("{days}D"));
    }
    let fraction = format!("{part:.6}");
    let fraction = fraction.trim_start_matches('0').trim_end_matches('0').trim_end_matches('.');
    if hours + minutes + rest > 0 || !fraction.is_empty() || days == 0 {
        out.push('T');
    }
    for (count, letter) in [(hours, 'H'), (minutes, 'M')] {
        if count > 0 {
            out.push_str(&format!("{count}{letter}"));
        }
    }
    if rest > 0 || !fraction.is_empty() || (days == 0 && hours == 0 && minutes == 0) {
        out.push_str(&format!("{rest}{fraction}S"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        for (value, text) in [
            (json!(1024.0), "1024.0"),
            (json!(3), "3"),
            (json!(0.00001), "1e-05"),
            (json!(0.001), "0.001"),
            (json!(2.5e20), "2.5e+20"),
            (json!(true), "True"),
        ] {
            assert_eq!(python(&value).as_deref(), Some(text));
        }
        assert_eq!(python(&json!([])), None);
    }

    #[test]
    fn durations_name_only_the_units_they_have() {
        for (seconds, text) in [
            (0.1, "PT0.1S"),
            (30.0, "PT30S"),
            (9999.0, "PT2H46M39S"),
            (3600.0, "PT1H"),
            (86_400.0, "P1D"),
            (0.0, "PT0S"),
            (90_000.0, "P1DT1H"),
        ] {
            assert_eq!(iso(seconds), text, "{seconds}");
        }
    }
}
