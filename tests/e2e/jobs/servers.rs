//! Servers that come and go while jobs run on.

use crate::harness::{Home, processes_with, said};
use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

#[test]
fn clients_that_race_start_exactly_one_server() {
    let home = Home::new();
    let racing: Vec<_> = (0..8)
        .map(|_| {
            home.command(&["job", "list", "-o", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in racing {
        let said = said(child.wait_with_output().unwrap());
        assert_eq!((said.code, said.out.trim()), (Some(0), "[]"), "{}", said.err);
    }
    let place = home.home().display().to_string();
    let servers: Vec<_> = processes_with(&place).into_iter().filter(|(_, line)| line.contains("--detached")).collect();
    assert_eq!(servers.len(), 1, "{servers:?}");
    home.is_well();
    let agents: Vec<_> = processes_with(&place).into_iter().filter(|(_, line)| line.contains("agent run")).collect();
    assert_eq!(agents.len(), 1, "{agents:?}");
}

#[test]
fn a_job_runs_on_while_the_server_is_away_and_keeps_its_exit_code() {
    let home = Home::new();
    let gate = home.path().join("gate");
    let wait = format!("echo begun; until [ -e {} ]; do sleep 0.05; done; echo ended", gate.display());
    home.begin("good", &format!("{wait}; echo x > outputs/x"), "");
    home.begin("bad", &format!("{wait}; exit 9"), "");
    home.until_status("good", "Running");
    home.until_status("bad", "Running");
    home.ok(&["server", "stop"]);
    home.run(&["server", "status"]).must(4, &["no server runs", "peregrine server start"]);
    fs::write(&gate, "").unwrap();
    home.until("the command to end", || home.log("bad").contains("ended") && home.log("good").contains("ended"));
    home.ok(&["server", "start"]);
    assert_eq!(home.ended("good")["status"], "Completed");
    let bad = home.ended("bad");
    assert_eq!((&bad["status"], &bad["peregrine"]["failure"]["exit_code"]), (&"Failed".into(), &9.into()), "{bad}");
    assert_eq!(bad["peregrine"]["attempts"], 1);
    assert!(home.artifacts("good").join("outputs/x").exists());
}

#[test]
fn a_stream_goes_on_when_the_server_comes_back() {
    let home = Home::new();
    let gate = home.path().join("gate");
    home.begin("job", &format!("echo one; until [ -e {} ]; do sleep 0.05; done; echo two", gate.display()), "");
    let mut stream = home.command(&["job", "stream", "-n", "job"]);
    let mut child = stream.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    home.ok(&["server", "stop"]);
    home.ok(&["server", "start"]);
    fs::write(&gate, "").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "two");
    assert!(lines.next().is_none() && child.wait().unwrap().success());
    assert_eq!(home.ok(&["job", "stream", "-n", "job"]), "one\ntwo\n", "and again, from the start");
}

#[test]
fn nothing_answers_where_no_server_is() {
    let home = Home::new();
    home.run(&["server", "status"]).must(4, &["no server runs"]);
    let mut away = home.command(&["job", "list"]);
    home.file("token", "00");
    away.env("PEREGRINE_SERVER_URL", "https://127.0.0.1:1")
        .env("PEREGRINE_SERVER_TOKEN_FILE", home.path().join("token"));
    said(away.output().unwrap()).must(4, &["cannot reach", "127.0.0.1:1"]);
    home.is_well();
    let url = home.json(&["server", "status"])["url"].as_str().unwrap().to_owned();
    let mut stranger = home.command(&["job", "list"]);
    stranger.env("PEREGRINE_SERVER_URL", url).env("PEREGRINE_SERVER_TOKEN_FILE", home.path().join("token"));
    said(stranger.output().unwrap()).must(3, &["token"]);
}
