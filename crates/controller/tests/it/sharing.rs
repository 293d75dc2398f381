//! Sharing between people: quotas, fair shares, preemption and pools, with the real planner and store.

use crate::SHARING;
use controller::{Context, Sharing, tick};
use domain::{
    JobEvent, JobState, Outcome, Plan, Resources, Timestamp,
    cluster::{ClusterFacts, ClusterInstanceType, Places},
    machine::{MachineFacts, Standing},
    names::TeamName,
    report::NodeFacts,
    sharing::{Holder, Limits, Quota, Team, Whom},
};
use std::cell::Cell;
use store::{Choice, HERE, JobRow, MachineRow, NewJob, POOLED};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

fn now() -> Timestamp {
    Timestamp(NOW.get())
}

fn plan(cpus: u64) -> Plan {
    Plan { requests: Resources { cpu_milli: cpus * 1000, ..Resources::default() }, ..Plan::default() }
}

fn new_job(name: &str) -> NewJob {
    NewJob { plan: plan(2), created_by: "ann".into(), ..crate::job(name, now()) }
}

struct World {
    _home: crate::Home,
    cx: Context,
}

impl World {
    /// One node of two cores.
    async fn new(preempt: bool) -> World {
        NOW.set(1_000_000_000);
        let home = crate::Home::new();
        let cx = Context { sharing: Sharing { preempt, ..SHARING }, ..crate::context(home.open(), now) };
        let world = World { _home: home, cx };
        world.heard().await;
        world
    }

    async fn heard(&self) {
        let facts = NodeFacts {
            node: "n".into(),
            boot_id: "b".into(),
            version: "v".into(),
            capacity: Resources { cpu_milli: 2000, memory_bytes: 1, gpus: 0 },
            gpu_models: Vec::new(),
        };
        let at = now();
        self.cx.store.write(move |tx| tx.see_node(&facts, at)).await.unwrap();
    }

    async fn submit(&self, name: &str, by: &str, (cpus, priority): (u64, i64)) -> i64 {
        let new = NewJob { created_by: by.into(), plan: plan(cpus), priority, ..new_job(name) };
        self.cx.store.write(move |tx| tx.insert_job(&new)).await.unwrap()
    }

    async fn happens(&self, name: &str, event: JobEvent) {
        // The clock is this thread's, and the store writes on another.
        let (name, at) = (name.to_owned(), now());
        let done = self.cx.store.write(move |tx| {
            let mut job = tx.job("w", &name)?.unwrap().job;
            job.apply(event, at).unwrap();
            tx.put_job(&job, None, at)
        });
        done.await.unwrap();
    }

    async fn job(&self, name: &str) -> JobRow {
        let name = name.to_owned();
        self.cx.store.read(move |tx| tx.job("w", &name)).await.unwrap().unwrap()
    }

    async fn phase(&self, name: &str) -> &'static str {
        self.job(name).await.job.state.name()
    }

    async fn turn(&self, name: &str) -> i64 {
        let seq = self.job(name).await.job.seq;
        self.cx.store.read(move |tx| tx.turn(seq)).await.unwrap()
    }
}

#[tokio::test]
async fn over_quota_a_job_waits_and_goes_on_when_there_is_room() {
    let world = World::new(false).await;
    let limits = Limits { jobs: Some(1), ..Limits::default() };
    let quota = Quota { workspace: "w".into(), whom: Whom::Each, target: None, limits };
    world.cx.store.write(move |tx| tx.put_quota(&quota, "root", Timestamp(0))).await.unwrap();
    world.submit("a1", "ann", (1, 2)).await;
    world.submit("a2", "ann", (1, 2)).await;
    world.submit("b1", "bob", (1, 2)).await;
    assert_eq!(tick(&world.cx).await.unwrap(), 2);
    assert_eq!((world.phase("a1").await, world.phase("b1").await), ("placed", "placed"));
    assert_eq!(world.job("a2").await.note, "waits for the quota of each user in workspace `w`: 1 job");
    assert_eq!(tick(&world.cx).await.unwrap(), 0);
    world.happens("a1", JobEvent::Started).await;
    world.happens("a1", JobEvent::Over(Outcome::Completed)).await;
    assert_eq!(tick(&world.cx).await.unwrap(), 1);
    assert_eq!(world.phase("a2").await, "placed");
}

#[tokio::test]
async fn the_people_of_a_team_wait_for_its_quota_together_and_who_leaves_it_does_not() {
    let world = World::new(false).await;
    let team = |people: &[&str]| Team {
        workspace: "w".into(),
        name: TeamName::parse("vision").unwrap(),
        people: people.iter().map(|&who| who.to_owned()).collect(),
    };
    let limits = Limits { jobs: Some(1), ..Limits::default() };
    let quota = Quota { workspace: "w".into(), whom: Whom::parse("@vision"), target: None, limits };
    let both = team(&["ann", "bob"]);
    let set = world.cx.store.write(move |tx| {
        tx.put_team(&both, "root", Timestamp(0))?;
        tx.put_quota(&quota, "root", Timestamp(0))
    });
    set.await.unwrap();
    world.submit("a", "ann", (1, 2)).await;
    world.submit("b", "bob", (1, 2)).await;
    world.submit("c", "cat", (1, 2)).await;
    assert_eq!(tick(&world.cx).await.unwrap(), 2);
    assert_eq!((world.phase("a").await, world.phase("c").await), ("placed", "placed"));
    assert_eq!(world.job("b").await.note, "waits for the quota of team `vision` in workspace `w`: 1 job");
    let alone = team(&["ann"]);
    world.cx.store.write(move |tx| tx.put_team(&alone, "root", Timestamp(1))).await.unwrap();
    assert_eq!(tick(&world.cx).await.unwrap(), 1);
    assert_eq!(world.phase("b").await, "placed");
}

#[tokio::test]
async fn who_has_used_less_gets_the_earlier_turn_however_late_they_come() {
    let world = World::new(false).await;
    world.submit("first", "ann", (2, 2)).await;
    tick(&world.cx).await.unwrap();
    world.happens("first", JobEvent::Started).await;
    NOW.set(NOW.get() + 3_600_000);
    world.heard().await;
    world.happens("first", JobEvent::Over(Outcome::Completed)).await;
    let ann = Holder { workspace: "w".into(), person: "ann".into() };
    let at = now();
    let used = world.cx.store.read(move |tx| tx.used(&ann, at, SHARING.half_life_ms)).await.unwrap();
    // Two cores for an hour, which began within the hour that it is counted in.
    assert!((6.9e6..=7.2e6).contains(&used), "{used}");
    for n in 0..3 {
        world.submit(&format!("a{n}"), "ann", (1, 2)).await;
    }
    tick(&world.cx).await.unwrap();
    world.submit("b", "bob", (1, 2)).await;
    world.submit("urgent", "ann", (1, 3)).await;
    tick(&world.cx).await.unwrap();
    assert!(world.turn("b").await < world.turn("a0").await, "bob has used nothing");
    assert!(world.turn("a0").await <= world.turn("a1").await && world.turn("a1").await <= world.turn("a2").await);
    let order = world.cx.store.read(|tx| tx.offered(HERE, "placed")).await.unwrap();
    let seqs: Vec<i64> = order.iter().map(|attempt| attempt.parts().unwrap().0).collect();
    assert_eq!(seqs, [6, 5, 2, 3, 4], "priority, then share, then age");
}

#[tokio::test]
async fn a_job_of_lower_priority_makes_way_only_where_that_is_allowed() {
    for allowed in [false, true] {
        let world = World::new(allowed).await;
        let low = world.submit("low", "ann", (2, 1)).await;
        tick(&world.cx).await.unwrap();
        world.happens("low", JobEvent::Started).await;
        world.submit("high", "bob", (1, 3)).await;
        tick(&world.cx).await.unwrap();
        tick(&world.cx).await.unwrap();
        assert_eq!(world.phase("low").await, "running", "room that is about to be free is waited for");
        NOW.set(NOW.get() + 3_000);
        tick(&world.cx).await.unwrap();
        if !allowed {
            assert_eq!(world.phase("low").await, "running");
            continue;
        }
        assert_eq!(world.phase("low").await, "stopping");
        world.happens("low", JobEvent::Over(Outcome::Canceled { reason: "asked to stop".into() })).await;
        let job = world.job("low").await.job;
        assert!(matches!(job.state, JobState::Queued { .. }), "{:?}", job.state);
        assert_eq!((job.attempts, job.max_retries), (1, 1), "it keeps its retries");
        let events = world.cx.store.read(move |tx| tx.events(low)).await.unwrap();
        let told = events.iter().any(|event| event.text == "makes way for `high`, which has a higher priority");
        assert!(told, "{events:?}");
    }
}

/// A managed cluster of two nodes at most, of which so many are there.
async fn crew(world: &World, places: Option<Places>, machines: &[&str]) {
    let shape =
        ClusterInstanceType { name: "s".into(), fits_now: 2, fits_ever: true, ..ClusterInstanceType::default() };
    let facts = ClusterFacts {
        uid: "u".into(),
        training: true,
        grows: true,
        instance_types: vec![shape],
        places,
        ..ClusterFacts::default()
    };
    let row = |name: &str| MachineRow {
        cluster: CREW.into(),
        name: name.into(),
        standing: Standing::Ready,
        reason: String::new(),
        ordered: Resources::default(),
        facts: MachineFacts::default(),
        joined: "k".into(),
        created_at: now(),
        since: now(),
        seen_at: Some(now()),
    };
    let (rows, at): (Vec<MachineRow>, _) = (machines.iter().map(|name| row(name)).collect(), now());
    let heard = world.cx.store.write(move |tx| {
        tx.renew_cluster(CREW, at)?;
        tx.put_facts(CREW, "d", &facts)?;
        rows.iter().try_for_each(|row| tx.put_machine(row))?;
        tx.see_cluster(CREW, 0, at)
    });
    heard.await.unwrap();
}

const CREW: &str = "@w/crew";

/// Sends a job to the cluster; with a node, it runs there.
async fn on_crew(world: &World, name: &str, priority: i64, node: Option<&'static str>) {
    let new = NewJob { target: "crew".into(), cluster: CREW.into(), priority, ..new_job(name) };
    world.cx.store.write(move |tx| tx.insert_job(&new)).await.unwrap();
    tick(&world.cx).await.unwrap();
    if let Some(node) = node {
        let attempt = world.job(name).await.job.state.attempt().unwrap().clone();
        world.cx.store.write(move |tx| tx.give_whole(CREW, &attempt, node)).await.unwrap();
        world.happens(name, JobEvent::Started).await;
    }
}

#[tokio::test]
async fn on_a_managed_cluster_the_youngest_of_lower_priority_gives_up_its_node() {
    let two = Some(Places { most: 2, by_part: true });
    for (places, machines, expect) in [
        (two, ["one", "two"], "stopping"),
        (None, ["one", "two"], "running"),
        // A third node may still come.
        (Some(Places { most: 3, by_part: true }), ["one", "two"], "running"),
    ] {
        let world = World::new(false).await;
        crew(&world, places, &machines).await;
        on_crew(&world, "older", 1, Some("one")).await;
        NOW.set(NOW.get() + 1_000);
        on_crew(&world, "younger", 1, Some("two")).await;
        on_crew(&world, "high", 3, None).await;
        assert_eq!(world.phase("high").await, "placed");
        tick(&world.cx).await.unwrap();
        assert_eq!(world.phase("younger").await, "running", "room that is about to be free is waited for");
        NOW.set(NOW.get() + 3_000);
        tick(&world.cx).await.unwrap();
        tick(&world.cx).await.unwrap();
        assert_eq!((world.phase("older").await, world.phase("younger").await), ("running", expect));
        if expect == "running" {
            continue;
        }
        // What is given to it and not begun counts as well: nobody else is stopped.
        let gone = world.job("younger").await.job.state.attempt().unwrap().clone();
        world.happens("younger", JobEvent::Over(Outcome::Canceled { reason: "asked to stop".into() })).await;
        let first = world.job("high").await.job.state.attempt().unwrap().clone();
        let passed = world.cx.store.write(move |tx| {
            tx.take_whole(&gone)?;
            tx.give_whole(CREW, &first, "two")
        });
        passed.await.unwrap();
        NOW.set(NOW.get() + 10_000);
        tick(&world.cx).await.unwrap();
        NOW.set(NOW.get() + 3_000);
        tick(&world.cx).await.unwrap();
        assert_eq!((world.phase("older").await, world.phase("high").await), ("running", "placed"));
        let again = world.job("younger").await.job;
        assert_eq!((again.state.name(), again.attempts, again.max_retries), ("placed", 2, 1), "it keeps its retries");
    }
}

#[tokio::test]
async fn nodes_that_do_not_come_are_not_waited_for_for_ever() {
    let world = World::new(false).await;
    crew(&world, Some(Places { most: 4, by_part: true }), &["one"]).await;
    on_crew(&world, "low", 1, Some("one")).await;
    on_crew(&world, "high", 3, None).await;
    NOW.set(NOW.get() + 30_000);
    tick(&world.cx).await.unwrap();
    assert_eq!(world.phase("low").await, "running");
    NOW.set(NOW.get() + 31_000);
    tick(&world.cx).await.unwrap();
    assert_eq!(world.phase("low").await, "running", "while the cluster is silent nobody would get the node");
    let at = now();
    world.cx.store.write(move |tx| tx.see_cluster(CREW, 0, at)).await.unwrap();
    tick(&world.cx).await.unwrap();
    assert_eq!(world.phase("low").await, "stopping");
}

#[tokio::test]
async fn a_pool_spills_over_when_its_first_target_is_full_and_takes_back_what_has_to_wait_again() {
    let world = World::new(false).await;
    let shape =
        ClusterInstanceType { name: "s".into(), fits_now: 1, fits_ever: true, ..ClusterInstanceType::default() };
    let facts =
        ClusterFacts { uid: "u".into(), training: true, instance_types: vec![shape], ..ClusterFacts::default() };
    let at = now();
    let heard = world.cx.store.write(move |tx| {
        tx.renew_cluster("lab", at)?;
        tx.put_facts("lab", "d", &facts)?;
        tx.see_cluster("lab", 0, at)
    });
    heard.await.unwrap();
    let lab = Plan { instance_type: Some("s".into()), ..plan(2) };
    for name in ["one", "two", "three"] {
        let new = NewJob { target: "pool".into(), cluster: POOLED.into(), ..new_job(name) };
        let places = [
            Choice { target: "local".into(), cluster: HERE.into(), plan: plan(2) },
            Choice { target: "gpu".into(), cluster: "lab".into(), plan: lab.clone() },
        ];
        let sent = world.cx.store.write(move |tx| {
            let seq = tx.insert_job(&new)?;
            tx.put_choices(seq, &places)
        });
        sent.await.unwrap();
    }
    tick(&world.cx).await.unwrap();
    let where_it_is = |row: &JobRow| (row.target.clone(), row.job.state.name());
    assert_eq!(where_it_is(&world.job("one").await), ("local".into(), "placed"));
    assert_eq!(where_it_is(&world.job("two").await), ("gpu".into(), "placed"));
    let third = world.job("three").await;
    assert_eq!(where_it_is(&third), ("pool".into(), "queued"));
    assert!(third.note.starts_with("waits for room in pool `pool`: `local`: is full"), "{}", third.note);
    world.happens("two", JobEvent::Preempted { reason: "x".into() }).await;
    world.happens("two", JobEvent::Over(Outcome::Canceled { reason: "x".into() })).await;
    assert_eq!(where_it_is(&world.job("two").await), ("pool".into(), "queued"));
}
