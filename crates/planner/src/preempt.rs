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

    #[test]
    fn nobody_is_stopped_in_vain() {
        for text in ["1:4:3:1 | 1:3", "1:2:3:1 2:2:1:1 | 4:3", "1:2:1:1 | 2:3", "1:4:1:1! | 4:3", "1:4:1:1~ | 4:3"] {
            check(text, &[]);
        }
    }
}
