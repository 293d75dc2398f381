//! A sweep's conductor: trials become jobs with values of their own, the bad are stopped, the best is the sweep's.
//!
//! What trials logged is read as it comes in. After a restart it is read anew, and values are drawn as they would have
//! been: nothing of a search is kept but what was accepted, what its trials are, and how far each was judged already.

use super::{
    Conductor, Parent,
    pipeline::{free_name, may_go_to},
};
use domain::{
    Job, JobState, Outcome, Search,
    job::Failure,
    spec::sweep::{Sweep as Spec, Values},
};
use planner::sweep::{Series, Stage, SweepDecision, SweepWorld, Trial, advance};
use serde_json::{Value, json};
use std::collections::HashMap;
use store::{Child, ChildOf, Error, NewJob, Tx};

/// The kind of event that tells of trials without the metric.
const WARNING: &str = "warning";

pub(super) struct Sweep {
    search: Search,
    /// By number.
    trials: Vec<Trial>,
    heard: Vec<Heard>,
    /// Whether it was said that trials complete without the metric.
    warned: bool,
    note: String,
}

/// What is known of a trial's job.
struct Heard {
    seq: i64,
    run: i64,
    /// The number of the last request that logged something.
    last: i64,
}

impl Sweep {
    /// From what is on record.
    pub(super) fn load(tx: &mut Tx<'_>, job: &Job) -> Result<Sweep, Error> {
        let search: Search = tx
            .conductor(job.seq)?
            .ok_or_else(|| Error::Decode(format!("sweep `{}` has no search on record", job.name)))?;
        let mut sweep = Sweep { search, trials: Vec::new(), heard: Vec::new(), warned: false, note: String::new() };
        sweep.warned = tx.events(job.seq)?.iter().any(|event| event.kind == WARNING);
        let children = tx.children(job.seq)?;
        let rows = tx.jobs_by_seq(&children.iter().map(|child| child.job.seq).collect::<Vec<_>>())?;
        let bodies: HashMap<i64, String> = rows.into_iter().map(|row| (row.job.seq, row.body)).collect();
        for child in children {
            let body = bodies.get(&child.job.seq).and_then(|body| serde_json::from_str::<Value>(body).ok());
            sweep.add(tx, &child.job, body.as_ref().and_then(Search::values_of).unwrap_or_default())?;
        }
        Ok(sweep)
    }

    fn spec(&self) -> &Spec {
        &self.search.sweep
    }

    fn add(&mut self, tx: &mut Tx<'_>, job: &Job, values: Values) -> Result<(), Error> {
        let run = tx.run(&job.workspace, job.name.as_str())?;
        let run = run.ok_or_else(|| Error::Decode(format!("trial `{}` has no run", job.name)))?.seq;
        let number = u32::try_from(self.trials.len()).unwrap_or(u32::MAX);
        let series = Series::new(self.spec().objective.goal);
        let judged = tx.conductor::<Value>(job.seq)?.and_then(|kept| kept["judged"].as_u64()).unwrap_or(0);
        self.trials.push(Trial { number, values, stage: stage(&job.state), series, judged });
        self.heard.push(Heard { seq: job.seq, run, last: -1 });
        self.listen(tx, number as usize)
    }

    /// Takes in what a trial has logged since the last time.
    fn listen(&mut self, tx: &mut Tx<'_>, at: usize) -> Result<(), Error> {
        let objective = &self.search.sweep.objective;
        let (trial, heard) = (&mut self.trials[at], &mut self.heard[at]);
        let mut since = tx.points_since(heard.run, heard.last)?;
        heard.last = since.last;
        if since.gap {
            let all = tx.history(heard.run, &objective.primary_metric)?;
            trial.series = Series::of(objective.goal, all.iter().map(|point| point.value));
            return Ok(());
        }
        let new = since.points.remove(&objective.primary_metric).unwrap_or_default();
        new.iter().for_each(|point| trial.series.push(point.value));
        Ok(())
    }

    fn hear(&mut self, tx: &mut Tx<'_>, parent: &Parent, child: &Child) -> Result<(), Error> {
        let Some(at) = self.heard.iter().position(|heard| heard.seq == child.job.seq) else { return Ok(()) };
        self.listen(tx, at)?;
        self.trials[at].stage = stage(&child.job.state);
        let silent = self.trials.iter().all(|trial| trial.series.count() == 0);
        if silent && !self.warned && self.trials[at].stage == Stage::Completed {
            let text = self.silence(tx, at)?;
            tx.add_event(parent.job.seq, parent.now, WARNING, &text)?;
            self.warned = true;
        }
        Ok(())
    }

    /// That a trial completed without the metric, and what it logged instead.
    fn silence(&self, tx: &mut Tx<'_>, at: usize) -> Result<String, Error> {
        let run = self.heard[at].run;
        let logged = tx.latest_of(&[run])?.remove(&run).unwrap_or_default();
        let names: Vec<String> = logged.iter().take(10).map(|latest| format!("`{}`", latest.key)).collect();
        let instead = if names.is_empty() { "no metric at all".to_owned() } else { names.join(", ") };
        let metric = &self.spec().objective.primary_metric;
        Ok(format!("trial {at} completed without logging `{metric}`, so it cannot be compared; it logged {instead}"))
    }

    fn start(&mut self, tx: &mut Tx<'_>, parent: &Parent, values: Values) -> Result<(), Error> {
        let step = self.trials.len().to_string();
        let name = free_name(tx, parent, None, &step)?;
        let (plan, body) = self.search.job_of(&name, &values).map_err(|error| Error::Decode(error.to_string()))?;
        let trial = &self.search.trial;
        let new = NewJob {
            workspace: parent.job.workspace.clone(),
            name,
            body: body.to_string(),
            plan,
            kind: "Command",
            experiment: parent.experiment.clone(),
            target: trial.target.clone(),
            cluster: trial.cluster.clone(),
            priority: parent.job.priority,
            max_retries: trial.max_retries,
            registers: false,
            created_by: parent.created_by.clone(),
            at: parent.now,
            parent: Some(ChildOf { parent: parent.job.seq, name: parent.job.name.to_string(), step }),
            reused: None,
        };
        let seq = tx.insert_job(&new)?;
        may_go_to(tx, seq, &trial.places, &new.plan)?;
        let job = tx.job_by_seq(seq)?.ok_or_else(|| Error::Decode(format!("trial {seq} is gone")))?;
        self.add(tx, &job, values)
    }

    /// The best trial's outputs become the sweep's, and its name and metric are told.
    fn end(&self, tx: &mut Tx<'_>, parent: &mut Parent, outcome: Outcome, best: Option<u32>) -> Result<(), Error> {
        let metric = &self.spec().objective.primary_metric;
        let outcome = match outcome {
            // Steps that wait for its outputs would wait for nothing.
            Outcome::Completed if best.is_none() && parent.job.parent.is_some() && self.has_outputs() => {
                let message = format!(
                    "no trial that completed logged `{metric}`, so none is the best and there are no outputs to pass on"
                );
                Outcome::Failed(Failure::new("UserError.NoBestTrial", message))
            }
            other => other,
        };
        let mut text = match &outcome {
            Outcome::Completed => format!("completed; {} trials are over", self.trials.len()),
            Outcome::Failed(failure) => failure.message.clone(),
            Outcome::Canceled { reason } => format!("canceled: {reason}"),
        };
        match best.map(|number| number as usize) {
            Some(at) => {
                let value = self.trials[at].series.best().unwrap_or(f64::NAN);
                text += &format!("; the best is trial {at} with `{metric}` {value}");
                self.promote(tx, parent, at, value)?;
            }
            None if outcome == Outcome::Completed => {
                text += &format!("; no trial that completed logged `{metric}` as a number, so none is the best");
            }
            None => {}
        }
        parent.ends(tx, outcome, &text)
    }

    fn has_outputs(&self) -> bool {
        !self.search.trial.plan.outputs.is_empty()
    }

    fn promote(&self, tx: &mut Tx<'_>, parent: &Parent, at: usize, value: f64) -> Result<(), Error> {
        let (seq, best) = (parent.job.seq, self.heard[at].seq);
        let (mut plan, theirs) = (tx.plan(seq)?.unwrap_or_default(), tx.plan(best)?.unwrap_or_default());
        plan.outputs = theirs.outputs;
        tx.put_plan(seq, &plan)?;
        let name = tx.job_by_seq(best)?.map(|job| job.name.to_string()).unwrap_or_default();
        let Some(row) = tx.jobs_by_seq(&[seq])?.pop() else { return Ok(()) };
        let mut body: Value = serde_json::from_str(&row.body).map_err(|error| Error::Decode(error.to_string()))?;
        body["properties"]["best_child_run_id"] = json!(name);
        body["properties"]["score"] = json!(value.to_string());
        tx.put_job_body(seq, &body.to_string(), row.archived, parent.now)
    }

    fn tell(&mut self, tx: &mut Tx<'_>, parent: &Parent) -> Result<(), Error> {
        let over = self.trials.iter().filter(|trial| trial.stage.is_over()).count();
        let mut note = format!("{over} trials are over, {} under way", self.trials.len() - over);
        if let Some(best) = planner::sweep::best(&self.world(parent, None)) {
            let value = self.trials[best as usize].series.best().unwrap_or(f64::NAN);
            note += &format!("; trial {best} has the best `{}`, {value}", self.spec().objective.primary_metric);
        }
        if note != self.note {
            tx.put_note(parent.job.seq, &note)?;
            self.note = note;
        }
        Ok(())
    }

    fn world<'w>(&'w self, parent: &Parent, stop: Option<&'w str>) -> SweepWorld<'w> {
        SweepWorld {
            sweep: &self.search.sweep,
            seed: self.search.seed,
            since: parent.job.state.started_at().unwrap_or(parent.now),
            now: parent.now,
            stop,
            trials: &self.trials,
            earlier: &self.search.earlier,
        }
    }
}

impl Conductor for Sweep {
    fn pass(&mut self, tx: &mut Tx<'_>, parent: &mut Parent, ended: &[Child]) -> Result<(), Error> {
        for child in ended {
            self.hear(tx, parent, child)?;
        }
        for at in 0..self.trials.len() {
            if self.trials[at].stage == Stage::Live {
                self.listen(tx, at)?;
            }
        }
        let stop = match &parent.job.state {
            JobState::Halting { reason, .. } => Some(reason.clone()),
            _ => None,
        };
        for decision in advance(&self.world(parent, stop.as_deref())) {
            match decision {
                SweepDecision::Start { values, .. } => self.start(tx, parent, values)?,
                SweepDecision::Stop { number, because } => {
                    tx.stop_job(self.heard[number as usize].seq, &because, parent.now)?;
                    self.trials[number as usize].stage = Stage::Stopping;
                }
                SweepDecision::Keep { number, judged } => {
                    self.trials[number as usize].judged = judged;
                    // Others may have logged more by the time that this is asked again.
                    tx.put_conductor(self.heard[number as usize].seq, &json!({"judged": judged}))?;
                }
                SweepDecision::End { outcome, best } => return self.end(tx, parent, outcome, best),
            }
        }
        self.tell(tx, parent)
    }

    fn is_restless(&self) -> bool {
        true
    }
}

fn stage(state: &JobState) -> Stage {
    match state {
        JobState::Stopping { .. } | JobState::Halting { .. } => Stage::Stopping,
        JobState::Ended { outcome, .. } => match outcome {
            Outcome::Completed => Stage::Completed,
            Outcome::Failed(failure) => Stage::Failed(failure.message.clone()),
            Outcome::Canceled { .. } => Stage::Canceled,
        },
        _ => Stage::Live,
    }
}
