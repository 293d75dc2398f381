//! Deployments over a real store: the loop decides, the test is node and router.

use crate::Home;
use controller::{Context, Desk, Routers};
use domain::{
    JobEvent, JobState, Outcome, Plan, Timestamp,
    job::Failure,
    serving::{Demand, Provisioning, Scale, Serving, ServingSettings, Use},
    spec::routes::RequestSettings,
};
use std::{
    cell::Cell,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
};
use store::{HERE, OperationRow, ReplicaRow, ServingKey, ServingRow};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_000_000) };
}

fn now() -> Timestamp {
    Timestamp(NOW.get())
}

/// Routers that say what they are told to say.
#[derive(Default)]
struct Fake {
    requests: Mutex<u32>,
    used: Mutex<Vec<SocketAddr>>,
    /// Nobody says anything.
    silent: Mutex<bool>,
    refusal: Mutex<Option<String>>,
    calls: Mutex<usize>,
}

impl Routers for Fake {
    fn demand(&self) -> Vec<Demand> {
        let queued = *self.requests.lock().unwrap();
        vec![Demand { endpoint: "iris".into(), deployment: "blue".into(), queued, ..Demand::default() }]
    }
    fn uses(&self, _: &str, address: SocketAddr) -> Use {
        match self.used.lock().unwrap().contains(&address) {
            false => Use::No,
            true if *self.silent.lock().unwrap() => Use::Unknown,
            true => Use::Yes,
        }
    }
    fn call(&self, _: ServingKey) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        *self.calls.lock().unwrap() += 1;
        let refusal = self.refusal.lock().unwrap().clone();
        Box::pin(std::future::ready(refusal.map_or(Ok(()), Err)))
    }
}

struct World {
    _home: Home,
    cx: Context,
    desk: Desk,
    routers: Arc<Fake>,
}

fn key() -> ServingKey {
    ServingKey { workspace: "w".into(), endpoint: "iris".into(), deployment: "blue".into() }
}

fn plan(command: &str) -> Plan {
    Plan { command: command.into(), serve: Some(Serving::default()), ..Plan::default() }
}

impl World {
    async fn new(least: u32, most: u32) -> World {
        NOW.set(1_000_000);
        let home = Home::new();
        let routers = Arc::new(Fake::default());
        let cx = Context {
            store: home.open(),
            drivers: Arc::default(),
            keep_deleted: None,
            routers: Arc::clone(&routers) as Arc<dyn Routers>,
            register: |_, _, _| Ok(()),
            clock: now,
            sharing: crate::SHARING,
        };
        let row = ServingRow {
            key: key(),
            generation: 1,
            good_generation: None,
            settings: ServingSettings {
                scale: Scale { least, most, idle_ms: 20_000, ..Scale::default() },
                requests: RequestSettings::default(),
                scoring_path: "/score".into(),
                start_seconds: 60,
                drain_seconds: 120,
            },
            target: "local".into(),
            cluster: HERE.into(),
            state: Provisioning::Creating,
            operation: "op-1".into(),
            begun_at: now(),
            failures: 0,
            failed_at: Timestamp(0),
            created_by: "me".into(),
            version: 1,
        };
        let world = World { _home: home, cx, desk: Desk::default(), routers };
        world.write(move |tx| tx.insert_serving(&row, &plan("one"))).await;
        world.begin_operation("op-1").await;
        world
    }

    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut store::Tx<'_>) -> Result<T, store::Error> + Send + 'static,
    ) -> T {
        self.cx.store.write(work).await.unwrap()
    }

    async fn begin_operation(&self, id: &'static str) {
        let started_at = now();
        self.write(move |tx| {
            tx.insert_operation(&OperationRow {
                id: id.into(),
                workspace: "w".into(),
                resource: "r".into(),
                status: "InProgress".into(),
                error: None,
                started_at,
                ended_at: None,
            })
        })
        .await;
    }

    /// Some rounds, so that what follows from a round is done too.
    async fn settle(&mut self) {
        for _ in 0..4 {
            self.desk.tick(&self.cx).await.unwrap();
            tokio::task::yield_now().await;
        }
    }

    /// Lets time pass in steps of a second, with a round each.
    async fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            NOW.set(NOW.get() + 1000);
            self.settle().await;
        }
    }

    async fn row(&self) -> Option<ServingRow> {
        self.cx.store.read(|tx| tx.serving(&key())).await.unwrap()
    }

    async fn status(&self) -> &'static str {
        self.row().await.map_or("gone", |row| row.state.status())
    }

    async fn replicas(&self) -> Vec<ReplicaRow> {
        self.cx.store.read(|tx| tx.replicas()).await.unwrap()
    }

    async fn plan_of(&self, seq: i64) -> String {
        self.cx.store.read(move |tx| tx.plan(seq)).await.unwrap().unwrap().command
    }

    async fn operation(&self, id: &'static str) -> OperationRow {
        self.cx.store.read(move |tx| tx.operation(id)).await.unwrap().unwrap()
    }

    /// The node starts every replica that waits, and each answers.
    async fn start_all(&mut self) {
        let at = now();
        self.write(move |tx| {
            for replica in tx.replicas()? {
                let mut job = tx.job_by_seq(replica.seq)?.unwrap();
                if !matches!(job.state, JobState::Queued { .. }) {
                    continue;
                }
                let attempt = job.next_attempt();
                job.apply(JobEvent::Placed(attempt), at).unwrap();
                job.apply(JobEvent::Started, at).unwrap();
                tx.put_job(&job, None, at)?;
                let address = SocketAddr::from(([127, 0, 0, 1], u16::try_from(5000 + replica.seq).unwrap()));
                tx.put_ready(replica.seq, Some(address), true, at)?;
            }
            Ok(())
        })
        .await;
        self.settle().await;
    }

    /// A replica's process ends; those that were asked to stop do.
    async fn ends(&mut self, seq: i64, outcome: Outcome) {
        let at = now();
        self.write(move |tx| {
            let mut job = tx.job_by_seq(seq)?.unwrap();
            if matches!(job.state, JobState::Queued { .. }) {
                let attempt = job.next_attempt();
                job.apply(JobEvent::Placed(attempt), at).unwrap();
            }
            job.apply(JobEvent::Over(outcome), at).unwrap();
            tx.put_job(&job, None, at)
        })
        .await;
        self.settle().await;
    }

    async fn stop_those_asked(&mut self) {
        for replica in self.replicas().await {
            if matches!(replica.state, JobState::Stopping { .. }) {
                self.ends(replica.seq, Outcome::Completed).await;
            }
        }
    }

    /// A new version is asked for.
    async fn update(&mut self, command: &'static str) {
        let mut row = self.row().await.unwrap();
        row.generation += 1;
        (row.state, row.operation, row.begun_at, row.failures) = (Provisioning::Updating, "op-2".into(), now(), 0);
        self.write(move |tx| tx.put_serving(&row, Some(&plan(command)))).await;
        self.begin_operation("op-2").await;
        self.settle().await;
    }
}

fn broken() -> Outcome {
    let failure =
        Failure { last_lines: "Traceback\nValueError: no".into(), ..Failure::new("UserScriptInitFailed", "init") };
    Outcome::Failed(failure)
}

#[tokio::test]
async fn a_deployment_has_succeeded_once_all_replicas_answer_and_a_call_went_through() {
    let mut world = World::new(2, 2).await;
    world.settle().await;
    assert_eq!((world.replicas().await.len(), world.status().await), (2, "Creating"));
    assert_eq!(*world.routers.calls.lock().unwrap(), 0);
    world.start_all().await;
    assert_eq!((world.status().await, *world.routers.calls.lock().unwrap()), ("Succeeded", 1));
    assert_eq!(world.operation("op-1").await.status, "Succeeded");
    world.pass(5).await;
    assert_eq!(world.replicas().await.len(), 2);
}

#[tokio::test]
async fn what_breaks_before_it_answers_is_told_whole_and_not_tried_for_ever() {
    let mut world = World::new(1, 1).await;
    world.settle().await;
    let seq = world.replicas().await[0].seq;
    world.ends(seq, broken()).await;
    let operation = world.operation("op-1").await;
    assert_eq!((world.status().await, operation.status.as_str()), ("Failed", "Failed"));
    assert!(operation.error.unwrap().contains("ValueError: no"));
    world.pass(120).await;
    assert!(world.replicas().await.is_empty());
}

#[tokio::test]
async fn a_call_that_fails_says_why() {
    let mut world = World::new(1, 1).await;
    *world.routers.refusal.lock().unwrap() = Some("401 Unauthorized".into());
    world.settle().await;
    world.start_all().await;
    assert_eq!(world.status().await, "Failed");
    assert!(world.operation("op-1").await.error.unwrap().contains("401 Unauthorized"));
}

#[tokio::test]
async fn what_does_not_answer_in_time_has_failed_with_its_last_word() {
    let mut world = World::new(1, 1).await;
    world.settle().await;
    let seq = world.replicas().await[0].seq;
    world.write(move |tx| tx.put_note(seq, "fetching the model")).await;
    world.pass(61).await;
    assert_eq!(world.status().await, "Failed");
    assert!(world.operation("op-1").await.error.unwrap().contains("fetching the model"));
}

#[tokio::test]
async fn a_new_version_takes_over_without_a_gap_and_old_replicas_finish_what_they_have() {
    let mut world = World::new(2, 2).await;
    world.settle().await;
    world.start_all().await;
    let old: Vec<ReplicaRow> = world.replicas().await;
    *world.routers.used.lock().unwrap() = old.iter().filter_map(|replica| replica.address).collect();
    world.update("two").await;
    assert_eq!(world.replicas().await.len(), 4, "the new ones start beside the old ones");
    world.start_all().await;
    let draining: Vec<i64> =
        world.replicas().await.iter().filter(|r| r.draining_at.is_some()).map(|replica| replica.seq).collect();
    assert_eq!(draining, old.iter().map(|replica| replica.seq).collect::<Vec<_>>());
    world.pass(3).await;
    let stopping = |rows: &[ReplicaRow]| rows.iter().filter(|r| matches!(r.state, JobState::Stopping { .. })).count();
    assert_eq!(stopping(&world.replicas().await), 0, "a router is still at it");
    world.routers.used.lock().unwrap().pop();
    world.settle().await;
    assert_eq!(stopping(&world.replicas().await), 1);
    world.pass(90).await;
    assert_eq!(stopping(&world.replicas().await), 1, "a long answer is waited for");
    world.pass(31).await;
    assert_eq!(stopping(&world.replicas().await), 2, "and not for ever");
    world.stop_those_asked().await;
    assert_eq!((world.replicas().await.len(), world.status().await), (2, "Succeeded"));
    assert_eq!(world.row().await.unwrap().failures, 0, "to be asked to stop is no failure");
}

#[tokio::test]
async fn replicas_that_no_router_speaks_of_go_when_no_request_can_wait_any_more() {
    let mut world = World::new(1, 1).await;
    world.settle().await;
    world.start_all().await;
    *world.routers.used.lock().unwrap() = world.replicas().await.iter().filter_map(|one| one.address).collect();
    *world.routers.silent.lock().unwrap() = true;
    world.update("two").await;
    world.start_all().await;
    let stopping = |rows: &[ReplicaRow]| rows.iter().filter(|r| matches!(r.state, JobState::Stopping { .. })).count();
    world.pass(10).await;
    assert_eq!(stopping(&world.replicas().await), 0);
    world.pass(6).await;
    assert_eq!(stopping(&world.replicas().await), 1, "no request waits as long as that");
}

#[tokio::test]
async fn an_update_that_breaks_leaves_what_worked_and_keeps_it_working() {
    let mut world = World::new(1, 1).await;
    world.settle().await;
    world.start_all().await;
    let old = world.replicas().await[0].seq;
    world.update("two").await;
    let new = world.replicas().await[1].seq;
    world.ends(new, broken()).await;
    assert_eq!((world.status().await, world.replicas().await[0].seq), ("Failed", old));
    assert!(world.operation("op-2").await.error.unwrap().contains("ValueError"));
    world.pass(60).await;
    world.ends(old, broken()).await;
    world.pass(5).await;
    let replacement = world.replicas().await;
    assert_eq!((replacement.len(), world.plan_of(replacement[0].seq).await.as_str()), (1, "one"));
}

#[tokio::test]
async fn a_replica_that_dies_is_replaced_at_once_and_one_that_keeps_dying_after_pauses() {
    let mut world = World::new(1, 1).await;
    world.settle().await;
    world.start_all().await;
    world.pass(40).await;
    let first = world.replicas().await[0].seq;
    world.ends(first, broken()).await;
    assert_eq!(world.replicas().await.len(), 1, "it had worked for long");
    let mut waits = Vec::new();
    for _ in 0..8 {
        let seq = world.replicas().await[0].seq;
        world.ends(seq, broken()).await;
        let died = NOW.get();
        while world.replicas().await.is_empty() {
            world.pass(1).await;
        }
        waits.push((NOW.get() - died) / 1000);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(world.status().await, "Succeeded");
    let kept = world.cx.store.read(|tx| tx.replicas_of(&key())).await.unwrap();
    assert_eq!(kept.len(), 4, "the newest, and the logs of three before it");
}

#[tokio::test]
async fn a_herd_at_zero_starts_one_wave_and_calm_takes_it_away() {
    let mut world = World::new(0, 3).await;
    world.settle().await;
    assert_eq!(world.replicas().await.len(), 1, "one shows that it works");
    world.start_all().await;
    world.pass(25).await;
    world.stop_those_asked().await;
    assert_eq!((world.replicas().await.len(), world.status().await), (0, "Succeeded"));
    *world.routers.requests.lock().unwrap() = 500;
    world.pass(5).await;
    assert_eq!(world.replicas().await.len(), 3);
    world.start_all().await;
    *world.routers.requests.lock().unwrap() = 0;
    world.pass(15).await;
    assert!(world.replicas().await.iter().all(|replica| replica.takes_requests().is_some()), "not yet");
    world.pass(10).await;
    assert!(world.replicas().await.iter().all(|replica| matches!(replica.state, JobState::Stopping { .. })));
}

#[tokio::test]
async fn a_deployment_that_is_deleted_goes_when_its_last_replica_has() {
    let mut world = World::new(1, 1).await;
    world.settle().await;
    world.start_all().await;
    world.begin_operation("op-3").await;
    let mut row = world.row().await.unwrap();
    (row.state, row.operation) = (Provisioning::Deleting, "op-3".into());
    world.write(move |tx| tx.put_serving(&row, None)).await;
    world.settle().await;
    assert_eq!((world.status().await, world.operation("op-3").await.status.as_str()), ("Deleting", "InProgress"));
    world.stop_those_asked().await;
    assert_eq!((world.status().await, world.operation("op-3").await.status.as_str()), ("gone", "Succeeded"));
    let left = world.cx.store.read(|tx| tx.replicas_of(&key())).await.unwrap();
    assert!(left.is_empty(), "and nothing of it is left");
}
