//! What flows into steps: values, files, and what other steps make.

use super::{Known, Made, Scope, Turn, Weaver, unknown};
use api::arm::{
    pipeline::read::{self, Binding, Given, Port},
    tree::{entries, some},
};
use domain::spec::{expression, shape::nearest};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What an input is fed with.
#[derive(Debug, Clone)]
pub(super) enum Feed {
    Literal(String),
    /// An input in the words of jobs.
    Data(Map<String, Value>),
    /// What a step makes, and how the input wants it.
    Made(Made, Option<String>),
    /// What it would be depends on a mistake that was noted.
    Unknown,
}

impl Weaver<'_, '_> {
    /// What each input that a node names is fed with. One bound to something without a value is left out.
    pub(super) fn fed(
        &mut self,
        scope: &Scope<'_>,
        known: &Known,
        node: &Value,
        turn: &Turn,
    ) -> BTreeMap<String, Feed> {
        let mut fed = BTreeMap::new();
        for (name, value) in entries(some(node, "inputs").unwrap_or(&Value::Null)) {
            let Some((given, mode)) = read::given(value) else { continue };
            let key = format!("jobs.{}.inputs.{name}", turn.path);
            let feed = match given {
                Given::Literal(text) => self.text(scope, &key, text).map(Feed::Literal),
                Given::Data(data) => Some(Feed::Data(data)),
                Given::Bound(binding) => self.bound(scope, known, &key, &binding),
            };
            if let Some(feed) = feed {
                fed.insert(name.clone(), in_mode(feed, mode));
            }
        }
        fed.extend(turn.given.clone());
        fed
    }

    /// A text with the pipeline's values in it.
    fn text(&mut self, scope: &Scope<'_>, key: &str, text: String) -> Option<String> {
        if !text.contains("${{parent.") {
            return Some(text);
        }
        let value = |reference: &expression::Reference| {
            let shown = reference.to_string();
            let Binding::Input(name) = read::binding(&shown)? else { return None };
            match scope.inputs.get(&name)? {
                Feed::Literal(text) => Some(text.clone()),
                _ => None,
            }
        };
        match expression::expand(&text, &value) {
            Ok(text) => Some(text),
            Err(error) => {
                let fix = "only values can stand in the middle of a text; bind files by themselves";
                self.lookup.mistake(key, error.to_string(), fix);
                None
            }
        }
    }

    /// What a binding leads to; `None` where it has no value.
    pub(super) fn bound(&mut self, scope: &Scope<'_>, known: &Known, key: &str, binding: &Binding) -> Option<Feed> {
        match binding {
            // An input of the pipeline without a value leaves the step's own default.
            Binding::Input(name) => scope.inputs.get(name).cloned(),
            Binding::InputOf { step, name } => known.fed.get(step).and_then(|fed| fed.get(name)).cloned(),
            Binding::OutputOf { step, name } => {
                let Some(made) = known.made.get(step) else {
                    if !scope.nodes.contains_key(step) {
                        let near = nearest(step, scope.nodes.keys().map(String::as_str));
                        let fix = near.map_or_else(
                            || "name one that there is".to_owned(),
                            |near| format!("did you mean `{near}`?"),
                        );
                        self.lookup.mistake(key, format!("there is no step `{step}`"), fix);
                    }
                    return Some(Feed::Unknown);
                };
                match made.get(name) {
                    Some(made) => Some(Feed::Made(made.clone(), None)),
                    None if made.is_empty() => Some(Feed::Unknown),
                    None => {
                        let names: Vec<&str> = made.keys().map(String::as_str).collect();
                        let message = format!("step `{step}` has no output `{name}` (it has: {})", names.join(", "));
                        self.lookup.mistake(key, message, "name one of these");
                        Some(Feed::Unknown)
                    }
                }
            }
            Binding::Output(name) => {
                self.lookup.mistake(
                    key,
                    format!("`{name}` is an output, and this is an input"),
                    "bind an input or a step's output",
                );
                Some(Feed::Unknown)
            }
            Binding::Step(step) => {
                self.lookup.mistake(key, format!("step `{step}` is not a value"), "name one of its outputs");
                Some(Feed::Unknown)
            }
        }
    }

    /// The inputs of a component: what they are fed with or their defaults, each of a fitting type.
    pub(super) fn checked(
        &mut self,
        path: &str,
        component: &Value,
        mut given: BTreeMap<String, Feed>,
        key: &str,
    ) -> BTreeMap<String, Feed> {
        let ports = read::ports(component, "inputs");
        let of = if path.is_empty() {
            "the pipeline component".to_owned()
        } else {
            format!("the component of step `{path}`")
        };
        for name in unknown(given.keys(), &ports) {
            // Clients send what a component does not ask for, and Azure lets them; a slip of the pen is another thing.
            if let Some(near) = nearest(name, ports.keys().map(String::as_str)) {
                let message = format!("{of} has no input `{name}`");
                self.lookup.mistake(format!("{key}.{name}"), message, format!("did you mean `{near}`?"));
            }
        }
        let mut fed = BTreeMap::new();
        for (name, port) in &ports {
            let key = format!("{key}.{name}");
            let feed = given.remove(name).or_else(|| port.default.clone().map(Feed::Literal));
            match feed {
                Some(feed) => {
                    let feed = self.fitting(&key, port, feed);
                    fed.insert(name.clone(), feed);
                }
                None if port.optional => {}
                None => {
                    self.lookup.mistake(key, format!("{of} needs a value for `{name}`"), "give it one");
                    fed.insert(name.clone(), Feed::Unknown);
                }
            }
        }
        fed
    }

    /// What was fed, if its type fits.
    fn fitting(&mut self, key: &str, port: &Port, feed: Feed) -> Feed {
        let wrong = match (&feed, port.is_literal()) {
            (Feed::Literal(text), true) => misfit(port, text),
            (Feed::Literal(text), false) => {
                Some(format!("`{text}` is a value, and the input is of type `{}`", port.kind))
            }
            (Feed::Data(data), true) => {
                Some(format!("the input is of type `{}` and cannot be a `{}`", port.kind, kind_of(data)))
            }
            (Feed::Made(made, _), true) if !read::is_literal(&made.kind) => {
                Some(format!("the input is of type `{}` and cannot be a `{}`", port.kind, made.kind))
            }
            (Feed::Made(made, _), _) if !fits(&made.kind, &port.kind) => {
                Some(format!("a `{}` cannot go where a `{}` is wanted", made.kind, port.kind))
            }
            _ => None,
        };
        let Some(message) = wrong else { return feed };
        self.lookup.mistake(key, message, "give it what its component declares");
        Feed::Unknown
    }
}

fn in_mode(feed: Feed, mode: Option<String>) -> Feed {
    match (feed, mode) {
        (Feed::Data(mut data), Some(mode)) => {
            data.insert("mode".to_owned(), json!(mode));
            Feed::Data(data)
        }
        (Feed::Made(made, _), mode @ Some(_)) => Feed::Made(made, mode),
        (feed, _) => feed,
    }
}

fn kind_of(data: &Map<String, Value>) -> &str {
    data.get("jobInputType").and_then(Value::as_str).unwrap_or("uri_folder")
}

/// Whether what a step makes can be what another reads. Folders of every kind are folders; one file is none of them.
fn fits(made: &str, wanted: &str) -> bool {
    let any = |kind: &str| matches!(kind, "path" | "AnyFile" | "AnyDirectory" | "any") || kind.ends_with("_model");
    made == wanted
        || any(made)
        || any(wanted)
        || ((made == "uri_file") == (wanted == "uri_file") && read::is_literal(made) == read::is_literal(wanted))
}

/// What is wrong with a literal of a declared type.
fn misfit(port: &Port, text: &str) -> Option<String> {
    if text.contains("${{") {
        return None;
    }
    let number = text.trim().parse::<f64>().ok();
    let typed = match port.kind.to_ascii_lowercase().as_str() {
        "integer" | "number" | "float" => number.is_some(),
        "boolean" => matches!(text.to_ascii_lowercase().as_str(), "true" | "false"),
        _ => true,
    };
    if !typed {
        return Some(format!("`{text}` is not of type `{}`", port.kind));
    }
    if !port.choices.is_empty() && !port.choices.iter().any(|choice| choice == text) {
        return Some(format!("`{text}` is not one of {}", port.choices.join(", ")));
    }
    let number = number?;
    match (port.min, port.max) {
        (Some(min), _) if number < min => Some(format!("`{text}` is less than {min}")),
        (_, Some(max)) if number > max => Some(format!("`{text}` is more than {max}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_where_files_are_wanted_and_folders_where_folders_are() {
        for (made, wanted, fit) in [
            ("uri_folder", "uri_folder", true),
            ("uri_folder", "mltable", true),
            ("mlflow_model", "uri_folder", true),
            ("uri_file", "uri_folder", false),
            ("uri_folder", "uri_file", false),
            ("uri_file", "custom_model", true),
        ] {
            assert_eq!(fits(made, wanted), fit, "{made} to {wanted}");
        }
    }

    #[test]
    fn literals_keep_to_their_type_and_bounds() {
        let port = |kind: &str| Port { kind: kind.into(), min: Some(1.0), max: Some(3.0), ..Port::default() };
        assert_eq!(misfit(&port("integer"), "2"), None);
        assert!(misfit(&port("integer"), "4").unwrap().contains("more than 3"));
        assert!(misfit(&port("number"), "x").unwrap().contains("not of type"));
        let choice = Port { kind: "string".into(), choices: vec!["a".into()], ..Port::default() };
        assert!(misfit(&choice, "b").unwrap().contains("not one of a"));
    }
}
