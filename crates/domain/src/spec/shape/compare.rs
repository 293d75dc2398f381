//! A file against the table: unknown keys, wrong types and missing keys, each at its place.
//!
//! The result is the file's value with everything right in it and everything wrong left out, so that the
//! checks that follow see as much of the file as can be read, and all mistakes come out at once.

mod scalars;
mod values;

use super::{Key, Kind, Noun, Object, Unknown, Variant, nearest, suggest::is_slip};
use crate::spec::{
    Mistake,
    yaml::{self, Node, Raw, clip},
};
use scalars::{boolean, is_binding, number};
use serde_json::{Map, Value};

/// Compares a file's tree with its noun's table. Mistakes carry no file name.
pub(crate) fn compare(noun: Noun, root: &Node) -> (Value, Vec<Mistake>) {
    let mut compare = Compare { mistakes: Vec::new(), bindings: false };
    let (map, _) = compare.object(root, noun.object(), "");
    (Value::Object(map), compare.mistakes)
}

struct Compare {
    mistakes: Vec<Mistake>,
    /// Inside a step, where any value may be bound to one of the pipeline's.
    bindings: bool,
}

impl Compare {
    /// The valid part of a map, and whether every required key is in it.
    fn object(&mut self, node: &Node, object: &'static Object, path: &str) -> (Map<String, Value>, bool) {
        let entries = match &node.value {
            Raw::Map(entries) => entries.as_slice(),
            Raw::Null => &[],
            _ => {
                self.wrong_type(node, path, "a map of keys");
                return (Map::new(), false);
            }
        };
        let marked =
            || object.marks.iter().find(|(key, _)| node.get(key).is_some()).map(|(_, word)| (*word).to_owned());
        let word = node.get("type").and_then(Node::scalar_text).map(str::to_lowercase).or_else(marked);
        let mut map = Map::new();
        for (key, value) in entries {
            let path = join(path, &key.text);
            match object.keys_for(word.as_deref()).find(|known| known.name == key.text) {
                None if is_kept(&key.text, object, node) => {
                    map.insert(key.text.clone(), value.to_json());
                }
                None => self.unknown(key, object, word.as_deref(), path),
                Some(Key { kind: Kind::Shown, .. }) => {}
                // A key with nothing after it is an absent key.
                Some(_) if value.value == Raw::Null => {}
                Some(known) => {
                    if let Some(value) = self.value(value, &known.kind, &path) {
                        map.insert(key.text.clone(), value);
                    }
                }
            }
        }
        let complete = self.missing(node, object, word.as_deref(), path, &map);
        (map, complete)
    }

    /// The value as its kind, or `None` after reporting why not.
    fn value(&mut self, node: &Node, kind: &'static Kind, path: &str) -> Option<Value> {
        let value = match (kind, &node.value) {
            (_, _) if self.bindings && is_binding(node) => return Some(node.to_json()),
            (Kind::Any | Kind::Shown, _) => Some(node.to_json()),
            (Kind::Number, _) => number(node).map(Value::Number),
            (Kind::Reference { to, version }, _) => return self.reference(node, to, *version, path),
            (Kind::Text, Raw::Text { text, .. }) => Some(Value::from(text.as_str())),
            (Kind::Label, _) => node.scalar_text().map(Value::from),
            (Kind::Scalar, Raw::List(_) | Raw::Map(_) | Raw::Null) => None,
            (Kind::Scalar, _) => Some(node.to_json()),
            (Kind::Int { min, max }, _) => return self.integer(node, kind, (*min, *max), path),
            (Kind::Bool, _) => boolean(node).map(Value::Bool),
            (Kind::Words(words), _) => return self.word(node, words, path),
            (Kind::Labels, Raw::Map(_)) => return Some(self.labels(node, path)),
            (Kind::Arguments, _) => return self.arguments(node, path),
            (Kind::Map, Raw::Map(_)) => Some(node.to_json()),
            (Kind::Object(object), Raw::Map(_)) => {
                let outside = self.bindings;
                self.bindings |= std::ptr::eq(*object, Noun::step());
                let (map, complete) = self.object(node, object, path);
                self.bindings = outside;
                return complete.then_some(Value::Object(map));
            }
            (Kind::MapOf(kind), Raw::Map(entries)) => return Some(self.map_of(entries, kind, path)),
            (Kind::List(kind), Raw::List(items)) => {
                let each = items.iter().enumerate();
                return Some(each.filter_map(|(i, item)| self.value(item, kind, &format!("{path}[{i}]"))).collect());
            }
            (Kind::Either(kinds), _) => match kinds.iter().find(|kind| fits(kind, node)) {
                Some(kind) => return self.value(node, kind, path),
                None => None,
            },
            _ => None,
        };
        if value.is_none() {
            self.wrong_type(node, path, &kind.in_words());
        }
        value
    }

    /// A wrong entry leaves its name behind, so that references to it are not mistakes of their own.
    fn map_of(&mut self, entries: &[(yaml::Key, Node)], kind: &'static Kind, path: &str) -> Value {
        let mut map = Map::new();
        for (key, value) in entries {
            let path = join(path, &key.text);
            let found = match (kind, &value.value) {
                (_, Raw::Null) if may_be_empty(kind) => None,
                (_, Raw::Null) => {
                    self.say(value, &path, "it has no value".to_owned(), "give it one, or remove it");
                    None
                }
                _ => self.value(value, kind, &path),
            };
            let stand_in = || {
                if matches!(kind, Kind::Object(_)) || may_be_empty(kind) {
                    Value::Object(Map::new())
                } else {
                    Value::from("")
                }
            };
            map.insert(key.text.clone(), found.unwrap_or_else(stand_in));
        }
        Value::Object(map)
    }

    /// Reports required keys that are absent; `true` when all are there.
    fn missing(
        &mut self,
        node: &Node,
        object: &'static Object,
        word: Option<&str>,
        path: &str,
        map: &Map<String, Value>,
    ) -> bool {
        let variant = object.variant(word);
        let wanted = object.keys.iter().chain(variant.into_iter().flat_map(|v| v.keys)).filter(|key| key.required);
        let mut complete = true;
        for key in wanted.filter(|key| !map.contains_key(key.name)) {
            complete = false;
            if node.get(key.name).is_none_or(|value| value.value == Raw::Null) {
                let message = match variant {
                    Some(v) if word.is_some() && v.keys.iter().any(|k| k.name == key.name) => {
                        format!("`type: {}` needs `{}`", v.word, key.name)
                    }
                    _ => format!("`{}` is required", key.name),
                };
                self.say(
                    node,
                    &join(path, key.name),
                    message,
                    &format!("add `{}:` with {}", key.name, key.kind.in_words()),
                );
            }
        }
        complete
    }

    fn unknown(&mut self, key: &yaml::Key, object: &'static Object, word: Option<&str>, path: String) {
        let shown = clip(&key.text);
        let known = || object.keys_for(word).filter(|k| !matches!(k.kind, Kind::Shown));
        let has = |v: &&Variant| !v.word.is_empty() && v.keys.iter().any(|k| k.name == key.text);
        let elsewhere = object.variants.iter().find(has);
        let word = word.or(object.otherwise).filter(|word| !word.is_empty());
        let under =
            known().find(|k| matches!(k.kind, Kind::Object(child) if child.keys.iter().any(|c| c.name == key.text)));
        let (message, fix) = if let (Some(variant), Some(word)) = (elsewhere, word) {
            (format!("`{shown}` is not a key of `type: {word}`"), format!("it belongs to `type: {}`", variant.word))
        } else if let Some(Key { name, .. }) = under {
            (format!("unknown key `{shown}` here"), format!("move it under `{name}`"))
        } else if let Some(name) = nearest(&key.text, known().map(|k| k.name)) {
            (format!("unknown key `{shown}`; did you mean `{name}`?"), format!("write `{name}`, or remove it"))
        } else {
            let names: Vec<_> = known().map(|k| k.name).filter(|name| *name != "$schema").collect();
            (format!("unknown key `{shown}`"), format!("known here: {}", names.join(", ")))
        };
        let (line, column) = (key.line, key.column);
        self.mistakes.push(Mistake { line, column, ..Mistake::new(path, message, fix) });
    }

    fn wrong_type(&mut self, node: &Node, path: &str, expected: &str) {
        let found =
            if is_secret(path) && node.scalar_text().is_some() { "something else".to_owned() } else { node.in_words() };
        let fix = match &node.value {
            Raw::Int { .. } | Raw::Float { .. } | Raw::Bool { .. } if expected == "text" => "put it in quotes",
            Raw::Null => "give it a value, or remove it",
            _ => "change the value",
        };
        self.say(node, path, format!("expected {expected}, found {found}"), fix);
    }

    fn say(&mut self, node: &Node, path: &str, message: String, fix: &str) {
        self.mistakes.push(Mistake { line: node.line, column: node.column, ..Mistake::new(path, message, fix) });
    }
}

pub(crate) fn join(path: &str, key: &str) -> String {
    let key = clip(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Whether a name with nothing after it stands for the defaults.
pub(super) fn may_be_empty(kind: &Kind) -> bool {
    match kind {
        Kind::Object(object) => object.keys.iter().all(|key| !key.required),
        // Text binds an output; where a value is expected, nothing is no value.
        Kind::Either([Kind::Text, rest @ ..]) => rest.iter().any(may_be_empty),
        _ => false,
    }
}

/// Whether a key that the table does not have is kept.
fn is_kept(key: &str, object: &Object, node: &Node) -> bool {
    match object.unknown {
        Unknown::Refused => false,
        Unknown::Kept => true,
        Unknown::KeptBeside(others) => {
            let beside = others.is_empty() || others.iter().any(|other| node.get(other).is_some());
            beside && !is_slip(key, object.all_keys().map(|k| k.name))
        }
    }
}

/// Whether the value has the kind's form: scalar, map or list.
fn fits(kind: &Kind, node: &Node) -> bool {
    match (kind, &node.value) {
        (Kind::Labels | Kind::Map | Kind::Object(_) | Kind::MapOf(_), Raw::Map(_)) => true,
        (Kind::List(_) | Kind::Arguments, Raw::List(_)) => true,
        (Kind::Labels | Kind::Map | Kind::Object(_) | Kind::MapOf(_) | Kind::List(_), _) => false,
        (Kind::Any | Kind::Shown, _) => true,
        (Kind::Either(kinds), _) => kinds.iter().any(|kind| fits(kind, node)),
        _ => node.scalar_text().is_some(),
    }
}

/// A value under such a key never stands in a message.
fn is_secret(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    path.starts_with("credentials.") || ["password", "secret", "token", "key"].iter().any(|word| last.contains(word))
}
