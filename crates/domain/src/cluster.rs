//! What a cluster's operator and the server tell each other.
//!
//! The operator asks (`POST /cluster/v1/poll`, long) and tells (`POST /cluster/v1/report`); the server never calls it. The
//! cluster itself is the operator's memory: what it holds is what exists there, labelled with the attempt. Invariants: a
//! launch may arrive twice and is carried out once; an attempt is removed only when the server asks for it; news about one
//! attempt may arrive twice and out of date.

use crate::{AttemptId, JobName, Probe, Resources, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a cluster is and has; sent when it changed or when the server asks for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterFacts {
    /// Stays the same for as long as the cluster lives.
    pub uid: String,
    /// Of the extension.
    pub version: String,
    pub kubernetes_version: String,
    /// `volcano` or `gates`: who sees to it that a gang starts whole.
    pub gangs: String,
    /// The extension was installed with training on.
    pub training: bool,
    /// The extension was installed with inference on.
    pub inference: bool,
    /// Where callers find the cluster's router, such as `https://serve.example.org`; empty while it has no address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scoring_url: String,
    /// What no node can hold today may wait for one that can: nodes are added on demand, or the check was switched off.
    #[serde(default)]
    pub grows: bool,
    pub nodes: Vec<ClusterNode>,
    pub instance_types: Vec<ClusterInstanceType>,
    /// What a job of higher priority may take from one of lower; `None` where nobody makes way, or where that is decided by
    /// the cluster itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<Places>,
}

/// What a place gives to jobs, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places {
    /// How many there are or, where nodes come on demand, may be.
    pub most: u32,
    /// A job has one for each of its parts, not one in all.
    pub by_part: bool,
}

/// The word by which the owner of a target lets higher priority take from lower there.
pub const LOWER_PRIORITY: &str = "lower-priority";

impl ClusterFacts {
    /// Changes when any of the facts does; the operator sends it with every poll.
    pub fn digest(&self) -> String {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        // FNV-1a: nobody gains by a collision, which would delay one update.
        let sum = bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{sum:016x}")
    }

    /// What the nodes that are ready have together.
    pub fn room(&self) -> Room {
        let ready = self.nodes.iter().filter(|node| node.ready);
        ready.fold(Room::default(), |sum, node| Room {
            allocatable: sum.allocatable.plus(&node.allocatable),
            free: sum.free.plus(&node.free),
        })
    }
}

/// What there is and what of it is free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Room {
    pub allocatable: Resources,
    pub free: Resources,
}

/// How full a cluster was at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSample {
    pub at: Timestamp,
    pub nodes: usize,
    pub ready: usize,
    #[serde(flatten)]
    pub room: Room,
    /// Jobs that were there, and jobs that waited to go there.
    pub running: u64,
    pub waiting: u64,
}

/// A machine of the cluster on which work may run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterNode {
    pub name: String,
    pub ready: bool,
    /// What pods may ask for on it.
    pub allocatable: Resources,
    /// What no pod has asked for yet.
    pub free: Resources,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Names and amounts beyond CPU, memory and `nvidia.com/gpu`, such as `amd.com/gpu`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, u64>,
}

/// A named shape of work, as the cluster's resource says it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterInstanceType {
    pub name: String,
    pub requests: Resources,
    pub limits: Resources,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extended: BTreeMap<String, u64>,
    /// How many would fit on the cluster as it is now.
    #[serde(default)]
    pub fits_now: u64,
    /// Whether some node could hold one if it were empty.
    #[serde(default)]
    pub fits_ever: bool,
    /// How many all nodes could hold if they were empty, less what is held back on them; `None` where nobody counts that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits_empty: Option<u64>,
}

/// What the operator asks. The answer waits until there is something new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClusterPoll {
    /// The cluster's own clock, so that its skew can be told.
    pub now: Timestamp,
    /// [`ClusterFacts::uid`], so that no work goes to another cluster that has the same token; empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// A digest of the facts the operator has; when the server's differ it asks for them.
    pub facts: String,
    /// Attempts that exist on the cluster. Only sent once everything there was listed.
    pub holds: Vec<AttemptId>,
    /// Of those, the ones already being stopped or removed.
    #[serde(default)]
    pub leaving: Vec<AttemptId>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterAnswer {
    #[serde(default)]
    pub launch: Vec<Launch>,
    /// To be ended politely; its agent reports the end itself.
    #[serde(default)]
    pub stop: Vec<AttemptId>,
    /// On record as over, or never known: everything of it is to be deleted.
    #[serde(default)]
    pub remove: Vec<AttemptId>,
    #[serde(default)]
    pub checks: Vec<Check>,
    /// Every target attached to this cluster.
    #[serde(default)]
    pub targets: Vec<ClusterTarget>,
    /// Send [`ClusterFacts`] with the next report.
    #[serde(default)]
    pub send_facts: bool,
}

/// One attempt as a set of pods. What runs in them is asked for by the agent inside, with `token`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    pub attempt: AttemptId,
    /// Counts from 0.
    pub number: u32,
    pub target: ClusterTarget,
    pub job: JobName,
    /// The sweep or pipeline that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    pub display_name: String,
    pub user: String,
    pub priority: i64,
    /// Whose turn it is among those of one priority: the lower goes first.
    #[serde(default)]
    pub turn: i64,
    /// How long it may run, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// How many pods; all start or none.
    pub parts: u32,
    pub instance_type: String,
    pub image: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shm_bytes: Option<u64>,
    /// Deletes the pods if the agent inside does not end the job in time: the job's own limit and some grace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_seconds: Option<u64>,
    /// Where the agent inside finds the server, as the cluster reaches it.
    pub server: String,
    /// The authority that signed the server's certificate, as PEM; empty where the system's are enough.
    #[serde(default)]
    pub authority: String,
    /// Good for this attempt alone.
    pub token: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Present where it answers requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replica: Option<ReplicaPod>,
}

impl Launch {
    /// An attempt of one part that asks for nothing, for tests to begin with.
    pub fn fixture(attempt: AttemptId) -> Launch {
        Launch {
            attempt,
            number: 0,
            target: ClusterTarget::default(),
            job: JobName::parse("calm_lion").expect("letters and a line make a name"),
            parent: None,
            display_name: String::new(),
            user: "ann".into(),
            priority: 0,
            turn: 0,
            timeout_seconds: None,
            parts: 1,
            instance_type: String::new(),
            image: String::new(),
            shm_bytes: None,
            deadline_seconds: None,
            server: String::new(),
            authority: String::new(),
            token: "hush".into(),
            labels: BTreeMap::new(),
            replica: None,
        }
    }
}

/// What the cluster is shown of a replica of a deployment. Whether routers use it is told by the agent inside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplicaPod {
    pub endpoint: String,
    pub deployment: String,
    pub port: u16,
    pub readiness: Probe,
    /// What it asks for and may use at most; an amount of zero is left to its instance type.
    pub requests: Resources,
    pub limits: Resources,
}

/// A compute target that lies on this cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterTarget {
    pub subscription: String,
    pub resource_group: String,
    pub workspace: String,
    pub compute: String,
    pub namespace: String,
    /// Instance type of jobs that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_instance_type: Option<String>,
    /// Plain settings of the target: image pull secrets, service account, `pod_security`, `queue`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
}

/// What the operator tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterReport {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<ClusterFacts>,
    #[serde(default)]
    pub news: Vec<AttemptNews>,
    #[serde(default)]
    pub checks: Vec<CheckResult>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptNews {
    pub attempt: AttemptId,
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: ClusterWhat,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum ClusterWhat {
    /// Why it does not run yet, in words; replaces the one before.
    Waiting { text: String },
    /// A part was given a node.
    Bound { part: u32, node: String },
    /// Worth keeping in the job's story.
    Notice { text: String },
    /// A part can no longer report for itself. Ignored where its end is on record already.
    Gone { part: u32, code: String, why: String, retryable: bool },
}

/// Something the server wants to know of a cluster before it calls a target good.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub id: String,
    pub target: ClusterTarget,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    pub id: String,
    /// Every check has been made.
    pub done: bool,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// `namespace`, `permission`, `canary`, `image`, …
    pub check: String,
    pub passed: bool,
    /// What was seen and, where it failed, what to do about it.
    pub detail: String,
}
