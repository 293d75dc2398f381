//! Schedules: what is due, what they are told of, and what is remembered of them.

use super::{NOW, fresh, new_job};
use domain::{
    JobEvent, Timestamp,
    calendar::{Subject, Watch},
};
use store::{AssetKey, ScheduleRow, ScheduleRun, Store};

fn watch(on: Subject, name: &str) -> Option<Watch> {
    Some(Watch { on, name: name.into(), experiment: String::new(), status: vec!["canceled".into()] })
}

async fn put(store: &Store, name: &str, watch: Option<Watch>, due_at: Option<i64>) {
    let row = ScheduleRow { workspace: "w".into(), name: name.into(), watch, due_at: due_at.map(Timestamp) };
    store.write(move |tx| tx.put_schedule(&row)).await.unwrap();
}

#[tokio::test]
async fn a_schedule_is_due_at_its_time_and_not_when_it_is_off() {
    let (_home, store) = fresh();
    put(&store, "late", None, Some(300)).await;
    put(&store, "soon", None, Some(100)).await;
    put(&store, "never", None, None).await;
    let names = |store: Store, now| async move {
        let due = store.read(move |tx| tx.due_schedules(Timestamp(now))).await.unwrap();
        due.into_iter().map(|row| row.name).collect::<Vec<_>>()
    };
    assert_eq!(names(store.clone(), 99).await, [""; 0]);
    assert_eq!(names(store.clone(), 400).await, ["soon", "late"]);
    assert_eq!(store.read(|tx| tx.next_due()).await.unwrap(), Some(Timestamp(100)));
    put(&store, "soon", None, Some(500)).await;
    store.write(|tx| tx.delete_schedule("w", "late")).await.unwrap();
    assert_eq!(names(store.clone(), 400).await, [""; 0]);
    assert_eq!(store.read(|tx| tx.next_due()).await.unwrap(), Some(Timestamp(500)));
}

#[tokio::test]
async fn a_schedule_hears_once_of_what_it_waits_for() {
    let (_home, store) = fresh();
    put(&store, "on-data", watch(Subject::Data, "iris*"), None).await;
    put(&store, "on-job", watch(Subject::Job, "train*"), None).await;
    let asset = |name: &'static str, kind: &'static str, version: &'static str, body: &'static str| {
        store.write(move |tx| {
            let key = AssetKey { workspace: "w".into(), kind: kind.into(), name: name.into(), version: version.into() };
            tx.insert_asset(&key, body, None, "me", NOW)
        })
    };
    asset("iris", "data", "1", r#"{"jobName": "maker"}"#).await.unwrap();
    asset("other", "data", "1", "{}").await.unwrap();
    asset("iris", "models", "1", "{}").await.unwrap();
    asset("iris-hidden", "data", "1", r#"{"isAnonymous": true}"#).await.unwrap();
    asset("iris", "data", "1", "{}").await.unwrap_err();
    for name in ["train1", "other"] {
        let new = new_job(name);
        let ended = store.write(move |tx| {
            let seq = tx.insert_job(&new)?;
            let mut job = tx.job_by_seq(seq)?.unwrap();
            job.apply(JobEvent::StopRequested { reason: "test".into() }, NOW).unwrap();
            tx.put_job(&job, None, NOW)
        });
        ended.await.unwrap();
    }
    let events = store.read(|tx| tx.schedule_events()).await.unwrap();
    let told: Vec<String> = events.iter().map(|told| format!("{}: {}", told.schedule, told.event)).collect();
    assert_eq!(told, ["on-data: data `iris:1` is new", "on-job: job `train1` is canceled"]);
    assert_eq!(events[0].event.job, "maker");
    let seq = events[0].seq;
    let taken = store.write(move |tx| Ok((tx.take_schedule_event(seq)?, tx.take_schedule_event(seq)?))).await.unwrap();
    assert_eq!(taken, (true, false));
    store.write(|tx| tx.delete_schedule("w", "on-job")).await.unwrap();
    assert!(store.read(|tx| tx.schedule_events()).await.unwrap().is_empty(), "one that is off waits for nothing");
}

#[tokio::test]
async fn runs_are_remembered_newest_first_and_not_for_ever() {
    let (_home, store) = fresh();
    store
        .write(|tx| {
            for n in 0..1010 {
                tx.insert_schedule_run(&ScheduleRun {
                    workspace: "w".into(),
                    schedule: "s".into(),
                    due_at: Timestamp(n),
                    made_at: Timestamp(n),
                    cause: "its time".into(),
                    by_event: n % 2 == 0,
                    made: (n != 1009).then(|| format!("s-{n}")),
                    problem: (n == 1009).then(|| "no data".into()),
                    chain: vec!["s".into()],
                })?;
            }
            Ok(())
        })
        .await
        .unwrap();
    let runs = store.read(|tx| tx.schedule_runs("w", "s", 2000)).await.unwrap();
    assert_eq!(
        (runs.len(), runs[0].problem.as_deref(), runs[1].made.as_deref()),
        (1000, Some("no data"), Some("s-1008"))
    );
    let of = store.read(|tx| tx.schedule_run_of("w", "s-500")).await.unwrap();
    assert_eq!(of.map(|run| run.due_at), Some(Timestamp(500)));
    assert_eq!(store.read(|tx| tx.event_runs_since("w", "s", Timestamp(999))).await.unwrap(), 5);
    store.write(|tx| tx.forget_schedule("w", "s")).await.unwrap();
    assert!(store.read(|tx| tx.schedule_runs("w", "s", 10)).await.unwrap().is_empty());
}
