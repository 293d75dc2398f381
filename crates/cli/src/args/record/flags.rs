//! What the verbs of records take.

use crate::args::{
    ChangeArgs, FileArgs,
    place::{Delete, List},
};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Name; the file's when absent
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// Return once the server has accepted it
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Print the resources that would be sent, as JSON, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EndpointCreate {
    #[command(flatten)]
    pub(crate) common: Create,
    /// How callers prove who they are
    #[arg(long, value_parser = ["key", "aml_token", "aad_token"])]
    pub(crate) auth_mode: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DeploymentCreate {
    #[command(flatten)]
    pub(crate) common: Create,
    /// Endpoint; the file's when absent
    #[arg(short, long)]
    pub(crate) endpoint_name: Option<String>,
    /// Send all traffic of the endpoint to this deployment
    #[arg(long)]
    pub(crate) all_traffic: bool,
    /// Accepted from scripts written for `az`: a script is first read by the replica that runs it
    #[arg(long = "skip-script-validation", hide = true)]
    pub(crate) _skip_script_validation: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BatchDeploymentCreate {
    #[command(flatten)]
    pub(crate) common: Create,
    /// Endpoint; the file's when absent
    #[arg(short, long)]
    pub(crate) endpoint_name: Option<String>,
    /// Make it the one that requests go to when they name none
    #[arg(long)]
    pub(crate) set_default: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// Name
    #[arg(short, long)]
    pub(crate) name: String,
    /// Return once the server has accepted it
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Name; the file's when absent
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// YAML file that replaces what is there
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Return once the server has accepted it
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TrafficUpdate {
    #[command(flatten)]
    pub(crate) update: Update,
    /// Shares of the traffic, as in "blue=90 green=10"
    #[arg(short = 'r', long, num_args = 1.., value_name = "NAME=PERCENT")]
    pub(crate) traffic: Vec<String>,
    /// Shares of the traffic to copy to a deployment whose answers nobody sees
    #[arg(short = 'm', long, num_args = 1.., value_name = "NAME=PERCENT")]
    pub(crate) mirror_traffic: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct BatchInvoke {
    /// Name of the endpoint
    #[arg(short, long)]
    pub(crate) name: String,
    /// Data to score: an address, a data asset, or a local path, which is uploaded
    #[arg(long)]
    pub(crate) input: Option<String>,
    /// What lies there
    #[arg(long, default_value = "uri_folder", value_parser = ["uri_folder", "uri_file"])]
    pub(crate) input_type: String,
    /// Deployment to use; the endpoint's default when absent
    #[arg(short, long, value_name = "NAME")]
    pub(crate) deployment_name: Option<String>,
    /// A YAML file with `inputs` and `outputs`
    #[arg(short, long)]
    pub(crate) file: Option<std::path::PathBuf>,
    /// Change one value, as in `inputs.data.path=azureml:d:1` or `output_file_name=p.csv`; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Where predictions go: a folder of a datastore
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) output_path: Option<String>,
    /// Name of the job; made up when absent
    #[arg(short, long, value_name = "NAME")]
    pub(crate) job_name: Option<String>,
    /// Experiment of the job; the endpoint's name when absent
    #[arg(long, value_name = "NAME")]
    pub(crate) experiment_name: Option<String>,
    /// Nodes to run on, instead of the deployment's
    #[arg(short = 'c', long, value_name = "COUNT")]
    pub(crate) instance_count: Option<u32>,
    /// Files in a mini-batch, instead of the deployment's
    #[arg(short, long, value_name = "COUNT")]
    pub(crate) mini_batch_size: Option<u32>,
    /// Calls with the same key are one job
    #[arg(long, value_name = "KEY")]
    pub(crate) request_id: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RegenerateKeys {
    /// Name of the endpoint
    #[arg(short, long)]
    pub(crate) name: String,
    /// Which key
    #[arg(long, default_value = "primary", value_parser = ["primary", "secondary"])]
    pub(crate) key_type: String,
    /// Return once the server has accepted it
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Deployment {
    /// Name
    #[arg(short, long)]
    pub(crate) name: String,
    /// Endpoint
    #[arg(short, long)]
    pub(crate) endpoint_name: String,
}

#[derive(Debug, Args)]
pub(crate) struct DeploymentList {
    /// Endpoint
    #[arg(short, long)]
    pub(crate) endpoint_name: String,
    #[command(flatten)]
    pub(crate) list: List,
}

#[derive(Debug, Args)]
pub(crate) struct DeploymentUpdate {
    #[command(flatten)]
    pub(crate) update: Update,
    /// Endpoint; the file's when absent
    #[arg(short, long)]
    pub(crate) endpoint_name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DeploymentDelete {
    #[command(flatten)]
    pub(crate) delete: Delete,
    /// Endpoint
    #[arg(short, long)]
    pub(crate) endpoint_name: String,
}
