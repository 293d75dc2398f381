//! Sharing machines between people: quotas, fair shares, and when it is whose turn.
//!
//! Invariant: what is held counts from the moment a job is handed to a node until nothing of it is left there.

pub mod backfill;
pub mod estimate;
pub mod fair;
pub mod quota;

pub use quota::{Ledger, Limits, Quota, Whom};

use crate::{Resources, names::TeamName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// For whom a job counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Holder {
    pub workspace: String,
    /// Who submitted it.
    pub person: String,
}

/// People of a workspace who are counted together where a quota says so. Someone may be in several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Team {
    pub workspace: String,
    pub name: TeamName,
    pub people: BTreeSet<String>,
}

/// What one holder's jobs on one target have together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub holder: Holder,
    pub target: String,
    pub resources: Resources,
    pub jobs: u64,
}
