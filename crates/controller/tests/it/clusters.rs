//! Clusters as targets: each is by itself, and none holds up another.

use controller::{Context, give_up_checks, tick};
use domain::{
    Plan, Resources, Timestamp,
    cluster::{ClusterTarget, Finding},
    report::NodeFacts,
};
use std::cell::Cell;
use store::{HERE, NewJob, Store, TargetRow, TargetState};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(1_000_000) };
}

fn now() -> Timestamp {
    Timestamp(NOW.get())
}

fn job(name: &str, cluster: &str) -> NewJob {
    let requests = Resources { cpu_milli: 1000, ..Resources::default() };
    let target = if cluster == HERE { "local" } else { "there" }.into();
    let plan = Plan { requests, ..Plan::default() };
    NewJob { plan, target, cluster: cluster.into(), ..crate::job(name, now()) }
}

/// This machine, and clusters `lab` and `edge`, with `jobs` jobs each.
async fn world(jobs: usize) -> (crate::Home, Context) {
    let home = crate::Home::new();
    let store = home.open();
    let filled = store.write(move |tx| {
        for cluster in ["lab", "edge"] {
            tx.renew_cluster(cluster, now())?;
        }
        for n in 0..jobs {
            for cluster in [HERE, "lab", "edge"] {
                tx.insert_job(&job(&format!("j{cluster}-{n}"), cluster))?;
            }
        }
        Ok(())
    });
    filled.await.unwrap();
    let cx = crate::context(store, now);
    (home, cx)
}

async fn hear_of_this_machine(store: &Store) {
    let facts = NodeFacts {
        node: "n".into(),
        boot_id: "b".into(),
        version: "v".into(),
        capacity: Resources { cpu_milli: 4000, memory_bytes: 1, gpus: 0 },
        gpu_models: Vec::new(),
    };
    store.write(move |tx| tx.see_node(&facts, now())).await.unwrap();
}

async fn hear_of(store: &Store, cluster: &'static str) {
    // The store works in a thread of its own, where it is another time.
    let at = now();
    store.write(move |tx| tx.see_cluster(cluster, 0, at)).await.unwrap();
}

/// How many jobs each target was handed, and why the first that waits does.
async fn state(store: &Store) -> Vec<(usize, String)> {
    let look = store.read(|tx| {
        [HERE, "lab", "edge"]
            .into_iter()
            .map(|cluster| {
                let note = tx.queue(cluster, 1)?.first().map_or_else(String::new, |row| row.note.clone());
                Ok((tx.active_jobs(cluster)?.len(), note))
            })
            .collect()
    });
    look.await.unwrap()
}

#[tokio::test]
async fn a_broken_target_holds_up_no_other() {
    let (_home, cx) = world(3).await;
    hear_of(&cx.store, "lab").await;
    tick(&cx).await.unwrap();
    let all = state(&cx.store).await;
    assert_eq!([all[0].0, all[1].0, all[2].0], [0, 3, 0]);
    assert!(all[0].1.contains("`local` has no node yet"), "{}", all[0].1);
    assert_eq!(all[2].1, "cluster `edge` was never heard of");
    hear_of_this_machine(&cx.store).await;
    tick(&cx).await.unwrap();
    let all = state(&cx.store).await;
    assert_eq!([all[0].0, all[1].0, all[2].0], [3, 3, 0]);
}

#[tokio::test]
async fn a_cluster_gets_work_while_it_is_heard_of_and_a_wait_says_since_when_it_is_not() {
    let (_home, cx) = world(1).await;
    hear_of(&cx.store, "edge").await;
    NOW.set(NOW.get() + 185_000);
    tick(&cx).await.unwrap();
    assert_eq!(state(&cx.store).await[2], (0, "cluster `edge` was last heard of 3 min ago".to_owned()));
    hear_of(&cx.store, "edge").await;
    tick(&cx).await.unwrap();
    assert_eq!(state(&cx.store).await[2].0, 1);
}

#[tokio::test]
async fn a_cluster_takes_all_there_is_whatever_this_machine_can_hold() {
    let (_home, cx) = world(700).await;
    hear_of(&cx.store, "lab").await;
    hear_of_this_machine(&cx.store).await;
    for _ in 0..2 {
        tick(&cx).await.unwrap();
    }
    let all = state(&cx.store).await;
    assert_eq!((all[0].0, all[1].0), (controller::WINDOW, 700));
}

/// A target that is being checked, and what the server has found out about its cluster.
async fn checking(cx: &Context, passed: bool, asked: Timestamp) {
    let extension = Finding { check: "extension".into(), passed, detail: "so it is".into() };
    let row = TargetRow {
        workspace: "w".into(),
        cluster: "lab".into(),
        target: ClusterTarget { compute: "there".into(), ..ClusterTarget::default() },
        state: TargetState::Creating,
        findings: vec![extension],
        check_id: "c".into(),
        operation: "o".into(),
        checked_at: asked,
    };
    cx.store.write(move |tx| tx.put_target(&row)).await.unwrap();
}

#[tokio::test]
async fn a_cluster_that_does_not_say_hello_in_time_is_given_up_and_one_that_does_is_not() {
    let (_home, cx) = world(0).await;
    let asked = now();
    checking(&cx, false, asked).await;
    let state = async |after_ms: i64| {
        give_up_checks(&cx.store, Timestamp(asked.0 + after_ms)).await.unwrap();
        cx.store.read(|tx| tx.target("w", "there")).await.unwrap().unwrap().state
    };
    assert_eq!(state(20_000).await, TargetState::Creating);
    cx.store.write(move |tx| tx.see_cluster("lab", 0, Timestamp(asked.0 + 25_000))).await.unwrap();
    assert_eq!(state(31_000).await, TargetState::Creating, "it has said hello");
    assert_eq!(state(56_000).await, TargetState::Failed);
}

#[tokio::test]
async fn a_check_that_no_operator_answers_ends() {
    let (_home, cx) = world(0).await;
    let asked = now();
    checking(&cx, true, asked).await;
    let found = || cx.store.read(|tx| tx.target("w", "there"));
    give_up_checks(&cx.store, Timestamp(asked.0 + 100_000)).await.unwrap();
    assert_eq!(found().await.unwrap().unwrap().state, TargetState::Creating);
    give_up_checks(&cx.store, Timestamp(asked.0 + 121_000)).await.unwrap();
    let target = found().await.unwrap().unwrap();
    assert_eq!(target.state, TargetState::Failed);
    assert!(target.complaints().contains("operator: ") && target.findings.len() == 2, "{:?}", target.findings);
}
