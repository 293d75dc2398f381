//! Rows as resources.

use super::change;
use crate::app::App;
use api::arm::{PROVIDER, Scope, system_data};
use domain::{JobState, Outcome};
use serde_json::{Map, Value, json};
use store::{AssetRow, JobRow, RecordRow};

/// A job: the body its client sent, with what the server knows added.
pub(crate) fn job(app: &App, scope: &Scope, row: &JobRow) -> Value {
    let mut properties: Map<String, Value> = serde_json::from_str(&row.body).unwrap_or_default();
    let id = format!("{}/jobs/{}", scope.path(), row.job.name);
    properties.insert("status".into(), json!(status(app, row)));
    properties.insert("isArchived".into(), json!(row.archived));
    for key in ["tags", "properties"] {
        if !properties.get(key).is_some_and(Value::is_object) {
            properties.insert(key.into(), json!({}));
        }
    }
    if properties.get("displayName").is_none_or(Value::is_null) {
        properties.insert("displayName".into(), json!(row.job.name));
    }
    if !properties.get("experimentName").is_some_and(Value::is_string) {
        properties.insert("experimentName".into(), json!(super::jobs::DEFAULT_EXPERIMENT));
    }
    // Clients add parameters of their own to the page's address.
    let page = format!("{}/studio/{}/jobs/{}?wsid={}", app.outside, scope.workspace, row.job.name, scope.path());
    let services = services(properties.remove("services"), page);
    properties.insert("services".into(), services);
    properties.insert("peregrine".into(), details(row));
    json!({
        "id": id, "name": row.job.name, "type": format!("{PROVIDER}/workspaces/jobs"),
        "systemData": system_data(row.job.created_at, &row.created_by, row.changed_at),
        "properties": properties,
    })
}

/// The services a job asked for and the page it is shown on. Clients look into each of them, and take one named
/// `Local` for an order to run the job themselves.
fn services(asked: Option<Value>, page: String) -> Value {
    let mut services = match asked {
        Some(Value::Object(asked)) => asked,
        _ => Map::new(),
    };
    services.retain(|name, service| name != "Local" && service.is_object());
    services.insert(
        "Studio".into(),
        json!({
            "jobServiceType": "Studio", "endpoint": page, "port": null, "status": null,
            "errorMessage": null, "properties": null, "nodes": null,
        }),
    );
    Value::Object(services)
}

/// The status word. Work whose agent has fallen silent may come back, or be found to be over.
pub(crate) fn status(app: &App, row: &JobRow) -> &'static str {
    let state = &row.job.state;
    let at_work = matches!(state, JobState::Preparing { .. } | JobState::Running { .. } | JobState::Finalizing { .. });
    let silent = || match row.cluster.as_str() {
        store::HERE => app.agent_is_silent(),
        cluster => app.cluster_is_silent(cluster),
    };
    if at_work && silent() { "NotResponding" } else { state.status() }
}

/// What Azure's body has no word for.
fn details(row: &JobRow) -> Value {
    let state = &row.job.state;
    let attempt = row.job.attempts.saturating_sub(1);
    let prefix = if attempt == 0 { String::new() } else { format!("retry-{attempt:03}/") };
    let mut out = json!({
        "phase": state.name(), "note": row.note, "target": row.target, "attempt": attempt, "attempts": row.job.attempts,
        "logs": format!("{prefix}user_logs"), "isolation": row.isolation,
    });
    if let Some(part) = &row.parent {
        (out["parent"], out["step"]) = (json!(part.name), json!(part.step));
    }
    if let Some(original) = &row.reused {
        out["reused"] = json!(original);
    }
    if let Some(at) = state.started_at() {
        out["startedAt"] = json!(at.iso());
    }
    if let JobState::Ended { outcome, at, .. } = state {
        out["endedAt"] = json!(at.iso());
        match outcome {
            Outcome::Failed(failure) => out["failure"] = json!(failure),
            Outcome::Canceled { reason } => out["reason"] = json!(reason),
            Outcome::Completed => {}
        }
    }
    out
}

pub(crate) fn asset(scope: &Scope, row: &AssetRow) -> Value {
    let mut properties: Map<String, Value> = serde_json::from_str(&row.body).unwrap_or_default();
    properties.insert("isArchived".into(), json!(row.archived));
    properties.insert("provisioningState".into(), json!("Succeeded"));
    match row.key.kind.as_str() {
        "environments" => {
            properties.insert("environmentType".into(), json!("UserCreated"));
            properties.entry("osType").or_insert_with(|| json!("Linux"));
        }
        "models" => {
            // Clients look into it without asking whether it is there.
            properties.entry("flavors").or_insert_with(|| json!({}));
        }
        _ => {}
    }
    json!({
        "id": scope.asset(&row.key.kind, &row.key.name, &row.key.version), "name": row.key.version,
        "type": scope.type_of(&format!("{}/versions", row.key.kind)), "etag": asset_mark(row),
        "systemData": system_data(row.created_at, &row.created_by, row.changed_at),
        "properties": properties,
    })
}

/// The mark of one state of a version.
pub(crate) fn asset_mark(row: &AssetRow) -> String {
    let (seq, at) = (row.seq.to_string(), row.changed_at.0.to_string());
    change::mark(&[&seq, &at, &row.archived.to_string(), &row.body])
}

/// One name of a kind of asset: its latest and next version, and what was said of the name itself.
pub(crate) struct Named {
    pub(crate) latest: AssetRow,
    pub(crate) next: i64,
    pub(crate) said: Option<RecordRow>,
}

impl Named {
    /// A name is out of sight when it was archived, or when every version of it was.
    pub(crate) fn archived(&self) -> bool {
        self.latest.archived || self.said.as_ref().is_some_and(|said| said.archived)
    }

    /// A field of the name, or of its latest version.
    pub(crate) fn field(&self, key: &str) -> Value {
        let said = self.said.as_ref().and_then(|said| serde_json::from_str::<Value>(&said.body).ok());
        let said = said.and_then(|said| said.get(key).filter(|value| !value.is_null()).cloned());
        let body: Value = serde_json::from_str(&self.latest.body).unwrap_or_default();
        said.or_else(|| body.get(key).cloned()).unwrap_or_default()
    }

    pub(crate) fn mark(&self) -> String {
        let version = self.said.as_ref().map_or(0, |said| said.version).to_string();
        change::mark(&[&asset_mark(&self.latest), &version])
    }

    pub(crate) fn view(&self, scope: &Scope) -> Value {
        let latest = &self.latest;
        let kind = &latest.key.kind;
        let mut properties = match self.said.as_ref().and_then(|said| serde_json::from_str(&said.body).ok()) {
            Some(Value::Object(said)) => said,
            _ => Map::new(),
        };
        for key in ["description", "tags", "properties", "dataType", "modelType"] {
            properties.insert(key.into(), self.field(key));
        }
        properties.insert("latestVersion".into(), json!(latest.key.version));
        properties.insert("nextVersion".into(), json!(self.next.to_string()));
        properties.insert("isArchived".into(), json!(self.archived()));
        json!({
            "id": scope.asset_name(kind, &latest.key.name), "name": latest.key.name,
            "type": scope.type_of(kind), "etag": self.mark(),
            "systemData": system_data(latest.created_at, &latest.created_by, latest.changed_at),
            "properties": properties,
        })
    }
}

/// A list, with the address of its next page.
pub(crate) fn page(items: Vec<Value>, next: Option<String>) -> Value {
    json!({"value": items, "nextLink": next})
}
