//! The server over real HTTP on loopback. Files mirror the addresses they test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may as well stop where it stands")]

mod access;
mod agents;
mod artifacts;
mod assets;
mod blobs;
mod clusters;
mod computes;
mod datastores;
mod endpoints;
mod history;
mod hostile;
mod identity;
mod jobs;
mod machines;
mod meta;
mod mlflow;
mod pipelines;
#[path = "../../../../tests/postgres.rs"]
#[expect(dead_code, reason = "other suites use what this one does not")]
mod postgres;
mod reach;
mod registries;
mod schedules;
mod services;
mod sharing;
mod studio;
mod sweeps;
mod tls;
mod workspaces;

use api::{Client, Connection};
use domain::{AttemptId, JobEvent};
use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};
use server::{Certificates, Settings, make_token};
use std::path::PathBuf;
use store::{Database, PostgresAddress, Store};
use tempfile::TempDir;
use tokio::sync::{oneshot, watch};

const WS: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/default";

/// A server with a home of its own; it stops when it is dropped.
struct Server {
    home: TempDir,
    store: Store,
    user: Client,
    agent: Client,
    _stop: watch::Sender<bool>,
    /// The database, where it is not in the home. It goes last.
    postgres: Option<postgres::Database>,
}

/// What came back, whatever it was.
struct Answer {
    status: u16,
    headers: HeaderMap,
    bytes: Vec<u8>,
}

impl Server {
    async fn start() -> Server {
        Server::start_with(settings()).await
    }

    async fn start_with(settings: Settings) -> Server {
        let home = tempfile::tempdir().unwrap();
        let postgres = postgres::wanted();
        let database = postgres.as_ref().map(|database| PostgresAddress::parse(&database.url()).unwrap());
        let store = Store::open_at(home.path(), &database.map_or(Database::Sqlite, Database::Postgres)).unwrap();
        let keys = home.path().join("keys");
        let tokens = ["user", "agent"].map(|role| make_token(&keys, role, store.keyring()).unwrap());
        let (stop, stopped) = watch::channel(false);
        let (listens, url) = oneshot::channel();
        let (serving, in_keys) = (store.clone(), keys.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(serve(serving, in_keys, settings, stopped, listens));
        });
        let url = url.await.unwrap();
        let authority = std::fs::read(keys.join("authority.pem")).unwrap();
        let [user, agent] = tokens.map(|token| {
            Client::new(Connection { url: url.clone(), token, authority: Some(authority.clone()) }).unwrap()
        });
        Server { home, store, user, agent, _stop: stop, postgres }
    }

    /// The same server, called with another token.
    fn with_token(&self, token: &str) -> Client {
        let authority = std::fs::read(self.home.path().join("keys/authority.pem")).unwrap();
        let connection =
            Connection { url: self.user.url().to_owned(), token: token.to_owned(), authority: Some(authority) };
        Client::new(connection).unwrap()
    }

    async fn get(&self, path: &str) -> Answer {
        ask(&self.user, Method::GET, &under_workspace(path), None).await
    }

    async fn put(&self, path: &str, body: Value) -> Answer {
        ask(&self.user, Method::PUT, &under_workspace(path), Some(body)).await
    }

    async fn patch(&self, path: &str, body: Value) -> Answer {
        ask(&self.user, Method::PATCH, &under_workspace(path), Some(body)).await
    }

    /// A request with one more header.
    async fn ask_with(&self, method: Method, path: &str, header: (&str, &str), body: Option<Value>) -> Answer {
        let mut request = self.user.request(method, &under_workspace(path)).header(header.0, header.1);
        if let Some(body) = body {
            request = request.json(&body);
        }
        send(request).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        ask(&self.user, Method::POST, &under_workspace(path), Some(body)).await
    }

    async fn delete(&self, path: &str) -> Answer {
        ask(&self.user, Method::DELETE, &under_workspace(path), None).await
    }

    /// Submits a job that echoes, which must be accepted.
    async fn submit(&self, name: &str) -> Value {
        self.put(&format!("jobs/{name}"), job_body()).await.expect(201)
    }

    /// Hands a job to the node, as the scheduler does.
    async fn place(&self, name: &str) -> AttemptId {
        let (name, now) = (name.to_owned(), server::clock::now());
        let placed = self.store.write(move |tx| {
            let mut job = tx.job("default", &name)?.unwrap().job;
            let attempt = job.next_attempt();
            job.apply(JobEvent::Placed(attempt.clone()), now).unwrap();
            tx.put_job(&job, None, now)?;
            Ok(attempt)
        });
        placed.await.unwrap()
    }
}

impl Answer {
    /// The JSON of an answer that must have this status.
    fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The code and message of a refusal in the envelope every dialect of ours has.
    fn refused(&self, status: u16) -> (String, String) {
        let body = self.expect(status);
        let word = |key: &str| {
            body["error"][key].as_str().unwrap_or_else(|| panic!("no envelope: {}", self.text())).to_owned()
        };
        assert!(body["error"]["details"].is_array(), "{body}");
        (word("code"), word("message"))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Serves until `stop` turns true or is dropped; tells the address once there is one.
async fn serve(
    store: Store,
    keys: PathBuf,
    settings: Settings,
    stop: watch::Receiver<bool>,
    listens: oneshot::Sender<String>,
) {
    let certificates = Certificates::Own { keys: keys.clone() };
    let listening = server::listen("127.0.0.1:0".parse().unwrap(), false, None, &certificates, server::Kept::default())
        .await
        .unwrap();
    listens.send(listening.url.clone()).unwrap();
    server::serve(listening, store, settings, &keys, stop).await.unwrap();
}

fn settings() -> Settings {
    Settings {
        version: "0.0.0".into(),
        subscription: "s".into(),
        resource_group: "g".into(),
        workspace: "default".into(),
        public_url: None,
        authority: String::new(),
        bundle: None,
        instance_types: Vec::new(),
        isolation_required: false,
        max_retries: 1,
        storage_quota: 0,
        half_life: std::time::Duration::from_secs(86_400),
        idle: std::time::Duration::from_secs(60),
        rate_limit: 0,
        private_webhooks: false,
        keep_deleted: None,
        scoring_url: None,
        routers: None,
        node_certificate: std::time::Duration::from_secs(3600),
        clock: server::clock::now,
    }
}

async fn ask(client: &Client, method: Method, path: &str, body: Option<Value>) -> Answer {
    let mut request = client.request(method, path);
    if let Some(body) = body {
        request = request.json(&body);
    }
    send(request).await
}

async fn send(request: reqwest::RequestBuilder) -> Answer {
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    Answer { status, headers, bytes: answer.bytes().await.unwrap().to_vec() }
}

/// The request as someone sends it who has no token.
fn without_token(request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
    let (client, request) = request.build_split();
    let mut request = request.unwrap();
    request.headers_mut().remove("authorization");
    reqwest::RequestBuilder::from_parts(client, request)
}

/// Paths without a leading `/` stand under the default workspace.
fn under_workspace(path: &str) -> String {
    if path.starts_with('/') || path.starts_with("https://") { path.to_owned() } else { format!("{WS}/{path}") }
}

fn job_body() -> Value {
    json!({"properties": {
        "jobType": "Command", "command": "echo hi", "computeId": "azureml:local", "experimentName": "tests",
        "environmentId": "azureml:AzureML-Minimal@latest",
    }})
}
