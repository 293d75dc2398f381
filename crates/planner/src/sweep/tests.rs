//! Whole sweeps, pass by pass.

mod sim;

use super::*;
use serde_json::{Value, json};

/// A sweep over one number, with more keys; it minimizes `loss`.
fn sweep(more: Value) -> Sweep {
    let mut tree = json!({
        "search_space": {"x": {"type": "uniform", "min_value": 0, "max_value": 1}},
        "objective": {"goal": "minimize", "primary_metric": "loss"},
        "limits": {"max_total_trials": 4, "max_concurrent_trials": 2},
    });
    for (key, value) in more.as_object().unwrap() {
        tree[key] = value.clone();
    }
    Sweep::of(&tree).unwrap()
}

fn world<'w>(sweep: &'w Sweep, trials: &'w [Trial]) -> SweepWorld<'w> {
    SweepWorld { sweep, seed: 1, since: Timestamp(0), now: Timestamp(1000), stop: None, trials, earlier: &[] }
}

/// Trials in order: `.` lives, `s` is stopping, `x` failed, `c` was canceled, a number completed with it.
fn trials(text: &str) -> Vec<Trial> {
    let trial = |(at, word): (usize, &str)| {
        let value = word.parse::<f64>().ok();
        Trial {
            number: u32::try_from(at).unwrap(),
            values: Values::from([("x".into(), json!(0.1))]),
            stage: match word {
                "." => Stage::Live,
                "s" => Stage::Stopping,
                "x" => Stage::Failed("exit code 3".into()),
                "c" => Stage::Canceled,
                _ => Stage::Completed,
            },
            series: Series::of(domain::spec::sweep::Goal::Minimize, value),
            judged: 0,
        }
    };
    text.split_whitespace().enumerate().map(trial).collect()
}

/// Decisions in short.
fn said(decisions: &[SweepDecision]) -> String {
    let one = |decision: &SweepDecision| match decision {
        SweepDecision::Start { number, .. } => format!("start {number}"),
        SweepDecision::Stop { number, because } => format!("stop {number}: {because}"),
        SweepDecision::Keep { number, judged } => format!("keep {number} after {judged}"),
        SweepDecision::End { outcome: Outcome::Completed, best } => format!("completed, best {best:?}"),
        SweepDecision::End { outcome: Outcome::Failed(failure), .. } => format!("failed: {}", failure.message),
        SweepDecision::End { outcome: Outcome::Canceled { reason }, best } => {
            format!("canceled: {reason}, best {best:?}")
        }
    };
    decisions.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[test]
fn trials_start_as_there_is_room_and_the_sweep_ends_with_the_best() {
    let sweep = sweep(json!({}));
    for (at, expected) in [
        ("", "start 0; start 1"),
        (". .", ""),
        (". s", ""),
        (". 0.5", "start 2"),
        ("x . 0.5", "start 3"),
        ("x 0.7 0.5 .", ""),
        ("x 0.7 0.5 c", "completed, best Some(2)"),
        ("0.5 0.7 0.5 nan", "completed, best Some(0)"),
        ("nan nan nan nan", "completed, best None"),
        ("c x x c", "failed: none of 4 trials completed; trial 1 failed first: exit code 3"),
        ("c c c c", "failed: none of 4 trials completed"),
    ] {
        assert_eq!(said(&advance(&world(&sweep, &trials(at)))), expected, "{at}");
    }
}

#[test]
fn a_sweep_that_must_end_stops_what_lives_and_starts_nothing() {
    let sweep = sweep(json!({"limits": {"max_total_trials": 4, "timeout": 60}}));
    let at = |trials: &[Trial], now: i64, stop| {
        said(&advance(&SweepWorld { now: Timestamp(now), stop, ..world(&sweep, trials) }))
    };
    assert_eq!(at(&trials("0.5 . s"), 59_999, None), "start 3");
    assert_eq!(at(&trials("0.5 . s"), 60_000, None), "stop 1: the sweep's timeout of 60 s was reached");
    assert_eq!(at(&trials("0.5 c s"), 60_000, None), "");
    assert_eq!(at(&trials("0.5 c c"), 60_000, None), "canceled: the sweep's timeout of 60 s was reached, best Some(0)");
    assert_eq!(at(&trials("0.5 . ."), 5, Some("asked")), "stop 1: asked; stop 2: asked");
    assert_eq!(at(&trials("c c c c"), 5, Some("asked")), "canceled: asked, best None");
    // What was done when the time came is done.
    assert_eq!(at(&trials("1 2 3 4"), 60_000, None), "completed, best Some(0)");
    assert_eq!(wake_at(&sweep, Timestamp(5)), Timestamp(60_005));
}

#[test]
fn a_policy_stops_the_bad_and_remembers_the_good() {
    let sweep = sweep(json!({"early_termination": {"type": "bandit", "slack_amount": 0.1, "evaluation_interval": 2}}));
    let mut trials = trials(". .");
    [0.5, 0.4].iter().for_each(|value| trials[0].series.push(*value));
    [0.9, 0.8, 0.7].iter().for_each(|value| trials[1].series.push(*value));
    expect_test::expect![[
        "keep 0 after 2; stop 1: bandit: its best `loss` after 2 values is 0.8, above 0.5; the best has 0.4"
    ]]
    .assert_eq(&said(&advance(&world(&sweep, &trials))));
    (trials[0].judged, trials[1].stage) = (2, Stage::Stopping);
    assert_eq!(said(&advance(&world(&sweep, &trials))), "");
}

#[test]
fn a_grid_ends_when_everything_was_tried() {
    let space = json!({"x": {"type": "choice", "values": [1, 2, 3]}});
    let sweep = sweep(json!({"search_space": space, "sampling_algorithm": "grid", "limits": {"max_total_trials": 10}}));
    let decisions = advance(&world(&sweep, &[]));
    let values: Vec<&Value> = decisions
        .iter()
        .map(|decision| match decision {
            SweepDecision::Start { values, .. } => &values["x"],
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(values, [1, 2, 3]);
    assert_eq!(said(&advance(&world(&sweep, &trials("3 2 1")))), "completed, best Some(2)");
}

/// Runs a sweep by `cost`, one trial after another, and tells the best.
fn searched(sweep: &Sweep, seed: u64, earlier: &[(Values, f64)], cost: impl Fn(&Values) -> f64) -> (f64, Vec<Trial>) {
    let mut done: Vec<Trial> = Vec::new();
    loop {
        let world = SweepWorld { seed, earlier, ..world(sweep, &done) };
        match advance(&world).remove(0) {
            SweepDecision::Start { number, values } => {
                let series = Series::of(domain::spec::sweep::Goal::Minimize, [cost(&values)]);
                done.push(Trial { number, values, stage: Stage::Completed, series, judged: 0 });
            }
            _ => break,
        }
    }
    (done.iter().filter_map(|trial| trial.series.best()).fold(f64::INFINITY, f64::min), done)
}

/// Two numbers and a choice; the least is 0.
fn bowl(values: &Values) -> f64 {
    let number = |name: &str| values[name].as_f64().unwrap();
    let kind = if values["kind"] == "good" { 0.0 } else { 0.3 };
    kind + 3.0 * (number("x") - 0.7).powi(2) + (number("n") - 4.0).powi(2) * 0.02
}

fn bowl_sweep(total: u32, algorithm: &str) -> Sweep {
    sweep(json!({
        "search_space": {
            "x": {"type": "uniform", "min_value": 0, "max_value": 1},
            "n": {"type": "quniform", "min_value": 1, "max_value": 16, "q": 1},
            "kind": {"type": "choice", "values": ["bad", "worse", "good"]},
        },
        "sampling_algorithm": algorithm,
        "limits": {"max_total_trials": total, "max_concurrent_trials": 1},
    }))
}

#[test]
fn the_bayesian_sampler_finds_what_chance_does_not() {
    for seed in 0..3 {
        let (found, _) = searched(&bowl_sweep(30, "bayesian"), seed, &[], bowl);
        let (drawn, _) = searched(&bowl_sweep(30, "random"), seed, &[], bowl);
        assert!(found < 0.005 && found < drawn, "{seed}: {found} {drawn}");
    }
}

#[test]
fn an_earlier_sweep_is_learned_from() {
    let (_, done) = searched(&bowl_sweep(25, "bayesian"), 1, &[], bowl);
    let earlier: Vec<(Values, f64)> =
        done.into_iter().map(|trial| (trial.values, trial.series.best().unwrap())).collect();
    let (found, _) = searched(&bowl_sweep(3, "bayesian"), 2, &earlier, bowl);
    assert!(found < 0.01, "{found}");
}

#[test]
fn trials_in_flight_look_at_different_places() {
    let mut sweep = bowl_sweep(30, "bayesian");
    let (_, mut done) = searched(&bowl_sweep(15, "bayesian"), 3, &[], bowl);
    sweep.limits.max_concurrent_trials = Some(8);
    done.iter_mut().take(2).for_each(|trial| trial.stage = Stage::Failed("gone".into()));
    let started = advance(&world(&sweep, &done));
    let different: std::collections::BTreeSet<String> =
        started.iter().map(|decision| format!("{decision:?}")).collect();
    assert_eq!((started.len(), different.len()), (8, 8));
    assert_eq!(advance(&world(&sweep, &done)), started);
}

#[test]
fn a_small_space_that_was_tried_whole_is_tried_again_rather_than_never_ended() {
    let sweep = sweep(json!({
        "search_space": {"x": {"type": "choice", "values": [1, 2]}},
        "sampling_algorithm": "bayesian",
        "limits": {"max_total_trials": 12, "max_concurrent_trials": 1},
    }));
    assert_eq!(searched(&sweep, 0, &[], |values| values["x"].as_f64().unwrap()).1.len(), 12);
}

#[test]
fn equal_costs_and_costs_without_measure_are_survived() {
    for cost in [|_: &Values| 1.0, |_: &Values| f64::NAN, |v: &Values| v["x"].as_f64().unwrap() * 1e300] {
        assert_eq!(searched(&bowl_sweep(14, "bayesian"), 0, &[], cost).1.len(), 14);
    }
}
