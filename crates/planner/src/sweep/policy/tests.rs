//! Policies on trials written as lists of values.

use super::*;
use crate::sweep::{Series, Stage};
use serde_json::{Value, json};

/// Trials as their values; `!` before one says that it has ended. Judges the last of them.
fn judged(policy: Value, goal: Goal, trials: &str) -> Option<String> {
    let termination: Termination = serde_json::from_value(policy).unwrap();
    let objective = Objective { goal, primary_metric: "acc".into() };
    let trial = |(at, text): (usize, &str)| {
        let (over, values) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let values = values.split_whitespace().map(|value| value.parse::<f64>().unwrap());
        Trial {
            number: u32::try_from(at).unwrap(),
            values: Default::default(),
            stage: if over { Stage::Completed } else { Stage::Live },
            series: Series::of(goal, values),
            judged: 0,
        }
    };
    let trials: Vec<Trial> = trials.split('|').map(str::trim).enumerate().map(trial).collect();
    let last = trials.last().unwrap();
    let at = due(&termination, last.series.count(), last.judged)?;
    verdict(&termination, &objective, last, &trials, at)
}

#[test]
fn a_trial_is_judged_at_multiples_from_the_delay_on() {
    let termination = |every, delay| Termination {
        policy: Policy::MedianStopping,
        evaluation_interval: every,
        delay_evaluation: delay,
    };
    for (every, delay, count, judged, expected) in [
        (1, 0, 0, 0, None),
        (1, 0, 1, 0, Some(1)),
        (1, 0, 1, 1, None),
        (2, 0, 5, 0, Some(4)),
        (2, 0, 5, 4, None),
        (2, 5, 5, 0, None),
        (2, 5, 6, 0, Some(6)),
        (2, 6, 6, 0, Some(6)),
        (5, 7, 11, 0, Some(10)),
        (0, 0, 3, 0, Some(3)),
    ] {
        assert_eq!(due(&termination(every, delay), count, judged), expected, "{every} {delay} {count} {judged}");
    }
    let asha = Termination { policy: Policy::Asha { factor: 3, first: 2 }, ..termination(1, 0) };
    for (count, judged, expected) in [(1, 0, None), (2, 0, Some(2)), (5, 2, None), (6, 2, Some(6)), (50, 6, Some(18))] {
        assert_eq!(due(&asha, count, judged), expected, "{count} {judged}");
    }
}

#[test]
fn a_bandit_stops_what_is_too_far_behind_the_best() {
    let factor = || json!({"type": "bandit", "slack_factor": 0.2});
    let amount = || json!({"type": "bandit", "slack_amount": 0.2});
    for (policy, goal, trials, stopped) in [
        (factor(), Goal::Maximize, "0.8 | 0.66", true),
        (factor(), Goal::Maximize, "0.6 | 0.5", false),
        (factor(), Goal::Maximize, "0.8 | 0.9 0.1", false),
        (factor(), Goal::Minimize, "1.0 | 1.2", false),
        (factor(), Goal::Minimize, "1.0 | 1.21", true),
        (amount(), Goal::Maximize, "0.75 | 0.5", true),
        (amount(), Goal::Maximize, "0.5 | 0.25 0.375", false),
        (amount(), Goal::Minimize, "!0.5 | 0.75", true),
        // A negative best is not too bad for itself.
        (factor(), Goal::Maximize, "-5 | -5", false),
        (factor(), Goal::Maximize, "-5 | -6", true),
        (factor(), Goal::Minimize, "-5 | -5", false),
        // Others count with what they had by then, so a long run does not beat every young one.
        (factor(), Goal::Maximize, "0.1 0.2 0.9 | 0.15 0.19", false),
        (factor(), Goal::Maximize, "0.8 | nan", true),
        (factor(), Goal::Maximize, "nan | nan", false),
        (factor(), Goal::Maximize, "0.8", false),
    ] {
        assert_eq!(judged(policy, goal, trials).is_some(), stopped, "{goal:?} {trials}");
    }
}

#[test]
fn the_median_of_averages_divides() {
    let policy = || json!({"type": "median_stopping"});
    for (trials, stopped) in [
        ("1 1 | 3 3 | 2 2", false),
        ("1 1 | 3 3 | 1.5 1.9 ", false),
        ("2 2 | 3 3 | 1 1.5", true),
        ("2 2 | 3 3 | 1 2", false),
        ("3 | 3 | 1 1", false),
        ("5", false),
    ] {
        assert_eq!(judged(policy(), Goal::Maximize, trials).is_some(), stopped, "{trials}");
    }
}

#[test]
fn truncation_stops_the_lowest_share() {
    let policy = |exclude: bool| json!({"type": "truncation_selection", "truncation_percentage": 20, "exclude_finished_jobs": exclude});
    for (exclude, trials, stopped) in [
        (false, "5 | 4 | 3 | 2 | 1", true),
        (false, "5 | 4 | 3 | 1 | 2", false),
        (false, "5 | 4 | 3 | 1", false),
        (false, "!5 | !4 | !3 | !2 | 1", true),
        (true, "!5 | !4 | !3 | !2 | 1", false),
        (false, "1 | 1 | 1 | 1 | 1", true),
        (false, "1 2 | 2 1 | 3 3 | 9 | 0 0", false),
    ] {
        assert_eq!(judged(policy(exclude), Goal::Maximize, trials).is_some(), stopped, "{exclude} {trials}");
    }
}

#[test]
fn halving_lets_the_best_share_of_a_rung_go_on() {
    let policy = || json!({"type": "asha", "factor": 3, "first": 1});
    for (trials, stopped) in [
        ("5", false),
        ("5 | 4", true),
        ("4 | 5", false),
        ("5 | 4 | 3 | 6 | 7 | 5.5", true),
        ("5 | 4 | 3 | 6 | 2 | 5.5", false),
    ] {
        assert_eq!(judged(policy(), Goal::Maximize, trials).is_some(), stopped, "{trials}");
    }
}

#[test]
fn a_verdict_says_why() {
    let why = |policy: Value, goal, trials| judged(policy, goal, trials).unwrap();
    expect_test::expect![[r#"
        bandit: its best `acc` after 1 values is 0.6, below 0.666667; the best has 0.8
        bandit: none of its first 1 values of `acc` is a number
        median stopping: its best `acc` after 2 values is 3, above 1.5, the median of all averages
        truncation selection: its best `acc` after 1 values is 1, place 2 of 2; the last 1 are stopped
        successive halving: its best `acc` after 1 values is 1e-9, place 2 of 2; the last 1 are stopped"#]]
    .assert_eq(
        &[
            why(json!({"type": "bandit", "slack_factor": 0.2}), Goal::Maximize, "0.8 | 0.6"),
            why(json!({"type": "bandit", "slack_factor": 0.2}), Goal::Maximize, "0.8 | nan"),
            why(json!({"type": "median_stopping"}), Goal::Minimize, "1 1 | 1 2 | 3 3"),
            why(json!({"type": "truncation_selection", "truncation_percentage": 50}), Goal::Maximize, "5 | 1"),
            why(json!({"type": "asha", "factor": 3, "first": 1}), Goal::Maximize, "5 | 1e-9"),
        ]
        .join("\n"),
    );
}
