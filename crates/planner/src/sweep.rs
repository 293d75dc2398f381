//! Sweeps: which trial starts with which values, which is stopped, and when the search is over.
//!
//! A pass looks at the sweep, its seed and its trials, and nothing else. Values of a trial follow from the seed and its
//! number, for the Bayesian sampler from the history too, so a sweep that was interrupted goes on as it would have.
//! Invariants: trials are numbered from 0 without a gap; no more live at once than the limits say; a sweep ends once,
//! when nothing of it lives.

mod axes;
mod bayes;
pub(crate) mod chance;
mod draw;
mod policy;
mod series;

pub use series::Series;

use axes::{Axes, Point};
use domain::{
    Outcome, Timestamp,
    job::Failure,
    spec::sweep::{LONGEST_SECONDS, Rule, Sampling, Sweep, Values},
};

/// What a pass looks at.
#[derive(Debug, Clone, Copy)]
pub struct SweepWorld<'w> {
    pub sweep: &'w Sweep,
    /// Drawn when the sweep was accepted, or given by its file.
    pub seed: u64,
    pub since: Timestamp,
    pub now: Timestamp,
    /// Why it must come to an end; `None` while nobody asked.
    pub stop: Option<&'w str>,
    /// All that were started, in the order of their numbers.
    pub trials: &'w [Trial],
    /// What earlier sweeps tried, and how good it was: only the Bayesian sampler learns from them.
    pub earlier: &'w [(Values, f64)],
}

#[derive(Debug, Clone)]
pub struct Trial {
    pub number: u32,
    pub values: Values,
    pub stage: Stage,
    /// What it logged of the primary metric.
    pub series: Series,
    /// After how many values it was last judged by the early-termination policy.
    pub judged: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    Live,
    /// It was asked to stop and is not gone yet.
    Stopping,
    Completed,
    /// With why, in words.
    Failed(String),
    Canceled,
}

impl Stage {
    pub fn is_over(&self) -> bool {
        !matches!(self, Stage::Live | Stage::Stopping)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum SweepDecision {
    Start {
        number: u32,
        values: Values,
    },
    Stop {
        number: u32,
        because: String,
    },
    /// The policy let it go on after so many values.
    Keep {
        number: u32,
        judged: u64,
    },
    End {
        outcome: Outcome,
        best: Option<u32>,
    },
}

/// One pass.
pub fn advance(world: &SweepWorld<'_>) -> Vec<SweepDecision> {
    let live = world.trials.iter().filter(|trial| !trial.stage.is_over()).count();
    let wanted = wanted(world.sweep);
    let left = wanted.saturating_sub(world.trials.len());
    if live == 0 && left == 0 {
        return vec![end(world)];
    }
    if let Some(because) = halt(world) {
        return match live {
            0 => vec![SweepDecision::End { outcome: Outcome::Canceled { reason: because }, best: best(world) }],
            _ => stop_all(world, &because),
        };
    }
    let mut decisions = judge(world);
    let room = (world.sweep.limits.at_once() as usize).saturating_sub(live);
    decisions.extend(start(world, room.min(left)));
    decisions
}

/// When there is something to decide although nothing has happened.
pub fn wake_at(sweep: &Sweep, since: Timestamp) -> Timestamp {
    let seconds = sweep.limits.timeout.unwrap_or(LONGEST_SECONDS);
    Timestamp(since.0.saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX).saturating_mul(1000)))
}

/// The trial to take the outputs of: of those that completed, the one whose best value is best.
pub fn best(world: &SweepWorld<'_>) -> Option<u32> {
    let completed = world.trials.iter().filter(|trial| trial.stage == Stage::Completed);
    let costs = completed.filter_map(|trial| Some((trial.series.cost()?, trial.number)));
    costs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, number)| number)
}

/// How many trials there will be.
fn wanted(sweep: &Sweep) -> usize {
    let most = sweep.limits.max_total_trials as usize;
    match sweep.sampling_algorithm {
        Sampling::Grid => most.min(usize::try_from(Axes::of(&sweep.search_space, None).count()).unwrap_or(most)),
        Sampling::Random { .. } | Sampling::Bayesian => most,
    }
}

fn halt(world: &SweepWorld<'_>) -> Option<String> {
    if let Some(reason) = world.stop {
        return Some(reason.to_owned());
    }
    let seconds = world.sweep.limits.timeout.unwrap_or(LONGEST_SECONDS);
    (world.now >= wake_at(world.sweep, world.since)).then(|| format!("the sweep's timeout of {seconds} s was reached"))
}

fn stop_all(world: &SweepWorld<'_>, because: &str) -> Vec<SweepDecision> {
    let live = world.trials.iter().filter(|trial| trial.stage == Stage::Live);
    live.map(|trial| SweepDecision::Stop { number: trial.number, because: because.to_owned() }).collect()
}

fn judge(world: &SweepWorld<'_>) -> Vec<SweepDecision> {
    let Some(termination) = &world.sweep.early_termination else { return Vec::new() };
    let live = world.trials.iter().filter(|trial| trial.stage == Stage::Live);
    live.filter_map(|trial| {
        let at = policy::due(termination, trial.series.count(), trial.judged)?;
        let number = trial.number;
        Some(match policy::verdict(termination, &world.sweep.objective, trial, world.trials, at) {
            Some(because) => SweepDecision::Stop { number, because },
            None => SweepDecision::Keep { number, judged: at },
        })
    })
    .collect()
}

fn start(world: &SweepWorld<'_>, count: usize) -> Vec<SweepDecision> {
    if count == 0 {
        return Vec::new();
    }
    let logbase = match world.sweep.sampling_algorithm {
        Sampling::Random { logbase, .. } => logbase,
        Sampling::Grid | Sampling::Bayesian => None,
    };
    let axes = Axes::of(&world.sweep.search_space, logbase);
    let mut history = Vec::new();
    if world.sweep.sampling_algorithm == Sampling::Bayesian {
        history = learned(world, &axes);
    }
    let first = u32::try_from(world.trials.len()).unwrap_or(u32::MAX);
    let numbers = (first..).take(count);
    numbers
        .map(|number| {
            let values = match &world.sweep.sampling_algorithm {
                Sampling::Random { rule: Rule::Random, .. } => axes.values(&draw::random(&axes, world.seed, number)),
                Sampling::Random { rule: Rule::Sobol, .. } => axes.values(&draw::even(&axes, world.seed, number)),
                Sampling::Grid => axes.nth(u64::from(number)),
                Sampling::Bayesian => {
                    let point = bayes::suggest(&axes, world.seed, number, &history);
                    let values = axes.values(&point);
                    history.push((point, bayes::Result::Pending));
                    values
                }
            };
            SweepDecision::Start { number, values }
        })
        .collect()
}

/// What every trial so far says about its point.
fn learned(world: &SweepWorld<'_>, axes: &Axes) -> Vec<(Point, bayes::Result)> {
    let goal = world.sweep.objective.goal;
    let earlier = world.earlier.iter().filter(|(_, metric)| metric.is_finite());
    let earlier =
        earlier.filter_map(|(values, metric)| Some((axes.point(values)?, bayes::Result::Cost(goal.cost(*metric)))));
    let own = world.trials.iter().filter_map(|trial| {
        let result = match (&trial.stage, trial.series.cost()) {
            (Stage::Live | Stage::Stopping, _) => bayes::Result::Pending,
            (Stage::Completed | Stage::Canceled, Some(cost)) => bayes::Result::Cost(cost),
            _ => bayes::Result::Failed,
        };
        Some((axes.point(&trial.values)?, result))
    });
    earlier.chain(own).collect()
}

fn end(world: &SweepWorld<'_>) -> SweepDecision {
    let best = best(world);
    if world.trials.iter().any(|trial| trial.stage == Stage::Completed) {
        return SweepDecision::End { outcome: Outcome::Completed, best };
    }
    if let Some(reason) = world.stop {
        return SweepDecision::End { outcome: Outcome::Canceled { reason: reason.to_owned() }, best };
    }
    let first = world.trials.iter().find_map(|trial| match &trial.stage {
        Stage::Failed(why) => Some(format!("; trial {} failed first: {why}", trial.number)),
        _ => None,
    });
    let message = format!("none of {} trials completed{}", world.trials.len(), first.unwrap_or_default());
    SweepDecision::End { outcome: Outcome::Failed(Failure::new("UserError.NoTrialCompleted", message)), best }
}

#[cfg(test)]
mod tests;
