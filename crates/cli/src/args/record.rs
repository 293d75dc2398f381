//! `peregrine schedule|online-endpoint|online-deployment|batch-endpoint|batch-deployment|registry …`.

mod flags;
mod serving;

pub(crate) use flags::*;
pub(crate) use serving::*;

use super::{
    ValidateArgs,
    place::{Delete, List, Name},
};
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ScheduleVerb {
    /// Create or replace a schedule
    #[command(after_help = "Examples:\n  peregrine schedule create -f nightly.yml\n  \
                            peregrine schedule create -f nightly.yml --dry-run")]
    Create(Create),
    /// Show a schedule
    #[command(after_help = "Examples:\n  peregrine schedule show -n nightly")]
    Show(Name),
    /// List schedules
    #[command(after_help = "Examples:\n  peregrine schedule list")]
    List(List),
    /// Change a schedule
    #[command(after_help = "Examples:\n  peregrine schedule update -n nightly --set description=off\n  \
                            peregrine schedule update -f nightly.yml")]
    Update(Update),
    /// Let a schedule start jobs
    #[command(after_help = "Examples:\n  peregrine schedule enable -n nightly")]
    Enable(Named),
    /// Keep a schedule from starting jobs
    #[command(after_help = "Examples:\n  peregrine schedule disable -n nightly")]
    Disable(Named),
    /// Start what a schedule starts, now
    #[command(after_help = "Examples:\n  peregrine schedule trigger -n nightly")]
    Trigger(Name),
    /// Delete a schedule
    #[command(after_help = "Examples:\n  peregrine schedule delete -n nightly --yes")]
    Delete(Delete),
    /// Check a schedule file
    #[command(after_help = "Examples:\n  peregrine schedule validate -f nightly.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OnlineEndpointVerb {
    /// Create or replace an online endpoint
    #[command(after_help = "Examples:\n  peregrine online-endpoint create -f endpoint.yml\n  \
                            peregrine online-endpoint create -n iris --auth-mode key")]
    Create(EndpointCreate),
    /// Show an online endpoint
    #[command(after_help = "Examples:\n  peregrine online-endpoint show -n iris --query scoring_uri -o tsv")]
    Show(Name),
    /// List online endpoints
    #[command(after_help = "Examples:\n  peregrine online-endpoint list")]
    List(List),
    /// Change an online endpoint, or who gets its traffic
    #[command(after_help = "Examples:\n  peregrine online-endpoint update -n iris --traffic \"blue=90 green=10\"\n  \
                            peregrine online-endpoint update -n iris --mirror-traffic green=10")]
    Update(TrafficUpdate),
    /// Delete an online endpoint and its deployments
    #[command(after_help = "Examples:\n  peregrine online-endpoint delete -n iris --yes")]
    Delete(Delete),
    /// Send a request to a deployment
    #[command(after_help = "Examples:\n  peregrine online-endpoint invoke -n iris --request-file sample.json\n  \
                            peregrine online-endpoint invoke -n iris -r sample.json -d green\n\n\
                            Exit codes: 0 answered, 1 the model failed, 2 the request, 3 not allowed, 4 no replica in time.")]
    Invoke(Invoke),
    /// Send requests at a steady pace and print how long the answers took
    #[command(
        after_help = "Examples:\n  peregrine online-endpoint test -n iris -r sample.json --rps 100 --duration 30s\n  \
                            peregrine online-endpoint test -n iris -d green -o json\n\n\
                            Exit codes: 0 every request was answered, 1 some failed."
    )]
    Test(Test),
    /// Print the keys of an endpoint
    #[command(after_help = "Examples:\n  peregrine online-endpoint get-credentials -n iris --query primaryKey -o tsv")]
    GetCredentials(Name),
    /// Replace a key of an endpoint by a new one
    #[command(after_help = "Examples:\n  peregrine online-endpoint regenerate-keys -n iris --key-type secondary")]
    RegenerateKeys(RegenerateKeys),
    /// Check an online endpoint file
    #[command(after_help = "Examples:\n  peregrine online-endpoint validate -f endpoint.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OnlineDeploymentVerb {
    /// Create or replace a deployment
    #[command(after_help = "Examples:\n  peregrine online-deployment create -f blue.yml --all-traffic\n  \
                            peregrine online-deployment create -f blue.yml -e iris --dry-run")]
    Create(DeploymentCreate),
    /// Show a deployment
    #[command(after_help = "Examples:\n  peregrine online-deployment show -n blue -e iris")]
    Show(Deployment),
    /// List the deployments of an endpoint
    #[command(after_help = "Examples:\n  peregrine online-deployment list -e iris")]
    List(DeploymentList),
    /// Change a deployment
    #[command(
        after_help = "Examples:\n  peregrine online-deployment update -n blue -e iris --set instance_count=3\n  \
                            peregrine online-deployment update -f blue.yml"
    )]
    Update(DeploymentUpdate),
    /// Delete a deployment that gets no traffic
    #[command(after_help = "Examples:\n  peregrine online-deployment delete -n blue -e iris --yes")]
    Delete(DeploymentDelete),
    /// Print the last lines of a deployment's log
    #[command(after_help = "Examples:\n  peregrine online-deployment get-logs -n blue -e iris --lines 100\n  \
                            peregrine online-deployment get-logs -n blue -e iris --follow")]
    GetLogs(GetLogs),
    /// Move traffic to a deployment step by step, and back when it fails or is slow
    #[command(after_help = "Examples:\n  peregrine online-deployment rollout -n green -e iris\n  \
                            peregrine online-deployment rollout -n green -e iris --steps 10,50,100 --step-duration 5m\n  \
                            peregrine online-deployment rollout -n green -e iris -r sample.json --rps 20\n\n\
                            Exit codes: 0 it has the share of the last step, 1 the traffic was put back.")]
    Rollout(Rollout),
    /// Check an online deployment file
    #[command(after_help = "Examples:\n  peregrine online-deployment validate -f blue.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BatchEndpointVerb {
    /// Create or replace a batch endpoint
    #[command(after_help = "Examples:\n  peregrine batch-endpoint create -f endpoint.yml")]
    Create(Create),
    /// Show a batch endpoint
    #[command(after_help = "Examples:\n  peregrine batch-endpoint show -n scoring")]
    Show(Name),
    /// List batch endpoints
    #[command(after_help = "Examples:\n  peregrine batch-endpoint list")]
    List(List),
    /// Change a batch endpoint
    #[command(
        after_help = "Examples:\n  peregrine batch-endpoint update -n scoring --set defaults.deployment_name=blue"
    )]
    Update(Update),
    /// Delete a batch endpoint and its deployments
    #[command(after_help = "Examples:\n  peregrine batch-endpoint delete -n scoring --yes")]
    Delete(Delete),
    /// Start a scoring job
    #[command(after_help = "Examples:\n  peregrine batch-endpoint invoke -n scoring --input azureml:unlabeled:1\n  \
                            peregrine batch-endpoint invoke -n scoring --input https://example.com/data/ -d blue\n  \
                            peregrine batch-endpoint invoke -n prepare -f inputs.yml --set inputs.rate=0.1")]
    Invoke(BatchInvoke),
    /// List the jobs that an endpoint has started
    #[command(after_help = "Examples:\n  peregrine batch-endpoint list-jobs -n scoring")]
    ListJobs(Name),
    /// Check a batch endpoint file
    #[command(after_help = "Examples:\n  peregrine batch-endpoint validate -f endpoint.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum BatchDeploymentVerb {
    /// Create or replace a batch deployment
    #[command(after_help = "Examples:\n  peregrine batch-deployment create -f blue.yml --set-default")]
    Create(BatchDeploymentCreate),
    /// Show a batch deployment
    #[command(after_help = "Examples:\n  peregrine batch-deployment show -n blue -e scoring")]
    Show(Deployment),
    /// List the deployments of a batch endpoint
    #[command(after_help = "Examples:\n  peregrine batch-deployment list -e scoring")]
    List(DeploymentList),
    /// Change a batch deployment
    #[command(
        after_help = "Examples:\n  peregrine batch-deployment update -n blue -e scoring --set description=nightly"
    )]
    Update(DeploymentUpdate),
    /// Delete a batch deployment
    #[command(after_help = "Examples:\n  peregrine batch-deployment delete -n blue -e scoring --yes")]
    Delete(DeploymentDelete),
    /// List the jobs that a deployment has done
    #[command(after_help = "Examples:\n  peregrine batch-deployment list-jobs -n blue -e scoring")]
    ListJobs(Deployment),
    /// Check a batch deployment file
    #[command(after_help = "Examples:\n  peregrine batch-deployment validate -f blue.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegistryVerb {
    /// Create a registry: assets that workspaces share
    #[command(
        after_help = "Examples:\n  peregrine registry create -n shared\n  peregrine registry create -f registry.yml"
    )]
    Create(Create),
    /// Show a registry
    #[command(after_help = "Examples:\n  peregrine registry show -n shared")]
    Show(Name),
    /// List registries
    #[command(after_help = "Examples:\n  peregrine registry list")]
    List(List),
    /// Change tags or description
    #[command(after_help = "Examples:\n  peregrine registry update -n shared --set tags.owner=me")]
    Update(Update),
    /// Delete a registry and the assets in it
    #[command(after_help = "Examples:\n  peregrine registry delete -n shared --yes")]
    Delete(Delete),
    /// Check a registry file
    #[command(after_help = "Examples:\n  peregrine registry validate -f registry.yml")]
    Validate(ValidateArgs),
}
