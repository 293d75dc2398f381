//! Placement: which waiting job is handed to which node's agent.
//!
//! A node is handed more than it can run at once, up to its `window`, and its agent starts the work in the
//! same order as here when resources are free. So a machine never idles while the news of an ended job
//! travels, and a job of higher priority still overtakes everything that waits.

use domain::{JobName, Resources};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
};

/// What a pass looks at.
#[derive(Debug, Default)]
pub struct World {
    pub nodes: Vec<Node>,
    /// Highest priority first, then first come.
    pub queue: Vec<Waiting>,
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
    /// How many jobs may be with the agent at once.
    pub window: usize,
}

/// Jobs of one priority that a node has already.
#[derive(Debug, Clone, Copy)]
pub struct Handed {
    pub priority: i64,
    pub count: usize,
}

#[derive(Debug, Clone)]
pub struct Waiting {
    pub seq: i64,
    pub job: JobName,
    pub target: String,
    pub priority: i64,
    /// Of the whole gang.
    pub needs: Resources,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Place { seq: i64, node: String, because: String },
    Wait { seq: i64, because: String },
}

/// One pass over the queue. A decision costs the same however many nodes and jobs there are, as long as priorities and
/// sizes of nodes are few.
pub fn place(world: &World) -> Vec<Decision> {
    let mut free = Free::of(world);
    world.queue.iter().map(|job| free.decide(job)).collect()
}

/// What nodes have room for, as a pass goes on.
struct Free<'w> {
    nodes: &'w [Node],
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
        Free { nodes: &world.nodes, handed, targets, priority: None }
    }

    fn decide(&mut self, job: &Waiting) -> Decision {
        self.line_up(job.priority);
        let wait = |because: String| Decision::Wait { seq: job.seq, because };
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
            let why = silent.min().and_then(|at| self.nodes[at].silent.clone());
            return wait(why.unwrap_or_default());
        };
        let node = &self.nodes[at];
        if before >= node.window {
            size.line.push(Reverse((before, at)));
            return wait(turn(&job.target));
        }
        size.line.push(Reverse((before + 1, at)));
        hand(&mut self.handed[at], job.priority);
        Decision::Place { seq: job.seq, node: node.name.clone(), because: format!("next in line for `{}`", node.name) }
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
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.silent.is_none()) {
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

fn hand(handed: &mut Vec<Handed>, priority: i64) {
    match handed.iter_mut().find(|handed| handed.priority == priority) {
        Some(handed) => handed.count += 1,
        None => handed.push(Handed { priority, count: 1 }),
    }
}

/// The wait of a job that nothing but older work holds up; the note a job is born with.
pub fn turn(target: &str) -> String {
    format!("waits for its turn on `{target}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// `node:cpus:window[:handed] ...  |  job:cpus[:priority] ...`
    fn check(world: &str, expect: Expect) {
        let (nodes, jobs) = world.split_once('|').unwrap();
        let cpu = |text: &str| Resources { cpu_milli: text.parse::<u64>().unwrap() * 1000, ..Resources::default() };
        let nodes = nodes.split_whitespace().map(|text| {
            let parts: Vec<&str> = text.split(':').collect();
            let count = parts.get(3).map_or(0, |n| n.parse().unwrap());
            Node {
                name: parts[0].trim_end_matches('!').into(),
                target: "t".into(),
                capacity: cpu(parts[1]),
                silent: parts[0].ends_with('!').then(|| "it does not answer".to_owned()),
                handed: vec![Handed { priority: 1, count }],
                window: parts[2].parse().unwrap(),
            }
        });
        let queue = jobs.split_whitespace().enumerate().map(|(at, text)| {
            let parts: Vec<&str> = text.split(':').collect();
            Waiting {
                seq: at as i64 + 1,
                job: JobName::parse(parts[0]).unwrap(),
                target: "t".into(),
                priority: parts.get(2).map_or(1, |p| p.parse().unwrap()),
                needs: cpu(parts[1]),
            }
        });
        let world = World { nodes: nodes.collect(), queue: queue.collect() };
        let lines: Vec<String> = place(&world)
            .iter()
            .map(|decision| match decision {
                Decision::Place { seq, node, .. } => format!("{} -> {node}", world.queue[*seq as usize - 1].job),
                Decision::Wait { seq, because } => format!("{}: {because}", world.queue[*seq as usize - 1].job),
            })
            .collect();
        expect.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn jobs_are_handed_out_up_to_the_window() {
        check(
            "n:2:2 | a:1 b:1 c:1",
            expect![[r#"
            a -> n
            b -> n
            c: waits for its turn on `t`"#]],
        );
    }

    #[test]
    fn a_job_of_higher_priority_goes_past_a_full_window() {
        check(
            "n:2:1:1 | a:1:3 b:1",
            expect![[r#"
            a -> n
            b: waits for its turn on `t`"#]],
        );
    }

    #[test]
    fn a_job_that_fits_nowhere_says_so_and_lets_others_by() {
        check(
            "n:2:4 | a:8 b:1",
            expect![[r#"
            a: needs 8 CPUs, more than any node of `t` has (2 CPUs)
            b -> n"#]],
        );
    }

    #[test]
    fn work_spreads_over_the_least_laden_node() {
        check(
            "m:2:4:2 n:2:4 | a:1 b:1 c:1",
            expect![[r#"
            a -> n
            b -> n
            c -> m"#]],
        );
    }

    #[test]
    fn a_silent_node_says_why() {
        check("n!:2:4 | a:1", expect!["a: it does not answer"]);
        check(" | a:1", expect!["a: compute target `t` has no node yet"]);
    }
}
