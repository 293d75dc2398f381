//! How many nodes a managed cluster has: which are ordered, which go, and when.
//!
//! A pure decision, made again and again from what is there. Invariants: a node with work on it is never sent away; a gang is
//! counted whole or, where it could never be had, not at all; there are never more nodes than the most; what fails again and
//! again is tried ever more slowly.

use domain::{Timestamp, machine::Standing};
use std::collections::HashSet;

/// What a cluster may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub least: u32,
    pub most: u32,
    /// A node without work stays for so long.
    pub idle_ms: i64,
    /// One that was not heard of for so long is taken away by its provider; only then does its work begin elsewhere.
    pub lost_ms: i64,
}

/// One node as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    pub standing: Standing,
    pub busy: bool,
    /// When its standing, or whether it is busy, last changed.
    pub since: Timestamp,
    /// When it was last heard of; of one that was never, when it was ordered.
    pub heard: Timestamp,
}

/// What failed lately, so that it is not tried again at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures {
    pub row: u32,
    pub last: Option<Timestamp>,
}

impl Failures {
    /// One more node was lost before it was of any use.
    pub fn more(&mut self, now: Timestamp) {
        self.row = self.row.saturating_add(1);
        self.last = Some(now);
    }

    /// When the next may be ordered.
    fn until(&self) -> Option<Timestamp> {
        let pause = FIRST_PAUSE_MS.saturating_mul(1 << self.row.saturating_sub(1).min(8)).min(LONGEST_PAUSE_MS);
        self.last.filter(|_| self.row > 0).map(|last| Timestamp(last.0 + pause))
    }
}

/// What is to be done about the nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Order this many.
    Order(u32),
    /// It takes no more work, and goes.
    Leave(String),
    /// Something is wrong with it; it goes as soon as its provider has taken it away.
    Condemn(String, String),
}

/// A node that was ordered has this long to be heard of.
pub const PREPARE_MS: i64 = 15 * 60_000;
/// A node that was not heard of for this long gets no new work.
pub const SILENT_MS: i64 = 30_000;
const FIRST_PAUSE_MS: i64 = 2_000;
const LONGEST_PAUSE_MS: i64 = 5 * 60_000;

/// What is to be done now. `waiting` are the attempts without nodes, in order, as how many nodes each wants.
pub fn resize(bounds: &Bounds, nodes: &[Member], waiting: &[u32], failures: &Failures, now: Timestamp) -> Vec<Step> {
    let mut steps: Vec<Step> = nodes.iter().filter_map(|node| condemned(node, bounds.lost_ms, now)).collect();
    let alive: Vec<&Member> = {
        let gone: HashSet<&str> = steps.iter().filter_map(condemns).collect();
        nodes.iter().filter(|node| !gone.contains(node.name.as_str()) && is_of_use(node)).collect()
    };
    let busy = count(&alive, |node| node.busy);
    // What could never be had whole is no demand.
    let wanted: u32 = waiting.iter().filter(|parts| **parts <= bounds.most).sum();
    let have = u32::try_from(alive.len()).unwrap_or(u32::MAX);
    let target = busy.saturating_add(wanted).clamp(bounds.least, bounds.most.max(bounds.least));
    if target > have {
        // Whatever still is there, on its way out too, is paid for.
        let room = bounds.most.saturating_sub(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        let order = (target - have).min(room);
        if order > 0 && failures.until().is_none_or(|until| now.0 >= until.0) {
            // After a failure one is enough to see whether things are better.
            steps.push(Step::Order(if failures.row > 0 { 1 } else { order }));
        }
        return steps;
    }
    let mut spare: Vec<&&Member> = alive.iter().filter(|node| !node.busy).collect();
    // Those that are not there yet first, then those that have waited for longest.
    spare.sort_by_key(|node| (node.standing == Standing::Ready, node.since.0));
    let over = |node: &&&&Member| have > bounds.most || now.0 - node.since.0 >= bounds.idle_ms;
    let leaving = spare.iter().filter(over).take((have - target) as usize);
    steps.extend(leaving.map(|node| Step::Leave(node.name.clone())));
    steps
}

fn condemns(step: &Step) -> Option<&str> {
    match step {
        Step::Condemn(name, _) => Some(name),
        Step::Order(_) | Step::Leave(_) => None,
    }
}

/// Nodes that take work, or will.
fn is_of_use(node: &&Member) -> bool {
    matches!(node.standing, Standing::Preparing | Standing::Ready)
}

fn count(nodes: &[&Member], which: impl Fn(&Member) -> bool) -> u32 {
    u32::try_from(nodes.iter().filter(|node| which(node)).count()).unwrap_or(u32::MAX)
}

fn condemned(node: &Member, lost_ms: i64, now: Timestamp) -> Option<Step> {
    let silent = now.0 - node.heard.0;
    let why = match node.standing {
        Standing::Preparing if silent >= PREPARE_MS => {
            format!("it did not join within {} min of being ordered", PREPARE_MS / 60_000)
        }
        Standing::Ready if silent >= lost_ms => match silent / 60_000 {
            0 => format!("it was not heard of for {} s", silent / 1000),
            minutes => format!("it was not heard of for {minutes} min"),
        },
        _ => return None,
    };
    Some(Step::Condemn(node.name.clone(), why))
}

#[cfg(test)]
mod tests;
