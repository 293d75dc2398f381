//! What a waiting job waits for, as of now: quotas, who goes first and why, and when there may be room for it.

use crate::{app::App, http::sharing};
use domain::{
    JobState, Plan, Resources, Timestamp,
    sharing::{
        Holder, Team,
        estimate::{self, Busy},
        fair,
    },
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use store::{ComputeRow, Error, HERE, HeldRow, HolderJob, JobRow, Tx};

/// How many people a sentence names.
const NAMED: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Wait {
    /// Of each quota that counts it, what is in use and by whom.
    pub(super) quotas: Vec<String>,
    /// Who goes first although their jobs have the same priority.
    pub(super) first: Vec<String>,
    pub(super) expected: Option<String>,
    /// Why others of lower priority go on where it waits.
    pub(super) stays: Option<String>,
}

/// Nothing for a job that does not wait.
pub(super) fn of(app: &App, tx: &mut Tx<'_>, row: &JobRow) -> Result<Wait, Error> {
    if !matches!(row.job.state, JobState::Queued { .. } | JobState::Placed { .. }) {
        return Ok(Wait::default());
    }
    let now = app.now();
    let holder = Holder { workspace: row.job.workspace.clone(), person: row.created_by.clone() };
    let ledger = sharing::ledger(tx, Some(&holder.workspace), now)?;
    let expected = match tx.plan(row.job.seq)? {
        Some(plan) => Rooms::default().expected(app, tx, (&row.cluster, &plan))?,
        None => None,
    };
    Ok(Wait {
        quotas: ledger.in_use(&holder, &row.target),
        first: first(app, tx, row, &holder)?,
        expected,
        stays: stays(tx, row)?,
    })
}

/// Who says whether a job of lower priority makes way, where one goes on.
fn stays(tx: &mut Tx<'_>, row: &JobRow) -> Result<Option<String>, Error> {
    if row.cluster == HERE || !matches!(row.job.state, JobState::Placed { .. }) {
        return Ok(None);
    }
    let facts = tx.facts(&row.cluster)?;
    let lower = tx.holders(&row.cluster)?.iter().any(|one| one.job.priority < row.job.priority);
    if facts.places.is_some() || !lower {
        return Ok(None);
    }
    let who = match facts.gangs.as_str() {
        "slurm" => "who makes way is for Slurm to say, by `qos` and `partition`".to_owned(),
        "steward" => {
            format!("nobody makes way there unless the file of `{}` says `preemption: lower-priority`", row.target)
        }
        _ => "who makes way is for Kubernetes to say, by priority classes such as the target's `priority_class_high`"
            .to_owned(),
    };
    Ok(Some(format!("a job of lower priority goes on on `{}`: {who}", row.target)))
}

/// Those who have used less lately and wait for the same.
fn first(app: &App, tx: &mut Tx<'_>, row: &JobRow, me: &Holder) -> Result<Vec<String>, Error> {
    let now = app.now();
    let half_life_ms = i64::try_from(app.settings.half_life.as_millis()).unwrap_or(i64::MAX);
    let held = tx.held(now)?;
    let waits = |one: &&HeldRow| one.pending > 0 && one.cluster == row.cluster && one.priority == row.job.priority;
    let mut others: BTreeSet<Holder> = held.iter().filter(waits).map(|one| one.held.holder.clone()).collect();
    for other in tx.waiting_holders(&row.cluster)? {
        let front = tx.queue_of(&row.cluster, &other, 1)?;
        if front.first().is_some_and(|first| first.job.priority >= row.job.priority) {
            others.insert(other);
        }
    }
    others.remove(me);
    let used = |tx: &mut Tx<'_>, holder: &Holder| {
        let busy: u64 = held.iter().filter(|one| one.held.holder == *holder).map(|one| one.busy).sum();
        tx.used(holder, now, half_life_ms).map(|ended| ended + busy as f64)
    };
    let mine = used(tx, me)?;
    let mut ahead = Vec::new();
    for other in others {
        let theirs = used(tx, &other)?;
        if theirs < mine {
            ahead.push((theirs, other));
        }
    }
    ahead.sort_by(|a, b| a.0.total_cmp(&b.0));
    let teams = if ahead.is_empty() { Vec::new() } else { tx.teams(Some(&me.workspace))? };
    let said = |(theirs, other): &(f64, Holder)| {
        let (theirs, mine) = (fair::humane(*theirs), fair::humane(mine));
        let (first, second) = (called(other, &teams), called(me, &teams));
        format!("{first} goes first, having used {theirs} lately to the {mine} of {second}")
    };
    Ok(ahead.iter().take(NAMED).map(said).collect())
}

/// Someone by name, with their teams.
fn called(holder: &Holder, teams: &[Team]) -> String {
    let theirs = teams.iter().filter(|team| team.workspace == holder.workspace && team.people.contains(&holder.person));
    let theirs: Vec<String> = theirs.map(|team| format!("team `{}`", team.name)).collect();
    match theirs.is_empty() {
        true => format!("`{}`", holder.person),
        false => format!("`{}` ({})", holder.person, theirs.join(", ")),
    }
}

/// What is free at each place, looked at once.
#[derive(Default)]
pub(super) struct Rooms(BTreeMap<String, Option<Room>>);

impl Rooms {
    /// When there is room for a job that waits; nothing where its place does not say, or is a scheduler of its own.
    pub(super) fn expected(
        &mut self,
        app: &App,
        tx: &mut Tx<'_>,
        (cluster, plan): (&str, &Plan),
    ) -> Result<Option<String>, Error> {
        if !self.0.contains_key(cluster) {
            let room = Room::look(app, tx, cluster)?;
            self.0.insert(cluster.to_owned(), room);
        }
        let Some(Some(room)) = self.0.get(cluster) else { return Ok(None) };
        let needs = room.counts.of(&plan.needs(), plan.parts());
        Ok(estimate::when(&needs, &room.free, room.busy.clone()))
    }
}

/// What is free at a place and what holds the rest.
struct Room {
    counts: Counts,
    free: Resources,
    busy: Vec<Busy>,
}

/// What a job takes of a place.
#[derive(Clone, Copy)]
enum Counts {
    /// What it asks for.
    Amounts,
    /// Whole nodes.
    Nodes,
    /// One slot, whatever it is.
    Slots,
}

impl Counts {
    fn of(self, needs: &Resources, parts: u32) -> Resources {
        match self {
            Counts::Amounts => *needs,
            Counts::Nodes => Resources::places(parts.into()),
            Counts::Slots => Resources::places(1),
        }
    }
}

/// How a place is counted and what there is of it in all; `None` before it has said so, or where others do the counting.
fn all_of(app: &App, tx: &mut Tx<'_>, cluster: &str) -> Result<Option<(Counts, Resources)>, Error> {
    if cluster == HERE {
        return Ok(app.capacity().map(|has| (Counts::Amounts, has)));
    }
    let facts = tx.facts(cluster)?;
    let Some(kind) = facts.instance_types.first().filter(|_| facts.gangs == "steward") else { return Ok(None) };
    let managed = match tx.targets_on(cluster)?.pop() {
        Some(target) => tx.compute(&target.workspace, &target.target.compute)?.is_some_and(|row| is_managed(&row)),
        None => false,
    };
    if managed {
        return Ok(Some((Counts::Nodes, Resources::places(kind.fits_now))));
    }
    let cores = facts.nodes.iter().map(|node| node.allocatable.cpu_milli).sum::<u64>();
    Ok(Some((Counts::Slots, Resources::places(cores / kind.requests.cpu_milli.max(1)))))
}

fn is_managed(row: &ComputeRow) -> bool {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    body["properties"]["computeType"] == "AmlCompute"
}

impl Room {
    fn look(app: &App, tx: &mut Tx<'_>, cluster: &str) -> Result<Option<Room>, Error> {
        let (Some((counts, mut free)), now) = (all_of(app, tx, cluster)?, app.now()) else { return Ok(None) };
        let (mut busy, mut usual) = (Vec::new(), HashMap::new());
        for HolderJob { job, needs, parts, experiment, timeout, .. } in tx.holders(cluster)? {
            let needs = counts.of(&needs, parts);
            free = free.minus(&needs);
            let started = job.state.started_at();
            let end = |ms: i64| started.map(|at| Timestamp((at.0 + ms).max(now.0)));
            let limit =
                timeout.and_then(|seconds| i64::try_from(seconds).ok()).and_then(|seconds| seconds.checked_mul(1000));
            let length = match usual.get(&(job.workspace.clone(), experiment.clone())) {
                Some(known) => *known,
                None => tx.usual_length(&job.workspace, &experiment)?,
            };
            usual.insert((job.workspace.clone(), experiment), length);
            let likely = length.and_then(end);
            busy.push(Busy { name: job.name.to_string(), needs, latest: limit.and_then(end), likely });
        }
        Ok(Some(Room { counts, free, busy }))
    }
}
