//! Sweeps on virtual time, with everything that goes wrong: trials that fail or are canceled by hand, news that come late
//! and out of order, passes that are lost or repeated, a sweep that is canceled or out of time.
//!
//! A failing seed names itself; `SWEEP_SEED=n` runs it alone and `SWEEP_SEEDS=n` that many.

use super::*;
use crate::sweep::chance::Chance;
use domain::spec::sweep::Goal;

const SEEDS: u64 = 60;

/// What a trial really does. The world hears of it later.
struct Truth {
    values: Values,
    logs: Vec<f64>,
    /// How many of them it has logged.
    logged: usize,
    known: usize,
    asked_to_stop: bool,
    stage: Stage,
    known_stage: Stage,
    judged: u64,
}

struct Sim {
    sweep: Sweep,
    seed: u64,
    chance: Chance,
    now: i64,
    stop: Option<&'static str>,
    trials: Vec<Truth>,
    ended: Option<(Outcome, Option<u32>)>,
}

#[test]
fn sweeps_keep_their_promises_whatever_happens() {
    let from_env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds: Vec<u64> = match from_env("SWEEP_SEED") {
        Some(seed) => vec![seed],
        None => (0..from_env("SWEEP_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    for seed in seeds {
        let end = std::panic::catch_unwind(|| Sim::new(seed).run());
        assert!(end.is_ok(), "the sweep of SWEEP_SEED={seed} broke a promise");
    }
}

#[test]
fn one_seed_has_one_history() {
    for seed in 0..5 {
        assert_eq!(Sim::new(seed).run(), Sim::new(seed).run(), "{seed}");
    }
}

impl Sim {
    fn new(seed: u64) -> Sim {
        let mut chance = Chance::at(seed, 77);
        let total = 1 + chance.below(14);
        let policies = [
            json!(null),
            json!({"type": "bandit", "slack_factor": 0.1, "evaluation_interval": 2}),
            json!({"type": "median_stopping", "delay_evaluation": 3}),
            json!({"type": "truncation_selection", "truncation_percentage": 40, "exclude_finished_jobs": true}),
            json!({"type": "asha", "factor": 2, "first": 1}),
        ];
        let algorithms =
            [json!("random"), json!({"type": "random", "rule": "sobol", "seed": 3}), json!("grid"), json!("bayesian")];
        let algorithm = &algorithms[chance.below(algorithms.len())];
        let space = match algorithm == "grid" {
            true => {
                json!({"x": {"type": "choice", "values": [0.1, 0.5, 0.9]}, "m": {"type": "choice", "values": ["a", {"k": {"type": "choice", "values": [1, 2]}}]}})
            }
            false => {
                json!({"x": {"type": "uniform", "min_value": 0, "max_value": 1}, "m": {"type": "choice", "values": ["a", {"k": {"type": "randint", "upper": 5}}]}})
            }
        };
        let timeout = if chance.unit() < 0.2 { 200 } else { 1_000_000 };
        let limits =
            json!({"max_total_trials": total, "max_concurrent_trials": 1 + chance.below(total), "timeout": timeout});
        let policy = policies[chance.below(policies.len())].clone();
        let more = json!({"search_space": space, "sampling_algorithm": algorithm, "limits": limits, "early_termination": policy});
        Sim { sweep: sweep(more), seed, chance, now: 0, stop: None, trials: Vec::new(), ended: None }
    }

    /// The history as text.
    fn run(mut self) -> String {
        let mut history = String::new();
        for _ in 0..4000 {
            self.happen();
            let known = self.known();
            let world =
                SweepWorld { seed: self.seed, now: Timestamp(self.now), stop: self.stop, ..world(&self.sweep, &known) };
            let decisions = advance(&world);
            if self.chance.unit() < 0.1 {
                assert_eq!(advance(&world), decisions, "the same world, the same decisions");
            }
            if self.chance.unit() < 0.15 {
                continue; // The pass was lost before it was recorded.
            }
            self.record(&decisions, &known);
            history += &format!("{decisions:?}");
            if let Some((outcome, best)) = &self.ended {
                self.check_end(outcome, *best, &known);
                return history;
            }
        }
        panic!("it never ended");
    }

    /// Time goes by: trials log and end, and news of it come in.
    fn happen(&mut self) {
        self.now += (self.chance.unit() * 8000.0) as i64;
        if self.stop.is_none() && self.chance.unit() < 0.003 {
            self.stop = Some("asked");
        }
        for trial in &mut self.trials {
            let chance = &mut self.chance;
            if !trial.stage.is_over() {
                let more = chance.below(4);
                trial.logged = (trial.logged + more).min(trial.logs.len());
                trial.stage = match chance.unit() {
                    luck if luck < 0.02 => Stage::Failed("it broke".into()),
                    luck if luck < 0.03 => Stage::Canceled,
                    luck if luck < 0.4 && trial.asked_to_stop => Stage::Canceled,
                    luck if luck < 0.7 && trial.logged == trial.logs.len() => Stage::Completed,
                    _ => trial.stage.clone(),
                };
            }
            // News of values and news of the end travel by themselves.
            if chance.unit() < 0.6 {
                trial.known += chance.below(trial.logged - trial.known + 1);
            }
            if chance.unit() < 0.5 {
                trial.known_stage = trial.stage.clone();
            }
        }
    }

    fn known(&self) -> Vec<Trial> {
        let trial = |(at, truth): (usize, &Truth)| {
            let stopping = truth.asked_to_stop && truth.known_stage == Stage::Live;
            Trial {
                number: u32::try_from(at).unwrap(),
                values: truth.values.clone(),
                stage: if stopping { Stage::Stopping } else { truth.known_stage.clone() },
                series: Series::of(Goal::Minimize, truth.logs[..truth.known].iter().copied()),
                judged: truth.judged,
            }
        };
        self.trials.iter().enumerate().map(trial).collect()
    }

    fn record(&mut self, decisions: &[SweepDecision], known: &[Trial]) {
        for decision in decisions {
            assert!(self.ended.is_none(), "nothing is decided after the end");
            match decision {
                SweepDecision::Start { number, values } => self.start(*number, values),
                SweepDecision::Stop { number, because } => {
                    assert_eq!(known[*number as usize].stage, Stage::Live, "only what lives is stopped");
                    assert!(!because.is_empty());
                    self.trials[*number as usize].asked_to_stop = true;
                }
                SweepDecision::Keep { number, judged } => {
                    let trial = &mut self.trials[*number as usize];
                    assert!(
                        *judged > trial.judged && *judged <= trial.known as u64,
                        "it is judged once, by what it has"
                    );
                    trial.judged = *judged;
                }
                SweepDecision::End { outcome, best } => {
                    assert!(known.iter().all(|trial| trial.stage.is_over()), "nothing lives at the end");
                    self.ended = Some((outcome.clone(), *best));
                }
            }
        }
        let live = self.trials.iter().filter(|trial| !trial.known_stage.is_over()).count();
        assert!(live <= self.sweep.limits.at_once() as usize, "{live} at once");
        assert!(self.trials.len() <= wanted(&self.sweep), "no more than were asked for");
    }

    fn start(&mut self, number: u32, values: &Values) {
        assert_eq!(number as usize, self.trials.len(), "numbers have no gap, and no trial starts twice");
        assert!(self.stop.is_none(), "nothing starts once it is asked to stop");
        let axes = Axes::of(&self.sweep.search_space, None);
        assert!(axes.point(values).is_some(), "values are of the space: {values:?}");
        let expected = match self.sweep.sampling_algorithm {
            Sampling::Random { rule: Rule::Random, .. } => Some(axes.values(&draw::random(&axes, self.seed, number))),
            Sampling::Random { rule: Rule::Sobol, .. } => Some(axes.values(&draw::even(&axes, self.seed, number))),
            Sampling::Grid => Some(axes.nth(u64::from(number))),
            Sampling::Bayesian => None,
        };
        assert!(expected.is_none_or(|expected| &expected == values), "the sequence is that of its seed");
        let count = self.chance.below(9);
        let mut level = values["x"].as_f64().unwrap();
        let mut log = |_| {
            level *= 0.8 + 0.3 * self.chance.unit();
            if self.chance.unit() < 0.05 { f64::NAN } else { level }
        };
        let logs = (0..count).map(&mut log).collect();
        self.trials.push(Truth {
            values: values.clone(),
            logs,
            logged: 0,
            known: 0,
            asked_to_stop: false,
            stage: Stage::Live,
            known_stage: Stage::Live,
            judged: 0,
        });
    }

    fn check_end(&self, outcome: &Outcome, best: Option<u32>, known: &[Trial]) {
        let completed: Vec<&Trial> = known.iter().filter(|trial| trial.stage == Stage::Completed).collect();
        let all = known.len() == wanted(&self.sweep);
        match outcome {
            Outcome::Completed => assert!(all && !completed.is_empty()),
            Outcome::Failed(_) => assert!(all && completed.is_empty()),
            Outcome::Canceled { reason } => assert!(self.stop.is_some() || reason.contains("timeout")),
        }
        let least = completed.iter().filter_map(|trial| trial.series.best()).fold(f64::INFINITY, f64::min);
        assert_eq!(best.and_then(|best| known[best as usize].series.best()).unwrap_or(f64::INFINITY), least);
    }
}
