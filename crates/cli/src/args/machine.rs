//! `peregrine server|config|agent|gen …`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

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
pub(crate) struct Backup {
    /// File to write
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
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
