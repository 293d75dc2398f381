//! What was killed in the middle of what, and the table of it.

use super::chance::Chance;
use std::{collections::BTreeMap, fmt::Write as _};

/// What a kill falls into: the commit of submits, or the recorded phase of a job.
pub(super) const MOMENTS: [&str; 7] = ["submit", "queued", "placed", "preparing", "running", "finalizing", "stopping"];
pub(super) const VICTIMS: [&str; 4] = ["server", "agent", "both", "keeper"];

#[derive(Default)]
pub(super) struct Tally(BTreeMap<(&'static str, &'static str), u64>);

impl Tally {
    pub(super) fn count(&mut self, moment: &'static str, victim: &'static str) {
        *self.0.entry((moment, victim)).or_default() += 1;
    }

    pub(super) fn of_moment(&self, moment: &str) -> u64 {
        VICTIMS.iter().map(|victim| self.at(moment, victim)).sum()
    }

    pub(super) fn of_victim(&self, victim: &str) -> u64 {
        MOMENTS.iter().map(|moment| self.at(moment, victim)).sum()
    }

    pub(super) fn kills(&self) -> u64 {
        self.0.values().sum()
    }

    /// A moment to aim at: one of the three that were hit least.
    pub(super) fn wanting(&self, chance: &mut Chance) -> &'static str {
        let mut moments = MOMENTS;
        moments.sort_by_key(|moment| self.of_moment(moment));
        chance.pick(&moments[..3])
    }

    pub(super) fn table(&self) -> String {
        let mut text = format!("{:<12}", "kills in");
        VICTIMS.iter().chain(&["all"]).for_each(|victim| write!(text, "{victim:>8}").unwrap());
        for moment in MOMENTS {
            write!(text, "\n{moment:<12}").unwrap();
            VICTIMS.iter().for_each(|victim| write!(text, "{:>8}", self.at(moment, victim)).unwrap());
            write!(text, "{:>8}", self.of_moment(moment)).unwrap();
        }
        write!(text, "\n{:<12}", "all").unwrap();
        VICTIMS.iter().for_each(|victim| write!(text, "{:>8}", self.of_victim(victim)).unwrap());
        writeln!(text, "{:>8}", self.kills()).unwrap();
        text
    }

    fn at(&self, moment: &str, victim: &str) -> u64 {
        self.0.iter().filter(|((m, v), _)| *m == moment && *v == victim).map(|(_, n)| n).sum()
    }
}
