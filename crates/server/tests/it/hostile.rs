//! Names and bodies nobody should send, at every route that takes them: refused in the dialect's own envelope, never a
//! fault of the server's, and nothing kept.

use crate::{Server, ask, meta::method, send};
use api::routes::{Access, ROUTES};
use serde_json::{Value, json};

/// Percent-encoded, as they would travel.
const NAMES: &[&str] = &[
    "a%2Fb",
    "..%2F..%2Fetc%2Fpasswd",
    "a%00b",
    "%F0%9F%A6%85",
    "%20",
    "a%20b",
    "%ff%fe",
    "a%0Ab",
    "%3Cscript%3E",
    "'%20or%201%3D1--",
    "a%22b",
];

fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    vec![
        ("nothing", Vec::new()),
        ("half of it", b"{\"properties\": {".to_vec()),
        ("a list", b"[]".to_vec()),
        ("a text", b"\"hello\"".to_vec()),
        ("null", b"null".to_vec()),
        ("a number too large", b"{\"properties\": {\"version\": 1e999}}".to_vec()),
        ("wrong types", br#"{"properties": [1, 2], "tags": 7, "location": {}, "sku": "x", "identity": []}"#.to_vec()),
        ("wrong types inside", br#"{"properties": {"properties": 1, "tags": "x", "jobType": 3, "computeType": [], "inputs": 4, "outputs": "y", "trigger": 1, "action": [], "traffic": "all", "credentials": 5, "dataUri": {}, "componentSpec": 1}}"#.to_vec()),
        ("unknown words", br#"{"properties": {"jobType": "Teleport", "computeType": "Abacus", "datastoreType": "Attic", "authMode": "Handshake", "endpointComputeType": "Cloud", "dataType": "uri_drawer", "dataUri": "x"}}"#.to_vec()),
        ("not text", vec![0xff, 0xfe, 0x00]),
        ("five thousand deep", deep.into_bytes()),
    ]
}

/// Every route that changes something, with `name` in place of each of its own names.
fn paths(name: &str) -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let known = [("{workspace}", "default"), ("{kind}", "data"), ("{subscription}", "s"), ("{group}", "g")];
    let changing = ROUTES.iter().filter(|route| {
        !matches!(route.method, "GET" | "HEAD")
            && !matches!(route.access, Access::Agent | Access::Signed | Access::Open)
    });
    let name = name.to_owned();
    changing.map(move |route| {
        let path = known.iter().fold(route.path.to_owned(), |path, (from, to)| path.replace(from, to));
        let parts: Vec<&str> =
            path.split('/').map(|part| if part.starts_with('{') { name.as_str() } else { part }).collect();
        (route.id, route.method, parts.join("/"))
    })
}

/// An answer that blames the one who asked, in an envelope that can be read.
fn blames(status: u16, text: &str) -> bool {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    (400..500).contains(&status) && body["error"]["message"].as_str().is_some_and(|message| !message.is_empty())
}

#[tokio::test]
async fn no_name_is_so_odd_that_it_breaks_anything() {
    let server = Server::start().await;
    let long = "x".repeat(10_000);
    let mut tried = 0;
    for name in NAMES.iter().copied().chain([long.as_str()]) {
        for (id, verb, path) in paths(name).filter(|(_, _, path)| path.contains(name)) {
            if matches!(id, "workspace_delete") {
                continue;
            }
            let answer = ask(&server.user, method(verb), &path, Some(json!({"properties": {}}))).await;
            assert!(answer.status < 500, "{id} {name}: {} {}", answer.status, answer.text());
            // A delete of what is not there may be as good as done; nothing else is.
            let fine = verb == "DELETE" && answer.status == 204;
            assert!(fine || blames(answer.status, &answer.text()), "{id} {name}: {} {}", answer.status, answer.text());
            tried += 1;
        }
    }
    assert!(tried > 300, "only {tried} were tried");
}

#[tokio::test]
async fn no_body_is_so_odd_that_it_breaks_anything() {
    let server = Server::start().await;
    for (what, body) in bodies() {
        for (id, verb, path) in paths("plain") {
            if verb == "DELETE" || id.starts_with("workspace_") {
                continue;
            }
            let request = server.user.request(method(verb), &path).header("content-type", "application/json");
            let answer = send(request.body(body.clone())).await;
            assert!(
                answer.status < 500 || answer.status == 503,
                "{id} with {what}: {} {}",
                answer.status,
                answer.text()
            );
            let ok = answer.status < 300 || answer.status == 503 || blames(answer.status, &answer.text());
            assert!(ok, "{id} with {what}: {} {}", answer.status, answer.text());
        }
    }
    for kind in ["jobs", "computes", "datastores", "schedules", "onlineEndpoints", "data", "models", "components"] {
        let listed = server.get(kind).await.expect(200);
        let kept: Vec<&Value> =
            listed["value"].as_array().unwrap().iter().filter(|row| row["name"] == "plain").collect();
        assert!(kept.is_empty(), "{kind}: {kept:?}");
    }
}
