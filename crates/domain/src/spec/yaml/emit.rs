//! YAML for `-o yaml`: block style, quotes only where a reader would otherwise see something else.
//!
//! Invariant: reading the text again gives the same value, here and in PyYAML.

use super::{Raw, resolve};
use serde_json::Value;

/// Writes a value as one YAML document that ends with a line break.
pub fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match is_block(value) {
        true => block(&mut out, value, 0),
        false => {
            inline(&mut out, value, 0);
            out.push('\n');
        }
    }
    out
}

/// Whether the value takes lines of its own.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                pad(out, indent);
                text(out, key, None);
                out.push(':');
                after_key(out, value, indent);
            }
        }
        Value::Array(items) => {
            for item in items {
                pad(out, indent);
                out.push_str("- ");
                after_dash(out, item, indent + 2);
            }
        }
        _ => inline(out, value, indent),
    }
}

fn after_key(out: &mut String, value: &Value, indent: usize) {
    if is_block(value) {
        out.push('\n');
        // Lists stand under their key without indentation, as PyYAML writes them.
        block(out, value, if value.is_array() { indent } else { indent + 2 });
        return;
    }
    out.push(' ');
    inline(out, value, indent + 2);
    out.push('\n');
}

fn after_dash(out: &mut String, item: &Value, indent: usize) {
    if !is_block(item) {
        inline(out, item, indent);
        out.push('\n');
        return;
    }
    let mut lines = String::new();
    block(&mut lines, item, indent);
    out.push_str(&lines[indent..]);
}

fn inline(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&exact(number)),
        Value::String(value) => text(out, value, Some(indent)),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// A number with its point: PyYAML reads `1e-05` as text but `1.0e-05` as a number.
fn exact(number: &serde_json::Number) -> String {
    let text = number.to_string();
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let mantissa = if mantissa.contains('.') { mantissa.to_owned() } else { format!("{mantissa}.0") };
            let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
            format!("{mantissa}e{sign}{exponent}")
        }
        None => text,
    }
}

/// Writes text plainly, as a literal block at `indent`, or in quotes. Keys give no indent and get no block.
fn text(out: &mut String, text: &str, indent: Option<usize>) {
    match indent {
        Some(indent) if is_literal(text) => literal(out, text, indent),
        _ if is_plain(text) => out.push_str(text),
        _ if text.chars().any(|c| c.is_control() || needs_escape(c)) => double_quoted(out, text),
        _ => {
            out.push('\'');
            out.push_str(&text.replace('\'', "''"));
            out.push('\'');
        }
    }
}

fn is_literal(text: &str) -> bool {
    text.trim_end_matches('\n').contains('\n')
        && !text.starts_with([' ', '\t', '\n'])
        && text.chars().all(|c| c == '\n' || c == '\t' || !(c.is_control() || needs_escape(c)))
}

fn literal(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    out.push_str(match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(out, indent.max(2));
            out.push_str(line);
        }
    }
    out.extend(std::iter::repeat_n('\n', (text.len() - body.len()).saturating_sub(1)));
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "=", "<<"];
    let numberish = |c: char| c.is_ascii_hexdigit() || "+-.:_xoT Z".contains(c);
    let starts_badly = text.starts_with(|c: char| " -?:,[]{}#&*!|>'\"%@`".contains(c));
    let like_a_number =
        text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) && text.chars().all(numberish);
    matches!(resolve(text), Raw::Text { .. })
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && !starts_badly
        && !like_a_number
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.eq_ignore_ascii_case(".inf")
        && !text.eq_ignore_ascii_case(".nan")
        && !text.starts_with("...")
        && !text.chars().any(|c| c.is_control() || needs_escape(c))
}

/// Line breaks and marks that readers treat specially.
fn needs_escape(c: char) -> bool {
    matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn double_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || needs_escape(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}
