//! Tables for people. A line never wraps: where the terminal is narrow the widest column that may be cut is cut.
//!
//! Invariant: names are never cut, because people copy them.

use serde_json::Value;

/// A column of a list.
pub(crate) struct Column {
    head: &'static str,
    read: fn(&Value) -> String,
    /// May lose its end on a narrow terminal.
    cut: bool,
}

impl Column {
    pub(crate) const fn new(head: &'static str, read: fn(&Value) -> String) -> Column {
        Column { head, read, cut: true }
    }

    pub(crate) const fn whole(self) -> Column {
        Column { cut: false, ..self }
    }
}

/// Items under the columns given.
pub(super) fn table(items: &[Value], columns: &[Column], width: Option<usize>) -> String {
    if items.is_empty() {
        return String::new();
    }
    let mut rows = vec![columns.iter().map(|column| column.head.to_owned()).collect()];
    rows.extend(items.iter().map(|item| columns.iter().map(|column| line((column.read)(item))).collect()));
    let cut: Vec<bool> = columns.iter().map(|column| column.cut).collect();
    lay_out(&rows, &cut, width)
}

/// Cells as they are, the first row their heads.
pub(super) fn grid(rows: &[Vec<String>], width: Option<usize>) -> String {
    let Some(heads) = rows.first() else { return String::new() };
    lay_out(rows, &vec![true; heads.len()], width)
}

/// What a query gave: maps become rows under their keys, lists rows under numbers, scalars lines.
pub(super) fn any(value: &Value, width: Option<usize>) -> String {
    let items = match value {
        Value::Null => return String::new(),
        Value::Array(items) => items.as_slice(),
        Value::Object(_) => return facts(value),
        scalar => return shown(scalar) + "\n",
    };
    let mut heads: Vec<String> = Vec::new();
    for item in items {
        match item {
            Value::Object(map) => {
                let new: Vec<String> = map.keys().filter(|key| !heads.contains(key)).cloned().collect();
                heads.extend(new);
            }
            Value::Array(cells) => {
                for at in heads.len()..cells.len() {
                    heads.push(format!("Column{}", at + 1));
                }
            }
            _ => {}
        }
    }
    if heads.is_empty() {
        return items.iter().map(|item| shown(item) + "\n").collect();
    }
    let mut rows: Vec<Vec<String>> = vec![heads.iter().map(|head| head.to_uppercase()).collect()];
    for item in items {
        rows.push(heads.iter().enumerate().map(|(at, head)| line(shown(field(item, at, head)))).collect());
    }
    lay_out(&rows, &vec![true; heads.len()], width)
}

/// One thing as lines of `name  value`; maps one level down are shown as `tags.a`.
pub(super) fn facts(value: &Value) -> String {
    let Value::Object(map) = value else { return any(value, None) };
    let mut lines: Vec<(String, String)> = Vec::new();
    for (key, value) in map {
        match value {
            Value::Object(inner) => {
                lines.extend(inner.iter().map(|(name, value)| (format!("{key}.{name}"), brief(value))));
            }
            Value::Array(items) if items.is_empty() => {}
            Value::Null => {}
            other => lines.push((key.clone(), brief(other))),
        }
    }
    let wide = lines.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    let line = |(key, value): &(String, String)| {
        let value = value.trim_end().replace('\n', &format!("\n{}", " ".repeat(wide + 2)));
        format!("{key:<wide$}  {value}\n")
    };
    lines.iter().filter(|(_, value)| !value.is_empty()).map(line).collect()
}

/// Columns that a text takes on a terminal; wide scripts and pictures take two.
pub(super) fn columns_of(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// The text, or its beginning and `…` where it is longer than `columns`.
pub(super) fn fit(text: &str, columns: usize) -> String {
    if columns_of(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += width_of(c);
        if used > columns {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

fn lay_out(rows: &[Vec<String>], cut: &[bool], width: Option<usize>) -> String {
    const GAP: usize = 2;
    let widest = |at: usize| rows.iter().map(|row| columns_of(&row[at])).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..cut.len()).map(widest).collect();
    let floor: Vec<usize> = (0..cut.len()).map(|at| columns_of(&rows[0][at]).max(8)).collect();
    while width.is_some_and(|width| widths.iter().sum::<usize>() + GAP * (widths.len() - 1) > width) {
        let longest = (0..widths.len()).filter(|at| cut[*at] && widths[*at] > floor[*at]).max_by_key(|at| widths[*at]);
        match longest {
            Some(at) => widths[at] -= 1,
            None => break,
        }
    }
    let mut out = String::new();
    for row in rows {
        let mut shown = String::new();
        for (at, cell) in row.iter().enumerate() {
            let cell = fit(cell, widths[at]);
            let pad = widths[at].saturating_sub(columns_of(&cell)) + GAP;
            shown.push_str(&cell);
            shown.push_str(&" ".repeat(pad));
        }
        out.push_str(shown.trim_end());
        out.push('\n');
    }
    out
}

fn field<'v>(item: &'v Value, at: usize, head: &str) -> &'v Value {
    match item {
        Value::Object(map) => map.get(head),
        Value::Array(cells) => cells.get(at),
        other if at == 0 => Some(other),
        _ => None,
    }
    .unwrap_or(&Value::Null)
}

/// A value on one line.
fn line(text: String) -> String {
    match text.contains(|c: char| c.is_control()) {
        true => text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        false => text,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn brief(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => String::new(),
        Value::Array(items) if items.iter().all(|item| !item.is_object() && !item.is_array()) => {
            items.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
        other => shown(other),
    }
}

fn width_of(c: char) -> usize {
    match c as u32 {
        0x0300..=0x036F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F900..=0x1F9FF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use serde_json::json;

    const COLUMNS: &[Column] = &[
        Column::new("NAME", |item| shown(&item["name"])).whole(),
        Column::new("STATUS", |item| shown(&item["status"])),
        Column::new("EXPERIMENT", |item| shown(&item["experiment"])),
    ];

    fn check(width: Option<usize>, expect: Expect) {
        let items = [
            json!({"name": "honest_rhubarb_6n9prwc3hn", "status": "Completed", "experiment": "a very long experiment name"}),
            json!({"name": "b", "status": "Running", "experiment": "日本語\nx"}),
        ];
        expect.assert_eq(&table(&items, COLUMNS, width));
    }

    #[test]
    fn a_wide_terminal_shows_everything() {
        check(
            None,
            expect![[r#"
                NAME                       STATUS     EXPERIMENT
                honest_rhubarb_6n9prwc3hn  Completed  a very long experiment name
                b                          Running    日本語 x
            "#]],
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_the_longest_but_never_a_name() {
        check(
            Some(50),
            expect![[r#"
                NAME                       STATUS     EXPERIMENT
                honest_rhubarb_6n9prwc3hn  Completed  a very long…
                b                          Running    日本語 x
            "#]],
        );
    }

    #[test]
    fn one_thing_is_a_list_of_facts() {
        let value =
            json!({"name": "a", "tags": {"k": "v"}, "none": null, "empty": {}, "list": [1, 2], "text": "one\ntwo\n"});
        expect![[r#"
            name    a
            tags.k  v
            list    1, 2
            text    one
                    two
        "#]]
        .assert_eq(&facts(&value));
    }

    #[test]
    fn what_a_query_gives_has_its_keys_as_heads() {
        let value = json!([{"n": "a", "s": 1}, {"n": "b"}]);
        assert_eq!(any(&value, None), "N  S\na  1\nb\n");
        assert_eq!(any(&json!(["a", "b"]), None), "a\nb\n");
        assert_eq!(any(&json!([["a", 1]]), None), "COLUMN1  COLUMN2\na        1\n");
    }
}
