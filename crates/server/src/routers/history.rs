//! What endpoints have answered lately, in steps of half a minute, from what their routers tell each second.
//!
//! Beside the steps stand totals since the server began, by which rollouts judge. Kept in memory: it is for looking at, and
//! routers count on by themselves. Invariant: of what a router tells only the
//! difference to what it told before is added, so that routers may come, go and begin anew.

use domain::{Timestamp, serving::Answered};
use std::collections::{HashMap, VecDeque};

/// How long a step is.
pub(crate) const STEP_MS: i64 = 30_000;
/// Steps in which nothing was asked are not kept, and take no place.
const KEPT: usize = 720;

#[derive(Default)]
pub(super) struct History {
    /// By endpoint, oldest first.
    steps: HashMap<String, VecDeque<Step>>,
    /// By endpoint, since this server began to listen.
    totals: HashMap<String, Vec<Answered>>,
}

/// What was answered in one step, by deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) at: Timestamp,
    pub(crate) answered: Vec<Answered>,
}

impl History {
    /// Adds what a router has answered between two of its messages.
    pub(super) fn add(&mut self, before: &[Answered], now: &[Answered], at: Timestamp) {
        for one in now {
            let old = before.iter().find(|old| old.endpoint == one.endpoint && same(old, one));
            let fresh = since(old, one);
            if fresh.codes.is_empty() {
                continue;
            }
            put(self.totals.entry(one.endpoint.clone()).or_default(), fresh.clone());
            let steps = self.steps.entry(one.endpoint.clone()).or_default();
            let at = Timestamp(at.0 - at.0.rem_euclid(STEP_MS));
            if steps.back().is_none_or(|step| step.at < at) {
                steps.push_back(Step { at, answered: Vec::new() });
            }
            while steps.len() > KEPT {
                steps.pop_front();
            }
            put(&mut steps.back_mut().expect("one was put there if there was none").answered, fresh);
        }
    }

    pub(super) fn of(&self, endpoint: &str) -> Vec<Step> {
        self.steps.get(endpoint).into_iter().flatten().cloned().collect()
    }

    /// All that was answered for an endpoint, by deployment.
    pub(super) fn totals(&self, endpoint: &str) -> &[Answered] {
        self.totals.get(endpoint).map(Vec::as_slice).unwrap_or_default()
    }

    /// Lets go of endpoints that no site has any more.
    pub(super) fn keep(&mut self, there: impl Fn(&str) -> bool) {
        self.steps.retain(|endpoint, _| there(endpoint));
        self.totals.retain(|endpoint, _| there(endpoint));
    }
}

/// Whether both are about the same answers of one endpoint.
fn same(a: &Answered, b: &Answered) -> bool {
    (a.mirrored, &a.deployment) == (b.mirrored, &b.deployment)
}

fn put(all: &mut Vec<Answered>, more: Answered) {
    match all.iter_mut().find(|known| same(known, &more)) {
        Some(known) => sum(known, &more),
        None => all.push(more),
    }
}

/// What came to be counted since `old`; all of it where the counters began anew.
fn since(old: Option<&Answered>, now: &Answered) -> Answered {
    let Some(old) = old.filter(|old| old.codes.iter().all(|(code, count)| now.codes.get(code) >= Some(count))) else {
        return now.clone();
    };
    let codes = now.codes.iter().map(|(code, count)| (*code, count - old.codes.get(code).unwrap_or(&0)));
    let before = old.buckets.iter().copied().chain(std::iter::repeat(0));
    let buckets = now.buckets.iter().zip(before).map(|(count, before)| count.saturating_sub(before)).collect();
    Answered { codes: codes.filter(|(_, count)| *count > 0).collect(), buckets, ..now.clone() }
}

fn sum(into: &mut Answered, more: &Answered) {
    for (code, count) in &more.codes {
        *into.codes.entry(*code).or_default() += count;
    }
    for (bucket, count) in into.buckets.iter_mut().zip(&more.buckets) {
        *bucket += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(deployment: &str, codes: &[(u16, u64)], buckets: &[u64]) -> Answered {
        let codes = codes.iter().copied().collect();
        let (endpoint, deployment) = ("iris".into(), deployment.into());
        Answered { endpoint, deployment, mirrored: false, codes, buckets: buckets.to_vec() }
    }

    #[test]
    fn only_what_is_new_is_added_and_every_router_and_restart_counts() {
        let mut history = History::default();
        let first = [told("blue", &[(200, 5)], &[5, 0])];
        let second = [told("blue", &[(200, 7), (502, 1)], &[6, 2])];
        history.add(&first, &first, Timestamp(1_000));
        assert!(history.of("iris").is_empty(), "nothing happened");
        history.add(&first, &second, Timestamp(2_000));
        // Another router, in the same step.
        history.add(&[], &[told("blue", &[(200, 1)], &[0, 1])], Timestamp(STEP_MS - 1));
        // The first one again, which has begun anew.
        history.add(&second, &[told("blue", &[(200, 2)], &[2, 0])], Timestamp(STEP_MS));
        let steps = history.of("iris");
        let expected =
            [(0, told("blue", &[(200, 3), (502, 1)], &[1, 3])), (STEP_MS, told("blue", &[(200, 2)], &[2, 0]))];
        assert_eq!(steps, expected.map(|(at, one)| Step { at: Timestamp(at), answered: vec![one] }));
        assert_eq!(history.totals("iris"), [told("blue", &[(200, 5), (502, 1)], &[3, 3])]);
        // Copies are told apart from what callers got.
        let copies = Answered { mirrored: true, ..told("blue", &[(500, 4)], &[4, 0]) };
        history.add(&[], std::slice::from_ref(&copies), Timestamp(STEP_MS));
        assert_eq!(history.totals("iris"), [told("blue", &[(200, 5), (502, 1)], &[3, 3]), copies]);
        history.keep(|endpoint| endpoint == "other");
        assert!(history.of("iris").is_empty() && history.totals("iris").is_empty());
    }

    #[test]
    fn no_more_than_some_hours_are_kept() {
        let mut history = History::default();
        for step in 0..KEPT as i64 + 5 {
            history.add(&[], &[told("blue", &[(200, 1)], &[1])], Timestamp(step * STEP_MS));
        }
        let steps = history.of("iris");
        assert_eq!((steps.len(), steps[0].at), (KEPT, Timestamp(5 * STEP_MS)));
    }
}
