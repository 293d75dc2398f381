//! Job files that cannot be used: found before anything is sent, with the line and the fix.

use crate::harness::Home;
use std::fs::File;

/// A file's text, and the words that must be said of it.
const MISTAKES: &[(&str, &[&str])] = &[
    ("", &["bad.yml:1:1: ", "empty"]),
    ("# nothing\n", &["bad.yml:1:1: ", "empty"]),
    ("command: [a\nx: }\n", &["bad.yml:2:2: ", " 2 | x: }", "close a bracket", "1 mistake in `bad.yml`"]),
    ("command: a\n\tenvironment: x\n", &["bad.yml:", "a tab stands where spaces are needed", "indent with spaces"]),
    (
        "command: 5\nlimits: {timeout: soon}\ntags: [a]\nenvironment: 3\ninputs: x\n",
        &[
            "bad.yml:1:10: `command`: expected text",
            "bad.yml:2:19: `limits.timeout`",
            "bad.yml:3:7: `tags`",
            "`environment`",
            "5 mistakes",
        ],
    ),
    (
        "command: a\ncommand: b\nenvironment: azureml:e:1\n",
        &["bad.yml:2:1: ", "given twice, on line 1 and on line 2", "keep one"],
    ),
    ("comand: a\nenvironment: azureml:e:1\n", &["bad.yml:1:1: ", "`command`"]),
    (
        "command: echo ${{inputs.nope}}\nenvironment: azureml:e:1\n",
        &["`${{inputs.nope}}`", "not declared", "declare it under `inputs`"],
    ),
    (
        "command: a\nenvironment: azureml:e:1\ntags: &a {x: *a}\n",
        &["bad.yml:3:14: ", "contains itself", "remove the alias"],
    ),
    ("command: &a [*b]\ntags: &b [*a]\n", &["bad.yml:1:14: ", "not defined above it"]),
    ("command: echo hi\nenvironment: azureml:e:1\ninputs: {path: 1}\n", &["`inputs.path`"]),
];

/// What the server does not know, and the words that must be said of it.
const UNKNOWN: &[(&str, &[&str])] = &[
    (
        "compute: azureml:nowhere",
        &["`compute`", "no compute target `nowhere`", "there are: local", "--set compute=local"],
    ),
    ("resources: {instance_type: huge}", &["`huge`", "offered: ", "peregrine compute show"]),
    (
        "inputs: {d: {type: uri_file, path: azureml://datastores/lake/paths/x}}",
        &["`inputs.d`", "no datastore `lake`", "workspaceblobstore", "peregrine datastore create"],
    ),
    ("inputs: {d: {type: uri_file, path: 'azureml:iris:1'}}", &["`inputs.d`", "`iris:1`", "peregrine data create"]),
    (
        "inputs: {d: {type: uri_file, path: ./iris.csv}}",
        &["`inputs.d.path`", "`./iris.csv`", "does not exist", "relative to"],
    ),
    (
        "inputs: {d: {type: uri_file, path: azureml://jobs/none/outputs/o}}",
        &["`inputs.d`", "no job `none`", "peregrine job list"],
    ),
    ("code: ./nowhere", &["`code`", "`./nowhere`", "does not exist", "relative to"]),
];

#[test]
fn every_mistake_in_a_file_is_placed_and_explained() {
    let home = Home::new();
    for (text, words) in MISTAKES {
        home.file("bad.yml", text);
        home.run(&["job", "create", "-f", "bad.yml"]).must(2, words);
        home.run(&["job", "validate", "-f", "bad.yml"]).must(2, words);
    }
    assert!(!home.home().join("server.json").exists(), "a bad file needs no server");
    home.is_well();
}

#[test]
fn what_does_not_exist_is_named_with_what_does() {
    let home = Home::new();
    for (more, words) in UNKNOWN {
        home.stream("echo hi", more).must(2, words);
    }
    home.file("env.yml", "command: echo hi\nenvironment: azureml:mine:1\n");
    let refused = home.run(&["job", "create", "-f", "env.yml"]);
    refused.must(2, &["`environment`", "no environment `mine:1`", "peregrine environment create"]);
    home.is_well();
    assert_eq!(home.json(&["job", "list"]).as_array().unwrap().len(), 1, "a refused job leaves no record");
}

#[test]
fn a_file_that_cannot_be_read_is_said_to_be_so() {
    let home = Home::new();
    home.run(&["job", "create", "-f", "none.yml"]).must(2, &["`none.yml`", "does not exist", "check the path"]);
    home.run(&["job", "create", "-f", "."]).must(2, &["`.`", "it is a folder", "name the YAML file"]);
    File::create(home.path().join("huge.yml")).unwrap().set_len(200 << 20).unwrap();
    let refused = home.run(&["job", "create", "-f", "huge.yml"]);
    refused.must(2, &["`huge.yml`", "200 MiB", "limit is 4 MiB", "files of its own"]);
    home.is_well();
}

#[test]
fn aliases_that_multiply_end_at_a_limit() {
    let home = Home::new();
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for n in 1..12 {
        let tens = vec![format!("*a{}", n - 1); 10].join(",");
        text += &format!("a{n}: &a{n} [{tens}]\n");
    }
    home.file("bomb.yml", &text);
    home.run(&["job", "create", "-f", "bomb.yml"])
        .must(2, &["bomb.yml:5:", "more than 100000 values", "use fewer aliases"]);
}
