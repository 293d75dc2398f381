//! The parts of one attempt that runs away from this machine, and what they mean for the whole.
//!
//! Each part is an agent of its own. Invariants: no part is given its assignment before all are there; a part belongs to
//! the agent that took it, also when another comes in its place; the attempt is over when no part can have processes, and
//! the first part that failed says why.

use crate::{
    Outcome, Timestamp,
    assignment::Part,
    job::Failure,
    report::{Joining, What},
};
use serde::{Deserialize, Serialize};

/// A waiting agent that was not heard of for this long does not count as being there.
pub const FRESH_MS: i64 = 15_000;

/// All parts of an attempt, by index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gang {
    parts: Vec<PartState>,
    /// Where parts were put, in the order it became known.
    #[serde(default)]
    nodes: Vec<(u32, String)>,
}

/// Where one part is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
enum PartState {
    Absent,
    /// Its agent is there and waits for the others.
    Waiting {
        address: String,
        seen_at: Timestamp,
    },
    /// Its agent was given the assignment and may have processes.
    Given {
        address: String,
        stage: Stage,
    },
    /// `order` counts the parts that were over before it.
    Over {
        outcome: Outcome,
        order: usize,
    },
}

/// How far a part, or the whole, has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Given,
    Preparing,
    Running,
    Collecting,
}

/// What an agent that asks for its part is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joined {
    /// Others are still missing.
    Wait,
    /// Everyone is there.
    Take(Part),
    /// The part is another's, over, or there is none of that number.
    Leave,
}

impl Gang {
    pub fn of(count: u32) -> Gang {
        Gang { parts: vec![PartState::Absent; count.max(1) as usize], nodes: Vec::new() }
    }

    /// An agent says that it is there. Once all have said so lately, everyone is given its part.
    pub fn join(&mut self, joining: &Joining, now: Timestamp) -> Joined {
        if !self.is_own(joining) {
            return Joined::Leave;
        }
        if self.fails() {
            self.turn_away(joining, "another part had failed");
            return Joined::Leave;
        }
        if let Some(part @ (PartState::Absent | PartState::Waiting { .. })) = self.parts.get_mut(joining.part as usize)
        {
            *part = PartState::Waiting { address: joining.address.clone(), seen_at: now };
        }
        let there = |part: &PartState| match part {
            PartState::Waiting { seen_at, .. } => now.0 - seen_at.0 < FRESH_MS,
            part => !matches!(part, PartState::Absent),
        };
        if !self.parts.iter().all(there) {
            return Joined::Wait;
        }
        for part in &mut self.parts {
            if let PartState::Waiting { address, .. } = part {
                *part = PartState::Given { address: std::mem::take(address), stage: Stage::Given };
            }
        }
        Joined::Take(Part { index: joining.part, addresses: self.parts.iter().map(PartState::address).collect() })
    }

    /// Its pods are made anew: whoever waited is not there any more. Whether anyone did.
    pub fn scatter(&mut self) -> bool {
        let mut scattered = false;
        for part in self.parts.iter_mut().filter(|part| matches!(part, PartState::Waiting { .. })) {
            *part = PartState::Absent;
            scattered = true;
        }
        scattered
    }

    /// An agent that asks for its part has not begun with it, and is not to any more.
    pub fn turn_away(&mut self, joining: &Joining, why: &str) {
        if self.is_own(joining) {
            self.end(joining.part, Outcome::Canceled { reason: why.to_owned() });
        }
    }

    /// Whether the part that an agent asks for is not another's, and not over.
    fn is_own(&self, joining: &Joining) -> bool {
        match self.parts.get(joining.part as usize) {
            Some(PartState::Absent | PartState::Waiting { .. }) => true,
            Some(PartState::Given { address, .. }) => *address == joining.address,
            Some(PartState::Over { .. }) | None => false,
        }
    }

    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Whether some part may have, or have had, processes.
    pub fn begun(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, PartState::Given { .. }))
            || self.parts.iter().all(|part| matches!(part, PartState::Over { .. }))
    }

    /// A part tells what happened to it. Old news changes nothing.
    pub fn hear(&mut self, part: u32, what: &What) {
        match what {
            What::Preparing => self.reach(part, Stage::Preparing),
            What::Started { .. } => self.reach(part, Stage::Running),
            What::Exited { .. } => self.reach(part, Stage::Collecting),
            What::Over { outcome, .. } => self.end(part, outcome.clone()),
            What::Note { .. } | What::Notice { .. } | What::Staged { .. } | What::Serving { .. } | What::Returned => {}
        }
    }

    /// A part is over. What was on record of its end stays.
    pub fn end(&mut self, part: u32, outcome: Outcome) {
        let order = self.parts.iter().filter(|part| matches!(part, PartState::Over { .. })).count();
        match self.parts.get_mut(part as usize) {
            None | Some(PartState::Over { .. }) => {}
            Some(open) => *open = PartState::Over { outcome, order },
        }
    }

    fn reach(&mut self, part: u32, reached: Stage) {
        if let Some(PartState::Given { stage, .. }) = self.parts.get_mut(part as usize) {
            *stage = (*stage).max(reached);
        }
    }

    /// How far those are that are not over: they prepare when one does, and run or collect when all do.
    pub fn stage(&self) -> Option<Stage> {
        let stages = self.parts.iter().filter_map(|part| match part {
            PartState::Given { stage, .. } => Some(*stage),
            _ => None,
        });
        let (least, most) = (stages.clone().min()?, stages.max()?);
        Some(least.max(most.min(Stage::Preparing)))
    }

    /// Whether what still runs is to be stopped, because the whole can no longer succeed.
    pub fn fails(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, PartState::Over { outcome, .. } if *outcome != Outcome::Completed))
    }

    /// How the whole ended, once no part can have processes any more.
    pub fn outcome(&self) -> Option<Outcome> {
        let may_run = |part: &PartState| matches!(part, PartState::Given { .. });
        let open = |part: &PartState| !matches!(part, PartState::Over { .. });
        if self.parts.iter().any(may_run) || (self.parts.iter().any(open) && !self.fails()) {
            return None;
        }
        let ends = self.parts.iter().enumerate().filter_map(|(index, part)| match part {
            PartState::Over { outcome, order } if *outcome != Outcome::Completed => Some((*order, index, outcome)),
            _ => None,
        });
        Some(ends.min_by_key(|(order, ..)| *order).map_or(Outcome::Completed, |(_, index, end)| self.named(index, end)))
    }

    /// An end that says which part it was, where there are several.
    fn named(&self, index: usize, outcome: &Outcome) -> Outcome {
        match outcome {
            Outcome::Failed(failure) if self.parts.len() > 1 => {
                let message = format!("part {index} of {}: {}", self.parts.len(), failure.message);
                Outcome::Failed(Failure { message, ..failure.clone() })
            }
            outcome => outcome.clone(),
        }
    }

    /// Notes where a part was put: the lines its log had before, and the new one; `None` if that is old news.
    pub fn bind(&mut self, part: u32, node: &str) -> Option<(String, String)> {
        if self.nodes.iter().any(|(known, at)| *known == part && at == node) {
            return None;
        }
        let line = |(_, node): &(u32, String)| format!("Run on node: {node}\n");
        let before = self.nodes.iter().map(line).collect();
        self.nodes.push((part, node.to_owned()));
        self.nodes.last().map(|last| (before, line(last)))
    }
}

impl PartState {
    fn address(&self) -> String {
        match self {
            PartState::Waiting { address, .. } | PartState::Given { address, .. } => address.clone(),
            PartState::Absent | PartState::Over { .. } => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(gang: &mut Gang, part: u32, address: &str, at: i64) -> Joined {
        gang.join(&Joining { part, address: address.into() }, Timestamp(at))
    }

    fn failed(text: &str) -> Outcome {
        Outcome::Failed(Failure::new("X", text))
    }

    fn of_two() -> Gang {
        let mut gang = Gang::of(2);
        assert_eq!(ask(&mut gang, 0, "a", 0), Joined::Wait);
        assert!(matches!(ask(&mut gang, 1, "b", 1), Joined::Take(_)));
        gang
    }

    #[test]
    fn nobody_begins_before_everyone_is_there() {
        let mut gang = Gang::of(2);
        assert_eq!(ask(&mut gang, 1, "b", 0), Joined::Wait);
        assert_eq!(ask(&mut gang, 0, "a", FRESH_MS), Joined::Wait, "part 1 was last heard of too long ago");
        assert!(!gang.begun());
        let addresses = vec!["a".to_owned(), "b2".to_owned()];
        let all = |index| Joined::Take(Part { index, addresses: addresses.clone() });
        assert_eq!(ask(&mut gang, 1, "b2", FRESH_MS + 1), all(1), "a pod that was made anew has another address");
        assert_eq!(ask(&mut gang, 0, "a", FRESH_MS + 2), all(0));
        assert_eq!(ask(&mut gang, 0, "a", 9 * FRESH_MS), all(0), "an answer that was lost is given again");
    }

    #[test]
    fn who_waited_in_pods_that_are_made_anew_is_not_there() {
        let mut gang = Gang::of(2);
        ask(&mut gang, 0, "a", 0);
        assert!(gang.scatter() && !gang.scatter());
        assert_eq!(ask(&mut gang, 1, "b", 1), Joined::Wait);
        assert!(matches!(ask(&mut gang, 0, "a2", 2), Joined::Take(_)));
    }

    #[test]
    fn a_part_is_taken_once() {
        let mut gang = of_two();
        assert_eq!(ask(&mut gang, 0, "someone else", 2), Joined::Leave);
        assert_eq!(ask(&mut gang, 7, "a", 2), Joined::Leave);
        gang.end(0, Outcome::Completed);
        assert_eq!(ask(&mut gang, 0, "a", 3), Joined::Leave);
    }

    #[test]
    fn the_whole_runs_when_all_run_and_is_over_when_all_are() {
        let mut gang = of_two();
        gang.hear(0, &What::Preparing);
        assert_eq!(gang.stage(), Some(Stage::Preparing));
        gang.hear(0, &What::Started { pid: 1 });
        assert_eq!(gang.stage(), Some(Stage::Preparing));
        gang.hear(1, &What::Started { pid: 1 });
        gang.hear(1, &What::Preparing);
        assert_eq!(gang.stage(), Some(Stage::Running), "old news takes nothing back");
        gang.end(0, Outcome::Completed);
        assert_eq!((gang.stage(), gang.outcome()), (Some(Stage::Running), None));
        gang.end(1, Outcome::Completed);
        assert_eq!((gang.stage(), gang.outcome()), (None, Some(Outcome::Completed)));
    }

    #[test]
    fn the_first_failure_stops_the_others_and_is_the_reason() {
        let mut gang = of_two();
        gang.end(1, failed("no memory"));
        assert!(gang.fails());
        assert_eq!(gang.outcome(), None, "part 0 may still have processes");
        gang.end(0, Outcome::Canceled { reason: "stopped".into() });
        gang.end(1, Outcome::Completed);
        assert_eq!(gang.outcome(), Some(failed("part 1 of 2: no memory")));
    }

    #[test]
    fn a_part_that_goes_before_anyone_began_ends_the_whole_at_once() {
        let mut gang = Gang::of(3);
        ask(&mut gang, 0, "a", 0);
        gang.end(2, failed("evicted"));
        assert!(!gang.begun());
        assert_eq!(gang.outcome(), Some(failed("part 2 of 3: evicted")));
        assert_eq!(ask(&mut gang, 1, "b", 1), Joined::Leave, "and nobody begins any more");
        assert_eq!(gang.outcome(), Some(failed("part 2 of 3: evicted")));
    }

    #[test]
    fn where_a_part_runs_is_told_once() {
        let mut gang = Gang::of(2);
        assert_eq!(gang.bind(1, "n1"), Some((String::new(), "Run on node: n1\n".into())));
        assert_eq!(gang.bind(1, "n1"), None);
        assert_eq!(gang.bind(0, "n2"), Some(("Run on node: n1\n".into(), "Run on node: n2\n".into())));
    }
}
