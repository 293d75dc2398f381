//! The simulation: real planner, real scheduling round and real store; a fake agent, a clock that stands still until
//! it is moved, chance from a seed, and failures at every turn.
//!
//! After each step: no node is over its window; a silent node gets nothing; no attempt starts twice and no job has two
//! at once; every wait has a reason; what has ended has an outcome and stays as it is. In the end every job is over.

mod agent;
pub(super) mod chance;
mod desk;

use super::{Home, seeds};
use agent::{Agent, CAPACITY};
use chance::Chance;
use controller::{Context, WINDOW, tick};
use domain::{Job, JobState, Plan, Resources, Timestamp};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
};
use store::{HERE, JobFilter, JobRow, NewJob, QueuedJob, Store};

const SEEDS: u64 = 40;
const STEPS: u64 = 120;
const RETRIES: u32 = 3;
/// As the scheduling round has it.
const SILENT_MS: i64 = 30_000;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

fn now() -> Timestamp {
    Timestamp(NOW.get())
}

struct Sim {
    home: Home,
    cx: Context,
    agent: Agent,
    chance: Chance,
    /// When the node was last heard of.
    seen_at: i64,
    submitted: u64,
    /// Everything that happened, in order.
    history: Vec<String>,
    ended: BTreeMap<i64, String>,
}

#[test]
fn every_history_keeps_the_laws() {
    seeds::each(SEEDS, |seed| drop(run(seed)));
}

#[test]
fn one_seed_has_one_history() {
    for seed in [3, 50, 77] {
        let (first, second) = (run(seed), run(seed));
        assert!(
            first == second,
            "seed {seed} has two histories; the first difference: {:?}",
            first.iter().zip(&second).find(|(a, b)| a != b)
        );
        assert!(first.len() > 100, "seed {seed} is too quiet to prove anything");
    }
}

fn run(seed: u64) -> Vec<String> {
    seeds::alone(async {
        NOW.set(1_000_000);
        let mut sim = Sim::new(seed);
        // Now and then a crowd, so that the window fills.
        let jobs = if seed.is_multiple_of(50) { WINDOW as u64 + 40 } else { 8 + sim.chance.below(24) };
        for _ in 0..STEPS {
            sim.step(jobs).await;
        }
        sim.finish().await;
        sim.history
    })
}

impl Sim {
    fn new(seed: u64) -> Sim {
        let home = Home::new();
        let cx = crate::context(home.open(), now);
        let (agent, chance) = (Agent::new(), Chance::seeded(seed));
        Sim { home, cx, agent, chance, seen_at: 0, submitted: 0, history: Vec::new(), ended: BTreeMap::new() }
    }

    async fn step(&mut self, jobs: u64) {
        NOW.set(NOW.get() + 1 + i64::try_from(self.chance.below(900)).unwrap());
        let turn = self.chance.below(100);
        self.history.push(format!("{} turn {turn}", NOW.get()));
        match turn {
            0..25 if self.submitted < jobs => self.submit(jobs / 12 + 1).await,
            0..50 => self.round().await,
            50..68 => self.poll().await,
            68..80 => self.agent.work(&mut self.chance, now()),
            80..90 => self.agent.send(&self.cx.store, &mut self.chance, now()).await,
            90..94 => self.cancel().await,
            94 => self.silence(),
            95 => self.agent.restart(),
            96 => self.agent.reboot(),
            97 => self.agent.forget_one(&mut self.chance),
            _ => self.reopen(),
        }
        self.check().await;
    }

    async fn submit(&mut self, count: u64) {
        for _ in 0..count {
            self.submitted += 1;
            let cpus = match self.chance.below(12) {
                0 => 64,
                n => 1 + n % 3,
            };
            let requests = Resources { cpu_milli: cpus * 1000, ..Resources::default() };
            let new = NewJob {
                plan: Plan { requests, ..Plan::default() },
                target: if self.chance.one_in(15) { "elsewhere" } else { "local" }.into(),
                priority: 1 + i64::try_from(self.chance.below(3)).unwrap(),
                max_retries: RETRIES,
                ..crate::job(&format!("job-{}", self.submitted), now())
            };
            self.cx.store.write(move |tx| tx.insert_job(&new)).await.unwrap();
        }
    }

    /// One scheduling round, and what it may do.
    async fn round(&mut self) {
        let (front, before) = self.look().await;
        tick(&self.cx).await.unwrap();
        let (queue, active) = self.look().await;
        let held: BTreeSet<i64> = before.iter().map(|job| job.seq).collect();
        let placed: Vec<&Job> = active.iter().filter(|job| !held.contains(&job.seq)).collect();
        assert!(placed.is_empty() || NOW.get() - self.seen_at < SILENT_MS, "a silent node was given work");
        for job in placed {
            let before_it = active.iter().filter(|other| other.priority >= job.priority).count();
            assert!(before_it <= WINDOW, "the node holds {before_it} jobs of priority {} and above", job.priority);
            let passed =
                queue.iter().find(|row| could_run(row) && (-row.job.priority, row.job.seq) < (-job.priority, job.seq));
            assert!(passed.is_none(), "`{}` was passed by `{}`", passed.unwrap().job.name, job.name);
            self.history.push(format!("{} placed {} {:?}", NOW.get(), job.name, job.state.attempt()));
        }
        // A round looks at the front of the queue only.
        let front: BTreeSet<i64> = front.iter().take(16).map(|row| row.job.seq).collect();
        for row in queue.iter().filter(|row| front.contains(&row.job.seq) && !could_run(row)) {
            let reason =
                if row.target == "local" && self.seen_at > 0 { "more than any node" } else { "has no node yet" };
            assert!(row.note.contains(reason), "`{}` waits because `{}`", row.job.name, row.note);
        }
    }

    async fn poll(&mut self) {
        self.seen_at = NOW.get();
        self.agent.poll(&self.cx.store, now()).await;
    }

    async fn cancel(&mut self) {
        if self.submitted > 0 {
            let seq = 1 + i64::try_from(self.chance.below(self.submitted)).unwrap();
            desk::cancel(&self.cx.store, seq, now()).await;
        }
    }

    /// Nothing is heard for longer than a node may keep quiet.
    fn silence(&mut self) {
        NOW.set(NOW.get() + SILENT_MS + 1);
    }

    /// The server dies and is started again on what it left.
    fn reopen(&mut self) {
        // A database in Postgres has one server, so the old one goes first.
        if self.home.postgres.is_some() {
            self.cx.store = Store::open(self.home.folder.path()).unwrap();
        }
        self.cx.store = self.home.open();
    }

    async fn check(&mut self) {
        let (queue, active) = self.look().await;
        for row in &queue {
            assert!(!row.note.is_empty(), "`{}` waits without a reason", row.job.name);
        }
        for job in &active {
            assert!(job.attempts <= RETRIES + 1, "`{}` has had {} attempts", job.name, job.attempts);
            assert!(!self.ended.contains_key(&job.seq), "`{}` had ended and is {}", job.name, job.state.name());
        }
        assert!(!queue.iter().any(|row| self.ended.contains_key(&row.job.seq)), "a job that had ended waits again");
        for (attempt, times) in &self.agent.started {
            assert_eq!(*times, 1, "{attempt} was started {times} times");
        }
        let mut running = BTreeSet::new();
        for attempt in self.agent.running() {
            assert!(running.insert(attempt.parts().unwrap().0), "two attempts of one job run: {attempt}");
        }
        let open: BTreeSet<i64> = queue.iter().map(|row| row.job.seq).chain(active.iter().map(|job| job.seq)).collect();
        self.note_ended(&open).await;
    }

    /// A job that is no longer open has an outcome and an event that says so.
    async fn note_ended(&mut self, open: &BTreeSet<i64>) {
        for seq in (1..=i64::try_from(self.submitted).unwrap()).filter(|seq| !open.contains(seq)) {
            if self.ended.contains_key(&seq) {
                continue;
            }
            let (job, events) = self.cx.store.read(move |tx| Ok((tx.job_by_seq(seq)?, tx.events(seq)?))).await.unwrap();
            let job = job.unwrap();
            let outcome = outcome_of(&job);
            let last = events.last().unwrap();
            assert!(["ended", "lost", "cancel"].contains(&last.kind.as_str()), "{}: {last:?}", job.name);
            self.history.push(format!("{} ended {} {outcome}", NOW.get(), job.name));
            self.ended.insert(seq, outcome);
        }
    }

    /// Nothing fails any more: all that can run ends, and the rest says why it cannot.
    async fn finish(&mut self) {
        for _ in 0..2_000 {
            NOW.set(NOW.get() + 500);
            self.poll().await;
            self.round().await;
            self.agent.work(&mut self.chance, now());
            self.agent.send(&self.cx.store, &mut self.chance, now()).await;
            let (queue, active) = self.look().await;
            if active.is_empty() && !queue.iter().any(could_run) {
                break;
            }
        }
        self.check().await;
        let (queue, active) = self.look().await;
        assert!(active.is_empty(), "some never ended: {active:?}");
        for row in queue {
            assert!(!could_run(&row), "`{}` could run and does not: {}", row.job.name, row.note);
            desk::cancel(&self.cx.store, row.job.seq, now()).await;
        }
        self.note_ended(&BTreeSet::new()).await;
        assert_eq!(self.ended.len() as u64, self.submitted, "a job was lost");
        for row in self.jobs().await {
            assert_eq!(self.ended[&row.job.seq], outcome_of(&row.job), "the end of `{}` changed", row.job.name);
        }
    }

    /// Who waits and who is with the node.
    async fn look(&self) -> (Vec<QueuedJob>, Vec<Job>) {
        self.cx.store.read(|tx| Ok((tx.queue(HERE, 10_000)?, tx.active_jobs(HERE)?))).await.unwrap()
    }

    async fn jobs(&self) -> Vec<JobRow> {
        let filter = JobFilter { workspace: "w".into(), limit: 10_000, ..JobFilter::default() };
        self.cx.store.read(move |tx| tx.jobs(&filter)).await.unwrap().rows
    }
}

fn outcome_of(job: &Job) -> String {
    let JobState::Ended { outcome, .. } = &job.state else {
        panic!("`{}` is {} and nowhere", job.name, job.state.name())
    };
    format!("{outcome:?}")
}

/// Whether the only node there is could ever run it.
fn could_run(row: &QueuedJob) -> bool {
    row.target == "local" && row.needs.fits_in(&CAPACITY)
}
