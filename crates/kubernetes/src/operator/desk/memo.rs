//! What the desk remembers of an attempt beyond what the cluster shows: how far it got, and what it has said.
//!
//! Invariant: nothing here must outlive the operator; a new one finds it out again or says it once more.

use crate::operator::{explain, pace::Pace, release, world::Gang};
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
    /// There was room for all of it when it was let go.
    pub(super) fitted: bool,
    /// It was taken back: the end of its pods is no news.
    pub(super) taken_back: bool,
    pub(super) told_bound: BTreeSet<u32>,
    pub(super) told_gone: BTreeSet<u32>,
    /// The last reason given for its wait.
    pub(super) said: String,
    /// The last of them that was noted on its objects, and when.
    pub(super) noted: Option<(String, Instant)>,
    /// It was told which volume claims it does not get.
    pub(super) told_claims: bool,
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

/// How long a gang that was taken back stays gated, and why.
#[derive(Debug, Clone)]
pub(super) struct Rest {
    until: Instant,
    times: u32,
    taken: Taken,
}

/// How it was with a gang when it was taken back.
#[derive(Debug, Clone, Default)]
pub(super) struct Taken {
    /// There was room for all of it when it was let go.
    pub(super) fitted: bool,
    /// What the scheduler said of the pods that got no node.
    pub(super) says: String,
}

const REST: Duration = Duration::from_secs(30);

impl Rest {
    /// Twice as long each time, up to eight minutes.
    pub(super) fn after(before: Option<&Rest>, taken: Taken) -> Rest {
        let times = before.map_or(0, |rest| (rest.times + 1).min(4));
        Rest { until: Instant::now() + REST * (1 << times), times, taken }
    }

    /// What it means for whether the gang is let go.
    pub(super) fn now(&self) -> release::Rest {
        match (self.until > Instant::now(), self.taken.fitted) {
            (false, _) => release::Rest::None,
            (true, false) => release::Rest::UntilItFits,
            (true, true) => release::Rest::Whole,
        }
    }

    /// Why a gang that fits is not let go.
    pub(super) fn why(&self) -> Option<String> {
        let text = "there was room for all of it by what its pods ask for, and yet the scheduler placed only a part, so it was taken \
                    back, waits a while and is then tried again; what else holds pods to certain nodes are affinity and the \
                    zone of a volume";
        let says = Some(self.taken.says.as_str()).filter(|says| !says.is_empty());
        let says = says.map(|says| format!(". The scheduler said: {}", explain::brief(says))).unwrap_or_default();
        (self.now() == release::Rest::Whole).then(|| format!("{text}{says}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_grows_and_is_whole_only_where_the_gang_had_fitted() {
        let fitted = |fitted| Taken { fitted, says: "0/2 nodes: volume node affinity conflict".to_owned() };
        let first = Rest::after(None, fitted(false));
        assert_eq!((first.now(), first.why()), (release::Rest::UntilItFits, None));
        let second = Rest::after(Some(&first), fitted(true));
        assert_eq!(second.now(), release::Rest::Whole);
        assert!(second.why().unwrap().contains("volume node affinity conflict"));
        assert!(second.until - first.until >= REST, "the second rest is longer than the first");
        let over = Rest { until: Instant::now(), ..second };
        assert_eq!((over.now(), over.why()), (release::Rest::None, None));
    }
}
