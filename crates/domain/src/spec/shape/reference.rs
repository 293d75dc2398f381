//! The table as a page people read.

use super::{Key, Kind, Noun, Object};
use std::fmt::Write;

/// The Markdown reference of a noun's file: one table per map, outermost first.
pub fn reference(noun: Noun) -> String {
    let mut out = format!("# The `{noun}` file\n");
    let mut queue = vec![noun.object()];
    let mut next = 0;
    while let Some(object) = queue.get(next).copied() {
        section(&mut out, object, next == 0);
        for child in children(object) {
            if !queue.iter().any(|seen| std::ptr::eq(*seen, child)) {
                queue.push(child);
            }
        }
        next += 1;
    }
    out
}

fn section(out: &mut String, object: &Object, first: bool) {
    if !first {
        write!(out, "\n## {}\n", capitalised(object.name)).expect("writing to a string cannot fail");
    }
    write!(out, "\n{}\n", object.doc).expect("writing to a string cannot fail");
    table(out, object.keys);
    for variant in object.variants {
        let title =
            if variant.word.is_empty() { "Without `type`".to_owned() } else { format!("`type: {}`", variant.word) };
        write!(out, "\n### {title}\n\n{}\n", variant.doc).expect("writing to a string cannot fail");
        if !variant.keys.is_empty() {
            table(out, variant.keys);
        }
    }
}

fn table(out: &mut String, keys: &[Key]) {
    out.push_str("\n| Key | Type | Default | Meaning |\n|---|---|---|---|\n");
    for key in keys {
        let default = match (key.required, key.default) {
            (true, _) => "required".to_owned(),
            (false, "") => String::new(),
            (false, default) => format!("`{default}`"),
        };
        let cells = format!("| `{}` | {} | {default} | {} |\n", key.name, linked(&key.kind), key.doc);
        out.push_str(&cells);
    }
}

/// The kind in words, with a link where it has a table of its own.
fn linked(kind: &Kind) -> String {
    match kind {
        Kind::Object(object) => format!("[{}](#{})", object.name, anchor(object.name)),
        Kind::MapOf(kind) => format!("map of {}", linked(kind)),
        Kind::List(kind) => format!("list of {}", linked(kind)),
        Kind::Either(kinds) => kinds.iter().map(linked).collect::<Vec<_>>().join(", or "),
        other => other.in_words(),
    }
}

fn children(object: &Object) -> Vec<&'static Object> {
    let mut found = Vec::new();
    object.all_keys().for_each(|key| objects(&key.kind, &mut found));
    found
}

fn objects(kind: &Kind, found: &mut Vec<&'static Object>) {
    match kind {
        Kind::Object(object) => found.push(object),
        Kind::MapOf(kind) | Kind::List(kind) => objects(kind, found),
        Kind::Either(kinds) => kinds.iter().for_each(|kind| objects(kind, found)),
        _ => {}
    }
}

fn anchor(name: &str) -> String {
    name.chars().filter(|c| *c != ',').map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

fn capitalised(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|c| c.to_uppercase().collect::<String>() + chars.as_str()).unwrap_or_default()
}
