//! The command line as people type it: `peregrine <noun> <verb> [flags]`.
//!
//! One file per noun. A leading `ml` is dropped, so that scripts written for `az ml` run as they are.

pub(crate) mod asset;
#[cfg(feature = "kubernetes")]
pub(crate) mod extension;
pub(crate) mod identity;
pub(crate) mod import;
pub(crate) mod job;
pub(crate) mod machine;
pub(crate) mod place;
pub(crate) mod record;

use crate::{config::Flags, output::Format};
use clap::{Args, Parser, Subcommand};
use std::{ffi::OsString, path::PathBuf};

/// Run Azure ML job files on compute of your own.
#[derive(Debug, Parser)]
#[command(
    name = "peregrine",
    version,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  peregrine job create -f job.yml --stream\n  peregrine job list\n  peregrine job why -n JOB\n\n\
                  Exit codes: 0 done, 1 the job failed, 2 your input, 3 not allowed, 4 cannot reach the server, 5 our fault."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) noun: Noun,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Workspace to work in
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) workspace_name: Option<String>,
    /// Resource group; only part of resource ids here
    #[arg(short = 'g', long, global = true, value_name = "NAME")]
    pub(crate) resource_group: Option<String>,
    /// Subscription; only part of resource ids here
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) subscription: Option<String>,
    /// Format of the result; a table on a terminal, else JSON
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) output: Option<Format>,
    /// JMESPath expression to pick from the result
    #[arg(long, global = true, value_name = "JMESPATH")]
    pub(crate) query: Option<String>,
    /// Folder with the server's state and settings
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Print no progress and no hints
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print what is sent and received
    #[arg(long, global = true)]
    pub(crate) debug: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Noun {
    /// Submit, watch and manage jobs
    #[command(subcommand, visible_alias = "jobs")]
    Job(job::Verb),
    /// Manage environments: the software jobs run in
    #[command(subcommand)]
    Environment(asset::EnvironmentVerb),
    /// Manage data assets
    #[command(subcommand)]
    Data(asset::DataVerb),
    /// Manage models
    #[command(subcommand)]
    Model(asset::ModelVerb),
    /// Manage components: the steps of pipelines
    #[command(subcommand)]
    Component(asset::ComponentVerb),
    /// Manage datastores: where data lies
    #[command(subcommand)]
    Datastore(place::DatastoreVerb),
    /// Manage compute targets: where jobs run
    #[command(subcommand)]
    Compute(place::ComputeVerb),
    /// Make a Kubernetes cluster ready for jobs
    #[cfg(feature = "kubernetes")]
    #[command(subcommand)]
    Extension(extension::ExtensionVerb),
    /// Manage workspaces
    #[command(subcommand)]
    Workspace(place::WorkspaceVerb),
    /// Manage registries: assets that workspaces share
    #[command(subcommand)]
    Registry(record::RegistryVerb),
    /// Manage schedules: jobs that start by themselves
    #[command(subcommand)]
    Schedule(record::ScheduleVerb),
    /// Manage online endpoints: stable addresses for inference
    OnlineEndpoint(record::Online<record::OnlineEndpointVerb>),
    /// Manage the deployments behind online endpoints
    OnlineDeployment(record::Online<record::OnlineDeploymentVerb>),
    /// Manage batch endpoints: addresses that start scoring jobs
    #[command(subcommand)]
    BatchEndpoint(record::BatchEndpointVerb),
    /// Manage the deployments behind batch endpoints
    #[command(subcommand)]
    BatchDeployment(record::BatchDeploymentVerb),
    /// Connect the Python SDK and MLflow
    #[command(subcommand)]
    Sdk(identity::SdkVerb),
    /// Bring in what other systems have tracked
    #[command(subcommand)]
    Import(import::ImportVerb),
    /// Open the studio, the server's pages, in a browser
    #[command(after_help = "Examples:\n  peregrine studio\n  peregrine studio --print\n  peregrine studio -n JOB")]
    Studio(machine::Studio),
    /// Manage who may call the server, and as what
    #[command(subcommand)]
    Principal(identity::PrincipalVerb),
    /// Start, stop and inspect the server
    #[command(subcommand)]
    Server(machine::ServerVerb),
    /// Answer inference requests by a table of endpoints and replicas
    #[command(
        after_help = "Examples:\n  peregrine router --routes routes.yml\n  peregrine router --routes routes.yml --listen 0.0.0.0:443 --tls-cert cert.pem --tls-key key.pem"
    )]
    Router(machine::Router),
    /// Show and change settings
    #[command(subcommand)]
    Config(machine::ConfigVerb),
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  peregrine completion bash > ~/.local/share/bash-completion/completions/peregrine"
    )]
    Completion { shell: clap_complete::Shell },
    /// Print the version
    #[command(after_help = "Examples:\n  peregrine version -o json")]
    Version,
    /// Check what this machine has and what is missing for what
    #[command(after_help = "Examples:\n  peregrine doctor\n  peregrine doctor -o json")]
    Doctor,
    #[command(subcommand, hide = true)]
    Agent(machine::AgentVerb),
    /// Run the operator of a cluster
    #[cfg(feature = "kubernetes")]
    #[command(hide = true)]
    Operator(machine::Operator),
    #[command(subcommand, hide = true)]
    Gen(machine::GenVerb),
}

/// A file and changes to it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FileArgs {
    /// YAML file to read
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Change a value of the file, as in `--set tags.owner=me`
    #[arg(long, num_args = 1.., value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// What `validate` takes for every noun.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateArgs {
    /// YAML file to check
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Change a value of the file first
    #[arg(long, num_args = 1.., value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Check the text alone, not the files it refers to
    #[arg(long)]
    pub(crate) spec_only: bool,
}

/// Changes to something that exists.
#[derive(Debug, Clone, Args)]
pub(crate) struct ChangeArgs {
    /// Set a value, as in `--set tags.owner=me`
    #[arg(long, num_args = 1.., value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Remove a value, as in `--remove tags.owner`
    #[arg(long, num_args = 1.., value_name = "KEY")]
    pub(crate) remove: Vec<String>,
}

impl Cli {
    /// Takes the registry out of the flags, where they name one with `@`: roles can be given in it as in a workspace.
    pub(crate) fn registry(&mut self) -> Option<String> {
        let plain = |name: &str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        let named = self.global.workspace_name.as_deref().and_then(|name| name.strip_prefix('@'));
        let is_one =
            matches!(self.noun, Noun::Principal(_)) && named.is_some_and(|name| !name.is_empty() && plain(name));
        is_one.then(|| self.global.workspace_name.take()).flatten()
    }
}

impl Noun {
    /// Meant for the server of this machine, whatever server is configured.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Noun::OnlineEndpoint(record::Online { local: true, .. }))
            || matches!(self, Noun::OnlineDeployment(record::Online { local: true, .. }))
    }
}

impl Global {
    /// What these flags say about settings.
    pub(crate) fn settings(&self) -> Flags {
        let mut flags = Flags::new();
        let mut put = |key, flag, value: &Option<String>| {
            if let Some(value) = value {
                flags.push((key, flag, value.clone()));
            }
        };
        put("defaults.workspace", "--workspace-name", &self.workspace_name);
        put("defaults.resource_group", "--resource-group", &self.resource_group);
        put("defaults.subscription", "--subscription", &self.subscription);
        put("defaults.output", "--output", &self.output.map(|format| format.as_str().to_owned()));
        flags
    }
}

/// The arguments without a leading `ml`.
pub(crate) fn without_ml(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = arguments.collect();
    if all.get(1).is_some_and(|word| word == "ml") {
        all.remove(1);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(without_ml(line.split(' ').map(OsString::from)))
    }

    #[test]
    fn roles_can_be_given_in_a_registry_and_nothing_else_is_done_in_one() {
        for (line, expect) in [
            ("peregrine principal grant --id i --role reader -w @shared", Some("@shared")),
            ("peregrine principal create -w @shared", Some("@shared")),
            ("peregrine principal ungrant --id i -w team-a", None),
            ("peregrine principal ungrant --id i -w @a/b", None),
            ("peregrine job list -w @shared", None),
        ] {
            let mut cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let before = cli.global.workspace_name.clone();
            assert_eq!(cli.registry().as_deref(), expect, "{line}");
            assert_eq!(cli.global.workspace_name, before.filter(|_| expect.is_none()), "{line}");
        }
    }

    #[test]
    fn the_tree_of_commands_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn lines_written_for_az_are_understood() {
        for line in [
            "peregrine ml job create -f job.yml --set tags.a=b compute=azureml:x --stream -w ws -g rg --subscription s",
            "peregrine ml job create --file job.yml --web --query name -o tsv",
            "peregrine job list -r 5 --include-archived -o table",
            "peregrine job show -n j --query status --output json",
            "peregrine job download --name j --output-name model --download-path out",
            "peregrine environment create -n e -v 1 --image i --conda-file c.yml",
            "peregrine environment list --registry azureml",
            "peregrine data create --name d --version 2 --path ./x --type uri_file",
            "peregrine data show -n d --label latest",
            "peregrine model create -n m --path ./m --type mlflow_model",
            "peregrine compute attach -f k8s.yml",
            "peregrine ml compute create -n cpu --type AmlCompute --size Standard_D2_v2 --min-instances 0 --max-instances 4",
            "peregrine ml compute attach -n k8s --type Kubernetes --resource-id /x --namespace ml",
            "peregrine ml compute stop -n box --no-wait",
            "peregrine ml online-endpoint update -n e --traffic blue=90 green=10",
            "peregrine ml online-deployment create -f blue.yml --all-traffic -e e",
            "peregrine ml online-deployment create --local --file blue.yml --skip-script-validation",
            "peregrine ml online-deployment get-logs -n blue -e e -l 10",
            "peregrine ml online-deployment get-logs --name blue --endpoint-name e --local -c storage-initializer",
            "peregrine ml online-endpoint invoke --local --name e --request-file r.json --deployment-name blue",
            "peregrine online-deployment rollout -n green -e e --steps 10,50,100 --step-duration 90s -r r.json --rps 5",
            "peregrine online-endpoint test -n e --rps 100 --duration 30s",
            "peregrine ml batch-endpoint invoke -n b --input azureml:d:1",
            "peregrine ml schedule disable -n s",
            "peregrine ml component create -f c.yml --version 2",
            "peregrine ml model share -n m -v 1 --registry-name r",
            "peregrine server start --foreground --listen 127.0.0.1:0 --http 127.0.0.1:0 --home /x",
            "peregrine import mlflow --from sqlite:///mlflow.db --artifacts a --experiment x y --dry-run",
            "peregrine completion zsh",
        ] {
            assert!(parse(line).is_ok(), "{line}: {}", parse(line).unwrap_err());
        }
    }

    #[test]
    fn every_command_has_an_example() {
        fn walk(command: &clap::Command, path: &str, lacking: &mut Vec<String>) {
            let path = format!("{path} {}", command.get_name());
            for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
                walk(inner, &path, lacking);
            }
            let leaf = command.get_subcommands().next().is_none();
            let example = command.get_after_help().is_some_and(|help| help.to_string().contains("Examples:\n"));
            if leaf && (!example || command.get_about().is_none()) {
                lacking.push(path);
            }
        }
        let mut lacking = Vec::new();
        walk(&Cli::command(), "", &mut lacking);
        assert_eq!(lacking, Vec::<String>::new());
    }
}
