//! The table of settings: key, variable, default and a sentence each.

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// `section.key`, as in the file.
    pub(crate) key: &'static str,
    pub(crate) variable: &'static str,
    /// Empty when there is none.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
}

const fn setting(key: &'static str, variable: &'static str, default: &'static str, about: &'static str) -> Setting {
    Setting { key, variable, default, about }
}

/// Every setting that is one value.
pub(crate) const SETTINGS: &[Setting] = &[
    setting(
        "server.listen",
        "PEREGRINE_SERVER_LISTEN",
        "127.0.0.1:7423",
        "address of the server; another free port is taken when the default one is in use",
    ),
    setting("server.http", "PEREGRINE_SERVER_HTTP", "", "a second address without TLS, on loopback only"),
    setting(
        "server.tls_cert",
        "PEREGRINE_SERVER_TLS_CERT",
        "",
        "certificate chain in PEM; needed to listen beyond loopback",
    ),
    setting("server.tls_key", "PEREGRINE_SERVER_TLS_KEY", "", "private key of that certificate in PEM"),
    setting(
        "server.public_url",
        "PEREGRINE_SERVER_PUBLIC_URL",
        "",
        "how clients reach the server, where that is not the address it listens on",
    ),
    setting(
        "router.listen",
        "PEREGRINE_ROUTER_LISTEN",
        "127.0.0.1:7424",
        "address of the server's own router, where online endpoints answer; another free port is taken when the default one is in use",
    ),
    setting(
        "router.public_url",
        "PEREGRINE_ROUTER_PUBLIC_URL",
        "",
        "how callers reach online endpoints, where that is not the address the router listens on",
    ),
    setting(
        "router.access_log",
        "PEREGRINE_ROUTER_ACCESS_LOG",
        "logs/router.log",
        "file for one line of JSON a request of the server's own router, by default in the home; put aside at 64 MiB; `-` for stderr, `off` for none",
    ),
    setting(
        "server.rate_limit",
        "PEREGRINE_SERVER_RATE_LIMIT",
        "1000",
        "requests a second that one user or program may make; 0 for no limit",
    ),
    setting(
        "server.node_certificate_seconds",
        "PEREGRINE_SERVER_NODE_CERTIFICATE_SECONDS",
        "86400",
        "how long the certificate of a managed cluster's node is good; it is renewed at half of that",
    ),
    setting(
        "server.private_webhooks",
        "PEREGRINE_SERVER_PRIVATE_WEBHOOKS",
        "false",
        "`true` lets webhooks call plain http, this machine and private networks",
    ),
    setting("server.url", "PEREGRINE_SERVER_URL", "", "a server elsewhere to talk to, instead of this machine's own"),
    setting("server.token_file", "PEREGRINE_SERVER_TOKEN_FILE", "", "file with the token for that server"),
    setting(
        "server.authority_file",
        "PEREGRINE_SERVER_AUTHORITY_FILE",
        "",
        "file with the authority that signed its certificate, in PEM",
    ),
    setting("defaults.workspace", "PEREGRINE_WORKSPACE", "default", "the workspace when `-w` names none"),
    setting("defaults.resource_group", "PEREGRINE_RESOURCE_GROUP", "default", "part of resource ids"),
    setting(
        "defaults.subscription",
        "PEREGRINE_SUBSCRIPTION",
        "00000000-0000-0000-0000-000000000000",
        "part of resource ids",
    ),
    setting("defaults.output", "PEREGRINE_OUTPUT", "", "`table`, `json`, `yaml`, `tsv` or `none`"),
    setting(
        "local.isolation",
        "PEREGRINE_LOCAL_ISOLATION",
        "none",
        "`required` refuses jobs whose container image cannot be used; `none` runs them on the host",
    ),
    setting("local.cpus", "PEREGRINE_LOCAL_CPUS", "", "cores that jobs may use; all when absent"),
    setting("local.memory", "PEREGRINE_LOCAL_MEMORY", "", "memory that jobs may use, such as `8Gi`; all when absent"),
    setting("local.gpus", "PEREGRINE_LOCAL_GPUS", "", "GPUs that jobs may use; all when absent"),
    setting("local.max_retries", "PEREGRINE_LOCAL_MAX_RETRIES", "3", "new attempts at a job whose node was lost"),
    setting(
        "local.grace_seconds",
        "PEREGRINE_LOCAL_GRACE_SECONDS",
        "10",
        "seconds between asking a process to end and killing it",
    ),
    setting(
        "local.preemption",
        "PEREGRINE_LOCAL_PREEMPTION",
        "off",
        "`lower-priority` lets a job stop those of lower priority that are in its way; they begin again later",
    ),
    setting(
        "sharing.half_life_hours",
        "PEREGRINE_SHARING_HALF_LIFE_HOURS",
        "24",
        "hours after which what someone has used counts half when it is decided who goes first",
    ),
    setting(
        "storage.quota",
        "PEREGRINE_STORAGE_QUOTA",
        "0",
        "the most the stores of one workspace may hold, such as `500Gi`; 0 is no limit",
    ),
    setting(
        "tracking.keep_deleted_days",
        "PEREGRINE_TRACKING_KEEP_DELETED_DAYS",
        "30",
        "days after which deleted runs and experiments are removed for good; 0 is never",
    ),
    setting(
        "store.url",
        "PEREGRINE_STORE_URL",
        "",
        "a database in Postgres, such as `postgresql://user@host/database`; a file in the home when absent",
    ),
    setting("store.password_file", "PEREGRINE_STORE_PASSWORD_FILE", "", "file with the password for that database"),
    setting(
        "local.cache_size",
        "PEREGRINE_LOCAL_CACHE_SIZE",
        "20%",
        "the most the cache of remote data may hold, as an amount or as a share of its disk",
    ),
];

/// Keys of one `[[local.instance_types]]`.
pub(super) const INSTANCE_TYPE_KEYS: &[&str] = &["name", "cpu", "memory", "gpus", "limits"];

pub(crate) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// The known word nearest to `text`, where one is near enough to be meant.
pub(crate) fn nearest<'w>(text: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let scored = known.map(|word| (strsim::damerau_levenshtein(text, word), word));
    scored.min().filter(|(distance, word)| *distance <= (word.len() / 3).max(1)).map(|(_, word)| word)
}

/// What to do about an unknown word.
pub(super) fn did_you_mean<'w>(text: &str, known: impl Iterator<Item = &'w str>) -> String {
    match nearest(text, known) {
        Some(word) => format!("did you mean `{word}`?"),
        None => "`peregrine config show` lists them".to_owned(),
    }
}
