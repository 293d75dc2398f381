//! What agent and keeper say to each other: one JSON object a line.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// From the agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// Start a process, unless this key was started before.
    Spawn(Spawn),
    /// Send a signal to the process group of a key.
    Signal { key: String, signal: i32 },
    /// Kill every process that carries this variable (`NAME=value`) in its environment.
    Sweep { marker: String },
    /// The end of this key is on disk elsewhere.
    Forget { key: String },
    /// The agent is about to leave for good.
    Leave,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Spawn {
    pub key: String,
    pub argv: Vec<String>,
    /// Set, or taken away where `None`.
    pub variables: Vec<(String, Option<String>)>,
    pub folder: PathBuf,
    /// Where standard output and error go, appended.
    pub output: PathBuf,
    /// `cgroup.procs` files of the groups to be born in.
    pub cgroups: Vec<PathBuf>,
}

/// From the keeper.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tell {
    Running {
        key: String,
        pid: i32,
    },
    Unstarted {
        key: String,
        missing: bool,
        error: String,
    },
    Ended {
        key: String,
        ended: Ended,
    },
    /// All that was known has been said.
    Ready {
        instance: String,
    },
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Some of its processes may still be there.
    pub left_behind: bool,
}
