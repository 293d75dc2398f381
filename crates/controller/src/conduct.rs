//! The conducting loop: jobs that consist of other jobs are led from their first child to their end.
//!
//! A pass over one parent is one transaction: what happened to its children is read, what follows is decided and
//! written. What a conductor remembers between passes only saves time; after a failed pass or a restart it is made anew
//! from what is on record, so that no child is lost or begun twice.

mod pipeline;
mod reuse;
mod sweep;

use crate::{Context, until};
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
    /// The parent as it was after the last pass.
    version: i64,
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
    let (parents, news) = cx
        .store
        .look(|tx| {
            let parents = tx.live_parents()?;
            let news = if parents.is_empty() { Vec::new() } else { tx.parents_with_news()? };
            Ok((parents, news.into_iter().collect::<HashSet<i64>>()))
        })
        .await?;
    let live: HashSet<i64> = parents.iter().map(|(job, _)| job.seq).collect();
    conductors.0.retain(|seq, _| live.contains(seq));
    let mut busy = 0;
    for (job, kind) in parents {
        let quiet = |held: &Held| held.version == job.version && !held.conductor.is_restless();
        if !news.contains(&job.seq) && conductors.0.get(&job.seq).is_some_and(quiet) {
            continue;
        }
        let (seq, name, now) = (job.seq, job.name, (cx.clock)());
        let (held, register) = (conductors.0.remove(&seq), cx.register);
        let pass = move |tx: &mut Tx<'_>| {
            let (held, job) = lead(tx, seq, &kind, held, now)?;
            if let Some(job) =
                job.filter(|job| matches!(job.state, JobState::Ended { outcome: Outcome::Completed, .. }))
            {
                register(tx, &job, now)?;
            }
            Ok(held)
        };
        match cx.store.write(pass).await {
            Ok(Some(held)) => drop(conductors.0.insert(seq, held)),
            Ok(None) => {}
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "job `{name}` cannot be led this time");
            }
        }
        busy += 1;
    }
    Ok(busy)
}

/// A pass over one parent; who leads it on, unless it is over, and what it is by now.
fn lead(
    tx: &mut Tx<'_>,
    seq: i64,
    kind: &str,
    held: Option<Held>,
    now: Timestamp,
) -> Result<(Option<Held>, Option<Job>), Error> {
    let Some(job) = tx.job_by_seq(seq)?.filter(|job| !job.state.is_ended()) else { return Ok((None, None)) };
    let mut held = match held {
        Some(held) => held,
        None => {
            let (created_by, experiment) = tx.origin(seq)?;
            Held { conductor: conductor(tx, &job, kind)?, created_by, experiment, version: job.version }
        }
    };
    let mut parent = Parent { job, created_by: held.created_by.clone(), experiment: held.experiment.clone(), now };
    if matches!(parent.job.state, JobState::Queued { .. }) {
        parent.happens(tx, JobEvent::Conducted, "conducting", "its first steps begin")?;
    }
    let ended = tx.unheard_children(seq)?;
    held.conductor.pass(tx, &mut parent, &ended)?;
    tx.hear(&ended.iter().map(|child| child.job.seq).collect::<Vec<_>>())?;
    held.version = parent.job.version;
    Ok(((!parent.job.state.is_ended()).then_some(held), Some(parent.job)))
}

/// Makes what leads a parent from what is on record.
fn conductor(tx: &mut Tx<'_>, job: &Job, kind: &str) -> Result<Box<dyn Conductor>, Error> {
    match kind {
        "Pipeline" => Ok(Box::new(pipeline::Pipeline::load(tx, job)?)),
        "Sweep" => Ok(Box::new(sweep::Sweep::load(tx, job)?)),
        other => Err(Error::Decode(format!("nothing leads jobs of kind `{other}`"))),
    }
}
