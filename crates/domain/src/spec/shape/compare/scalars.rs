//! Single values: booleans, numbers, references, arguments.

use crate::spec::yaml::{Node, Raw};

pub(super) fn boolean(node: &Node) -> Option<bool> {
    match (&node.value, node.scalar_text().map(str::to_ascii_lowercase).as_deref()) {
        (Raw::Bool { value, .. }, _) => Some(*value),
        (_, Some("true" | "yes" | "on")) => Some(true),
        (_, Some("false" | "no" | "off")) => Some(false),
        _ => None,
    }
}

/// A number, also one that YAML leaves as text, such as `1e-5`.
pub(super) fn number(node: &Node) -> Option<serde_json::Number> {
    match &node.value {
        Raw::Int { value, .. } => Some((*value).into()),
        Raw::Float { value, .. } => serde_json::Number::from_f64(*value),
        Raw::Text { text, .. } => text.trim().parse().ok().and_then(serde_json::Number::from_f64),
        _ => None,
    }
}

/// Whether the text is, or holds, a binding to something of the pipeline around it.
pub(super) fn is_binding(node: &Node) -> bool {
    match &node.value {
        Raw::Text { text, .. } => text.find("${{").is_some_and(|at| text[at..].contains("}}")),
        _ => false,
    }
}

/// Whether the text refers to something registered. With `version`, the name alone is not enough.
pub(super) fn is_reference(text: &str, version: bool) -> bool {
    let Some(rest) = text.strip_prefix("azureml:") else { return text.starts_with("/subscriptions/") };
    let two_parts = |sep: char| rest.split_once(sep).is_some_and(|(name, tail)| !name.is_empty() && !tail.is_empty());
    match rest.starts_with('/') {
        true => rest.len() > 2,
        false => !rest.is_empty() && (!version || two_parts(':') || two_parts('@')),
    }
}

/// Splits at blanks outside quotes; `None` when a quote stays open.
pub(super) fn shell_words(text: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
