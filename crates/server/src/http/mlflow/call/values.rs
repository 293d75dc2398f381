//! Values as clients may write them.

use crate::http::mlflow::fault::Fault;
use domain::tracking::{limits::Number, text::shown};
use serde_json::Value;

/// One `{"key": …, "value": …}` of a list.
pub(in crate::http::mlflow) fn pair_of(list: &'static str, at: usize, pair: &Value) -> Result<(String, String), Fault> {
    let text = |field: &str| match pair.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(Fault::mistyped(&format!("{list}[{at}].{field}"), other)),
    };
    if !pair.is_object() {
        return Err(Fault::mistyped(&format!("{list}[{at}]"), pair));
    }
    Ok((text("key")?, text("value")?))
}

/// A whole number as clients may write it. Those past the largest are the largest.
pub(in crate::http::mlflow) fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Bool(flag) => Some((*flag).into()),
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(|float| float as i64)),
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| text.parse::<f64>().ok().filter(|f| f.is_finite()).map(|float| float as i64))
        }
        _ => None,
    }
}

/// A number of a metric as `limits` reads it: a fraction of a time or step loses its rest, a boolean is 0 or 1.
pub(in crate::http::mlflow) fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Null => None,
        Value::Bool(flag) => Some(Number::Integer((*flag).into())),
        Value::Number(number) => Some(match number.as_i64() {
            Some(whole) => Number::Integer(whole),
            None => Number::Float(number.as_f64().unwrap_or(f64::NAN)),
        }),
        Value::String(text) => Some(Number::Text(text.clone())),
        other => Some(Number::Other(other.clone())),
    }
}

/// The same for a time or step, whose every number is a whole one.
pub(in crate::http::mlflow) fn whole_number(value: &Value) -> Option<Number> {
    match (value, whole(value)) {
        (Value::Null, _) => None,
        (_, Some(whole)) => Some(Number::Integer(whole)),
        (other, None) => Some(Number::Other(other.clone())),
    }
}

/// An experiment's id: a number, and one that is not is refused.
pub(in crate::http::mlflow) fn experiment_number(id: &str) -> Result<i64, Fault> {
    id.parse().map_err(|_| Fault::invalid(format!("Invalid experiment id '{}': it must be a number", shown(id))))
}
