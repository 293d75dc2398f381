//! `peregrine extension …`: the cluster's side of a Kubernetes compute target.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ExtensionVerb {
    /// Install the extension into a cluster and make the server know it
    #[command(
        after_help = "Examples:\n  peregrine extension install --cluster-name lab --config enableTraining=True\n  \
                            peregrine extension install --cluster-name lab --server https://10.0.0.5:7423 --config enableTraining=True nodeSelector.pool=ml"
    )]
    Install(Install),
    /// Change settings or the version of an extension that is installed
    #[command(after_help = "Examples:\n  peregrine extension upgrade\n  \
                            peregrine extension upgrade --config operatorReplicas=2 --image peregrine:0.2.0")]
    Upgrade(Upgrade),
    /// Remove the extension and everything it made, and prove that nothing is left
    #[command(
        after_help = "Examples:\n  peregrine extension uninstall\n  peregrine extension uninstall --yes --keep-instance-types"
    )]
    Uninstall(Uninstall),
    /// Show what is installed and how it is
    #[command(
        after_help = "Examples:\n  peregrine extension status\n  peregrine extension status --query ready -o tsv"
    )]
    Status(ClusterArgs),
    /// Check a cluster and the extension in it, by code
    #[command(after_help = "Examples:\n  peregrine extension health-check\n  peregrine extension health-check -o json")]
    HealthCheck(ClusterArgs),
    /// Print what would be applied, and apply nothing
    #[command(
        after_help = "Examples:\n  peregrine extension manifests --cluster-name lab --server https://10.0.0.5:7423 --config enableTraining=True > extension.yml"
    )]
    Manifests(Manifests),
    /// Make the server know a cluster and print the token its operator shows; one given before stops working
    #[command(after_help = "Examples:\n  peregrine extension token --cluster-name lab")]
    Token(Token),
    /// List every setting that `--config` takes
    #[command(after_help = "Examples:\n  peregrine extension settings")]
    Settings,
    /// Wait to be told to stop; what the pods that hold memory back run
    #[command(hide = true)]
    Hold,
}

/// Which cluster, and where in it.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterArgs {
    #[command(flatten)]
    pub(crate) reach: Reach,
    /// Namespace of the extension
    #[arg(long, value_name = "NAME", default_value = "peregrine")]
    pub(crate) namespace: String,
}

/// How to reach a cluster.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Reach {
    /// File that says how to reach the cluster; what `kubectl` takes when absent
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Which of its contexts to use; the current one when absent
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// Settings as they are typed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ConfigArgs {
    /// Settings, as in `--config enableTraining=True`
    #[arg(long, num_args = 1.., value_name = "KEY=VALUE")]
    pub(crate) config: Vec<String>,
    /// Settings that are secret; values name the files that hold them
    #[arg(long, num_args = 1.., value_name = "KEY=FILE")]
    pub(crate) config_protected: Vec<String>,
    /// YAML or JSON file with a map of settings; `--config` wins
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Shape {
    #[command(flatten)]
    pub(crate) settings: ConfigArgs,
    /// The server's address as pods reach it; the one in use when absent
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// PEM file with the authority that signed the server's certificate, where pods' systems do not know it
    #[arg(long, value_name = "FILE")]
    pub(crate) server_authority: Option<PathBuf>,
    /// Image of Peregrine
    #[arg(long, value_name = "REF")]
    pub(crate) image: Option<String>,
    /// Proxy for https that the operator uses
    #[arg(long, value_name = "URL")]
    pub(crate) proxy_https: Option<String>,
    /// Proxy for http that the operator uses
    #[arg(long, value_name = "URL")]
    pub(crate) proxy_http: Option<String>,
    /// Addresses that are reached without the proxy
    #[arg(long, value_name = "LIST")]
    pub(crate) proxy_skip_range: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Name under which the server knows the cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: String,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// Take over a definition of instance types that another extension left
    #[arg(long)]
    pub(crate) adopt: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Upgrade {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(flatten)]
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) patience: Patience,
    /// Give the operator a new token; the old one stops working
    #[arg(long)]
    pub(crate) rotate_token: bool,
    /// Change what jobs that run depend on all the same
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Patience {
    /// Seconds to wait for the operator
    #[arg(long, value_name = "SECONDS", default_value = "120")]
    pub(crate) timeout: u64,
    /// Leave what was made when it does not become ready
    #[arg(long)]
    pub(crate) no_rollback: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Uninstall {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Leave instance types and their definition
    #[arg(long)]
    pub(crate) keep_instance_types: bool,
    /// Seconds to wait until everything is gone
    #[arg(long, value_name = "SECONDS", default_value = "180")]
    pub(crate) timeout: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Manifests {
    /// Name under which the server knows the cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: String,
    /// Namespace of the extension
    #[arg(long, value_name = "NAME", default_value = "peregrine")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) shape: Shape,
    /// File with the operator's token; without it no secret is printed
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Token {
    /// Name under which the server knows the cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: String,
}
