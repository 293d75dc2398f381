//! Batch endpoints that are called: every call becomes one job, which goes on by itself.
//!
//! Invariants: a call that is repeated with its key finds the job it made; what is looked up for a job is looked up when
//! it is accepted, so a deployment may change or go while its jobs run.

mod work;

use super::{Kind, find};
use crate::{
    app::{App, scope},
    auth::Caller,
    http::{
        Asked, At, Body,
        change::{self, Halt},
        jobs::{Submitted, submit},
        paging::{Cut, Paging},
        views,
    },
    problem::Problem,
    resolve,
};
use api::{
    arm::{PROVIDER, component::ANONYMOUS, system_data, tree::some},
    blob::sha256,
};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, Uri},
};
use domain::{JobName, spec::Mistake};
use serde_json::{Value, json};
use std::sync::Arc;
use store::{AssetKey, JobFilter, JobRow, RecordKey, Tx, WorkspaceRow};
use work::{Call, Work, field};

/// By which an endpoint and a deployment find their jobs.
const ENDPOINT_TAG: &str = "peregrine.batch_endpoint";
const DEPLOYMENT_TAG: &str = "peregrine.batch_deployment";
/// Where a job keeps the key of the call that made it.
const REQUEST: &str = "peregrine.request_id";
/// Headers that carry such a key; the first is what the SDK sends.
const KEYS: [&str; 3] = ["repeatability_request-id", "repeatability-request-id", "idempotency-key"];
/// The header that names a deployment.
const DEPLOYMENT: &str = "azureml-model-deployment";

/// What is asked of a batch endpoint.
pub(crate) struct Question {
    pub(crate) endpoint: RecordKey,
    /// The endpoint's default where it is absent.
    pub(crate) deployment: Option<String>,
    /// The `properties` of the call.
    pub(crate) sent: Value,
    /// The same key is the same job.
    pub(crate) key: Option<String>,
    pub(crate) by: String,
}

/// Runs a batch endpoint once.
pub(crate) async fn run_batch(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let sent = field(&body, "properties").cloned().unwrap_or_else(|| json!({}));
    let question = Question {
        endpoint: Kind::BatchEndpoint.key(&workspace.name, &at),
        deployment: text(DEPLOYMENT).filter(|name| !name.is_empty()),
        key: KEYS.iter().find_map(|name| text(name)).filter(|key| !key.is_empty()),
        by: caller.name,
        sent: sent.clone(),
    };
    app.until_capacity_is_known().await;
    let (then, place) = (app.clone(), Arc::clone(&workspace));
    let (row, fresh) = change::change(&app, move |tx| invoke(&then, &place, tx, &question)).await?;
    if fresh {
        app.metrics.accepted.inc();
    }
    let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(view(&app, &workspace, &row, &sent))))
}

/// The job of a call, and whether this call made it.
pub(crate) fn invoke(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    question: &Question,
) -> Result<(JobRow, bool), Halt> {
    let endpoint = &question.endpoint;
    let record = find(tx, Kind::BatchEndpoint, endpoint)?;
    let record: Value = serde_json::from_str(&record.body).unwrap_or_default();
    let default = record["properties"]["defaults"]["deploymentName"].as_str().filter(|name| !name.is_empty());
    let Some(deployment) = question.deployment.as_deref().or(default) else {
        let message = format!(
            "batch endpoint `{}` has no default deployment; name one in the header `{DEPLOYMENT}`, or set `defaults.deployment_name`",
            endpoint.name
        );
        return Err(Problem::bad(message).into());
    };
    let key = deployment_key(endpoint, deployment);
    let name = job_name(app, question)?;
    if let Some(row) = tx.job(&workspace.name, name.as_str())? {
        let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
        let same = question.key.is_some() && body["properties"][REQUEST].as_str() == question.key.as_deref();
        let message = format!("there is a job `{name}` already; give this call another `name`");
        return if same { Ok((row, false)) } else { Err(Problem::conflict(message).into()) };
    }
    let found = find(tx, Kind::BatchDeployment, &key)?;
    let found: Value = serde_json::from_str(&found.body).unwrap_or_default();
    let mut job = prepared(app, workspace, tx, &key, &found["properties"], (&question.sent, &question.by))?;
    if let Some(request) = &question.key {
        job["properties"][REQUEST] = json!(request);
    }
    match submit(app, workspace, tx, name, &job, question.by.clone())? {
        Submitted::Accepted(row) => Ok((*row, true)),
        Submitted::Changed(row) => Ok((*row, false)),
        Submitted::Refused(problem) => Err(problem.into()),
    }
}

/// Refuses a model deployment whose jobs could never be accepted. What a pipeline needs is known only when it is called.
pub(super) fn deploy(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (key, properties, by): (&RecordKey, &Value, &str),
) -> Result<(), Halt> {
    if some(properties, "deploymentConfiguration").is_some() {
        return Ok(());
    }
    let refused = |mistakes: &[Mistake]| Problem::mistakes(&Kind::BatchDeployment.called(key), mistakes);
    let Some(model) = work::model(properties) else {
        let missing = Mistake::new("properties.model", "there is no model", "name one, or give a `component`");
        return Err(refused(&[missing]).into());
    };
    // Any data does; the model is there for certain.
    let sent = json!({"inputData": {"data": {"jobInputType": "UriFolder", "uri": model}}});
    let job = prepared(app, workspace, tx, key, properties, (&sent, by))?;
    let name = JobName::parse("batchscoring").expect("the word is a name");
    match resolve::weave(app, workspace, tx, &name, &job)? {
        Ok(_) => Ok(()),
        Err(mut mistakes) => {
            for mistake in &mut mistakes {
                mistake.key = mistake.key.replace("jobs.batchscoring.", "properties.");
            }
            Err(refused(&mistakes).into())
        }
    }
}

/// The job of a call, with the component it names in its place.
fn prepared(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    key: &RecordKey,
    properties: &Value,
    (sent, by): (&Value, &str),
) -> Result<Value, Halt> {
    let is_mlflow = match work::model(properties) {
        Some(model) => resolve::is_mlflow(app, workspace, tx, &model)?,
        None => false,
    };
    let call = Call { endpoint: &key.parent, deployment: &key.name, record: properties, sent, is_mlflow };
    let what = Kind::BatchDeployment.called(key);
    let Work { mut job, component } =
        work::work(&call).map_err(|mistakes| Problem::mistakes(&format!("the call of {what}"), &mistakes))?;
    if let Some(component) = component {
        job["jobs"]["batchscoring"]["componentId"] = json!(register(app, workspace, tx, &component, by)?);
    }
    Ok(job)
}

/// Keeps a component without a name of its own; its id.
fn register(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    component: &Value,
    by: &str,
) -> Result<String, store::Error> {
    let version = sha256(component.to_string().as_bytes());
    let id = format!("{}/components/{ANONYMOUS}/versions/{version}", scope(workspace).path());
    let key = AssetKey {
        workspace: workspace.name.clone(),
        kind: "components".to_owned(),
        name: ANONYMOUS.to_owned(),
        version,
    };
    if tx.asset(&key)?.is_none() {
        let body = json!({"componentSpec": component, "isAnonymous": true, "properties": {}, "tags": {}});
        tx.insert_asset(&key, &body.to_string(), None, by, app.now())?;
    }
    Ok(id)
}

fn deployment_key(endpoint: &RecordKey, name: &str) -> RecordKey {
    RecordKey {
        workspace: endpoint.workspace.clone(),
        kind: Kind::BatchDeployment.table().to_owned(),
        parent: endpoint.name.clone(),
        name: name.to_owned(),
    }
}

/// As the call says; else what follows from its key; else one that nobody has.
fn job_name(app: &App, question: &Question) -> Result<JobName, Problem> {
    let digest = || match &question.key {
        Some(key) => sha256(format!("{}\n{key}", question.endpoint.name).as_bytes())[..24].to_owned(),
        None => store::secrets::hex(&app.store.keyring().random::<12>()),
    };
    let text = match field(&question.sent, "name").and_then(Value::as_str).filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => format!("batchjob-{}", digest()),
    };
    JobName::parse(&text).map_err(|bad| Problem::bad(bad.to_string()))
}

/// The jobs that an endpoint has started, or one deployment of it; newest first.
pub(crate) async fn batch_jobs(
    State(app): State<App>,
    Path(at): Path<At>,
    uri: Uri,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let paging = Paging::of(&asked)?;
    let key = Kind::BatchEndpoint.key(&workspace.name, &at);
    let tag = match at.deployment.as_str() {
        "" => format!("{ENDPOINT_TAG}={}", key.name),
        deployment => format!("{DEPLOYMENT_TAG}={}/{deployment}", key.name),
    };
    let filter = JobFilter {
        workspace: workspace.name.clone(),
        tag: Some(tag),
        before: paging.row()?,
        limit: i64::try_from(paging.limit).unwrap_or(i64::MAX),
        ..JobFilter::default()
    };
    let page = change::look(&app, move |tx| {
        find(tx, Kind::BatchEndpoint, &key)?;
        if !at.deployment.is_empty() {
            find(tx, Kind::BatchDeployment, &deployment_key(&key, &at.deployment))?;
        }
        Ok(tx.jobs(&filter)?)
    })
    .await?;
    let scope = scope(&workspace);
    let cut = Cut { items: page.rows, next: page.next.map(|last| last.to_string()) };
    Ok(Json(cut.shown(&app, &uri, &asked, |row| views::job(&app, &scope, row))))
}

/// A job in the words of batch endpoints.
fn view(app: &App, workspace: &WorkspaceRow, row: &JobRow, sent: &Value) -> Value {
    let name = &row.job.name;
    json!({
        "id": format!("{}/jobs/{name}", scope(workspace).path()), "name": name,
        "type": format!("{PROVIDER}/workspaces/batchEndpoints/jobs"),
        "systemData": system_data(row.job.created_at, &row.created_by, row.changed_at),
        "properties": {
            "status": views::status(app, row), "name": name, "inputData": field(sent, "inputData"),
            "outputData": field(sent, "outputData"), "interactionEndpoints": {}, "tags": {}, "properties": {},
        },
    })
}
