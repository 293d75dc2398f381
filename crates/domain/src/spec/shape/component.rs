//! The keys of components: reusable steps with typed inputs and outputs.

use super::{
    Key, Kind, Object, PLAIN, Unknown, Variant,
    job::{DISTRIBUTION, NODE_RESOURCES, QUEUE_SETTINGS},
    key,
    parts::{CODE, CONTEXT, ENVIRONMENT, ID, LATEST, SCHEMA, TAGS, VARIABLES},
    pipeline, spark,
};

pub(super) static COMPONENT: Object = Object {
    name: "component",
    doc: "A reusable step with typed inputs and outputs.",
    keys: &[
        key("name", Kind::Text, "Lowercase letters, digits and `_`, starting with a letter.").required(),
        key("version", Kind::Label, "Chosen by you, or counted up when absent."),
        SCHEMA,
        key("type", Kind::Words(COMPONENTS), "The kind of component.").or("command"),
        LABEL,
        key("description", Kind::Label, "Free text."),
        TAGS,
        PROPERTIES,
        STABLE,
        INCLUDES,
        ID,
        CONTEXT,
        LATEST,
        key("auto_delete_setting", Kind::Shown, "Kept for Azure; unused here."),
        key("intellectual_property", Kind::Shown, "Filled in by the server."),
    ],
    variants: &[COMMAND, PIPELINE, PARALLEL, SPARK, IMPORT, DATA_TRANSFER],
    otherwise: Some("command"),
    unknown: Unknown::KeptBeside(&[]),
    ..PLAIN
};

/// A component where a step defines it.
pub(super) static INLINE: Object = Object {
    name: "component, inline",
    doc: "A component defined where it is used; `name` and `version` are accepted and not needed.",
    keys: &[
        key("name", Kind::Shown, "Not needed here."),
        key("version", Kind::Shown, "Not needed here."),
        SCHEMA,
        key("type", Kind::Words(INLINE_COMPONENTS), "The kind of component.").or("command"),
        LABEL,
        key("description", Kind::Label, "Free text."),
        TAGS,
        PROPERTIES,
        STABLE,
        INCLUDES,
        ID,
        CONTEXT,
        LATEST,
    ],
    variants: &[COMMAND, PARALLEL, SPARK, IMPORT, DATA_TRANSFER],
    otherwise: Some("command"),
    unknown: Unknown::KeptBeside(&[]),
    ..PLAIN
};

const LABEL: Key = key("display_name", Kind::Label, "Shown in lists.");
const PROPERTIES: Key = key("properties", Kind::Map, "Settings kept with it.");
const STABLE: Key = key(
    "is_deterministic",
    Kind::Bool,
    "Whether the same inputs give the same outputs, so that results can be reused.",
)
.or("true");
const INCLUDES: Key = key("additional_includes", Kind::List(&Kind::Text), "More files and folders to upload.");

const COMPONENTS: &[&str] = &["command", "pipeline", "parallel", "spark", "import", "data_transfer"];
const INLINE_COMPONENTS: &[&str] = &["command", "parallel", "spark", "import", "data_transfer"];

const COMMAND: Variant = Variant {
    word: "command",
    doc: "One command.",
    keys: &[
        key("command", Kind::Text, "Shell text to run; may use `${{inputs.x}}` and `${{outputs.x}}`.").required(),
        CODE,
        key("environment", ENVIRONMENT, "The software it needs.").required(),
        VARIABLES,
        key("distribution", Kind::Object(&DISTRIBUTION), "How it is spread over processes and nodes."),
        RESOURCE,
        key("queue_settings", Kind::Object(&QUEUE_SETTINGS), "How it waits."),
        INPUTS,
        OUTPUTS,
    ],
};

const PIPELINE: Variant = Variant {
    word: "pipeline",
    doc: "Steps that use each other's results.",
    keys: &[key("jobs", pipeline::STEPS, "The steps by name."), INPUTS, OUTPUTS],
};

const PARALLEL: Variant = Variant {
    word: "parallel",
    doc: "One program over many pieces of data at once.",
    keys: &[
        pipeline::TASK,
        pipeline::INPUT_DATA,
        pipeline::BATCH,
        pipeline::PARTITION,
        pipeline::CONCURRENCY,
        pipeline::RETRY,
        pipeline::FAILED_ITEMS,
        pipeline::FAILED_BATCHES,
        pipeline::LOGGING,
        RESOURCE,
        INPUTS,
        OUTPUTS,
    ],
};

const SPARK: Variant = Variant {
    word: "spark",
    doc: "A Spark program.",
    keys: &[
        spark::ENTRY.required(),
        CODE,
        spark::PY_FILES,
        spark::JARS,
        spark::FILES,
        spark::ARCHIVES,
        spark::CONF,
        spark::ARGS,
        spark::SOFTWARE,
        INPUTS,
        OUTPUTS,
    ],
};

const IMPORT: Variant = Variant {
    word: "import",
    doc: "Data fetched from elsewhere; cannot run here.",
    keys: &[
        key("source", Kind::MapOf(&INPUT_VALUE), "Its parameters.").required(),
        key("output", Kind::Object(&OUTPUT), "Where it goes.").required(),
    ],
};

const DATA_TRANSFER: Variant = Variant {
    word: "data_transfer",
    doc: "Data moved between stores; cannot run here.",
    keys: &[
        key("task", Kind::Words(&["copy_data", "import_data", "export_data"]), "What is done.").required(),
        key(
            "data_copy_mode",
            Kind::Words(&["merge_with_overwrite", "fail_if_conflict"]),
            "What to do where both have it.",
        ),
        key("source", Kind::Map, "Where data is imported from."),
        key("sink", Kind::Map, "Where data is exported to."),
        INPUTS,
        OUTPUTS,
    ],
};

const RESOURCE: Key = key("resources", Kind::Object(&OPEN_RESOURCES), "What each node of it gets.");
const INPUTS: Key = key("inputs", Kind::MapOf(&INPUT_VALUE), "What it takes, by name.");
const OUTPUTS: Key = key("outputs", Kind::MapOf(&OUTPUT_VALUE), "What it gives, by name.");
static OPEN_RESOURCES: Object = Object { unknown: Unknown::KeptBeside(&[]), ..NODE_RESOURCES };
static INPUT_VALUE: Kind = Kind::Object(&INPUT);
static OUTPUT_VALUE: Kind = Kind::Object(&OUTPUT);

const LITERALS_AND_PORTS: &[&str] = &[
    "string",
    "integer",
    "number",
    "boolean",
    "uri_folder",
    "uri_file",
    "mltable",
    "mlflow_model",
    "custom_model",
    "triton_model",
    "path",
];
const MODES: &[&str] =
    &["ro_mount", "rw_mount", "mount", "download", "upload", "direct", "eval_mount", "eval_download", "link"];

static INPUT: Object = Object {
    name: "input of a component",
    doc: "What a component takes.",
    keys: &[
        key("type", Kind::Words(LITERALS_AND_PORTS), "What it is.").required(),
        key("description", Kind::Label, "Free text."),
        key("optional", Kind::Bool, "Whether it may be left out.").or("false"),
        key("default", Kind::Scalar, "Its value when it is left out."),
        key("min", Kind::Scalar, "The least number."),
        key("max", Kind::Scalar, "The greatest number."),
        key("enum", Kind::List(&Kind::Scalar), "The only texts it may be."),
        key("mode", Kind::Words(MODES), "How the command sees it."),
    ],
    ..PLAIN
};

static OUTPUT: Object = Object {
    name: "output of a component",
    doc: "What a component gives.",
    keys: &[
        key("type", Kind::Words(LITERALS_AND_PORTS), "What it is.").required(),
        key("description", Kind::Label, "Free text."),
        key("mode", Kind::Words(MODES), "When it is kept."),
        key("is_control", Kind::Bool, "Whether steps may depend on its value."),
        key("early_available", Kind::Bool, "Whether it can be used before the step has ended."),
    ],
    ..PLAIN
};
