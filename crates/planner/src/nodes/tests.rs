//! Single decisions, and weeks of them with machines that fail, hang and vanish.

use super::*;
use crate::sweep::chance::Chance;
use std::collections::BTreeMap;

const MINUTE: i64 = 60_000;

fn member(name: &str, standing: Standing, busy: bool, since: i64) -> Member {
    Member { name: name.into(), standing, busy, since: Timestamp(since), heard: Timestamp(1_000_000) }
}

const LOST_MS: i64 = 10 * MINUTE;

fn bounds(least: u32, most: u32) -> Bounds {
    Bounds { least, most, idle_ms: 120_000, lost_ms: LOST_MS }
}

#[test]
fn nodes_come_with_demand_and_go_after_their_idle_time() {
    use Standing::{Leaving, Preparing, Ready};
    let now = Timestamp(1_000_000);
    let order = |count| vec![Step::Order(count)];
    let leave = |name: &str| vec![Step::Leave(name.into())];
    let idle = |since| member("a", Ready, false, since);
    for (what, bounds, nodes, waiting, expect) in [
        ("nothing to do", bounds(0, 4), vec![], vec![], vec![]),
        ("the least is kept", bounds(2, 4), vec![], vec![], order(2)),
        ("demand is met", bounds(0, 4), vec![], vec![1, 1], order(2)),
        ("a gang counts whole", bounds(0, 4), vec![idle(0)], vec![3], order(2)),
        ("no more than the most", bounds(0, 4), vec![], vec![3, 3], order(4)),
        ("what can never be had is no demand", bounds(0, 4), vec![], vec![5], vec![]),
        ("nodes on their way count", bounds(0, 4), vec![member("a", Preparing, false, 999_000)], vec![1], vec![]),
        ("busy ones do not", bounds(0, 4), vec![member("a", Ready, true, 0)], vec![1], order(1)),
        (
            "one on its way out still takes its place",
            bounds(0, 1),
            vec![member("a", Leaving, false, 0)],
            vec![1],
            vec![],
        ),
        ("idle for long", bounds(0, 4), vec![idle(1_000_000 - 120_000)], vec![], leave("a")),
        ("idle, but wanted", bounds(0, 4), vec![idle(0)], vec![1], vec![]),
        ("idle, but among the least", bounds(1, 4), vec![idle(0)], vec![], vec![]),
        ("idle for a moment", bounds(0, 4), vec![idle(999_000)], vec![], vec![]),
        ("the most was lowered", bounds(0, 0), vec![idle(999_000)], vec![], leave("a")),
        ("never one with work", bounds(0, 0), vec![member("a", Ready, true, 0)], vec![], vec![]),
    ] {
        assert_eq!(resize(&bounds, &nodes, &waiting, &Failures::default(), now), expect, "{what}");
    }
}

#[test]
fn what_fails_is_tried_ever_more_slowly_and_one_at_a_time() {
    let mut failures = Failures::default();
    let at = |failures: &Failures, now| resize(&bounds(0, 8), &[], &[1, 1, 1], failures, Timestamp(now));
    assert_eq!(at(&failures, 0), [Step::Order(3)]);
    let (mut now, mut pauses) = (0, Vec::new());
    for _ in 0..12 {
        failures.more(Timestamp(now));
        let failed = now;
        while at(&failures, now).is_empty() {
            now += 500;
        }
        assert_eq!(at(&failures, now), [Step::Order(1)]);
        pauses.push(now - failed);
    }
    assert!(pauses.is_sorted() && pauses[0] == 2_000 && *pauses.last().unwrap() == 5 * MINUTE, "{pauses:?}");
}

#[test]
fn a_node_that_is_silent_for_long_is_condemned_and_replaced() {
    let silent = |standing, busy, ms: i64| {
        let node = Member { heard: Timestamp(1_000_000 - ms), ..member("a", standing, busy, 0) };
        resize(&bounds(0, 4), &[node], &[], &Failures::default(), Timestamp(1_000_000))
    };
    assert!(silent(Standing::Ready, true, LOST_MS - 1).is_empty());
    assert!(
        matches!(&silent(Standing::Ready, true, LOST_MS)[..], [Step::Condemn(name, why)] if name == "a" && why.contains("10 min"))
    );
    assert!(silent(Standing::Preparing, false, PREPARE_MS - 1).iter().all(|step| !matches!(step, Step::Condemn(..))));
    assert!(matches!(&silent(Standing::Preparing, false, PREPARE_MS)[..], [Step::Condemn(..)]));
}

/// A machine of the simulated provider.
struct Machine {
    member: Member,
    /// When it joins, if it ever does.
    joins: Option<i64>,
    /// When it falls silent for good.
    dies: Option<i64>,
    job: Option<usize>,
}

struct Job {
    comes: i64,
    parts: u32,
    minutes: i64,
    left: i64,
    done: bool,
}

/// Three weeks of jobs on machines that do not start, die and come late; a step every ten seconds.
fn weeks(seed: u64) {
    let mut chance = Chance::new(seed);
    let mut roll = |sides: u64| i64::try_from(chance.below(usize::try_from(sides).unwrap())).unwrap();
    let bounds = Bounds {
        least: u32::try_from(roll(3)).unwrap(),
        most: u32::try_from(3 + roll(6)).unwrap(),
        idle_ms: (1 + roll(10)) * MINUTE,
        lost_ms: LOST_MS,
    };
    let mut jobs: Vec<Job> = (0..300)
        .map(|_| {
            let minutes = 1 + roll(90);
            let parts = u32::try_from(1 + roll(3)).unwrap();
            Job { comes: roll(21 * 24 * 60) * MINUTE, parts, minutes, left: minutes * MINUTE, done: false }
        })
        .collect();
    let (mut machines, mut failures, mut next) = (BTreeMap::<String, Machine>::new(), Failures::default(), 0);
    let (step, mut now, mut calm_since, mut orders) = (10_000_i64, 0_i64, None, 0_usize);
    loop {
        now += step;
        for machine in machines.values_mut() {
            if machine.dies.is_some_and(|at| now >= at) {
                continue;
            }
            if machine.member.standing == Standing::Preparing && machine.joins.is_some_and(|at| now >= at) {
                machine.member.standing = Standing::Ready;
                machine.member.since = Timestamp(now);
                failures = Failures::default();
            }
            if machine.member.standing == Standing::Ready {
                machine.member.heard = Timestamp(now);
            }
        }
        // Jobs get whole gangs, in order; they go on while every machine of theirs lives.
        for (at, job) in jobs.iter_mut().enumerate().filter(|(_, job)| !job.done && job.comes <= now) {
            let mine: Vec<&String> = machines.iter().filter(|(_, m)| m.job == Some(at)).map(|(name, _)| name).collect();
            if mine.is_empty() {
                let free: Vec<String> = machines
                    .iter()
                    .filter(|(_, m)| {
                        m.job.is_none() && m.member.standing == Standing::Ready && now - m.member.heard.0 < SILENT_MS
                    })
                    .map(|(name, _)| name.clone())
                    .take(job.parts as usize)
                    .collect();
                if free.len() == job.parts as usize {
                    job.left = job.minutes * MINUTE;
                    for name in free {
                        let machine = machines.get_mut(&name).unwrap();
                        (machine.job, machine.member.busy, machine.member.since) = (Some(at), true, Timestamp(now));
                    }
                }
                continue;
            }
            if mine.len() == job.parts as usize
                && mine.iter().all(|name| machines[*name].dies.is_none_or(|at| now < at))
            {
                job.left -= step;
            }
            if job.left <= 0 {
                job.done = true;
                for machine in machines.values_mut().filter(|m| m.job == Some(at)) {
                    (machine.job, machine.member.busy, machine.member.since) = (None, false, Timestamp(now));
                }
            }
        }
        let waiting: Vec<u32> = jobs
            .iter()
            .enumerate()
            .filter(|(at, job)| !job.done && job.comes <= now && machines.values().all(|m| m.job != Some(*at)))
            .map(|(_, job)| job.parts)
            .collect();
        let members: Vec<Member> = machines.values().map(|machine| machine.member.clone()).collect();
        for decided in resize(&bounds, &members, &waiting, &failures, Timestamp(now)) {
            match decided {
                Step::Order(count) => {
                    orders += count as usize;
                    for _ in 0..count {
                        let name = format!("n{next}");
                        next += 1;
                        let joins = (roll(10) > 0).then(|| now + roll(5) * MINUTE);
                        let dies = (roll(8) == 0).then(|| now + roll(600) * MINUTE);
                        let mut member = member(&name, Standing::Preparing, false, now);
                        member.heard = Timestamp(now);
                        machines.insert(name, Machine { member, joins, dies, job: None });
                    }
                }
                Step::Leave(name) => {
                    let left = machines.remove(&name).unwrap();
                    assert!(left.job.is_none(), "seed {seed}: {name} was at work");
                }
                Step::Condemn(name, _) => {
                    let gone = machines.remove(&name).unwrap();
                    let silent = gone.dies.is_some_and(|at| now >= at) || gone.joins.is_none() || gone.dies.is_some();
                    assert!(silent, "seed {seed}: {name} was well");
                    if gone.member.standing == Standing::Preparing {
                        failures.more(Timestamp(now));
                    }
                    // The rest of its gang ends with it, and all of it begins again.
                    let Some(lost) = gone.job else { continue };
                    for machine in machines.values_mut().filter(|m| m.job == Some(lost)) {
                        (machine.job, machine.member.busy, machine.member.since) = (None, false, Timestamp(now));
                    }
                }
            }
        }
        let have = u32::try_from(machines.len()).unwrap();
        assert!(have <= bounds.most, "seed {seed}: {have} of {}", bounds.most);
        assert!(now < 60 * 24 * 60 * MINUTE, "seed {seed}: a job is never done");
        let over = jobs.iter().all(|job| job.done);
        calm_since = if over { calm_since.or(Some(now)) } else { None };
        // Some time after the last job there is the least again, and nothing else.
        if calm_since.is_some_and(|since| now - since > 2 * PREPARE_MS + bounds.idle_ms + LOST_MS) {
            let well = machines.values().filter(|m| m.dies.is_none_or(|at| now < at)).count();
            assert!(well <= bounds.least.max(1) as usize + 1, "seed {seed}: {well} idle nodes stay");
            // 300 jobs of up to three nodes: flapping would order far more.
            assert!(orders < 1_500, "seed {seed}: {orders} orders");
            return;
        }
    }
}

#[test]
fn over_weeks_clusters_keep_the_laws_every_job_done_and_no_busy_node_sent_away() {
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_u64).min(2_000);
    (0..seeds).for_each(weeks);
}
