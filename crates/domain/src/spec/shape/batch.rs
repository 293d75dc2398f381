//! The keys of batch deployments.

use super::{
    Key, Kind, Object, PLAIN, Unknown, Variant,
    deployment::{ENDPOINT, MODEL, NAME, PROPERTIES, SCRIPT, SOFTWARE},
    job::RESOURCES,
    key,
    parts::{COMPUTE, CONTEXT, DESCRIPTION, ID, RETRIES, SCHEMA, STATE, TAGS, VARIABLES},
    pipeline,
};

const ERRORS: Key = key("error_threshold", Kind::INT, "Failed files that are put up with; -1 for any number.").or("-1");
const RETRY: Key = key("retry_settings", Kind::Object(&RETRIES), "What happens to a mini-batch that fails.");
const BATCH: Key = key("mini_batch_size", Kind::POSITIVE, "Files in a mini-batch.").or("10");
const LOGGING: Key = key("logging_level", Kind::Text, "How much is logged.").or("info");
const ACTION: Key =
    key("output_action", Kind::Words(&["append_row", "summary_only"]), "Whether predictions are collected in a file.")
        .or("append_row");
const FILE: Key = key("output_file_name", Kind::Text, "That file.").or("predictions.csv");
const CONCURRENCY: Key = key("max_concurrency_per_instance", Kind::POSITIVE, "Processes on each node.").or("1");
const NODES: Key = key("resources", Kind::Object(&RESOURCES), "What each node of a job gets.");
const COMPONENT: Key = key("component", Kind::Text, "A pipeline component: its file or `azureml:name:version`.");

pub(super) static BATCH_DEPLOYMENT: Object = Object {
    name: "batch-deployment",
    doc: "What a batch endpoint does with the data it is given.",
    keys: &[
        SCHEMA,
        key("type", Kind::Words(&["model", "pipeline"]), "Whether a model or a pipeline does the work."),
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        ID,
        STATE,
        CONTEXT,
    ],
    variants: &[
        Variant {
            word: "model",
            doc: "A model scores the data.",
            keys: &[
                NAME.required(),
                ENDPOINT.required(),
                MODEL,
                SCRIPT,
                SOFTWARE,
                VARIABLES,
                COMPUTE.required(),
                NODES,
                ERRORS,
                key("settings", Kind::Object(&SETTINGS), "How the data is worked through."),
            ],
        },
        Variant {
            word: "pipeline",
            doc: "A pipeline is run with the data.",
            keys: &[
                NAME,
                ENDPOINT,
                COMPONENT,
                key(
                    "job_definition",
                    Kind::Either(&[Kind::Reference { to: "jobs", version: false }, Kind::Object(&JOB_DEFINITION)]),
                    "A job whose pipeline is used instead.",
                ),
                key("settings", Kind::Map, "What holds for every step."),
            ],
        },
        Variant {
            word: "",
            doc: "An older way of writing: what `settings` holds stands beside the rest.",
            keys: &[
                NAME.required(),
                ENDPOINT.required(),
                MODEL,
                SCRIPT,
                SOFTWARE,
                VARIABLES,
                COMPUTE,
                NODES,
                ERRORS,
                RETRY,
                BATCH,
                LOGGING,
                ACTION,
                FILE,
                CONCURRENCY,
                COMPONENT,
                key("job_definition", Kind::Reference { to: "jobs", version: false }, "A job whose pipeline is used."),
            ],
        },
    ],
    otherwise: Some(""),
    ..PLAIN
};

static JOB_DEFINITION: Object = Object {
    name: "job_definition",
    doc: "A pipeline with its inputs and outputs.",
    keys: &[
        SCHEMA,
        key("type", Kind::Words(&["pipeline"]), "The kind of job."),
        key("component", Kind::Text, "The pipeline component: its file or `azureml:name:version`.").required(),
        key("comment", Kind::Label, "A note beside it."),
        PROPERTIES,
        pipeline::INPUTS,
        pipeline::OUTPUTS,
    ],
    unknown: Unknown::KeptBeside(&[]),
    ..PLAIN
};

static SETTINGS: Object = Object {
    name: "settings of a model deployment",
    doc: "How the data is worked through.",
    keys: &[
        ERRORS,
        RETRY,
        BATCH,
        LOGGING,
        ACTION,
        FILE,
        CONCURRENCY,
        VARIABLES,
        key("instance_count", Kind::POSITIVE, "Nodes."),
    ],
    ..PLAIN
};
