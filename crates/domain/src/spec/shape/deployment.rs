//! The keys of online deployments, and those that batch deployments have too.

use super::{
    Key, Kind, Object, PLAIN, Variant, assets, key,
    parts::{CONTEXT, DESCRIPTION, ENVIRONMENT, ID, SCHEMA, STATE, TAGS, VARIABLES},
};

pub(super) const NAME: Key = key("name", Kind::Text, "The deployment's name.");
pub(super) const ENDPOINT: Key =
    key("endpoint_name", Kind::Text, "Its endpoint; `--endpoint-name` or `--set` gives it too.");
pub(super) const PROPERTIES: Key = key("properties", Kind::Labels, "Settings kept with it; cannot be changed later.");
pub(super) const MODEL: Key =
    key("model", MODELS, "A registered model, or one that is registered with the deployment.");
const MODELS: Kind =
    Kind::Either(&[Kind::Reference { to: "models", version: true }, Kind::Object(&assets::INLINE_MODEL)]);
pub(super) const SCRIPT: Key = key("code_configuration", Kind::Object(&CODE_CONFIGURATION), "The program that scores.");
pub(super) const SOFTWARE: Key = key("environment", ENVIRONMENT, "The software it needs.");

pub(super) static ONLINE_DEPLOYMENT: Object = Object {
    name: "online-deployment",
    doc: "Replicas that answer an online endpoint's requests.",
    keys: &[
        SCHEMA,
        NAME.required(),
        ENDPOINT.required(),
        key("type", Kind::Words(&["managed", "kubernetes"]), "Where it runs.").or("managed"),
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        MODEL,
        key("model_mount_path", Kind::Text, "Where a container of your own finds the model."),
        SCRIPT,
        SOFTWARE,
        VARIABLES,
        key("instance_count", Kind::COUNT, "Replicas.").or("1"),
        key("app_insights_enabled", Kind::Bool, "Kept for Azure; unused here.").or("false"),
        key("scale_settings", Kind::Object(&SCALE), "How the number of replicas follows the load."),
        key("request_settings", Kind::Object(&REQUESTS), "How long requests may wait and run."),
        key("liveness_probe", Kind::Object(&PROBE), "When a replica counts as alive."),
        key("readiness_probe", Kind::Object(&PROBE), "When a replica gets requests."),
        key("data_collector", Kind::Object(&COLLECTOR), "Which requests and answers are kept."),
        ID,
        STATE,
        CONTEXT,
    ],
    variants: &[
        Variant {
            word: "managed",
            doc: "On machines of the service.",
            keys: &[
                key("instance_type", Kind::Text, "The machine size.").required(),
                key(
                    "egress_public_network_access",
                    Kind::Words(&["enabled", "disabled"]),
                    "Whether it reaches the world outside.",
                ),
                key("private_network_connection", Kind::Bool, "Kept for Azure; unused here."),
            ],
        },
        Variant {
            word: "kubernetes",
            doc: "On a Kubernetes target.",
            keys: &[
                key("instance_type", Kind::Text, "An instance type of the target."),
                key("resources", Kind::Object(&CONTAINER), "What each replica gets."),
            ],
        },
    ],
    otherwise: Some("managed"),
    ..PLAIN
};

static CODE_CONFIGURATION: Object = Object {
    name: "code_configuration",
    doc: "The program that scores.",
    keys: &[
        SCHEMA,
        key("code", Kind::Text, "The folder it lies in."),
        key("scoring_script", Kind::Text, "The Python file with `init` and `run`."),
    ],
    ..PLAIN
};

static SCALE: Object = Object {
    name: "scale_settings",
    doc: "How the number of replicas follows the load.",
    keys: &[key("type", Kind::Words(&["default", "target_utilization"]), "Whether it does.").required()],
    variants: &[
        Variant { word: "default", doc: "As many replicas as `instance_count` says.", keys: &[] },
        Variant {
            word: "target_utilization",
            doc: "As many as the load needs.",
            keys: &[
                key("min_instances", Kind::COUNT, "The fewest replicas.").or("1"),
                key("max_instances", Kind::POSITIVE, "The most replicas.").or("1"),
                key("target_utilization_percentage", Kind::Int { min: 1, max: 100 }, "How busy replicas should be.")
                    .or("70"),
                key("polling_interval", Kind::POSITIVE, "Seconds between two looks at the load.").or("1"),
            ],
        },
    ],
    ..PLAIN
};

static REQUESTS: Object = Object {
    name: "request_settings",
    doc: "How long requests may wait and run.",
    keys: &[
        key("request_timeout_ms", Kind::POSITIVE, "Milliseconds a request may take.").or("5000"),
        key("max_concurrent_requests_per_instance", Kind::POSITIVE, "Requests a replica works on at once.").or("1"),
        key("max_queue_wait_ms", Kind::COUNT, "Milliseconds a request may wait.").or("500"),
    ],
    ..PLAIN
};

static PROBE: Object = Object {
    name: "probe",
    doc: "How often a replica is asked, and when its answer counts.",
    keys: &[
        key("initial_delay", Kind::COUNT, "Seconds before the first question.").or("10"),
        key("period", Kind::POSITIVE, "Seconds between two questions.").or("10"),
        key("timeout", Kind::POSITIVE, "Seconds to wait for an answer.").or("2"),
        key("success_threshold", Kind::POSITIVE, "Good answers in a row that are believed.").or("1"),
        key("failure_threshold", Kind::POSITIVE, "Bad answers in a row that are believed.").or("30"),
    ],
    ..PLAIN
};

static CONTAINER: Object = Object {
    name: "resources",
    doc: "What each replica gets.",
    keys: &[
        key("requests", Kind::Object(&AMOUNTS), "Set aside for it."),
        key("limits", Kind::Object(&AMOUNTS), "The most it may use."),
    ],
    ..PLAIN
};

static AMOUNTS: Object = Object {
    name: "amounts",
    doc: "Amounts as Kubernetes writes them.",
    keys: &[
        key("cpu", Kind::Label, "Cores: `2` or `500m`."),
        key("memory", Kind::Label, "Memory: `4Gi`, `512Mi`."),
        key("gpu", Kind::Label, "Whole GPUs."),
        key("nvidia.com/gpu", Kind::Label, "Whole GPUs."),
    ],
    ..PLAIN
};

static COLLECTOR: Object = Object {
    name: "data_collector",
    doc: "Which requests and answers are kept.",
    keys: &[
        key(
            "collections",
            Kind::MapOf(&COLLECTION_VALUE),
            "What is kept, by name; `request` and `response` are known.",
        ),
        key("rolling_rate", Kind::Words(&["minute", "hour", "day"]), "How often a new file is begun.").or("hour"),
        key("sampling_rate", Kind::Number, "The share that is kept, from 0 to 1.").or("1.0"),
        key("request_logging", Kind::Object(&HEADERS), "Which headers are kept."),
    ],
    ..PLAIN
};

static COLLECTION_VALUE: Kind = Kind::Object(&COLLECTION);

static COLLECTION: Object = Object {
    name: "collection",
    doc: "One kind of data that is kept.",
    keys: &[
        key("enabled", Kind::Words(&["true", "false"]), "Whether it is.").required(),
        key("data", Kind::Either(&[Kind::Text, Kind::Map]), "Where it is kept."),
        key("client_id", Kind::Text, "As whom it is written."),
    ],
    ..PLAIN
};

static HEADERS: Object = Object {
    name: "request_logging",
    doc: "Which headers are kept.",
    keys: &[key("capture_headers", Kind::List(&Kind::Text), "Their names.")],
    ..PLAIN
};
