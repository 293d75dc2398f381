//! Names accepted and refused, with the words of the refusal.

use super::*;

const FILES: &str = "Names may be treated as files in certain cases, and must not resolve to other names when treated as \
                     such. This name would resolve to";

fn said(result: Result<(), Bad>) -> Option<String> {
    result.err().map(|bad| bad.message)
}

#[test]
fn keys_are_plain_paths_of_word_characters() {
    for key in ["a", "a/b", "a b:c.d-e_f", "é", "日本", "a..", ".a", "a/..b", " ", &"x".repeat(250)] {
        assert_eq!(metric_key(key, Place::Top), Ok(()), "{key}");
        assert_eq!(param_key(key, Place::Top), Ok(()), "{key}");
        assert_eq!(tag_key(key, Place::Top), Ok(()), "{key}");
    }
}

#[test]
fn a_key_that_names_another_path_is_refused_with_that_path() {
    let cases = [
        ("", "."),
        (".", "."),
        ("/a", "/a"),
        ("//a", "//a"),
        ("///a", "/a"),
        ("a//b", "a/b"),
        ("./a", "a"),
        ("a/.", "a"),
        ("a/", "a"),
        ("..", ".."),
        ("../a", "../a"),
        ("..a", "..a"),
        ("a/../b", "b"),
        ("a/../..", ".."),
        ("/..", "/"),
    ];
    for (key, resolved) in cases {
        let expect = format!("Invalid value \"{key}\" for parameter 'metrics[0].name' supplied: {FILES} '{resolved}'");
        assert_eq!(said(metric_key(key, Place::Item("metrics", 0))), Some(expect));
    }
}

#[test]
fn a_key_with_other_characters_or_too_many_is_refused() {
    for key in ["a$", "a\nb", "a'b", "a\"b", "a\\b", "a\tb", "\u{0}", "a;b", "a,b"] {
        let said = said(param_key(key, Place::Item("params", 2))).unwrap();
        assert!(
            said.contains("for parameter 'params[2].key' supplied: Names may only contain alphanumerics"),
            "{said}"
        );
    }
    let long = "k".repeat(251);
    let limit = "exceeds the maximum length of 250 characters";
    assert_eq!(said(metric_key(&long, Place::Top)), Some(format!("'Metric name' {limit}")));
    assert_eq!(said(param_key(&long, Place::Top)), Some(format!("'Param key' {limit}")));
    assert_eq!(said(tag_key(&long, Place::Top)), Some(format!("'key' {limit}")));
    assert_eq!(said(tag_key(&long, Place::Item("tags", 1))), Some(format!("'tags[1].key' {limit}")));
    assert!(said(param_key(&"$".repeat(5_000_000), Place::Top)).unwrap().len() < 1000);
}

#[test]
fn ids_are_short_words() {
    let long = "a".repeat(257);
    for id in ["abc", "0", "a-b_c", &long[..256]] {
        assert_eq!(run_id(id), Ok(()), "{id}");
    }
    for id in ["", "-a", "a b", "a.b", "a/b", &long] {
        assert_eq!(said(run_id(id)), Some(format!("Invalid value \"{id}\" for parameter 'run_id' supplied.")));
        assert_eq!(said(experiment_id(id)), Some(format!("Invalid experiment ID: '{id}'")));
    }
    assert_eq!((experiment_id(&long[..64]).is_ok(), experiment_id(&long[..65]).is_ok()), (true, false));
}

#[test]
fn experiments_have_a_name_and_a_place_of_their_own() {
    assert_eq!(said(experiment_name("")), Some("Invalid experiment name: ''".to_owned()));
    assert_eq!(
        said(experiment_name(&"a".repeat(501))),
        Some("'name' exceeds the maximum length of 500 characters".to_owned())
    );
    assert_eq!(experiment_name("../any text/'is' fine"), Ok(()));
    for location in ["", "s3://bucket/a?b=c", "file:///tmp/x", "/tmp/x", &"x".repeat(2048)] {
        assert_eq!(artifact_location(location), Ok(()), "{location}");
    }
    let cases = [
        ("runs:/x", "Artifact location cannot be a runs:/ URI. Given: 'runs:/x'"),
        ("s3://b/c#d", "'artifact_location' URL can't include fragments or params."),
        ("s3://b/c?d=../e", "Invalid query string"),
        ("s3://b/c?d=%2e%2E/e", "Invalid query string"),
        ("s3://b/c?d=%25252e.", "Invalid query string"),
    ];
    for (location, expect) in cases {
        assert_eq!(said(artifact_location(location)), Some(expect.to_owned()));
    }
    assert!(artifact_location(&"x".repeat(2049)).is_err());
}

#[test]
fn a_runs_name_comes_from_the_argument_or_the_tag_but_not_from_both() {
    assert_eq!(run_name(None, None), Ok(None));
    assert_eq!(run_name(Some(""), Some("t")), Ok(Some("t")));
    assert_eq!(run_name(Some("a"), Some("a")), Ok(Some("a")));
    assert!(run_name(Some("a"), Some("b")).unwrap_err().message.ends_with("(run_name='a', mlflow.runName='b')."));
}

#[test]
fn model_names_are_one_path_part() {
    for name in ["a", "a..", "my model", "模型"] {
        assert_eq!(model_name(name), Ok(()), "{name}");
    }
    assert_eq!(said(model_name("  ")), Some("Missing value for required parameter 'name'.".to_owned()));
    assert_eq!(said(new_model_name(" ")), Some("Missing value for required parameter 'new_name'.".to_owned()));
    assert_eq!(said(model_name("a:b")), Some("Invalid model name 'a:b'. Names cannot contain '/' or ':'.".to_owned()));
    assert_eq!(
        said(new_model_name("..a")),
        Some(format!("Invalid value \"..a\" for parameter 'name' supplied: {FILES} '..a'"))
    );
    let expect = "Invalid model name (\"a'\") provided. Model name must be a non-empty string and cannot contain the \
                  following characters: ('/', ':', '.', '%', '\"', \"'\")";
    assert_eq!(said(logged_model_name("a'")), Some(expect.to_owned()));
    assert_eq!((logged_model_name("a b").is_ok(), logged_model_name("").is_ok()), (true, false));
}

#[test]
fn versions_are_whole_numbers() {
    assert_eq!((model_version("1"), model_version(" 5 "), model_version("-1")), (Ok(1), Ok(5), Ok(-1)));
    for version in ["x", "", "1.0", "9223372036854775808"] {
        let expect = format!("Parameter 'version' must be an integer, got '{version}'.");
        assert_eq!(model_version(version).unwrap_err().message, expect);
    }
}

#[test]
fn an_alias_is_a_word_that_is_neither_latest_nor_a_version() {
    for name in ["champion", "a-b_c", "va", "v", "é", "1"] {
        assert_eq!(new_alias(name), Ok(()), "{name}");
    }
    assert_eq!(alias("latest"), Ok(()));
    let cases = [
        ("", "Registered model alias name cannot be empty."),
        ("a b", "Invalid alias name: 'a b'. Names may only contain alphanumerics, underscores (_), and dashes (-)."),
        ("LATEST", "'latest' alias name (case insensitive) is reserved."),
        ("V22", "Version alias name 'V22' is reserved."),
    ];
    for (name, expect) in cases {
        assert_eq!(said(new_alias(name)), Some(expect.to_owned()));
    }
    assert!(alias(&"a".repeat(256)).is_err());
}

#[test]
fn webhook_names_begin_and_end_with_a_letter_or_digit() {
    let longest = "a".repeat(63);
    for (name, fits) in
        [("a", true), ("a.b_c-1", true), (&longest, true), ("", false), ("-a", false), ("a-", false), ("a b", false)]
    {
        assert_eq!(webhook_name(name).is_ok(), fits, "{name}");
    }
    assert!(webhook_name(&format!("{longest}a")).is_err());
}
