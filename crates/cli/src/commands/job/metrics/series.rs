//! Metrics as they are drawn: the latest value, the range, and the line between.

use crate::output::Column;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Columns of the table.
pub(super) const COLUMNS: &[Column] = &[
    Column::new("METRIC", |item| item["metric"].as_str().unwrap_or_default().to_owned()).whole(),
    Column::new("LATEST", |item| number(&item["latest"])).whole(),
    Column::new("STEP", |item| item["step"].to_string()).whole(),
    Column::new("MIN", |item| number(&item["min"])),
    Column::new("MAX", |item| number(&item["max"])),
    Column::new("LINE", |item| line(&item["points"])),
];

/// How wide a line is drawn, and its heights.
const WIDE: usize = 40;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The most points kept of a metric that goes on and on; older ones are thinned.
const KEPT: usize = 4000;

/// The metrics of a job, by name.
#[derive(Debug, Default)]
pub(super) struct Series(BTreeMap<String, Value>);

impl Series {
    /// What the server shows of all of them.
    pub(super) fn of(shown: &Value) -> Series {
        let metrics = shown["value"].as_array().into_iter().flatten();
        Series(metrics.map(|metric| (metric["key"].as_str().unwrap_or_default().to_owned(), item(metric))).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn items(&self) -> Vec<Value> {
        self.0.values().cloned().collect()
    }

    /// Each metric's latest value, as a line.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0
            .values()
            .map(|item| told(&item["metric"], &json!({"step": item["step"], "value": item["latest"]})))
            .collect()
    }

    /// Adds points that came; each of them as a line.
    pub(super) fn add(&mut self, news: &Value) -> Vec<String> {
        let mut lines = Vec::new();
        for metric in news["value"].as_array().into_iter().flatten() {
            let key = metric["key"].as_str().unwrap_or_default();
            let known = self.0.entry(key.to_owned()).or_insert_with(|| item(&json!({"key": key, "points": []})));
            for point in metric["points"].as_array().into_iter().flatten() {
                append(known, point);
                lines.push(told(&metric["key"], point));
            }
        }
        lines
    }
}

fn item(metric: &Value) -> Value {
    json!({
        "metric": metric["key"], "latest": metric["latest"]["value"], "step": metric["latest"]["step"],
        "timestamp": metric["latest"]["timestamp"], "count": metric["count"], "min": metric["min"], "max": metric["max"],
        "points": metric["points"],
    })
}

fn append(item: &mut Value, point: &Value) {
    let later = item["step"].is_null() || point["step"].as_i64() >= item["step"].as_i64();
    if later {
        (item["latest"], item["step"]) = (point["value"].clone(), point["step"].clone());
        item["timestamp"] = point["timestamp"].clone();
    }
    if let Some(value) = point["value"].as_f64() {
        item["min"] = json!(item["min"].as_f64().map_or(value, |low| low.min(value)));
        item["max"] = json!(item["max"].as_f64().map_or(value, |high| high.max(value)));
    }
    item["count"] = json!(item["count"].as_u64().unwrap_or(0) + 1);
    if let Some(points) = item["points"].as_array_mut() {
        points.push(point.clone());
        if points.len() > KEPT {
            let mut at = 0;
            points.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
    }
}

fn told(key: &Value, point: &Value) -> String {
    format!("{}\t{}\t{}", key.as_str().unwrap_or_default(), point["step"], number(&point["value"]))
}

/// A value in at most six digits; what is no number as its word.
pub(crate) fn number(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(word) => word.clone(),
        other => other.as_f64().map_or_else(|| other.to_string(), six_digits),
    }
}

fn six_digits(value: f64) -> String {
    let size = value.abs();
    if value == value.trunc() && size < 1e9 {
        return format!("{value}");
    }
    if !(1e-4..1e6).contains(&size) {
        return format!("{value:.4e}");
    }
    let digits = 5_usize.saturating_sub(size.log10().floor().max(0.0) as usize);
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The points as a row of blocks, the lowest and the highest at its edges. What is no number is a gap.
fn line(points: &Value) -> String {
    let values: Vec<f64> =
        points.as_array().into_iter().flatten().map(|point| point["value"].as_f64().unwrap_or(f64::NAN)).collect();
    let numbers = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max));
    let wide = values.len().min(WIDE);
    let height = |cell: usize| {
        let some = &values[cell * values.len() / wide..(cell + 1) * values.len() / wide];
        let numbers: Vec<f64> = some.iter().copied().filter(|value| value.is_finite()).collect();
        if numbers.is_empty() {
            return ' ';
        }
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let share = if high > low { (mean - low) / (high - low) } else { 0.5 };
        HEIGHTS[((share * 7.0).round() as usize).min(7)]
    };
    (0..wide).map(height).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[Value]) -> Value {
        values.iter().enumerate().map(|(step, value)| json!({"step": step, "value": value})).collect()
    }

    #[test]
    fn a_line_goes_from_the_lowest_to_the_highest() {
        for (values, expect) in [
            (vec![json!(0), json!(1), json!(2), json!(7)], "▁▂▃█"),
            (vec![json!(3), json!(3)], "▅▅"),
            (vec![json!(0), json!("NaN"), json!(7)], "▁ █"),
            (vec![], ""),
        ] {
            assert_eq!(line(&points(&values)), expect, "{values:?}");
        }
        let long: Vec<Value> = (0..1000).map(|n| json!(n)).collect();
        let drawn = line(&points(&long));
        assert_eq!((drawn.chars().count(), drawn.chars().next(), drawn.chars().last()), (WIDE, Some('▁'), Some('█')));
    }

    #[test]
    fn numbers_are_short_and_words_stay() {
        for (value, expect) in [
            (json!(0.1), "0.1"),
            (json!(1.0 / 3.0), "0.33333"),
            (json!(12), "12"),
            (json!(123456.789), "123457"),
            (json!(1e-9), "1.0000e-9"),
            (json!("NaN"), "NaN"),
            (json!(null), ""),
        ] {
            assert_eq!(number(&value), expect, "{value}");
        }
    }

    #[test]
    fn points_that_come_move_the_latest_and_the_range() {
        let mut series = Series::of(
            &json!({"value": [{"key": "loss", "latest": {"step": 1, "value": 5.0}, "min": 5.0, "max": 5.0, "count": 1, "points": [{"step": 1, "value": 5.0}]}]}),
        );
        let lines = series.add(&json!({"value": [{"key": "loss", "points": [{"step": 2, "value": 2.0}, {"step": 0, "value": 9.0}]}, {"key": "new", "points": [{"step": 0, "value": 1.0}]}]}));
        assert_eq!(lines, ["loss\t2\t2", "loss\t0\t9", "new\t0\t1"]);
        let loss = &series.items()[0];
        assert_eq!(
            (&loss["latest"], &loss["min"], &loss["max"], &loss["count"]),
            (&json!(2.0), &json!(2.0), &json!(9.0), &json!(3))
        );
    }
}
