//! Where a key path such as `inputs.data.mode` stands in a file.

use crate::spec::yaml::{Key, Node, Raw};

/// Line and column of the value at `path`, or of the nearest thing around it that the file has.
pub(super) fn place_of(root: &Node, path: &str) -> Option<(usize, usize)> {
    match &root.value {
        Raw::Map(entries) => entries.iter().find_map(|(key, node)| in_entry(key, node, path)),
        Raw::List(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            let node = items.get(index.parse::<usize>().ok()?)?;
            Some(place_of(node, rest.strip_prefix('.').unwrap_or(rest)).unwrap_or((node.line, node.column)))
        }
        _ => None,
    }
}

/// Keys may hold dots themselves, so a path is matched key by key and not split.
fn in_entry(key: &Key, node: &Node, path: &str) -> Option<(usize, usize)> {
    let rest = path.strip_prefix(key.text.as_str())?;
    let here = match &node.value {
        Raw::Map(_) | Raw::List(_) | Raw::Null => (key.line, key.column),
        _ => (node.line, node.column),
    };
    match rest.as_bytes().first() {
        None => Some(here),
        Some(b'.') => Some(place_of(node, &rest[1..]).unwrap_or(here)),
        Some(b'[') => Some(place_of(node, rest).unwrap_or(here)),
        Some(_) => None,
    }
}
