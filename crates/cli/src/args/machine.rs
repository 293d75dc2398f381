//! `peregrine server|router|config|agent|gen …`.

use clap::{Args, Subcommand};
use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

#[derive(Debug, Subcommand)]
pub(crate) enum ServerVerb {
    /// Start the server in the background
    #[command(
        after_help = "Examples:\n  peregrine server start\n  peregrine server start --foreground --listen 127.0.0.1:7423"
    )]
    Start(Start),
    /// Stop the server; running jobs go on
    #[command(after_help = "Examples:\n  peregrine server stop")]
    Stop,
    /// Show whether a server runs, and where
    #[command(after_help = "Examples:\n  peregrine server status\n  peregrine server status -o json --query url")]
    Status,
    /// Copy the database while the server may be running
    #[command(after_help = "Examples:\n  peregrine server backup --to peregrine-backup.db")]
    Backup(Backup),
    /// Remove deleted runs and experiments for good, and give their space back
    #[command(after_help = "Examples:\n  peregrine server gc\n  peregrine server gc --older-than 7d\n  \
                            peregrine server gc --older-than 0d")]
    Gc(Gc),
    /// Show who changed what, and who was refused, newest first
    #[command(after_help = "Examples:\n  peregrine server audit\n  peregrine server audit -r 20 -o json")]
    Audit(Audit),
    /// Sign tokens with a new key from now on; tokens that were given out end with their time
    #[command(after_help = "Examples:\n  peregrine server rotate-keys")]
    RotateKeys,
}

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// How many lines
    #[arg(short = 'r', long, value_name = "N", default_value = "50")]
    pub(crate) max_results: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Only what was deleted at least so long ago, such as `7d` or `12h`; as long as `tracking.keep_deleted_days` says
    /// when absent
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) older_than: Option<Duration>,
}

/// Reads days, hours, minutes and seconds, such as `7d` or `1d12h`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let (days, rest) = text.split_at(text.find('d').map_or(0, |at| at + 1));
    let time = if rest.is_empty() { String::new() } else { format!("T{rest}") };
    let read = domain::time::parse_iso_duration(&format!("P{days}{time}").to_uppercase());
    read.ok_or_else(|| "write it like `7d`, `12h` or `1d12h`".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Stay in the foreground and log to stderr
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// A second address without TLS, on loopback only
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Certificate chain in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key in PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Keep records in this Postgres; a password in it is seen by whoever lists processes, so set `store.password_file`
    #[arg(long, value_name = "URL")]
    pub(crate) store_url: Option<String>,
    /// Log to a file because nobody watches; set by the command that starts a server in the background
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Studio {
    /// Show this job
    #[arg(short, long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Print the link and open nothing; it works once, within two minutes
    #[arg(long)]
    pub(crate) print: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Router {
    /// YAML file with endpoints, keys, traffic and replicas; read again when it changes
    #[arg(long, value_name = "FILE", required_unless_present = "server")]
    pub(crate) routes: Option<PathBuf>,
    /// Take the routes of a server, and go on with them while it is away: that of `server.url`, or of this machine
    #[arg(long, conflicts_with = "routes")]
    pub(crate) server: bool,
    /// Address to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7480")]
    pub(crate) listen: SocketAddr,
    /// Threads that serve; one for each core when absent
    #[arg(long, value_name = "N", alias = "threads")]
    pub(crate) workers: Option<NonZeroUsize>,
    /// Certificate chain in PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Whether to speak HTTP/2 with callers that want it
    #[arg(long, value_name = "ON|OFF", default_value = "on", value_parser = ["on", "off"], hide_possible_values = true)]
    pub(crate) http2: String,
    /// Address for /metrics, /readyz and /demand; nobody is asked for a key there
    #[arg(long, value_name = "ADDR")]
    pub(crate) admin: Option<SocketAddr>,
    /// File for one line of JSON a request; `-` for stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<PathBuf>,
    /// How long requests may take to finish when the router is told to stop
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    pub(crate) drain_seconds: u64,
    /// Share the port with a router that is about to stop
    #[arg(long)]
    pub(crate) share_port: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Show every setting and where it came from
    #[command(after_help = "Examples:\n  peregrine config show")]
    Show,
    /// Print one setting
    #[command(after_help = "Examples:\n  peregrine config get server.listen")]
    Get { key: String },
    /// Write one setting to the settings file; an empty value takes it out
    #[command(
        after_help = "Examples:\n  peregrine config set defaults.workspace team-a\n  peregrine config set local.cpus 4"
    )]
    Set { key: String, value: String },
    /// Print where the settings file lies
    #[command(after_help = "Examples:\n  peregrine config path")]
    Path,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentVerb {
    /// Run the node's agent
    Run,
    /// Keep the node's agent running
    Keep,
    /// Run one attempt, or one part of it, as the first process of a pod
    Pod,
    /// Run the agent of a pod
    Part,
    /// Run a node of a managed cluster
    Node,
    /// Copy this program into a folder, for containers that do not have it
    Place {
        /// Folder to copy it to
        to: PathBuf,
    },
}

/// What an operator is told by its Deployment; each has a variable of its own.
#[derive(Debug, Args)]
pub(crate) struct Operator {
    /// Address of the server [PEREGRINE_SERVER]
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// File with the cluster's token [PEREGRINE_TOKEN_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// File with the authority that signed the server's certificate [PEREGRINE_CA_FILE]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Image of this program, which brings the agent into pods [PEREGRINE_IMAGE]
    #[arg(long, value_name = "REF")]
    pub(crate) image: Option<String>,
    /// Namespace the operator runs in [PEREGRINE_NAMESPACE]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Name among several operators [POD_NAME]
    #[arg(long, value_name = "NAME")]
    pub(crate) identity: Option<String>,
    /// Settings of the extension as a JSON object [PEREGRINE_SETTINGS]
    #[arg(long, value_name = "JSON")]
    pub(crate) settings: Option<String>,
    /// Address for metrics and probes
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8080")]
    pub(crate) listen: std::net::SocketAddr,
    /// How to reach the cluster, where the operator does not run in it
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GenVerb {
    /// Write the generated reference
    Docs {
        /// Folder to write to
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Write the Helm chart and the definitions for Kubernetes
    #[cfg(feature = "kubernetes")]
    Deploy {
        /// Folder to write to
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_days_hours_minutes_and_seconds() {
        for (text, seconds) in
            [("7d", 604_800), ("0d", 0), ("12h", 43_200), ("1d12h", 129_600), ("90m", 5400), ("5s", 5)]
        {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for bad in ["", "7", "d", "1w2", "-1d", "x"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
