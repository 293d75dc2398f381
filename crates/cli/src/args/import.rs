//! `peregrine import …`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ImportVerb {
    /// Copy experiments, runs, artifacts and models from the database of an MLflow server, then compare both
    #[command(after_help = "Examples:\n  peregrine import mlflow --from sqlite:///mlflow.db --dry-run\n  \
                      peregrine import mlflow --from sqlite:///mlflow.db\n  \
                      peregrine import mlflow --from sqlite:////srv/mlflow/mlflow.db --artifacts /srv/mlflow/mlartifacts\n  \
                      peregrine import mlflow --from sqlite:///mlflow.db --experiment churn fraud -w team-a")]
    Mlflow(Mlflow),
}

#[derive(Debug, Args)]
pub(crate) struct Mlflow {
    /// The database, as MLflow names it or as a path; it is only read
    #[arg(long, value_name = "URI")]
    pub(crate) from: String,
    /// Folder that the MLflow server keeps artifacts in, where they are not where the database says
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: Option<PathBuf>,
    /// Copy only these experiments, and the models their runs made
    #[arg(long, num_args = 1.., value_name = "NAME")]
    pub(crate) experiment: Vec<String>,
    /// Count what would be copied; ask and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
