//! What becomes of times that nobody could keep, because the server was away.

use crate::Timestamp;

/// How late a run may be and still count as in time.
const GRACE_MS: i64 = 60_000;
/// How many missed runs are made up for at most.
const MOST: usize = 100;

/// The policy of a schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missed {
    /// What was missed is not made up for.
    Skip,
    /// However many were missed, one run makes up for them.
    #[default]
    Once,
    /// Every one is made up for, the latest hundred.
    All,
}

impl Missed {
    /// The property of a schedule that says so.
    pub const KEY: &str = "peregrine.missed";

    pub fn parse(word: &str) -> Option<Missed> {
        match word {
            "skip" => Some(Missed::Skip),
            "once" => Some(Missed::Once),
            "all" => Some(Missed::All),
            _ => None,
        }
    }

    /// How many times it needs to know.
    pub fn most(self) -> usize {
        if self == Missed::All { MOST } else { 1 }
    }

    /// Those of the times that have come, oldest first, for which something is started.
    pub fn choose(self, times: &[Timestamp], now: Timestamp) -> &[Timestamp] {
        let last = &times[times.len().saturating_sub(1)..];
        match self {
            Missed::All => times,
            Missed::Once => last,
            Missed::Skip if last.iter().all(|at| now.0 - at.0 <= GRACE_MS) => last,
            Missed::Skip => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_chooses_its_share_of_what_was_missed() {
        let times: Vec<Timestamp> = (1..=5).map(|hour| Timestamp(hour * 3_600_000)).collect();
        let now = |late: i64| Timestamp(5 * 3_600_000 + late);
        for (policy, late, count) in [
            (Missed::All, 999_999, 5),
            (Missed::Once, 999_999, 1),
            (Missed::Once, 0, 1),
            (Missed::Skip, 999_999, 0),
            (Missed::Skip, 60_000, 1),
        ] {
            let chosen = policy.choose(&times, now(late));
            assert_eq!(chosen.len(), count, "{policy:?} {late}");
            assert!(chosen.last().is_none_or(|last| *last == times[4]));
        }
        assert!(Missed::All.choose(&[], now(0)).is_empty());
    }
}
