//! Long-running operations. What is only kept as a record is done when it is answered; clients still ask, and are told so.
//!
//! Invariant: an operation is written in the transaction of the change it stands for.

use super::{At, workspaces::guid};
use crate::{app::App, auth::Caller, problem::Problem};
use api::arm::PROVIDER;
use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use domain::{Role, Timestamp};
use serde_json::{Value, json};
use store::{OperationRow, Tx};

/// Where clients ask after a change.
pub(crate) const ASYNC: &str = "azure-asyncoperation";
pub(crate) const LOCATION: &str = "location";

/// An operation to be, with its addresses.
#[derive(Clone)]
pub(crate) struct Ticket {
    id: String,
    base: String,
}

impl Ticket {
    pub(crate) fn new(app: &App, subscription: &str) -> Ticket {
        let base = format!("{}/subscriptions/{subscription}/providers/{PROVIDER}/locations/local", app.url);
        Ticket { id: guid(app.store.keyring().random()), base }
    }

    /// For `Azure-AsyncOperation`: the state of the operation.
    pub(crate) fn status_url(&self) -> String {
        format!("{}/operations/{}", self.base, self.id)
    }

    /// For `Location`: its result.
    pub(crate) fn result_url(&self) -> String {
        format!("{}/operationResults/{}", self.base, self.id)
    }

    /// Writes down that it is done.
    pub(crate) fn done(
        &self,
        tx: &mut Tx<'_>,
        workspace: &str,
        resource: &str,
        now: Timestamp,
    ) -> Result<(), store::Error> {
        self.begun(tx, workspace, resource, now)?;
        tx.end_operation(&self.id, None, now)
    }

    /// Writes down that it is under way.
    pub(crate) fn begun(
        &self,
        tx: &mut Tx<'_>,
        workspace: &str,
        resource: &str,
        now: Timestamp,
    ) -> Result<(), store::Error> {
        tx.insert_operation(&OperationRow {
            id: self.id.clone(),
            workspace: workspace.to_owned(),
            resource: resource.to_owned(),
            status: "InProgress".into(),
            error: None,
            started_at: now,
            ended_at: None,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

pub(crate) async fn show(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let row = find(&app, &at.id, &caller).await?;
    let running = row.status == "InProgress";
    let mut body = json!({
        "id": row.id, "name": row.id, "status": row.status, "startTime": row.started_at.iso(),
        "endTime": row.ended_at.map(Timestamp::iso), "percentComplete": if running { 50.0 } else { 100.0 },
        "properties": {"resourceId": row.resource},
    });
    if let Some(error) = row.error.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        body["error"] = error;
    }
    let mut answer = Json(body).into_response();
    if running {
        answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    Ok(answer)
}

/// The result of an operation that has none but having happened.
pub(crate) async fn result(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    let row = find(&app, &at.id, &caller).await?;
    match row.status.as_str() {
        "InProgress" => {
            let mut answer = StatusCode::ACCEPTED.into_response();
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            Ok(answer)
        }
        "Succeeded" => Ok(StatusCode::NO_CONTENT.into_response()),
        other => Err(Problem::conflict(format!("the operation on `{}` ended as `{other}`", row.resource))),
    }
}

/// An operation that concerns the caller. One on what is gone concerns whoever was given its id.
async fn find(app: &App, id: &str, caller: &Caller) -> Result<OperationRow, Problem> {
    let wanted = id.to_owned();
    let row = app.store.read(move |tx| tx.operation(&wanted)).await?;
    let row = row.filter(|row| row.workspace.is_empty() || caller.may(&row.workspace, Role::Reader));
    row.ok_or_else(|| Problem::not_found("operation", id))
}
