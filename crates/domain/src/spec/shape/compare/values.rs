//! Single values that need words of their own when they are wrong.

use super::{
    super::{Kind, nearest, suggest::folded},
    Compare, join,
    scalars::{is_reference, shell_words},
};
use crate::spec::{
    check::is_placeholder,
    yaml::{Node, Raw, clip},
};
use serde_json::{Map, Value};

impl Compare {
    pub(super) fn reference(&mut self, node: &Node, to: &str, version: bool, path: &str) -> Option<Value> {
        let Some(text) = node.scalar_text() else {
            self.wrong_type(node, path, &Kind::Reference { to: "", version }.in_words());
            return None;
        };
        let local = text.strip_prefix("file:").is_some_and(|file| !file.is_empty());
        if is_reference(text, version) || local || to == "computes" && folded(text) == "serverless" {
            return Some(Value::from(text));
        }
        if is_placeholder(text) {
            self.say(node, path, format!("`{}` is a placeholder", clip(text)), "put the real name in its place");
            return None;
        }
        let message = match text.starts_with("azureml:") {
            true => format!("`{}` names none of the {to}: a version or label is missing", clip(text)),
            false => format!("`{}` names none of the {to}", clip(text)),
        };
        let fix =
            if version { "write `azureml:name:version` or `azureml:name@latest`" } else { "write `azureml:name`" };
        self.say(node, path, message, fix);
        None
    }

    pub(super) fn integer(&mut self, node: &Node, kind: &Kind, (min, max): (i64, i64), path: &str) -> Option<Value> {
        let number = match &node.value {
            Raw::Int { value, .. } => Some(*value),
            Raw::Text { text, .. } => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if (min..=max).contains(&number) => return Some(Value::from(number)),
            Some(number) => {
                let bound = if number < min { format!("at least {min}") } else { format!("at most {max}") };
                self.say(node, path, format!("{number} is out of range: it must be {bound}"), "change the number");
            }
            None => self.wrong_type(node, path, &kind.in_words()),
        }
        None
    }

    pub(super) fn word(&mut self, node: &Node, words: &'static [&'static str], path: &str) -> Option<Value> {
        let Some(text) = node.scalar_text() else {
            self.wrong_type(node, path, &Kind::Words(words).in_words());
            return None;
        };
        if let Some(word) = words.iter().find(|word| folded(word) == folded(text)) {
            return Some(Value::from(*word));
        }
        let fix = match nearest(text, words.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("use {}", Kind::Words(words).in_words()),
        };
        self.say(node, path, format!("`{}` is not one of {}", clip(text), Kind::Words(words).in_words()), &fix);
        None
    }

    pub(super) fn labels(&mut self, node: &Node, path: &str) -> Value {
        let Raw::Map(entries) = &node.value else { return Value::Null };
        let mut map = Map::new();
        for (key, value) in entries {
            match (&value.value, value.scalar_text()) {
                (_, Some(text)) => {
                    map.insert(key.text.clone(), Value::from(text));
                }
                (Raw::Null, None) => {
                    map.insert(key.text.clone(), Value::from(""));
                }
                _ => self.wrong_type(value, &join(path, &key.text), "text"),
            }
        }
        Value::Object(map)
    }

    pub(super) fn arguments(&mut self, node: &Node, path: &str) -> Option<Value> {
        match &node.value {
            Raw::Text { text, .. } => match shell_words(text) {
                Some(words) => return Some(words.into()),
                None => self.say(node, path, "a quote is opened and never closed".to_owned(), "close the quote"),
            },
            Raw::List(items) => {
                let each = items.iter().enumerate();
                return Some(
                    each.filter_map(|(i, item)| self.value(item, &Kind::Label, &format!("{path}[{i}]"))).collect(),
                );
            }
            _ => self.wrong_type(node, path, &Kind::Arguments.in_words()),
        }
        None
    }
}
