//! The keys of jobs: those of every kind, those of a command job, and the maps that other kinds share with it.

use super::{
    Key, Kind, Object, PLAIN, Variant, automl, key,
    parts::{CONTEXT, ID, SCHEMA},
    pipeline, spark, sweep,
};

pub(super) static JOB: Object = Object {
    name: "job",
    doc: "Work to be done: one command, or something made of commands. Command, pipeline and sweep jobs run; the other kinds are checked.",
    keys: &[
        SCHEMA,
        key("type", Kind::Words(JOBS), "The kind of job.").or("command"),
        key("name", Kind::Text, "Unique in the workspace; a friendly one is made when absent."),
        key("display_name", Kind::Label, "Shown in lists; need not be unique."),
        key("experiment_name", Kind::Label, "Groups runs; the working folder's name when absent."),
        key("description", Kind::Label, "Free text; Markdown is shown as such."),
        key("tags", Kind::Labels, "Words to find the job by; can be changed later."),
        key("properties", Kind::Labels, "Settings kept with the job; those under `peregrine.` are our own."),
        key("services", Kind::MapOf(&SERVICE_VALUE), "Interactive programs that run beside the command."),
        key("identity", Kind::Object(&IDENTITY), "As whom the job reads data."),
        key("compute", Kind::Text, "The compute target: `azureml:name`, or `local`.").or("local"),
        key("status", Kind::Shown, "Filled in by the server."),
        key("log_files", Kind::Shown, "Filled in by the server."),
        key("parameters", Kind::Shown, "Filled in by the server."),
        key("parent_job_name", Kind::Shown, "Filled in by the server."),
        ID,
        CONTEXT,
    ],
    variants: &[
        Variant { word: "command", doc: "One command, run where and with what the file says.", keys: COMMAND },
        Variant { word: "sweep", doc: "The same command many times, each with other values.", keys: sweep::JOB },
        Variant { word: "pipeline", doc: "Steps that use each other's results.", keys: pipeline::JOB },
        Variant { word: "spark", doc: "A Spark program.", keys: spark::JOB },
        Variant {
            word: "automl",
            doc: "Models and settings tried by the service itself; no job of this kind can run here.",
            keys: automl::JOB,
        },
        Variant {
            word: "import",
            doc: "Data fetched from elsewhere; no job of this kind can run here.",
            keys: pipeline::IMPORT,
        },
    ],
    otherwise: Some("command"),
    ..PLAIN
};

const JOBS: &[&str] = &["command", "sweep", "pipeline", "spark", "automl", "import"];

const COMMAND: &[Key] = &[
    key("command", Kind::Text, "Shell text to run; may use `${{inputs.x}}` and `${{outputs.x}}`.").required(),
    key("code", Kind::Text, "A folder that becomes the working directory, or a code asset."),
    key("environment", ENVIRONMENT, "A registered or curated environment by name, or one defined here.").required(),
    key("environment_variables", Kind::Labels, "Set for the command."),
    key("distribution", Kind::Object(&DISTRIBUTION), "How the command is spread over processes and nodes."),
    key("resources", Kind::Object(&RESOURCES), "What each node of the job gets."),
    key("limits", Kind::Object(&LIMITS), "When to stop the job."),
    key("inputs", Kind::MapOf(&INPUT_VALUE), "Values and data by name, for `${{inputs.name}}`."),
    key(
        "outputs",
        Kind::MapOf(&OUTPUT_VALUE),
        "Places to write to by name, for `${{outputs.name}}`; nothing after the name means the defaults.",
    ),
    key("queue_settings", Kind::Object(&QUEUE_SETTINGS), "How the job waits."),
];

const ENVIRONMENT: Kind = Kind::Either(&[Kind::Text, Kind::Object(&super::assets::INLINE_ENVIRONMENT)]);
static INPUT_VALUE: Kind = Kind::Either(&[Kind::Scalar, Kind::Object(&INPUT)]);
static OUTPUT_VALUE: Kind = Kind::Object(&OUTPUT);
pub(super) static SERVICE_VALUE: Kind = Kind::Object(&SERVICE);

pub(super) const DATA_TYPES: &[&str] =
    &["uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", "triton_model"];
const PROCESSES: Key = key("process_count_per_instance", Kind::POSITIVE, "Processes on each node.").or("1");

static INPUT: Object = Object {
    name: "input",
    doc: "Data for the command. A literal value stands directly after the name instead.",
    keys: &[
        key("type", Kind::Words(DATA_TYPES), "What lies at the path.").or("uri_folder"),
        key("path", Kind::Text, "A local path, `azureml:name:version`, `azureml://...`, or another URI.").required(),
        key(
            "mode",
            Kind::Words(&["ro_mount", "download", "direct", "eval_mount", "eval_download", "rw_mount"]),
            "How the command sees it; `eval_*` are for `mltable` only.",
        )
        .or("ro_mount"),
        key("description", Kind::Label, "Free text."),
    ],
    ..PLAIN
};

static OUTPUT: Object = Object {
    name: "output",
    doc: "A place the command writes to.",
    keys: &[
        key("type", Kind::Words(DATA_TYPES), "What the command writes.").or("uri_folder"),
        key("path", Kind::Text, "Where it is kept; may use `${{name}}`. A folder of the job's own when absent."),
        key(
            "mode",
            Kind::Words(&["rw_mount", "upload", "direct"]),
            "When it is kept: as it is written, or at the end.",
        )
        .or("rw_mount"),
        key("name", Kind::Text, "Registers the result as an asset of this name."),
        key("version", Kind::Label, "The version of that asset; counted up when absent."),
        key("description", Kind::Label, "The description of that asset."),
        key("tags", Kind::Labels, "The tags of that asset."),
    ],
    ..PLAIN
};

pub(super) static DISTRIBUTION: Object = Object {
    name: "distribution",
    doc: "How the command is spread over processes and nodes.",
    keys: &[key(
        "type",
        Kind::Words(&["pytorch", "tensorflow", "mpi", "ray"]),
        "The framework's way of finding its peers.",
    )
    .required()],
    variants: &[
        Variant {
            word: "pytorch",
            doc: "`MASTER_ADDR`, `RANK` and the like are set for each process.",
            keys: &[PROCESSES],
        },
        Variant {
            word: "tensorflow",
            doc: "`TF_CONFIG` is set for each task.",
            keys: &[
                key("worker_count", Kind::POSITIVE, "Workers; one per node when absent."),
                key("parameter_server_count", Kind::COUNT, "Parameter servers.").or("0"),
            ],
        },
        Variant { word: "mpi", doc: "Started by `mpirun` on the first node.", keys: &[PROCESSES] },
        Variant {
            word: "ray",
            doc: "A Ray cluster is started over the nodes.",
            keys: &[
                key("port", Kind::Int { min: 1, max: 65535 }, "The head node's port."),
                key("address", Kind::Text, "An existing cluster to join instead."),
                key("include_dashboard", Kind::Bool, "Whether to start the dashboard."),
                key("dashboard_port", Kind::Int { min: 1, max: 65535 }, "The dashboard's port."),
                key("head_node_additional_args", Kind::Text, "More arguments for the head node."),
                key("worker_node_additional_args", Kind::Text, "More arguments for the others."),
            ],
        },
    ],
    ..PLAIN
};

pub(super) static RESOURCES: Object = NODE_RESOURCES;

pub(super) const NODE_RESOURCES: Object = Object {
    name: "resources",
    doc: "What each node of the job gets.",
    keys: &[
        key("instance_count", Kind::POSITIVE, "Nodes.").or("1"),
        key("instance_type", Kind::Label, "An instance type of the target, or a machine size."),
        key("shm_size", Kind::Label, "Shared memory of the container: a number and `b`, `k`, `m` or `g`.").or("2g"),
        key("docker_args", Kind::Arguments, "More arguments for the container engine."),
        key("max_instance_count", Kind::POSITIVE, "The most nodes of an elastic job."),
        key("locations", Kind::List(&Kind::Text), "Kept for Azure; unused here."),
        key("properties", Kind::Map, "Settings for particular targets."),
    ],
    ..PLAIN
};

pub(super) static LIMITS: Object = Object {
    name: "limits",
    doc: "When to stop the job.",
    keys: &[key(
        "timeout",
        Kind::Int { min: 1, max: i64::MAX },
        "Seconds after which the job is cancelled; never when absent.",
    )],
    ..PLAIN
};

static SERVICE: Object = Object {
    name: "service",
    doc: "An interactive program beside the command, for as long as it runs.",
    keys: &[
        key("type", Kind::Words(SERVICES), "The program."),
        key("job_service_type", Kind::Text, "An older name of `type`."),
        key("nodes", Kind::Label, "`all`, or the index of one node; the first when absent."),
        key("port", Kind::Int { min: 1, max: 65535 }, "The port it listens on."),
        key("log_dir", Kind::Text, "For `tensor_board`: the folder it reads."),
        key("ssh_public_keys", Kind::Text, "For `ssh`: who may enter."),
        key("properties", Kind::Map, "More settings of the program."),
    ],
    ..PLAIN
};

const SERVICES: &[&str] = &["jupyter_lab", "vs_code", "tensor_board", "ssh", "custom"];

pub(super) static QUEUE_SETTINGS: Object = Object {
    name: "queue_settings",
    doc: "How the job waits.",
    keys: &[
        key(
            "job_tier",
            Kind::Words(&["spot", "basic", "standard", "premium", "null"]),
            "The quality of machine time asked for.",
        ),
        key("priority", Kind::Words(&["low", "medium", "high"]), "Which jobs go first.").or("medium"),
    ],
    ..PLAIN
};

pub(super) static IDENTITY: Object = Object {
    name: "identity",
    doc: "As whom the job reads data.",
    keys: &[
        key(
            "type",
            Kind::Words(&["aml_token", "user_identity", "managed", "managed_identity"]),
            "The kind of identity.",
        )
        .required(),
        key("client_id", Kind::Text, "Of a user-assigned identity."),
        key("object_id", Kind::Text, "Of a user-assigned identity."),
        key("resource_id", Kind::Text, "Of a user-assigned identity."),
        key("msi_resource_id", Kind::Text, "An older name of `resource_id`."),
    ],
    ..PLAIN
};
