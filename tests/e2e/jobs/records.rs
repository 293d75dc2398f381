//! Looking at jobs and changing what may change: tags, archive, lists, formats.

use crate::harness::Home;
use serde_json::json;

#[test]
fn tags_and_description_change_and_the_rest_does_not() {
    let home = Home::new();
    home.begin("job", "echo hi", "tags: {kept: 'yes', gone: 'yes'}");
    home.ended("job");
    home.ok(&[
        "job",
        "update",
        "-n",
        "job",
        "--set",
        "tags.new=1",
        "description=good",
        "display_name=Final",
        "--remove",
        "tags.gone",
    ]);
    let job = home.job("job");
    assert_eq!((&job["tags"], &job["description"]), (&json!({"kept": "yes", "new": "1"}), &json!("good")));
    assert_eq!(job["display_name"], "Final");
    home.job_file("other.yml", "echo something else", "");
    let refused = home.run(&["job", "create", "-f", "other.yml", "-n", "job"]);
    refused.must(2, &["already a job `job`", "choose another name"]);
    assert_eq!(home.job("job")["command"], "echo hi\n");
}

#[test]
fn lists_show_what_is_asked_for() {
    let home = Home::new();
    for (name, more) in [("a", "tags: {team: red}"), ("b", "tags: {team: blue}"), ("c", "")] {
        home.begin(name, "echo hi", more);
        home.ended(name);
    }
    home.ok(&["job", "archive", "-n", "b"]);
    let names = |more: &[&str]| {
        let mut args = vec!["job", "list", "--query", "[].name"];
        args.extend(more);
        home.json(&args)
    };
    assert_eq!(names(&[]), json!(["c", "a"]));
    assert_eq!(names(&["--include-archived"]), json!(["c", "b", "a"]));
    assert_eq!(names(&["--archived-only"]), json!(["b"]));
    assert_eq!(names(&["--tag", "team=red"]), json!(["a"]));
    assert_eq!(names(&["--tag", "team", "--include-archived"]), json!(["b", "a"]));
    assert_eq!(names(&["-r", "1"]), json!(["c"]));
    home.ok(&["job", "restore", "-n", "b"]);
    assert_eq!(names(&[]), json!(["c", "b", "a"]));
}

#[test]
fn results_come_in_every_format() {
    let home = Home::new();
    home.begin("job", "echo hi", "");
    home.ended("job");
    let show = |more: &[&str]| {
        let mut args = vec!["job", "show", "-n", "job"];
        args.extend(more);
        home.ok(&args)
    };
    assert_eq!(show(&["-o", "none"]), "");
    assert_eq!(show(&["--query", "status", "-o", "tsv"]), "Completed\n");
    assert_eq!(show(&["--query", "[name, status]", "-o", "tsv"]), "job\nCompleted\n");
    assert_eq!(show(&["--query", "[[name, status]]", "-o", "tsv"]), "job\tCompleted\n");
    assert_eq!(show(&["--query", "{name: name, status: status}", "-o", "yaml"]), "name: job\nstatus: Completed\n");
    assert_eq!(show(&["--query", "status", "-o", "json"]), "\"Completed\"\n");
    let table = home.ok(&["job", "list", "-o", "table"]);
    assert!(table.starts_with("NAME") && table.contains("Completed") && table.lines().count() == 2, "{table}");
    assert_eq!(
        home.ok(&["ml", "job", "show", "-n", "job", "-g", "any", "-w", "default", "--query", "status", "-o", "tsv"]),
        "Completed\n"
    );
    home.run(&["job", "show", "-n", "job", "--query", "[?"]).must(2, &["--query"]);
    home.run(&["job", "show", "-n", "nobody"]).must(2, &["no job `nobody`"]);
    home.run(&["job", "shw"]).must(2, &["show"]);
}

#[test]
fn values_of_the_file_are_changed_by_set() {
    let home = Home::new();
    home.job_file("job.yml", "echo ${{inputs.rate}}", "inputs: {rate: 0.1}\ntags: {a: b}");
    let create = ["job", "create", "-f", "job.yml", "-n", "job", "--set", "inputs.rate=0.5", "tags.c=d", "--no-wait"];
    assert_eq!(home.json(&create)["tags"], json!({"a": "b", "c": "d"}));
    home.ended("job");
    assert_eq!(home.log("job"), "0.5\n");
}

#[test]
fn retries_are_for_lost_attempts_only() {
    let home = Home::new();
    let said = home.stream("echo once; exit 3", "properties: {peregrine.max_retries: '5'}");
    said.must(1, &["exited with code 3"]);
    let job = home.json(&["job", "list"])[0].clone();
    assert_eq!((said.out.as_str(), &job["peregrine"]["attempts"]), ("once\n", &json!(1)));
}
