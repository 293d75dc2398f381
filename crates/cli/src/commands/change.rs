//! `update`: `--set a=b` and `--remove a` on something that exists.

use crate::{
    args::ChangeArgs,
    failure::{Done, Failure},
};
use serde_json::{Map, Value};

/// A key that may change: its name in files and on the wire.
pub(crate) type Allowed = (&'static str, &'static str);

/// Changes `body`; only the keys allowed, and entries of `tags`.
pub(crate) fn apply(body: &mut Value, change: &ChangeArgs, allowed: &[Allowed]) -> Done {
    if change.set.is_empty() && change.remove.is_empty() {
        return Err(Failure::input("there is nothing to change").hint("name changes as `--set tags.owner=me`"));
    }
    for text in &change.set {
        let Some((key, value)) = text.split_once('=') else {
            return Err(Failure::input(format!("`--set {text}` has no value")).hint("write `--set key=value`"));
        };
        put(body, key.trim(), Some(value), allowed)?;
    }
    for key in &change.remove {
        put(body, key.trim(), None, allowed)?;
    }
    Ok(())
}

/// `name=value` texts as a map.
pub(crate) fn tags(texts: &[String]) -> Done<domain::spec::Tags> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(Failure::input(format!("`{text}` is not a tag")).hint("write tags as `name=value`")),
    };
    texts.iter().map(pair).collect()
}

fn put(body: &mut Value, key: &str, value: Option<&str>, allowed: &[Allowed]) -> Done {
    let value = value.map(|text| Value::String(text.to_owned()));
    if let Some(tag) = key.strip_prefix("tags.").filter(|tag| !tag.is_empty()) {
        if !body["tags"].is_object() {
            body["tags"] = Value::Object(Map::new());
        }
        match (value, body["tags"].as_object_mut()) {
            (Some(value), Some(tags)) => drop(tags.insert(tag.to_owned(), value)),
            (None, Some(tags)) => drop(tags.shift_remove(tag)),
            (_, None) => {}
        }
        return Ok(());
    }
    match allowed.iter().find(|(ours, _)| *ours == key) {
        Some((_, wire)) => {
            body[*wire] = value.unwrap_or(Value::Null);
            Ok(())
        }
        None => {
            let known: Vec<String> = allowed.iter().map(|(ours, _)| format!("`{ours}`")).collect();
            Err(Failure::input(format!("`{key}` cannot be changed"))
                .because(format!("only `tags.NAME`, {} can", known.join(" and ")))
                .hint("create a new version or a new job instead"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ALLOWED: &[Allowed] = &[("description", "description"), ("display_name", "displayName")];

    fn change(set: &[&str], remove: &[&str]) -> Result<Value, String> {
        let mut body = json!({"tags": {"old": "1"}, "command": "x"});
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let change = ChangeArgs { set: owned(set), remove: owned(remove) };
        apply(&mut body, &change, ALLOWED).map(|()| body).map_err(|failure| failure.to_string())
    }

    #[test]
    fn tags_and_words_change_and_nothing_else() {
        let changed = change(&["tags.a.b=c=d", "display_name=x"], &["tags.old"]).unwrap();
        assert_eq!(changed, json!({"tags": {"a.b": "c=d"}, "command": "x", "displayName": "x"}));
        assert!(change(&["command=y"], &[]).unwrap_err().contains("`command` cannot be changed"));
        assert!(change(&["tags.a"], &[]).unwrap_err().contains("has no value"));
        assert!(change(&[], &[]).is_err());
    }
}
