//! The formats that programs read: JSON and tab-separated values.

use clap::ValueEnum;
use serde_json::Value;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns that fit the terminal; the default on one
    Table,
    /// The default when stdout is not a terminal
    #[value(alias = "jsonc")]
    Json,
    #[value(alias = "yamlc")]
    Yaml,
    /// Values between tabs, without names
    Tsv,
    /// Nothing
    None,
}

impl Format {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Json => "json",
            Format::Yaml => "yaml",
            Format::Tsv => "tsv",
            Format::None => "none",
        }
    }
}

/// Indented JSON that ends with a line break.
pub(super) fn json(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).expect("a JSON value has text keys");
    text + "\n"
}

/// One line an item. Inside a line a list is its length, a map is empty, null is `None` and booleans are
/// capitalised, as `az` prints them; a result that is null prints nothing.
pub(super) fn tsv(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(row).collect(),
        other => row(other),
    }
}

fn row(item: &Value) -> String {
    let line = match item {
        Value::Object(map) => map.values().map(cell).collect::<Vec<_>>().join("\t"),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join("\t"),
        Value::Bool(value) => value.to_string(),
        other => cell(other),
    };
    line + "\n"
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => items.len().to_string(),
        Value::Object(_) => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tsv_is_as_az_prints_it() {
        for (value, expect) in [
            (json!(null), ""),
            (json!("a b"), "a b\n"),
            (json!(true), "true\n"),
            (json!([]), ""),
            (json!(["x", "y"]), "x\ny\n"),
            (json!([["a", 1, true, null, [1, 2], {"k": 1}]]), "a\t1\tTrue\tNone\t2\t\n"),
            (json!({"n": "x", "s": "Completed"}), "x\tCompleted\n"),
        ] {
            assert_eq!(tsv(&value), expect, "{value}");
        }
    }
}
