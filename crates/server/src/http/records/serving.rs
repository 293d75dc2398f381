//! Online deployments as something that serves: from record to replicas, what is shown of them, and their logs.
//!
//! Invariants: what is asked for is resolved in the transaction that accepts it, so a record that was accepted can be
//! served; while one change is under way, no other begins; who deletes a deployment waits until its last replica is gone.

use super::{Kind, find, health::Health};
use crate::{
    app::App,
    http::{
        At, Body,
        change::{self, Halt},
        operations::Ticket,
    },
    problem::Problem,
    resolve::{self, Deployment, Served},
    routers::site_of,
};
use axum::{
    Json,
    extract::{Path, State},
};
use domain::{Timestamp, serving::Provisioning};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::PathBuf,
};
use store::{RecordKey, RecordRow, ReplicaRow, ServingKey, ServingRow, Tx, WorkspaceRow};

/// The largest piece of a log in one answer.
const PIECE: u64 = 1 << 20;
/// How many lines are shown to whoever does not say.
const TAIL: usize = 5000;

/// What a record is worth at this moment.
pub(super) enum Live {
    Deployment { row: Box<ServingRow>, replicas: Vec<ReplicaRow> },
    Endpoint { door: Door, health: Health },
}

/// Where an endpoint is called.
pub(super) enum Door {
    /// On this machine.
    Here,
    /// On a cluster, once its router's address is known.
    There(Option<String>),
}

pub(super) fn key_of(key: &RecordKey) -> ServingKey {
    ServingKey { workspace: key.workspace.clone(), endpoint: key.parent.clone(), deployment: key.name.clone() }
}

/// A deployment as it was asked for; whoever asked waits for `ticket` if this says so.
pub(super) fn deploy(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (record, body, by): (&RecordKey, &Value, &str),
    ticket: &Ticket,
) -> Result<bool, Halt> {
    let key = key_of(record);
    let before = tx.serving(&key)?;
    if let Some(row) = before.as_ref().filter(|row| row.state.is_proving()) {
        let message = format!(
            "{} is being changed ({}); wait until that has ended, or delete it",
            Kind::OnlineDeployment.called(record),
            row.state.status()
        );
        return Err(Problem::conflict(message).into());
    }
    let above = tx.record(&Kind::OnlineEndpoint.above(record))?;
    let endpoint: Value = above.and_then(|row| serde_json::from_str(&row.body).ok()).unwrap_or_default();
    let deployment = Deployment { key: record, body, endpoint: &endpoint };
    let served = match resolve::serving(app, workspace, tx, &deployment)? {
        Ok(served) => served,
        Err(mistakes) => return Err(Problem::mistakes(&Kind::OnlineDeployment.called(record), &mistakes).into()),
    };
    Ok(accept(tx, key, before, served, (by, ticket.id()), app.now())?)
}

/// Writes down what is to serve; whether anything has to change for it.
fn accept(
    tx: &mut Tx<'_>,
    key: ServingKey,
    before: Option<ServingRow>,
    Served { plan, settings, target, cluster }: Served,
    (by, operation): (&str, &str),
    now: Timestamp,
) -> Result<bool, store::Error> {
    let Some(mut row) = before else {
        let row = ServingRow {
            key,
            generation: 1,
            good_generation: None,
            settings,
            target,
            cluster,
            state: Provisioning::Creating,
            operation: operation.to_owned(),
            begun_at: now,
            failures: 0,
            failed_at: Timestamp(0),
            created_by: by.to_owned(),
            version: 1,
        };
        tx.insert_serving(&row, &plan)?;
        return Ok(true);
    };
    let works = row.state == Provisioning::Succeeded;
    let same_plan = works && tx.serving_plan(&row.key, row.generation)?.as_ref() == Some(&plan);
    if same_plan && row.settings == settings {
        return Ok(false);
    }
    if row.state == Provisioning::Deleting {
        tx.end_operation(&row.operation, None, now)?;
    }
    row.generation += i64::from(!same_plan);
    row.state = if row.good_generation.is_some() { Provisioning::Updating } else { Provisioning::Creating };
    (row.settings, row.target, row.cluster) = (settings, target, cluster);
    (row.operation, row.begun_at, row.failures) = (operation.to_owned(), now, 0);
    tx.put_serving(&row, Some(&plan).filter(|_| !same_plan))?;
    Ok(true)
}

/// A deployment is to go; whether `operation` has to wait for that.
pub(super) fn retire(tx: &mut Tx<'_>, key: &ServingKey, operation: &str, now: Timestamp) -> Result<bool, store::Error> {
    let Some(mut row) = tx.serving(key)? else { return Ok(false) };
    let gone = json!({"code": "OperationCanceled", "message": "the deployment was deleted meanwhile"}).to_string();
    tx.end_operation(&row.operation, Some(&gone), now)?;
    (row.state, row.operation) = (Provisioning::Deleting, operation.to_owned());
    tx.put_serving(&row, None)?;
    Ok(true)
}

pub(super) fn live(tx: &mut Tx<'_>, key: &RecordKey) -> Result<Option<Live>, store::Error> {
    let key = key_of(key);
    let Some(row) = tx.serving(&key)? else { return Ok(None) };
    let replicas = tx.replicas_of(&key)?.into_iter().filter(|replica| replica.gone_at.is_none()).collect();
    Ok(Some(Live::Deployment { row: Box::new(row), replicas }))
}

pub(super) fn endpoint(app: &App, tx: &mut Tx<'_>, row: &RecordRow) -> Result<Live, store::Error> {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    Ok(Live::Endpoint { door: door(app, tx, row, &body)?, health: Health::look(tx, row, &body)? })
}

fn door(app: &App, tx: &mut Tx<'_>, row: &RecordRow, body: &Value) -> Result<Door, store::Error> {
    let site = site_of(tx, &row.key.workspace, body)?;
    if site == store::HERE {
        return Ok(Door::Here);
    }
    let url = app.facts(tx, &site)?.scoring_url.clone();
    Ok(Door::There(Some(url).filter(|url| !url.is_empty())))
}

impl Live {
    /// Its state, in the word of the resource API and in words for people.
    pub(super) fn state(&self) -> (&'static str, Option<String>) {
        match self {
            Live::Deployment { row, replicas } => (row.state.status(), Some(words(row, replicas))),
            Live::Endpoint { door: Door::There(None), .. } => {
                let words = "the cluster's router has no address yet; `peregrine extension status` shows the extension";
                ("Succeeded", Some(words.to_owned()))
            }
            // An address is all that is provisioned of an endpoint; whether it answers is its health.
            Live::Endpoint { health, .. } => ("Succeeded", Some(health.why.clone())),
        }
    }

    /// Of an endpoint: whether it answers, in one word.
    pub(super) fn health(&self) -> Option<&'static str> {
        match self {
            Live::Deployment { .. } => None,
            Live::Endpoint { door: Door::There(None), .. } => Some("Starting"),
            Live::Endpoint { health, .. } => Some(health.word),
        }
    }
}

pub(super) fn words(row: &ServingRow, replicas: &[ReplicaRow]) -> String {
    let ready = replicas.iter().filter(|replica| replica.takes_requests().is_some()).count();
    let all = replicas.iter().filter(|replica| replica.draining_at.is_none()).count();
    let count = format!("{ready} of {all} replicas are ready");
    match &row.state {
        Provisioning::Failed(failure) => format!("{count}; {}", failure.message),
        _ => match replicas.iter().find(|r| r.takes_requests().is_none() && r.draining_at.is_none()) {
            Some(busy) => format!("{count}; `{}`: {}", busy.name, busy.note),
            None => count,
        },
    }
}

/// What all routers together have counted of an endpoint.
pub(crate) async fn counters(State(app): State<App>, Path(at): Path<At>) -> Result<String, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = Kind::OnlineEndpoint.key(&workspace.name, &at);
    let found = change::look(&app, move |tx| find(tx, Kind::OnlineEndpoint, &key)).await?;
    Ok(app.routers.counters(&found.key.name))
}

/// Which log is asked for, and how much of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LogQuestion {
    container_type: Option<String>,
    tail: Option<usize>,
    /// The name of a replica; the newest that answers, or the newest, when absent.
    replica: Option<String>,
    /// A byte of the log from which on all is wanted.
    from: Option<u64>,
}

/// The log of a deployment's replica: its own, or that of what was fetched for it.
pub(crate) async fn logs(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(asked): Body<LogQuestion>,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = Kind::OnlineDeployment.key(&workspace.name, &at);
    let named = asked.replica.clone();
    let replicas = change::look(&app, move |tx| {
        find(tx, Kind::OnlineDeployment, &key)?;
        Ok(tx.replicas_of(&key_of(&key))?)
    });
    let replicas = replicas.await?;
    let chosen = match &named {
        Some(name) => replicas.iter().find(|replica| replica.name == *name),
        None => replicas.iter().find(|replica| replica.takes_requests().is_some()).or(replicas.first()),
    };
    let Some(replica) = chosen else {
        return match named {
            None => Ok(Json(json!({"content": "", "replica": null, "next": 0}))),
            Some(name) => {
                let names: Vec<String> = replicas.into_iter().map(|replica| replica.name).collect();
                Err(Problem::missing("replica", &name, &names))
            }
        };
    };
    let staging = asked.container_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("StorageInitializer"));
    let file = if staging { "system_logs/storage-initializer.log" } else { "user_logs/std_log.txt" };
    let path = app.files.artifacts(&workspace.name, &replica.name).join(file);
    let (tail, from) = (asked.tail.unwrap_or(TAIL), asked.from);
    let read = tokio::task::spawn_blocking(move || piece(path, tail, from));
    let read = read.await.map_err(|_| store::Error::Closed)?;
    let (content, next) = read.map_err(|source| store::Error::Io { what: "read", path: file.into(), source })?;
    Ok(Json(json!({"content": content, "replica": replica.name, "next": next})))
}

/// The last lines of a file, or all from a byte on, and where it goes on. A file that is shorter was begun anew.
fn piece(path: PathBuf, tail: usize, from: Option<u64>) -> io::Result<(String, u64)> {
    let mut file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((String::new(), 0)),
        opened => opened?,
    };
    let length = file.metadata()?.len();
    let begin = from.map_or(length.saturating_sub(PIECE), |from| if from > length { 0 } else { from });
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes)?;
    let next = begin + bytes.len() as u64;
    let text = String::from_utf8_lossy(&bytes);
    if from.is_some() {
        return Ok((text.into_owned(), next));
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    Ok((lines[lines.len().saturating_sub(tail)..].concat(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_from_its_end_or_from_a_byte_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert_eq!(piece(path.clone(), 2, None).unwrap(), (String::new(), 0), "one that is not there says nothing");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        for (tail, from, content, next) in [
            (2, None, "two\nthree\n", 14),
            (9, None, "one\ntwo\nthree\n", 14),
            (0, None, "", 14),
            (0, Some(4), "two\nthree\n", 14),
            (0, Some(14), "", 14),
            (0, Some(99), "one\ntwo\nthree\n", 14),
        ] {
            assert_eq!(piece(path.clone(), tail, from).unwrap(), (content.to_owned(), next), "{tail} {from:?}");
        }
    }
}
