//! Preemption: who makes way on a target where higher priority may take from lower.
//!
//! Invariants: nobody is stopped for a job of the same priority or a lower one, nor unless the room that comes of it is
//! enough; as few as will do are stopped, and of those the ones of lowest priority that lose least work.

use domain::{JobName, Resources, Timestamp};

/// One target and the first in its line.
#[derive(Debug, Clone)]
pub struct Contest {
    pub capacity: Resources,
    pub holders: Vec<Runner>,
    pub first: Claim,
}

/// A job that has something of the target.
#[derive(Debug, Clone)]
pub struct Runner {
    pub seq: i64,
    pub priority: i64,
    pub since: Timestamp,
    pub needs: Resources,
    /// It is on its way out; what it has will be free.
    pub leaving: bool,
    /// It may be stopped and begun anew.
    pub may_go: bool,
}

#[derive(Debug, Clone)]
pub struct Claim {
    pub job: JobName,
    pub priority: i64,
    pub needs: Resources,
}

/// So many places of one that gives out whole ones, nodes for example: what a job needs of each does not matter.
pub fn places(count: u32) -> Resources {
    Resources { cpu_milli: u64::from(count) * 1000, ..Resources::default() }
}

/// Who is stopped, and why.
pub fn make_way(contest: &Contest) -> Vec<(i64, String)> {
    let Contest { capacity, holders, first } = contest;
    let kept = holders.iter().filter(|one| !one.leaving);
    let taken = kept.fold(Resources::default(), |sum, one| sum.plus(&one.needs));
    let mut free = capacity.minus(&taken);
    let mut able: Vec<&Runner> =
        holders.iter().filter(|one| one.may_go && !one.leaving && one.priority < first.priority).collect();
    able.sort_by_key(|one| (one.priority, std::cmp::Reverse(one.since), one.seq));
    let mut chosen: Vec<&Runner> = Vec::new();
    for one in able {
        if first.needs.fits_in(&free) {
            break;
        }
        free = free.plus(&one.needs);
        chosen.push(one);
    }
    if !first.needs.fits_in(&free) {
        return Vec::new();
    }
    // A later one may have made an earlier one needless.
    for at in (0..chosen.len()).rev() {
        let without = free.minus(&chosen[at].needs);
        if first.needs.fits_in(&without) {
            free = without;
            chosen.remove(at);
        }
    }
    let because = format!("makes way for `{}`, which has a higher priority", first.job);
    chosen.into_iter().map(|one| (one.seq, because.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `job:cpus:priority:since[!|~] ...  |  cpus:priority`, `!` for one that leaves and `~` for one that must stay.
    fn check(text: &str, expect: &[i64]) {
        let (holders, first) = text.split_once('|').unwrap();
        let cpus = |n: &str| Resources { cpu_milli: n.parse::<u64>().unwrap() * 1000, ..Resources::default() };
        let holders = holders.split_whitespace().map(|one| {
            let (leaving, may_go) = (one.ends_with('!'), !one.ends_with('~'));
            let parts: Vec<&str> = one.trim_end_matches(['!', '~']).split(':').collect();
            let number = |at: usize| parts[at].parse::<i64>().unwrap();
            Runner {
                seq: number(0),
                needs: cpus(parts[1]),
                priority: number(2),
                since: Timestamp(number(3)),
                leaving,
                may_go,
            }
        });
        let (needs, priority) = first.trim().split_once(':').unwrap();
        let first =
            Claim { job: JobName::parse("first").unwrap(), needs: cpus(needs), priority: priority.parse().unwrap() };
        let contest = Contest { capacity: cpus("4"), holders: holders.collect(), first };
        let stopped: Vec<i64> = make_way(&contest).into_iter().map(|(seq, _)| seq).collect();
        assert_eq!(stopped, expect, "{text}");
    }

    #[test]
    fn only_what_is_needed_of_the_lowest_and_youngest_makes_way() {
        check("1:2:1:10 2:2:1:20 | 2:3", &[2]);
        check("1:2:2:10 2:2:1:5 | 2:3", &[2]);
        check("1:1:1:10 2:3:1:5 | 3:3", &[2]);
        check("1:2:1:10 2:2:1:20 | 4:2", &[2, 1]);
    }

    /// A job on a cluster of whole nodes, as the simulation goes on.
    #[derive(Debug, Clone)]
    struct Sim {
        priority: i64,
        parts: u32,
        came: i64,
        /// Rounds of work that are left; a checkpoint keeps what was done.
        left: u32,
        /// Since when it has its nodes.
        since: Option<i64>,
        /// Rounds until it is gone, once it was asked to go.
        grace: Option<u32>,
        stopped: u32,
        ended: bool,
    }

    /// Numbers by seed.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, sides: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % sides
        }
    }

    const NODES: u32 = 4;

    fn runners(jobs: &[Sim]) -> Vec<Runner> {
        let at_work = jobs.iter().enumerate().filter(|(_, job)| job.since.is_some());
        let one = |(seq, job): (usize, &Sim)| Runner {
            seq: seq as i64,
            priority: job.priority,
            since: Timestamp(job.since.unwrap_or_default()),
            needs: places(job.parts),
            leaving: job.grace.is_some(),
            may_go: true,
        };
        at_work.map(one).collect()
    }

    /// One round: what is over leaves, the first in line begin if they fit, and the next makes others go.
    fn round(jobs: &mut [Sim], now: i64) {
        for job in jobs.iter_mut().filter(|job| job.since.is_some()) {
            job.left -= 1;
            job.ended = job.left == 0;
            let gone = job.grace.map(|grace| grace - 1);
            job.grace = gone.filter(|grace| *grace > 0);
            if job.ended || gone == Some(0) {
                (job.since, job.grace) = (None, None);
            }
        }
        let mut line: Vec<usize> = (0..jobs.len())
            .filter(|at| !jobs[*at].ended && jobs[*at].since.is_none() && jobs[*at].came <= now)
            .collect();
        line.sort_by_key(|at| (std::cmp::Reverse(jobs[*at].priority), *at));
        for at in line {
            let taken: u32 = jobs.iter().filter(|job| job.since.is_some()).map(|job| job.parts).sum();
            assert!(taken <= NODES, "more nodes are given out than there are");
            if taken + jobs[at].parts <= NODES {
                jobs[at].since = Some(now);
                continue;
            }
            let claim = |job: &Sim| Claim {
                job: JobName::parse("first").unwrap(),
                priority: job.priority,
                needs: places(job.parts),
            };
            let contest = Contest { capacity: places(NODES), holders: runners(jobs), first: claim(&jobs[at]) };
            let stopped: Vec<usize> = make_way(&contest).iter().map(|(seq, _)| *seq as usize).collect();
            let stays: u32 =
                jobs.iter().filter(|job| job.since.is_some() && job.grace.is_none()).map(|job| job.parts).sum();
            let freed: u32 = stopped.iter().map(|seq| jobs[*seq].parts).sum();
            for seq in &stopped {
                assert!(jobs[*seq].priority < jobs[at].priority, "one of the same priority or a higher was stopped");
                let without = NODES - (stays - (freed - jobs[*seq].parts));
                assert!(without < jobs[at].parts, "one was stopped that was not in the way");
                jobs[*seq].grace = Some(2);
                jobs[*seq].stopped += 1;
            }
            assert!(stopped.is_empty() || NODES - (stays - freed) >= jobs[at].parts, "some were stopped in vain");
            break;
        }
    }

    #[test]
    fn on_whole_nodes_the_highest_waits_for_no_lower_one_and_everyone_ends() {
        for seed in 0..200 {
            let mut dice = Dice(seed);
            let mut jobs: Vec<Sim> = (0..24)
                .map(|_| Sim {
                    priority: 1 + dice.below(3) as i64,
                    parts: 1 + dice.below(NODES.into()) as u32,
                    came: dice.below(60) as i64,
                    left: 1 + dice.below(12) as u32,
                    since: None,
                    grace: None,
                    stopped: 0,
                    ended: false,
                })
                .collect();
            jobs.sort_by_key(|job| job.came);
            for now in 0..1000 {
                round(&mut jobs, now);
                // The first in line waits only for its like, or for those who are on their way out.
                let open = jobs.iter().filter(|job| !job.ended && job.came <= now);
                let first = open.filter(|job| job.since.is_none()).max_by_key(|job| job.priority);
                if let Some(first) = first {
                    let stays = |job: &&Sim| job.since.is_some() && job.grace.is_none();
                    let mine: u32 = jobs
                        .iter()
                        .filter(stays)
                        .filter(|job| job.priority >= first.priority)
                        .map(|job| job.parts)
                        .sum();
                    let all: u32 = jobs.iter().filter(stays).map(|job| job.parts).sum();
                    let others = jobs.iter().filter(|job| job.since.is_none() && !job.ended && job.came <= now);
                    let alone = others.filter(|job| job.priority == first.priority).count() == 1;
                    assert!(!alone || mine + first.parts > NODES || all + first.parts <= NODES, "seed {seed} at {now}");
                }
            }
            assert!(jobs.iter().all(|job| job.ended), "seed {seed}: {jobs:?}");
            assert!(jobs.iter().filter(|job| job.priority == 3).all(|job| job.stopped == 0));
        }
    }

    #[test]
    fn nobody_is_stopped_in_vain() {
        for text in ["1:4:3:1 | 1:3", "1:2:3:1 2:2:1:1 | 4:3", "1:2:1:1 | 2:3", "1:4:1:1! | 4:3", "1:4:1:1~ | 4:3"] {
            check(text, &[]);
        }
    }
}
