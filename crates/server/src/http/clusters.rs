//! Kubernetes clusters: who may speak for one, what it has, and the operator's two routes.
//!
//! The operator calls, never the server. Invariants: a token is shown once and speaks for one cluster; a cluster that a
//! target lies on is not forgotten.

pub(crate) mod attach;
pub(crate) mod launch;
mod news;
pub(crate) mod poll;

pub(crate) use news::report;
pub(crate) use poll::poll;

use super::{At, Body, change};
use crate::{
    app::App,
    auth::{Caller, Who, cluster_token},
    problem::Problem,
};
use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use domain::{cluster::ClusterFacts, names::ClusterName};
use serde_json::{Map, Value, json};
use store::{Bell, ClusterRow, TargetRow, Tx};

/// A cluster that was not heard of for this long does not answer.
pub(crate) const SILENT_MS: i64 = 30_000;
/// That another cluster came with the token of one is told for this long after its last try.
const STRANGE_MS: i64 = 120_000;

pub(crate) async fn list(State(app): State<App>) -> Result<Json<Value>, Problem> {
    let all = app.store.read(|tx| {
        let rows = tx.clusters()?;
        rows.into_iter()
            .filter(|row| !row.is_site())
            .map(|row| Ok((tx.facts(&row.name)?, tx.targets_on(&row.name)?, row)))
            .collect::<Result<Vec<_>, _>>()
    });
    let views: Vec<Value> = all.await?.iter().map(|(facts, targets, row)| view(&app, row, facts, targets)).collect();
    Ok(Json(json!({"value": views, "nextLink": null})))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let found = change::look(&app, move |tx| {
        let Some(row) = tx.cluster(&at.name)? else { return Err(missing(tx, &at.name)?.into()) };
        Ok((tx.facts(&row.name)?, tx.targets_on(&row.name)?, row))
    });
    let (facts, targets, row) = found.await?;
    let mut view = view(&app, &row, &facts, &targets);
    view["nodes"] = json!(facts.nodes);
    view["instanceTypes"] = json!(facts.instance_types);
    Ok(Json(view))
}

/// Registers a cluster, or gives a known one a new token; the one before opens nothing any more.
pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(_): Body<Map<String, Value>>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let name = ClusterName::parse(&at.name).map_err(|bad| Problem::bad(bad.to_string()))?.to_string();
    let (wanted, now) = (name.clone(), app.now());
    let generation = app.store.write(move |tx| tx.renew_cluster(&wanted, now)).await?;
    app.watched(&name, |watched| *watched = Default::default());
    let status = if generation == 1 { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(json!({"name": name, "token": cluster_token(app.store.keyring(), &name, generation)}))))
}

pub(crate) async fn delete(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    change::change(&app, move |tx| {
        let used: Vec<String> = tx
            .targets_on(&at.name)?
            .iter()
            .map(|row| format!("`{}` of workspace `{}`", row.target.compute, row.workspace))
            .collect();
        if !used.is_empty() {
            let message = format!("targets lie on cluster `{}`: {}; detach them first", at.name, used.join(", "));
            return Err(Problem::conflict(message).into());
        }
        tx.ring(Bell::Clusters);
        match tx.delete_cluster(&at.name)? {
            true => Ok(StatusCode::OK),
            false => Err(missing(tx, &at.name)?.into()),
        }
    })
    .await
}

fn missing(tx: &mut Tx<'_>, name: &str) -> Result<Problem, store::Error> {
    let names: Vec<String> = tx.clusters()?.into_iter().filter(|row| !row.is_site()).map(|row| row.name).collect();
    Ok(Problem::missing("cluster", name, &names))
}

fn view(app: &App, row: &ClusterRow, facts: &ClusterFacts, targets: &[TargetRow]) -> Value {
    let target = |row: &TargetRow| {
        json!({
            "workspace": row.workspace, "compute": row.target.compute, "namespace": row.target.namespace,
            "state": row.state.as_str(),
        })
    };
    let mut view = json!({
        "name": row.name, "uid": facts.uid, "version": facts.version, "kubernetesVersion": facts.kubernetes_version,
        "gangs": facts.gangs, "training": facts.training, "inference": facts.inference, "scoringUrl": facts.scoring_url,
        "answers": row.answers(app.now(), SILENT_MS), "seenAt": row.seen_at.map(domain::Timestamp::iso),
        "clockSkewMs": row.skew_ms, "createdOn": row.created_at.iso(), "nodeCount": facts.nodes.len(),
        "capacity": facts.room(), "targets": targets.iter().map(target).collect::<Vec<_>>(),
    });
    let stranger = app.watched(&row.name, |watched| watched.stranger.clone());
    if let Some((uid, _)) = stranger.filter(|(_, at)| app.now().0 - at.0 < STRANGE_MS) {
        view["refused"] = json!(another(&row.name, &facts.uid, &uid));
    }
    view
}

/// What is said to a cluster that comes with the token of another.
fn another(name: &str, known: &str, uid: &str) -> String {
    format!(
        "cluster `{name}` has the uid `{known}` and this one has `{uid}`; register another cluster under a name of its own, or this \
         one anew with `peregrine extension install --cluster-name {name}`"
    )
}

/// The cluster that a caller speaks for.
fn cluster_of(caller: &Caller) -> Result<&str, Problem> {
    match &caller.who {
        Who::Cluster { name, .. } => Ok(name),
        _ => Err(Problem::forbidden("this is for the operator of a cluster".to_owned())),
    }
}
