//! Webhooks end to end: MLflow's own client asks, a real receiver hears, and a server that dies in between changes nothing.

use super::{VERSION, driven};
use crate::{faults::door::Door, harness::Home, sdk::venv, skip::skip};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
};

/// A message, and the connection its sender waits on.
struct Heard {
    id: String,
    signature: String,
    body: Value,
    stream: TcpStream,
}

impl Heard {
    fn answer(&mut self) {
        let said = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\nconnection: close\r\n\r\nwell heard";
        self.stream.write_all(said.as_bytes()).unwrap();
    }
}

/// Waits for the next message.
fn hear(listener: &TcpListener) -> Heard {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(crate::harness::PATIENCE)).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let head: Vec<String> = reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let value =
            head.iter().filter_map(|line| line.split_once(": ")).find(|(key, _)| key.eq_ignore_ascii_case(name));
        value.map_or_else(String::new, |(_, value)| value.to_owned())
    };
    let mut body = vec![0; header("content-length").parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let body = serde_json::from_slice(&body).unwrap();
    Heard { id: header("x-mlflow-delivery-id"), signature: header("x-mlflow-signature"), body, stream }
}

fn home() -> Home {
    let home = Home::new();
    home.configure("[server]\nprivate_webhooks = true\n");
    home
}

#[test]
fn mlflows_own_client_asks_to_be_told_and_is() {
    let Some(python) = venv::with("mlflow", VERSION, &[]) else {
        skip(&format!("mlflow {VERSION} is not kept here and the package index cannot be reached"));
        return;
    };
    let home = home();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let receiver = std::thread::spawn(move || {
        let hear_one = |_| {
            let mut heard = hear(&listener);
            heard.answer();
            assert!(heard.signature.starts_with("v1,"), "{}", heard.signature);
            (format!("{}.{}", heard.body["entity"], heard.body["action"]).replace('"', ""), heard.body["data"].clone())
        };
        (0..5).map(hear_one).collect::<Vec<_>>()
    });
    let answers = driven(&home, &python, "hooks.py", &[&url]);
    assert_eq!(
        answers,
        json!({
            "tested": [true, 200, "well heard"], "silent": "DISABLED", "again": "ACTIVE",
            "read": ["registered_model.created", "model_version.created", "model_version_tag.set", "model_version_alias.created"],
            "listed": ["brief", "client"], "left": 1,
        })
    );
    let heard = receiver.join().unwrap();
    let names: Vec<&str> = heard.iter().map(|(event, _)| event.as_str()).collect();
    let changes =
        ["registered_model.created", "model_version.created", "model_version_tag.set", "model_version_alias.created"];
    assert_eq!(names, [&["registered_model.created"][..], &changes].concat(), "the test, then each change once");
    assert_eq!(heard[1].1, json!({"name": "net", "tags": {"a": "1"}, "description": ""}));
}

#[test]
fn what_a_server_did_not_get_to_tell_before_it_was_killed_the_next_one_tells() {
    let home = home();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let door = home.open_door();
    let tell = |door: &Door, path: &str, body: Value| {
        let (status, answer) =
            door.ask("POST", &format!("/api/2.0/mlflow/{path}"), Some(&home.token("user")), &body.to_string());
        assert_eq!(status, 200, "{answer}");
    };
    let event = json!({"entity": "REGISTERED_MODEL", "action": "CREATED"});
    tell(&door, "webhooks", json!({"name": "hook", "url": url, "events": [event], "secret": "s"}));
    tell(&door, "registered-models/create", json!({"name": "cut-off"}));
    // Heard and not answered: as far as the server knows, it was never told.
    let first = hear(&listener);
    tell(&door, "registered-models/create", json!({"name": "never-sent"}));
    assert!(home.kill("server"));
    home.until("the server to be gone", || home.pid("server").is_none());
    home.open_door();
    let mut names = Vec::new();
    for _ in 0..2 {
        let mut heard = hear(&listener);
        heard.answer();
        let name = heard.body["data"]["name"].as_str().unwrap().to_owned();
        assert_eq!(heard.id == first.id, name == "cut-off", "a delivery keeps its id");
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["cut-off", "never-sent"]);
}
