//! Webhooks: the registry tells a real receiver what happened in it, signed, until it was heard.

use super::{
    jobs::{submitted, variables},
    *,
};
use axum::{Router, extract::State, http::HeaderMap, http::StatusCode, routing::post};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ring::hmac;
use server::Settings;
use std::{collections::VecDeque, sync::Arc, sync::Mutex, time::Duration};
use tokio::{net::TcpListener, sync::mpsc, time::timeout};

/// One message as it arrived.
struct Heard {
    headers: HeaderMap,
    body: String,
}

impl Heard {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// What happened, and to what.
    fn told(&self) -> (String, Value) {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        assert!(body["timestamp"].as_str().unwrap().ends_with("+00:00"), "{body}");
        let word = |key: &str| body[key].as_str().unwrap().to_owned();
        (format!("{}.{}", word("entity"), word("action")), body["data"].clone())
    }
}

/// Listens on loopback; answers with the statuses it was given, then with 200.
struct Receiver {
    url: String,
    heard: mpsc::UnboundedReceiver<Heard>,
    answers: Arc<Mutex<VecDeque<u16>>>,
}

type Ears = (mpsc::UnboundedSender<Heard>, Arc<Mutex<VecDeque<u16>>>);

impl Receiver {
    async fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook?key=of-the-receiver", listener.local_addr().unwrap());
        let (told, heard) = mpsc::unbounded_channel();
        let answers: Arc<Mutex<VecDeque<u16>>> = Arc::default();
        let hear = |State((told, answers)): State<Ears>, headers: HeaderMap, body: String| async move {
            told.send(Heard { headers, body }).unwrap();
            let status = answers.lock().unwrap().pop_front().unwrap_or(200);
            (StatusCode::from_u16(status).unwrap(), "well heard")
        };
        let router = Router::new().route("/hook", post(hear)).with_state((told, Arc::clone(&answers)));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let listener = listener.into_std().unwrap();
            runtime.block_on(async {
                axum::serve(TcpListener::from_std(listener).unwrap(), router).await.unwrap();
            });
        });
        Receiver { url, heard, answers }
    }

    async fn next(&mut self) -> Heard {
        timeout(Duration::from_secs(30), self.heard.recv()).await.expect("nothing was told in time").unwrap()
    }
}

async fn server() -> Server {
    Server::start_with(Settings { private_webhooks: true, ..crate::settings() }).await
}

fn events(names: &[&str]) -> Value {
    let event = |name: &&str| {
        let (entity, action) = name.split_once('.').unwrap();
        json!({"entity": entity.to_uppercase(), "action": action.to_uppercase()})
    };
    names.iter().map(event).collect()
}

async fn hook(server: &Server, url: &str, names: &[&str]) -> String {
    let args = json!({"name": "hook", "url": url, "events": events(names), "secret": "a well kept word"});
    let made = server.tell("webhooks", args).await.expect(200);
    assert_eq!(made["webhook"]["status"], "ACTIVE");
    made["webhook"]["webhook_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_change_of_the_registry_is_told_in_order_whoever_made_it() {
    let server = server().await;
    let mut receiver = Receiver::start().await;
    let all = [
        "registered_model.created",
        "model_version.created",
        "model_version_tag.set",
        "model_version_tag.deleted",
        "model_version_alias.created",
        "model_version_alias.deleted",
        "prompt.created",
        "prompt_version.created",
        "prompt_tag.set",
        "prompt_tag.deleted",
        "prompt_version_tag.set",
        "prompt_alias.created",
    ];
    hook(&server, &receiver.url, &all).await;
    let tag = |key: &str, value: &str| json!([{"key": key, "value": value}]);
    let asset = |tags: Value| json!({"properties": {"modelUri": "azureml://datastores/workspaceblobstore/paths/m", "modelType": "custom_model", "tags": tags}});
    for (method, path, args) in [
        ("POST", "registered-models/create", json!({"name": "net", "description": "d", "tags": tag("a", "1")})),
        ("POST", "model-versions/create", json!({"name": "net", "source": "s3://b/m", "tags": tag("b", "2")})),
        ("POST", "model-versions/set-tag", json!({"name": "net", "version": "1", "key": "c", "value": "3"})),
        ("DELETE", "model-versions/delete-tag", json!({"name": "net", "version": "1", "key": "c"})),
        // Tags of the name alone are not among the events of a model.
        ("POST", "registered-models/set-tag", json!({"name": "net", "key": "z", "value": "3"})),
        ("POST", "registered-models/alias", json!({"name": "net", "alias": "best", "version": "1"})),
        ("DELETE", "registered-models/alias", json!({"name": "net", "alias": "best"})),
        ("POST", "registered-models/create", json!({"name": "ask", "tags": tag("mlflow.prompt.is_prompt", "true")})),
        (
            "POST",
            "model-versions/create",
            json!({"name": "ask", "source": "dummy-source", "tags": [
                {"key": "mlflow.prompt.is_prompt", "value": "true"}, {"key": "mlflow.prompt.text", "value": "Hi {{x}}"},
                {"key": "k", "value": "v"}]}),
        ),
        ("POST", "registered-models/set-tag", json!({"name": "ask", "key": "z", "value": "3"})),
        ("DELETE", "registered-models/delete-tag", json!({"name": "ask", "key": "z"})),
        ("POST", "model-versions/set-tag", json!({"name": "ask", "version": "1", "key": "c", "value": "3"})),
        ("POST", "registered-models/alias", json!({"name": "ask", "alias": "best", "version": "1"})),
    ] {
        call(&server.user, method.parse().unwrap(), path, args).await.expect(200);
    }
    server.put("models/hand/versions/7", asset(json!({"x": "1", "y": "2"}))).await.expect(201);
    server.put("models/hand/versions/7", asset(json!({"x": "1", "w": "2"}))).await.expect(200);
    for (event, data) in [
        ("registered_model.created", json!({"name": "net", "tags": {"a": "1"}, "description": "d"})),
        (
            "model_version.created",
            json!({"name": "net", "version": "1", "source": "s3://b/m", "run_id": null, "tags": {"b": "2"}, "description": null}),
        ),
        ("model_version_tag.set", json!({"name": "net", "version": "1", "key": "c", "value": "3"})),
        ("model_version_tag.deleted", json!({"name": "net", "version": "1", "key": "c"})),
        ("model_version_alias.created", json!({"name": "net", "alias": "best", "version": "1"})),
        ("model_version_alias.deleted", json!({"name": "net", "alias": "best"})),
        ("prompt.created", json!({"name": "ask", "tags": {}, "description": ""})),
        (
            "prompt_version.created",
            json!({"name": "ask", "version": "1", "template": "Hi {{x}}", "tags": {"k": "v"}, "description": null}),
        ),
        ("prompt_tag.set", json!({"name": "ask", "key": "z", "value": "3"})),
        ("prompt_tag.deleted", json!({"name": "ask", "key": "z"})),
        ("prompt_version_tag.set", json!({"name": "ask", "version": "1", "key": "c", "value": "3"})),
        ("prompt_alias.created", json!({"name": "ask", "alias": "best", "version": "1"})),
        ("registered_model.created", json!({"name": "hand", "tags": {}, "description": ""})),
        (
            "model_version.created",
            json!({"name": "hand", "version": "7", "source": "azureml://datastores/workspaceblobstore/paths/m",
                   "run_id": null, "tags": {"x": "1", "y": "2"}, "description": null}),
        ),
        ("model_version_tag.set", json!({"name": "hand", "version": "7", "key": "w", "value": "2"})),
        ("model_version_tag.deleted", json!({"name": "hand", "version": "7", "key": "y"})),
    ] {
        assert_eq!(receiver.next().await.told(), (event.to_owned(), data));
    }
}

#[tokio::test]
async fn a_message_is_signed_with_the_secret_that_nobody_is_shown() {
    let server = server().await;
    let mut receiver = Receiver::start().await;
    let id = hook(&server, &receiver.url, &["registered_model.created"]).await;
    server.tell("registered-models/create", json!({"name": "net"})).await.expect(200);
    let heard = receiver.next().await;
    let (delivery, at) = (heard.header("x-mlflow-delivery-id"), heard.header("x-mlflow-timestamp"));
    assert_eq!(delivery.len(), 36, "{delivery}");
    let signed = format!("{delivery}.{at}.{}", heard.body);
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"a well kept word");
    let mac = BASE64.decode(heard.header("x-mlflow-signature").strip_prefix("v1,").unwrap()).unwrap();
    hmac::verify(&key, signed.as_bytes(), &mac).expect("the signature is the receiver's own");
    assert_eq!(heard.header("content-type"), "application/json");
    let shown = server.question(&format!("webhooks/{id}"), json!({})).await;
    assert!(!shown.text().contains("a well kept word") && !shown.text().contains("secret"), "{}", shown.text());
    match &server.postgres {
        Some(database) => {
            let open = "select count(*) from records where secret is not null and \
                        (position('a well kept word'::bytea in secret) > 0 or body like '%a well kept word%')";
            assert_eq!(database.ask("select count(*) from records where secret is not null"), "1");
            assert_eq!(database.ask(open), "0", "the secret lies open in the database");
        }
        None => {
            for file in ["peregrine.db", "peregrine.db-wal"] {
                let kept = std::fs::read(server.home.path().join(file)).unwrap();
                assert!(!kept.windows(16).any(|bytes| bytes == b"a well kept word"), "the secret lies open in {file}");
            }
        }
    }
    call(&server.user, Method::PATCH, &format!("webhooks/{id}"), json!({"secret": ""})).await.expect(200);
    server.tell("registered-models/create", json!({"name": "other"})).await.expect(200);
    assert_eq!(receiver.next().await.header("x-mlflow-signature"), "", "nothing to sign with any more");
}

#[tokio::test]
async fn a_receiver_that_is_not_well_is_told_again_and_one_that_refuses_is_not() {
    let server = server().await;
    let mut receiver = Receiver::start().await;
    receiver.answers.lock().unwrap().extend([503, 429, 200, 400, 301]);
    hook(&server, &receiver.url, &["registered_model.created"]).await;
    for name in ["one", "two", "three"] {
        server.tell("registered-models/create", json!({"name": name})).await.expect(200);
        let first = receiver.next().await;
        assert_eq!(first.told().1["name"], name);
        for _ in 0..if name == "one" { 2 } else { 0 } {
            let again = receiver.next().await;
            assert_eq!(again.header("x-mlflow-delivery-id"), first.header("x-mlflow-delivery-id"));
            assert_eq!(again.body, first.body);
        }
    }
    server.tell("registered-models/create", json!({"name": "four"})).await.expect(200);
    assert_eq!(receiver.next().await.told().1["name"], "four", "what was refused is not sent again");
}

#[tokio::test]
async fn a_webhook_hears_only_what_it_asked_for_while_it_is_active() {
    let server = server().await;
    let mut receiver = Receiver::start().await;
    let id = hook(&server, &receiver.url, &["model_version.created"]).await;
    let at = format!("webhooks/{id}");
    let change = |args: Value| call(&server.user, Method::PATCH, &at, args);
    server.tell("registered-models/create", json!({"name": "one"})).await.expect(200);
    change(json!({"events": events(&["registered_model.created"]), "status": "DISABLED"})).await.expect(200);
    server.tell("registered-models/create", json!({"name": "two"})).await.expect(200);
    change(json!({"status": "ACTIVE", "description": "words"})).await.expect(200);
    server.tell("registered-models/create", json!({"name": "three"})).await.expect(200);
    assert_eq!(receiver.next().await.told().1["name"], "three");
    let other = WS.replace("default", "team");
    server.put(&other, json!({})).await;
    let path = format!("/mlflow/v1.0{other}{API}/registered-models/create");
    ask(&server.user, Method::POST, &path, Some(json!({"name": "elsewhere"}))).await.expect(200);
    let refused = server.tell("registered-models/create", json!({"name": "three"})).await;
    assert_eq!(refused.code(400), "RESOURCE_ALREADY_EXISTS");
    call(&server.user, Method::DELETE, &at, json!({})).await.expect(200);
    assert_eq!(server.question(&at, json!({})).await.code(404), "RESOURCE_DOES_NOT_EXIST");
    server.tell("registered-models/create", json!({"name": "four"})).await.expect(200);
    hook(&server, &receiver.url, &["registered_model.created"]).await;
    server.tell("registered-models/create", json!({"name": "five"})).await.expect(200);
    let next = receiver.next().await.told().1["name"].clone();
    assert_eq!(next, "five", "neither another workspace, nor a refusal, nor a webhook that is gone is told of");
}

#[tokio::test]
async fn a_test_shows_what_the_receiver_answers() {
    let server = server().await;
    let mut receiver = Receiver::start().await;
    let id = hook(&server, &receiver.url, &["model_version_tag.set"]).await;
    let at = format!("webhooks/{id}/test");
    receiver.answers.lock().unwrap().extend([200, 500]);
    let result = server.tell(&at, json!({})).await.expect(200)["result"].clone();
    assert_eq!(result, json!({"success": true, "response_status": 200, "response_body": "well heard"}));
    assert_eq!(receiver.next().await.told().0, "model_version_tag.set");
    let event = json!({"event": events(&["prompt.created"])[0]});
    let result = server.tell(&at, event).await.expect(200)["result"].clone();
    assert_eq!((&result["success"], &result["response_status"]), (&json!(false), &json!(500)));
    assert_eq!(receiver.next().await.told().0, "prompt.created");
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let id = hook(&server, &format!("http://{closed}/?key=hidden"), &["prompt.created"]).await;
    let result = server.tell(&format!("webhooks/{id}/test"), json!({})).await.expect(200)["result"].clone();
    assert_eq!(result["success"], false);
    assert!(!result.to_string().contains("hidden"), "an address is not repeated: {result}");
}

#[tokio::test]
async fn nobody_is_called_inside_the_servers_own_network_unless_it_is_told_to() {
    let server = Server::start().await;
    let with = |url: &str| json!({"name": "hook", "url": url, "events": events(&["prompt.created"])});
    for url in [
        "http://192.88.99.1/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/",
        "https://0x7f.1/",
        "file:///etc/passwd",
    ] {
        let answer = server.tell("webhooks", with(url)).await;
        assert_eq!(answer.code(400), "INVALID_PARAMETER_VALUE", "{url}");
    }
    let made = server.tell("webhooks", with("https://192.88.99.1/")).await.expect(200);
    let at = format!("webhooks/{}", made["webhook"]["webhook_id"].as_str().unwrap());
    let moved = call(&server.user, Method::PATCH, &at, json!({"url": "https://127.0.0.1/"})).await;
    assert_eq!(moved.code(400), "INVALID_PARAMETER_VALUE");
}

#[tokio::test]
async fn the_token_of_a_job_neither_sees_nor_makes_webhooks() {
    let server = server().await;
    submitted(&server, "train").await;
    let token = variables(&server, "train").await["MLFLOW_TRACKING_TOKEN"].clone();
    let job = server.with_token(&token);
    let args = json!({"name": "hook", "url": "https://192.88.99.1/", "events": events(&["prompt.created"])});
    assert_eq!(call(&job, Method::POST, "webhooks", args).await.code(403), "PERMISSION_DENIED");
    assert_eq!(call(&job, Method::GET, "webhooks", json!({})).await.code(403), "PERMISSION_DENIED");
}
