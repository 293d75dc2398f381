//! Settings: read raw from four places, then checked whole.
//!
//! The order is built-in default, `peregrine.toml` in the home folder, `PEREGRINE_*` in the environment, flag;
//! later wins. Invariants: a [`Config`] is already true, and every mistake in it was told at once. No setting is shown
//! with a secret in it: tokens and keys are named by the file they lie in, and an address is shown without its password.

mod check;
mod edit;
mod instance_types;
mod settings;
#[cfg(test)]
mod tests;

pub(crate) use edit::with_value;
pub(crate) use settings::{SETTINGS, Setting, find, nearest};

use crate::{
    failure::{Done, Failure},
    output::Format,
};
use domain::{InstanceType, resources::DiskShare, spec::Mistake};
use std::{
    collections::BTreeMap,
    fmt, fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};
use store::{Database, PostgresAddress};

/// The file's name in the home folder.
pub(crate) const FILE: &str = "peregrine.toml";

/// Settings as code uses them.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Where the server keeps its state.
    pub(crate) home: PathBuf,
    pub(crate) listen: SocketAddr,
    /// The user chose the address, so that no other will do.
    pub(crate) listen_chosen: bool,
    /// A second listener without TLS, on loopback only.
    pub(crate) http: Option<SocketAddr>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    /// How clients reach the server, where that is not the address it listens on.
    pub(crate) public_url: Option<String>,
    /// Where the server's own router listens, and whether the user chose that, so that no other address will do.
    pub(crate) router_listen: SocketAddr,
    pub(crate) router_listen_chosen: bool,
    /// How callers reach the router, where that is not the address it listens on.
    pub(crate) router_public_url: Option<String>,
    /// Where the server's own router writes a line for each request; `-` is standard error.
    pub(crate) router_access_log: Option<PathBuf>,
    /// Requests a second that one caller may make; 0 for no limit.
    pub(crate) rate_limit: u32,
    /// How long the certificate of a node is good.
    pub(crate) node_certificate: Duration,
    /// Webhooks may call plain http, this machine and private networks.
    pub(crate) private_webhooks: bool,
    /// A server elsewhere; this machine's own when absent.
    pub(crate) url: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) authority_file: Option<PathBuf>,
    pub(crate) workspace: String,
    pub(crate) resource_group: String,
    pub(crate) subscription: String,
    pub(crate) output: Option<Format>,
    /// Jobs whose image cannot be used fail instead of running on the host.
    pub(crate) isolation_required: bool,
    /// What of this machine jobs may use.
    pub(crate) slots: Slots,
    pub(crate) max_retries: u32,
    /// Seconds between asking a process to end and killing it.
    pub(crate) grace_seconds: u64,
    /// The most the cache of remote data may hold.
    pub(crate) cache: DiskShare,
    /// The most the stores of a workspace may hold; 0 is no limit.
    pub(crate) storage_quota: u64,
    /// A job of higher priority may stop one of lower.
    pub(crate) preempt: bool,
    /// After how long what someone has used counts half.
    pub(crate) half_life: Duration,
    /// How long deleted runs and experiments can be brought back; for ever where this is nothing.
    pub(crate) keep_deleted: Option<Duration>,
    /// The records are in Postgres there, instead of in a file in the home.
    pub(crate) postgres: Option<PostgresAddress>,
    pub(crate) store_password_file: Option<PathBuf>,
    pub(crate) instance_types: Vec<InstanceType>,
    /// Every setting as text and where it came from.
    pub(crate) sources: BTreeMap<&'static str, (String, Source)>,
}

/// Limits on what of this machine is offered; what is absent is detected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) cpu_milli: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) gpus: Option<u32>,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File(PathBuf),
    Environment(&'static str),
    Flag(&'static str),
}

/// What flags say about settings: key, flag and value.
pub(crate) type Flags = Vec<(&'static str, &'static str, String)>;

/// Reads everything and checks it.
pub(crate) fn load(home: Option<&Path>, flags: &Flags) -> Done<Config> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let home = home_folder(home, &variable)?;
    let file = home.join(FILE);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => String::new(),
        Err(error) => return Err(Failure::file(format!("cannot read the settings in `{}`", file.display()), &error)),
    };
    let raw = check::Raw { home, file: &file, text: &text, variable: &variable, flags };
    check::check(&raw).map_err(|mistakes| told(&text, &mistakes))
}

/// Whether this text, as the settings file, could be read.
pub(crate) fn check_text(home: &Path, text: &str) -> Done {
    let file = home.join(FILE);
    let raw = check::Raw { home: home.to_owned(), file: &file, text, variable: &|_| None, flags: &Flags::new() };
    check::check(&raw).map(drop).map_err(|mistakes| told(text, &mistakes))
}

fn told(text: &str, mistakes: &[Mistake]) -> Failure {
    let count = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        n => format!("{n} mistakes"),
    };
    Failure::mistakes(format!("{count} in the settings"), text, mistakes)
}

/// `--home`, else `PEREGRINE_HOME`, else the platform's data folder for `peregrine`. Always absolute.
pub(crate) fn home_folder(flag: Option<&Path>, variable: &dyn Fn(&str) -> Option<String>) -> Done<PathBuf> {
    let named = flag.map(Path::to_owned).or_else(|| variable("PEREGRINE_HOME").map(PathBuf::from));
    let folder = match named {
        Some(folder) => folder,
        None => default_home(variable)?,
    };
    std::path::absolute(&folder)
        .map_err(|error| Failure::file(format!("cannot use `{}` as home", folder.display()), &error))
}

fn default_home(variable: &dyn Fn(&str) -> Option<String>) -> Done<PathBuf> {
    let user = variable("HOME").map(PathBuf::from);
    let data = match (variable("XDG_DATA_HOME"), user) {
        (Some(data), _) if !cfg!(target_os = "macos") && data.starts_with('/') => Some(PathBuf::from(data)),
        (_, Some(user)) if cfg!(target_os = "macos") => Some(user.join("Library/Application Support")),
        (_, user) => user.map(|user| user.join(".local/share")),
    };
    match data {
        Some(data) => Ok(data.join("peregrine")),
        None => Err(Failure::input("cannot tell where to keep state")
            .because("neither `PEREGRINE_HOME` nor `HOME` is set")
            .hint("set `PEREGRINE_HOME` to a folder you can write to")),
    }
}

impl Config {
    /// The head of every resource path.
    pub(crate) fn scope(&self) -> api::arm::Scope {
        api::arm::Scope {
            subscription: self.subscription.clone(),
            group: self.resource_group.clone(),
            workspace: self.workspace.clone(),
        }
    }

    /// Where the records are kept, with the password that a file holds.
    pub(crate) fn database(&self) -> Done<Database> {
        let Some(address) = self.postgres.clone() else { return Ok(Database::Sqlite) };
        let Some(file) = &self.store_password_file else { return Ok(Database::Postgres(address)) };
        let password = fs::read_to_string(file)
            .map_err(|error| Failure::file(format!("cannot read the password in `{}`", file.display()), &error))?;
        Ok(Database::Postgres(address.with_password(password.trim_end_matches(['\r', '\n']))))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => write!(f, "default"),
            Source::File(path) => write!(f, "{}", path.display()),
            Source::Environment(name) => write!(f, "${name}"),
            Source::Flag(flag) => write!(f, "{flag}"),
        }
    }
}
