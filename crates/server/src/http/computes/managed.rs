//! Managed clusters as resources: what a provider of nodes must be told, the nodes there are, and how they are taken back.

use super::{LOCAL, check, find};
use crate::{
    app::App,
    http::{
        At, Body,
        change::{self, Halt},
        operations::Ticket,
    },
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::{Timestamp, cluster::Finding, machine::Standing, spec::Mistake};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::{Bell, ComputeRow, Error, MachineRow, TargetRow, TargetState, Tx};

/// The kind of these targets, as records spell it.
pub(super) const KIND: &str = "AmlCompute";
/// What the server adds when it shows one.
pub(super) const SHOWN: [&str; 5] =
    ["allocationState", "allocationStateTransitionTime", "currentNodeCount", "targetNodeCount", "nodeStateCounts"];
const PROVIDERS: [&str; 4] = ["process", "ssh", "command", "kubernetes"];

/// The nodes of a cluster, each with the job that it has.
pub(super) struct Nodes(Vec<(MachineRow, Option<String>)>);

impl Nodes {
    pub(super) fn of(tx: &mut Tx<'_>, cluster: &str) -> Result<Nodes, Error> {
        let mut at_work = BTreeMap::new();
        for part in tx.machine_parts(cluster)? {
            let Some((seq, _)) = part.attempt.parts() else { continue };
            let job = tx.jobs_by_seq(&[seq])?.pop().map(|row| row.job.name.to_string());
            // The others stand in line.
            at_work.entry(part.machine).or_insert(job);
        }
        let rows = tx.machines(cluster)?.into_iter();
        let with_job = |row: MachineRow| {
            let job = at_work.get(&row.name).cloned().flatten();
            (row, job)
        };
        Ok(Nodes(rows.map(with_job).collect()))
    }

    /// The numbers clients look for.
    pub(super) fn describe(&self, inner: &mut Value) {
        let count = |word: &str| self.0.iter().filter(|(row, job)| state(row, job.as_ref()) == word).count();
        let there = self.0.iter().filter(|(row, _)| row.standing != Standing::Gone).count();
        let staying = self.0.iter().filter(|(row, _)| matches!(row.standing, Standing::Preparing | Standing::Ready));
        let staying = staying.count();
        let steady = self.0.iter().all(|(row, _)| matches!(row.standing, Standing::Ready | Standing::Gone));
        let last = self.0.iter().map(|(row, _)| row.since).max();
        inner["allocationState"] = json!(if steady { "Steady" } else { "Resizing" });
        if let Some(last) = last {
            inner["allocationStateTransitionTime"] = json!(last.iso());
        }
        inner["currentNodeCount"] = json!(there);
        inner["targetNodeCount"] = json!(staying);
        inner["nodeStateCounts"] = json!({
            "idleNodeCount": count("idle"), "runningNodeCount": count("running"), "preparingNodeCount": count("preparing"),
            "unusableNodeCount": count("unusable"), "leavingNodeCount": count("leaving"),
            "preemptedNodeCount": count("preempted"),
        });
        let wrong = self.0.iter().filter(|(row, _)| !row.reason.is_empty() && row.standing != Standing::Leaving);
        let wrong = wrong.map(|(row, _)| json!({"node": row.name, "since": row.since.iso(), "reason": row.reason}));
        inner["errors"] = wrong.collect();
    }

    /// How many have a job.
    pub(super) fn busy(&self) -> u64 {
        self.0.iter().filter(|(_, job)| job.is_some()).count() as u64
    }

    /// Every node as clients list them.
    pub(super) fn listed(&self) -> Value {
        let one = |(row, job): &(MachineRow, Option<String>)| {
            json!({
                "nodeId": row.name, "privateIpAddress": (!row.facts.address.is_empty()).then_some(&row.facts.address),
                "publicIpAddress": null, "port": null, "runId": job, "nodeState": state(row, job.as_ref()),
                "reason": (!row.reason.is_empty()).then_some(&row.reason), "host": (!row.facts.host.is_empty()).then_some(&row.facts.host),
                "capacity": row.ordered, "seenAt": row.seen_at.map(Timestamp::iso),
            })
        };
        self.0.iter().map(one).collect()
    }
}

fn state(row: &MachineRow, job: Option<&String>) -> &'static str {
    match (row.standing, job) {
        (Standing::Ready, Some(_)) => "running",
        (Standing::Ready, None) => "idle",
        (Standing::Gone, _) => "unusable",
        (standing, _) => standing.as_str(),
    }
}

/// Nodes stay where they are, and can only be found there: a cluster that has some is not told to look elsewhere. Nor does someone
/// else's way to a cluster of machines open more of it than they have said.
pub(super) fn stays_put(
    tx: &mut Tx<'_>,
    workspace: &str,
    before: &ComputeRow,
    body: &Value,
    secrets: &BTreeMap<String, String>,
) -> Result<(), Halt> {
    let provider = |body: &Value| body.pointer("/properties/properties/nodeProvider").cloned().unwrap_or_default();
    let kept: Value = serde_json::from_str(&before.body).unwrap_or_default();
    let (was, is) = (provider(&kept), provider(body));
    let differs = |keys: &[&str]| keys.iter().any(|key| was[key] != is[key]);
    if let Some(key) = moved(&was, &is) {
        let rows = tx.machines(&store::site_name(workspace, &before.name))?;
        let nodes = rows.iter().filter(|row| row.standing != Standing::Gone).count();
        if nodes > 0 {
            return Err(Problem::conflict(format!(
                "cluster `{}` has {nodes} node(s), which could not be found any more if `{key}` were another; delete \
                 it, or let it have none first (`min_instances: 0`, and wait)",
                before.name
            ))
            .into());
        }
    }
    let sent = secrets.keys().any(|key| key.ends_with("kubeconfig"));
    if was["type"] == "kubernetes"
        && differs(&["namespace", "context", "serviceAccount"])
        && !sent
        && tx.compute_secret(workspace, &before.name)?.keys().any(|key| key.ends_with("kubeconfig"))
    {
        let why =
            "whose pods and where is a matter of the kubeconfig; send it along (`kubeconfig_file`) to change that";
        return Err(Problem::bad(why).into());
    }
    Ok(())
}

/// What of a provider differs by which nodes are found, if anything does. More hosts do no harm.
fn moved(was: &Value, is: &Value) -> Option<&'static str> {
    let keys = ["type", "namespace", "context", "program", "user"];
    let differs = keys.into_iter().find(|key| was[*key] != is[*key]);
    differs.or_else(|| {
        let left = !hosts(was).is_subset(&hosts(is));
        left.then_some(if was["port"] == is["port"] { "hosts" } else { "port" })
    })
}

/// The machines of a provider, each by its address and port.
fn hosts(provider: &Value) -> BTreeSet<(&str, u64)> {
    let port = |host: &Value| host["port"].as_u64().or_else(|| provider["port"].as_u64()).unwrap_or(22);
    let all = provider["hosts"].as_array().into_iter().flatten();
    all.filter_map(|host| Some((host.as_str().or_else(|| host["address"].as_str())?, port(host)))).collect()
}

/// What is wrong with what brings the nodes.
pub(super) fn mistakes(inner: &Value, bad: &mut Vec<Mistake>) {
    let provider = &inner["nodeProvider"];
    if provider.is_null() {
        return;
    }
    let at = "properties.nodeProvider";
    let kind = provider["type"].as_str().unwrap_or_default();
    if !PROVIDERS.contains(&kind) {
        let known = PROVIDERS.map(|kind| format!("`{kind}`")).join(", ");
        bad.push(Mistake::new(
            format!("{at}.type"),
            format!("`{kind}` brings no nodes"),
            format!("it is one of {known}"),
        ));
    }
    if kind == "ssh" && provider["hosts"].as_array().is_none_or(Vec::is_empty) {
        bad.push(Mistake::new(format!("{at}.hosts"), "no machine is named", "list their names or addresses"));
    }
    if kind == "kubernetes" {
        pod_mistakes(provider, at, bad);
    }
    let program = provider["program"].as_str().unwrap_or_default();
    let plain = !program.is_empty() && !program.starts_with('.') && !program.contains(['/', '\\', '\0']);
    if kind == "command" && !plain {
        let fix = "name a file in the folder `providers` of the server's home, without a path";
        bad.push(Mistake::new(format!("{at}.program"), format!("`{program}` is not the name of a program"), fix));
    }
}

/// What is wrong with what is said of pods that are to be nodes.
fn pod_mistakes(provider: &Value, at: &str, bad: &mut Vec<Mistake>) {
    let word = |key: &str| provider[key].as_str().unwrap_or_default().trim();
    if word("image").is_empty() {
        let fix = "name one with a shell and what jobs need, such as `python:3.12`";
        bad.push(Mistake::new(format!("{at}.image"), "no image is named for the nodes", fix));
    }
    let namespace = word("namespace");
    let letters = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let plain = namespace.len() <= 63 && namespace.bytes().all(letters) && namespace.trim_matches('-') == namespace;
    if !plain {
        let fix = "use small letters, digits and `-`";
        bad.push(Mistake::new(format!("{at}.namespace"), format!("`{namespace}` is not the name of a namespace"), fix));
    }
    let url = word("serverUrl");
    if !url.is_empty() && !url.starts_with("https://") && !url.starts_with("http://") {
        let fix = "write `https://<host>:<port>`";
        bad.push(Mistake::new(format!("{at}.serverUrl"), format!("`{url}` is not the address of a server"), fix));
    }
    let listed = |key: &str| provider[key].is_null() || provider[key].is_array();
    for key in ["tolerations", "imagePullSecrets"].into_iter().filter(|key| !listed(key)) {
        bad.push(Mistake::new(format!("{at}.{key}"), "it is not a list", "write one, with one entry or more"));
    }
}

/// Begins to take a cluster away: nobody is sent there any more, and when its last node is gone so is it. By force, a node
/// that cannot be taken away is left behind; it is told that it is none as soon as it can be told anything.
pub(super) fn delete(
    tx: &mut Tx<'_>,
    (workspace, row): (&str, &ComputeRow),
    target: TargetRow,
    (ticket, resource, forced): (&Ticket, &str, bool),
    now: Timestamp,
) -> Result<(), Error> {
    let mut body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    if let Some(before) = body["properties"]["deleting"].as_str() {
        // Whoever asked first is answered now; who asked again waits on.
        tx.end_operation(before, None, now)?;
    }
    body["properties"]["deleting"] = json!(ticket.id());
    if forced {
        body["properties"]["forced"] = json!(true);
    }
    tx.put_compute(workspace, &ComputeRow { body: body.to_string(), changed_at: now, ..row.clone() }, None)?;
    let findings = vec![Finding { check: "deleted".into(), passed: false, detail: "it is being deleted".into() }];
    tx.put_target(&TargetRow { state: TargetState::Failed, findings, ..target })?;
    ticket.begun(tx, workspace, resource, now)?;
    tx.ring(Bell::Clusters);
    Ok(())
}

/// Takes a node back, as whoever owns it might: what runs there is asked to end, and is tried again elsewhere.
pub(crate) async fn preempt(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(body): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, name, now) = (workspace.name.clone(), at.name.clone(), app.now());
    let wanted = body["nodeId"].as_str().map(str::to_owned);
    let taken = change::change(&app, move |tx| {
        if name.eq_ignore_ascii_case(LOCAL) {
            return Err(Halt::from(Problem::conflict("`local` is the machine of this server and is not taken back")));
        }
        let row = find(tx, &key, &name)?;
        if check::kind_of(&row) != KIND {
            let message = format!(
                "compute target `{}` is of type `{}` and has no nodes to take back",
                row.name,
                check::kind_of(&row)
            );
            return Err(Problem::conflict(message).into());
        }
        let cluster = store::site_name(&key, &row.name);
        let nodes = Nodes::of(tx, &cluster)?.0;
        let there =
            |(row, _): &&(MachineRow, Option<String>)| matches!(row.standing, Standing::Preparing | Standing::Ready);
        // Without a name, one that has work.
        let found = match &wanted {
            Some(wanted) => nodes.iter().filter(there).find(|(row, _)| row.name == *wanted),
            None => nodes.iter().filter(there).max_by_key(|(_, job)| job.is_some()),
        };
        let Some((node, _)) = found else {
            let names: Vec<String> = nodes.iter().filter(there).map(|(row, _)| row.name.clone()).collect();
            return Err(Problem::missing("node", wanted.as_deref().unwrap_or("any"), &names).into());
        };
        let reason = "it was taken back".to_owned();
        tx.put_machine(&MachineRow { standing: Standing::Preempted, reason, since: now, ..node.clone() })?;
        Ok(node.name.clone())
    })
    .await?;
    Ok(Json(json!({"nodeId": taken, "nodeState": "preempted"})))
}
