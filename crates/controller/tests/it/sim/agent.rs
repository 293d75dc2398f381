//! A node's agent that runs nothing: attempts go through their stages as chance will have it.
//!
//! It keeps its word as the real one does: it starts what fits, reports in order, and keeps every report until the
//! answer to it has arrived.

use super::{
    chance::Chance,
    desk::{self, Offer},
};
use domain::{
    AttemptId, Outcome, Resources, Timestamp,
    job::Failure,
    report::{NodeFacts, Report, What},
};
use std::collections::{BTreeMap, BTreeSet};
use store::Store;

pub(super) const CAPACITY: Resources = Resources { cpu_milli: 4_000, memory_bytes: 8 << 30, gpus: 0 };

pub(super) struct Agent {
    boot: u32,
    held: BTreeMap<AttemptId, Held>,
    outbox: Vec<Report>,
    /// How often each attempt's command was started, over all boots.
    pub(super) started: BTreeMap<AttemptId, u32>,
}

struct Held {
    offer: Offer,
    stage: Stage,
    stopping: bool,
    /// What has been said of it, to be said again after a restart.
    said: Vec<Report>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Preparing,
    Running,
    Collecting,
    Over,
}

impl Agent {
    pub(super) fn new() -> Agent {
        Agent { boot: 0, held: BTreeMap::new(), outbox: Vec::new(), started: BTreeMap::new() }
    }

    pub(super) async fn poll(&mut self, store: &Store, now: Timestamp) {
        let facts = NodeFacts {
            node: "node".into(),
            boot_id: format!("boot-{}", self.boot),
            version: "sim".into(),
            capacity: CAPACITY,
            gpu_models: Vec::new(),
        };
        let holds: BTreeSet<AttemptId> = self.held.keys().cloned().collect();
        let answer = desk::poll(store, facts, holds, now).await;
        for offer in answer.offers {
            let held = Held { offer: offer.clone(), stage: Stage::Waiting, stopping: false, said: Vec::new() };
            assert!(self.held.insert(offer.attempt.clone(), held).is_none(), "{} was offered twice", offer.attempt);
        }
        for attempt in answer.stop {
            if let Some(held) = self.held.get_mut(&attempt) {
                held.stopping = true;
            }
        }
    }

    /// Everything it holds takes a step, or does not.
    pub(super) fn work(&mut self, chance: &mut Chance, now: Timestamp) {
        let mut order: Vec<AttemptId> = self.held.keys().cloned().collect();
        order.sort_by_key(|attempt| (-self.held[attempt].offer.priority, attempt.parts()));
        let mut free =
            self.held.values().filter(|held| held.uses()).fold(CAPACITY, |free, held| free.minus(&held.offer.needs));
        for attempt in order {
            let held = self.held.get_mut(&attempt).unwrap();
            let waits = held.stage == Stage::Waiting && !held.stopping && !held.offer.needs.fits_in(&free);
            if waits || chance.one_in(3) {
                continue;
            }
            if held.stage == Stage::Waiting {
                free = free.minus(&held.offer.needs);
            }
            if let Some(what) = held.step(chance) {
                if matches!(what, What::Started { .. }) {
                    *self.started.entry(attempt.clone()).or_default() += 1;
                }
                let report = Report { attempt, at: now, what };
                held.said.push(report.clone());
                self.outbox.push(report);
            }
        }
    }

    /// Sends what waits. It may be lost on the way, come twice, or only its answer be lost.
    pub(super) async fn send(&mut self, store: &Store, chance: &mut Chance, now: Timestamp) {
        let waiting = u64::try_from(self.outbox.len()).unwrap();
        let count = usize::try_from(chance.below(waiting + 1)).unwrap();
        match chance.below(8) {
            0 => return,
            1 => drop(desk::report(store, self.outbox[..count].to_vec(), now).await),
            _ => {}
        }
        if chance.one_in(8) {
            drop(desk::report(store, self.outbox[..count].to_vec(), now).await);
            return;
        }
        let recorded = desk::report(store, self.outbox.drain(..count).collect(), now).await;
        recorded.iter().for_each(|attempt| drop(self.held.remove(attempt)));
    }

    /// The process ends and comes back: it takes up what it held and says everything again.
    pub(super) fn restart(&mut self) {
        self.outbox = self.held.values().flat_map(|held| held.said.clone()).collect();
    }

    /// The machine goes down and comes back: nothing is left.
    pub(super) fn reboot(&mut self) {
        self.boot += 1;
        self.held.clear();
        self.outbox.clear();
    }

    /// Somebody removes what it kept of one attempt. Not before the server knows what is known here: the agent has
    /// its own record on disk before it acts.
    pub(super) fn forget_one(&mut self, chance: &mut Chance) {
        let told = |attempt: &&AttemptId| !self.outbox.iter().any(|report| report.attempt == **attempt);
        let settled: Vec<AttemptId> = self.held.keys().filter(told).cloned().collect();
        if !settled.is_empty() {
            let at = usize::try_from(chance.below(u64::try_from(settled.len()).unwrap())).unwrap();
            self.held.remove(&settled[at]);
        }
    }

    /// Attempts with processes right now.
    pub(super) fn running(&self) -> impl Iterator<Item = &AttemptId> {
        self.held.iter().filter(|(_, held)| held.stage == Stage::Running).map(|(attempt, _)| attempt)
    }
}

impl Held {
    fn uses(&self) -> bool {
        !matches!(self.stage, Stage::Waiting | Stage::Over)
    }

    fn step(&mut self, chance: &mut Chance) -> Option<What> {
        let over = |outcome| What::Over { outcome, isolation: "none".into() };
        let (next, what) = match (self.stage, self.stopping) {
            (Stage::Waiting | Stage::Preparing, true) | (Stage::Collecting, true) => {
                (Stage::Over, over(Outcome::Canceled { reason: "stopped".into() }))
            }
            (Stage::Waiting, false) => (Stage::Preparing, What::Preparing),
            (Stage::Preparing, false) => (Stage::Running, What::Started { pid: 1 }),
            (Stage::Running, _) => (Stage::Collecting, What::Exited { code: Some(0), signal: None }),
            (Stage::Collecting, false) => (Stage::Over, over(outcome(chance))),
            (Stage::Over, _) => return None,
        };
        self.stage = next;
        Some(what)
    }
}

fn outcome(chance: &mut Chance) -> Outcome {
    match chance.below(10) {
        0 => Outcome::Failed(Failure { exit_code: Some(1), ..Failure::new("UserError.ExitCode", "exit code 1") }),
        1 => Outcome::Failed(Failure { retryable: true, ..Failure::new("NodeDiskFull", "no space") }),
        _ => Outcome::Completed,
    }
}
