//! `peregrine sdk|principal …`.

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum SdkVerb {
    /// Print the variables that the Python SDK and MLflow need for this workspace
    #[command(after_help = "Examples:\n  eval \"$(peregrine sdk env)\"\n  peregrine sdk env --shell fish | source\n  \
                      peregrine sdk env --python > connect.py\n  peregrine sdk env --dotenv > .env")]
    Env(Env),
    /// Make a client id and secret for the Python SDK, and remember them for `sdk env`
    #[command(
        after_help = "Examples:\n  peregrine sdk login\n  peregrine sdk login --name ci --role contributor --expires-days 30"
    )]
    Login(Login),
}

#[derive(Debug, Args)]
pub(crate) struct Env {
    /// Shell to print for
    #[arg(long, value_enum, default_value = "bash", conflicts_with_all = ["python", "dotenv"])]
    pub(crate) shell: Shell,
    /// Print a snippet for a notebook or script
    #[arg(long, conflicts_with = "dotenv")]
    pub(crate) python: bool,
    /// Print lines for a `.env` file
    #[arg(long)]
    pub(crate) dotenv: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Fish,
    Powershell,
}

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// Name to show for what this client does
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// What it may do: `reader`, `contributor` or `owner`
    #[arg(long, value_name = "ROLE", default_value = "contributor")]
    pub(crate) role: String,
    /// In every workspace instead of this one
    #[arg(long)]
    pub(crate) everywhere: bool,
    /// Days until it ends
    #[arg(long, value_name = "DAYS", default_value = "365")]
    pub(crate) expires_days: f64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PrincipalVerb {
    /// Register a user or program; prints its secret once
    #[command(after_help = "Examples:\n  peregrine principal create --name ana --role contributor\n  \
                      peregrine principal create --name auditor --role reader --everywhere --expires-days 7")]
    Create(Login),
    /// List who may call the server
    #[command(after_help = "Examples:\n  peregrine principal list")]
    List,
    /// Give someone a role in this workspace, or with `@` before its name in a registry
    #[command(after_help = "Examples:\n  peregrine principal grant --id ID --role owner -w team-a\n  \
                      peregrine principal grant --id ID --role contributor -w @shared")]
    Grant(Grant),
    /// Take someone's role in this workspace away
    #[command(after_help = "Examples:\n  peregrine principal ungrant --id ID -w team-a")]
    Ungrant(Known),
    /// End someone's access for good
    #[command(after_help = "Examples:\n  peregrine principal revoke --id ID")]
    Revoke(Known),
}

#[derive(Debug, Args)]
pub(crate) struct Known {
    /// Client id
    #[arg(long, value_name = "ID")]
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// Client id
    #[arg(long, value_name = "ID")]
    pub(crate) id: String,
    /// `reader`, `contributor` or `owner`
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: String,
}
