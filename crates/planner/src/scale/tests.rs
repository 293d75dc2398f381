//! The rules one by one, then hours of traffic over fleets that start slowly, die and are replaced.

use super::*;
use expect_test::{Expect, expect};

/// `wanted generation | seq:generation:state ...`, with the states `w`aiting, stuc`k`, `s`tarting, `r`eady, `d`raining,
/// `f`ree and stopping (`x`).
fn check(fleet: &str, expect: Expect) {
    let (head, replicas) = fleet.split_once('|').unwrap();
    let mut head = head.split_whitespace().map(|n| n.parse::<u32>().unwrap());
    let (wanted, generation) = (head.next().unwrap(), i64::from(head.next().unwrap()));
    let replicas = replicas.split_whitespace().map(|text| {
        let parts: Vec<&str> = text.split(':').collect();
        let state = match parts[2] {
            "w" => ReplicaState::Waiting { stuck: false },
            "k" => ReplicaState::Waiting { stuck: true },
            "s" => ReplicaState::Starting,
            "r" => ReplicaState::Ready,
            "d" => ReplicaState::Draining { free: false },
            "f" => ReplicaState::Draining { free: true },
            _ => ReplicaState::Stopping,
        };
        Replica { seq: parts[0].parse().unwrap(), generation: parts[1].parse().unwrap(), state }
    });
    let fleet = Fleet { generation, wanted, held_back: false, replicas: replicas.collect() };
    let words = scale(&fleet).into_iter().map(|step| match step {
        Step::Start { .. } => "start".to_owned(),
        Step::Drain { seq, .. } => format!("drain {seq}"),
        Step::Stop { seq } => format!("stop {seq}"),
    });
    expect.assert_eq(&words.collect::<Vec<_>>().join(", "));
}

#[test]
fn what_is_on_its_way_counts() {
    check("3 1 | 1:1:w 2:1:s", expect!["start"]);
    check("3 1 | 1:1:w 2:1:s 3:1:r", expect![""]);
    check("2 1 | 1:1:d 2:1:x", expect!["start, start"]);
}

#[test]
fn the_youngest_go_first_and_those_that_do_not_answer_before_all() {
    check("1 1 | 1:1:r 2:1:r 3:1:s", expect!["drain 2, drain 3"]);
    check("2 1 | 1:1:s 2:1:r 3:1:r", expect!["drain 1"]);
    check("0 1 | 1:1:r", expect!["drain 1"]);
}

#[test]
fn a_replica_is_stopped_once_nobody_uses_it() {
    check("1 1 | 1:1:r 2:1:d 3:1:f", expect!["stop 3"]);
}

#[test]
fn an_old_generation_goes_as_the_new_one_stands_in() {
    check("2 2 | 1:1:r 2:1:r", expect!["start, start"]);
    check("2 2 | 1:1:r 2:1:r 3:2:s 4:2:s", expect![""]);
    check("2 2 | 1:1:r 2:1:r 3:2:r 4:2:s", expect!["drain 1"]);
    check("2 2 | 1:1:s 2:1:r 3:2:w 4:2:w", expect!["drain 1"]);
    check("2 2 | 2:1:r 3:2:r 4:2:r", expect!["drain 2"]);
}

#[test]
fn where_there_is_no_room_for_both_one_makes_way_but_never_the_last() {
    check("2 2 | 1:1:r 2:1:r 3:2:k 4:2:k", expect!["drain 1"]);
    check("2 2 | 1:1:d 2:1:r 3:2:k 4:2:k", expect![""]);
    check("1 2 | 1:1:r 2:2:k", expect![""]);
}

#[test]
fn the_number_follows_the_formula() {
    let scale = Scale { least: 1, most: 1000, ..Scale::default() };
    for (requests, concurrency, expected) in
        [(0, 1, 1), (1, 1, 2), (200, 1, 286), (7, 10, 1), (8, 10, 2), (9000, 1, 1000)]
    {
        assert_eq!(desired(&scale, concurrency, requests), expected, "{requests} requests, {concurrency} at a time");
    }
}

#[test]
fn up_at_once_and_down_after_twenty_calm_polls_to_the_most_that_was_desired() {
    let scale = Scale { least: 0, most: 10, idle_ms: 60_000, ..Scale::default() };
    let mut history = History::default();
    let mut wanted = 0;
    let mut log = Vec::new();
    for (from, to, desired) in [(0, 5, 8), (5, 15, 2), (15, 16, 4), (16, 120, 0)] {
        for second in from..to {
            let next = history.wanted(&scale, second * 1000, wanted, desired);
            if next != wanted {
                log.push(format!("{second} s: {next}"));
            }
            wanted = next;
        }
    }
    expect!["0 s: 8, 25 s: 4, 36 s: 1, 76 s: 0"].assert_eq(&log.join(", "));
}

#[test]
fn a_server_that_begins_anew_takes_nothing_away_before_it_knows_enough() {
    let scale = Scale { least: 1, most: 10, ..Scale::default() };
    let mut history = History::default();
    for second in 0..20 {
        assert_eq!(history.wanted(&scale, second * 1000, 7, 1), 7, "after {second} s");
    }
    assert_eq!(history.wanted(&scale, 20_000, 7, 1), 1);
}

/// A deployment over time: replicas start in ten seconds, now and then one dies, one second a step.
struct Simulation {
    scale: Scale,
    seed: u64,
    fleet: Fleet,
    history: History,
    began: Vec<(i64, i64)>,
    next: i64,
    starts: usize,
    changes: Vec<i64>,
}

impl Simulation {
    fn new(scale: Scale, seed: u64) -> Simulation {
        let fleet = Fleet { generation: 1, ..Fleet::default() };
        let (history, began, changes) = (History::default(), Vec::new(), Vec::new());
        Simulation { scale, seed, fleet, history, began, next: 0, starts: 0, changes }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % below
    }

    fn ready(&self) -> usize {
        self.fleet.replicas.iter().filter(|replica| replica.is_ready()).count()
    }

    /// One second with so many requests; `chaos` kills now and then.
    fn step(&mut self, second: i64, requests: u64, chaos: bool) {
        for (seq, began) in &self.began {
            for replica in self.fleet.replicas.iter_mut().filter(|r| r.seq == *seq) {
                match replica.state {
                    ReplicaState::Starting if second - began >= 10 => replica.state = ReplicaState::Ready,
                    ReplicaState::Draining { .. } => replica.state = ReplicaState::Draining { free: true },
                    _ => {}
                }
            }
        }
        self.fleet.replicas.retain(|replica| replica.state != ReplicaState::Stopping);
        let fleet = &self.fleet;
        self.began.retain(|(seq, _)| fleet.replicas.iter().any(|replica| replica.seq == *seq));
        if chaos && self.draw(60) == 0 && !self.fleet.replicas.is_empty() {
            let unlucky = self.draw(self.fleet.replicas.len() as u64) as usize;
            self.fleet.replicas.remove(unlucky);
        }
        let desired = desired(&self.scale, 1, requests);
        let wanted = self.history.wanted(&self.scale, second * 1000, self.fleet.current(), desired);
        if wanted != self.fleet.wanted {
            self.changes.push(second);
        }
        self.fleet.wanted = wanted;
        assert!((self.scale.least..=self.scale.most).contains(&wanted), "{wanted} at {second} s");
        let before = self.ready();
        for step in scale(&self.fleet) {
            self.carry_out(step, second);
        }
        assert!(self.ready() >= before.min(wanted as usize), "{} of {wanted} ready at {second} s", self.ready());
        let live = self.fleet.replicas.iter().filter(|r| r.is_live() && r.generation == self.fleet.generation).count();
        assert_eq!(live, wanted as usize, "replicas at {second} s");
    }

    fn carry_out(&mut self, step: Step, second: i64) {
        match step {
            Step::Start { .. } => {
                self.next += 1;
                self.starts += 1;
                self.began.push((self.next, second));
                let state = ReplicaState::Starting;
                self.fleet.replicas.push(Replica { seq: self.next, generation: self.fleet.generation, state });
            }
            Step::Drain { seq, .. } => self.put(seq, ReplicaState::Draining { free: false }),
            Step::Stop { seq } => self.put(seq, ReplicaState::Stopping),
        }
    }

    fn put(&mut self, seq: i64, state: ReplicaState) {
        self.fleet.replicas.iter_mut().filter(|r| r.seq == seq).for_each(|replica| replica.state = state);
    }
}

#[test]
fn hours_of_traffic_never_leave_the_bounds_and_do_not_flap() {
    for seed in 0..10 {
        let scale = Scale { least: (seed % 3) as u32, most: 12, ..Scale::default() };
        let mut run = Simulation::new(scale, seed);
        for second in 0..4 * 3600 {
            // A day in an hour, with noise and bursts.
            let wave = 4.0 + 4.0 * (second as f64 / 3600.0 * std::f64::consts::TAU).sin();
            let burst = if run.draw(600) == 0 { 20 } else { 0 };
            let requests = wave as u64 + run.draw(3) + burst;
            if second % 1800 == 900 {
                run.fleet.generation += 1;
            }
            run.step(second, requests, seed % 2 == 1);
        }
        // Noise of two requests is three replicas; without calm it would change the number every second.
        assert!(run.changes.len() < 4 * 3600 / 20, "seed {seed}: {} changes", run.changes.len());
    }
}

#[test]
fn a_herd_at_zero_starts_one_wave() {
    let mut run = Simulation::new(Scale { least: 0, most: 5, ..Scale::default() }, 7);
    (0..100).for_each(|second| run.step(second, 0, false));
    assert_eq!(run.starts, 0);
    (100..109).for_each(|second| run.step(second, 1000, false));
    assert_eq!(run.starts, 5, "none was ready yet, and none was started twice");
    (109..300).for_each(|second| run.step(second, 0, false));
    assert_eq!((run.ready(), run.fleet.wanted), (0, 0), "and they go when nothing is asked for");
}

#[test]
fn steady_demand_leaves_a_fleet_alone() {
    let mut run = Simulation::new(Scale { least: 1, most: 10, ..Scale::default() }, 3);
    (0..3600).for_each(|second| run.step(second, 3 + u64::from(second % 7 == 0), false));
    assert!(run.changes.len() <= 2, "{:?}", run.changes);
}
