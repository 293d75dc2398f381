//! Nodes of managed clusters: how a machine joins, and what it hears and tells from then on.
//!
//! Invariants: a token to join with is good for one machine; whoever can show a certificate is given one, and no token; a node is told of its own parts only; what a node says of its size
//! is compared with what was ordered.

use super::{
    Body,
    agents::WAIT,
    change::{self, Halt},
    clusters::launch,
};
use crate::{
    app::App,
    auth::{Caller, Claim, Who, digest, lending_secret, machine_token},
    problem::Problem,
};
use axum::{Extension, Json, extract::State, http::HeaderMap};
use domain::{
    AttemptId, Timestamp,
    cluster::Launch,
    kept::MOST_TOLD,
    machine::{
        MachineFacts, NodeAnswer, NodeCertificate, NodeJoin, NodeJoined, NodePart, NodePoll, PartFate, Standing,
        lease_seconds,
    },
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    time::Duration,
};
use store::{Bell, Error, MachineRow, Tx};
use tokio::time::Instant;

/// A node is written down as seen at least this often.
const SEEN_EVERY_MS: i64 = 5_000;

/// A machine takes the name that its token is for. One that asks again, because it did not hear the answer or its certificate
/// is to be renewed, is the same node still.
pub(crate) async fn join(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(join): Body<NodeJoin>,
) -> Result<Json<NodeJoined>, Problem> {
    let (Who::Joining { cluster, machine } | Who::Machine { cluster, machine, .. }) = &caller.who else {
        return Err(Problem::forbidden(
            "this is for a machine with the token to join, or a node that renews its certificate".to_owned(),
        ));
    };
    if matches!(caller.who, Who::Machine { .. }) && join.request.is_none() {
        return Err(Problem::forbidden("a node that has joined renews its certificate, and is given no token"));
    }
    if join.key.len() < 32 {
        return Err(Problem::bad("`key` has at least 32 characters, made by chance"));
    }
    let (key, request) = (digest(&join.key), join.request);
    let (place, name, print, now) = (cluster.clone(), machine.clone(), key.clone(), app.now());
    let properties = change::change(&app, move |tx| {
        let row = tx.machine(&place, &name)?.ok_or_else(|| gone(&name))?;
        if !row.joined.is_empty() && row.joined != print {
            let message = format!("node `{name}` has joined from another machine; a token is good for one");
            return Err(Halt::from(Problem::conflict(message)));
        }
        if row.standing != Standing::Preparing && row.joined.is_empty() {
            return Err(gone(&name).into());
        }
        let row = MachineRow { joined: print, ..row };
        tx.put_machine(&heard(row, join.facts, now))?;
        Ok(properties(tx, &place)?)
    })
    .await?;
    let keyring = app.store.keyring();
    let certificate = request.map(|request| certify(&app, (cluster, machine, &key), &request)).transpose()?.flatten();
    Ok(Json(NodeJoined {
        token: if certificate.is_some() { String::new() } else { machine_token(keyring, cluster, machine, &key) },
        certificate,
        lending: lending_secret(keyring, cluster, machine, &key),
        peers: peers(&properties),
        lease_seconds: lease_seconds(&properties),
    }))
}

/// A certificate for a node; none where this server has no authority of its own.
fn certify(
    app: &App,
    (cluster, machine, key): (&str, &str, &str),
    request: &str,
) -> Result<Option<NodeCertificate>, Problem> {
    let Some(authority) = &app.tokens.authority else { return Ok(None) };
    let (now, seconds) = (app.now(), app.settings.node_certificate.as_secs());
    let life = i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000);
    let expires = Timestamp(now.0.saturating_add(life));
    let claim = Claim { cluster: cluster.into(), machine: machine.into(), key: key.into(), expires };
    let pem = authority.sign(&claim, request, now).map_err(|error| {
        Problem::bad(format!("`request` is no request for a certificate in PEM, signed with its own key: {error}"))
    })?;
    Ok(Some(NodeCertificate { pem, claim: claim.bearer(), seconds }))
}

pub(crate) async fn poll(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(poll): Body<NodePoll>,
) -> Result<Json<NodeAnswer>, Problem> {
    let Who::Machine { cluster, machine, .. } = caller.who else {
        return Err(Problem::forbidden("this is for a node that has joined".to_owned()));
    };
    tell(&app, &cluster, &machine, &poll).await?;
    let url = app.reached_by(&headers);
    let holds: BTreeSet<AttemptId> = poll.holds.iter().map(|part| part.attempt.clone()).collect();
    let mut bell = app.store.changed(Bell::Machines);
    // Who has something to tell is answered at once, so that it is not told again.
    let deadline = Instant::now() + if poll.keeps.is_some() { Duration::ZERO } else { WAIT };
    loop {
        bell.mark_unchanged();
        let (place, name, held) = (cluster.clone(), machine.clone(), holds.clone());
        let mut answer = change::look(&app, move |tx| answer(tx, &place, &name, &held)).await?;
        if answer != NodeAnswer::default() || Instant::now() >= deadline {
            answer.launch.iter_mut().for_each(|(launch, _)| launch::complete(&app, launch, &url));
            return Ok(Json(answer));
        }
        let _ = tokio::time::timeout_at(deadline, bell.changed()).await;
    }
}

/// Writes down what a node says, where that is news.
async fn tell(app: &App, cluster: &str, machine: &str, poll: &NodePoll) -> Result<(), Problem> {
    let (place, name, poll, now) = (cluster.to_owned(), machine.to_owned(), poll.clone(), app.now());
    let (known, asked, told) = (place.clone(), name.clone(), poll.clone());
    let news = change::look(app, move |tx| News::of(tx, (&known, &asked), &told, now)).await?;
    if news.is_none() && poll.keeps.is_none() {
        return Ok(());
    }
    change::change(app, move |tx| {
        // It may have been condemned, or lost a part, since it was looked at.
        if let Some(news) = News::of(tx, (&place, &name), &poll, now)? {
            match news.row {
                Some(row) => tx.put_machine(&row)?,
                None => tx.see_machine(&place, &name, now)?,
            }
            news.fates.iter().try_for_each(|told| tx.put_fate(&told.attempt, told.part, &told.fate))?;
        }
        if let Some(keeps) = &poll.keeps {
            tx.put_kept(&place, &name, &keeps[..keeps.len().min(MOST_TOLD)])?;
        }
        Ok(())
    })
    .await
}

const TOLD_TO_STOP: &str = "its machine was told to stop";

/// What the server did not know of a node.
struct News {
    /// `None` if only the time has passed.
    row: Option<MachineRow>,
    fates: Vec<NodePart>,
}

impl News {
    /// `None` where nothing is to be written down.
    fn of(
        tx: &mut Tx<'_>,
        (cluster, machine): (&str, &str),
        poll: &NodePoll,
        now: Timestamp,
    ) -> Result<Option<News>, Halt> {
        let row = tx.machine(cluster, machine)?.ok_or_else(|| gone(machine))?;
        let parts = tx.parts_of_machine(cluster, machine)?;
        let stale = row.seen_at.is_none_or(|seen| now.0 - seen.0 >= SEEN_EVERY_MS);
        let mut after = heard(row.clone(), poll.facts.clone(), now);
        if poll.leaving && after.standing == Standing::Ready {
            after = MachineRow { standing: Standing::Preempted, reason: TOLD_TO_STOP.to_owned(), since: now, ..after };
        }
        let differs = MachineRow { seen_at: row.seen_at, ..after.clone() } != row;
        let is_new = |told: &&NodePart| {
            let known = parts.iter().find(|part| part.attempt == told.attempt && part.part == told.part);
            known.is_some_and(|part| !over(part.fate.as_ref()) && part.fate.as_ref() != Some(&told.fate))
        };
        let fates: Vec<NodePart> = poll.holds.iter().filter(is_new).cloned().collect();
        let news = differs || !fates.is_empty() || stale;
        Ok(news.then(|| News { row: differs.then_some(after), fates }))
    }
}

/// What the file of a cluster says of its nodes.
fn properties(tx: &mut Tx<'_>, cluster: &str) -> Result<Value, Error> {
    let Some(target) = tx.targets_on(cluster)?.pop() else { return Ok(Value::Null) };
    let row = tx.compute(&target.workspace, &target.target.compute)?;
    let mut body: Value = row.and_then(|row| serde_json::from_str(&row.body).ok()).unwrap_or_default();
    Ok(body["properties"]["properties"].take())
}

/// Whether nodes of a cluster fetch data from each other: as its file says, or else where they are likely to reach each other.
fn peers(properties: &Value) -> bool {
    let provider = &properties["nodeProvider"];
    provider["peers"].as_bool().unwrap_or_else(|| provider["type"] != "command")
}

fn over(fate: Option<&PartFate>) -> bool {
    matches!(fate, Some(PartFate::Left | PartFate::Gone { .. }))
}

/// A node as it stands after it was heard of.
fn heard(row: MachineRow, facts: MachineFacts, now: Timestamp) -> MachineRow {
    let lies = falls_short(&row, &facts);
    let (standing, reason) = match (row.standing, lies) {
        (Standing::Preparing | Standing::Ready, Some(why)) => (Standing::Unusable, why),
        (Standing::Preparing, None) => (Standing::Ready, String::new()),
        (standing, _) => (standing, row.reason.clone()),
    };
    let since = if standing == row.standing { row.since } else { now };
    MachineRow { facts, standing, reason, since, seen_at: Some(now), ..row }
}

/// How a machine is less than what was ordered. Some memory is the kernel's own.
fn falls_short(row: &MachineRow, facts: &MachineFacts) -> Option<String> {
    let (has, ordered) = (&facts.capacity, &row.ordered);
    let fits = has.cpu_milli >= ordered.cpu_milli
        && has.memory_bytes >= ordered.memory_bytes / 10 * 8
        && has.gpus >= ordered.gpus;
    (!fits).then(|| format!("it has {}, and {} were ordered", has.humane(), ordered.humane()))
}

/// What a node is to do, compared with what it holds.
fn answer(tx: &mut Tx<'_>, cluster: &str, machine: &str, holds: &BTreeSet<AttemptId>) -> Result<NodeAnswer, Halt> {
    let row = tx.machine(cluster, machine)?.ok_or_else(|| gone(machine))?;
    let parts = tx.parts_of_machine(cluster, machine)?;
    let own: HashSet<&AttemptId> = parts.iter().map(|part| &part.attempt).collect();
    let remove = holds.iter().filter(|attempt| !own.contains(attempt)).cloned().collect();
    let leave = matches!(row.standing, Standing::Leaving | Standing::Preempted | Standing::Unusable);
    let mut begin: BTreeMap<AttemptId, Vec<u32>> = BTreeMap::new();
    for part in parts.iter().filter(|part| part.fate.is_none() && !holds.contains(&part.attempt) && !leave) {
        begin.entry(part.attempt.clone()).or_default().push(part.part);
    }
    Ok(NodeAnswer { launch: launches(tx, cluster, begin)?, remove, leave })
}

fn launches(
    tx: &mut Tx<'_>,
    cluster: &str,
    begin: BTreeMap<AttemptId, Vec<u32>>,
) -> Result<Vec<(Launch, Vec<u32>)>, Error> {
    let targets = tx.targets_on(cluster)?;
    let mut all = Vec::new();
    for (attempt, parts) in begin {
        all.extend(launch::of(tx, attempt, &targets)?.map(|launch| (launch, parts)));
    }
    Ok(all)
}

fn gone(machine: &str) -> Problem {
    Problem::gone(format!("there is no node `{machine}` any more"))
}
