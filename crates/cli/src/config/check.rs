//! From raw settings to true ones.

use super::{
    Config, Flags, Slots, Source,
    instance_types::read_types,
    settings::{SETTINGS, did_you_mean},
};
use clap::ValueEnum;
use domain::{
    InstanceType,
    names::WorkspaceName,
    resources::{DiskShare, parse_bytes, parse_cpu},
    spec::Mistake,
};
use std::{
    collections::BTreeMap,
    fmt::Display,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use store::PostgresAddress;
use toml::{Table, Value};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What people wrote, from every place.
pub(super) struct Raw<'a> {
    pub(super) home: PathBuf,
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    pub(super) flags: &'a Flags,
}

/// All settings, or all mistakes.
pub(super) fn check(raw: &Raw<'_>) -> Result<Config, Vec<Mistake>> {
    let mut bad = Vec::new();
    let mut found = Found::defaults();
    let mut instance_types = Vec::new();
    match raw.text.parse::<Table>() {
        Ok(table) => read_file(raw.file, &table, &mut found, &mut instance_types, &mut bad),
        Err(error) => bad.push(syntax(raw, &error)),
    }
    for setting in SETTINGS {
        if let Some(value) = (raw.variable)(setting.variable) {
            found.put(setting.key, value, Source::Environment(setting.variable));
        }
    }
    for (key, flag, value) in raw.flags {
        found.put(key, value.clone(), Source::Flag(flag));
    }
    let config = build(raw.home.clone(), found, instance_types, &mut bad);
    match (config, bad.is_empty()) {
        (Some(config), true) => Ok(config),
        _ => Err(bad),
    }
}

/// Settings by key: text and source.
struct Found(BTreeMap<&'static str, (String, Source)>);

impl Found {
    fn defaults() -> Found {
        Found(SETTINGS.iter().map(|s| (s.key, (s.default.to_owned(), Source::Default))).collect())
    }

    fn put(&mut self, key: &'static str, value: String, source: Source) {
        self.0.insert(key, (value, source));
    }

    fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", |(value, _)| value)
    }

    /// Parses a setting; an empty one is `None`.
    fn parse<T, E: Display>(
        &self,
        key: &'static str,
        bad: &mut Vec<Mistake>,
        fix: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let text = self.text(key);
        if text.is_empty() {
            return None;
        }
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                bad.push(self.mistake(key, format!("`{text}` cannot be used: {error}"), fix));
                None
            }
        }
    }

    /// The address of the database. From here on it is shown without its password; a wrong one is not shown at all.
    fn postgres(&mut self, bad: &mut Vec<Mistake>) -> Option<PostgresAddress> {
        let key = "store.url";
        let (text, _) = self.0.get_mut(key).filter(|(text, _)| !text.is_empty())?;
        match PostgresAddress::parse(text) {
            Ok(address) => {
                *text = address.to_string();
                Some(address)
            }
            Err(error) => {
                let fix = "write it like `postgresql://user@host/database`";
                bad.push(self.mistake(key, format!("cannot be used: {error}"), fix));
                None
            }
        }
    }

    fn path(&self, key: &'static str) -> Option<PathBuf> {
        let (text, source) = self.0.get(key).filter(|(text, _)| !text.is_empty())?;
        match source {
            // A path in the file is relative to the file.
            Source::File(file) => Some(file.parent().unwrap_or(Path::new("")).join(text)),
            _ => std::path::absolute(text).ok(),
        }
    }

    /// Where the router of the server writes its access log, if anywhere.
    fn access_log(&self, home: &Path) -> Option<PathBuf> {
        let key = "router.access_log";
        match self.0.get(key)? {
            (text, _) if text.is_empty() || text == "off" => None,
            (text, _) if text == "-" => Some(PathBuf::from("-")),
            (text, Source::Default) => Some(home.join(text)),
            _ => self.path(key),
        }
    }

    fn mistake(&self, key: &'static str, message: impl Into<String>, fix: &str) -> Mistake {
        let file = match self.0.get(key).map(|(_, source)| source) {
            Some(Source::Default) | None => String::new(),
            Some(source) => source.to_string(),
        };
        Mistake { file, ..Mistake::new(key, message, fix) }
    }
}

fn syntax(raw: &Raw<'_>, error: &toml::de::Error) -> Mistake {
    let at = error.span().map_or(0, |span| span.start).min(raw.text.len());
    let before = raw.text.get(..at).unwrap_or(raw.text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    let message = format!("not TOML: {}", error.message().to_lowercase());
    Mistake { file: raw.file.display().to_string(), line, column, ..Mistake::new("", message, "") }
}

fn read_file(file: &Path, table: &Table, found: &mut Found, types: &mut Vec<InstanceType>, bad: &mut Vec<Mistake>) {
    let place = file.display().to_string();
    let mut tell = |key: &str, message: String, fix: String| {
        bad.push(Mistake { file: place.clone(), ..Mistake::new(key, message, fix) });
    };
    for (section, inner) in table {
        let known = || SETTINGS.iter().filter_map(|s| s.key.split_once('.')).map(|(section, _)| section);
        if !known().any(|name| name == section) {
            tell(section, "is not a section of the settings".to_owned(), did_you_mean(section, known()));
            continue;
        }
        let Value::Table(inner) = inner else {
            tell(section, "must be a section".to_owned(), format!("write `[{section}]` on a line of its own"));
            continue;
        };
        for (name, value) in inner {
            let key = format!("{section}.{name}");
            if key == "local.instance_types" {
                types.extend(read_types(value, &mut tell));
                continue;
            }
            let Some(setting) = super::find(&key) else {
                tell(&key, "is not a setting".to_owned(), did_you_mean(&key, SETTINGS.iter().map(|s| s.key)));
                continue;
            };
            match super::instance_types::scalar(value) {
                Some(text) => found.put(setting.key, text, Source::File(file.to_owned())),
                None => tell(&key, "must be one value".to_owned(), "write text, a number or a boolean".to_owned()),
            }
        }
    }
}

fn build(home: PathBuf, mut found: Found, instance_types: Vec<InstanceType>, bad: &mut Vec<Mistake>) -> Option<Config> {
    let address = "write it like `127.0.0.1:7423`";
    let listen = found.parse("server.listen", bad, address, str::parse::<SocketAddr>);
    let http = found.parse("server.http", bad, address, str::parse::<SocketAddr>);
    let url = found.parse("server.url", bad, "write it like `https://ml.example.org:7423`", server_url);
    let public_url = found.parse("server.public_url", bad, "write it like `https://ml.example.org`", server_url);
    let router_listen = found.parse("router.listen", bad, "write it like `127.0.0.1:7424`", str::parse::<SocketAddr>);
    let router_public_url =
        found.parse("router.public_url", bad, "write it like `https://serve.example.org`", server_url);
    let router_access_log = found.access_log(&home);
    let rate_limit = found.parse("server.rate_limit", bad, "a whole number", str::parse);
    let node_certificate =
        found.parse("server.node_certificate_seconds", bad, "a whole number from 4 to 31536000", |text| {
            text.parse::<u64>()
                .ok()
                .filter(|n| (4..=31_536_000).contains(n))
                .ok_or("it is not such a number of seconds")
        });
    let private_webhooks = found.parse("server.private_webhooks", bad, "write `true` or `false`", str::parse);
    let workspace =
        found.parse("defaults.workspace", bad, "name a workspace", |t| WorkspaceName::parse(t).map(String::from));
    let resource_group = found.parse("defaults.resource_group", bad, "letters, digits, `-`, `_` and `.`", id_part);
    let subscription = found.parse("defaults.subscription", bad, "letters, digits, `-`, `_` and `.`", id_part);
    let output = found.parse("defaults.output", bad, "one of `table`, `json`, `yaml`, `tsv`, `none`", |text| {
        crate::output::Format::from_str(text, true)
    });
    let isolation_required = found.parse("local.isolation", bad, "write `none` or `required`", |text| match text {
        "none" | "optional" => Ok(false),
        "required" => Ok(true),
        _ => Err("it is not a word known here"),
    });
    let amount = "it is not an amount";
    let slots = Slots {
        cpu_milli: found
            .parse("local.cpus", bad, "such as `4` or `500m`", |t| parse_cpu(t).filter(|n| *n > 0).ok_or(amount)),
        memory_bytes: found
            .parse("local.memory", bad, "such as `8Gi`", |t| parse_bytes(t).filter(|n| *n > 0).ok_or(amount)),
        gpus: found.parse("local.gpus", bad, "a whole number", str::parse),
    };
    let max_retries = found.parse("local.max_retries", bad, "a whole number", str::parse);
    let grace_seconds = found.parse("local.grace_seconds", bad, "a whole number", str::parse);
    let cache = found.parse("local.cache_size", bad, "such as `20Gi` or `20%`", |t| DiskShare::parse(t).ok_or(amount));
    let storage_quota = found.parse("storage.quota", bad, "such as `500Gi`", |t| parse_bytes(t).ok_or(amount));
    let keep_deleted = found.parse("tracking.keep_deleted_days", bad, "a whole number", str::parse::<u32>);
    let preempt = found.parse("local.preemption", bad, "write `off` or `lower-priority`", |text| match text {
        "off" => Ok(false),
        "lower-priority" => Ok(true),
        _ => Err("it is not a word known here"),
    });
    let half_life = found.parse("sharing.half_life_hours", bad, "a whole number from 1 to 8760", |text| {
        text.parse::<u32>().ok().filter(|hours| (1..=8760).contains(hours)).ok_or("it is not a number of hours")
    });
    let postgres = found.postgres(bad);
    let (tls_cert, tls_key) = (found.path("server.tls_cert"), found.path("server.tls_key"));
    addresses(&found, [("server.listen", listen), ("router.listen", router_listen)], http, (&tls_cert, &tls_key), bad);
    let chosen = |key| found.0.get(key).is_some_and(|(_, source)| *source != Source::Default);
    let (listen_chosen, router_listen_chosen) =
        (chosen("server.listen"), chosen("router.listen") && router_listen.is_some_and(|at| at.port() != 0));
    Some(Config {
        home,
        listen: listen?,
        listen_chosen,
        http,
        tls_cert,
        tls_key,
        public_url,
        router_listen: router_listen?,
        router_listen_chosen,
        router_public_url,
        router_access_log,
        rate_limit: rate_limit?,
        node_certificate: Duration::from_secs(node_certificate?),
        private_webhooks: private_webhooks?,
        url,
        token_file: found.path("server.token_file"),
        authority_file: found.path("server.authority_file"),
        workspace: workspace?,
        resource_group: resource_group?,
        subscription: subscription?,
        output,
        isolation_required: isolation_required?,
        slots,
        max_retries: max_retries?,
        grace_seconds: grace_seconds?,
        cache: cache?,
        storage_quota: storage_quota?,
        preempt: preempt?,
        half_life: Duration::from_secs(3600) * half_life?,
        keep_deleted: Some(keep_deleted?).filter(|days| *days > 0).map(|days| DAY * days),
        postgres,
        store_password_file: found.path("store.password_file"),
        instance_types,
        sources: found.0,
    })
}

/// What the addresses must satisfy together.
fn addresses(
    found: &Found,
    listeners: [(&'static str, Option<SocketAddr>); 2],
    http: Option<SocketAddr>,
    (cert, key): (&Option<PathBuf>, &Option<PathBuf>),
    bad: &mut Vec<Mistake>,
) {
    let (cert, key) = (cert.is_some(), key.is_some());
    if cert != key {
        let (has, lacks) =
            if cert { ("server.tls_cert", "server.tls_key") } else { ("server.tls_key", "server.tls_cert") };
        bad.push(found.mistake(has, format!("is set without `{lacks}`"), "set both"));
    }
    let far = |listen: &SocketAddr| !(listen.ip().is_loopback() || cert && key);
    for (setting, listen) in listeners.into_iter().filter_map(|(setting, listen)| Some((setting, listen.filter(far)?)))
    {
        let message =
            format!("`{listen}` is reachable from other machines, which is refused without a certificate of your own");
        bad.push(found.mistake(setting, message, "set `server.tls_cert` and `server.tls_key`, or listen on 127.0.0.1"));
    }
    if let Some(http) = http.filter(|http| !http.ip().is_loopback()) {
        let message = format!("`{http}` would carry tokens over the network in the clear");
        bad.push(found.mistake("server.http", message, "use an address on 127.0.0.1"));
    }
}

fn server_url(text: &str) -> Result<String, &'static str> {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://127.0.0.1"));
    match host {
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err("a token must not travel without TLS"),
    }
}

fn id_part(text: &str) -> Result<String, &'static str> {
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.()".contains(&b));
    match plain && text.len() <= 90 && text != "." && text != ".." {
        true => Ok(text.to_owned()),
        false => Err("it has letters that resource ids cannot have"),
    }
}
