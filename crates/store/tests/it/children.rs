//! Jobs that consist of other jobs: no node gets them, their children are listed under them, an end is heard once.

use super::{NOW, fresh, new_job};
use domain::{Job, JobEvent, Outcome};
use store::{ChildOf, JobFilter, NOWHERE, NewJob, Store};

fn parent(name: &str) -> NewJob {
    NewJob { cluster: NOWHERE.into(), kind: "Pipeline", ..new_job(name) }
}

fn child(name: &str, parent: i64) -> NewJob {
    NewJob { parent: Some(ChildOf { parent, name: "p".into(), step: name.into() }), ..new_job(name) }
}

async fn family(store: &Store) -> i64 {
    store
        .write(|tx| {
            let seq = tx.insert_job(&parent("p"))?;
            tx.insert_job(&child("a", seq))?;
            tx.insert_job(&child("b", seq))?;
            Ok(seq)
        })
        .await
        .unwrap()
}

async fn happens(store: &Store, name: &'static str, events: Vec<JobEvent>) -> Job {
    store
        .write(move |tx| {
            let mut job = tx.job("w", name)?.unwrap().job;
            for event in events {
                job.apply(event, NOW).unwrap();
                tx.put_job(&job, None, NOW)?;
                job.version += 1;
            }
            Ok(job)
        })
        .await
        .unwrap()
}

#[tokio::test]
async fn a_parent_is_offered_to_no_node_and_lists_show_it_without_its_children() {
    let (_home, store) = fresh();
    let seq = family(&store).await;
    let queue = store.read(|tx| tx.queue(store::HERE, 10)).await.unwrap();
    assert_eq!(queue.iter().map(|row| row.job.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let listed = async |parent| {
        let filter = JobFilter { workspace: "w".into(), parent, limit: 10, ..JobFilter::default() };
        let rows = store.read(move |tx| tx.jobs(&filter)).await.unwrap().rows;
        rows.into_iter().map(|row| row.job.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(None).await, ["p"]);
    assert_eq!(listed(Some(seq)).await, ["b", "a"]);
    let row = store.read(|tx| tx.job("w", "a")).await.unwrap().unwrap();
    assert_eq!(row.parent, Some(ChildOf { parent: seq, name: "p".into(), step: "a".into() }));
    let run = store.read(|tx| Ok(tx.run("w", "a")?.unwrap().seq)).await.unwrap();
    let tags = store.read(move |tx| tx.tags_of(&[run])).await.unwrap();
    assert_eq!(tags[&run]["mlflow.parentRunId"], "p");
}

#[tokio::test]
async fn the_end_of_a_child_is_heard_once() {
    let (_home, store) = fresh();
    let seq = family(&store).await;
    let news = async || store.read(move |tx| tx.has_news(seq)).await.unwrap();
    assert!(!news().await);
    happens(&store, "b", vec![JobEvent::StopRequested { reason: "enough".into() }]).await;
    assert!(news().await);
    let ended = store.read(move |tx| tx.unheard_children(seq)).await.unwrap();
    assert_eq!(ended.iter().map(|child| child.step.as_str()).collect::<Vec<_>>(), ["b"]);
    let heard = ended[0].job.seq;
    store.write(move |tx| tx.hear(&[heard])).await.unwrap();
    assert!(!news().await);
    assert_eq!(store.read(move |tx| tx.children(seq)).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_parent_lives_from_the_queue_over_conducting_to_its_end() {
    let (_home, store) = fresh();
    let seq = family(&store).await;
    let live = async || store.read(|tx| tx.live_parents()).await.unwrap();
    assert_eq!(live().await, [(seq, "queued".to_owned())]);
    assert_eq!(store.read(move |tx| tx.kind(seq)).await.unwrap(), "Pipeline");
    happens(&store, "p", vec![JobEvent::Conducted]).await;
    assert_eq!(live().await, [(seq, "conducting".to_owned())]);
    let halting = happens(&store, "p", vec![JobEvent::StopRequested { reason: "enough".into() }]).await;
    assert_eq!(halting.state.status(), "CancelRequested");
    happens(&store, "p", vec![JobEvent::Over(Outcome::Canceled { reason: String::new() })]).await;
    assert!(live().await.is_empty());
    let row = store.read(|tx| tx.job("w", "p")).await.unwrap().unwrap();
    assert_eq!(row.job.state.status(), "Canceled");
}

#[tokio::test]
async fn what_leads_a_parent_is_written_over_and_goes_with_its_workspace() {
    let (_home, store) = fresh();
    let seq = family(&store).await;
    for state in ["first", "second"] {
        store.write(move |tx| tx.put_conductor(seq, &state)).await.unwrap();
    }
    assert_eq!(store.read(move |tx| tx.conductor::<String>(seq)).await.unwrap().as_deref(), Some("second"));
    for name in ["a", "b", "p"] {
        happens(&store, name, vec![JobEvent::StopRequested { reason: "enough".into() }]).await;
    }
    store.write(|tx| tx.delete_workspace("w")).await.unwrap();
    assert_eq!(store.read(move |tx| tx.conductor::<String>(seq)).await.unwrap(), None);
}

#[tokio::test]
async fn a_stop_ends_what_waits_and_asks_what_runs() {
    let (_home, store) = fresh();
    family(&store).await;
    let placed = happens(&store, "a", vec![JobEvent::Placed(domain::AttemptId::of(2, 0))]).await;
    let waiting = store.read(|tx| tx.job("w", "b")).await.unwrap().unwrap().job.seq;
    let stop = async |seq: i64| store.write(move |tx| tx.stop_job(seq, "enough", NOW)).await.unwrap().unwrap();
    let (running, waiting) = (stop(placed.seq).await, stop(waiting).await);
    assert_eq!((running.job.state.name(), running.ended, running.attempt.is_some()), ("stopping", false, true));
    assert_eq!((waiting.job.state.status(), waiting.ended, waiting.attempt), ("Canceled", true, None));
}
