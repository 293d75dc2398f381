//! The scheduling loop: turns queued jobs into placements.
//!
//! A round is one transaction: what is seen, decided and written cannot fall apart.

use crate::{Context, until};
use domain::{JobEvent, Resources, Timestamp, report::NodeFacts};
use planner::{Decision, Handed, Node, Waiting, World};
use std::{collections::HashMap, time::Duration};
use store::{Bell, ClusterRow, Error, HERE, QueuedJob, Tx};
use tokio::sync::watch;

/// How many jobs an agent may hold: enough that it never waits for the server between two short jobs.
pub const WINDOW: usize = 128;

/// A node that was not heard of for this long does not get new work.
const SILENT_MS: i64 = 30_000;

/// Rounds follow each other no faster than this, so that many changes share one; a window is far more than an agent
/// gets through in that time.
const PAUSE: Duration = Duration::from_millis(10);

/// How many queued jobs beyond the free places a round looks at.
const LOOK_PAST: usize = 16;

/// How many jobs of a cluster a round looks at: it takes all there are, one round after another.
const FOR_CLUSTER: i64 = 512;

pub(crate) async fn run(cx: Context, mut stop: watch::Receiver<bool>) {
    let mut bell = cx.store.changed(Bell::Queue);
    loop {
        bell.mark_unchanged();
        match tick(&cx).await {
            Ok(_) => {}
            Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "a scheduling round failed"),
        }
        let next = async {
            tokio::time::sleep(PAUSE).await;
            let _ = tokio::time::timeout(Duration::from_secs(1), bell.changed()).await;
        };
        if !until(&mut stop, next).await {
            return;
        }
    }
}

/// One round: how many jobs were placed.
pub async fn tick(cx: &Context) -> Result<usize, Error> {
    let now = (cx.clock)();
    cx.store.write(move |tx| place(tx, now)).await
}

/// The same within a transaction: whoever puts jobs in the queue may place them in the same breath.
pub(crate) fn place(tx: &mut Tx<'_>, now: Timestamp) -> Result<usize, Error> {
    let (world, jobs) = observe(tx, now)?;
    if jobs.is_empty() { Ok(0) } else { record(tx, planner::place(&world), jobs, now) }
}

fn observe(tx: &mut Tx<'_>, now: Timestamp) -> Result<(World, HashMap<i64, QueuedJob>), Error> {
    let handed = tx.handed()?;
    let handed: Vec<Handed> = handed
        .into_iter()
        .map(|(priority, count)| Handed { priority, count: usize::try_from(count).unwrap_or(0) })
        .collect();
    let held: usize = handed.iter().map(|handed| handed.count).sum();
    let nodes: Vec<Node> = tx
        .nodes()?
        .into_iter()
        .map(|row| {
            let NodeFacts { node, capacity, .. } = row.facts;
            let silent = (now.0 - row.seen_at.0 >= SILENT_MS).then(|| format!("the agent of `{node}` does not answer"));
            // Every node of its own is this machine; its agent holds whatever is handed out.
            Node { name: node, target: "local".into(), capacity, silent, handed: handed.clone(), window: WINDOW }
        })
        .collect();
    let queue = front(tx, &nodes, WINDOW.saturating_sub(held) + LOOK_PAST)?;
    let mut world = World { nodes, queue: queue.iter().map(|row| waiting(row, row.target.clone())).collect() };
    let mut rows: HashMap<i64, QueuedJob> = queue.into_iter().map(|row| (row.job.seq, row)).collect();
    for cluster in tx.clusters()? {
        let queue = tx.queue(&cluster.name, FOR_CLUSTER)?;
        if queue.is_empty() {
            continue;
        }
        // No compute target has a `:` in its name.
        let target = format!("cluster:{}", cluster.name);
        world.queue.extend(queue.iter().map(|row| waiting(row, target.clone())));
        world.nodes.push(node_of(&cluster, target, now));
        rows.extend(queue.into_iter().map(|row| (row.job.seq, row)));
    }
    Ok((world, rows))
}

/// A cluster as a node: it has a scheduler of its own, so it gets all there is, as soon as it is heard of.
fn node_of(cluster: &ClusterRow, target: String, now: Timestamp) -> Node {
    let capacity = Resources { cpu_milli: u64::MAX, memory_bytes: u64::MAX, gpus: u32::MAX };
    let silent = (!cluster.answers(now, SILENT_MS)).then(|| cluster.last_heard(now));
    Node { name: cluster.shown().to_owned(), target, capacity, silent, handed: Vec::new(), window: usize::MAX }
}

fn waiting(row: &QueuedJob, target: String) -> Waiting {
    Waiting { seq: row.job.seq, job: row.job.name.clone(), target, priority: row.job.priority, needs: row.needs }
}

/// The front of the queue: far behind it nothing can change. Jobs that fit nowhere do not count, so that however many
/// of them stand in front, those behind are seen.
fn front(tx: &mut Tx<'_>, nodes: &[Node], wanted: usize) -> Result<Vec<QueuedJob>, Error> {
    let mut limit = wanted;
    loop {
        let queue = tx.queue(HERE, i64::try_from(limit).unwrap_or(i64::MAX))?;
        let fits = |row: &&QueuedJob| nodes.is_empty() || nodes.iter().any(|node| row.needs.fits_in(&node.capacity));
        let fitting = queue.iter().filter(fits).count();
        if queue.len() < limit || fitting >= wanted {
            return Ok(queue);
        }
        limit += (wanted - fitting).max(limit);
    }
}

fn record(
    tx: &mut Tx<'_>,
    decisions: Vec<Decision>,
    mut jobs: HashMap<i64, QueuedJob>,
    now: Timestamp,
) -> Result<usize, Error> {
    let mut placed = 0;
    for decision in decisions {
        match decision {
            Decision::Place { seq, node, because } => {
                let Some(QueuedJob { mut job, .. }) = jobs.remove(&seq) else { continue };
                let attempt = job.next_attempt();
                if job.apply(JobEvent::Placed(attempt), now).is_ok() {
                    tx.put_job(&job, None, now)?;
                    tx.add_event(job.seq, now, "placed", &format!("handed to `{node}`: {because}"))?;
                    placed += 1;
                }
            }
            Decision::Wait { seq, because } if jobs.get(&seq).is_some_and(|row| row.note != because) => {
                tx.put_note(seq, &because)?;
            }
            Decision::Wait { .. } => {}
        }
    }
    Ok(placed)
}
