//! Pools: which of its targets a waiting job goes to.

use crate::Context;
use domain::{
    Timestamp,
    cluster::ClusterInstanceType,
    sharing::{Held, Ledger},
};
use planner::spill::{Candidate, Choice, Room, spill};
use std::collections::HashMap;
use store::{Error, HERE, POOLED, QueuedJob, Tx};

/// How many jobs of pools a round looks at.
const FRONT: i64 = 64;

/// A job, the places it may go to, and which of them it is to be.
type Chosen = (QueuedJob, Vec<store::Choice>, Choice);

pub(super) async fn tick(cx: &Context, now: Timestamp) -> Result<(), Error> {
    let chosen = cx.store.look(move |tx| observe(tx, now)).await?;
    let chosen: Vec<Chosen> =
        chosen.into_iter().filter(|(row, _, choice)| choice.at.is_some() || row.note != choice.because).collect();
    if chosen.is_empty() {
        return Ok(());
    }
    let write = cx.store.write(move |tx| {
        chosen.iter().try_for_each(|(row, places, choice)| match choice.at {
            Some(at) => tx.choose(row.job.seq, &places[at], &choice.because, now).map(drop),
            None => tx.put_note(row.job.seq, &choice.because),
        })
    });
    write.await
}

fn observe(tx: &mut Tx<'_>, now: Timestamp) -> Result<Vec<Chosen>, Error> {
    let queue = tx.queue(POOLED, FRONT)?;
    if queue.is_empty() {
        return Ok(Vec::new());
    }
    let held: Vec<Held> = tx.held(now)?.into_iter().map(|row| row.held).collect();
    let mut ledger = Ledger::new(tx.quotas(None)?, &held);
    let mut rooms: HashMap<String, Room> = HashMap::new();
    let mut chosen = Vec::new();
    for row in queue {
        let mut places = tx.choices(row.job.seq)?;
        let name = row.job.name.as_str();
        let over = |place: &store::Choice, ledger: &mut Ledger| {
            ledger.wait(name, &row.holder, &place.target, &place.plan.needs())
        };
        let first = places.first().and_then(|place| over(place, &mut ledger));
        places.retain(|place| ledger.has_room(&row.holder, &place.target, &place.plan.needs()));
        if let Some(because) = first.filter(|_| places.is_empty()) {
            chosen.push((row, places, Choice { at: None, because }));
            continue;
        }
        for place in &places {
            if !rooms.contains_key(&place.cluster) {
                rooms.insert(place.cluster.clone(), room(tx, &place.cluster, now)?);
            }
        }
        let candidates: Vec<Candidate> = places
            .iter()
            .map(|place| Candidate {
                target: place.target.clone(),
                cluster: place.cluster.clone(),
                needs: place.plan.needs(),
                shape: place.plan.instance_type.clone(),
                parts: place.plan.parts(),
            })
            .collect();
        let choice = spill(&row.target, &candidates, &mut rooms);
        if let Some(place) = choice.at.map(|at| &places[at]) {
            ledger.take(&row.holder, &place.target, &place.plan.needs());
        }
        chosen.push((row, places, choice));
    }
    Ok(chosen)
}

/// What a place has left.
fn room(tx: &mut Tx<'_>, cluster: &str, now: Timestamp) -> Result<Room, Error> {
    if cluster != HERE {
        let Some(row) = tx.cluster(cluster)? else {
            return Ok(Room { broken: Some("it is not there any more".to_owned()), ..Room::default() });
        };
        let broken = (!row.answers(now, super::SILENT_MS)).then(|| row.last_heard(now));
        let facts = tx.facts(cluster)?;
        // A cluster that brings nodes itself says how many it may have.
        let counts_all = row.is_site() && facts.grows;
        let busy = facts.nodes.iter().filter(|node| counts_all && node.free != node.allocatable).count() as u64;
        let fits = |kind: ClusterInstanceType| (kind.name, kind.fits_now.saturating_sub(busy));
        let shapes = facts.instance_types.into_iter().map(fits).collect();
        let promised = u64::try_from(tx.not_begun(cluster)?).unwrap_or(0);
        return Ok(Room { broken, free: None, shapes, promised, grows: facts.grows && !counts_all });
    }
    let Some(node) = tx.nodes()?.into_iter().next() else {
        return Ok(Room { broken: Some("it has no node yet".to_owned()), ..Room::default() });
    };
    let silent = now.0 - node.seen_at.0 >= super::SILENT_MS;
    let broken = silent.then(|| format!("the agent of `{}` does not answer", node.facts.node));
    let free = Some(node.facts.capacity.minus(&tx.claimed_here()?));
    Ok(Room { broken, free, ..Room::default() })
}
