//! Rules that several nouns share: names, versions, references, tags.

use crate::{
    names::{AssetName, BadName, ComputeName, Version},
    spec::{Mistake, yaml::clip},
};
use std::collections::BTreeMap;

/// Mistakes of one spec, by key path.
#[derive(Default)]
pub(super) struct Found(pub(super) Vec<Mistake>);

const MAX_TAGS: usize = 200;
const MAX_TAG_NAME: usize = 255;
const MAX_TAG_VALUE: usize = 8192;

impl Found {
    pub(super) fn say(&mut self, key: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Mistake::new(key, message, fix));
    }

    /// A name by its noun's rule; a placeholder of a template is called one.
    pub(super) fn name<T>(&mut self, key: &str, text: &str, parse: impl Fn(&str) -> Result<T, BadName>) {
        if is_placeholder(text) {
            self.say(key, format!("`{}` is a placeholder", clip(text)), "put the real name in its place");
        } else if let Err(bad) = parse(text) {
            self.say(key, bad.to_string(), "choose a name that follows the rule");
        }
    }

    pub(super) fn asset(&mut self, name: Option<&str>, version: Option<&str>) {
        if let Some(name) = name {
            self.name("name", name, AssetName::parse);
        }
        if let Some(version) = version {
            self.name("version", version, Version::parse);
        }
    }

    /// `name`, `azureml:name`, or a resource id that ends in the name.
    pub(super) fn compute(&mut self, key: &str, text: &str) {
        let name = match text.starts_with('/') || text.starts_with("azureml://") {
            true => text.trim_end_matches('/').rsplit('/').next().unwrap_or(text),
            false => text.strip_prefix("azureml:").unwrap_or(text),
        };
        self.name(key, name, ComputeName::parse);
    }

    /// A text that must not be blank.
    pub(super) fn filled(&mut self, key: &str, text: Option<&str>, what: &str) {
        if text.is_some_and(|text| text.trim().is_empty()) {
            self.say(key, format!("{what} is empty"), "give it a value, or remove the key");
        }
    }

    pub(super) fn labels(&mut self, key: &str, labels: &BTreeMap<String, String>) {
        if labels.len() > MAX_TAGS {
            self.say(key, format!("{} entries are too many: the limit is {MAX_TAGS}", labels.len()), "keep fewer");
        }
        for (name, value) in labels {
            let at = format!("{key}.{}", clip(name));
            if name.trim().is_empty() || name.len() > MAX_TAG_NAME {
                self.say(&at, format!("a name here has 1 to {MAX_TAG_NAME} bytes"), "change the name");
            }
            if value.len() > MAX_TAG_VALUE {
                let message = format!("the value has {} bytes, and the limit is {MAX_TAG_VALUE}", value.len());
                self.say(&at, message, "shorten it, or keep it in a file");
            }
        }
    }

    /// Names as the operating system takes them.
    pub(super) fn variables(&mut self, key: &str, variables: &BTreeMap<String, String>) {
        for (name, value) in variables {
            if name.is_empty() || name.contains(['=', '\0', '\n']) {
                let message = "a variable's name cannot be empty or hold `=`, a line break or a NUL";
                self.say(format!("{key}.{}", clip(name)), message, "change the name");
            } else if value.contains('\0') {
                self.say(format!("{key}.{}", clip(name)), "the value holds a NUL character", "remove it");
            }
        }
    }
}

/// Whether this is what a template leaves to be filled in: `<your name here>`.
pub(crate) fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('<') && text.ends_with('>') || text.contains("{{") && text.contains("}}")
}

/// Splits `name:version` and `name@label`.
pub(super) fn split_version(text: &str) -> (&str, Option<&str>) {
    match text.find([':', '@']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// `a`, `b` and so on, for messages; says so when there are none.
pub(super) fn listed<'n>(names: impl Iterator<Item = &'n String>) -> String {
    let shown: Vec<_> = names.take(20).map(|name| format!("`{}`", clip(name))).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}
