//! The keys of online and batch endpoints.

use super::{
    Key, Kind, Object, PLAIN, key,
    parts::{DESCRIPTION, ID, SCHEMA, STATE, TAGS},
    targets::TARGET_IDENTITY,
};

const NAME: Key = key("name", Kind::Text, "3 to 32 letters, digits and `-`, starting with a letter.").required();
const AUTH: Key = key("auth_mode", Kind::Words(&["key", "aml_token", "aad_token"]), "How callers prove who they are.");
const PROPERTIES: Key = key("properties", Kind::Labels, "Settings kept with it; cannot be changed later.");
const IDENTITY: Key = key("identity", Kind::Object(&TARGET_IDENTITY), "As whom its deployments act.");
const LOCATION: Key = key("location", Kind::Text, "A region; the workspace's when absent.");
const SCORING: Key = key("scoring_uri", Kind::Shown, "Filled in by the server.");
const OPENAPI: Key = key("openapi_uri", Kind::Shown, "Filled in by the server.");
const KIND: Key = key("kind", Kind::Shown, "Filled in by the server.");

pub(super) static ONLINE_ENDPOINT: Object = Object {
    name: "online-endpoint",
    doc: "An address that answers requests at once; its deployments do the work.",
    keys: &[
        SCHEMA,
        NAME,
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        AUTH,
        key("traffic", Kind::MapOf(&SHARE), "Shares of the requests by deployment; together 100, or 0."),
        key("mirror_traffic", Kind::MapOf(&SHARE), "The share of requests that one deployment gets a copy of."),
        key(
            "compute",
            Kind::Reference { to: "computes", version: false },
            "The Kubernetes target it runs on: `azureml:name`.",
        ),
        key(
            "public_network_access",
            Kind::Words(&["enabled", "disabled"]),
            "Whether the endpoint is reachable from outside.",
        ),
        IDENTITY,
        LOCATION,
        SCORING,
        OPENAPI,
        KIND,
        ID,
        STATE,
    ],
    ..PLAIN
};

static SHARE: Kind = Kind::Int { min: 0, max: 100 };

pub(super) static BATCH_ENDPOINT: Object = Object {
    name: "batch-endpoint",
    doc: "An address that takes whole data sets and starts jobs on them.",
    keys: &[
        SCHEMA,
        NAME,
        DESCRIPTION,
        TAGS,
        PROPERTIES,
        AUTH,
        key("defaults", Kind::Object(&DEFAULTS), "What is used when a call says nothing."),
        IDENTITY,
        LOCATION,
        SCORING,
        OPENAPI,
        ID,
        STATE,
    ],
    ..PLAIN
};

static DEFAULTS: Object = Object {
    name: "defaults",
    doc: "What is used when a call says nothing.",
    keys: &[key("deployment_name", Kind::Text, "The deployment.")],
    ..PLAIN
};
