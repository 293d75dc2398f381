//! `peregrine environment|data|model|component …`.

use super::{ChangeArgs, FileArgs, ValidateArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum EnvironmentVerb {
    /// Register an environment
    #[command(after_help = "Examples:\n  peregrine environment create -f environment.yml\n  \
                            peregrine environment create -n train --image python:3.12 --conda-file conda.yml")]
    Create(EnvironmentCreate),
    /// Show an environment
    #[command(after_help = "Examples:\n  peregrine environment show -n train -v 1\n  \
                            peregrine environment show -n sklearn-1.5 --registry azureml")]
    Show(Show),
    /// List environments, or the versions of one
    #[command(after_help = "Examples:\n  peregrine environment list\n  peregrine environment list -n train\n  \
                            peregrine environment list --registry azureml")]
    List(List),
    /// Change tags or description
    #[command(after_help = "Examples:\n  peregrine environment update -n train -v 1 --set tags.state=old")]
    Update(Update),
    /// Leave an environment out of lists
    #[command(after_help = "Examples:\n  peregrine environment archive -n train -v 1")]
    Archive(Which),
    /// Bring an archived environment back
    #[command(after_help = "Examples:\n  peregrine environment restore -n train -v 1")]
    Restore(Which),
    /// Copy a version into a registry, for other workspaces to use
    #[command(after_help = "Examples:\n  peregrine environment share -n NAME -v 1 --registry-name shared")]
    Share(Share),
    /// Check an environment file
    #[command(after_help = "Examples:\n  peregrine environment validate -f environment.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataVerb {
    /// Register data, uploading a local path
    #[command(
        after_help = "Examples:\n  peregrine data create -f data.yml\n  peregrine data create -n iris --path iris.csv --type uri_file"
    )]
    Create(DataCreate),
    /// Show a data asset
    #[command(after_help = "Examples:\n  peregrine data show -n iris --label latest")]
    Show(Show),
    /// List data assets, or the versions of one
    #[command(after_help = "Examples:\n  peregrine data list\n  peregrine data list -n iris")]
    List(List),
    /// Change tags or description
    #[command(after_help = "Examples:\n  peregrine data update -n iris -v 1 --set description=cleaned")]
    Update(Update),
    /// Leave data out of lists
    #[command(after_help = "Examples:\n  peregrine data archive -n iris -v 1")]
    Archive(Which),
    /// Bring archived data back
    #[command(after_help = "Examples:\n  peregrine data restore -n iris -v 1")]
    Restore(Which),
    /// Put the files of a data asset where work will run, ahead of it
    #[command(after_help = "Examples:\n  peregrine data replicate -n iris --to crew\n  \
                            peregrine data replicate -n iris -v 2 --to crew --nodes 4")]
    Replicate(Replicate),
    /// Copy a version into a registry, for other workspaces to use
    #[command(after_help = "Examples:\n  peregrine data share -n NAME -v 1 --registry-name shared")]
    Share(Share),
    /// Check a data file
    #[command(after_help = "Examples:\n  peregrine data validate -f data.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelVerb {
    /// Register a model, uploading a local path
    #[command(after_help = "Examples:\n  peregrine model create -f model.yml\n  \
                            peregrine model create -n iris --path azureml://jobs/JOB/outputs/model --type mlflow_model")]
    Create(ModelCreate),
    /// Show a model
    #[command(after_help = "Examples:\n  peregrine model show -n iris -v 1")]
    Show(Show),
    /// List models, or the versions of one
    #[command(after_help = "Examples:\n  peregrine model list -n iris")]
    List(List),
    /// Change tags, description or stage
    #[command(after_help = "Examples:\n  peregrine model update -n iris -v 1 --set stage=Production")]
    Update(Update),
    /// Leave a model out of lists
    #[command(after_help = "Examples:\n  peregrine model archive -n iris -v 1")]
    Archive(Which),
    /// Bring an archived model back
    #[command(after_help = "Examples:\n  peregrine model restore -n iris -v 1")]
    Restore(Which),
    /// Put the files of a model where work will run, ahead of it
    #[command(after_help = "Examples:\n  peregrine model replicate -n iris -v 1 --to crew")]
    Replicate(Replicate),
    /// Copy a version into a registry, for other workspaces to use
    #[command(after_help = "Examples:\n  peregrine model share -n NAME -v 1 --registry-name shared")]
    Share(Share),
    /// Check a model file
    #[command(after_help = "Examples:\n  peregrine model validate -f model.yml")]
    Validate(ValidateArgs),
    /// Download the files of a model
    #[command(after_help = "Examples:\n  peregrine model download -n iris -v 1 -p models")]
    Download(ModelDownload),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ComponentVerb {
    /// Register a component, uploading its code
    #[command(after_help = "Examples:\n  peregrine component create -f train.yml\n  \
                            peregrine component create -f train.yml -v 2 --dry-run")]
    Create(ComponentCreate),
    /// Show a component
    #[command(after_help = "Examples:\n  peregrine component show -n train -v 1")]
    Show(Show),
    /// List components, or the versions of one
    #[command(after_help = "Examples:\n  peregrine component list\n  peregrine component list -n train")]
    List(List),
    /// Change tags or description
    #[command(after_help = "Examples:\n  peregrine component update -n train -v 1 --set description=faster")]
    Update(Update),
    /// Leave a component out of lists
    #[command(after_help = "Examples:\n  peregrine component archive -n train -v 1")]
    Archive(Which),
    /// Bring an archived component back
    #[command(after_help = "Examples:\n  peregrine component restore -n train -v 1")]
    Restore(Which),
    /// Copy a version into a registry, for other workspaces to use
    #[command(after_help = "Examples:\n  peregrine component share -n train -v 1 --registry-name shared")]
    Share(Share),
    /// Check a component file
    #[command(after_help = "Examples:\n  peregrine component validate -f train.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ComponentCreate {
    #[command(flatten)]
    pub(crate) common: Create,
}

#[derive(Debug, Args)]
pub(crate) struct Share {
    /// Name of the asset
    #[arg(short, long)]
    pub(crate) name: String,
    /// Version
    #[arg(short, long)]
    pub(crate) version: String,
    /// Registry to copy it into
    #[arg(long, value_name = "NAME")]
    pub(crate) registry_name: String,
    /// Name in the registry; the same when absent
    #[arg(long, value_name = "NAME")]
    pub(crate) share_with_name: Option<String>,
    /// Version in the registry; the same when absent
    #[arg(long, value_name = "VERSION")]
    pub(crate) share_with_version: Option<String>,
}

/// What every `create` of an asset takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Name of the asset
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// Version; counted up when absent
    #[arg(short, long)]
    pub(crate) version: Option<String>,
    /// Free text
    #[arg(short, long)]
    pub(crate) description: Option<String>,
    /// Words to find it by, as `name=value`
    #[arg(long, num_args = 1.., value_name = "NAME=VALUE")]
    pub(crate) tags: Vec<String>,
    /// Print the resources that would be sent, as JSON, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EnvironmentCreate {
    #[command(flatten)]
    pub(crate) common: Create,
    /// Container image
    #[arg(short, long)]
    pub(crate) image: Option<String>,
    /// Conda file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) conda_file: Option<PathBuf>,
    /// Folder with a Dockerfile
    #[arg(short, long, value_name = "DIR")]
    pub(crate) build_context: Option<PathBuf>,
    /// Dockerfile in that folder
    #[arg(long, value_name = "FILE", requires = "build_context")]
    pub(crate) dockerfile_path: Option<String>,
    /// Operating system
    #[arg(long, value_parser = ["linux", "windows", "Linux", "Windows"])]
    pub(crate) os_type: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DataCreate {
    #[command(flatten)]
    pub(crate) common: Create,
    /// Local path, which is uploaded, or a URI
    #[arg(short, long)]
    pub(crate) path: Option<String>,
    /// What lies at the path
    #[arg(short, long = "type", value_name = "TYPE", value_parser = ["uri_file", "uri_folder", "mltable"])]
    pub(crate) kind: Option<String>,
    /// Datastore to upload to
    #[arg(long)]
    pub(crate) datastore: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ModelCreate {
    #[command(flatten)]
    pub(crate) common: Create,
    /// Local path, which is uploaded, or a URI
    #[arg(short, long)]
    pub(crate) path: Option<String>,
    /// How the files are laid out
    #[arg(short, long = "type", value_name = "TYPE", value_parser = ["custom_model", "mlflow_model", "triton_model"])]
    pub(crate) kind: Option<String>,
    /// Where the model is in its life, such as `Production`
    #[arg(long)]
    pub(crate) stage: Option<String>,
    /// Datastore to upload to
    #[arg(long)]
    pub(crate) datastore: Option<String>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Which {
    /// Name of the asset
    #[arg(short, long)]
    pub(crate) name: String,
    /// Version
    #[arg(short, long, conflicts_with = "label")]
    pub(crate) version: Option<String>,
    /// Label instead of a version; `latest` is the only one
    #[arg(short, long)]
    pub(crate) label: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Replicate {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Compute target whose nodes are to keep it
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: String,
    /// On so many nodes of a cluster; as many as it has now when absent
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nodes: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Registry to look in instead of the workspace
    #[arg(long, visible_alias = "registry-name", value_name = "NAME")]
    pub(crate) registry: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// List the versions of this asset
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// Most entries to list
    #[arg(short = 'r', long, default_value_t = 100, value_name = "COUNT")]
    pub(crate) max_results: usize,
    /// List archived ones only
    #[arg(long, conflicts_with = "include_archived")]
    pub(crate) archived_only: bool,
    /// List archived ones too
    #[arg(long)]
    pub(crate) include_archived: bool,
    /// Registry to list instead of the workspace
    #[arg(long, visible_alias = "registry-name", value_name = "NAME")]
    pub(crate) registry: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ModelDownload {
    #[command(flatten)]
    pub(crate) which: Which,
    /// Folder to write to
    #[arg(short = 'p', long, default_value = ".", value_name = "DIR")]
    pub(crate) download_path: PathBuf,
}
