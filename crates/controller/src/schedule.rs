//! The scheduling loop: turns queued jobs into placements, and where a target says so makes way for the more important.
//!
//! A round is one transaction: what is seen, decided and written cannot fall apart.

mod people;
mod preempt;
mod spill;

use crate::{Context, until};
use domain::{
    JobEvent, Resources, Timestamp,
    report::NodeFacts,
    sharing::{Held, Ledger},
};
use people::People;
use planner::{Decision, Handed, Node, Waiting, World};
use std::{collections::HashMap, time::Duration};
use store::{Bell, ClusterRow, Error, HERE, HeldRow, QueuedJob, Tx};
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
const FOR_CLUSTER: usize = 512;

/// How much further a round looks for one that may run when those in front may not.
const FURTHER: usize = 8;

pub(crate) async fn run(cx: Context, mut stop: watch::Receiver<bool>) {
    let mut bell = cx.store.changed(Bell::Queue);
    loop {
        bell.mark_unchanged();
        match tick(&cx).await {
            Ok(_) => {}
            // Someone else changed a job first; what is there now is looked at.
            Err(Error::Conflict) => continue,
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
    spill::tick(cx, now).await?;
    preempt::tick(cx, now).await?;
    let half_life_ms = cx.sharing.half_life_ms;
    cx.store.write(move |tx| place(tx, now, half_life_ms)).await
}

/// The same within a transaction: whoever puts jobs in the queue may place them in the same breath.
pub(crate) fn place(tx: &mut Tx<'_>, now: Timestamp, half_life_ms: i64) -> Result<usize, Error> {
    let (world, jobs) = observe(tx, now, half_life_ms)?;
    if jobs.is_empty() { Ok(0) } else { record(tx, planner::place(&world), jobs, now) }
}

fn observe(tx: &mut Tx<'_>, now: Timestamp, half_life_ms: i64) -> Result<(World, HashMap<i64, QueuedJob>), Error> {
    let rows = tx.held(now)?;
    let quotas = tx.quotas(None)?;
    let held: Vec<Held> = rows.iter().map(|row| row.held.clone()).collect();
    let ledger = Ledger::new(quotas.clone(), &held);
    let mut people = People::of(&rows);
    let here = handed(&rows, HERE, &mut people);
    let nodes: Vec<Node> = tx
        .nodes()?
        .into_iter()
        .map(|row| {
            let NodeFacts { node, capacity, .. } = row.facts;
            let silent = (now.0 - row.seen_at.0 >= SILENT_MS).then(|| format!("the agent of `{node}` does not answer"));
            // Every node of its own is this machine; its agent holds whatever is handed out.
            Node { name: node, target: "local".into(), capacity, silent, handed: here.clone(), window: WINDOW }
        })
        .collect();
    let mut world = World { nodes, quotas, held, now, half_life_ms, ..World::default() };
    let mut front = Vec::new();
    let fits = |row: &QueuedJob| {
        (world.nodes.is_empty() || world.nodes.iter().any(|node| row.needs.fits_in(&node.capacity)))
            && ledger.has_room(&row.holder, &row.target, &row.needs)
    };
    for holder in tx.waiting_holders(HERE)? {
        let share = people.place(&holder);
        let own: usize = here.iter().filter(|one| one.share == share).map(|one| one.count).sum();
        let limits = Look { wanted: WINDOW.saturating_sub(own) + LOOK_PAST, further: !ledger.is_empty() };
        front.extend(look(limits, fits, |limit| tx.queue_of(HERE, &holder, limit))?.into_iter().map(|row| (None, row)));
    }
    for cluster in tx.clusters()? {
        // No compute target has a `:` in its name.
        let target = format!("cluster:{}", cluster.name);
        let holders = tx.waiting_holders(&cluster.name)?;
        if holders.is_empty() {
            continue;
        }
        let mut node = node_of(&cluster, target.clone(), now);
        if let Some(most) = most_nodes(tx, &cluster)? {
            node.window = WINDOW.max(2 * most);
            node.handed = handed(&rows, &cluster.name, &mut people);
        }
        for holder in holders {
            let share = people.place(&holder);
            let own: usize = node.handed.iter().filter(|one| one.share == share).map(|one| one.count).sum();
            let fits = |row: &QueuedJob| ledger.has_room(&row.holder, &row.target, &row.needs);
            let room = node.window.saturating_sub(own).saturating_add(LOOK_PAST);
            let limits = Look { wanted: FOR_CLUSTER.min(room), further: true };
            let queue = look(limits, fits, |limit| tx.queue_of(&cluster.name, &holder, limit))?;
            front.extend(queue.into_iter().map(|row| (Some(target.clone()), row)));
        }
        world.nodes.push(node);
    }
    for (target, row) in &front {
        let share = people.place(&row.holder);
        let called = row.target.clone();
        let target = target.clone().unwrap_or_else(|| called.clone());
        let (job, priority) = (row.job.name.clone(), row.job.priority);
        world.queue.push(Waiting { seq: row.job.seq, job, target, called, priority, share, needs: row.needs });
    }
    world.shares = people.shares(tx, now, half_life_ms)?;
    let rows: HashMap<i64, QueuedJob> = front.into_iter().map(|(_, row)| (row.job.seq, row)).collect();
    Ok((world, rows))
}

/// How many nodes a cluster may have that is ours to hand work to, one job a node. It gets its next ones in time, and more
/// would only be looked at again and again.
fn most_nodes(tx: &mut Tx<'_>, cluster: &ClusterRow) -> Result<Option<usize>, Error> {
    if !cluster.is_site() {
        return Ok(None);
    }
    let facts = tx.facts(&cluster.name)?;
    let most = facts.instance_types.iter().map(|kind| kind.fits_now).max().unwrap_or(0);
    Ok(facts.grows.then(|| usize::try_from(most).unwrap_or(usize::MAX / 2)))
}

/// What a place has, by priority and person.
fn handed(rows: &[HeldRow], place: &str, people: &mut People) -> Vec<Handed> {
    let there = rows.iter().filter(|row| row.cluster == place);
    let one = |row: &HeldRow| Handed {
        priority: row.priority,
        share: people.place(&row.held.holder),
        count: usize::try_from(row.held.jobs).unwrap_or(usize::MAX),
    };
    there.map(one).collect()
}

/// A cluster as a node: it has a scheduler of its own, so it gets all there is, as soon as it is heard of.
fn node_of(cluster: &ClusterRow, target: String, now: Timestamp) -> Node {
    let capacity = Resources { cpu_milli: u64::MAX, memory_bytes: u64::MAX, gpus: u32::MAX };
    let silent = (!cluster.answers(now, SILENT_MS)).then(|| cluster.last_heard(now));
    Node { name: cluster.shown().to_owned(), target, capacity, silent, handed: Vec::new(), window: usize::MAX }
}

/// How far a round looks.
struct Look {
    wanted: usize,
    /// Not for ever: those in front may be many that wait for a quota.
    further: bool,
}

/// The front of a queue: far behind it nothing can change. Jobs that could not run do not count, so that however many
/// of them stand in front, those behind are seen.
fn look(
    limits: Look,
    fits: impl Fn(&QueuedJob) -> bool,
    mut queue: impl FnMut(i64) -> Result<Vec<QueuedJob>, Error>,
) -> Result<Vec<QueuedJob>, Error> {
    let Look { wanted, further } = limits;
    let mut limit = wanted;
    loop {
        let found = queue(i64::try_from(limit).unwrap_or(i64::MAX))?;
        let fitting = found.iter().filter(|row| fits(row)).count();
        if found.len() < limit || fitting >= wanted || (further && limit > wanted.saturating_mul(FURTHER)) {
            return Ok(found);
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
            Decision::Place { seq, node, turn, because } => {
                let Some(QueuedJob { mut job, .. }) = jobs.remove(&seq) else { continue };
                let attempt = job.next_attempt();
                if job.apply(JobEvent::Placed(attempt), now).is_ok() {
                    tx.put_job(&job, None, now)?;
                    tx.put_turn(job.seq, turn)?;
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
