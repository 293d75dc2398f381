//! Who begins first on a managed cluster, and who may pass.

use super::*;
use controller::tick;
use domain::{JobEvent, JobName, Plan};
use store::NewJob;

fn node(name: &str) -> MachineRow {
    MachineRow {
        cluster: CLUSTER.into(),
        name: name.into(),
        standing: Standing::Ready,
        reason: String::new(),
        ordered: Resources::default(),
        facts: Default::default(),
        joined: String::new(),
        created_at: now(),
        since: now(),
        seen_at: Some(now()),
    }
}

fn new_job(name: &str, timeout_seconds: Option<u64>) -> NewJob {
    NewJob {
        workspace: "default".into(),
        plan: Plan { timeout_seconds, ..Plan::default() },
        target: "crew".into(),
        cluster: CLUSTER.into(),
        ..crate::job(name, now())
    }
}

fn sent(seq: usize, name: &str, parts: u32, timeout_seconds: Option<u64>) -> Launch {
    let job = Job { comes: 0, parts, ticks: 1, number: 0, done: false };
    Launch { job: JobName::parse(name).unwrap(), timeout_seconds, ..launch(seq - 1, &job) }
}

/// Jobs by name and time limit, all placed; the first two at work on two of three nodes.
async fn world(jobs: &'static [(&'static str, Option<u64>)]) -> (Home, Store, Managed<Fake>) {
    NOW.set(1_000_000);
    let home = Home::new();
    let store = home.open();
    let (at, rows) = (now(), ["n1", "n2", "n3"].map(node));
    let new: Vec<NewJob> = jobs.iter().map(|(name, limit)| new_job(name, *limit)).collect();
    let filled = store.write(move |tx| {
        tx.renew_cluster(CLUSTER, at)?;
        tx.see_cluster(CLUSTER, 0, at)?;
        rows.iter().try_for_each(|row| tx.put_machine(row))?;
        new.iter().try_for_each(|job| tx.insert_job(job).map(drop))
    });
    filled.await.unwrap();
    tick(&crate::context(store.clone(), now)).await.unwrap();
    let bounds = Bounds { least: 0, most: 3, idle_ms: 60_000, lost_ms: 600_000 };
    let cloud = Cloud { dice: Dice(1), machines: BTreeMap::new(), calm: true };
    let mut managed = Managed::new(store.clone(), Fake(Arc::new(Mutex::new(cloud))), settings(bounds));
    let look = managed.look().await.unwrap();
    let first = [sent(1, jobs[0].0, 1, jobs[0].1), sent(2, jobs[1].0, 1, jobs[1].1)];
    assert_eq!(managed.launch(&first, &look).await.unwrap(), [Started::Yes, Started::Yes]);
    let begun = store.write(move |tx| {
        for seq in [1, 2] {
            let mut job = tx.job_by_seq(seq)?.unwrap();
            job.apply(JobEvent::Started, at).unwrap();
            tx.put_job(&job, None, at)?;
        }
        Ok(())
    });
    begun.await.unwrap();
    (home, store, managed)
}

async fn begun(managed: &mut Managed<Fake>, line: &[Launch]) -> Vec<Started> {
    let look = managed.look().await.unwrap();
    managed.launch(line, &look).await.unwrap()
}

#[tokio::test]
async fn only_a_job_that_is_gone_before_the_gang_could_begin_passes_it_and_the_gang_is_told() {
    const HOUR: u64 = 3600;
    let jobs: &[_] = &[
        ("one", Some(HOUR)),
        ("two", Some(2 * HOUR)),
        ("gang", None),
        ("long", Some(2 * HOUR)),
        ("endless", None),
        ("short", Some(HOUR)),
    ];
    let (_home, _store, mut managed) = world(jobs).await;
    let line = [
        sent(3, "gang", 3, None),
        sent(4, "long", 1, Some(2 * HOUR)),
        sent(5, "endless", 1, None),
        sent(6, "short", 1, Some(HOUR)),
    ];
    let all = begun(&mut managed, &line).await;
    assert!(matches!(all[..], [Started::Later(_), Started::Later(_), Started::Later(_), Started::Yes]), "{all:?}");
    let again = begun(&mut managed, &line[..1]).await;
    let [Started::Later(why)] = &again[..] else { panic!("{again:?}") };
    assert!(why.contains("`short` went ahead of it"), "{why}");
}

#[tokio::test]
async fn nobody_passes_where_what_runs_has_no_time_limit() {
    let jobs: &[_] = &[("one", Some(3600)), ("two", None), ("gang", None), ("short", Some(60))];
    let (_home, _store, mut managed) = world(jobs).await;
    let all = begun(&mut managed, &[sent(3, "gang", 3, None), sent(4, "short", 1, Some(60))]).await;
    assert!(matches!(all[..], [Started::Later(_), Started::Later(_)]), "{all:?}");
    // A gang that is content with two knows when it begins.
    let all = begun(&mut managed, &[sent(3, "gang", 2, None), sent(4, "short", 1, Some(60))]).await;
    assert!(matches!(all[..], [Started::Later(_), Started::Yes]), "{all:?}");
}

#[tokio::test]
async fn a_node_that_got_work_since_it_was_looked_at_is_not_sent_away() {
    let jobs: &[_] = &[("one", None), ("two", None), ("three", None)];
    let (_home, store, mut managed) = world(jobs).await;
    managed.look().await.unwrap();
    // It takes the next by itself, and by the last look it has had nothing to do for long.
    let attempt = AttemptId::of(3, 0);
    store.write(move |tx| tx.give_whole(CLUSTER, &attempt, "n3")).await.unwrap();
    NOW.set(NOW.get() + 120_000);
    managed.settle().await.unwrap();
    let row = store.read(|tx| tx.machine(CLUSTER, "n3")).await.unwrap().unwrap();
    assert_eq!(row.standing, Standing::Ready, "{row:?}");
}
