//! What an agent tells the server: what it is, what became of its attempts, how its node is doing.
//!
//! Invariant: reports about one attempt are in the order things happened, and each may arrive twice.
//! The server answers with the attempts it has fully recorded; the agent forgets only those.

use crate::{
    Assignment, AttemptId, Outcome, Resources, Timestamp,
    kept::{Kept, Moved},
    tunnel::Tunnel,
};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Who the agent is; sent with every poll.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    pub node: String,
    /// Changes when the machine restarts: processes of an older boot are gone for certain.
    pub boot_id: String,
    pub version: String,
    pub capacity: Resources,
    pub gpu_models: Vec<String>,
}

/// One thing that happened to an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub attempt: AttemptId,
    pub at: Timestamp,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// Why it has not started yet, or what it is busy with.
    Note {
        text: String,
    },
    /// Something its user should know, kept in the job's story.
    Notice {
        text: String,
    },
    Preparing,
    /// Everything it reads is there: how much of it came from where, and what its node keeps now.
    Staged {
        moved: Moved,
        #[serde(default)]
        keeps: Vec<Kept>,
    },
    Started {
        pid: u32,
    },
    /// How a replica is: whether it takes requests, where, and otherwise why not. Told when it changes, and again by an
    /// agent that came back.
    Serving {
        address: Option<SocketAddr>,
        ready: bool,
        text: String,
    },
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// It was not begun here and never will be: another node may have it.
    Returned,
    /// The last word on an attempt: everything it left is where the plan wanted it.
    Over {
        outcome: Outcome,
        isolation: String,
    },
}

/// A reading of the node's load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Timestamp,
    pub cpu_percent: f64,
    pub memory_used_bytes: u64,
    pub memory_total_bytes: u64,
    #[serde(default)]
    pub gpus: Vec<GpuSample>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuSample {
    pub index: u32,
    pub utilization_percent: u32,
    pub memory_used_bytes: u64,
    pub memory_total_bytes: u64,
}

/// What the agent sends: `POST /agent/v1/report`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportBatch {
    pub facts: NodeFacts,
    #[serde(default)]
    pub reports: Vec<Report>,
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// Which part of its attempt the agent runs, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
}

/// The server's answer: attempts whose end it has recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportAnswer {
    pub recorded: Vec<AttemptId>,
}

/// What the agent asks: `POST /agent/v1/poll`. The answer waits until there is something new.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Poll {
    pub facts: NodeFacts,
    /// Attempts the agent holds, so that the server offers only the others.
    pub holds: Vec<AttemptId>,
    /// Attempts the agent is already stopping.
    pub stopping: Vec<AttemptId>,
    /// An agent that was started for one attempt says which part of it it is, and where the other parts reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joining: Option<Joining>,
}

/// Part of [`Poll`]: an agent whose token is good for one attempt only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joining {
    pub part: u32,
    pub address: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PollAnswer {
    pub assignments: Vec<Assignment>,
    pub stop: Vec<AttemptId>,
    /// Attempts the agent holds that the server knows nothing of: to be stopped and dropped.
    #[serde(default)]
    pub unknown: Vec<AttemptId>,
    /// Ways to services that somebody waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tunnels: Vec<Tunnel>,
    /// The node is about to go: end what runs, and leave once idle.
    #[serde(default)]
    pub leave: bool,
}
