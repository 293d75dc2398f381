//! Placement: which waiting job is handed to which node's agent.
//!
//! A node is handed more than it can run at once, up to its `window`, and its agent starts the work in the
//! same order as here when resources are free. So a machine never idles while the news of an ended job
//! travels, and a job of higher priority still overtakes everything that waits.

use domain::{JobName, Resources};

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

/// One pass over the queue.
pub fn place(world: &World) -> Vec<Decision> {
    let mut nodes = world.nodes.clone();
    world.queue.iter().map(|job| decide(job, &mut nodes)).collect()
}

fn decide(job: &Waiting, nodes: &mut [Node]) -> Decision {
    let wait = |because: String| Decision::Wait { seq: job.seq, because };
    let mut of_target: Vec<&mut Node> = nodes.iter_mut().filter(|node| node.target == job.target).collect();
    if of_target.is_empty() {
        return wait(format!("compute target `{}` has no node yet", job.target));
    }
    if !of_target.iter().any(|node| job.needs.fits_in(&node.capacity)) {
        let most = of_target.iter().map(|node| node.capacity.humane()).max().unwrap_or_default();
        return wait(format!("needs {}, more than any node of `{}` has ({most})", job.needs.humane(), job.target));
    }
    of_target.retain(|node| job.needs.fits_in(&node.capacity));
    if let Some(why) = of_target.iter().map(|node| node.silent.clone()).collect::<Option<Vec<_>>>() {
        return wait(why.into_iter().next().unwrap_or_default());
    }
    let least = of_target.into_iter().filter(|node| node.silent.is_none()).min_by_key(|node| node.before(job.priority));
    match least {
        Some(node) if node.before(job.priority) < node.window => {
            node.hand(job.priority);
            Decision::Place {
                seq: job.seq,
                node: node.name.clone(),
                because: format!("next in line for `{}`", node.name),
            }
        }
        _ => wait(turn(&job.target)),
    }
}

/// The wait of a job that nothing but older work holds up; the note a job is born with.
pub fn turn(target: &str) -> String {
    format!("waits for its turn on `{target}`")
}

impl Node {
    /// How many of its jobs go before one of this priority.
    fn before(&self, priority: i64) -> usize {
        self.handed.iter().filter(|handed| handed.priority >= priority).map(|handed| handed.count).sum()
    }

    fn hand(&mut self, priority: i64) {
        match self.handed.iter_mut().find(|handed| handed.priority == priority) {
            Some(handed) => handed.count += 1,
            None => self.handed.push(Handed { priority, count: 1 }),
        }
    }
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
