//! Health, the description of the API, who may call what, and answers to requests that make no sense.

use crate::{Server, WS, ask, send};
use api::routes::{self, Access};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn every_route_of_the_description_is_answered_by_a_handler() {
    let server = Server::start().await;
    let described = server.get("/openapi.json").await.expect(200);
    for route in routes::all() {
        let operation = &described["paths"][route.path.replace("{*", "{")][route.method.to_lowercase()];
        assert_eq!(operation["operationId"], api::openapi::name(route));
        let client = if route.access == Access::Agent { &server.agent } else { &server.user };
        let answer = ask(client, method(route.method), &filled(route.path), Some(json!([]))).await;
        assert!(answer.status != 405 && !answer.text().contains("NoSuchRoute"), "{} {}", route.id, answer.text());
        assert!(answer.status < 500 || answer.status == 501, "{}: {} {}", route.id, answer.status, answer.text());
    }
}

#[tokio::test]
async fn what_is_described_whole_is_answered_so() {
    let server = Server::start().await;
    let made = json!({"name": "ada", "role": domain::Role::Contributor, "workspace": "default"});
    server.post("/admin/v1/principals", made).await.expect(201);
    server.put("teams/vision", json!({"people": ["ada"]})).await.expect(200);
    server.submit("works").await;
    server.submit("waits").await;
    server.place("works").await;
    let described = server.get("/openapi.json").await.expect(200);
    for (id, path) in [("queue", "queue"), ("usage", "usage?workspaces=true"), ("teams", "teams")] {
        let route = routes::all().find(|route| route.id == id).unwrap();
        let schema =
            &described["paths"][route.path]["get"]["responses"]["2XX"]["content"]["application/json"]["schema"];
        let answer = server.get(path).await.expect(200);
        assert!(!answer["value"].as_array().unwrap().is_empty(), "{id}: {answer}");
        fits(&described, schema, &answer, id);
    }
}

/// A value is what its schema says, with nothing that this does not say.
fn fits(described: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        return fits(described, &described["components"]["schemas"][name.rsplit('/').next().unwrap()], value, at);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    assert!(kinds.contains(&json!(kind)) || (kind == "integer" && kinds.contains(&json!("number"))), "{at}: {value}");
    for item in value.as_array().into_iter().flatten() {
        fits(described, &schema["items"], item, at);
    }
    let Some(fields) = value.as_object() else { return };
    for (key, inner) in fields {
        assert!(schema["properties"][key].is_object(), "{at}: `{key}` is not described");
        fits(described, &schema["properties"][key], inner, &format!("{at}.{key}"));
    }
    for key in schema["required"].as_array().unwrap() {
        assert!(fields.contains_key(key.as_str().unwrap()), "{at}: {key} is missing");
    }
}

#[tokio::test]
async fn the_words_of_a_path_are_read_in_any_case_and_names_are_not() {
    let server = Server::start().await;
    server.submit("Mixed").await;
    let spelled =
        "/SUBSCRIPTIONS/s/resourcegroups/g/PROVIDERS/microsoft.machinelearningservices/Workspaces/default/JOBS/Mixed";
    assert_eq!(server.get(spelled).await.expect(200)["name"], "Mixed");
    assert_eq!(server.get(&format!("{spelled}/")).await.expect(200)["name"], "Mixed");
    server.get("jobs/mixed").await.refused(404);
}

#[tokio::test]
async fn requests_that_make_no_sense_get_the_envelope_too() {
    let server = Server::start().await;
    assert_eq!(server.get("/nowhere").await.refused(404).0, "NoSuchRoute");
    assert_eq!(ask(&server.user, Method::PATCH, &format!("{WS}/jobs"), None).await.refused(405).0, "MethodNotAllowed");
    let put = || server.user.request(Method::PUT, &format!("{WS}/jobs/a"));
    let (_, message) = send(put().body("{not json")).await.refused(400);
    assert!(message.contains("JSON"), "{message}");
    let (code, _) = send(put().body(vec![b' '; 9 << 20])).await.refused(413);
    assert_eq!(code, "BadBody");
    server.submit("well").await;
}

#[tokio::test]
async fn metrics_count_what_happened() {
    let server = Server::start().await;
    server.submit("counted").await;
    let metrics = server.get("/metrics").await;
    assert!(metrics.header("content-type").starts_with("application/openmetrics-text"));
    let text = metrics.text();
    for piece in ["accepted_total 1", "job_put", "queued"] {
        assert!(text.contains(piece), "no `{piece}` in\n{text}");
    }
}

pub(crate) fn method(name: &str) -> Method {
    name.parse().unwrap()
}

/// The path with names in place of its parameters.
pub(crate) fn filled(path: &str) -> String {
    let known = [("{workspace}", "default"), ("{kind}", "data"), ("{*path}", "default.blob.x/c/f")];
    let path = known.iter().fold(path.to_owned(), |path, (from, to)| path.replace(from, to));
    let names = path.split('/').map(|part| if part.starts_with('{') { "any" } else { part });
    names.collect::<Vec<_>>().join("/")
}
