//! Jobs: accepted once, changed only from the version that was read, listed in pages that stay put.

use super::{NOW, fresh, new_job};
use domain::{Job, JobEvent, Outcome, Place, PlannedInput, Timestamp, assignment::InputMode};
use store::{Error, JobFilter, NewJob, Store, Used, UserRow};

#[tokio::test]
async fn a_name_is_taken_once_per_workspace() {
    let (_home, store) = fresh();
    insert(&store, new_job("a")).await.unwrap();
    assert!(matches!(insert(&store, new_job("a")).await, Err(Error::Exists)));
    insert(&store, NewJob { workspace: "other".into(), ..new_job("a") }).await.unwrap();
}

#[tokio::test]
async fn of_two_changes_to_one_version_the_second_is_a_conflict() {
    let (_home, store) = fresh();
    let seq = insert(&store, new_job("a")).await.unwrap();
    let read = job(&store, seq).await;
    let place = |mut job: Job| {
        job.apply(JobEvent::Placed(job.next_attempt()), NOW).unwrap();
        job
    };
    let (first, second) = (place(read.clone()), place(read));
    store.write(move |tx| tx.put_job(&first, Some("first"), NOW)).await.unwrap();
    let late = store.write(move |tx| tx.put_job(&second, Some("second"), NOW)).await;
    assert!(matches!(late, Err(Error::Conflict)));
    let row = store.read(|tx| tx.job("w", "a")).await.unwrap().unwrap();
    assert_eq!((row.note.as_str(), row.job.attempts, row.job.state.name()), ("first", 1, "placed"));
}

#[tokio::test]
async fn a_change_that_meets_a_conflict_leaves_no_event_behind() {
    let (_home, store) = fresh();
    let seq = insert(&store, new_job("a")).await.unwrap();
    let stale = Job { version: 99, ..job(&store, seq).await };
    let write = store.write(move |tx| {
        tx.add_event(seq, NOW, "placed", "never happened")?;
        tx.put_job(&stale, None, NOW)
    });
    assert!(matches!(write.await, Err(Error::Conflict)));
    let events = store.read(move |tx| tx.events(seq)).await.unwrap();
    assert_eq!(events.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), ["accepted"]);
}

#[tokio::test]
async fn who_stands_before_many_is_told_as_it_is_told_of_each() {
    let (_home, store) = fresh();
    let mut placed = Vec::new();
    for n in 0..40_i64 {
        let job = NewJob {
            priority: n % 3,
            created_by: ["ada", "bob"][usize::from(n % 4 == 1)].into(),
            workspace: ["w", "other"][usize::from(n % 5 == 2)].into(),
            cluster: ["", "lab"][usize::from(n % 7 == 3)].into(),
            ..new_job(&format!("job-{n}"))
        };
        let seq = insert(&store, job).await.unwrap();
        placed.extend((n % 6 == 0).then_some(seq));
    }
    for seq in placed {
        let mut held = job(&store, seq).await;
        held.apply(JobEvent::Placed(held.next_attempt()), NOW).unwrap();
        store.write(move |tx| tx.put_job(&held, None, NOW)).await.unwrap();
    }
    let told = store.read(|tx| {
        let rows = tx.waiting_jobs("w", 50)?;
        let ahead = tx.ahead_of_each(&rows)?;
        let each = rows.iter().map(|row| Ok((ahead[&row.job.seq], tx.ahead_of(row)?)));
        each.collect::<Result<Vec<_>, Error>>()
    });
    let told = told.await.unwrap();
    assert!(told.len() > 25 && told.iter().any(|(ahead, _)| *ahead > 5), "{told:?}");
    assert!(told.iter().all(|(together, alone)| together == alone), "{told:?}");
}

#[tokio::test]
async fn the_queue_goes_by_priority_and_then_by_age() {
    let (_home, store) = fresh();
    for (name, priority) in [("low", 1), ("first", 2), ("second", 2), ("high", 3)] {
        insert(&store, NewJob { priority, ..new_job(name) }).await.unwrap();
    }
    insert(&store, NewJob { cluster: "lab".into(), ..new_job("elsewhere") }).await.unwrap();
    let names = |limit| {
        store.read(move |tx| {
            Ok(tx.queue(store::HERE, limit)?.iter().map(|row| row.job.name.to_string()).collect::<Vec<_>>())
        })
    };
    assert_eq!(names(10).await.unwrap(), ["high", "first", "second", "low"]);
    assert_eq!(names(2).await.unwrap(), ["high", "first"]);
}

#[tokio::test]
async fn pages_do_not_shift_while_jobs_arrive() {
    let (_home, store) = fresh();
    for n in 0..6 {
        insert(&store, new_job(&format!("old-{n}"))).await.unwrap();
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let filter = JobFilter { workspace: "w".into(), before, limit: 2, ..JobFilter::default() };
        let page = store.read(move |tx| tx.jobs(&filter)).await.unwrap().rows;
        let Some(last) = page.last() else { break };
        before = Some(last.job.seq);
        seen.extend(page.iter().map(|row| row.job.name.to_string()));
        insert(&store, new_job(&format!("new-{}", seen.len()))).await.unwrap();
    }
    assert_eq!(seen, ["old-5", "old-4", "old-3", "old-2", "old-1", "old-0"]);
}

#[tokio::test]
async fn lists_keep_to_their_filter() {
    let (_home, store) = fresh();
    let tags =
        [("a", r#"{"tags":{"team":"a"}}"#), ("b", r#"{"tags":{"team":"b"}}"#), ("c", r#"{"tags":{"a.b \"c":"1"}}"#)];
    for (name, body) in tags {
        insert(&store, NewJob { body: body.into(), ..new_job(name) }).await.unwrap();
    }
    let seq = store.read(|tx| tx.job("w", "b")).await.unwrap().unwrap().job.seq;
    store.write(move |tx| tx.put_job_body(seq, r#"{"tags":{"team":"b"}}"#, true, NOW)).await.unwrap();
    let listed = async |tag: Option<&str>, archived| {
        let filter = JobFilter {
            workspace: "w".into(),
            tag: tag.map(str::to_owned),
            archived,
            limit: 10,
            ..JobFilter::default()
        };
        let rows = store.read(move |tx| tx.jobs(&filter)).await.unwrap().rows;
        rows.iter().map(|row| row.job.name.to_string()).collect::<String>()
    };
    assert_eq!(listed(None, None).await, "cba");
    assert_eq!(listed(None, Some(false)).await, "ca");
    assert_eq!(listed(None, Some(true)).await, "b");
    assert_eq!(listed(Some("team"), None).await, "ba");
    assert_eq!(listed(Some("team=a"), None).await, "a");
    assert_eq!(listed(Some("a.b \"c=1"), None).await, "c");
}

#[tokio::test]
async fn a_workspace_with_open_jobs_cannot_be_deleted() {
    let (_home, store) = fresh();
    let seq = insert(&store, new_job("a")).await.unwrap();
    assert!(matches!(store.write(|tx| tx.delete_workspace("w")).await, Err(Error::Conflict)));
    let mut open = job(&store, seq).await;
    open.apply(JobEvent::StopRequested { reason: "enough".into() }, Timestamp(NOW.0 + 1)).unwrap();
    assert!(matches!(open.state, domain::JobState::Ended { outcome: Outcome::Canceled { .. }, .. }));
    store.write(move |tx| tx.put_job(&open, None, NOW)).await.unwrap();
    store.write(|tx| tx.delete_workspace("w")).await.unwrap();
    assert!(store.read(|tx| tx.job("w", "a")).await.unwrap().is_none());
}

#[tokio::test]
async fn whoever_uses_data_or_an_environment_is_found_by_it() {
    let (_home, store) = fresh();
    let folder = |path: &str| Place::Folder { path: path.into() };
    let reads = |name: &str, path: &str| {
        let mut new = NewJob { body: "{\"displayName\": \"shown\"}".into(), ..new_job(name) };
        let (place, uri) = (folder(path), String::new());
        let input = PlannedInput::Data { place, mode: InputMode::RoMount, uri, file: false };
        new.plan.inputs.insert("rain".into(), input);
        new.plan.environment.label = "torch:2".into();
        new
    };
    let first = insert(&store, reads("a", "/data/rain/")).await.unwrap();
    insert(&store, reads("b", "/data/snow")).await.unwrap();
    store.write(move |tx| tx.put_job_body(first, "{}", false, NOW)).await.unwrap();
    let found = store.read(move |tx| {
        let rain = tx.users_of("w", Used::Data(&folder("/data/rain")), 10)?;
        let torch = tx.users_of("w", Used::Environment("torch:2"), 10)?;
        Ok((rain, torch, tx.users_of("elsewhere", Used::Environment("torch:2"), 10)?))
    });
    let (rain, torch, elsewhere) = found.await.unwrap();
    let names = |rows: &[UserRow]| rows.iter().map(|row| row.job.clone()).collect::<Vec<_>>();
    assert_eq!((rain[0].input.as_str(), rain[0].shown.as_str(), rain[0].status.as_str()), ("rain", "a", "Queued"));
    assert_eq!((names(&rain), names(&torch)), (vec!["a".to_owned()], vec!["b".to_owned(), "a".to_owned()]));
    assert!(elsewhere.is_empty());
}

#[tokio::test]
async fn a_pipeline_is_found_by_each_of_its_components() {
    let (_home, store) = fresh();
    let pipeline = insert(&store, NewJob { kind: "Pipeline", ..new_job("p") }).await.unwrap();
    let labels = ["clean:1".to_owned(), "train:2".to_owned()].into();
    store.write(move |tx| tx.add_components(pipeline, &labels)).await.unwrap();
    let found = store.read(|tx| {
        let of = |tx: &mut store::Tx<'_>, label| tx.users_of("w", Used::Component(label), 10);
        Ok((of(tx, "clean:1")?, of(tx, "train:2")?, of(tx, "train:1")?))
    });
    let (clean, train, other) = found.await.unwrap();
    assert_eq!([clean.len(), train.len(), other.len()], [1, 1, 0]);
    assert_eq!((clean[0].job.as_str(), clean[0].input.as_str()), ("p", "clean:1"));
}

async fn insert(store: &Store, new: NewJob) -> Result<i64, Error> {
    store.write(move |tx| tx.insert_job(&new)).await
}

async fn job(store: &Store, seq: i64) -> Job {
    store.read(move |tx| tx.job_by_seq(seq)).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_rare_tag_is_found_however_far_back_and_no_page_looks_through_everything() {
    let (_home, store) = fresh();
    let tagged = json_body("rare");
    store
        .write(move |tx| {
            for n in 0..4500 {
                let body = if n % 2200 == 7 { tagged.clone() } else { "{}".to_owned() };
                tx.insert_job(&NewJob { body, ..new_job(&format!("j{n}")) })?;
            }
            Ok(())
        })
        .await
        .unwrap();
    let (mut found, mut before, mut pages) = (Vec::new(), None, 0);
    loop {
        let tag = Some("rare".to_owned());
        let filter = JobFilter { workspace: "w".into(), tag, before, limit: 10, ..JobFilter::default() };
        let page = store.read(move |tx| tx.jobs(&filter)).await.unwrap();
        found.extend(page.rows.iter().map(|row| row.job.name.to_string()));
        pages += 1;
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!((found.as_slice(), pages), (["j4407", "j2207", "j7"].map(str::to_owned).as_slice(), 3));
}

fn json_body(tag: &str) -> String {
    format!("{{\"tags\": {{\"{tag}\": \"yes\"}}}}")
}
