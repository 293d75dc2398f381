//! Placement: which waiting job is handed to which node's agent.
//!
//! A node is handed more than it can run at once, up to its `window`, and its agent starts the work in the
//! same order as here when resources are free. So a machine never idles while the news of an ended job
//! travels, and a job of higher priority still overtakes everything that waits.

use domain::{
    JobName, Resources, Timestamp,
    sharing::{Held, Holder, Ledger, Quota, fair},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap},
};

/// What a pass looks at.
#[derive(Debug, Default)]
pub struct World {
    pub nodes: Vec<Node>,
    /// In any order.
    pub queue: Vec<Waiting>,
    /// Everyone who waits or holds something.
    pub shares: Vec<Share>,
    pub quotas: Vec<Quota>,
    /// What is with nodes and clusters already.
    pub held: Vec<Held>,
    pub now: Timestamp,
    /// After how long what was used counts half.
    pub half_life_ms: i64,
}

/// What someone has had of the machines.
#[derive(Debug, Clone, Default)]
pub struct Share {
    pub holder: Holder,
    /// What counts of it now, in core-milliseconds.
    pub used: f64,
    /// The highest turn among those of their jobs that are handed out and have not begun.
    pub turn: i64,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub name: String,
    /// The compute target the node belongs to.
    pub target: String,
    pub capacity: Resources,
    /// Why it gets no work although it is there, in words; `None` for one that was heard of lately.
    pub silent: Option<String>,
    pub handed: Vec<Handed>,
    /// How many jobs of one person may be with the agent at once, those of higher priority counted.
    pub window: usize,
}

/// Jobs of one priority and one person that a node has already.
#[derive(Debug, Clone, Copy)]
pub struct Handed {
    pub priority: i64,
    /// Whose, as a place in `shares`.
    pub share: usize,
    pub count: usize,
}

#[derive(Debug, Clone)]
pub struct Waiting {
    pub seq: i64,
    pub job: JobName,
    /// Where it is to run, as nodes say it.
    pub target: String,
    /// The same as users say it.
    pub called: String,
    pub priority: i64,
    /// Whose it is, as a place in `shares`.
    pub share: usize,
    /// Of the whole gang.
    pub needs: Resources,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Place {
        seq: i64,
        node: String,
        /// Where it stands among those of its priority that the node's agent holds; lower goes first.
        turn: i64,
        because: String,
    },
    Wait {
        seq: i64,
        because: String,
    },
}

/// One pass over the queue: highest priority first, then who has used less, then first come. A decision costs the same
/// however many nodes and jobs there are, as long as priorities, people and sizes of nodes are few.
pub fn place(world: &World) -> Vec<Decision> {
    let mut free = Free::of(world);
    let mut shares = world.shares.clone();
    let mut decisions = Vec::with_capacity(world.queue.len());
    for (_, lines) in lines(&world.queue) {
        // Who has used least, whose first job is oldest.
        let mut next: BinaryHeap<Reverse<(u64, i64, usize, usize)>> = BinaryHeap::new();
        let rank = |shares: &[Share], share: usize, at: usize, line: &[&Waiting]| {
            line.get(at).map(|job| Reverse((shares[share].used as u64, job.seq, share, at)))
        };
        next.extend(lines.iter().filter_map(|(share, line)| rank(&shares, *share, 0, line)));
        while let Some(Reverse((_, _, share, at))) = next.pop() {
            let line = &lines[&share];
            decisions.push(free.decide(line[at], &mut shares[share]));
            next.extend(rank(&shares, share, at + 1, line));
        }
    }
    decisions
}

/// Everyone's jobs of each priority, first come first.
type Lines<'w> = BTreeMap<Reverse<i64>, BTreeMap<usize, Vec<&'w Waiting>>>;

fn lines(queue: &[Waiting]) -> Lines<'_> {
    let mut lines = Lines::new();
    for job in queue {
        lines.entry(Reverse(job.priority)).or_default().entry(job.share).or_default().push(job);
    }
    lines.values_mut().flat_map(BTreeMap::values_mut).for_each(|line| line.sort_by_key(|job| job.seq));
    lines
}

/// What nodes have room for, as a pass goes on.
struct Free<'w> {
    world: &'w World,
    ledger: Ledger,
    handed: Vec<Vec<Handed>>,
    targets: HashMap<&'w str, Vec<Size>>,
    /// The priority by which nodes stand in line.
    priority: Option<i64>,
}

/// Nodes of a target that are equally big.
struct Size {
    capacity: Resources,
    /// The first of those that get no work.
    silent: Option<usize>,
    /// The others: how many jobs go before the next one, and the node.
    line: BinaryHeap<Reverse<(usize, usize)>>,
}

impl<'w> Free<'w> {
    fn of(world: &'w World) -> Free<'w> {
        let mut targets: HashMap<&str, Vec<Size>> = HashMap::new();
        for (at, node) in world.nodes.iter().enumerate() {
            let sizes = targets.entry(&node.target).or_default();
            let known = sizes.iter().position(|size| size.capacity == node.capacity);
            let size = known.unwrap_or_else(|| {
                sizes.push(Size { capacity: node.capacity, silent: None, line: BinaryHeap::new() });
                sizes.len() - 1
            });
            if node.silent.is_some() {
                sizes[size].silent.get_or_insert(at);
            }
        }
        let handed = world.nodes.iter().map(|node| node.handed.clone()).collect();
        let ledger = Ledger::new(world.quotas.clone(), &world.held);
        Free { world, ledger, handed, targets, priority: None }
    }

    fn decide(&mut self, job: &Waiting, share: &mut Share) -> Decision {
        self.line_up(job.priority);
        let wait = |because: String| Decision::Wait { seq: job.seq, because };
        if let Some(because) = self.ledger.wait(job.job.as_str(), &share.holder, &job.called, &job.needs) {
            return wait(because);
        }
        let Some(sizes) = self.targets.get_mut(job.target.as_str()) else {
            return wait(format!("compute target `{}` has no node yet", job.target));
        };
        let fits = |size: &&mut Size| job.needs.fits_in(&size.capacity);
        let Some(size) = sizes.iter_mut().filter(fits).min_by_key(|size| size.least()) else {
            let most = sizes.iter().map(|size| size.capacity.humane()).max().unwrap_or_default();
            return wait(format!("needs {}, more than any node of `{}` has ({most})", job.needs.humane(), job.target));
        };
        let Some(Reverse((before, at))) = size.line.pop() else {
            let silent = sizes.iter().filter(|size| job.needs.fits_in(&size.capacity)).filter_map(|size| size.silent);
            let why = silent.min().and_then(|at| self.world.nodes[at].silent.clone());
            return wait(why.unwrap_or_default());
        };
        let node = &self.world.nodes[at];
        if counted(&self.handed[at], job) >= node.window {
            size.line.push(Reverse((before, at)));
            return wait(turn(&job.called));
        }
        size.line.push(Reverse((before + 1, at)));
        hand(&mut self.handed[at], job);
        self.ledger.take(&share.holder, &job.called, &job.needs);
        share.used += fair::weight(&job.needs) as f64 / 1000.0 * fair::AT_LEAST_MS as f64;
        // Those of one person start in the order in which they came.
        share.turn = share.turn.max(fair::turn(share.used, self.world.now, self.world.half_life_ms.max(1)));
        let because = format!("next in line for `{}`", node.name);
        Decision::Place { seq: job.seq, node: node.name.clone(), turn: share.turn, because }
    }

    /// Puts all nodes in line for jobs of this priority.
    fn line_up(&mut self, priority: i64) {
        if self.priority == Some(priority) {
            return;
        }
        self.priority = Some(priority);
        for size in self.targets.values_mut().flatten() {
            size.line.clear();
        }
        for (at, node) in self.world.nodes.iter().enumerate().filter(|(_, node)| node.silent.is_none()) {
            let sizes = self.targets.get_mut(node.target.as_str()).into_iter().flatten();
            for size in sizes.filter(|size| size.capacity == node.capacity) {
                size.line.push(Reverse((before(&self.handed[at], priority), at)));
            }
        }
    }
}

impl Size {
    /// How many jobs go first on the node that is first in line, and which it is; those with none come last.
    fn least(&self) -> (usize, usize) {
        self.line.peek().map_or((usize::MAX, usize::MAX), |Reverse(least)| *least)
    }
}

/// How many of a node's jobs go before one of this priority.
fn before(handed: &[Handed], priority: i64) -> usize {
    handed.iter().filter(|handed| handed.priority >= priority).map(|handed| handed.count).sum()
}

/// How many of a node's jobs count against its window for this one.
fn counted(handed: &[Handed], job: &Waiting) -> usize {
    let counts =
        |one: &&Handed| one.priority > job.priority || (one.priority == job.priority && one.share == job.share);
    handed.iter().filter(counts).map(|handed| handed.count).sum()
}

fn hand(handed: &mut Vec<Handed>, job: &Waiting) {
    match handed.iter_mut().find(|one| one.priority == job.priority && one.share == job.share) {
        Some(handed) => handed.count += 1,
        None => handed.push(Handed { priority: job.priority, share: job.share, count: 1 }),
    }
}

/// The wait of a job that nothing but older work holds up; the note a job is born with.
pub fn turn(target: &str) -> String {
    format!("waits for its turn on `{target}`")
}

#[cfg(test)]
mod tests;
