//! The nodes of a managed cluster: ordered, compared with what their provider has, condemned, taken away.

use super::{LIST_MS, Managed, NOTICE_MS, REVIVE_MS, SHOWN_MS, stored, tasks::Done};
use compute::{Found, Health, Listing, Order, Provider, Trouble};
use domain::{
    JobState, Resources, Timestamp,
    machine::{PartFate, Standing},
};
use planner::nodes::SILENT_MS;
use std::collections::HashSet;
use store::{Bell, MachineRow};

impl<P: Provider> Managed<P> {
    /// Writes down how a node stands from now on.
    pub(super) async fn stands(&mut self, name: &str, standing: Standing, reason: &str) -> Result<(), Trouble> {
        let (cluster, name, reason, now) =
            (self.settings.cluster.clone(), name.to_owned(), reason.to_owned(), (self.settings.clock)());
        let written = self.store.write(move |tx| {
            let Some(row) = tx.machine(&cluster, &name)? else { return Ok(()) };
            // It has got work since it was looked at.
            if standing == Standing::Leaving && !tx.parts_of_machine(&cluster, &name)?.is_empty() {
                return Ok(());
            }
            // It has joined since it was looked at.
            if standing == Standing::Preparing && row.standing != standing {
                return Ok(());
            }
            let since = if row.standing == standing { row.since } else { now };
            tx.put_machine(&MachineRow { standing, reason, since, ..row })
        });
        written.await.map_err(stored)
    }

    /// Forgets a node that is there no more. What it still held is told to be gone.
    pub(super) async fn gone(&mut self, name: &str) -> Result<(), Trouble> {
        let (cluster, name, now) = (self.settings.cluster.clone(), name.to_owned(), (self.settings.clock)());
        let written = self.store.write(move |tx| {
            let Some(row) = tx.machine(&cluster, &name)? else { return Ok(()) };
            for part in tx.parts_of_machine(&cluster, &name)? {
                let job = part.attempt.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten();
                if part.fate == Some(PartFate::Own)
                    && job.is_some_and(|job| matches!(job.state, JobState::Placed { .. }))
                {
                    // It stood in line there and has not begun.
                    tx.take_whole(&part.attempt)?;
                    continue;
                }
                if !matches!(part.fate, Some(PartFate::Left | PartFate::Gone { .. })) {
                    tx.put_fate(&part.attempt, part.part, &lost(&row))?;
                }
            }
            match row.standing {
                Standing::Unusable => tx.put_machine(&MachineRow { standing: Standing::Gone, since: now, ..row }),
                _ => tx.drop_machine(&cluster, &name),
            }
        });
        written.await.map_err(stored)
    }

    /// The order for a node of this name.
    pub(super) fn order_of(&self, name: &str, amounts: Resources) -> Order {
        let settings = &self.settings;
        let token = (settings.token)(self.store.keyring(), &settings.cluster, name);
        Order { name: name.to_owned(), token, size: settings.size.0.clone(), amounts, tier: settings.tier }
    }

    pub(super) async fn order(&mut self) -> Result<(), Trouble> {
        let settings = &self.settings;
        let (chance, now) = (hex(&self.store.keyring().random::<3>()), (settings.clock)());
        // Whoever brings nodes for several clusters of one name tells them apart by it.
        let name = format!("{}-{}-{chance}", settings.compute, settings.uid);
        let amounts = self.offers.unwrap_or(settings.size.1);
        let order = self.order_of(&name, amounts);
        let row = MachineRow {
            cluster: settings.cluster.clone(),
            name,
            standing: Standing::Preparing,
            reason: String::new(),
            ordered: amounts,
            facts: Default::default(),
            joined: String::new(),
            created_at: now,
            since: now,
            seen_at: None,
        };
        let kept = row.clone();
        self.store.write(move |tx| tx.put_machine(&kept)).await.map_err(stored)?;
        self.asked.insert(row.name.clone());
        self.rows.push(row);
        self.tasks.create(order);
        Ok(())
    }

    pub(super) async fn hear(&mut self, done: Done) -> Result<(), Trouble> {
        match done {
            // One that has joined works, whatever is said of the order.
            Done::Created(name, Err(_)) if self.row(&name).is_some_and(|row| row.standing == Standing::Ready) => Ok(()),
            Done::Created(name, Err(trouble)) => {
                self.failures.more((self.settings.clock)());
                self.trouble = Some(trouble.why.clone());
                self.stands(&name, Standing::Unusable, &trouble.why).await
            }
            Done::Created(_, Ok(())) => Ok(()),
            Done::Deleted(name, Ok(())) => self.gone(&name).await,
            // Whoever deletes the cluster by force waits for no machine. One that comes back hears that it is no node any more.
            Done::Deleted(name, Err(trouble)) if self.settings.forced => {
                tracing::warn!(node = name, "it is left behind, for it cannot be taken away: {trouble}");
                self.gone(&name).await
            }
            Done::Deleted(name, Err(trouble)) => {
                self.trouble = Some(trouble.why.clone());
                self.stuck.insert(name.clone(), (self.settings.clock)());
                let Some(standing) = self.row(&name).map(|row| row.standing) else { return Ok(()) };
                self.stands(&name, standing, &format!("it cannot be taken away: {trouble}")).await
            }
            Done::Listed(asked_at, Ok(listing)) => self.compare(asked_at, listing).await,
            Done::Listed(_, Err(trouble)) => {
                self.trouble = Some(trouble.why);
                Ok(())
            }
        }
    }

    /// Sets what is written down against what is there.
    pub(super) async fn compare(&mut self, asked_at: Timestamp, listing: Listing) -> Result<(), Trouble> {
        let names: HashSet<&str> = listing.found.iter().map(|found| found.name.as_str()).collect();
        let old = |row: &&MachineRow| row.created_at < asked_at && row.standing != Standing::Gone;
        let away = |row: &&MachineRow| {
            !names.contains(row.name.as_str()) && listing.lacks(&row.name) && !self.tasks.is_at(&row.name)
        };
        // A list may leave out what is there: one that was just heard of lives.
        let silent = |row: &&MachineRow| row.seen_at.is_none_or(|seen| asked_at.0 - seen.0 >= SILENT_MS);
        let missing: Vec<MachineRow> = self.rows.iter().filter(old).filter(away).filter(silent).cloned().collect();
        for row in missing {
            if matches!(row.standing, Standing::Preparing | Standing::Ready) {
                self.stands(&row.name, Standing::Unusable, "its provider has it no more").await?;
            }
            // And one that was not may yet be at work. It is forgotten once it is taken away.
            if !self.stuck.contains_key(&row.name) {
                self.tasks.delete(&row.name);
            }
        }
        for found in listing.found {
            self.hear_of(found, asked_at).await?;
        }
        Ok(())
    }

    /// What is to be done about a node that is there.
    async fn hear_of(&mut self, Found { name, health }: Found, asked_at: Timestamp) -> Result<(), Trouble> {
        let Some(row) = self.row(&name).filter(|row| row.standing != Standing::Gone).cloned() else {
            // Nobody knows of it: it was ordered by a server that was told of its end.
            if self.tasks.provider.is_own(&name) {
                self.tasks.delete(&name);
            }
            return Ok(());
        };
        if self.tasks.is_at(&name) {
            return Ok(());
        }
        match (row.standing, health) {
            // A server that was killed may have had half of it ordered.
            (Standing::Preparing, Health::Well | Health::Waits(_)) if self.asked.insert(name.clone()) => {
                self.tasks.create(self.order_of(&name, row.ordered));
            }
            (Standing::Preparing, Health::Well) if !row.reason.is_empty() => {
                self.stands(&name, Standing::Preparing, "").await?;
            }
            (Standing::Preparing, Health::Waits(why)) if row.reason != why => {
                self.stands(&name, Standing::Preparing, &why).await?;
            }
            // What runs there is asked to end while there is time.
            (Standing::Ready, Health::Leaves(why)) => self.stands(&name, Standing::Preempted, &why).await?,
            (Standing::Ready, Health::Dead(_)) if self.may_revive(&name, asked_at) => {
                self.revived.insert(name.clone(), asked_at);
                self.tasks.create(self.order_of(&name, row.ordered));
            }
            (Standing::Preparing | Standing::Ready, Health::Dead(why) | Health::Leaves(why)) => {
                if row.standing == Standing::Preparing {
                    self.failures.more((self.settings.clock)());
                    self.trouble = Some(why.clone());
                }
                self.stands(&name, Standing::Unusable, &why).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the agent of a node may be started again: what runs there does not depend on it.
    pub(super) fn may_revive(&self, name: &str, now: Timestamp) -> bool {
        self.tasks.provider.revives() && self.revived.get(name).is_none_or(|last| now.0 - last.0 >= REVIVE_MS)
    }

    /// Nodes that are to go and may are taken away; those that were are forgotten after a while.
    pub(super) async fn clear(&mut self, now: Timestamp) -> Result<(), Trouble> {
        self.revived.retain(|_, last| now.0 - last.0 < REVIVE_MS);
        self.stuck.retain(|_, tried| now.0 - tried.0 < LIST_MS);
        self.asked.retain(|name| self.rows.iter().any(|row| row.name == *name));
        for row in self.rows.clone() {
            let busy = self.is_busy(&row.name);
            let may = match row.standing {
                Standing::Unusable => true,
                Standing::Leaving => !busy,
                Standing::Preempted => !busy || now.0 - row.since.0 >= NOTICE_MS,
                Standing::Gone if now.0 - row.since.0 >= SHOWN_MS && !busy => {
                    let (cluster, name) = (row.cluster.clone(), row.name.clone());
                    self.store.write(move |tx| tx.drop_machine(&cluster, &name)).await.map_err(stored)?;
                    false
                }
                _ => false,
            };
            if may && !self.stuck.contains_key(&row.name) {
                self.tasks.delete(&row.name);
            }
        }
        Ok(())
    }

    /// Everything of it is gone: so is it.
    pub(super) async fn end(&mut self, operation: String) -> Result<(), Trouble> {
        self.tasks.provider.end().await;
        let (workspace, compute, cluster) =
            (self.settings.workspace.clone(), self.settings.compute.clone(), self.settings.cluster.clone());
        let now = (self.settings.clock)();
        let written = self.store.write(move |tx| {
            for row in tx.machines(&cluster)? {
                tx.drop_machine(&cluster, &row.name)?;
            }
            tx.delete_compute(&workspace, &compute)?;
            tx.delete_cluster(&cluster)?;
            tx.end_operation(&operation, None, now)?;
            tx.ring(Bell::Clusters);
            Ok(())
        });
        written.await.map_err(stored)
    }
}

fn lost(row: &MachineRow) -> PartFate {
    let (code, why) = match row.standing {
        Standing::Preempted => ("Preempted", format!("node `{}` was taken back", row.name)),
        _ if row.reason.is_empty() => ("NodeLost", format!("node `{}` is gone", row.name)),
        _ => ("NodeLost", format!("node `{}` is gone: {}", row.name, row.reason)),
    };
    PartFate::Gone { code: code.to_owned(), why, retryable: true }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
