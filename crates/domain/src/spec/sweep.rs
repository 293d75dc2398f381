//! What a sweep searches, how, for what, and when it gives up: the keys of its file, as types.
//!
//! Names and shapes are those of the YAML, so a checked tree is read with serde as it stands. Invariant: a value that
//! came through [`Sweep::of`] can be drawn from.

use super::{
    Mistake,
    check::senseless_sweep,
    expression::{Reference, Unresolved, expand},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The part of a sweep job that decides which trials there are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    pub search_space: Space,
    #[serde(default)]
    pub sampling_algorithm: Sampling,
    pub objective: Objective,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early_termination: Option<Termination>,
    pub limits: SweepLimits,
}

/// The words for kinds of ranges.
pub const KINDS: &[&str] = super::shape::EXPRESSIONS;

/// What each value is drawn from, by name.
pub type Space = BTreeMap<String, Range>;

/// What one trial got, by name; a choice between maps gives a map.
pub type Values = BTreeMap<String, Value>;

/// What a value is drawn from. Bounds of the `log` kinds are exponents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Range {
    Choice { values: Vec<Pick> },
    RandInt { upper: u64 },
    Uniform { min_value: f64, max_value: f64 },
    QUniform { min_value: f64, max_value: f64, q: f64 },
    LogUniform { min_value: f64, max_value: f64 },
    QLogUniform { min_value: f64, max_value: f64, q: f64 },
    Normal { mu: f64, sigma: f64 },
    QNormal { mu: f64, sigma: f64, q: f64 },
    LogNormal { mu: f64, sigma: f64 },
    QLogNormal { mu: f64, sigma: f64, q: f64 },
}

/// One of the values of a choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pick {
    /// A map: what is drawn inside it exists only where it was chosen.
    Branch(BTreeMap<String, Leaf>),
    Value(Value),
}

/// What stands under a name inside a chosen map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Leaf {
    Drawn(Range),
    Fixed(Value),
}

/// How values are drawn: in a file, a word or a map with settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "RawSampling")]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Sampling {
    Random { seed: Option<i64>, rule: Rule, logbase: Option<f64> },
    Grid,
    Bayesian,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    #[default]
    Random,
    Sobol,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling::Random { seed: None, rule: Rule::Random, logbase: None }
    }
}

/// The metric that tells a good trial from a bad one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objective {
    pub goal: Goal,
    pub primary_metric: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    Minimize,
    Maximize,
}

impl Goal {
    /// A number that is lower where the metric is better.
    pub fn cost(self, metric: f64) -> f64 {
        match self {
            Goal::Minimize => metric,
            Goal::Maximize => -metric,
        }
    }
}

/// When a trial that does badly is stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Termination {
    #[serde(flatten)]
    pub policy: Policy,
    /// The policy is applied whenever a trial has logged a multiple of this many values.
    #[serde(default = "one")]
    pub evaluation_interval: u32,
    /// ... and at least this many.
    #[serde(default)]
    pub delay_evaluation: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Policy {
    /// Too far behind the best.
    Bandit {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slack_factor: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slack_amount: Option<f64>,
    },
    /// Worse than the median of the averages.
    MedianStopping,
    /// Among the worst.
    TruncationSelection {
        truncation_percentage: u32,
        #[serde(default)]
        exclude_finished_jobs: bool,
    },
    /// Asynchronous successive halving: of those that came to a rung, one in `factor` goes on. Rungs are at `first`
    /// values, `first * factor`, and so on; `evaluation_interval` says nothing here.
    Asha { factor: u32, first: u32 },
}

/// How much is tried, in trials and seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepLimits {
    pub max_total_trials: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent_trials: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial_timeout: Option<u64>,
}

/// The longest a sweep runs that names no time of its own: 60 days.
pub const LONGEST_SECONDS: u64 = 5_184_000;

impl Sweep {
    /// The sweep of a job's tree, as its file has it, or what is wrong with it.
    pub fn of(tree: &Value) -> Result<Sweep, Vec<Mistake>> {
        let mistakes = senseless_sweep(tree);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        Sweep::deserialize(tree).map_err(|error| {
            let message = format!("the sweep cannot be understood: {error}");
            vec![Mistake::new("", message, "compare it with the keys of a sweep job")]
        })
    }
}

/// What is put in the place of `${{search_space.x}}`: text as it is, maps as JSON, and all else as Python writes it.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        other => other.to_string(),
    }
}

/// A trial's command with its values in it. References to inputs and outputs stay, those to inputs that are not there
/// take their optional part with them.
pub fn command(text: &str, values: &Values, has_input: impl Fn(&str) -> bool) -> Result<String, Unresolved> {
    expand(text, &|reference| match reference {
        Reference::SearchSpace(path) => {
            let mut parts = path.split('.');
            let first = values.get(parts.next()?)?;
            // What is drawn in one branch of a choice is not there in another.
            Some(parts.try_fold(first, |value, part| value.get(part)).map(text_of).unwrap_or_default())
        }
        Reference::Input(name) if !has_input(name) => None,
        other => Some(other.to_string()),
    })
}

impl SweepLimits {
    /// Trials that may run at the same time.
    pub fn at_once(&self) -> u32 {
        self.max_concurrent_trials.unwrap_or(self.max_total_trials).min(self.max_total_trials)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawSampling {
    Word(Word),
    Map {
        #[serde(rename = "type")]
        kind: Word,
        #[serde(default)]
        seed: Option<i64>,
        #[serde(default)]
        rule: Rule,
        #[serde(default)]
        logbase: Option<LogBase>,
    },
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Word {
    Random,
    Grid,
    Bayesian,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum LogBase {
    Number(f64),
    Text(String),
}

impl From<RawSampling> for Sampling {
    fn from(raw: RawSampling) -> Sampling {
        let (kind, seed, rule, logbase) = match raw {
            RawSampling::Word(kind) => (kind, None, Rule::default(), None),
            RawSampling::Map { kind, seed, rule, logbase } => (kind, seed, rule, logbase),
        };
        match kind {
            Word::Grid => Sampling::Grid,
            Word::Bayesian => Sampling::Bayesian,
            Word::Random => Sampling::Random { seed, rule, logbase: logbase.and_then(LogBase::number) },
        }
    }
}

impl LogBase {
    /// `None` is `e`.
    fn number(self) -> Option<f64> {
        match self {
            LogBase::Number(base) => Some(base),
            LogBase::Text(text) => text.parse().ok(),
        }
    }
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sweep(space: Value, more: Value) -> Value {
        let mut tree = json!({
            "search_space": space,
            "objective": {"goal": "maximize", "primary_metric": "acc"},
            "limits": {"max_total_trials": 4},
        });
        for (key, value) in more.as_object().unwrap() {
            tree[key] = value.clone();
        }
        tree
    }

    #[test]
    fn a_tree_becomes_types_and_comes_back() {
        let space = json!({
            "lr": {"type": "loguniform", "min_value": -6.0, "max_value": 0.0},
            "model": {"type": "choice", "values": ["tree", {"kind": "svm", "c": {"type": "uniform", "min_value": 0.1, "max_value": 1.0}}]},
        });
        let more = json!({
            "sampling_algorithm": {"type": "random", "seed": -1, "rule": "sobol", "logbase": "e"},
            "early_termination": {"type": "truncation_selection", "truncation_percentage": 20, "delay_evaluation": 5},
        });
        let read = Sweep::of(&sweep(space, more)).unwrap();
        assert_eq!(read.sampling_algorithm, Sampling::Random { seed: Some(-1), rule: Rule::Sobol, logbase: None });
        let policy = Policy::TruncationSelection { truncation_percentage: 20, exclude_finished_jobs: false };
        let expected = Termination { policy, evaluation_interval: 1, delay_evaluation: 5 };
        assert_eq!(read.early_termination, Some(expected));
        let Range::Choice { values } = &read.search_space["model"] else { panic!() };
        assert!(matches!(&values[1], Pick::Branch(map) if matches!(map["c"], Leaf::Drawn(Range::Uniform { .. }))));
        let again = serde_json::to_value(&read).unwrap();
        assert_eq!(serde_json::from_value::<Sweep>(again).unwrap().search_space, read.search_space);
    }

    #[test]
    fn values_take_their_places_in_a_command() {
        let values: Values = serde_json::from_value(
            json!({"lr": 0.25, "n": 3, "flag": true, "name": "a b", "model": {"kind": "svm", "c": 0.5}}),
        )
        .unwrap();
        let said = |text: &str| command(text, &values, |name| name == "data").unwrap();
        for (text, expected) in [
            ("x --lr ${{search_space.lr}} -n ${{ search_space.n }}", "x --lr 0.25 -n 3"),
            ("${{search_space.flag}} '${{search_space.name}}'", "True 'a b'"),
            ("${{search_space.model.kind}} ${{search_space.model.c}} [${{search_space.model.depth}}]", "svm 0.5 []"),
            ("'${{search_space.model}}'", r#"'{"kind":"svm","c":0.5}'"#),
            (
                "${{inputs.data}} ${{outputs.o}} $[[ --m ${{inputs.gone}} ]]${{name}}",
                "${{inputs.data}} ${{outputs.o}} ${{name}}",
            ),
        ] {
            assert_eq!(said(text), expected);
        }
    }

    #[test]
    fn what_cannot_be_drawn_from_is_named_wherever_it_stands() {
        let bad = |space: Value, more: Value| Sweep::of(&sweep(space, more)).unwrap_err()[0].to_string();
        let none = json!({});
        expect_test::expect![[r#"
            `search_space`: there is nothing to search (give at least one value)
            `search_space.x.values`: there is nothing to choose from (list at least one value)
            `search_space.x.values[1].c.min_value`: 2 is not below `max_value`, 1 (swap or change them)
            `search_space.x.values[0].c`: it cannot be drawn from: missing field `q` (give the keys that its `type` needs)
            `search_space.x.values[0].c.type`: grid sampling cannot draw from `uniform` (use `choice`, or `random` sampling)
            `sampling_algorithm.logbase`: it must be a number above 0 other than 1, or `e` (change it)"#]]
        .assert_eq(
            &[
                bad(json!({}), none.clone()),
                bad(json!({"x": {"type": "choice", "values": []}}), none.clone()),
                bad(
                    json!({"x": {"type": "choice", "values": [1, {"c": {"type": "uniform", "min_value": 2, "max_value": 1}}]}}),
                    none.clone(),
                ),
                bad(
                    json!({"x": {"type": "choice", "values": [{"c": {"type": "quniform", "min_value": 0, "max_value": 1}}]}}),
                    none,
                ),
                bad(
                    json!({"x": {"type": "choice", "values": [{"c": {"type": "uniform", "min_value": 0, "max_value": 1}}]}}),
                    json!({"sampling_algorithm": "grid"}),
                ),
                bad(
                    json!({"x": {"type": "randint", "upper": 3}}),
                    json!({"sampling_algorithm": {"type": "random", "logbase": "two"}}),
                ),
            ]
            .join("\n"),
        );
    }
}
