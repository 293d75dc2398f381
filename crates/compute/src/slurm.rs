//! A Slurm cluster as a place for work: an attempt is one batch job, with our agent as its step on every node.
//!
//! Slurm is spoken to with its own commands, on a login node reached by SSH or on this machine, and asked about all jobs at
//! once. Home is expected to be the same on login and compute nodes, as it is wherever Slurm is used. What has one parent and
//! is sent at the same moment, such as the trials of a sweep, is one array. Invariants: a batch job is named after the first of
//! its attempts, so that one that was sent is found again and never sent twice; Slurm itself never runs one again, for what is
//! tried again is a new attempt; while Slurm does not answer, nothing is said of any attempt.

mod batch;
mod states;

use crate::{Held, Look, Part, PartState, Site, Started, Trouble, shell::Shell, ssh};
use domain::{
    AttemptId, Resources,
    cluster::{ClusterFacts, ClusterInstanceType, ClusterNode, Finding, Launch},
};
use states::{Listing, Queued};
use std::{collections::BTreeMap, path::PathBuf};

/// How jobs of one instance type are sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape {
    /// Of each node.
    pub asks: Resources,
    pub partition: Option<String>,
    pub account: Option<String>,
    pub qos: Option<String>,
    pub gres: Option<String>,
    /// More words for `sbatch`.
    pub arguments: Vec<String>,
}

/// A Slurm cluster.
pub struct Slurm {
    /// Tells the folders and jobs of this target from those of others.
    pub(crate) key: String,
    shell: Shell,
    program: PathBuf,
    /// Where the server is, as compute nodes reach it.
    server: String,
    shapes: BTreeMap<String, Shape>,
    digest: String,
}

impl Slurm {
    /// Nothing is connected yet; without a `login` Slurm's commands are run on this machine.
    pub fn new(
        (key, login, shapes): (String, Option<ssh::Login>, BTreeMap<String, Shape>),
        folder: PathBuf,
        program: PathBuf,
        server: String,
    ) -> Result<Slurm, Trouble> {
        let shell = match login {
            Some(login) => Shell::There(Box::new(ssh::Connection::new(login, folder)?)),
            None => Shell::Here,
        };
        Ok(Slurm { key, shell, program, server, shapes, digest: String::new() })
    }

    async fn ready(&mut self) -> Result<(), Trouble> {
        if self.shell.is_open() && !self.digest.is_empty() {
            return Ok(());
        }
        self.digest.clear();
        self.shell.open().await?;
        // Agents that are there already may have known another.
        self.shell.script(&batch::reached_at(&self.key, &self.server)).await?;
        self.digest = ssh::place(&mut self.shell, &self.program).await?;
        Ok(())
    }

    async fn nodes(&mut self) -> Result<Vec<ClusterNode>, Trouble> {
        let said = self.shell.script(batch::NODES).await?;
        let mut nodes: Vec<ClusterNode> = said.lines().filter_map(states::node).collect();
        // A node is listed once for every partition that it is in.
        nodes.dedup_by(|one, other| one.name == other.name);
        Ok(nodes)
    }

    fn facts(&self, nodes: Vec<ClusterNode>) -> ClusterFacts {
        let kind = |(name, shape): (&String, &Shape)| ClusterInstanceType {
            name: name.clone(),
            requests: shape.asks,
            limits: shape.asks,
            fits_now: nodes.iter().filter(|node| node.ready && shape.asks.fits_in(&node.free)).count() as u64,
            fits_ever: nodes.iter().any(|node| shape.asks.fits_in(&node.allocatable)),
            ..ClusterInstanceType::default()
        };
        let instance_types = self.shapes.iter().map(kind).collect();
        ClusterFacts {
            uid: self.key.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            gangs: "slurm".to_owned(),
            training: true,
            nodes,
            instance_types,
            ..ClusterFacts::default()
        }
    }

    /// Sends attempts that are alike as one batch job.
    async fn send(&mut self, launches: &[Launch]) -> Result<Started, Trouble> {
        let Some(first) = launches.first() else { return Ok(Started::Yes) };
        let Some(shape) = self.shapes.get(&first.instance_type) else {
            return Ok(Started::Never(format!("instance type `{}` is no longer offered", first.instance_type)));
        };
        let said = self.shell.script(&batch::launch(&self.key, &self.digest, shape, launches)).await?;
        Ok(said.trim().strip_prefix("refused ").map_or(Started::Yes, states::refused))
    }

    /// What became of batch jobs that Slurm has forgotten and whose agents left no word.
    async fn ends(&mut self, listing: &Listing) -> Result<BTreeMap<String, PartState>, Trouble> {
        let missing: Vec<&str> = listing.silent().collect();
        if missing.is_empty() {
            return Ok(BTreeMap::new());
        }
        let said = self.shell.script(&batch::ends(&missing)).await?;
        let told: BTreeMap<String, PartState> = said.lines().filter_map(states::end).collect();
        let unknown = |id: &&&str| !told.contains_key(**id);
        let rest: Vec<String> = missing.iter().filter(unknown).map(|id| (*id).to_owned()).collect();
        Ok(told.into_iter().chain(rest.into_iter().map(|id| (id, states::forgotten()))).collect())
    }
}

impl Site for Slurm {
    async fn look(&mut self) -> Result<Look, Trouble> {
        self.ready().await?;
        let listing = Listing::read(&self.shell.script(&batch::look(&self.key)).await?);
        let ends = self.ends(&listing).await?;
        let nodes = self.nodes().await?;
        let held = listing.attempts.iter().map(|seen| {
            let part = |index: u32| {
                let state = match (seen.left.get(&index), &seen.queued) {
                    (Some(true), _) => PartState::Left,
                    (_, Some(Queued::Over(over))) => over.clone(),
                    (_, Some(Queued::Waits(why))) => PartState::Waits(why.clone()),
                    (None, Some(Queued::Runs(nodes))) => {
                        PartState::Runs(seen.nodes.get(&index).unwrap_or(nodes).clone())
                    }
                    (Some(false), Some(_)) => states::failed(),
                    (_, None) => ends.get(&seen.id).cloned().unwrap_or_else(states::forgotten),
                };
                Part { index, state }
            };
            Held { attempt: seen.attempt.clone(), parts: (0..seen.parts).map(part).collect() }
        });
        Ok(Look { held: held.collect(), facts: self.facts(nodes), now: listing.now })
    }

    async fn launch(&mut self, launches: &[Launch], _: &Look) -> Result<Vec<Started>, Trouble> {
        let mut all = Vec::new();
        for alike in launches.chunk_by(are_alike) {
            match self.send(alike).await? {
                Started::Yes => all.extend(alike.iter().map(|_| Started::Yes)),
                // Slurm may take fewer than all of them.
                _ if alike.len() > 1 => {
                    for one in alike {
                        all.push(self.send(std::slice::from_ref(one)).await?);
                    }
                }
                refused => all.push(refused),
            }
        }
        Ok(all)
    }

    async fn stop(&mut self, attempts: &[AttemptId]) -> Result<(), Trouble> {
        self.shell.script(&batch::stop(&self.key, attempts)).await.map(drop)
    }

    async fn remove(&mut self, attempts: &[AttemptId]) -> Result<(), Trouble> {
        self.shell.script(&batch::remove(&self.key, attempts)).await.map(drop)
    }

    async fn check(&mut self) -> Vec<Finding> {
        let finding = |check: &str, passed, detail: String| Finding { check: check.to_owned(), passed, detail };
        let looked = async {
            self.ready().await?;
            let version = self.shell.script(batch::VERSION).await.map_err(|_| {
                Trouble::new(
                    "slurm",
                    "`sinfo --version` does not run there; is this a login node, and is Slurm on the path?",
                )
            })?;
            let nodes = self.nodes().await.map_err(|trouble| Trouble::new("slurm", trouble.why))?;
            let partitions = self.shell.script(batch::PARTITIONS).await?;
            Ok::<_, Trouble>((version.trim().to_owned(), nodes, partitions))
        };
        let (version, nodes, partitions) = match looked.await {
            Ok(seen) => seen,
            Err(trouble) => return vec![finding(trouble.check, false, trouble.why)],
        };
        let known: Vec<&str> = partitions.lines().map(|line| line.trim_end_matches('*')).collect();
        let wanted = self.shapes.values().filter_map(|shape| shape.partition.as_deref());
        let missing: Vec<&str> = wanted.filter(|name| !known.contains(name)).collect();
        let partition = match missing.first() {
            None => finding("partition", true, format!("there are {}", known.join(", "))),
            Some(name) => {
                finding("partition", false, format!("there is no partition `{name}`; there are {}", known.join(", ")))
            }
        };
        let ready = nodes.iter().filter(|node| node.ready).count();
        vec![
            finding("slurm", true, format!("{version}; {ready} of {} nodes are ready", nodes.len())),
            partition,
            finding("agent", true, format!("the agent runs on the login node ({})", self.digest)),
        ]
    }
}

/// Whether they may be elements of one array.
fn are_alike(one: &Launch, other: &Launch) -> bool {
    let kind = |launch: &Launch| (launch.instance_type.clone(), launch.parts, launch.deadline_seconds);
    one.parent.is_some() && one.parent == other.parent && one.target == other.target && kind(one) == kind(other)
}
