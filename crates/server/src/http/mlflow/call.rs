//! A call: who asks, in which workspace, with which arguments. Arguments come in a body or in a query, and are read alike.

mod values;

pub(super) use values::{experiment_number, number, pair_of, whole, whole_number};

use super::fault::{Fault, read};
use crate::{
    app::{App, scope},
    auth::{Caller, Who},
};
use axum::{
    RequestExt,
    body::Bytes,
    extract::{FromRequest, FromRequestParts, Path, Query, Request},
    http::{Uri, header, request::Parts},
};
use domain::tracking::limits::{self, Search};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use store::{Error, RunRow, Tx, WorkspaceRow};

/// Who asks, and in which workspace.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) caller: Caller,
    pub(crate) workspace: Arc<WorkspaceRow>,
    /// Azure's plugin asks, which names artifacts in its own way.
    pub(crate) plugin: bool,
    /// Where the plugin finds this workspace, in its own scheme.
    pub(crate) plugin_root: Arc<str>,
}

/// An asker and what is asked.
pub(crate) struct Call {
    pub(crate) by: Asker,
    pub(crate) args: Map<String, Value>,
    /// The arguments are a query's, where one value may stand for a list.
    query: bool,
}

#[derive(Deserialize)]
struct Place {
    #[serde(default)]
    workspace: String,
}

impl FromRequestParts<App> for Asker {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Asker, Fault> {
        let place = Path::<Place>::from_request_parts(parts, app).await.ok();
        let name = place.map(|Path(place)| place.workspace).filter(|name| !name.is_empty());
        let workspace = app.workspace(name.as_deref().unwrap_or(&app.settings.workspace)).await?;
        let caller = parts.extensions.get::<Caller>().cloned().ok_or_else(|| Fault::forbidden("a token is needed"))?;
        let host = app.url.split_once("://").map_or(app.url.as_str(), |(_, host)| host);
        let plugin_root = format!("azureml://{host}/mlflow/v2.0{}", scope(&workspace).path()).into();
        let plugin = parts.uri.path().starts_with("/mlflow/v2.0/");
        let asker = Asker { caller, workspace, plugin, plugin_root };
        asker.still_runs(app).await?;
        Ok(asker)
    }
}

impl FromRequest<App> for Call {
    type Rejection = Fault;

    async fn from_request(mut request: Request, app: &App) -> Result<Call, Fault> {
        let by = request.extract_parts_with_state::<Asker, _>(app).await?;
        let query = request.method() == axum::http::Method::GET;
        let args = match query {
            true => asked(request.uri()),
            false => object(&body(request, app).await?)?,
        };
        Ok(Call { by, args, query })
    }
}

/// The parameters of a query; one that comes more than once is a list.
fn asked(uri: &Uri) -> Map<String, Value> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri).unwrap_or_default();
    let mut args = Map::new();
    for (key, value) in pairs.0 {
        let value = Value::String(value);
        match args.get_mut(&key) {
            None => drop(args.insert(key, value)),
            Some(Value::Array(list)) => list.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    args
}

/// A body's object. No body is an empty one; an object inside a text is that object.
fn object(bytes: &[u8]) -> Result<Map<String, Value>, Fault> {
    if bytes.is_empty() {
        return Ok(Map::new());
    }
    let bad = |error| Fault::invalid(format!("the body cannot be parsed as JSON: {error}"));
    match serde_json::from_slice(bytes).map_err(bad)? {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(Map::new()),
        Value::String(inner) => serde_json::from_str(&inner).map_err(bad),
        _ => Err(Fault::invalid("the body must be a JSON object")),
    }
}

/// The whole body of a request that says it is JSON.
pub(super) async fn body(request: Request, app: &App) -> Result<Bytes, Fault> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let bytes = Bytes::from_request(request, app)
        .await
        .map_err(|rejected| Fault::invalid(format!("the body cannot be read: {}", rejected.body_text())))?;
    match kind {
        _ if bytes.is_empty() => Ok(bytes),
        None => Err(Fault::invalid("Bad Request. Content-Type header is missing.")),
        Some(kind) if kind.to_ascii_lowercase().starts_with("application/json") => Ok(bytes),
        Some(kind) => {
            let kind: String = kind.chars().take(100).collect();
            Err(Fault::invalid(format!("the body must be of content type `application/json`, not `{kind}`")))
        }
    }
}

impl Asker {
    pub(super) fn workspace(&self) -> &str {
        &self.workspace.name
    }

    /// The token of a job ends with the job.
    async fn still_runs(&self, app: &App) -> Result<(), Fault> {
        let Who::Job { workspace, job } = &self.caller.who else { return Ok(()) };
        let (place, name) = (workspace.clone(), job.clone());
        let over = move |tx: &mut Tx<'_>| Ok(tx.job(&place, &name)?.is_none_or(|row| row.job.state.is_ended()));
        match read(app, over).await? {
            false => Ok(()),
            true => Err(Fault::forbidden(format!("job `{job}` has ended, and its token with it"))),
        }
    }

    /// The run, if the asker may see it.
    pub(super) fn run(&self, tx: &mut Tx<'_>, run_id: &str) -> Result<RunRow, Fault> {
        let missing = || Fault::missing(format!("Run with id={run_id} not found"));
        let row = tx.run(self.workspace(), run_id)?.ok_or_else(missing)?;
        match &self.caller.who {
            Who::Job { job, .. } if !belongs(tx, &row, job)? => {
                Err(Fault::forbidden(format!("the token of job `{job}` does not open run `{run_id}`")))
            }
            _ => Ok(row),
        }
    }

    /// The run, if it may be written to.
    pub(super) fn active_run(&self, tx: &mut Tx<'_>, run_id: &str) -> Result<RunRow, Fault> {
        let row = self.run(tx, run_id)?;
        let state = "must be in the 'active' state. Current state is deleted.";
        if row.deleted_at.is_some() { Err(Fault::invalid(format!("The run {run_id} {state}"))) } else { Ok(row) }
    }
}

/// Whether a run is a job's own, or one below it.
pub(super) fn belongs(tx: &mut Tx<'_>, row: &RunRow, job: &str) -> Result<bool, Error> {
    let mut at = row.clone();
    for _ in 0..DEEPEST {
        if at.run_id == job {
            return Ok(true);
        }
        let parent = tx.tags_of(&[at.seq])?.remove(&at.seq).and_then(|mut tags| tags.remove(PARENT));
        let Some(parent) = parent else { return Ok(false) };
        match tx.run(&row.workspace, &parent)? {
            Some(above) => at = above,
            None => return Ok(false),
        }
    }
    Ok(false)
}

/// How far below a job a run may be and still be its own.
const DEEPEST: usize = 16;
/// The tag that names the run above.
pub(super) const PARENT: &str = "mlflow.parentRunId";

impl Call {
    /// Text that must be there and not empty.
    pub(super) fn need(&self, key: &str) -> Result<String, Fault> {
        self.text(key)?.filter(|text| !text.is_empty()).ok_or_else(|| Fault::required(key))
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Fault> {
        match self.args.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Array(many)) if self.query => Ok(many.first().and_then(Value::as_str).map(str::to_owned)),
            Some(other) => Err(Fault::mistyped(key, other)),
        }
    }

    /// The run a question names, under its new or its old name.
    pub(super) fn run_id(&self) -> Result<String, Fault> {
        match self.text("run_id")?.filter(|id| !id.is_empty()) {
            Some(id) => Ok(id),
            None => self.need("run_uuid").map_err(|_| Fault::required("run_id")),
        }
    }

    /// Text, empty where there is none.
    pub(super) fn word(&self, key: &str) -> Result<String, Fault> {
        Ok(self.text(key)?.unwrap_or_default())
    }

    /// A whole number; a fraction loses its rest.
    pub(super) fn int(&self, key: &str) -> Result<Option<i64>, Fault> {
        match self.args.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => whole(value).map(Some).ok_or_else(|| Fault::mistyped(key, value)),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, Fault> {
        match self.args.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(word)) if word.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(word)) if word.eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(Fault::mistyped(key, other)),
        }
    }

    pub(super) fn list(&self, key: &str) -> Result<Vec<Value>, Fault> {
        match self.args.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(one @ Value::String(_)) if self.query => Ok(vec![one.clone()]),
            Some(other) => Err(Fault::mistyped(key, other)),
        }
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, Fault> {
        let text = |value: Value| match value {
            Value::String(text) => Ok(text),
            other => Err(Fault::mistyped(key, &other)),
        };
        self.list(key)?.into_iter().map(text).collect()
    }

    /// Keys and values under `key`; what they mean is checked by `limits`.
    pub(super) fn pairs(&self, key: &'static str) -> Result<Vec<(String, String)>, Fault> {
        self.list(key)?.iter().enumerate().map(|(at, pair)| pair_of(key, at, pair)).collect()
    }

    /// How many results a page has; `None` for all of them.
    pub(super) fn most(&self, search: Search) -> Result<Option<usize>, Fault> {
        Ok(limits::max_results(search, self.int("max_results")?)?)
    }
}
