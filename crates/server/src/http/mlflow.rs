//! MLflow's REST API. A job is its run; what was logged to either is seen in both.
//!
//! Answers and errors are in MLflow's own words, because its clients act on them. Invariant: a token of a job opens the
//! job's own run and the runs below it, and nothing else.

mod artifacts;
mod experiments;
mod log;
mod runs;
mod search;
mod view;

use crate::{
    app::App,
    auth::{Caller, Who},
    problem::Problem,
};
use axum::{
    Json, RequestExt,
    extract::{FromRequest, Path, Query, Request},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{MethodRouter, delete, get, post, put},
};
use domain::tracking::limits::Bad;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{collections::HashMap, sync::Arc};
use store::{RunRow, Tx, WorkspaceRow};

/// The handler of a call.
pub(crate) fn handler(id: &str) -> MethodRouter<App> {
    match id.trim_start_matches("mlflow_") {
        "experiment_create" => post(experiments::create),
        "experiment_get" => get(experiments::show),
        "experiment_by_name" => get(experiments::by_name),
        "experiment_search" => post(experiments::search),
        "experiment_search_get" => get(experiments::search),
        "experiment_update" => post(experiments::update),
        "experiment_delete" => post(experiments::delete),
        "experiment_restore" => post(experiments::restore),
        "experiment_set_tag" => post(experiments::set_tag),
        "experiment_delete_tag" => post(experiments::delete_tag),
        "run_create" => post(runs::create),
        "run_get" => get(runs::show),
        "run_update" => post(runs::update),
        "run_delete" => post(runs::delete),
        "run_restore" => post(runs::restore),
        "run_search" => post(search::runs),
        "log_metric" => post(log::metric),
        "log_param" => post(log::param),
        "set_tag" => post(log::set_tag),
        "delete_tag" => post(log::delete_tag),
        "log_batch" => post(log::batch),
        "log_inputs" => post(log::inputs),
        "log_model" => post(log::model),
        "log_outputs" => post(log::outputs),
        "history" => get(log::history),
        "history_bulk" => get(log::history_bulk),
        "artifact_list" => get(artifacts::list),
        "artifact_put" => put(artifacts::put),
        "artifact_get" => get(artifacts::get),
        "artifact_delete" => delete(artifacts::delete),
        "artifact_folder" => get(artifacts::folder),
        other => unreachable!("MLflow's call `{other}` has no handler"),
    }
}

/// A refusal in MLflow's envelope.
#[derive(Debug)]
pub(crate) struct Fault {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Fault {
    pub(crate) fn invalid(message: impl Into<String>) -> Fault {
        Fault { status: StatusCode::BAD_REQUEST, code: "INVALID_PARAMETER_VALUE", message: message.into() }
    }

    pub(crate) fn missing(message: impl Into<String>) -> Fault {
        Fault { status: StatusCode::NOT_FOUND, code: "RESOURCE_DOES_NOT_EXIST", message: message.into() }
    }

    pub(crate) fn exists(message: impl Into<String>) -> Fault {
        Fault { status: StatusCode::BAD_REQUEST, code: "RESOURCE_ALREADY_EXISTS", message: message.into() }
    }

    fn run(run_id: &str) -> Fault {
        Fault::missing(format!("Run with id={run_id} not found"))
    }

    fn forbidden(message: impl Into<String>) -> Fault {
        Fault { status: StatusCode::FORBIDDEN, code: "PERMISSION_DENIED", message: message.into() }
    }
}

impl From<Bad> for Fault {
    fn from(bad: Bad) -> Fault {
        Fault { status: StatusCode::BAD_REQUEST, code: bad.code.as_str(), message: bad.message }
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        let code = match problem.status {
            StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
            StatusCode::FORBIDDEN => "PERMISSION_DENIED",
            StatusCode::NOT_FOUND => "RESOURCE_DOES_NOT_EXIST",
            StatusCode::TOO_MANY_REQUESTS => "REQUEST_LIMIT_EXCEEDED",
            status if status.is_client_error() => "INVALID_PARAMETER_VALUE",
            StatusCode::SERVICE_UNAVAILABLE => "TEMPORARILY_UNAVAILABLE",
            _ => "INTERNAL_ERROR",
        };
        let (status, message) = (problem.status, problem.message.clone());
        if status.is_server_error() {
            // Logs the cause.
            drop(problem.into_response());
        }
        Fault { status, code, message }
    }
}

impl From<store::Error> for Fault {
    fn from(error: store::Error) -> Fault {
        Problem::from(error).into()
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        (self.status, Json(json!({"error_code": self.code, "message": self.message}))).into_response()
    }
}

type Answer = Result<Json<Value>, Fault>;

/// Nothing to say.
fn done() -> Json<Value> {
    Json(json!({}))
}

/// A call: who, in which workspace, with which arguments.
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) workspace: Arc<WorkspaceRow>,
    pub(crate) args: Map<String, Value>,
    /// Azure's plugin calls, which names artifacts in its own way.
    pub(crate) plugin: bool,
    /// `azureml://` and the address of this workspace under the plugin's prefix.
    base: String,
}

#[derive(Deserialize)]
struct Place {
    #[serde(default)]
    workspace: String,
}

/// The workspace a request stands under.
async fn workspace_of(app: &App, request: &mut Request) -> Result<Arc<WorkspaceRow>, Fault> {
    let place: Option<Path<Place>> = request.extract_parts().await.ok();
    let name = place.map(|Path(place)| place.workspace).filter(|name| !name.is_empty());
    Ok(app.workspace(name.as_deref().unwrap_or(&app.settings.workspace)).await?)
}

fn caller_of(request: &Request) -> Result<Caller, Fault> {
    let caller = request.extensions().get::<Caller>().cloned();
    caller.ok_or_else(|| Fault::forbidden("a token is needed"))
}

fn is_plugin(request: &Request) -> bool {
    request.uri().path().starts_with("/mlflow/v2.0/")
}

impl FromRequest<App> for Call {
    type Rejection = Fault;

    async fn from_request(mut request: Request, app: &App) -> Result<Call, Fault> {
        let workspace = workspace_of(app, &mut request).await?;
        let (caller, plugin) = (caller_of(&request)?, is_plugin(&request));
        let query: Query<HashMap<String, String>> = request.extract_parts().await.unwrap_or_default();
        let bytes = body_of(request, app).await?;
        let mut args: Map<String, Value> = match bytes.is_empty() {
            true => Map::new(),
            false => serde_json::from_slice(&bytes)
                .map_err(|error| Fault::invalid(format!("the body is not a JSON object: {error}")))?,
        };
        for (key, value) in query.0 {
            args.entry(key).or_insert(Value::String(value));
        }
        let host = app.url.split_once("://").map_or(app.url.as_str(), |(_, host)| host);
        let base = format!("azureml://{host}/mlflow/v2.0{}", crate::app::scope(&workspace).path());
        Ok(Call { caller, workspace, args, plugin, base })
    }
}

/// The whole body, which the reference server calls too large in the same words.
async fn body_of(request: Request, app: &App) -> Result<axum::body::Bytes, Fault> {
    axum::body::Bytes::from_request(request, app)
        .await
        .map_err(|rejected| Fault::invalid(format!("the body cannot be read: {}", rejected.body_text())))
}

impl Call {
    fn plugin_base(&self) -> &str {
        &self.base
    }

    /// Text that must be there.
    fn need(&self, key: &str) -> Result<String, Fault> {
        self.text(key)?.filter(|text| !text.is_empty()).ok_or_else(|| missing_value(key))
    }

    fn text(&self, key: &str) -> Result<Option<String>, Fault> {
        match self.args.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(bad_value(key, other)),
        }
    }

    fn int(&self, key: &str) -> Result<Option<i64>, Fault> {
        match self.args.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => int_of(value).map(Some).ok_or_else(|| bad_value(key, value)),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<Value>, Fault> {
        match self.args.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            // A query string has one value where a body has a list.
            Some(Value::String(text)) => Ok(vec![Value::String(text.clone())]),
            Some(other) => Err(bad_value(key, other)),
        }
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, Fault> {
        let text = |value: Value| match value {
            Value::String(text) => Ok(text),
            other => Err(bad_value(key, &other)),
        };
        self.list(key)?.into_iter().map(text).collect()
    }

    /// The run a call names, under its new or its old name.
    fn run_id(&self) -> Result<String, Fault> {
        match self.text("run_id")?.filter(|id| !id.is_empty()) {
            Some(id) => Ok(id),
            None => self.text("run_uuid")?.filter(|id| !id.is_empty()).ok_or_else(|| missing_value("run_id")),
        }
    }

    /// The number of the experiment a call names.
    fn experiment(&self, key: &str) -> Result<i64, Fault> {
        experiment_number(&self.need(key)?)
    }
}

/// An experiment's id is a number; one that is not is one that is not there.
fn experiment_number(id: &str) -> Result<i64, Fault> {
    id.parse().map_err(|_| Fault::missing(format!("No Experiment with id={id} exists")))
}

fn int_of(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().filter(|f| f.fract() == 0.0).map(|f| f as i64)),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn missing_value(key: &str) -> Fault {
    Fault::invalid(format!(
        "Missing value for required parameter '{key}'. See the API docs for more information about request parameters."
    ))
}

fn bad_value(key: &str, value: &Value) -> Fault {
    let shown: String = value.to_string().chars().take(200).collect();
    Fault::invalid(format!(
        "Invalid value {shown} for parameter '{key}' supplied. See the API docs for more information about request parameters."
    ))
}

/// The run, if the caller may see it.
fn find_run(tx: &mut Tx<'_>, workspace: &str, caller: &Caller, run_id: &str) -> Result<Result<RunRow, Fault>, store::Error> {
    let Some(row) = tx.run(workspace, run_id)? else { return Ok(Err(Fault::run(run_id))) };
    Ok(match &caller.who {
        Who::Job { job, .. } if !belongs(tx, &row, job)? => {
            Err(Fault::forbidden(format!("the token of job `{job}` does not open run `{run_id}`")))
        }
        _ => Ok(row),
    })
}

/// Whether a run is a job's own, or one below it.
fn belongs(tx: &mut Tx<'_>, row: &RunRow, job: &str) -> Result<bool, store::Error> {
    let mut at = row.clone();
    for _ in 0..16 {
        if at.run_id == job {
            return Ok(true);
        }
        let parent = tx.tags_of(&[at.seq])?.remove(&at.seq).and_then(|mut tags| tags.remove("mlflow.parentRunId"));
        let Some(parent) = parent else { return Ok(false) };
        match tx.run(&row.workspace, &parent)? {
            Some(above) => at = above,
            None => return Ok(false),
        }
    }
    Ok(false)
}
