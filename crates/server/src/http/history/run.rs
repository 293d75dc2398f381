//! A job as a run: the bodies of the run history service.

use super::outputs;
use crate::{
    app::{App, scope},
    http::{jobs::DEFAULT_EXPERIMENT, views},
};
use domain::{JobState, Outcome, Plan, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use store::{JobRow, WorkspaceRow};

/// How the types of outputs are spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// `uri_folder`: clients that name the version of this service.
    New,
    /// `UriFolder`: clients that do not.
    Old,
}

impl Spelling {
    pub(super) fn asked(asked: &HashMap<String, String>) -> Spelling {
        if asked.get("api-version").is_some_and(|version| version == "v1.0") { Spelling::New } else { Spelling::Old }
    }
}

/// The experiment a job belongs to.
pub(super) fn experiment(row: &JobRow) -> String {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    body.get("experimentName").and_then(Value::as_str).unwrap_or(DEFAULT_EXPERIMENT).to_owned()
}

pub(super) fn view(app: &App, workspace: &WorkspaceRow, row: &JobRow, plan: &Plan, spelling: Spelling) -> Value {
    let shown = views::job(app, &scope(workspace), row);
    let properties = &shown["properties"];
    let name = row.job.name.as_str();
    let state = &row.job.state;
    let parent = row.parent.as_ref().map(|part| part.name.as_str());
    json!({
        "runId": name, "runNumber": row.job.seq, "rootRunId": parent.unwrap_or(name), "parentRunId": parent, "runUuid": null,
        "experimentId": properties["experimentName"], "experimentName": properties["experimentName"],
        "status": properties["status"], "displayName": properties["displayName"], "name": null,
        "description": properties["description"], "tags": properties["tags"], "properties": properties["properties"],
        "hidden": row.archived, "runType": run_type(row), "dataContainerId": format!("dcid.{name}"),
        "createdUtc": row.job.created_at.iso(), "startTimeUtc": state.started_at().map(Timestamp::iso),
        "endTimeUtc": ended_at(state).map(Timestamp::iso), "lastModifiedUtc": row.changed_at.iso(),
        "createdBy": {"userName": row.created_by}, "userId": row.created_by,
        "target": row.target, "compute": {"target": row.target, "targetType": row.target},
        "services": {"Studio": {"type": "Studio", "endpoint": properties["services"]["Studio"]["endpoint"]}},
        "inputs": {}, "outputs": outputs::ids(workspace, row, plan, spelling),
        "error": error(state), "warnings": null, "uniqueChildRunComputeTargets": [],
    })
}

/// The word by which clients tell pipelines from what a node runs.
fn run_type(row: &JobRow) -> &'static str {
    match (row.kind.as_str(), &row.parent) {
        ("Pipeline", _) => "azureml.PipelineRun",
        ("Sweep", _) => "hyperdrive",
        (_, Some(_)) => "azureml.StepRun",
        (_, None) => "azureml.scriptrun",
    }
}

pub(super) fn details(app: &App, row: &JobRow, files: Map<String, Value>) -> Value {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let labels = |key: &str| body.get(key).filter(|value| value.is_object()).cloned().unwrap_or_else(|| json!({}));
    let state = &row.job.state;
    json!({
        "runId": row.job.name, "target": row.target, "status": views::status(app, row),
        "startTimeUtc": state.started_at().map(Timestamp::iso), "endTimeUtc": ended_at(state).map(Timestamp::iso),
        "error": error(state), "warnings": warnings(row), "tags": labels("tags"), "properties": labels("properties"),
        "inputDatasets": [], "outputDatasets": [], "runDefinition": null, "logFiles": files, "jobCost": null,
        "submittedBy": row.created_by,
    })
}

fn ended_at(state: &JobState) -> Option<Timestamp> {
    match state {
        JobState::Ended { at, .. } => Some(*at),
        _ => None,
    }
}

/// Why a run failed, with the end of its log.
fn error(state: &JobState) -> Value {
    let JobState::Ended { outcome: Outcome::Failed(failure), at, .. } = state else { return Value::Null };
    let domain::job::Failure { code, message, last_lines, .. } = failure;
    let details: Vec<Value> =
        (!last_lines.is_empty()).then(|| json!({"code": "LastLines", "message": last_lines})).into_iter().collect();
    json!({"error": {"code": code, "message": message, "details": details}, "time": at.iso()})
}

/// What a user should know of a run that is not an error.
fn warnings(row: &JobRow) -> Value {
    match &row.job.state {
        JobState::Ended { outcome: Outcome::Canceled { reason }, .. } => {
            json!([{"source": "peregrine", "message": reason}])
        }
        _ => json!([]),
    }
}
