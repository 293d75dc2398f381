//! Compute targets as resources.

use super::{LOCAL, check, kubernetes::On};
use crate::{
    app::{App, scope},
    http::change,
};
use api::arm::{PROVIDER, system_data};
use domain::{Job, JobState, Timestamp};
use serde_json::{Map, Value, json};
use store::{ComputeRow, InUse, NodeRow, WorkspaceRow};

/// A node not heard of for this long is shown as not answering.
const SILENT_MS: i64 = 30_000;

pub(super) fn id(workspace: &WorkspaceRow, name: &str) -> String {
    format!("{}/computes/{name}", scope(workspace).path())
}

pub(super) fn mark(row: &ComputeRow) -> String {
    change::mark(&[&row.body, &row.changed_at.0.to_string()])
}

/// A target as its client sent it, with what the server knows added.
pub(super) fn of(workspace: &WorkspaceRow, row: &ComputeRow, on: Option<&On>) -> Value {
    let mut view: Map<String, Value> = serde_json::from_str(&row.body).unwrap_or_default();
    let mut properties = match view.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let kind = check::kind_of(row);
    for (key, value) in [
        ("computeLocation", json!("local")),
        ("description", Value::Null),
        ("resourceId", Value::Null),
        ("disableLocalAuth", Value::Null),
    ] {
        properties.entry(key).or_insert(value);
    }
    if let Some(on) = on {
        let leaving = properties.remove("deleting").is_some();
        properties.remove("forced");
        let state = if leaving { "Deleting" } else { on.target.state.as_str() };
        properties.insert("provisioningState".into(), json!(state));
        properties.insert("provisioningErrors".into(), on.errors());
    } else if check::runs_here(row) || check::is_pool(row) {
        properties.insert("provisioningState".into(), json!("Succeeded"));
        properties.insert("provisioningErrors".into(), Value::Null);
    } else {
        properties.insert("provisioningState".into(), json!("Unknown"));
        properties.insert("provisioningErrors".into(), cannot_run(&row.name, &kind));
    }
    properties.insert("isAttachedCompute".into(), json!(check::find(&kind).is_some_and(|kind| kind.attached)));
    properties.insert("createdOn".into(), json!(row.created_at.iso()));
    properties.insert("modifiedOn".into(), json!(row.changed_at.iso()));
    let inner = properties.entry("properties").or_insert_with(|| json!({}));
    if inner.is_null() {
        *inner = json!({});
    }
    let public = "enableNodePublicIp";
    if kind == super::managed::KIND && inner["subnet"].is_null() && inner[public] == json!(true) {
        // A client that sends back what it was shown would look for the network that this speaks of.
        inner.as_object_mut().map(|inner| inner.remove(public));
    }
    counted(&kind, inner, row.changed_at);
    if let Some(on) = on {
        on.describe(inner);
    }
    view.entry("location").or_insert_with(|| json!("local"));
    if !view.get("tags").is_some_and(Value::is_object) {
        view.insert("tags".into(), json!({}));
    }
    for (key, value) in [
        ("id", json!(id(workspace, &row.name))),
        ("name", json!(row.name)),
        ("type", json!(format!("{PROVIDER}/workspaces/computes"))),
        ("etag", json!(mark(row))),
        ("systemData", system_data(row.created_at, LOCAL, row.changed_at)),
        ("properties", Value::Object(properties)),
    ] {
        view.insert(key.into(), value);
    }
    Value::Object(view)
}

/// In the place where clients look for what went wrong.
fn cannot_run(name: &str, kind: &str) -> Value {
    let message = format!(
        "`{name}` is kept as a record: targets of type `{kind}` cannot run work yet; run jobs on `local`, the machine of \
         this server"
    );
    json!([{"error": {"code": "CannotRunYet", "message": message, "details": []}}])
}

/// The numbers clients look for: nothing is allocated.
fn counted(kind: &str, inner: &mut Value, changed_at: Timestamp) {
    match kind {
        "AmlCompute" => {
            let none = json!({
                "idleNodeCount": 0, "runningNodeCount": 0, "preparingNodeCount": 0, "unusableNodeCount": 0,
                "leavingNodeCount": 0, "preemptedNodeCount": 0,
            });
            for (key, value) in [
                ("allocationState", json!("Steady")),
                ("allocationStateTransitionTime", json!(changed_at.iso())),
                ("currentNodeCount", json!(0)),
                ("targetNodeCount", json!(0)),
                ("nodeStateCounts", none),
            ] {
                inner[key] = value;
            }
            for (key, value) in [("vmPriority", json!("Dedicated")), ("osType", json!("Linux"))] {
                if inner.get(key).is_none_or(Value::is_null) {
                    inner[key] = value;
                }
            }
        }
        "ComputeInstance" => inner["state"] = json!("Unknown"),
        _ => {}
    }
}

pub(super) fn local(app: &App, workspace: &WorkspaceRow, nodes: &[NodeRow], in_use: &InUse) -> Value {
    let free = nodes.first().map(|row| row.facts.capacity.minus(&in_use.resources));
    let types: Map<String, Value> = app
        .instance_types()
        .into_iter()
        .map(|kind| {
            let resources = json!({"requests": amounts(&kind.requests), "limits": kind.limits.as_ref().map(amounts)});
            let (fits, ever) = (
                free.map(|free| kind.requests.count_in(&free)),
                nodes.first().map(|row| kind.requests.fits_in(&row.facts.capacity)),
            );
            let shown = json!({"nodeSelector": null, "resources": resources, "fitsNow": fits, "fitsEver": ever});
            (kind.name, shown)
        })
        .collect();
    let state = if nodes.iter().any(|row| answers(row, app.now())) { "Succeeded" } else { "Creating" };
    let created_at = nodes.iter().map(|row| row.seen_at).min().unwrap_or(workspace.created_at);
    json!({
        "id": id(workspace, LOCAL), "name": LOCAL, "location": "local",
        "type": format!("{PROVIDER}/workspaces/computes"), "systemData": system_data(workspace.created_at, LOCAL, created_at),
        "properties": {
            "computeType": "Local", "provisioningState": state, "isAttachedCompute": false, "createdOn": workspace.created_at.iso(),
            "description": "the machine this server runs on", "resourceId": null,
            "properties": {
                "defaultInstanceType": domain::resources::DEFAULT_INSTANCE_TYPE, "instanceTypes": types,
                "capacity": nodes.first().map(|row| amounts(&row.facts.capacity)),
                "gpuModels": nodes.first().map(|row| &row.facts.gpu_models),
                "isolation": if app.settings.isolation_required { "required" } else { "optional" },
            },
        },
    })
}

/// The nodes, as one workspace sees them: that they are busy, but not with what if it is another's.
pub(super) fn nodes(nodes: &[NodeRow], active: &[Job], workspace: &str, now: Timestamp) -> Vec<Value> {
    let mut at_work = active.iter().filter(|job| matches!(job.state, JobState::Running { .. })).peekable();
    let running = at_work.peek().is_some();
    let own = at_work.find(|job| job.workspace == workspace);
    let node = |row: &NodeRow| {
        let state = match (answers(row, now), running) {
            (false, _) => "unusable",
            (true, true) => "running",
            (true, false) => "idle",
        };
        json!({
            "nodeId": row.facts.node, "privateIpAddress": "127.0.0.1", "publicIpAddress": null, "port": null,
            "nodeState": state, "runId": own.map(|job| job.name.as_str()),
            "capacity": row.facts.capacity, "gpuModels": row.facts.gpu_models, "version": row.facts.version,
            "seenAt": row.seen_at.iso(),
        })
    };
    nodes.iter().map(node).collect()
}

fn answers(row: &NodeRow, now: Timestamp) -> bool {
    now.0 - row.seen_at.0 < SILENT_MS
}

pub(super) fn amounts(resources: &domain::Resources) -> Value {
    let mut out = json!({"cpu": format!("{}m", resources.cpu_milli)});
    if resources.memory_bytes > 0 {
        out["memory"] = json!(format!("{}Mi", resources.memory_bytes >> 20));
    }
    if resources.gpus > 0 {
        out["nvidia.com/gpu"] = json!(resources.gpus);
    }
    out
}
