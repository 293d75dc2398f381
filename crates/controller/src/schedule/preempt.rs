//! Making way where its owner has said that higher priority may take from lower: on this machine, on managed clusters and on
//! machines over SSH. Clusters with a scheduler of their own decide that themselves.

use crate::Context;
use domain::{AttemptId, Job, JobState, Timestamp, cluster::Places, machine::Standing};
use planner::preempt::{Claim, Contest, Runner, make_way, places};
use std::collections::HashSet;
use store::{Error, HERE, HolderJob, MachinePart, Tx};

/// Room that is about to be free is often known to the agent before it is known here.
const PATIENCE_MS: i64 = 2_000;

/// For so long a node that could be had is waited for; after that, one that is there is taken.
const COMING_MS: i64 = 60_000;

pub(super) async fn tick(cx: &Context, now: Timestamp) -> Result<(), Error> {
    let allowed = cx.sharing.preempt;
    let contests = cx.store.look(move |tx| {
        let mut all: Vec<Contest> = if allowed { here(tx, now)?.into_iter().collect() } else { Vec::new() };
        for site in tx.sites_waited_for(Timestamp(now.0 - PATIENCE_MS))? {
            all.extend(there(tx, &site, now)?);
        }
        Ok(all)
    });
    let stopped: Vec<(i64, String)> = contests.await?.iter().flat_map(make_way).collect();
    if stopped.is_empty() {
        return Ok(());
    }
    let write = cx
        .store
        .write(move |tx| stopped.iter().try_for_each(|(seq, because)| tx.preempt_job(*seq, because, now).map(drop)));
    write.await
}

fn here(tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<Contest>, Error> {
    let Some((first, needs)) = tx.first_in_line()? else { return Ok(None) };
    if waited(&first, now) < PATIENCE_MS {
        return Ok(None);
    }
    let Some(node) = tx.nodes()?.into_iter().next() else { return Ok(None) };
    let holders = tx.holders(HERE)?.iter().map(runner).collect();
    let first = Claim { job: first.name, priority: first.priority, needs };
    Ok(Some(Contest { capacity: node.facts.capacity, holders, first }))
}

/// A place that gives out whole nodes or slots: who waits for one and who has them.
fn there(tx: &mut Tx<'_>, site: &str, now: Timestamp) -> Result<Option<Contest>, Error> {
    // While its steward is away nobody would get what another gave up.
    let well = tx.cluster(site)?.is_some_and(|row| row.answers(now, super::SILENT_MS));
    let Some(has) = tx.facts(site)?.places.filter(|_| well) else { return Ok(None) };
    let parts = tx.machine_parts(site)?;
    let given: HashSet<&AttemptId> = parts.iter().map(|part| &part.attempt).collect();
    let waiting = tx.offered(site, "placed")?.into_iter().find(|attempt| !given.contains(attempt));
    let Some((seq, _)) = waiting.and_then(|attempt| attempt.parts()) else { return Ok(None) };
    let (Some(first), Some(plan)) = (tx.job_by_seq(seq)?, tx.plan(seq)?) else { return Ok(None) };
    if waited(&first, now) < PATIENCE_MS {
        return Ok(None);
    }
    let taken = |parts: u32| places(if has.by_part { parts } else { 1 });
    let rows = tx.holders(site)?;
    let mut holders: Vec<Runner> = rows.iter().map(|row| Runner { needs: taken(row.parts), ..runner(row) }).collect();
    // What was given to someone who has not begun is about to be used.
    let about = places(about_to_begin(&rows, &parts));
    holders.push(Runner { seq: 0, priority: 0, since: now, needs: about, leaving: false, may_go: false });
    let capacity = places(most(tx, site, &has, waited(&first, now))?);
    let first = Claim { job: first.name, priority: first.priority, needs: taken(plan.parts()) };
    Ok(Some(Contest { capacity, holders, first }))
}

/// How many places there are to be had: nodes that did not come for long are not waited for.
fn most(tx: &mut Tx<'_>, site: &str, has: &Places, waited_ms: i64) -> Result<u32, Error> {
    if !has.by_part || waited_ms < COMING_MS {
        return Ok(has.most);
    }
    let machines = tx.machines(site)?;
    let there = machines.iter().filter(|row| row.standing == Standing::Ready).count();
    let coming = machines.iter().any(|row| row.standing == Standing::Preparing);
    Ok(if coming { has.most } else { u32::try_from(there).unwrap_or(u32::MAX) })
}

/// How many nodes are given to jobs of which none has begun there.
fn about_to_begin(rows: &[HolderJob], parts: &[MachinePart]) -> u32 {
    let begun: HashSet<&AttemptId> = rows.iter().filter_map(|row| row.job.state.attempt()).collect();
    let at_work: HashSet<&str> =
        parts.iter().filter(|part| begun.contains(&part.attempt)).map(|part| part.machine.as_str()).collect();
    let given: HashSet<&str> = parts.iter().map(|part| part.machine.as_str()).collect();
    u32::try_from(given.difference(&at_work).count()).unwrap_or(u32::MAX)
}

/// For how long a job has waited where it was sent.
fn waited(job: &Job, now: Timestamp) -> i64 {
    match &job.state {
        JobState::Placed { since, .. } => now.0 - since.0,
        _ => 0,
    }
}

fn runner(row: &HolderJob) -> Runner {
    let leaving = matches!(row.job.state, JobState::Stopping { .. } | JobState::Finalizing { .. });
    let since = row.job.state.started_at().unwrap_or(row.job.created_at);
    let HolderJob { job, needs, serves, .. } = row;
    Runner { seq: job.seq, priority: job.priority, since, needs: *needs, leaving, may_go: !serves }
}
