//! What the desk remembers of an attempt beyond what the cluster shows: how far it got, and what it has said.
//!
//! Invariant: nothing here must outlive the operator; a new one finds it out again or says it once more.

use crate::operator::{pace::Pace, world::Gang};
use domain::cluster::Launch;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
    time::Duration,
};
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Memo {
    /// Whether its Secret exists; not known after a restart.
    pub(super) sure: Option<bool>,
    /// Something is being done about it.
    pub(super) busy: bool,
    pub(super) stop_since: Option<Instant>,
    pub(super) removing: Option<Instant>,
    /// It was taken back: the end of its pods is no news.
    pub(super) taken_back: bool,
    pub(super) told_bound: BTreeSet<u32>,
    pub(super) told_gone: BTreeSet<u32>,
    /// The last reason given for its wait.
    pub(super) said: String,
    /// Since when a part cannot start.
    pub(super) stalled: BTreeMap<u32, Instant>,
    /// Since when it lacks something that only its launch can bring.
    pub(super) lacking: Option<Instant>,
    /// When it was last found out why Volcano makes no pods.
    pub(super) rehearsed: Option<Instant>,
    /// What the cluster said then.
    pub(super) refused: String,
}

impl Memo {
    /// Whether the server may count on it: everything it needs exists, or existed.
    pub(super) fn is_held(&self, gang: &Gang) -> bool {
        let complete = (gang.is_whole() || gang.is_free()) && self.sure != Some(false);
        gang.is_leaving() || self.removing.is_some() || gang.has_run() || complete
    }

    /// On its way out: what becomes of its pods is expected.
    pub(super) fn is_quiet(&self) -> bool {
        self.removing.is_some() || self.taken_back
    }
}

/// Of an attempt that nothing is remembered of.
pub(super) fn nothing() -> &'static Memo {
    static NOTHING: OnceLock<Memo> = OnceLock::new();
    NOTHING.get_or_init(Memo::default)
}

/// A launch that is still to be carried out.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) launch: Launch,
    pub(super) after: Instant,
    pub(super) making: bool,
    pub(super) pace: Pace,
}

impl Pending {
    pub(super) fn new(launch: Launch) -> Pending {
        Pending { launch, after: Instant::now(), making: false, pace: Pace::default() }
    }
}

/// How long a gang that was taken back stays gated unless it fits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest {
    pub(super) until: Instant,
    times: u32,
}

const REST: Duration = Duration::from_secs(30);

impl Rest {
    /// Twice as long each time, up to eight minutes.
    pub(super) fn after(before: Option<&Rest>) -> Rest {
        let times = before.map_or(0, |rest| (rest.times + 1).min(4));
        Rest { until: Instant::now() + REST * (1 << times), times }
    }
}
