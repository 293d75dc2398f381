//! The keys of sweeps: the space that is searched, how, for what, and when to give up.

use super::{
    Key, Kind, Object, PLAIN, Variant,
    job::{DISTRIBUTION, QUEUE_SETTINGS, RESOURCES},
    key,
    parts::{CODE, ENVIRONMENT, VARIABLES},
    pipeline::{INPUTS, OUTPUTS},
};

/// A sweep job of its own; a step of a pipeline has the same but another `trial`.
pub(super) const JOB: &[Key] = &[
    key("trial", Kind::Object(&TRIAL), "The command that every trial runs.").required(),
    SPACE,
    ALGORITHM,
    OBJECTIVE,
    EARLY,
    LIMIT,
    RESOURCE,
    QUEUE,
    INPUTS,
    OUTPUTS,
];

pub(super) const SPACE: Key =
    key("search_space", Kind::MapOf(&DISTRIBUTION_VALUE), "What each value is drawn from, by name.");
pub(super) const ALGORITHM: Key = key("sampling_algorithm", SAMPLINGS, "How values are drawn.").or("random");
pub(super) const OBJECTIVE: Key =
    key("objective", Kind::Object(&GOAL), "The metric that tells a good trial from a bad one.").required();
pub(super) const EARLY: Key =
    key("early_termination", Kind::Object(&TERMINATION), "When a trial that does badly is stopped.");
pub(super) const LIMIT: Key = key("limits", Kind::Object(&LIMITS), "How much is tried.").required();
pub(super) const RESOURCE: Key = key("resources", Kind::Object(&RESOURCES), "What each node of a trial gets.");
pub(super) const QUEUE: Key = key("queue_settings", Kind::Object(&QUEUE_SETTINGS), "How trials wait.");

const SAMPLINGS: Kind = Kind::Either(&[Kind::Words(ALGORITHMS), Kind::Object(&SAMPLING)]);
const ALGORITHMS: &[&str] = &["random", "grid", "bayesian"];

static TRIAL: Object = Object {
    name: "trial",
    doc: "The command that every trial runs; `${{search_space.x}}` is the value drawn for it.",
    keys: &[
        key("command", Kind::Text, "Shell text to run.").required(),
        CODE,
        key("environment", ENVIRONMENT, "The software it needs.").required(),
        VARIABLES,
        key("distribution", Kind::Object(&DISTRIBUTION), "How it is spread over processes and nodes."),
        RESOURCE,
        QUEUE,
    ],
    ..PLAIN
};

pub(super) static SAMPLING: Object = Object {
    name: "sampling_algorithm",
    doc: "How values are drawn.",
    keys: &[key("type", Kind::Words(ALGORITHMS), "The algorithm.").required()],
    variants: &[
        Variant {
            word: "random",
            doc: "Each value on its own.",
            keys: &[
                key("seed", Kind::INT, "The same seed draws the same values."),
                key("rule", Kind::Words(&["random", "sobol"]), "`sobol` spreads values evenly.").or("random"),
                key("logbase", Kind::Either(&[Kind::Number, Kind::Text]), "The base of logarithms: a number, or `e`."),
            ],
        },
        Variant { word: "grid", doc: "Every combination of choices.", keys: &[] },
        Variant { word: "bayesian", doc: "Where earlier trials did well.", keys: &[] },
    ],
    ..PLAIN
};

static DISTRIBUTION_VALUE: Kind = Kind::Object(&EXPRESSION);

const MIN: Key = key("min_value", Kind::Number, "The least value; an exponent for `log` kinds.").required();
const MAX: Key = key("max_value", Kind::Number, "The greatest value; an exponent for `log` kinds.").required();
const STEP: Key = key("q", Kind::Number, "Values are rounded to multiples of it.").required();
const MU: Key = key("mu", Kind::Number, "The mean.").required();
const SIGMA: Key = key("sigma", Kind::Number, "The standard deviation.").required();

static EXPRESSION: Object = Object {
    name: "search_space value",
    doc: "What a value is drawn from.",
    keys: &[key("type", Kind::Words(EXPRESSIONS), "The distribution.").required()],
    variants: &[
        Variant {
            word: "choice",
            doc: "One of a list.",
            keys: &[key("values", Kind::List(&Kind::Any), "The list; maps in it may hold further distributions.")],
        },
        Variant {
            word: "randint",
            doc: "A whole number from 0 to below `upper`.",
            keys: &[key("upper", Kind::INT, "The bound.").required()],
        },
        Variant { word: "uniform", doc: "Anything between two bounds.", keys: &[MIN, MAX] },
        Variant { word: "loguniform", doc: "The exponential of a uniform value.", keys: &[MIN, MAX] },
        Variant { word: "quniform", doc: "A uniform value, rounded.", keys: &[MIN, MAX, STEP] },
        Variant { word: "qloguniform", doc: "The exponential of a uniform value, rounded.", keys: &[MIN, MAX, STEP] },
        Variant { word: "normal", doc: "A normal value.", keys: &[MU, SIGMA] },
        Variant { word: "lognormal", doc: "The exponential of a normal value.", keys: &[MU, SIGMA] },
        Variant { word: "qnormal", doc: "A normal value, rounded.", keys: &[MU, SIGMA, STEP] },
        Variant { word: "qlognormal", doc: "The exponential of a normal value, rounded.", keys: &[MU, SIGMA, STEP] },
    ],
    ..PLAIN
};

pub(crate) const EXPRESSIONS: &[&str] = &[
    "choice",
    "randint",
    "uniform",
    "loguniform",
    "quniform",
    "qloguniform",
    "normal",
    "lognormal",
    "qnormal",
    "qlognormal",
];

static GOAL: Object = Object {
    name: "objective",
    doc: "The metric that tells a good trial from a bad one.",
    keys: &[
        key("goal", Kind::Words(&["minimize", "maximize"]), "Which way is better.").required(),
        key("primary_metric", Kind::Text, "The metric's name, as the command logs it.").required(),
    ],
    ..PLAIN
};

pub(super) static TERMINATION: Object = Object {
    name: "early_termination",
    doc: "When a trial that does badly is stopped.",
    keys: &[
        key("type", Kind::Words(POLICIES), "The policy.").required(),
        key("evaluation_interval", Kind::COUNT, "Every how many values of the metric the policy is applied.").or("1"),
        key("delay_evaluation", Kind::COUNT, "How many values it waits at first.").or("0"),
    ],
    variants: &[
        Variant {
            word: "bandit",
            doc: "Stops a trial that is too far behind the best.",
            keys: &[
                key("slack_factor", Kind::Number, "How far, as a share of the best."),
                key("slack_amount", Kind::Number, "How far, as a difference."),
            ],
        },
        Variant { word: "median_stopping", doc: "Stops a trial that is worse than the median.", keys: &[] },
        Variant {
            word: "truncation_selection",
            doc: "Stops the worst.",
            keys: &[
                key("truncation_percentage", Kind::INT, "How many of a hundred: 1 to 99.").required(),
                key("exclude_finished_jobs", Kind::Bool, "Whether trials that have ended count."),
            ],
        },
    ],
    ..PLAIN
};

const POLICIES: &[&str] = &["bandit", "median_stopping", "truncation_selection"];

static LIMITS: Object = Object {
    name: "limits of a sweep",
    doc: "How much is tried.",
    keys: &[
        key("max_total_trials", Kind::POSITIVE, "Trials in all.").required(),
        key("max_concurrent_trials", Kind::POSITIVE, "Trials at the same time; all when absent."),
        key("timeout", Kind::POSITIVE, "Seconds after which the sweep is cancelled."),
        key("trial_timeout", Kind::POSITIVE, "Seconds after which a trial is cancelled."),
    ],
    ..PLAIN
};
