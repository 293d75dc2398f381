//! Who is first in line on a managed cluster, and who may pass it.

use super::{Managed, stored};
use compute::{Provider, Trouble};
use domain::{
    AttemptId, Resources, Timestamp,
    cluster::Launch,
    machine::Standing,
    sharing::backfill::{self, Promise, Running},
};
use std::collections::{BTreeMap, HashMap};
use store::HolderJob;

/// The first attempt that there are not enough nodes for, as of the last look.
#[derive(Default)]
pub(super) struct Line {
    first: Option<(AttemptId, u32)>,
    promise: Promise,
    /// By when it begins, once that was worked out.
    begins_by: Option<Option<Timestamp>>,
    /// Who was passed, and by which job.
    passed: Option<(AttemptId, String)>,
}

impl Line {
    /// Everything that waits is about to be tried again.
    pub(super) fn begin(&mut self) {
        (self.first, self.begins_by) = (None, None);
    }
}

impl<P: Provider> Managed<P> {
    /// Whether an attempt may have nodes that those before it wait for: it is gone before the first of them could begin.
    pub(super) async fn passes(&mut self, launch: &Launch) -> Result<bool, Trouble> {
        let Some((first, needs)) = self.line.first.clone() else { return Ok(false) };
        if launch.timeout_seconds.is_none() || self.idle.len() < launch.parts as usize {
            return Ok(false);
        }
        let present = self.rows.iter().filter(|row| row.standing != Standing::Gone).count();
        // What waits for nodes that are still to come may begin at any moment.
        if present < self.settings.bounds.most as usize {
            return Ok(false);
        }
        let begins_by = match self.line.begins_by {
            Some(known) => known,
            None => {
                let running = self.running().await?;
                let free = Resources::places(self.idle.len() as u64);
                let found = backfill::begins_by(&Resources::places(needs.into()), &free, &running);
                self.line.promise.keep(&first, found)
            }
        };
        self.line.begins_by = Some(begins_by);
        let passes = backfill::may_pass(launch.timeout_seconds, begins_by, (self.settings.clock)());
        if passes {
            self.line.passed = Some((first, launch.job.to_string()));
        }
        Ok(passes)
    }

    /// Why an attempt waits, in words. The first that does is the one that nobody may hold up.
    pub(super) fn waits(&mut self, launch: &Launch, free: usize) -> String {
        let why = self.why(launch.parts as usize, free);
        self.line.first.get_or_insert_with(|| (launch.attempt.clone(), launch.parts));
        match &self.line.passed {
            Some((whose, by)) if *whose == launch.attempt => format!("{why}; {}", backfill::passed_by(by)),
            _ => why,
        }
    }

    /// By when each node that has work is free again.
    async fn running(&self) -> Result<Vec<Running>, Trouble> {
        let cluster = self.settings.cluster.clone();
        let holders = self.store.read(move |tx| tx.holders(&cluster)).await.map_err(stored)?;
        let held = |one: &HolderJob| {
            let running = Running::of(Resources::places(1), one.job.state.started_at(), one.timeout);
            Some((one.job.state.attempt()?.clone(), running.ends_by))
        };
        let ends: HashMap<AttemptId, Option<Timestamp>> = holders.iter().filter_map(held).collect();
        let mut by_node: BTreeMap<&str, Option<Timestamp>> = BTreeMap::new();
        for part in &self.parts {
            let end = ends.get(&part.attempt).copied().flatten();
            let known = by_node.entry(&part.machine).or_insert(end);
            *known = known.zip(end).map(|(one, other)| one.max(other));
        }
        Ok(by_node.into_values().map(|ends_by| Running { has: Resources::places(1), ends_by }).collect())
    }
}
