//! Reading YAML: places, limits, and files that mean harm.

use super::*;
use serde_json::json;

fn value(text: &str) -> Value {
    parse("f.yml", text).unwrap_or_else(|m| panic!("{text}: {}", m[0])).to_json()
}

fn mistakes(text: &str) -> Vec<String> {
    parse("f.yml", text).unwrap_err().iter().map(Mistake::to_string).collect()
}

#[test]
fn scalars_are_what_users_expect() {
    for (text, expected) in [
        ("a: true", json!(true)),
        ("a: False", json!(false)),
        ("a: yes", json!("yes")),
        ("a: on", json!("on")),
        ("a: ~", json!(null)),
        ("a:", json!(null)),
        ("a: 12", json!(12)),
        ("a: -1_000", json!(-1000)),
        ("a: 0x1f", json!(31)),
        ("a: 007", json!("007")),
        ("a: 1.50", json!(1.5)),
        ("a: .5", json!(0.5)),
        ("a: 1.0e-3", json!(0.001)),
        ("a: 1e5", json!("1e5")),
        ("a: .", json!(".")),
        ("a: .inf", json!(".inf")),
        ("a: 12:30", json!("12:30")),
        ("a: 2024-01-31", json!("2024-01-31")),
        ("a: 4.1.2rc4", json!("4.1.2rc4")),
        ("a: '12'", json!("12")),
        ("a: \"x\\ty\"", json!("x\ty")),
        ("a: !!str 12", json!("12")),
        ("a: |\n  x\n  y\n", json!("x\ny\n")),
        ("a: >-\n  x\n  y\n", json!("x y")),
        ("a: 99999999999999999999", json!(1e20)),
    ] {
        assert_eq!(value(text)["a"], expected, "{text}");
    }
    let root = parse("", "v: 20.040").unwrap();
    assert_eq!(root.get("v").unwrap().scalar_text(), Some("20.040"));
}

#[test]
fn places_count_from_one_and_survive_a_byte_order_mark() {
    let root = parse("", "\u{feff}a: 1\nü:\n  - x\n  - b: [y, z]\n").unwrap();
    let at = |node: &Node| (node.line, node.column);
    assert_eq!(at(root.get("a").unwrap()), (1, 4));
    let Raw::List(items) = &root.get("ü").unwrap().value else { panic!() };
    assert_eq!(at(&items[0]), (3, 5));
    assert_eq!(at(items[1].get("b").unwrap()), (4, 8));
}

#[test]
fn aliases_and_merges_are_expanded() {
    let text = "base: &b {x: 1, y: 2}\none:\n  <<: *b\n  y: 3\ntwo:\n  <<: [*b, {z: 4}]\nthree: *b\n";
    let got = value(text);
    assert_eq!(got["one"], json!({"y": 3, "x": 1}));
    assert_eq!(got["two"], json!({"x": 1, "y": 2, "z": 4}));
    assert_eq!(got["three"], json!({"x": 1, "y": 2}));
    assert!(mistakes("a: 1\nb:\n  <<: text\n")[0].contains("only a map can be merged"));
}

#[test]
fn bad_files_are_refused_in_plain_words_at_their_place() {
    for (text, expected) in [
        ("", "f.yml:1:1: the file is empty"),
        ("\u{feff}", "f.yml:1:1: the file is empty"),
        ("# nothing\n\n", "f.yml:1:1: the file is empty"),
        ("---\n", "f.yml:1:1: the file is empty"),
        ("a: 1\nb: x: y\n", "f.yml:2:5: a `:` stands where no key can be"),
        ("a: \"x\n", "a quote is opened and never closed"),
        ("a: [1, 2\nb: 3\n", "or close a bracket above"),
        ("a: [1, 2\n", "a `[` is opened and not closed here"),
        ("a: {b: 1\n", "a `{` is opened and not closed here"),
        ("a:\n\tb: 1\n", "a tab stands where spaces are needed"),
        ("a: 1\n b: 2\n", "f.yml:2:"),
        ("a: *nope\n", "f.yml:1:4: an alias names an anchor that is not defined above it"),
        ("a: @x\n", "f.yml:1:4:"),
        ("a: 1\n---\nb: 2\n", "f.yml:2:1: the file holds several documents"),
        ("a: 1\nb: 2\na: 3\n", "f.yml:3:1: `a`: `a` is given twice, on line 1 and on line 3"),
        ("a: {{X}}\n", "a key must be plain text"),
        ("a: !x 1\n", "f.yml:1:4: the tag `!x` has no meaning here"),
        ("a: &c\n  b: *c\n", "f.yml:2:6: the anchor contains itself through this alias"),
        ("a: x\0y\n", "f.yml:1:1: the file holds a NUL character"),
    ] {
        let got = mistakes(text).join("\n");
        assert!(got.contains(expected), "{text:?} gave {got}");
    }
}

#[test]
fn a_quoted_text_may_go_on_at_its_keys_indentation() {
    let text = "a:\n  b: \"one \\\n  two\n  th\\\"ree\"\n  c: 'x\n  it''s'\n";
    assert_eq!(value(text), json!({"a": {"b": "one two th\"ree", "c": "x it's"}}));
    assert!(mistakes("a:\n  b: \"x\n  c: y\n")[0].starts_with("f.yml:2:6: a quoted text goes on with too little"));
}

#[test]
fn collected_mistakes_come_together() {
    assert_eq!(mistakes("a: 1\na: 2\nb: !x y\nb: 3\n").len(), 3);
}

#[test]
fn an_anchor_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..10 {
        let alias = format!("*a{}", i - 1);
        text += &format!("a{i}: &a{i} [{}]\n", [alias.as_str(); 10].join(", "));
    }
    assert!(mistakes(&text)[0].contains("more than 100000 values"));
    let fat = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), ["*a"; 50].join(", "));
    assert!(mistakes(&fat)[0].contains("once its aliases are expanded"));
}

#[test]
fn deep_nesting_is_refused_however_it_is_written() {
    let chain: String = (1..300).map(|i| format!("a{i}: &a{i} [*a{}]\n", i - 1)).collect();
    for text in [
        "[".repeat(10_000),
        "- ".repeat(10_000) + "x",
        "{a: ".repeat(10_000),
        (0..10_000).map(|i| " ".repeat(i.min(300)) + "a:\n").collect(),
        format!("a0: &a0 x\n{chain}"),
    ] {
        let got = mistakes(&text).join("\n");
        assert!(got.contains("nested more than 100 deep"), "{got}");
    }
    assert!(parse("", &("[".repeat(99) + &"]".repeat(99))).is_ok());
}

#[test]
fn a_huge_text_is_refused_by_its_size_and_a_large_one_is_read() {
    let got = mistakes(&"a".repeat(200 << 20));
    assert_eq!(
        got,
        [
            "f.yml: the file is too large: 200 MiB, and the limit is 4 MiB (put data into files of its own and refer to them by path)"
        ]
    );
    let lines: String = (0..30_000).map(|i| format!("k{i}: value of {i}\n")).collect();
    assert_eq!(value(&lines).as_object().unwrap().len(), 30_000);
}

#[test]
fn what_is_written_reads_back_the_same() {
    for value in [
        json!({"a": 1, "b": [1, "two", null, true, 1.5, []], "c": {}, "d": {"e": {"f": "g"}}}),
        json!([[1, 2], {"a": [{"b": "c", "d": ["e"]}]}, "x"]),
        json!({"quotes": ["", " x", "x ", "yes", "No", "null", "~", "12", "1e5", "0x1f", "1.5", "-", "- x", "a: b", "a #b", "it's", "a:", "@x", "*x", "2024-01-31", "12:30", "<<", "..."]}),
        json!({"text": "one\ntwo\n", "clipped": "one\ntwo", "kept": "one\n\ntwo\n\n\n", "indented": "  one\ntwo", "tabs": "a\tb\n\tc\n", "blank first": "\na"}),
        json!({"odd": "a\u{0}b\u{7f}\u{85}\u{2028}\u{feff}\r\n", "ü: #": "日本 😀", "": "empty key", "multi\nline": 1}),
        json!({"small": 1e-7, "big": 1e300, "max": i64::MAX, "neg": -0.5}),
        json!({"list": ["one\ntwo", {"k": "three\nfour\n"}]}),
        json!("scalar"),
        json!([]),
    ] {
        let text = to_yaml(&value);
        match parse("", &text) {
            Ok(node) => assert_eq!(node.to_json(), value, "{text}"),
            Err(mistakes) => panic!("{}\n{text}", mistakes[0]),
        }
    }
}

#[test]
fn written_yaml_looks_as_people_write_it() {
    let value = json!({"name": "train", "command": "set -e\npython x.py\n", "tags": {"v": "1.0"}, "list": [{"a": 1, "b": 2}, "c"]});
    expect_test::expect![[r#"
        name: train
        command: |
          set -e
          python x.py
        tags:
          v: '1.0'
        list:
        - a: 1
          b: 2
        - c
    "#]]
    .assert_eq(&to_yaml(&value));
}
