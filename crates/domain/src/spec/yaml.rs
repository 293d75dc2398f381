//! YAML as users write it: a raw tree in which every value remembers its line and column.
//!
//! The tree is the first of the two readings of a file; what the keys mean is decided later. Scalars
//! follow what people expect from PyYAML: `true` and `false` are booleans, `yes` and `on` stay text,
//! numbers keep the text they were written as. Invariants: a tree is at most [`MAX_DEPTH`] deep and holds
//! at most [`MAX_NODES`] values however its aliases multiply, so walking it can neither overflow the stack
//! nor run for long; and no map in it has the same key twice.

mod build;
mod emit;
mod mend;
mod plain;
mod scalar;

use super::Mistake;
pub use emit::to_yaml;
pub(crate) use scalar::resolve;
use serde_json::Value;

/// Larger texts are refused before they are read.
pub const MAX_BYTES: usize = 4 << 20;
/// The most values in one file, counted after aliases are expanded.
pub const MAX_NODES: usize = 100_000;
/// The deepest nesting of lists and maps.
pub const MAX_DEPTH: usize = 100;

/// A value and where it stands. Lines and columns count from 1; 0 means it came from no file.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub line: usize,
    pub column: usize,
    pub value: Raw,
}

/// A map's key and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    pub text: String,
    pub line: usize,
    pub column: usize,
}

/// What was written. `source` is the scalar's own text, so that `20.04` can still become `"20.04"`.
#[derive(Debug, Clone, PartialEq)]
pub enum Raw {
    Null,
    Bool { value: bool, source: String },
    Int { value: i64, source: String },
    Float { value: f64, source: String },
    Text { text: String, quoted: bool },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// Reads one document. Mistakes carry `file`, line and column; a syntax error ends the reading, while
/// repeated keys and the like are collected.
pub fn parse(file: &str, text: &str) -> Result<Node, Vec<Mistake>> {
    let placed = |line, column, message: String, fix: &str| {
        vec![Mistake { file: file.to_owned(), line, column, ..Mistake::new("", message, fix) }]
    };
    if text.len() > MAX_BYTES {
        let size = text.len().div_ceil(1 << 20);
        let message = format!("the file is too large: {size} MiB, and the limit is {} MiB", MAX_BYTES >> 20);
        return Err(placed(0, 0, message, "put data into files of its own and refer to them by path"));
    }
    if let Some(at) = text.find('\0') {
        let line = text[..at].matches('\n').count() + 1;
        return Err(placed(line, 1, "the file holds a NUL character".to_owned(), "save it as plain UTF-8 text"));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match build::build(file, text)? {
        Some(Node { value: Raw::Null, .. }) | None => {
            Err(placed(1, 1, "the file is empty".to_owned(), "write the keys of the spec into it"))
        }
        Some(node) => Ok(node),
    }
}

impl Node {
    /// A value that no file holds, such as one given with `--set`.
    pub fn unplaced(value: Raw) -> Node {
        Node { line: 0, column: 0, value }
    }

    /// The value under `key`, where this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Raw::Map(entries) => entries.iter().find(|(k, _)| k.text == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The text of a scalar as it was written; `None` for null, lists and maps.
    pub fn scalar_text(&self) -> Option<&str> {
        match &self.value {
            Raw::Bool { source, .. } | Raw::Int { source, .. } | Raw::Float { source, .. } => Some(source),
            Raw::Text { text, .. } => Some(text),
            Raw::Null | Raw::List(_) | Raw::Map(_) => None,
        }
    }

    /// The same value without its places.
    pub fn to_json(&self) -> Value {
        match &self.value {
            Raw::Null => Value::Null,
            Raw::Bool { value, .. } => Value::Bool(*value),
            Raw::Int { value, .. } => Value::from(*value),
            Raw::Float { value, source } => {
                serde_json::Number::from_f64(*value).map_or_else(|| Value::from(source.as_str()), Value::Number)
            }
            Raw::Text { text, .. } => Value::from(text.as_str()),
            Raw::List(items) => items.iter().map(Node::to_json).collect(),
            Raw::Map(entries) => entries.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect(),
        }
    }

    /// The value in a few words, for messages.
    pub fn in_words(&self) -> String {
        match &self.value {
            Raw::Null => "nothing".to_owned(),
            Raw::Bool { source, .. } => format!("`{source}`"),
            Raw::Int { source, .. } | Raw::Float { source, .. } => format!("the number `{}`", clip(source)),
            Raw::Text { text, .. } => format!("the text `{}`", clip(text)),
            Raw::List(_) => "a list".to_owned(),
            Raw::Map(_) => "a map".to_owned(),
        }
    }
}

/// Long or odd text, made fit to stand in a message.
pub(crate) fn clip(text: &str) -> String {
    let clean: String = text.chars().take(400).map(|c| if c.is_control() { ' ' } else { c }).collect();
    match clean.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &clean[..at]),
        None => clean,
    }
}

#[cfg(test)]
mod tests;
