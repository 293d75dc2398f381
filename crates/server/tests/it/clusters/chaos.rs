//! A real server and a cluster on which everything goes wrong: answers are lost, words come twice and late, pods die, are
//! deleted behind everyone's back or come again, the operator forgets, jobs are canceled, time passes.
//!
//! After each step: no part of an attempt begins twice or before its whole gang is there, and no job has two attempts at
//! work. In the end every job is over and nothing is left on the cluster. A failing seed names itself; `CHAOS_SEED=n` runs
//! it alone.

use super::*;
use crate::settings;
use domain::{JobEvent, cluster::Launch};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

const SEEDS: u64 = 4;
const STEPS: u64 = 150;
const JOBS: u64 = 8;
/// A request that takes longer is given up: there was nothing to say, or its answer is lost.
const PATIENCE: Duration = Duration::from_millis(100);

/// How far the clock of the server is ahead.
static AHEAD: AtomicI64 = AtomicI64::new(0);

fn clock() -> Timestamp {
    Timestamp(server::clock::now().0 + AHEAD.load(Ordering::Relaxed))
}

/// SplitMix64: the same seed draws the same numbers everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Taken,
    Running,
    Over,
    Dead,
}

struct Pod {
    stage: Stage,
    stopping: bool,
    /// It was heard of by the server.
    asked: bool,
    /// What it has to say, until the answer to it arrives.
    outbox: Vec<What>,
    gone_told: bool,
}

struct Chaos<'s> {
    server: &'s Server,
    operator: Operator<'s>,
    chance: Chance,
    pods: BTreeMap<AttemptId, (Launch, Vec<Pod>)>,
    /// Attempts whose pods were there once and are not any more.
    past: BTreeSet<AttemptId>,
    begun: BTreeSet<(AttemptId, usize)>,
    submitted: u64,
    faults: bool,
}

#[tokio::test]
async fn whatever_goes_wrong_no_job_is_lost_and_none_runs_twice() {
    let chosen = std::env::var("CHAOS_SEED").ok().and_then(|text| text.parse().ok());
    let seeds: Vec<u64> = chosen.map_or_else(|| (0..SEEDS).collect(), |seed| vec![seed]);
    let server = Server::start_with(crate::Settings { clock, max_retries: 3, ..settings() }).await;
    let operator = Operator::attached(&server).await;
    let mut chaos = Chaos::new(&server, operator);
    for seed in seeds {
        eprintln!("seed {seed}; run it alone with `CHAOS_SEED={seed}`");
        chaos.chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        chaos.run(seed).await;
    }
}

impl<'s> Chaos<'s> {
    fn new(server: &'s Server, operator: Operator<'s>) -> Chaos<'s> {
        let (pods, past, begun) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Chaos { server, operator, chance: Chance(0), pods, past, begun, submitted: 0, faults: true }
    }

    async fn run(&mut self, seed: u64) {
        (self.faults, self.submitted) = (true, 0);
        for _ in 0..STEPS {
            self.step(seed).await;
            self.check();
        }
        self.faults = false;
        for _ in 0..400 {
            self.place().await;
            self.poll().await;
            self.tell_gone().await;
            self.work().await;
            self.check();
            if self.open(seed).await.is_empty() && self.pods.is_empty() {
                return;
            }
            self.pass(5_000);
        }
        panic!("some never ended: {:?}, left on the cluster: {:?}", self.open(seed).await, self.pods.keys());
    }

    async fn step(&mut self, seed: u64) {
        match self.chance.below(100) {
            0..12 if self.submitted < JOBS => self.submit(seed).await,
            0..25 => self.place().await,
            25..50 => self.poll().await,
            50..80 => self.work().await,
            80..88 => self.tell_gone().await,
            88..91 => self.kill(),
            91..93 => self.delete(),
            93..96 => self.cancel(seed).await,
            96 => self.forget(),
            _ => {
                let passed = self.chance.below(40_000);
                self.pass(i64::try_from(passed).unwrap());
            }
        }
    }

    fn pass(&self, milliseconds: i64) {
        AHEAD.fetch_add(milliseconds, Ordering::Relaxed);
    }

    async fn submit(&mut self, seed: u64) {
        self.submitted += 1;
        let parts = 1 + self.chance.below(2);
        let more = json!({"resources": {"instanceCount": parts}, "distribution":
            {"distributionType": "PyTorch", "processCountPerInstance": 1}});
        self.server.put(&format!("jobs/s{seed}-{}", self.submitted), on_lab(more)).await.expect(201);
    }

    /// Every job that waits is handed to the cluster, as the scheduler does.
    async fn place(&mut self) {
        let placed = self.server.store.write(|tx| {
            for row in tx.queue("lab", 100)? {
                let mut job = row.job;
                job.apply(JobEvent::Placed(job.next_attempt()), clock()).unwrap();
                tx.put_job(&job, None, clock())?;
            }
            Ok(())
        });
        placed.await.unwrap();
    }

    async fn poll(&mut self) {
        let holds = self.pods.keys().cloned().collect();
        let poll = ClusterPoll { now: clock(), uid: facts().uid, facts: facts().uid, holds, leaving: Vec::new() };
        let Some(answer) = self.ask::<ClusterAnswer>(&self.operator.client, "/cluster/v1/poll", &poll).await else {
            return;
        };
        if self.is_lost() {
            return;
        }
        for launch in answer.launch {
            assert!(
                !self.begun.iter().any(|(attempt, _)| *attempt == launch.attempt),
                "{} is launched again",
                launch.attempt
            );
            let pod =
                || Pod { stage: Stage::Waiting, stopping: false, asked: false, outbox: Vec::new(), gone_told: false };
            let pods = (0..launch.parts).map(|_| pod()).collect();
            self.pods.entry(launch.attempt.clone()).or_insert((launch, pods));
        }
        for attempt in answer.remove {
            self.pods.remove(&attempt);
            self.past.insert(attempt);
        }
    }

    /// Every pod takes a step, or does not.
    async fn work(&mut self) {
        let all: Vec<(AttemptId, usize)> = self
            .pods
            .iter()
            .flat_map(|(attempt, (_, pods))| (0..pods.len()).map(|part| (attempt.clone(), part)))
            .collect();
        for (attempt, part) in all {
            if !self.faults || self.chance.one_in(3) {
                self.agent(&attempt, part).await;
            }
        }
    }

    async fn agent(&mut self, attempt: &AttemptId, part: usize) {
        let (launch, pods) = &self.pods[attempt];
        let stage = pods[part].stage;
        if stage == Stage::Dead {
            return;
        }
        let client = self.server.with_token(&launch.token);
        if !pods[part].outbox.is_empty() {
            return self.send(&client, attempt, part).await;
        }
        if stage == Stage::Running && !self.chance.one_in(3) {
            return self.go_on(attempt, part);
        }
        self.pods.get_mut(attempt).unwrap().1[part].asked = true;
        let holds = if stage == Stage::Waiting { Vec::new() } else { vec![attempt.clone()] };
        let joining = Some(Joining { part: u32::try_from(part).unwrap(), address: format!("{attempt}-{part}") });
        let poll = Poll { facts: node(), holds, stopping: Vec::new(), joining };
        let told = self.ask::<PollAnswer>(&client, "/agent/v1/poll", &poll).await.unwrap_or_default();
        if self.is_lost() {
            return;
        }
        let pod = &mut self.pods.get_mut(attempt).unwrap().1[part];
        pod.stopping |= !told.stop.is_empty();
        if !told.unknown.is_empty() {
            pod.stage = Stage::Dead;
            return;
        }
        if !told.assignments.is_empty() {
            pod.stage = Stage::Taken;
        }
        self.go_on(attempt, part);
    }

    /// The command begins, or ends.
    fn go_on(&mut self, attempt: &AttemptId, part: usize) {
        let luck = self.chance.below(12);
        let pod = &mut self.pods.get_mut(attempt).unwrap().1[part];
        match pod.stage {
            Stage::Taken if pod.stopping => pod.end(Outcome::Canceled { reason: "stopped".into() }),
            Stage::Taken => {
                pod.stage = Stage::Running;
                pod.outbox.extend([What::Preparing, What::Started { pid: 1 }]);
                assert!(self.begun.insert((attempt.clone(), part)), "part {part} of {attempt} began twice");
                let there = |pod: &Pod| pod.asked || pod.stage == Stage::Dead;
                let all = self.pods[attempt].1.iter().all(there);
                assert!(all, "part {part} of {attempt} began before its gang was there");
            }
            Stage::Running if pod.stopping => pod.end(Outcome::Canceled { reason: "stopped".into() }),
            Stage::Running if luck == 0 => pod.end(Outcome::Failed(Failure::new("UserError.ExitCode", "exit code 1"))),
            Stage::Running if luck < 6 => pod.end(Outcome::Completed),
            _ => {}
        }
    }

    async fn send(&mut self, client: &Client, attempt: &AttemptId, part: usize) {
        let what = self.pods[attempt].1[part].outbox.clone();
        let reports = what.into_iter().map(|what| Report { attempt: attempt.clone(), at: clock(), what }).collect();
        let part_id = Some(u32::try_from(part).unwrap());
        let batch = ReportBatch { facts: node(), reports, samples: Vec::new(), part: part_id, sent_at: None };
        let mut answer = None;
        for _ in 0..1 + u64::from(self.faults && self.chance.one_in(4)) {
            answer = self.ask::<ReportAnswer>(client, "/agent/v1/report", &batch).await;
        }
        if answer.is_some() && !self.is_lost() {
            let pod = &mut self.pods.get_mut(attempt).unwrap().1[part];
            pod.outbox.clear();
            if pod.stage == Stage::Over {
                pod.stage = Stage::Dead;
            }
        }
    }

    /// The operator tells of pods that have died, perhaps again.
    async fn tell_gone(&mut self) {
        let mut news = Vec::new();
        for (attempt, (_, pods)) in &mut self.pods {
            for (part, pod) in pods.iter_mut().enumerate().filter(|(_, pod)| pod.stage == Stage::Dead && !pod.gone_told)
            {
                pod.gone_told = !self.chance.one_in(4);
                let what = gone(u32::try_from(part).unwrap(), true);
                news.push(AttemptNews { attempt: attempt.clone(), at: Timestamp(1), what });
            }
        }
        let report = ClusterReport { news, ..ClusterReport::default() };
        if self.ask::<Value>(&self.operator.client, "/cluster/v1/report", &report).await.is_none() {
            self.forget();
        }
    }

    /// A node goes down under a pod.
    fn kill(&mut self) {
        let at = self.chance.below(64);
        let mut pods = self.pods.values_mut().flat_map(|(_, pods)| pods);
        if let Some(pod) = pods.nth(usize::try_from(at).unwrap() % 8) {
            pod.stage = Stage::Dead;
        }
    }

    /// Someone deletes all pods of an attempt while nobody looks.
    fn delete(&mut self) {
        let at = usize::try_from(self.chance.below(8)).unwrap();
        if let Some(attempt) = self.pods.keys().nth(at).cloned() {
            self.pods.remove(&attempt);
        }
    }

    /// The operator restarts: what it told, it tells again.
    fn forget(&mut self) {
        self.pods.values_mut().flat_map(|(_, pods)| pods).for_each(|pod| pod.gone_told = false);
    }

    async fn cancel(&mut self, seed: u64) {
        if self.submitted > 0 {
            let job = 1 + self.chance.below(self.submitted);
            self.server.post(&format!("jobs/s{seed}-{job}/cancel"), json!({})).await;
        }
    }

    fn check(&self) {
        let mut at_work: BTreeMap<i64, BTreeSet<&AttemptId>> = BTreeMap::new();
        for (attempt, (_, pods)) in &self.pods {
            if pods.iter().any(|pod| matches!(pod.stage, Stage::Taken | Stage::Running)) {
                at_work.entry(attempt.parts().unwrap().0).or_default().insert(attempt);
            }
        }
        assert!(at_work.values().all(|attempts| attempts.len() == 1), "a job has two attempts at work: {at_work:?}");
    }

    async fn open(&self, seed: u64) -> Vec<String> {
        let mut open = Vec::new();
        for n in 1..=self.submitted {
            let name = format!("s{seed}-{n}");
            let row = self.server.store.read(move |tx| tx.job("default", &name)).await.unwrap().unwrap();
            if !row.job.state.is_ended() {
                open.push(format!("{} is {}: {}", row.job.name, row.job.state.name(), row.note));
            }
        }
        open
    }

    /// Whether an answer is lost on its way.
    fn is_lost(&mut self) -> bool {
        self.faults && self.chance.one_in(6)
    }

    async fn ask<T: serde::de::DeserializeOwned>(
        &self,
        client: &Client,
        path: &str,
        body: &impl serde::Serialize,
    ) -> Option<T> {
        let asked = client.post::<T>(path, body);
        tokio::time::timeout(PATIENCE, asked).await.ok().map(|answer| answer.unwrap())
    }
}

impl Pod {
    fn end(&mut self, outcome: Outcome) {
        self.stage = Stage::Over;
        self.outbox.extend([What::Exited { code: Some(0), signal: None }, over(outcome)]);
    }
}
