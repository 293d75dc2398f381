//! The tables of keys: what they accept, suggest and document.

use super::*;
use crate::spec::yaml;

fn said(noun: Noun, text: &str) -> Vec<String> {
    let root = yaml::parse("", text).unwrap();
    compare(noun, &root).1.iter().map(|m| m.to_string()).collect()
}

#[test]
fn a_noun_is_known_by_its_word() {
    for noun in Noun::ALL {
        assert_eq!(Noun::parse(noun.as_str()), Some(noun));
    }
    assert_eq!(Noun::parse("pod"), None);
}

#[test]
fn unknown_keys_are_mistakes_with_what_was_meant() {
    for (noun, text, expected) in [
        (Noun::Data, "path: x\npathh: y", "2:1: `pathh`: unknown key `pathh`; did you mean `path`?"),
        (Noun::Data, "path: x\nünïcode: y", "2:1: `ünïcode`: unknown key `ünïcode` (known here: name, version"),
        (
            Noun::Datastore,
            "type: s3\nbucket: b\naccount_name: x",
            "`account_name` is not a key of `type: s3` (it belongs to `type: azure_blob`)",
        ),
        (Noun::Datastore, "type: azure_blob\naccount_name: x", "`type: azure_blob` needs `container_name`"),
        (Noun::Datastore, "type: blob\naccount_name: x", "`blob` is not one of `azure_blob`"),
        (Noun::Compute, "type: amlcompute\nmaxInstances: 3", "did you mean `max_instances`?"),
    ] {
        let got = said(noun, text).join("\n");
        assert!(got.contains(expected), "{text} gave {got}");
    }
}

#[test]
fn a_misplaced_key_is_sent_to_its_place() {
    let got = said(Noun::Job, "command: x\nenvironment: e\ninstance_count: 2\n");
    assert_eq!(got, ["3:1: `instance_count`: unknown key `instance_count` here (move it under `resources`)"]);
}

#[test]
fn wrong_types_are_named_and_placed() {
    for (text, expected) in [
        ("command: 12", "1:10: `command`: expected text, found the number `12` (put it in quotes)"),
        ("command: [a]", "1:10: `command`: expected text, found a list"),
        ("resources: 3", "`resources`: expected a map, found the number `3`"),
        (
            "resources:\n  instance_count: many",
            "2:19: `resources.instance_count`: expected a whole number from 1, found the text `many`",
        ),
        ("resources:\n  instance_count: 0", "0 is out of range: it must be at least 1"),
        ("inputs:\n  a: [1]", "`inputs.a`: expected text, a number or a boolean, or a map, found a list"),
        ("inputs:\n  a:", "2:3: `inputs.a`: it has no value"),
        ("inputs:\n  a: {type: uri_file}", "`inputs.a.path`: `path` is required"),
        ("tags: {a: {b: c}}", "`tags.a`: expected text, found a map"),
        ("environment: [x]", "`environment`: expected text, or a map, found a list"),
        ("outputs: {o: {mode: mount}}", "`outputs.o.mode`: `mount` is not one of `rw_mount`"),
        ("resources: {docker_args: \"--a 'b\"}", "a quote is opened and never closed"),
        ("distribution: {process_count_per_instance: 1}", "`distribution.type`: `type` is required"),
    ] {
        let got = said(Noun::Job, text).join("\n");
        assert!(got.contains(expected), "{text} gave {got}");
    }
}

#[test]
fn secrets_never_stand_in_a_message() {
    let text = "type: azure_blob\naccount_name: a\ncontainer_name: c\ncredentials:\n  account_key: 123456\n";
    let got = said(Noun::Datastore, text).join("\n");
    assert!(got.contains("credentials.account_key") && !got.contains("123456"), "{got}");
}

#[test]
fn values_become_what_their_key_means() {
    let text = "version: 1\npath: x\ntags: {a: 20.040, b: true, c: yes, d: }\ntype: URI_FILE\n";
    let (value, mistakes) = compare(Noun::Data, &yaml::parse("", text).unwrap());
    assert_eq!(mistakes, []);
    let expected = serde_json::json!({
        "version": "1", "path": "x", "tags": {"a": "20.040", "b": "true", "c": "yes", "d": ""}, "type": "uri_file"
    });
    assert_eq!(value, expected);
    let text = "command: x\nenvironment: e\nresources:\n  instance_count: '2'\n  docker_args: --shm-size 'a b' -v\n";
    let (value, mistakes) = compare(Noun::Job, &yaml::parse("", text).unwrap());
    assert_eq!(mistakes, []);
    assert_eq!(
        value["resources"],
        serde_json::json!({"instance_count": 2, "docker_args": ["--shm-size", "a b", "-v"]})
    );
}

#[test]
fn the_reference_and_the_schema_hold_every_key() {
    for noun in Noun::ALL {
        let (page, schema) = (reference(noun), json_schema(noun));
        for key in noun.object().all_keys() {
            assert!(page.contains(&format!("| `{}` |", key.name)), "{noun} {}", key.name);
            let described = &schema["properties"][key.name];
            assert!(described["description"].is_string() || described["anyOf"].is_array(), "{noun} {}", key.name);
            assert!(key.doc.ends_with('.') && !key.doc.contains('|'), "{noun} {}", key.name);
        }
    }
    let page = reference(Noun::Job);
    assert!(
        page.contains("## Distribution\n")
            && page.contains("### `type: pytorch`")
            && page.contains("| `command` | text | required |")
    );
    assert_eq!(json_schema(Noun::Job)["allOf"][0]["then"]["required"], serde_json::json!(["command", "environment"]));
    assert_eq!(json_schema(Noun::OnlineEndpoint)["required"], serde_json::json!(["name"]));
}
