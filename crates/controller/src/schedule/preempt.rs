//! Making way on this machine, where its owner has said that higher priority may take from lower.

use crate::Context;
use domain::{JobState, Timestamp};
use planner::preempt::{Claim, Contest, Runner, make_way};
use store::{Error, HolderJob, Tx};

/// Room that is about to be free is often known to the agent before it is known here.
const PATIENCE_MS: i64 = 2_000;

pub(super) async fn tick(cx: &Context, now: Timestamp) -> Result<(), Error> {
    if !cx.sharing.preempt {
        return Ok(());
    }
    let Some(contest) = cx.store.look(move |tx| contest(tx, now)).await? else { return Ok(()) };
    let stopped = make_way(&contest);
    if stopped.is_empty() {
        return Ok(());
    }
    let write = cx
        .store
        .write(move |tx| stopped.iter().try_for_each(|(seq, because)| tx.preempt_job(*seq, because, now).map(drop)));
    write.await
}

fn contest(tx: &mut Tx<'_>, now: Timestamp) -> Result<Option<Contest>, Error> {
    let Some((first, needs)) = tx.first_in_line()? else { return Ok(None) };
    let JobState::Placed { since, .. } = &first.state else { return Ok(None) };
    if now.0 - since.0 < PATIENCE_MS {
        return Ok(None);
    }
    let Some(node) = tx.nodes()?.into_iter().next() else { return Ok(None) };
    let holders = tx.holders_here()?.iter().map(runner).collect();
    let first = Claim { job: first.name, priority: first.priority, needs };
    Ok(Some(Contest { capacity: node.facts.capacity, holders, first }))
}

fn runner(row: &HolderJob) -> Runner {
    let leaving = matches!(row.job.state, JobState::Stopping { .. } | JobState::Finalizing { .. });
    let since = row.job.state.started_at().unwrap_or(row.job.created_at);
    let HolderJob { job, needs, serves, .. } = row;
    Runner { seq: job.seq, priority: job.priority, since, needs: *needs, leaving, may_go: !serves }
}
