//! A managed cluster: nodes come when work waits for them, and go when none does.
//!
//! To the server it is a place with a steward, as a machine reached by SSH is. What is known of its nodes is in the store, and
//! what there is is known to its provider; the two are compared again and again. Invariants: a node is written down before it is
//! ordered and forgotten after it is gone; work of a node that fell silent begins elsewhere only after the provider has taken
//! the node away; the parts of an attempt get their nodes together or not at all.

mod tasks;

use compute::{Held, Look, Order, Part, PartState, Provider, Site, Started, Trouble};
use domain::{
    AttemptId, Resources, Timestamp,
    cluster::{ClusterFacts, ClusterInstanceType, ClusterNode, Finding, Launch},
    machine::{PartFate, Standing},
    resources::DEFAULT_INSTANCE_TYPE,
};
use planner::nodes::{Bounds, Failures, Member, SILENT_MS, Step, resize};
use std::collections::{BTreeMap, HashSet};
use store::{Bell, Error, MachinePart, MachineRow, Store, secrets::Keyring};
use tasks::{Done, Tasks};
use tokio::sync::watch;

/// A node that is taken back has this long to end what it runs.
const NOTICE_MS: i64 = 60_000;
/// How long one that was unusable is shown after it was taken away.
const SHOWN_MS: i64 = 10 * 60_000;
/// An agent that ends again within this time takes its node with it.
const REVIVE_MS: i64 = 60_000;
/// A provider is asked for what it has this often.
const LIST_MS: i64 = 5_000;
const LIST_IDLE_MS: i64 = 60_000;

/// What a cluster is to be.
pub struct ManagedSettings {
    /// As the server calls the place.
    pub cluster: String,
    pub workspace: String,
    pub compute: String,
    /// Stays the same for as long as the cluster lives.
    pub uid: String,
    /// The size of its nodes, by name and as amounts.
    pub size: (String, Resources),
    pub bounds: Bounds,
    /// It is to go, and whoever waits for that asks after this operation.
    pub deleting: Option<String>,
    /// Makes the token that one machine joins with.
    pub token: fn(&Keyring, &str, &str) -> String,
    pub clock: fn() -> Timestamp,
}

/// A cluster whose nodes a provider brings.
pub struct Managed<P> {
    store: Store,
    settings: ManagedSettings,
    bell: watch::Receiver<u64>,
    tasks: Tasks<P>,
    rows: Vec<MachineRow>,
    parts: Vec<MachinePart>,
    /// Nodes that attempts ahead of the next one wait for.
    reserved: usize,
    /// How many nodes each attempt wants that has none yet.
    waiting: Vec<u32>,
    failures: Failures,
    /// What the provider said last that was not well.
    trouble: Option<String>,
    /// Nodes whose agent had to be started again, and when.
    revived: BTreeMap<String, Timestamp>,
    /// Nodes that could not be taken away, and when that was tried.
    stuck: BTreeMap<String, Timestamp>,
    listed_at: Option<Timestamp>,
    /// What a node really has.
    offers: Option<Resources>,
}

impl<P: Provider> Managed<P> {
    pub fn new(store: Store, provider: P, settings: ManagedSettings) -> Managed<P> {
        Managed {
            bell: store.changed(Bell::Machines),
            store,
            settings,
            tasks: Tasks::new(provider),
            rows: Vec::new(),
            parts: Vec::new(),
            reserved: 0,
            waiting: Vec::new(),
            failures: Failures::default(),
            trouble: None,
            revived: BTreeMap::new(),
            stuck: BTreeMap::new(),
            listed_at: None,
            offers: None,
        }
    }

    fn is_busy(&self, name: &str) -> bool {
        self.parts.iter().any(|part| part.machine == name)
    }

    fn row(&self, name: &str) -> Option<&MachineRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Nodes that could begin something now.
    fn free(&self, now: Timestamp) -> Vec<String> {
        let well = |row: &&MachineRow| {
            row.standing == Standing::Ready
                && row.seen_at.is_some_and(|seen| now.0 - seen.0 < SILENT_MS)
                && !self.is_busy(&row.name)
        };
        self.rows.iter().filter(well).map(|row| row.name.clone()).collect()
    }

    async fn refresh(&mut self) -> Result<(), Trouble> {
        self.bell.mark_unchanged();
        let cluster = self.settings.cluster.clone();
        let read = self.store.read(move |tx| Ok((tx.machines(&cluster)?, tx.machine_parts(&cluster)?)));
        (self.rows, self.parts) = read.await.map_err(stored)?;
        // A node that works is proof that they can be had.
        if self
            .rows
            .iter()
            .any(|row| row.standing == Standing::Ready && row.created_at > self.failures.last.unwrap_or_default())
        {
            self.failures = Failures::default();
            self.trouble = None;
        }
        Ok(())
    }

    /// Writes down how a node stands from now on.
    async fn stands(&mut self, name: &str, standing: Standing, reason: &str) -> Result<(), Trouble> {
        let (cluster, name, reason, now) =
            (self.settings.cluster.clone(), name.to_owned(), reason.to_owned(), (self.settings.clock)());
        let written = self.store.write(move |tx| {
            let Some(row) = tx.machine(&cluster, &name)? else { return Ok(()) };
            let since = if row.standing == standing { row.since } else { now };
            tx.put_machine(&MachineRow { standing, reason, since, ..row })
        });
        written.await.map_err(stored)
    }

    /// Forgets a node that is there no more. What it still held is told to be gone.
    async fn gone(&mut self, name: &str) -> Result<(), Trouble> {
        let (cluster, name, now) = (self.settings.cluster.clone(), name.to_owned(), (self.settings.clock)());
        let written = self.store.write(move |tx| {
            let Some(row) = tx.machine(&cluster, &name)? else { return Ok(()) };
            for part in tx.parts_of_machine(&cluster, &name)? {
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
    fn order_of(&self, name: &str, amounts: Resources) -> Order {
        let settings = &self.settings;
        let token = (settings.token)(self.store.keyring(), &settings.cluster, name);
        Order { name: name.to_owned(), token, size: settings.size.0.clone(), amounts }
    }

    async fn order(&mut self) -> Result<(), Trouble> {
        let settings = &self.settings;
        let (name, now) =
            (format!("{}-{}", settings.compute, hex(&self.store.keyring().random::<3>())), (settings.clock)());
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
        self.rows.push(row);
        self.tasks.create(order);
        Ok(())
    }

    async fn hear(&mut self, done: Done) -> Result<(), Trouble> {
        match done {
            Done::Created(name, Err(trouble)) => {
                self.failures.more((self.settings.clock)());
                self.trouble = Some(trouble.why.clone());
                self.stands(&name, Standing::Unusable, &trouble.why).await
            }
            Done::Created(_, Ok(())) => Ok(()),
            Done::Deleted(name, Ok(())) => self.gone(&name).await,
            Done::Deleted(name, Err(trouble)) => {
                self.trouble = Some(trouble.why.clone());
                self.stuck.insert(name.clone(), (self.settings.clock)());
                let Some(standing) = self.row(&name).map(|row| row.standing) else { return Ok(()) };
                self.stands(&name, standing, &format!("it cannot be taken away: {trouble}")).await
            }
            Done::Listed(asked_at, Ok(Some(found))) => self.compare(asked_at, found).await,
            Done::Listed(_, Ok(None)) => Ok(()),
            Done::Listed(_, Err(trouble)) => {
                self.trouble = Some(trouble.why);
                Ok(())
            }
        }
    }

    /// Sets what is written down against what is there.
    async fn compare(&mut self, asked_at: Timestamp, found: Vec<compute::Found>) -> Result<(), Trouble> {
        let names: HashSet<&str> = found.iter().map(|found| found.name.as_str()).collect();
        let old = |row: &&MachineRow| row.created_at < asked_at && row.standing != Standing::Gone;
        let away = |row: &&MachineRow| !names.contains(row.name.as_str()) && !self.tasks.is_at(&row.name);
        let missing: Vec<MachineRow> = self.rows.iter().filter(old).filter(away).cloned().collect();
        for row in missing {
            if matches!(row.standing, Standing::Preparing | Standing::Ready) {
                self.stands(&row.name, Standing::Unusable, "its provider has it no more").await?;
            }
            self.gone(&row.name).await?;
        }
        for found in found {
            let standing = self.row(&found.name).map(|row| row.standing);
            match (standing, found.dead) {
                // Nobody knows of it: it was ordered by a server that was told of its end.
                (None | Some(Standing::Gone), _) => self.tasks.delete(&found.name),
                (Some(Standing::Ready), Some(_)) if self.may_revive(&found.name, asked_at) => {
                    let amounts = self.row(&found.name).map_or(self.settings.size.1, |row| row.ordered);
                    self.revived.insert(found.name.clone(), asked_at);
                    self.tasks.create(self.order_of(&found.name, amounts));
                }
                (Some(Standing::Preparing | Standing::Ready), Some(why)) if !self.tasks.is_at(&found.name) => {
                    if standing == Some(Standing::Preparing) {
                        self.failures.more((self.settings.clock)());
                        self.trouble = Some(why.clone());
                    }
                    self.stands(&found.name, Standing::Unusable, &why).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the agent of a node may be started again: what runs there does not depend on it.
    fn may_revive(&self, name: &str, now: Timestamp) -> bool {
        !self.tasks.is_at(name) && self.revived.get(name).is_none_or(|last| now.0 - last.0 >= REVIVE_MS)
    }

    /// Nodes that are to go and may are taken away; those that were are forgotten after a while.
    async fn clear(&mut self, now: Timestamp) -> Result<(), Trouble> {
        self.revived.retain(|_, last| now.0 - last.0 < REVIVE_MS);
        self.stuck.retain(|_, tried| now.0 - tried.0 < LIST_MS);
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
    async fn end(&mut self, operation: String) -> Result<(), Trouble> {
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

    fn facts(&self) -> ClusterFacts {
        let each = self.offers.unwrap_or(self.settings.size.1);
        let node = |row: &MachineRow| ClusterNode {
            name: row.name.clone(),
            ready: row.standing == Standing::Ready,
            allocatable: each,
            free: if self.is_busy(&row.name) { Resources::default() } else { each },
            ..ClusterNode::default()
        };
        let kind = |name: &str| ClusterInstanceType {
            name: name.to_owned(),
            requests: each,
            limits: each,
            fits_now: u64::from(self.settings.bounds.most),
            fits_ever: true,
            ..ClusterInstanceType::default()
        };
        ClusterFacts {
            uid: self.settings.uid.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kubernetes_version: String::new(),
            gangs: "steward".to_owned(),
            training: true,
            inference: false,
            scoring_url: String::new(),
            grows: true,
            nodes: self.rows.iter().filter(|row| row.standing != Standing::Gone).map(node).collect(),
            instance_types: vec![kind(DEFAULT_INSTANCE_TYPE), kind(&self.settings.size.0)],
        }
    }

    fn held(&self) -> Vec<Held> {
        let mut held: BTreeMap<&AttemptId, Vec<Part>> = BTreeMap::new();
        for part in &self.parts {
            let state = match &part.fate {
                None => PartState::Waits(format!("node `{}` is about to take it", part.machine)),
                Some(PartFate::Runs) => PartState::Runs(part.machine.clone()),
                Some(PartFate::Left) => PartState::Left,
                Some(PartFate::Gone { code, why, retryable }) => {
                    PartState::Gone { code: code.clone(), why: why.clone(), retryable: *retryable }
                }
            };
            held.entry(&part.attempt).or_default().push(Part { index: part.part, state });
        }
        held.into_iter().map(|(attempt, parts)| Held { attempt: attempt.clone(), parts }).collect()
    }

    /// Why an attempt has no nodes yet, in words.
    fn why(&self, parts: usize, free: usize) -> String {
        let nodes = |count: usize| if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        if let Some(trouble) = &self.trouble {
            return format!("it needs {} and none can be had: {trouble}; it is tried again", nodes(parts));
        }
        let coming = self.rows.iter().filter(|row| row.standing == Standing::Preparing).count();
        let busy = self.rows.iter().filter(|row| self.is_busy(&row.name)).count();
        let most = self.settings.bounds.most;
        match (coming, busy) {
            (0, 0) => {
                format!("{} asked for", if parts == 1 { "a node is".to_owned() } else { format!("{parts} nodes are") })
            }
            (0, busy) => format!("it needs {}: {free} free, {busy} of at most {most} at work", nodes(parts)),
            (coming, _) => format!("it needs {}: {free} free, {coming} being prepared", nodes(parts)),
        }
    }
}

impl<P: Provider> Site for Managed<P> {
    async fn look(&mut self) -> Result<Look, Trouble> {
        if self.offers.is_none() {
            self.offers = Some(self.tasks.provider.offers(&self.settings.size.1).await?);
        }
        self.refresh().await?;
        (self.reserved, self.waiting) = (0, Vec::new());
        Ok(Look { facts: self.facts(), now: None, held: self.held() })
    }

    async fn launch(&mut self, launch: &Launch, _: &Look) -> Result<Started, Trouble> {
        let (parts, most) = (launch.parts as usize, self.settings.bounds.most);
        if launch.parts > most {
            let why = format!("it needs {parts} nodes and `{}` has {most} at most", self.settings.compute);
            return Ok(Started::Never(why));
        }
        let free = self.free((self.settings.clock)());
        if free.len() < self.reserved + parts {
            // Those behind it must not take what it waits for.
            self.reserved += parts;
            self.waiting.push(launch.parts);
            return Ok(Started::Later(self.why(parts, free.len())));
        }
        let chosen: Vec<String> = free[..parts].to_vec();
        let (cluster, attempt, now) = (self.settings.cluster.clone(), launch.attempt.clone(), (self.settings.clock)());
        let given = self.store.write(move |tx| {
            for name in &chosen {
                match tx.machine(&cluster, name)? {
                    Some(row) if row.standing == Standing::Ready => {
                        tx.put_machine(&MachineRow { since: now, ..row })?
                    }
                    // It has left meanwhile.
                    _ => return Ok(false),
                }
            }
            tx.assign_parts(&cluster, &attempt, &chosen)?;
            Ok(true)
        });
        let given = given.await.map_err(stored)?;
        self.refresh().await?;
        Ok(if given { Started::Yes } else { Started::Later("its node has just left".to_owned()) })
    }

    async fn stop(&mut self, _: &AttemptId) -> Result<(), Trouble> {
        Ok(())
    }

    async fn remove(&mut self, attempt: &AttemptId) -> Result<(), Trouble> {
        let (cluster, attempt, now) = (self.settings.cluster.clone(), attempt.clone(), (self.settings.clock)());
        let dropped = self.store.write(move |tx| {
            let parts = tx.machine_parts(&cluster)?.into_iter().filter(|part| part.attempt == attempt);
            for machine in parts.map(|part| part.machine).collect::<HashSet<_>>() {
                if let Some(row) = tx.machine(&cluster, &machine)?.filter(|row| row.standing == Standing::Ready) {
                    tx.put_machine(&MachineRow { since: now, ..row })?;
                }
            }
            tx.drop_parts(&cluster, &attempt)
        });
        dropped.await.map_err(stored)
    }

    async fn changed(&mut self) {
        tokio::select! {
            _ = self.bell.changed() => {}
            () = self.tasks.changed() => {}
        }
    }

    async fn settle(&mut self) -> Result<(), Trouble> {
        for done in self.tasks.done() {
            self.hear(done).await?;
            self.refresh().await?;
        }
        let now = (self.settings.clock)();
        let every = if self.rows.is_empty() { LIST_IDLE_MS } else { LIST_MS };
        if self.listed_at.is_none_or(|at| now.0 - at.0 >= every) {
            self.listed_at = Some(now);
            self.tasks.list(now);
        }
        let deleting = self.settings.deleting.clone();
        let bounds = match &deleting {
            Some(_) => Bounds { least: 0, most: 0, idle_ms: 0 },
            None => self.settings.bounds,
        };
        let present = self.rows.iter().filter(|row| row.standing != Standing::Gone);
        let members: Vec<Member> = present.map(|row| member(row, self.is_busy(&row.name))).collect();
        for step in resize(&bounds, &members, &self.waiting, &self.failures, now) {
            match step {
                Step::Order(count) => {
                    for _ in 0..count {
                        self.order().await?;
                    }
                }
                Step::Leave(name) => self.stands(&name, Standing::Leaving, "it had nothing to do").await?,
                Step::Condemn(name, why) => {
                    if self.row(&name).is_some_and(|row| row.standing == Standing::Preparing) {
                        self.failures.more(now);
                    }
                    self.stands(&name, Standing::Unusable, &why).await?;
                }
            }
        }
        self.refresh().await?;
        self.clear(now).await?;
        match deleting {
            Some(operation) if members.is_empty() && !self.tasks.is_busy() => self.end(operation).await,
            _ => Ok(()),
        }
    }

    async fn check(&mut self) -> Vec<Finding> {
        let mut findings = self.tasks.provider.check().await;
        let (size, amounts) = &self.settings.size;
        match self.tasks.provider.offers(amounts).await {
            Ok(offers) => {
                let detail = match offers == *amounts {
                    true => format!("nodes of size `{size}` have {}", amounts.humane()),
                    false => format!(
                        "nodes of size `{size}` have {}, which is all there is of {}",
                        offers.humane(),
                        amounts.humane()
                    ),
                };
                findings.push(Finding { check: "size".to_owned(), passed: true, detail });
            }
            Err(trouble) => findings.push(Finding { check: "size".to_owned(), passed: false, detail: trouble.why }),
        }
        findings
    }
}

fn member(row: &MachineRow, busy: bool) -> Member {
    Member {
        name: row.name.clone(),
        standing: row.standing,
        busy,
        since: row.since,
        heard: row.seen_at.unwrap_or(row.created_at),
    }
}

/// What became of a part whose node is gone.
fn lost(row: &MachineRow) -> PartFate {
    let (code, why) = match row.standing {
        Standing::Preempted => ("Preempted", format!("node `{}` was taken back", row.name)),
        _ if row.reason.is_empty() => ("NodeLost", format!("node `{}` is gone", row.name)),
        _ => ("NodeLost", format!("node `{}` is gone: {}", row.name, row.reason)),
    };
    PartFate::Gone { code: code.to_owned(), why, retryable: true }
}

fn stored(error: Error) -> Trouble {
    Trouble::new("store", error.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
