//! How fast jobs are placed, and whether a decision costs the same however many jobs and nodes there are.
//!
//! `cargo run -p peregrine-planner --example place` prints a table: a queue of single jobs and of gangs that need a
//! whole node, in three priorities, over nodes of four sizes.

#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::print_stdout, reason = "it prints a table")]

use domain::{JobName, Resources};
use planner::{Decision, Node, Waiting, World, place};
use std::time::Instant;

fn resources(cores: u64, gpus: u32) -> Resources {
    Resources { cpu_milli: cores * 1000, memory_bytes: cores << 32, gpus }
}

fn world(jobs: usize, nodes: usize) -> World {
    let node = |at: usize| Node {
        name: format!("node-{at}"),
        target: "pool".into(),
        capacity: [resources(8, 0), resources(16, 1), resources(64, 8), resources(96, 8)][at % 4],
        silent: (at % 50 == 49).then(|| format!("the agent of `node-{at}` does not answer")),
        handed: Vec::new(),
        window: 128,
    };
    let job = |at: usize| Waiting {
        seq: at as i64,
        job: JobName::parse(&format!("job-{at}")).expect("letters, digits and a dash"),
        target: "pool".into(),
        priority: 3 - (at * 3 / jobs) as i64,
        needs: match at % 10 {
            0 => resources(64, 8),
            1 => resources(96, 8),
            _ => resources(1 + at as u64 % 8, 0),
        },
    };
    World { nodes: (0..nodes).map(node).collect(), queue: (0..jobs).map(job).collect() }
}

fn main() {
    println!("{:>8} {:>8} {:>10} {:>14} {:>12}", "jobs", "nodes", "placed", "decisions/s", "us/decision");
    for (jobs, nodes) in [(500, 50), (5_000, 500), (5_000, 5_000), (50_000, 500), (50_000, 5_000), (100_000, 10_000)] {
        let world = world(jobs, nodes);
        let begin = Instant::now();
        let decisions = place(&world);
        let seconds = begin.elapsed().as_secs_f64();
        let placed = decisions.iter().filter(|decision| matches!(decision, Decision::Place { .. })).count();
        let each = seconds * 1e6 / decisions.len() as f64;
        println!("{jobs:>8} {nodes:>8} {placed:>10} {:>14.0} {each:>12.2}", decisions.len() as f64 / seconds);
    }
}
