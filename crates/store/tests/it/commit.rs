//! Group commit: many writers share one commit, and one that fails is undone alone.

use super::{fresh, new_job};
use std::sync::mpsc;
use store::{Bell, Error, JobFilter, Store};

#[tokio::test]
async fn writers_that_wait_together_share_one_commit() {
    let (_home, store) = fresh();
    let release = hold_the_writer(&store);
    let writes: Vec<_> = (0..200).map(|n| insert(&store, format!("job-{n}"))).collect();
    let before = *store.changed(Bell::Jobs).borrow();
    release.send(()).unwrap();
    for write in writes {
        write.await.unwrap().unwrap();
    }
    assert_eq!(*store.changed(Bell::Jobs).borrow(), before + 1, "one commit rings once");
    assert_eq!(count(&store).await, 200);
}

#[tokio::test]
async fn a_writer_that_fails_in_a_shared_commit_is_undone_alone() {
    let (_home, store) = fresh();
    let release = hold_the_writer(&store);
    let first = insert(&store, "first".into());
    let failing = spawn(&store, |tx| {
        tx.insert_job(&new_job("undone"))?;
        Err::<(), _>(Error::Conflict)
    });
    let twice = insert(&store, "first".into());
    let last = insert(&store, "last".into());
    release.send(()).unwrap();
    first.await.unwrap().unwrap();
    assert!(matches!(failing.await.unwrap(), Err(Error::Conflict)));
    assert!(matches!(twice.await.unwrap(), Err(Error::Exists)));
    last.await.unwrap().unwrap();
    let names = store.read(|tx| tx.jobs(&all())).await.unwrap().rows;
    let names: Vec<String> = names.iter().map(|row| row.job.name.to_string()).collect();
    assert_eq!(names, ["last", "first"]);
}

#[tokio::test]
async fn work_that_panics_is_undone_and_the_next_goes_on() {
    let (_home, store) = fresh();
    let panicking = spawn(&store, |tx| {
        tx.insert_job(&new_job("undone"))?;
        if count_now(tx)? == 1 {
            panic!("this panic is part of the test");
        }
        Ok(())
    });
    assert!(matches!(panicking.await.unwrap(), Err(Error::Closed)));
    insert(&store, "next".into()).await.unwrap().unwrap();
    assert_eq!(count(&store).await, 1);
}

#[tokio::test]
async fn what_was_answered_is_there_for_whoever_opens_it_next() {
    let (home, store) = fresh();
    insert(&store, "kept".into()).await.unwrap().unwrap();
    drop(store);
    let other = home.open();
    assert_eq!(count(&other).await, 1);
}

#[tokio::test]
async fn a_bell_rings_for_its_own_kind_only() {
    let (_home, store) = fresh();
    let at = |bell| *store.changed(bell).borrow();
    let before = [Bell::Queue, Bell::Agents, Bell::Jobs].map(at);
    insert(&store, "job".into()).await.unwrap().unwrap();
    let after = [Bell::Queue, Bell::Agents, Bell::Jobs].map(at);
    assert_eq!(after, [before[0] + 1, before[1], before[2] + 1]);
}

/// Keeps the writer busy until told, so that what comes meanwhile waits together.
fn hold_the_writer(store: &Store) -> mpsc::Sender<()> {
    let (release, released) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel::<()>();
    drop(spawn(store, move |_| {
        begun.send(()).unwrap();
        released.recv().unwrap();
        Ok(())
    }));
    has_begun.recv().unwrap();
    release
}

type Written<T> = tokio::sync::oneshot::Receiver<Result<T, Error>>;

/// Hands work to the store at once, whether or not anyone waits for it.
fn spawn<T: Send + 'static>(
    store: &Store,
    work: impl FnOnce(&mut store::Tx<'_>) -> Result<T, Error> + Send + 'static,
) -> Written<T> {
    let (send, receive) = tokio::sync::oneshot::channel();
    let store = store.clone();
    let mut write = Box::pin(async move { store.write(work).await });
    // The first poll hands the work over; a thread of its own waits for the answer, unless it is there already.
    match write.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(answer) => drop(send.send(answer)),
        std::task::Poll::Pending => drop(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _ = send.send(runtime.block_on(write));
        })),
    }
    receive
}

fn insert(store: &Store, name: String) -> Written<i64> {
    spawn(store, move |tx| tx.insert_job(&new_job(&name)))
}

async fn count(store: &Store) -> usize {
    store.read(count_now).await.unwrap()
}

fn count_now(tx: &mut store::Tx<'_>) -> Result<usize, Error> {
    Ok(tx.jobs(&all())?.rows.len())
}

fn all() -> JobFilter {
    JobFilter { workspace: "w".into(), limit: 1000, ..JobFilter::default() }
}
