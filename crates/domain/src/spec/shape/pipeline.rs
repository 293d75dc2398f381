//! The keys of pipelines: settings, steps, and what flows between them.
//!
//! Unknown keys of a step with a component are kept and sent, as long as they do not look like a slip.

use super::{
    Key, Kind, Object, PLAIN, Unknown, Variant, automl, component,
    job::{DATA_TYPES, DISTRIBUTION, IDENTITY, LIMITS, QUEUE_SETTINGS, RESOURCES, SERVICE_VALUE},
    key,
    parts::{CODE, COMPUTE, CONTEXT, ENVIRONMENT, ID, LOG_LEVELS, RETRIES, SCHEMA, VARIABLES},
    spark, sweep,
};

pub(super) const JOB: &[Key] = &[
    key("settings", Kind::Object(&SETTINGS), "What holds for every step."),
    key("jobs", STEPS, "The steps by name."),
    key("component", Kind::Text, "A pipeline component to run instead of `jobs`: its file or `azureml:name:version`."),
    INPUTS,
    key("outputs", Kind::MapOf(&OUTPUT_VALUE), "Results by name, for `${{parent.outputs.name}}`."),
];

pub(super) const IMPORT: &[Key] = &[
    key("source", Kind::Object(&IMPORT_SOURCE), "Where the data comes from.").required(),
    key("output", Kind::Object(&OUTPUT), "Where it goes.").required(),
];

pub(super) const STEPS: Kind = Kind::MapOf(&STEP_VALUE);
static STEP_VALUE: Kind = Kind::Object(&STEP);

pub(super) const INPUTS: Key = key("inputs", Kind::MapOf(&INPUT_VALUE), "Values and data by name.");
pub(super) const OUTPUTS: Key =
    key("outputs", Kind::MapOf(&BOUND_OUTPUT), "Results by name; text binds one, as in `${{parent.outputs.x}}`.");
pub(super) const INPUT_VALUE: Kind = Kind::Either(&[Kind::Scalar, Kind::Object(&INPUT)]);
pub(super) const OUTPUT_VALUE: Kind = Kind::Object(&OUTPUT);
const BOUND_OUTPUT: Kind = Kind::Either(&[Kind::Text, Kind::Object(&OUTPUT)]);

static INPUT: Object = Object {
    name: "input",
    doc: "Data for a step. A literal value stands directly after the name, or under `value`.",
    keys: &[
        key("type", Kind::Words(DATA_TYPES), "What lies at the path.").or("uri_folder"),
        key("path", Kind::Text, "A local path, `azureml:name:version`, `azureml://...`, or another URI."),
        key(
            "mode",
            Kind::Words(&["ro_mount", "download", "direct", "eval_mount", "eval_download"]),
            "How the step sees it.",
        )
        .or("ro_mount"),
        key("value", Kind::Scalar, "A literal value, instead of a path."),
        key("path_on_compute", Kind::Text, "Where it is mounted."),
        key("datastore", Kind::Text, "Where a local path is uploaded to."),
    ],
    ..PLAIN
};

static OUTPUT: Object = Object {
    name: "output",
    doc: "A result.",
    keys: &[
        SCHEMA,
        key("type", Kind::Words(DATA_TYPES), "What is written.").or("uri_folder"),
        key("path", Kind::Text, "Where it is kept; a folder of the job's own when absent."),
        key("mode", Kind::Words(&["rw_mount", "upload", "direct", "mount"]), "When it is kept.").or("rw_mount"),
        key("name", Kind::Text, "Registers the result as an asset of this name."),
        key("version", Kind::Label, "The version of that asset; counted up when absent."),
    ],
    ..PLAIN
};

pub(super) static SETTINGS: Object = Object {
    name: "settings",
    doc: "What holds for every step.",
    keys: &[
        key("default_compute", COMPUTES, "Where steps run that say nothing: `azureml:name`, or `serverless`."),
        key("default_datastore", Kind::Reference { to: "datastores", version: false }, "Where results are kept."),
        key("continue_on_step_failure", Kind::Bool, "Whether other branches go on when a step fails."),
        key("force_rerun", Kind::Bool, "Whether steps run even where earlier results could be used.").or("false"),
        key("continue_run_on_failed_optional_input", Kind::Bool, "Whether a step runs when an optional input failed."),
    ],
    unknown: Unknown::Kept,
    ..PLAIN
};

const COMPUTES: Kind = Kind::Reference { to: "computes", version: false };

/// A step. What its component is decides the rest where `type` is absent.
pub(super) static STEP: Object = Object {
    name: "step",
    doc: "One step: a component with its inputs, or the work itself written here.",
    keys: &[
        SCHEMA,
        key("type", Kind::Words(STEPS_OF), "The kind of step; the component's when absent."),
        key("name", Kind::Text, "Ignored: a step has the name it stands under."),
        key("display_name", Kind::Label, "Shown in lists."),
        key("experiment_name", Kind::Label, "Ignored: a step belongs to the pipeline's."),
        key("description", Kind::Label, "Free text."),
        key("comment", Kind::Label, "A note beside the step."),
        key("tags", Kind::Labels, "Words to find it by."),
        key("properties", Kind::Labels, "Settings kept with it."),
        key(
            "component",
            Kind::Either(&[Kind::Text, Kind::Object(&component::INLINE)]),
            "The component: its file, `azureml:name:version`, or its definition.",
        ),
        key("services", Kind::MapOf(&SERVICE_VALUE), "Interactive programs that run beside it."),
        key("identity", Kind::Object(&IDENTITY), "As whom it reads data."),
        COMPUTE,
        INPUTS,
        OUTPUTS,
        ID,
        CONTEXT,
        key("status", Kind::Shown, "Filled in by the server."),
        key("log_files", Kind::Shown, "Filled in by the server."),
    ],
    variants: &[
        Variant { word: "command", doc: "One command.", keys: COMMAND },
        Variant {
            word: "sweep",
            doc: "The same command many times, each with other values.",
            keys: &[
                key(
                    "trial",
                    Kind::Either(&[Kind::Text, Kind::Object(&component::INLINE)]),
                    "What every trial runs: a component's file, `azureml:name:version`, or its definition.",
                )
                .required(),
                sweep::SPACE,
                sweep::ALGORITHM,
                sweep::OBJECTIVE,
                sweep::EARLY,
                sweep::LIMIT,
                sweep::RESOURCE,
                sweep::QUEUE,
            ],
        },
        Variant { word: "parallel", doc: "One program over many pieces of data at once.", keys: PARALLEL_STEP },
        Variant { word: "pipeline", doc: "A pipeline inside the pipeline; it has a `component`.", keys: &[] },
        Variant {
            word: "spark",
            doc: "A Spark program.",
            keys: &[
                spark::ENTRY,
                CODE,
                spark::PY_FILES,
                spark::JARS,
                spark::FILES,
                spark::ARCHIVES,
                spark::CONF,
                spark::ARGS,
                spark::SOFTWARE,
                spark::RESOURCE,
            ],
        },
        Variant { word: "automl", doc: "Models tried by the service itself; cannot run here.", keys: automl::JOB },
        Variant {
            word: "import",
            doc: "Data fetched from elsewhere; cannot run here.",
            keys: &[
                key("source", Kind::Object(&IMPORT_SOURCE), "Where the data comes from."),
                key("output", Kind::Object(&OUTPUT), "Where it goes."),
            ],
        },
        Variant { word: "data_transfer", doc: "Data moved between stores; cannot run here.", keys: TRANSFER },
    ],
    marks: &[("command", "command"), ("trial", "sweep"), ("entry", "spark"), ("input_data", "parallel")],
    unknown: Unknown::KeptBeside(&["component", "trial", "task"]),
    ..PLAIN
};

const STEPS_OF: &[&str] = &["command", "sweep", "parallel", "pipeline", "spark", "automl", "import", "data_transfer"];

const COMMAND: &[Key] = &[
    key("command", Kind::Text, "Shell text to run; may use `${{inputs.x}}` and `${{outputs.x}}`."),
    CODE,
    key("environment", ENVIRONMENT, "The software it needs."),
    VARIABLES,
    key("distribution", Kind::Object(&DISTRIBUTION), "How it is spread over processes and nodes."),
    key("resources", Kind::Object(&RESOURCES), "What each node of it gets."),
    key("limits", Kind::Object(&LIMITS), "When to stop it."),
    key("queue_settings", Kind::Object(&QUEUE_SETTINGS), "How it waits."),
];

const PARALLEL_STEP: &[Key] = &[
    TASK,
    INPUT_DATA,
    BATCH,
    PARTITION,
    CONCURRENCY,
    RETRY,
    FAILED_ITEMS,
    FAILED_BATCHES,
    LOGGING,
    VARIABLES,
    key("environment", ENVIRONMENT, "The software it needs."),
    key("resources", Kind::Object(&RESOURCES), "What each node of it gets."),
];

pub(super) const TASK: Key = key("task", Kind::Object(&PARALLEL_TASK), "The program.");
pub(super) const INPUT_DATA: Key = key("input_data", Kind::Text, "The input that is cut up: `${{inputs.x}}`.");
pub(super) const BATCH: Key =
    key("mini_batch_size", Kind::Label, "How many files, or about how much of a table, such as `10mb`.").or("1");
pub(super) const PARTITION: Key =
    key("partition_keys", Kind::List(&Kind::Text), "Columns that cut a table instead of a size.");
pub(super) const CONCURRENCY: Key =
    key("max_concurrency_per_instance", Kind::POSITIVE, "Processes on each node; one a core when absent.");
pub(super) const RETRY: Key = key("retry_settings", Kind::Object(&RETRIES), "What happens to a mini-batch that fails.");
pub(super) const FAILED_ITEMS: Key =
    key("error_threshold", Kind::INT, "Failed items that are put up with; -1 for any number.").or("-1");
pub(super) const FAILED_BATCHES: Key =
    key("mini_batch_error_threshold", Kind::INT, "Failed mini-batches that are put up with; -1 for any number.")
        .or("-1");
pub(super) const LOGGING: Key = key("logging_level", Kind::Words(LOG_LEVELS), "How much is logged.").or("INFO");

static PARALLEL_TASK: Object = Object {
    name: "task",
    doc: "The program that works on a mini-batch.",
    keys: &[
        key("type", Kind::Words(&["run_function", "model", "function"]), "The kind of program.").required(),
        CODE,
        key("entry_script", Kind::Text, "The Python file with `init` and `run`."),
        key("program_arguments", Kind::Text, "Its arguments; may use `${{inputs.x}}`."),
        key("model", Kind::Text, "The model, for `type: model`."),
        key("append_row_to", Kind::Text, "The output that collects what `run` returns."),
        key("environment", ENVIRONMENT, "The software it needs.").required(),
    ],
    unknown: Unknown::KeptBeside(&[]),
    ..PLAIN
};

static IMPORT_SOURCE: Object = Object {
    name: "source of an import",
    doc: "Where the data comes from.",
    keys: &[
        key("type", Kind::Words(&["azuresqldb", "azuresynapseanalytics", "snowflake", "s3"]), "The kind of source.")
            .required(),
        key("connection", Kind::Text, "The connection to it.").required(),
        key("query", Kind::Text, "What to ask a database."),
        key("path", Kind::Text, "The path in a store of files."),
    ],
    ..PLAIN
};

const TRANSFER: &[Key] = &[
    key("task", Kind::Words(&["copy_data", "import_data", "export_data"]), "What is done.").required(),
    key("data_copy_mode", Kind::Words(&["merge_with_overwrite", "fail_if_conflict"]), "What to do where both have it."),
    key("source", PLACES, "Where data is imported from."),
    key("sink", PLACES, "Where data is exported to."),
];

const PLACES: Kind = Kind::Either(&[Kind::Text, Kind::Object(&PLACE)]);

static PLACE: Object = Object {
    name: "source or sink",
    doc: "A database or a store of files outside.",
    keys: &[
        key("type", Kind::Words(&["database", "file_system"]), "The kind of place."),
        key("connection", Kind::Text, "The connection to it.").required(),
        key("path", Kind::Text, "The path in a store of files."),
        key("table_name", Kind::Text, "The table of a database."),
        key("query", Kind::Text, "What to ask a database."),
        key("stored_procedure", Kind::Text, "What to call in a database."),
        key("stored_procedure_params", Kind::List(&Kind::Map), "Its arguments."),
    ],
    ..PLAIN
};
