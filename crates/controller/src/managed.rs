//! A managed cluster: nodes come when work waits for them, and go when none does.
//!
//! To the server it is a place with a steward, as a machine reached by SSH is. What is known of its nodes is in the store, and
//! what there is is known to its provider; the two are compared again and again. Invariants: a node is written down before it is
//! ordered and forgotten after it is gone; work of a node that fell silent begins elsewhere only after the provider has taken
//! the node away; the parts of an attempt get their nodes together or not at all.

mod line;
mod nodes;
mod tasks;
mod view;

use compute::{Look, Provider, Site, Started, Tier, Trouble};
use domain::{
    AttemptId, JobState, Resources, Timestamp,
    cluster::{Finding, Launch},
    machine::Standing,
};
use line::Line;
use planner::nodes::{Bounds, Failures, Member, SILENT_MS, Step, resize};
use std::collections::{BTreeMap, HashSet};
use store::{Bell, Error, MachinePart, MachineRow, Store, secrets::Keyring};
use tasks::Tasks;
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
    pub tier: Tier,
    /// Higher priority may take nodes from lower.
    pub preempts: bool,
    /// It is to go, and whoever waits for that asks after this operation.
    pub deleting: Option<String>,
    /// And its machines need not be there for it.
    pub forced: bool,
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
    /// Nodes that have work, and those that could begin something now.
    busy: HashSet<String>,
    idle: Vec<String>,
    /// Nodes that attempts ahead of the next one wait for.
    reserved: usize,
    line: Line,
    /// How many nodes each attempt wants that has none yet.
    waiting: Vec<u32>,
    failures: Failures,
    /// What the provider said last that was not well.
    trouble: Option<String>,
    /// Nodes that were ordered by this steward, and not by one before it.
    asked: HashSet<String>,
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
            busy: HashSet::new(),
            idle: Vec::new(),
            reserved: 0,
            line: Line::default(),
            waiting: Vec::new(),
            failures: Failures::default(),
            trouble: None,
            asked: HashSet::new(),
            revived: BTreeMap::new(),
            stuck: BTreeMap::new(),
            listed_at: None,
            offers: None,
        }
    }

    fn is_busy(&self, name: &str) -> bool {
        self.busy.contains(name)
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

    /// These nodes have work from now on.
    fn taken(&mut self, nodes: &[String]) {
        self.idle.retain(|name| !nodes.contains(name));
        self.busy.extend(nodes.iter().cloned());
    }

    async fn refresh(&mut self) -> Result<(), Trouble> {
        self.bell.mark_unchanged();
        let cluster = self.settings.cluster.clone();
        let read = self.store.read(move |tx| Ok((tx.machines(&cluster)?, tx.machine_parts(&cluster)?)));
        (self.rows, self.parts) = read.await.map_err(stored)?;
        self.busy = self.parts.iter().map(|part| part.machine.clone()).collect();
        self.idle = self.free((self.settings.clock)());
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

    /// Gives an attempt the nodes it needs, if they are free.
    async fn give(&mut self, launch: &Launch) -> Result<Started, Trouble> {
        let (parts, most) = (launch.parts as usize, self.settings.bounds.most);
        if launch.parts > most {
            let why = format!("it needs {parts} nodes and `{}` has {most} at most", self.settings.compute);
            return Ok(Started::Never(why));
        }
        let free = self.idle.len();
        if free < self.reserved + parts && !self.passes(launch).await? {
            // Those behind it must not take what it waits for.
            self.reserved += parts;
            self.waiting.push(launch.parts);
            return Ok(Started::Later(self.waits(launch, free)));
        }
        let chosen: Vec<String> = self.idle[..parts].to_vec();
        let (cluster, attempt, now) = (self.settings.cluster.clone(), launch.attempt.clone(), (self.settings.clock)());
        let whole = launch.parts == 1 && launch.replica.is_none();
        let nodes = chosen.clone();
        let given = self.store.write(move |tx| {
            for name in &chosen {
                // It may have left meanwhile, or taken the next by itself.
                let free = tx.parts_of_machine(&cluster, name)?.is_empty();
                match tx.machine(&cluster, name)?.filter(|_| free) {
                    Some(row) if row.standing == Standing::Ready => {
                        tx.put_machine(&MachineRow { since: now, ..row })?
                    }
                    _ => return Ok(false),
                }
            }
            // A node may have taken it by itself, and may be done with it.
            let job = attempt.parts().map(|(seq, _)| tx.job_by_seq(seq)).transpose()?.flatten();
            let waits = job.is_none_or(|job| {
                job.state.attempt() == Some(&attempt) && matches!(job.state, JobState::Placed { .. })
            });
            match whole {
                true if !waits || tx.is_given_whole(&attempt)? => {}
                true => tx.give_whole(&cluster, &attempt, &chosen[0])?,
                false => tx.assign_parts(&cluster, &attempt, &chosen)?,
            }
            Ok(true)
        });
        if given.await.map_err(stored)? {
            self.taken(&nodes);
            return Ok(Started::Yes);
        }
        self.refresh().await?;
        Ok(Started::Later("its node has just gone to another".to_owned()))
    }
}

impl<P: Provider> Site for Managed<P> {
    async fn look(&mut self) -> Result<Look, Trouble> {
        if self.offers.is_none() {
            self.offers = Some(self.tasks.provider.offers(&self.settings.size.1).await?);
        }
        self.refresh().await?;
        (self.reserved, self.waiting) = (0, Vec::new());
        self.line.begin();
        Ok(Look { facts: self.facts(), now: None, held: self.held() })
    }

    async fn launch(&mut self, launches: &[Launch], _: &Look) -> Result<Vec<Started>, Trouble> {
        let mut all = Vec::new();
        for launch in launches {
            all.push(self.give(launch).await?);
        }
        Ok(all)
    }

    async fn stop(&mut self, _: &[AttemptId]) -> Result<(), Trouble> {
        Ok(())
    }

    async fn remove(&mut self, attempts: &[AttemptId]) -> Result<(), Trouble> {
        let (cluster, attempts, now) = (self.settings.cluster.clone(), attempts.to_vec(), (self.settings.clock)());
        let dropped = self.store.write(move |tx| {
            let parts = tx.machine_parts(&cluster)?.into_iter().filter(|part| attempts.contains(&part.attempt));
            for machine in parts.map(|part| part.machine).collect::<HashSet<_>>() {
                if let Some(row) = tx.machine(&cluster, &machine)?.filter(|row| row.standing == Standing::Ready) {
                    tx.put_machine(&MachineRow { since: now, ..row })?;
                }
            }
            attempts.iter().try_for_each(|attempt| tx.drop_parts(&cluster, attempt))
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
            Some(_) => Bounds { least: 0, most: 0, idle_ms: 0, ..self.settings.bounds },
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

fn stored(error: Error) -> Trouble {
    Trouble::new("store", error.to_string())
}
