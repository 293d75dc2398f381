//! `--set a.b=c`: changes to a file's tree before it is checked.

use crate::spec::{
    Mistake,
    yaml::{self, Key, Node, Raw, clip},
};

/// Applies each override in order; the ones that cannot be applied come back as mistakes.
pub(super) fn apply(root: &mut Node, sets: &[String]) -> Vec<Mistake> {
    sets.iter().filter_map(|set| apply_one(root, set).err().map(|mistake| *mistake)).collect()
}

type Applied<T> = Result<T, Box<Mistake>>;

fn apply_one(root: &mut Node, set: &str) -> Applied<()> {
    let Some((path, value)) = set.split_once('=') else {
        return Err(refused(set, "a value is missing", "write `--set key=value`"));
    };
    let steps: Vec<&str> = path.split('.').map(str::trim).collect();
    if steps.iter().any(|step| step.is_empty()) || steps.len() > 20 {
        return Err(refused(path, "the path has an empty or too deep part", "write `--set a.b=value`"));
    }
    let mut node = root;
    for (depth, step) in steps.iter().enumerate() {
        node = step_into(node, step, path, &steps[..depth])?;
    }
    *node = Node::unplaced(parsed(path, value)?);
    Ok(())
}

/// The value under `step`, made if it is not there yet.
fn step_into<'n>(node: &'n mut Node, step: &str, path: &str, before: &[&str]) -> Applied<&'n mut Node> {
    if node.value == Raw::Null {
        node.value = Raw::Map(Vec::new());
    }
    let found = node.in_words();
    match &mut node.value {
        Raw::Map(entries) => {
            let at = entries.iter().position(|(key, _)| key.text == step).unwrap_or_else(|| {
                let key = Key { text: step.to_owned(), line: 0, column: 0 };
                entries.push((key, Node::unplaced(Raw::Null)));
                entries.len() - 1
            });
            Ok(&mut entries[at].1)
        }
        Raw::List(items) => {
            let length = items.len();
            let item = step.parse().ok().and_then(|index: usize| items.get_mut(index));
            let message =
                || format!("`{}` is a list of {length}, and `{}` is none of its indices", before.join("."), clip(step));
            item.ok_or_else(|| refused(path, message(), "give the index of an item, from 0"))
        }
        _ => {
            let message = format!("`{}` is {found}, so nothing can be set inside it", before.join("."));
            Err(refused(path, message, "set the whole value instead"))
        }
    }
}

/// A scalar as YAML reads it; `{...}` and `[...]` are read as YAML too.
fn parsed(path: &str, value: &str) -> Applied<Raw> {
    let trimmed = value.trim();
    if trimmed.is_empty() {
        return Ok(Raw::Text { text: String::new(), quoted: true });
    }
    if !trimmed.starts_with(['{', '[', '"', '\'']) {
        return Ok(yaml::resolve(trimmed));
    }
    match yaml::parse("", trimmed) {
        Ok(node) => Ok(unplaced(node).value),
        // Text such as `[draft] first try` is not YAML, and need not be.
        Err(_) if !trimmed.ends_with(['}', ']', '"', '\'']) => {
            Ok(Raw::Text { text: trimmed.to_owned(), quoted: false })
        }
        Err(mistakes) => {
            let why = mistakes.first().map(|m| m.message.clone()).unwrap_or_default();
            Err(refused(path, format!("the value cannot be read: {why}"), "check its quotes and brackets"))
        }
    }
}

/// Lines of an override are not lines of the file.
fn unplaced(node: Node) -> Node {
    Node::unplaced(match node.value {
        Raw::List(items) => Raw::List(items.into_iter().map(unplaced).collect()),
        Raw::Map(entries) => {
            let entry = |(key, node)| (Key { line: 0, column: 0, ..key }, unplaced(node));
            Raw::Map(entries.into_iter().map(entry).collect())
        }
        other => other,
    })
}

fn refused(path: &str, message: impl Into<String>, fix: &str) -> Box<Mistake> {
    Box::new(Mistake::new(format!("--set {}", clip(path)), message, fix))
}
