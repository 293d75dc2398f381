//! The conducting loop: jobs that consist of other jobs are led from their first child to their end.
//!
//! A pass over one parent is one transaction: what happened to its children is read, what follows is decided and
//! written. What a conductor remembers between passes only saves time; after a failed pass or a restart it is made anew
//! from what is on record, so that no child is lost or begun twice.

mod left;
mod pipeline;
mod reuse;
mod sweep;
mod traces;

use crate::{Context, schedule, until};
use domain::{Job, JobEvent, JobState, Outcome, Timestamp};
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};
use store::{Bell, Child, Error, Tx};
use tokio::sync::watch;

/// What leads one parent.
pub(crate) trait Conductor: Send {
    /// Takes in which children have ended and writes what follows.
    fn pass(&mut self, tx: &mut Tx<'_>, parent: &mut Parent, ended: &[Child]) -> Result<(), Error>;

    /// Whether time or metrics alone may give it something to do.
    fn is_restless(&self) -> bool {
        false
    }
}

/// A parent under a pass.
#[derive(Clone)]
pub(crate) struct Parent {
    pub(crate) job: Job,
    /// Its submitter and experiment, which are its children's too.
    pub(crate) created_by: String,
    pub(crate) experiment: String,
    pub(crate) now: Timestamp,
}

impl Parent {
    /// Its state moves on, with the event that tells of it.
    pub(crate) fn happens(&mut self, tx: &mut Tx<'_>, event: JobEvent, kind: &str, text: &str) -> Result<(), Error> {
        self.job.apply(event, self.now).map_err(|illegal| Error::Decode(illegal.to_string()))?;
        tx.add_event(self.job.seq, self.now, kind, text)?;
        tx.put_job(&self.job, Some(text), self.now)?;
        self.job.version += 1;
        Ok(())
    }

    /// It is over.
    pub(crate) fn ends(&mut self, tx: &mut Tx<'_>, outcome: Outcome, text: &str) -> Result<(), Error> {
        self.happens(tx, JobEvent::Over(outcome), "ended", text)
    }
}

/// Those who lead the parents there are.
#[derive(Default)]
pub struct Conductors(HashMap<i64, Held>);

struct Held {
    conductor: Box<dyn Conductor>,
    created_by: String,
    experiment: String,
    /// The parent as it was after the last pass. Its row is as long as its graph, and is not read for every step.
    job: Job,
}

pub(crate) async fn run(cx: Context, mut stop: watch::Receiver<bool>) {
    let (mut bell, mut points) = (cx.store.changed(Bell::Parents), cx.store.changed(Bell::Points));
    let mut conductors = Conductors::default();
    loop {
        bell.mark_unchanged();
        points.mark_unchanged();
        if let Err(error) = conduct(&cx, &mut conductors).await {
            tracing::error!(error = &error as &dyn std::error::Error, "a conducting round failed");
        }
        let restless = conductors.0.values().any(|held| held.conductor.is_restless());
        let next = async {
            let points = async {
                match restless {
                    true => drop(points.changed().await),
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = bell.changed() => {}
                () = points => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        };
        if !until(&mut stop, next).await {
            return;
        }
    }
}

/// One round: how many parents had something to do. One that cannot be led does not hold up the others.
pub async fn conduct(cx: &Context, conductors: &mut Conductors) -> Result<usize, Error> {
    let parents = cx.store.look(|tx| {
        let parents = tx.live_parents()?.into_iter();
        parents.map(|(seq, phase)| Ok((seq, phase, tx.has_news(seq)?))).collect::<Result<Vec<_>, Error>>()
    });
    let parents = parents.await?;
    let live: HashSet<i64> = parents.iter().map(|(seq, ..)| *seq).collect();
    conductors.0.retain(|seq, _| live.contains(seq));
    let mut busy = 0;
    for (seq, phase, news) in parents {
        // Nothing else of a parent matters to who leads it, and only that changes its phase.
        let held = conductors.0.remove(&seq).filter(|held| held.job.state.name() == phase);
        match held {
            Some(held) if !news && !held.conductor.is_restless() => {
                conductors.0.insert(seq, held);
                continue;
            }
            _ => busy += 1,
        }
        let (now, half_life_ms, register) = ((cx.clock)(), cx.sharing.half_life_ms, cx.register);
        match cx.store.write(move |tx| pass(tx, (seq, held), (now, half_life_ms), register)).await {
            Ok(Some(held)) => drop(conductors.0.insert(seq, held)),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(
                    job.seq = seq,
                    error = &error as &dyn std::error::Error,
                    "a job cannot be led this time"
                );
            }
        }
    }
    Ok(busy)
}

/// A pass over one parent and all that goes with it; who leads it on, unless it is over.
fn pass(
    tx: &mut Tx<'_>,
    (seq, held): (i64, Option<Held>),
    (now, half_life_ms): (Timestamp, i64),
    register: fn(&mut Tx<'_>, &Job, Timestamp) -> Result<(), Error>,
) -> Result<Option<Held>, Error> {
    let Some(held) = held.map_or_else(|| hold(tx, seq), |held| Ok(Some(held)))? else { return Ok(None) };
    let held = lead(tx, held, now)?;
    if matches!(held.job.state, JobState::Ended { outcome: Outcome::Completed, .. }) {
        register(tx, &held.job, now)?;
    }
    // Children that can begin at once do not wait for a round of their own.
    if tx.will_ring(Bell::Queue) {
        schedule::place(tx, now, half_life_ms)?;
    }
    Ok((!held.job.state.is_ended()).then_some(held))
}

fn lead(tx: &mut Tx<'_>, held: Held, now: Timestamp) -> Result<Held, Error> {
    let Held { mut conductor, created_by, experiment, job } = held;
    let seq = job.seq;
    let mut parent = Parent { job, created_by, experiment, now };
    if matches!(parent.job.state, JobState::Queued { .. }) {
        parent.happens(tx, JobEvent::Conducted, "conducting", "its first steps begin")?;
    }
    let ended = tx.unheard_children(seq)?;
    conductor.pass(tx, &mut parent, &ended)?;
    tx.hear(&ended.iter().map(|child| child.job.seq).collect::<Vec<_>>())?;
    let Parent { job, created_by, experiment, .. } = parent;
    Ok(Held { conductor, created_by, experiment, job })
}

/// Who leads a parent, made from what is on record; nobody one that is over.
fn hold(tx: &mut Tx<'_>, seq: i64) -> Result<Option<Held>, Error> {
    let Some(job) = tx.job_by_seq(seq)?.filter(|job| !job.state.is_ended()) else { return Ok(None) };
    let (created_by, experiment) = tx.origin(seq)?;
    Ok(Some(Held { conductor: conductor(tx, &job)?, created_by, experiment, job }))
}

fn conductor(tx: &mut Tx<'_>, job: &Job) -> Result<Box<dyn Conductor>, Error> {
    match tx.kind(job.seq)?.as_str() {
        "Pipeline" => Ok(Box::new(pipeline::Pipeline::load(tx, job)?)),
        "Sweep" => Ok(Box::new(sweep::Sweep::load(tx, job)?)),
        other => Err(Error::Decode(format!("nothing leads jobs of kind `{other}`"))),
    }
}
