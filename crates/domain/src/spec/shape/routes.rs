//! The keys of a router's table.

use super::{Kind, Object, PLAIN, key, parts::SCHEMA};

pub(super) static ROUTES: Object = Object {
    name: "routes",
    doc: "The table of a router that runs alone; read again when the file changes.",
    keys: &[
        SCHEMA,
        key(
            "endpoints",
            Kind::MapOf(&Kind::Object(&ENDPOINT)),
            "Endpoints by name; each answers under `/api/v1/endpoint/<name>/`.",
        )
        .required(),
    ],
    ..PLAIN
};

static ENDPOINT: Object = Object {
    name: "endpoint",
    doc: "One endpoint: its callers, its traffic, its deployments.",
    keys: &[
        key("auth_mode", Kind::Words(&["key", "aml_token"]), "How callers prove who they are.").or("key"),
        key("keys", Kind::Object(&KEYS), "The keys that callers may use, with `auth_mode: key`."),
        key("token_key", Kind::Label, "The secret that tokens are signed with, with `auth_mode: aml_token`."),
        key("traffic", Kind::MapOf(&SHARE), "Shares of the requests by deployment; together 100, or 0."),
        key(
            "mirror_traffic",
            Kind::MapOf(&SHARE),
            "The share of requests that one deployment gets a copy of; at most 50.",
        ),
        key(
            "hosts",
            Kind::List(&Kind::Text),
            "Host names under which the endpoint answers at `/score` and `/swagger.json`.",
        ),
        key("max_body_bytes", Kind::Int { min: 1, max: i64::MAX }, "Larger requests are answered with 413.")
            .or("104857600"),
        key("cors", Kind::Object(&CORS), "Which web pages may call it from a browser; none when absent."),
        key("deployments", Kind::MapOf(&Kind::Object(&DEPLOYMENT)), "Deployments by name.").required(),
    ],
    ..PLAIN
};

static SHARE: Kind = Kind::Int { min: 0, max: 100 };

static KEYS: Object = Object {
    name: "keys",
    doc: "Two, so that one can be changed while callers still use the other. Each is the key itself or `sha256:` and its digest in hex.",
    keys: &[key("primary", Kind::Label, "The first key."), key("secondary", Kind::Label, "The second key.")],
    ..PLAIN
};

static CORS: Object = Object {
    name: "cors",
    doc: "Which web pages may call the endpoint from a browser.",
    keys: &[
        key("origins", Kind::List(&Kind::Text), "Origins such as `https://app.example`, or `*` for all.").required(),
        key("max_age_seconds", Kind::COUNT, "How long a browser may remember the answer.").or("600"),
    ],
    ..PLAIN
};

static DEPLOYMENT: Object = Object {
    name: "deployment",
    doc: "One deployment: where its replicas are and how much they take.",
    keys: &[
        key("replicas", Kind::List(&Kind::Text), "Addresses such as `10.0.0.7:5001`; none holds requests back."),
        key("scoring_path", Kind::Text, "The replicas' path behind `/score`.").or("/score"),
        key("request_settings", Kind::Object(&SETTINGS), "How requests are handed out."),
        key("max_queued", Kind::COUNT, "How many requests may wait for a slot.").or("1000"),
        key("hold_ms", Kind::COUNT, "How long a request is held while there is no replica at all.").or("60000"),
    ],
    ..PLAIN
};

static SETTINGS: Object = Object {
    name: "request_settings",
    doc: "How requests are handed out.",
    keys: &[
        key(
            "request_timeout_ms",
            Kind::POSITIVE,
            "How long a replica may take to begin its answer, and to fall silent in it.",
        )
        .or("5000"),
        key("max_concurrent_requests_per_instance", Kind::POSITIVE, "How many requests one replica gets at a time.")
            .or("1"),
        key("max_queue_wait_ms", Kind::COUNT, "How long a request waits for a slot.").or("500"),
    ],
    ..PLAIN
};
