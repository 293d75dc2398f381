//! Who of a cluster's nodes has a piece of data that an attempt lacks.
//!
//! Invariants: an attempt hears of nodes of its own cluster only, while it lives; nodes that say different things of one piece
//! are named to nobody.

use super::{nodes, record::Change};
use crate::{
    app::App,
    auth::{Caller, Who, digest, lending_secret, machine_token},
    http::{At, Body},
    problem::Problem,
};
use axum::{
    Extension, Json,
    extract::{Path, State},
};
use domain::{
    AttemptId, Timestamp,
    kept::{Peer, Peers, Wanted},
    machine::Standing,
};
use store::{Error, Tx};

/// How many are named.
const MOST: usize = 3;
/// A node that was not heard of for this long is not named.
const SILENT_MS: i64 = 30_000;

pub(crate) async fn peers(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(at): Path<At>,
    Body(wanted): Body<Wanted>,
) -> Result<Json<Peers>, Problem> {
    let attempt = AttemptId::parse(&at.attempt).map_err(|bad| Problem::bad(bad.to_string()))?;
    let now = app.now();
    let found = app.store.read(move |tx| {
        let its = match &caller.who {
            Who::Machine { cluster, machine, .. } => nodes::has(tx, (cluster, machine), &attempt)?,
            _ => true,
        };
        if its { find(tx, &attempt, &wanted.key, now) } else { Ok(Vec::new()) }
    });
    let found = found.await?;
    Ok(Json(Peers { peers: found }))
}

fn find(tx: &mut Tx<'_>, attempt: &AttemptId, key: &str, now: Timestamp) -> Result<Vec<Peer>, Error> {
    let Some(change) = Change::of_attempt(tx, attempt)? else { return Ok(Vec::new()) };
    let Some(row) = tx.jobs_by_seq(&[change.job.seq])?.pop() else { return Ok(Vec::new()) };
    let mut keepers = tx.keepers(&row.cluster, key)?;
    keepers.retain(|keeper| !keeper.digest.is_empty());
    if keepers.iter().any(|keeper| keeper.digest != keepers[0].digest) {
        tracing::warn!(cluster = row.cluster, "nodes disagree on what `{key}` is; none of them is asked for it");
        return Ok(Vec::new());
    }
    // Others that ask begin elsewhere.
    keepers.sort_by_key(|keeper| digest(&format!("{attempt} {}", keeper.node)));
    let mut peers = Vec::new();
    for keeper in keepers {
        let Some(row) = tx.machine(&keeper.cluster, &keeper.node)? else { continue };
        let fresh = row.seen_at.is_some_and(|seen| now.0 - seen.0 < SILENT_MS);
        let Some(door) = row.facts.door.filter(|_| fresh && row.standing == Standing::Ready) else { continue };
        let secret = if door.apart { lending_secret } else { machine_token };
        let secret = secret(tx.keyring(), &row.cluster, &row.name, &row.joined);
        let token = api::peer::token(&secret, key, now);
        peers.push(Peer { node: keeper.node, door, token, sum: keeper.digest });
        if peers.len() == MOST {
            break;
        }
    }
    Ok(peers)
}
