//! Ending a job before its time.

use crate::harness::{Home, processes_with};

#[test]
fn a_queued_job_is_canceled_without_ever_running() {
    let home = Home::new();
    home.configure("[local]\ncpus = 1\n");
    home.begin("first", "sleep 600", "");
    home.until_status("first", "Running");
    home.begin("second", "echo ran", "");
    let why = home.json(&["job", "why", "-n", "second"]);
    assert!(why["status"] == "Queued" && !why["summary"].as_str().unwrap().is_empty(), "{why}");
    home.ok(&["job", "cancel", "-n", "second"]);
    assert_eq!(home.job("second")["status"], "Canceled");
    home.ok(&["job", "cancel", "-n", "first"]);
    assert_eq!(home.job("first")["status"], "Canceled");
    assert_eq!(home.log("second"), "");
    home.is_well();
}

#[test]
fn a_running_job_may_tidy_up_when_it_is_asked_to_end() {
    let home = Home::new();
    home.begin("tidy", "trap 'echo tidied; exit 0' TERM\necho ready\nwhile :; do sleep 0.05; done", "");
    home.until("the trap", || home.log("tidy").contains("ready"));
    home.ok(&["job", "cancel", "-n", "tidy"]);
    assert_eq!(home.job("tidy")["status"], "Canceled");
    assert!(home.log("tidy").ends_with("tidied\n"), "{}", home.log("tidy"));
    home.run(&["job", "stream", "-n", "tidy"]).must(1, &["canceled"]);
}

#[test]
fn a_process_that_will_not_end_is_killed_after_the_grace() {
    let home = Home::new();
    home.configure("[local]\ngrace_seconds = 1\n");
    let long = format!("88{}", std::process::id());
    home.begin("deaf", &format!("trap '' TERM\nsleep {long} & echo ready\nwhile :; do sleep 0.05; done"), "");
    home.until("the trap", || home.log("deaf").contains("ready"));
    home.ok(&["job", "cancel", "-n", "deaf"]);
    assert_eq!(home.job("deaf")["status"], "Canceled");
    assert_eq!(processes_with(&format!("sleep {long}")), []);
    let again = home.run(&["job", "cancel", "-n", "deaf"]);
    assert_eq!(again.code, Some(0), "{}", again.err);
    home.is_well();
}

#[test]
fn what_ends_in_one_home_leaves_the_other_alone() {
    let homes = [Home::new(), Home::new()];
    let gate = homes[0].path().join("gate");
    for home in &homes {
        home.configure("[local]\ngrace_seconds = 1\n[[local.instance_types]]\nname = \"kept\"\ncpu = 1\nmemory = \"256Mi\"\nlimits = true\n");
        home.begin(
            "same",
            &format!("until [ -e {} ]; do sleep 0.05; done", gate.display()),
            "resources: {instance_type: kept}",
        );
        home.until_status("same", "Running");
    }
    homes[1].ok(&["job", "cancel", "-n", "same"]);
    assert_eq!(homes[1].job("same")["status"], "Canceled");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(homes[0].ended("same")["status"], "Completed");
}

#[test]
fn a_job_past_its_time_limit_is_canceled_and_says_so() {
    let home = Home::new();
    let said = home.stream("echo begun; sleep 600", "limits: {timeout: 1}");
    said.must(1, &["canceled"]);
    assert_eq!(said.out, "begun\n");
    let job = home.json(&["job", "list"])[0].clone();
    assert_eq!(job["status"], "Canceled");
    let why = home.json(&["job", "why", "-n", job["name"].as_str().unwrap()]);
    assert!(why["summary"].as_str().unwrap().contains("1 s"), "{why}");
    home.is_well();
}
