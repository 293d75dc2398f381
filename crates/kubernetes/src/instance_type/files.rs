//! Files with instance types: one, several documents, or a list.
//!
//! Items of a list need not say what they are, as for `kubectl apply`. Invariant: what comes out is an `InstanceType` each,
//! with a name; whether it makes sense is for the cluster to say.

use domain::spec::{Mistake, yaml};
use serde_json::{Value, json};

const API: &str = "amlarc.azureml.com/v1alpha1";
const KIND: &str = "InstanceType";

/// Every instance type in a file, in order.
pub fn read(file: &str, text: &str) -> Result<Vec<Value>, Vec<Mistake>> {
    let (mut found, mut mistakes) = (Vec::new(), Vec::new());
    for document in documents(text) {
        match yaml::parse(file, &document) {
            Ok(root) => {
                let (line, tree) = (root.line, root.to_json());
                let told = |key: &str, message: String, fix: &str| Mistake {
                    file: file.to_owned(),
                    line,
                    column: 1,
                    ..Mistake::new(key, message, fix)
                };
                match items(tree) {
                    Ok(all) => found.extend(all),
                    Err((key, message, fix)) => mistakes.push(told(key, message, fix)),
                }
            }
            Err(all) => mistakes.extend(all),
        }
    }
    if found.is_empty() && mistakes.is_empty() {
        mistakes.push(Mistake { file: file.to_owned(), ..Mistake::new("", "it holds no instance type", "") });
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

type Bad = (&'static str, String, &'static str);

/// The instance types of one document.
fn items(mut tree: Value) -> Result<Vec<Value>, Bad> {
    let kind = tree["kind"].as_str().unwrap_or_default();
    let is_list = kind == "List" || kind == "InstanceTypeList";
    if !is_list {
        return Ok(vec![one(tree, false)?]);
    }
    let inferred = kind == "InstanceTypeList" && version(&tree)?;
    match tree["items"].take() {
        Value::Array(items) => items.into_iter().map(|item| one(item, inferred)).collect(),
        _ => Err(("items", "a list needs `items`".to_owned(), "write `items:` and one entry for each type")),
    }
}

/// An instance type of its own. Within a typed list it may leave out what it is.
fn one(mut item: Value, inferred: bool) -> Result<Value, Bad> {
    if !item.is_object() {
        return Err(("", "this is not an instance type".to_owned(), "write `kind: InstanceType`"));
    }
    if inferred && item.get("kind").is_none() && item.get("apiVersion").is_none() {
        item["kind"] = json!(KIND);
        item["apiVersion"] = json!(API);
    }
    match item["kind"].as_str() {
        Some(KIND) => {}
        kind => {
            let message = format!("`{}` is not an instance type", kind.unwrap_or_default());
            return Err(("kind", message, "write `kind: InstanceType`; other kinds are for `kubectl apply`"));
        }
    }
    version(&item)?;
    match item["metadata"]["name"].as_str() {
        Some(name) if !name.is_empty() => Ok(item),
        _ => Err(("metadata.name", "an instance type needs a name".to_owned(), "write `metadata: {name: …}`")),
    }
}

fn version(tree: &Value) -> Result<bool, Bad> {
    match tree["apiVersion"].as_str() {
        Some(API) => Ok(true),
        other => {
            let message = format!("`{}` is not the version of instance types", other.unwrap_or_default());
            Err(("apiVersion", message, "write `apiVersion: amlarc.azureml.com/v1alpha1`"))
        }
    }
}

/// The documents of a text. Each begins with as many empty lines as stand before it, so that places stay right.
fn documents(text: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    for (at, line) in text.lines().enumerate() {
        if line == "---" || line.starts_with("--- ") {
            all.push("\n".repeat(at));
        }
        let last = all.last_mut().expect("there is always one");
        last.push_str(line);
        last.push('\n');
    }
    let says_something =
        |document: &String| document.lines().map(str::trim).any(|l| !l.is_empty() && l != "---" && !l.starts_with('#'));
    all.retain(says_something);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "apiVersion: amlarc.azureml.com/v1alpha1\nkind: InstanceType\nmetadata: {name: a}\nspec: {}\n";

    fn names(text: &str) -> Vec<String> {
        let all = read("f.yml", text).unwrap();
        assert!(all.iter().all(|item| item["kind"] == "InstanceType" && item["apiVersion"] == API));
        all.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn one_several_and_lists_are_read() {
        let second = ONE.replace("name: a", "name: b");
        assert_eq!(names(ONE), ["a"]);
        assert_eq!(names(&format!("# sizes\n---\n{ONE}---\n{second}---\n")), ["a", "b"]);
        let list = "apiVersion: amlarc.azureml.com/v1alpha1\nkind: InstanceTypeList\nitems:\n- metadata: {name: a}\n- metadata: {name: b}\n";
        assert_eq!(names(list), ["a", "b"]);
        let indented = ONE.trim_end().replace('\n', "\n  ");
        assert_eq!(names(&format!("apiVersion: v1\nkind: List\nitems:\n- {indented}\n")), ["a"]);
    }

    #[test]
    fn what_is_no_instance_type_is_told_with_its_place() {
        for (text, expect) in [
            ("kind: Pod\napiVersion: v1\n", "f.yml:1:1: `kind`: `Pod` is not an instance type"),
            (&format!("{ONE}---\nkind: InstanceType\napiVersion: v2\n"), "f.yml:6:1: `apiVersion`: `v2` is not"),
            (
                "apiVersion: amlarc.azureml.com/v1alpha1\nkind: InstanceType\n",
                "`metadata.name`: an instance type needs",
            ),
            ("kind: List\nitems: [{metadata: {name: a}}]\n", "`kind`: `` is not an instance type"),
            ("kind: InstanceTypeList\napiVersion: amlarc.azureml.com/v1alpha1\n", "`items`: a list needs `items`"),
            ("- 1\n", "this is not an instance type"),
            ("", "it holds no instance type"),
            ("a: [\n", "f.yml:"),
        ] {
            let mistakes = read("f.yml", text).unwrap_err();
            assert!(mistakes[0].to_string().contains(expect), "{text}: {}", mistakes[0]);
        }
    }
}
