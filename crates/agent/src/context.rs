//! What every part of an agent shares: its settings, its folders, its lines to the keeper and the server.

use crate::{
    data::Data, environment::Environments, folders::Folders, journal::Journal, keeper::Link, outpost::Outpost,
    report::Reporter, server::Server,
};
use domain::{AttemptId, Resources, Timestamp, report::NodeFacts};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// How an agent is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    pub home: PathBuf,
    /// The node's name.
    pub node: String,
    pub version: String,
    /// Between the polite signal and the final one.
    pub grace: Duration,
    /// What the node offers; found out where `None`.
    pub cpus_milli: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub gpus: Option<u32>,
    /// How much fetched data is kept.
    pub cache_bytes: u64,
    pub clock: fn() -> Timestamp,
}

pub(crate) struct Context {
    pub(crate) settings: Settings,
    /// Where this agent is, if not on the server's own machine. There an attempt has all that the agent has.
    pub(crate) outpost: Option<Outpost>,
    pub(crate) server: Arc<Server>,
    pub(crate) link: Link,
    pub(crate) reporter: Reporter,
    pub(crate) environments: Environments,
    pub(crate) data: Data,
    pub(crate) journal: Journal,
    pub(crate) folders: Folders,
}

impl Context {
    pub(crate) fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    /// Whether this process lives in a container that is its job's own.
    pub(crate) fn is_contained(&self) -> bool {
        self.outpost.as_ref().is_some_and(|outpost| outpost.contained)
    }

    pub(crate) fn attempts(&self) -> PathBuf {
        attempts(&self.settings.home)
    }

    pub(crate) fn folder(&self, attempt: &AttemptId) -> PathBuf {
        self.attempts().join(attempt.as_str())
    }
}

pub(crate) fn attempts(home: &Path) -> PathBuf {
    home.join("agent").join("attempts")
}

/// What this node is and has.
pub fn facts(settings: &Settings) -> NodeFacts {
    let gpus = crate::gpu::detect();
    let found = u32::try_from(gpus.len()).unwrap_or(0);
    NodeFacts {
        node: settings.node.clone(),
        boot_id: boot_id(),
        version: settings.version.clone(),
        capacity: Resources {
            cpu_milli: settings.cpus_milli.unwrap_or_else(cpus_milli),
            memory_bytes: settings.memory_bytes.unwrap_or_else(memory_bytes),
            gpus: settings.gpus.map_or(found, |n| n.min(found)),
        },
        gpu_models: gpus.into_iter().map(|gpu| gpu.model).collect(),
    }
}

/// The GPUs that work here may use: all that were found, or those that a part of a machine was given.
pub(crate) fn devices(outpost: Option<&Outpost>, found: u32) -> Vec<u32> {
    let given = outpost.and_then(|outpost| outpost.devices.clone());
    given.unwrap_or_else(|| (0..found).collect())
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(|_| "unknown".into(), |id| id.trim().to_owned())
}

fn cpus_milli() -> u64 {
    std::thread::available_parallelism().map_or(1000, |n| n.get() as u64 * 1000)
}

fn memory_bytes() -> u64 {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = info
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    total.unwrap_or(1 << 20) * 1024
}
