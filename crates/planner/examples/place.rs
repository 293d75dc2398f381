//! How fast jobs are placed, and whether a decision costs the same however many jobs and nodes there are.
//!
//! `cargo run -p peregrine-planner --example place` prints a table: a queue of single jobs and of gangs that need a
//! whole node, in three priorities, of forty people with a quota each, over nodes of four sizes; and another of what it costs to
//! decide which nodes a managed cluster orders, sends away and gives up.

#![expect(clippy::disallowed_methods, reason = "it measures real time")]
#![expect(clippy::print_stdout, reason = "it prints a table")]

use domain::{
    JobName, Resources, Timestamp,
    machine::Standing,
    sharing::{Held, Holder, Limits, Quota, Whom},
};
use planner::{
    Decision, Node, Share, Waiting, World,
    nodes::{Bounds, Failures, Member, Step, resize},
    place,
};
use std::time::Instant;

const PEOPLE: usize = 40;

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
        called: "pool".into(),
        share: at * 7 % PEOPLE,
        priority: 3 - (at * 3 / jobs) as i64,
        needs: match at % 10 {
            0 => resources(64, 8),
            1 => resources(96, 8),
            _ => resources(1 + at as u64 % 8, 0),
        },
    };
    let holder = |at: usize| Holder { workspace: format!("team-{}", at % 4), person: format!("user-{at}") };
    let share = |at: usize| Share { holder: holder(at), used: at as f64 * 1e6, turn: 0 };
    let limits = Limits { cpu_milli: Some(4_000_000), jobs: Some(jobs as u64 / 50), ..Limits::default() };
    let quota = |at: usize| Quota { workspace: format!("team-{}", at % 4), whom: Whom::Each, target: None, limits };
    let held = |at: usize| Held { holder: holder(at), target: "pool".into(), resources: resources(8, 0), jobs: 8 };
    World {
        nodes: (0..nodes).map(node).collect(),
        queue: (0..jobs).map(job).collect(),
        shares: (0..PEOPLE).map(share).collect(),
        quotas: (0..4).map(quota).collect(),
        held: (0..PEOPLE).map(held).collect(),
        half_life_ms: 86_400_000,
        ..World::default()
    }
}

/// A tenth of the nodes has fallen silent, a tenth has nothing to do, and the rest works.
fn members(count: usize) -> Vec<Member> {
    let member = |at: usize| Member {
        name: format!("crew-0a1b2c3d-{at:06x}"),
        standing: Standing::Ready,
        busy: at % 10 > 1,
        since: Timestamp(0),
        heard: Timestamp(if at.is_multiple_of(10) { 0 } else { 3_600_000 }),
    };
    (0..count).map(member).collect()
}

fn print_resize() {
    println!("\n{:>8} {:>8} {:>10} {:>12} {:>14}", "waiting", "nodes", "steps", "us/look", "ns/node");
    for (waiting, count) in [(0, 100), (0, 1_000), (0, 10_000), (100_000, 10_000)] {
        let (nodes, waiting) = (members(count), vec![1; waiting]);
        let most = u32::try_from(count * 2).expect("it is small");
        let bounds = Bounds { least: 0, most, idle_ms: 60_000, lost_ms: 600_000 };
        let begin = Instant::now();
        let steps = resize(&bounds, &nodes, &waiting, &Failures::default(), Timestamp(3_600_000));
        let seconds = begin.elapsed().as_secs_f64();
        let done: usize = steps.iter().map(|step| if let Step::Order(more) = step { *more as usize } else { 1 }).sum();
        let each = seconds * 1e9 / count as f64;
        println!("{:>8} {count:>8} {done:>10} {:>12.0} {each:>14.1}", waiting.len(), seconds * 1e6);
    }
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
    print_resize();
}
