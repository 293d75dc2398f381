//! MLflow's calls of one workspace, as an importer makes them.

use super::{files::File, image::file_mark};
use crate::failure::{Done, Failure};
use api::{Client, ClientError, arm::Scope};
use domain::tracking::Point;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, RequestBuilder, Response, header::CONTENT_LENGTH};
use ring::digest::{Context, SHA256};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Smaller files are sent from memory, larger ones from disk.
const SMALL: u64 = 256 << 10;
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Points of one page of a history.
const PAGE: &str = "25000";
/// How long, and how often, to wait where the server asks for patience.
const PATIENCE: (Duration, usize) = (Duration::from_millis(250), 240);

/// The calls.
pub(super) struct Wire<'a> {
    client: &'a Client,
    root: String,
}

/// Whose files, by the number of the experiment and the id.
pub(super) enum Place {
    Run { number: String, run: String },
    Model { number: String, model: String },
}

pub(super) type Answer<T = Value> = Result<T, ClientError>;

impl<'a> Wire<'a> {
    pub(super) fn new(client: &'a Client, scope: &Scope) -> Wire<'a> {
        Wire { client, root: format!("/mlflow/v1.0{}/api/2.0", scope.path()) }
    }

    pub(super) async fn post(&self, call: &str, body: Value) -> Answer {
        self.tell(Method::POST, call, body).await
    }

    pub(super) async fn tell(&self, method: Method, call: &str, body: Value) -> Answer {
        let path = format!("{}/mlflow/{call}", self.root);
        let answer = self.patiently(async || Ok(self.client.request(method.clone(), &path).json(&body))).await?;
        self.json(answer).await
    }

    pub(super) async fn get(&self, call: &str, query: &[(&str, &str)]) -> Answer {
        let path = format!("{}/mlflow/{call}", self.root);
        let answer = self.patiently(async || Ok(self.client.request(Method::GET, &path).query(query))).await?;
        self.json(answer).await
    }

    /// The same, or `None` where there is none.
    pub(super) async fn find(&self, call: &str, query: &[(&str, &str)]) -> Answer<Option<Value>> {
        match self.get(call, query).await {
            Ok(found) => Ok(Some(found)),
            Err(ClientError::Refused { status: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Every point of a metric.
    pub(super) async fn history(&self, run: &str, key: &str) -> Answer<Vec<Point>> {
        let (mut all, mut token) = (Vec::new(), String::new());
        loop {
            let query = [("run_id", run), ("metric_key", key), ("max_results", PAGE), ("page_token", &token)];
            let page = self.get("metrics/get-history", &query[..if token.is_empty() { 3 } else { 4 }]).await?;
            all.extend(page["metrics"].as_array().into_iter().flatten().map(point));
            match page["next_page_token"].as_str().filter(|next| !next.is_empty()) {
                Some(next) => token = next.to_owned(),
                None => return Ok(all),
            }
        }
    }

    /// Writes a file of a run or model.
    pub(super) async fn put_file(&self, place: &Place, file: &File) -> Answer<()> {
        let unreadable = |source| ClientError::File { path: file.path.clone(), source };
        let path = self.file(place, &file.name);
        let request = async || {
            let body = if file.bytes <= SMALL {
                reqwest::Body::from(tokio::fs::read(&file.path).await.map_err(unreadable)?)
            } else {
                let open = tokio::fs::File::open(&file.path).await.map_err(unreadable)?;
                reqwest::Body::wrap_stream(tokio_util::io::ReaderStream::with_capacity(open, 256 << 10))
            };
            let request = self.client.request(Method::PUT, &path).body(body);
            Ok(if file.bytes > SMALL { request.header(CONTENT_LENGTH, file.bytes) } else { request })
        };
        self.patiently(request).await.map(drop)
    }

    /// The names of all files of a run or model.
    pub(super) async fn names(&self, place: &Place) -> Answer<BTreeSet<String>> {
        let (mut names, mut folders) = (BTreeSet::new(), vec![String::new()]);
        while let Some(inside) = folders.pop() {
            let found = match place {
                Place::Run { run, .. } => {
                    self.get("artifacts/list", &[("run_id", run.as_str()), ("path", inside.as_str())]).await?
                }
                Place::Model { model, .. } => {
                    let call = format!("logged-models/{model}/artifacts/directories");
                    self.get(&call, &[("artifact_directory_path", inside.as_str())]).await?
                }
            };
            for entry in found["files"].as_array().into_iter().flatten() {
                let name = word(&entry["path"]);
                match entry["is_dir"] == true {
                    true => folders.push(name),
                    false => drop(names.insert(name)),
                }
            }
        }
        Ok(names)
    }

    /// The marks of all files of a run or model, read back, by name.
    pub(super) async fn marks(&self, place: &Place) -> Answer<BTreeMap<String, String>> {
        let mut marks = BTreeMap::new();
        for name in self.names(place).await? {
            let mark = self.mark(place, &name).await?;
            marks.insert(name, mark);
        }
        Ok(marks)
    }

    /// What tells a file that is here from another.
    pub(super) async fn mark(&self, place: &Place, name: &str) -> Answer<String> {
        let path = self.file(place, name);
        let mut answer = self.patiently(async || Ok(self.client.request(Method::GET, &path))).await?;
        let (mut bytes, mut sum) = (0, Context::new(&SHA256));
        while let Some(chunk) = answer.chunk().await.map_err(|source| self.client.unreachable(source))? {
            bytes += chunk.len() as u64;
            sum.update(&chunk);
        }
        Ok(file_mark(bytes, sum))
    }

    fn file(&self, place: &Place, name: &str) -> String {
        let folder = match place {
            Place::Run { number, run } => format!("{number}/{run}"),
            Place::Model { number, model } => format!("{number}/models/{model}"),
        };
        let parts: Vec<String> = name.split('/').map(|part| utf8_percent_encode(part, SEGMENT).to_string()).collect();
        format!("{}/mlflow-artifacts/artifacts/{folder}/artifacts/{}", self.root, parts.join("/"))
    }

    /// Sends a request, again and again where the server is asked too often.
    async fn patiently(&self, request: impl AsyncFn() -> Answer<RequestBuilder>) -> Answer<Response> {
        let (wait, times) = PATIENCE;
        for _ in 0..times {
            match self.client.send(request().await?).await {
                Err(ClientError::Refused { status: 429, .. }) => tokio::time::sleep(wait).await,
                answer => return answer,
            }
        }
        self.client.send(request().await?).await
    }

    async fn json(&self, answer: Response) -> Answer {
        answer.json().await.map_err(|source| self.client.unreachable(source))
    }
}

/// What a refusal says, where it is about one thing only and the others may go on.
pub(super) fn reason(error: &ClientError) -> Option<String> {
    match error {
        ClientError::Refused { status: 400 | 404 | 409 | 413, message, .. } => Some(format!("refused: {message}")),
        ClientError::File { path, source } => {
            Some(format!("cannot read `{}`: {}", path.display(), crate::failure::io_words(source)))
        }
        _ => None,
    }
}

/// The same; whatever else went wrong ends the import.
pub(super) fn refusal(error: ClientError) -> Done<String> {
    match (reason(&error), &error) {
        (Some(reason), _) => Ok(reason),
        (None, ClientError::Refused { status: 403, .. }) => {
            Err(Failure::from(error).hint("importing needs the role of an owner of the workspace"))
        }
        _ => Err(error.into()),
    }
}

/// `[{"key": …, "value": …}]`.
pub(super) fn pairs<'a>(texts: impl IntoIterator<Item = (&'a String, &'a String)>) -> Value {
    texts.into_iter().map(|(key, value)| json!({"key": key, "value": value})).collect()
}

/// The reverse.
pub(super) fn texts(pairs: &Value) -> BTreeMap<String, String> {
    let text = |pair: &Value, key: &str| pair[key].as_str().unwrap_or_default().to_owned();
    pairs.as_array().into_iter().flatten().map(|pair| (text(pair, "key"), text(pair, "value"))).collect()
}

/// A point as it is sent.
pub(super) fn sent(key: &str, point: &Point) -> Value {
    let value = if point.value.is_nan() { json!("NaN") } else { json!(point.value) };
    json!({"key": key, "value": value, "timestamp": point.timestamp_ms, "step": point.step})
}

/// A point as it comes back.
pub(super) fn point(shown: &Value) -> Point {
    Point {
        value: shown["value"].as_f64().unwrap_or(f64::NAN),
        timestamp_ms: shown["timestamp"].as_i64().unwrap_or(0),
        step: shown["step"].as_i64().unwrap_or(0),
    }
}

/// A value of an answer as text; nothing where there is none.
pub(super) fn word(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An object of what is not empty.
pub(super) fn object<'a>(pairs: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let says = |value: &Value| !value.is_null() && *value != "" && *value != json!([]);
    let kept: Map<String, Value> =
        pairs.into_iter().filter(|(_, value)| says(value)).map(|(key, value)| (key.to_owned(), value)).collect();
    Value::Object(kept)
}
