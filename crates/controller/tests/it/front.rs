//! The front of the queue.

use controller::tick;
use domain::{Plan, Resources, Timestamp, report::NodeFacts};
use store::NewJob;

fn job(name: &str, cpus: u64) -> NewJob {
    let requests = Resources { cpu_milli: cpus * 1000, ..Resources::default() };
    NewJob { plan: Plan { requests, ..Plan::default() }, ..crate::job(name, Timestamp(0)) }
}

#[tokio::test]
async fn jobs_that_fit_nowhere_do_not_hold_up_those_behind_them() {
    let home = crate::Home::new();
    let store = home.open();
    let facts = NodeFacts {
        node: "n".into(),
        boot_id: "b".into(),
        version: "v".into(),
        capacity: Resources { cpu_milli: 1000, memory_bytes: 1, gpus: 0 },
        gpu_models: Vec::new(),
    };
    let filled = store.write(move |tx| {
        tx.see_node(&facts, Timestamp(0))?;
        (0..700).try_for_each(|n| tx.insert_job(&job(&format!("huge-{n}"), 64)).map(drop))?;
        tx.insert_job(&job("small", 1))
    });
    filled.await.unwrap();
    let cx = crate::context(store.clone(), || Timestamp(1));
    assert_eq!(tick(&cx).await.unwrap(), 1);
    let small = store.read(|tx| tx.job("w", "small")).await.unwrap().unwrap();
    assert_eq!(small.job.state.name(), "placed");
    let huge = store.read(|tx| tx.job("w", "huge-0")).await.unwrap().unwrap();
    assert!(huge.note.contains("more than any node"), "{}", huge.note);
}
