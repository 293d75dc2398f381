//! Attaching: a compute target becomes a namespace of a cluster, once everything that work needs there was seen to work.
//!
//! What the server knows by itself it says at once: whether the operator is there, and whether its clock is right. The
//! rest is put to the operator. One that is not there yet is waited for; `controller/tend.rs` ends that.

use crate::{
    app::App,
    auth::Caller,
    http::{change::Halt, operations::Ticket, workspaces::guid},
    problem::Problem,
};
use api::arm::{datastore::snake, text};
use domain::{
    Role, Timestamp,
    cluster::{ClusterTarget, Finding},
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::{ClusterRow, ComputeRow, TargetRow, TargetState, Tx, WorkspaceRow};

/// A clock that is off by more makes certificates and logs useless.
const SKEW_MS: i64 = 300_000;
/// What a record is shown with and is not kept of it.
pub(crate) const SHOWN: [&str; 7] = ["instanceTypes", "checks", "nodes", "capacity", "cluster", "seenAt", "keptData"];
/// What of a target has a meaning of its own; everything else is a setting.
const KNOWN: [&str; 2] = ["namespace", "defaultInstanceType"];

/// A target as it is to be kept, with what the server knows by itself.
pub(crate) struct Attached {
    row: TargetRow,
    findings: Vec<Finding>,
    /// Its cluster was not heard of lately and may be in a moment, as after `extension install`.
    waits: bool,
}

/// What a target becomes that is a place of its own, looked after from here.
pub(crate) fn site(
    app: &App,
    (workspace, row): (&WorkspaceRow, &ComputeRow),
    ticket: &Ticket,
    now: Timestamp,
) -> Attached {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let row = TargetRow {
        workspace: workspace.name.clone(),
        cluster: store::site_name(&workspace.name, &row.name),
        target: target_of(workspace, &row.name, &body),
        state: TargetState::Creating,
        findings: Vec::new(),
        check_id: guid(app.store.keyring().random()),
        operation: ticket.id().to_owned(),
        checked_at: now,
    };
    Attached { row, findings: Vec::new(), waits: false }
}

/// What a compute target becomes on its cluster, or why it is refused. Changes nothing.
pub(crate) fn plan(
    app: &App,
    tx: &mut Tx<'_>,
    (workspace, row, caller): (&WorkspaceRow, &ComputeRow, &Caller),
    ticket: &Ticket,
    now: Timestamp,
) -> Result<Attached, Halt> {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let cluster = choose(tx, &body)?;
    let target = target_of(workspace, &row.name, &body);
    let before = tx.target(&workspace.name, &row.name)?;
    let name = cluster.as_ref().map_or_else(|(named, _)| named.clone(), |cluster| cluster.name.clone());
    stays(tx, before.as_ref(), &name, &target)?;
    let same = |row: &TargetRow| row.cluster == name && row.target.namespace == target.namespace;
    if !before.as_ref().is_some_and(same) {
        is_free(tx, caller, &name, &target)?;
    }
    let findings = match &cluster {
        Ok(cluster) => look(tx, cluster, now)?,
        Err((_, why)) => vec![failed("extension", why.clone())],
    };
    let row = TargetRow {
        workspace: workspace.name.clone(),
        cluster: name,
        target,
        state: TargetState::Creating,
        findings: Vec::new(),
        check_id: guid(app.store.keyring().random()),
        operation: ticket.id().to_owned(),
        checked_at: now,
    };
    let waits = cluster.is_ok_and(|cluster| !cluster.answers(now, super::SILENT_MS));
    Ok(Attached { row, findings, waits })
}

impl Attached {
    /// Keeps it. Where the server has found nothing wrong, its operator is asked, as soon as it is heard of.
    pub(crate) fn put(self, tx: &mut Tx<'_>, now: Timestamp) -> Result<(), store::Error> {
        if self.row.cluster == store::site_name(&self.row.workspace, &self.row.target.compute)
            && tx.cluster(&self.row.cluster)?.is_none()
        {
            tx.renew_cluster(&self.row.cluster, now)?;
        }
        let over = !self.waits && self.findings.iter().any(|finding| !finding.passed);
        tx.put_findings(self.row, self.findings, over, now)
    }
}

/// The cluster that a target names, or the only one there is; otherwise the name it gave, and why there is none.
fn choose(tx: &mut Tx<'_>, body: &Value) -> Result<Result<ClusterRow, (String, String)>, store::Error> {
    let id = text(&body["properties"], "resourceId").unwrap_or_default();
    let named = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let mut all = tx.clusters()?;
    all.retain(|row| !row.is_site());
    let names: Vec<String> = all.iter().map(|row| format!("`{}`", row.name)).collect();
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    if named.is_empty() && all.len() == 1 {
        return Ok(Ok(all.remove(0)));
    }
    if let Some(at) = all.iter().position(|row| row.name.eq_ignore_ascii_case(&named)) {
        return Ok(Ok(all.remove(at)));
    }
    let why = match named.as_str() {
        "" => format!(
            "`resourceId` names no cluster, and there is more than one or none to choose from (registered: {known})"
        ),
        named => format!(
            "no cluster `{named}` is registered with this server (registered: {known}); run `peregrine extension install \
             --cluster-name {named}` with the cluster's kubeconfig, then attach again"
        ),
    };
    Ok(Err((named, why)))
}

fn target_of(workspace: &WorkspaceRow, name: &str, body: &Value) -> ClusterTarget {
    let none = Map::new();
    let inner = body["properties"]["properties"].as_object().unwrap_or(&none);
    let word = |key: &str| inner.get(key).and_then(Value::as_str).filter(|word| !word.is_empty()).map(str::to_owned);
    let settings: BTreeMap<String, String> = inner
        .iter()
        .filter(|(key, _)| !KNOWN.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((snake(key), plain(value)?)))
        .collect();
    ClusterTarget {
        subscription: workspace.subscription.clone(),
        resource_group: workspace.resource_group.clone(),
        workspace: workspace.name.clone(),
        compute: name.to_owned(),
        namespace: word("namespace").unwrap_or_else(|| "default".to_owned()),
        default_instance_type: word("defaultInstanceType"),
        settings,
    }
}

/// A setting as text; a list as its items between commas.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) => Some(items.iter().filter_map(api::arm::scalar).collect::<Vec<_>>().join(",")),
        value => api::arm::scalar(value),
    }
}

/// Jobs are where they are: a target that has some moves nowhere.
fn stays(tx: &mut Tx<'_>, before: Option<&TargetRow>, cluster: &str, target: &ClusterTarget) -> Result<(), Halt> {
    let Some(before) = before.filter(|row| row.cluster != cluster || row.target.namespace != target.namespace) else {
        return Ok(());
    };
    let open = tx.open_jobs_of(&before.workspace, &before.target.compute)?;
    let Some((_, job)) = open.first() else { return Ok(()) };
    let message = format!(
        "compute target `{}` cannot move from namespace `{}` of cluster `{}`: job `{job}` is there and has not ended; wait for \
         it, or cancel it",
        target.compute, before.target.namespace, before.cluster
    );
    Err(Problem::conflict(message).into())
}

/// Who has a namespace reads what lies there: workspaces that must not see each other's work have one each. Who owns both
/// may put them together.
fn is_free(tx: &mut Tx<'_>, caller: &Caller, cluster: &str, target: &ClusterTarget) -> Result<(), Halt> {
    let (own, namespace) = (&target.workspace, &target.namespace);
    let mut there = tx.targets_on(cluster)?.into_iter().filter(|row| row.workspace != *own);
    let owns = |workspace: &str| caller.may(workspace, Role::Owner);
    match there.any(|row| row.target.namespace == *namespace && !(owns(&row.workspace) && owns(own))) {
        false => Ok(()),
        true => Err(Problem::forbidden(format!(
            "namespace `{namespace}` of cluster `{cluster}` belongs to a target of another workspace; attach a namespace of its own, \
             or have it attached by somebody who owns both workspaces"
        ))
        .into()),
    }
}

/// What the server knows by itself; of a place that is looked after from here, nothing that could be wrong.
pub(super) fn look(tx: &mut Tx<'_>, cluster: &ClusterRow, now: Timestamp) -> Result<Vec<Finding>, store::Error> {
    if cluster.is_site() {
        return Ok(Vec::new());
    }
    let facts = tx.facts(&cluster.name)?;
    let extension = match (
        cluster.answers(now, super::SILENT_MS),
        facts.training || facts.inference || facts.uid.is_empty(),
    ) {
        (true, true) => {
            passed("extension", format!("version {} answers from cluster `{}`", facts.version, cluster.name))
        }
        (true, false) => failed(
            "extension",
            "neither training nor inference is enabled; run `peregrine extension upgrade --config enableTraining=True`"
                .to_owned(),
        ),
        (false, _) => failed(
            "extension",
            format!(
                "{}; see `peregrine extension status` and whether its pods reach this server",
                cluster.last_heard(now)
            ),
        ),
    };
    let skew = std::time::Duration::from_millis(cluster.skew_ms.unsigned_abs());
    let off = format!(
        "the cluster's clock is {} {}",
        domain::time::humane(skew),
        if cluster.skew_ms < 0 { "behind" } else { "ahead" }
    );
    let clock = match cluster.skew_ms.abs() < SKEW_MS {
        true => passed("clock", off),
        false => failed("clock", format!("{off}; set the clocks of its nodes, for example with NTP")),
    };
    Ok(if extension.passed { vec![extension, clock] } else { vec![extension] })
}

fn passed(check: &str, detail: String) -> Finding {
    Finding { check: check.to_owned(), passed: true, detail }
}

fn failed(check: &str, detail: String) -> Finding {
    Finding { passed: false, ..passed(check, detail) }
}
