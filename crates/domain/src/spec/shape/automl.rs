//! The keys of AutoML jobs and steps. They are recognised and kept; nothing here can run them.

use super::{
    Key, Kind, Object, PLAIN,
    job::{QUEUE_SETTINGS, RESOURCES},
    key,
    parts::VARIABLES,
    pipeline::{INPUT_VALUE, OUTPUTS},
    sweep,
};

pub(super) const JOB: &[Key] = &[
    key("task", Kind::Words(TASKS), "What is to be learned.").required(),
    key("primary_metric", Kind::Text, "The metric that tells a good model from a bad one."),
    key("log_verbosity", Kind::Words(VERBOSITY), "How much is logged."),
    key("training_data", DATA, "A table to learn from."),
    key("validation_data", DATA, "A table to choose by."),
    key("validation_data_size", Kind::Number, "The share of the training data that is used to choose."),
    key("test_data", DATA, "A table to judge by."),
    key("test_data_size", Kind::Number, "The share of the training data that is used to judge."),
    key("target_column_name", Kind::Text, "The column to be predicted; every task but `text_ner` needs it."),
    key("cv_split_column_names", Kind::List(&Kind::Text), "Columns that say how to split for cross-validation."),
    key("n_cross_validations", AUTO, "Folds of the cross-validation."),
    key("weight_column_name", Kind::Text, "The column of weights."),
    key("positive_label", Kind::Label, "Which of two classes counts as positive."),
    key("limits", Kind::Object(&LIMITS), "How much is tried."),
    key("featurization", Kind::Object(&FEATURES), "How columns are prepared."),
    key("forecasting", Kind::Object(&FORECASTING), "Time series only."),
    key("training", Kind::Object(&TRAINING), "Tables only: which models, and how."),
    key("training_parameters", Kind::Map, "Images and texts only: settings of the model."),
    key("search_space", Kind::List(&Kind::Map), "Images and texts only: what is tried."),
    key("sweep", Kind::Object(&SWEEP), "Images and texts only: how it is tried."),
    key("environment_id", Kind::Text, "The software it needs."),
    key("resources", Kind::Object(&RESOURCES), "What each node gets."),
    key("queue_settings", Kind::Object(&QUEUE_SETTINGS), "How the job waits."),
    VARIABLES,
    OUTPUTS,
];

const TASKS: &[&str] = &[
    "classification",
    "regression",
    "forecasting",
    "image_classification",
    "image_classification_multilabel",
    "image_object_detection",
    "image_instance_segmentation",
    "text_classification",
    "text_classification_multilabel",
    "text_ner",
];
const VERBOSITY: &[&str] = &["not_set", "debug", "info", "warning", "error", "critical"];
const DATA: Kind = Kind::Either(&[Kind::Text, INPUT_VALUE]);
const AUTO: Kind = Kind::Either(&[Kind::Scalar]);
const TEXTS: Kind = Kind::Either(&[Kind::Text, Kind::List(&Kind::Text)]);

static LIMITS: Object = Object {
    name: "limits of AutoML",
    doc: "How much is tried.",
    keys: &[
        key("enable_early_termination", Kind::Bool, "Whether to stop when nothing gets better."),
        key("exit_score", Kind::Number, "Good enough to stop at."),
        key("max_concurrent_trials", Kind::INT, "Trials at the same time."),
        key("max_cores_per_trial", Kind::INT, "Cores of a trial; -1 for all."),
        key("max_nodes", Kind::INT, "Nodes in all."),
        key("max_trials", Kind::INT, "Trials in all."),
        key("timeout_minutes", Kind::INT, "Minutes for the whole job."),
        key("trial_timeout_minutes", Kind::INT, "Minutes for one trial."),
    ],
    ..PLAIN
};

static FEATURES: Object = Object {
    name: "featurization",
    doc: "How columns are prepared.",
    keys: &[
        key("mode", Kind::Words(&["off", "auto", "custom"]), "Whether, and by whose rules."),
        key("dataset_language", Kind::Text, "The language of texts."),
        key("blocked_transformers", Kind::List(&Kind::Text), "Transformers not to use."),
        key("column_name_and_types", Kind::Labels, "Types of columns by name."),
        key("enable_dnn_featurization", Kind::Bool, "Whether neural networks may prepare texts."),
        key("transformer_params", Kind::Map, "Settings of transformers by name."),
        key("drop_columns", Kind::List(&Kind::Text), "Columns to leave out."),
    ],
    ..PLAIN
};

static TRAINING: Object = Object {
    name: "training",
    doc: "Which models, and how.",
    keys: &[
        key("enable_dnn_training", Kind::Bool, "Whether neural networks are tried."),
        key("enable_model_explainability", Kind::Bool, "Whether the best model is explained."),
        key("enable_onnx_compatible_models", Kind::Bool, "Whether only models that ONNX can hold are tried."),
        key("enable_stack_ensemble", Kind::Bool, "Whether models are stacked."),
        key("enable_vote_ensemble", Kind::Bool, "Whether models vote."),
        key("ensemble_model_download_timeout_minutes", Kind::INT, "Minutes for fetching models to combine."),
        key("stack_ensemble_settings", Kind::Map, "How models are stacked."),
        key("training_mode", Kind::Text, "Whether one trial is spread over nodes."),
        key("allowed_training_algorithms", Kind::List(&Kind::Text), "The algorithms to try."),
        key("blocked_training_algorithms", Kind::List(&Kind::Text), "The algorithms not to try."),
    ],
    ..PLAIN
};

static FORECASTING: Object = Object {
    name: "forecasting",
    doc: "About a time series.",
    keys: &[
        key("time_column_name", Kind::Text, "The column of times."),
        key("time_series_id_column_names", TEXTS, "Columns that tell series apart."),
        key("forecast_horizon", AUTO, "How far to look ahead."),
        key("frequency", Kind::Text, "The distance of times."),
        key("target_lags", Kind::Either(&[Kind::Scalar, Kind::List(&Kind::INT)]), "How far to look back."),
        key("target_rolling_window_size", AUTO, "The window of averages."),
        key("feature_lags", Kind::Words(&["none", "auto"]), "Whether features look back."),
        key("seasonality", AUTO, "The period of seasons."),
        key(
            "short_series_handling_config",
            Kind::Words(&["none", "auto", "pad", "drop"]),
            "What to do with short series.",
        ),
        key("use_stl", Kind::Words(&["none", "season", "seasontrend"]), "Whether season and trend are taken apart."),
        key(
            "target_aggregate_function",
            Kind::Words(&["none", "sum", "max", "min", "mean"]),
            "How values are combined.",
        ),
        key("cv_step_size", Kind::INT, "The distance of folds."),
        key("country_or_region_for_holidays", Kind::Text, "Whose holidays count."),
        key("features_unknown_at_forecast_time", TEXTS, "Columns that the future does not have."),
    ],
    ..PLAIN
};

static SWEEP: Object = Object {
    name: "sweep of AutoML",
    doc: "How the search space is tried.",
    keys: &[sweep::ALGORITHM, sweep::EARLY],
    ..PLAIN
};
