//! `peregrine datastore|compute|workspace …`.

use super::{ChangeArgs, FileArgs, ValidateArgs};
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum DatastoreVerb {
    /// Create or replace a datastore
    #[command(after_help = "Examples:\n  peregrine datastore create -f lake.yml\n  \
                            peregrine datastore create -f lake.yml --set credentials.secret_access_key=$SECRET")]
    Create(Create),
    /// Show a datastore; credentials are never shown
    #[command(after_help = "Examples:\n  peregrine datastore show -n lake")]
    Show(Name),
    /// List datastores
    #[command(after_help = "Examples:\n  peregrine datastore list")]
    List(List),
    /// Change tags or description
    #[command(after_help = "Examples:\n  peregrine datastore update -n lake --set description=raw")]
    Update(Update),
    /// Remove a datastore; the data in it stays
    #[command(after_help = "Examples:\n  peregrine datastore delete -n lake")]
    Delete(Delete),
    /// Run a small job that reads the top of a datastore the way jobs do
    #[command(after_help = "Examples:\n  peregrine datastore mount-test -n lake --path raw/2024")]
    MountTest(MountTest),
    /// Check a datastore file
    #[command(after_help = "Examples:\n  peregrine datastore validate -f lake.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ComputeVerb {
    /// Create or change a compute target
    #[command(after_help = "Examples:\n  peregrine compute create -f local.yml")]
    Create(ComputeCreate),
    /// Attach a machine or cluster that exists
    #[command(after_help = "Examples:\n  peregrine compute attach -f cluster.yml\n  \
                            peregrine compute attach --type kubernetes -n lab --namespace ml\n  \
                            peregrine compute attach --type virtualmachine -n box --address 10.0.0.7 --user ada \
                            --private-key ~/.ssh/id_ed25519")]
    Attach(ComputeCreate),
    /// Show a compute target
    #[command(after_help = "Examples:\n  peregrine compute show -n local")]
    Show(Name),
    /// List compute targets
    #[command(after_help = "Examples:\n  peregrine compute list")]
    List(ComputeList),
    /// Change tags, the description, or how many nodes a managed cluster has
    #[command(after_help = "Examples:\n  peregrine compute update -n lab --set tags.rack=3\n  \
                            peregrine compute update -n cpu-cluster --max-instances 8")]
    Update(ComputeUpdate),
    /// Take a node of a managed cluster back, as the owner of a low-priority machine does: for trying out what jobs make of it
    #[command(after_help = "Examples:\n  peregrine compute preempt -n cpu-cluster\n  \
                            peregrine compute preempt -n cpu-cluster --node cpu-cluster-3fa9c1")]
    Preempt(Preempt),
    /// Remove a compute target
    #[command(after_help = "Examples:\n  peregrine compute delete -n lab --yes")]
    Delete(Delete),
    /// Detach a compute target; the machines behind it stay
    #[command(after_help = "Examples:\n  peregrine compute detach -n lab --yes")]
    Detach(Detach),
    /// Start the machines of a compute target
    #[command(after_help = "Examples:\n  peregrine compute start -n box")]
    Start(Act),
    /// Stop the machines of a compute target
    #[command(after_help = "Examples:\n  peregrine compute stop -n box --no-wait")]
    Stop(Act),
    /// Restart the machines of a compute target
    #[command(after_help = "Examples:\n  peregrine compute restart -n box")]
    Restart(Act),
    /// List the nodes of a compute target
    #[command(after_help = "Examples:\n  peregrine compute list-nodes -n local")]
    ListNodes(Name),
    /// List the machine sizes that files may name
    #[command(after_help = "Examples:\n  peregrine compute list-sizes --query \"[?gpus>`0`].name\" -o tsv")]
    ListSizes,
    /// List how much of what there is is in use, now or over time
    #[command(after_help = "Examples:\n  peregrine compute list-usage\n  \
                            peregrine compute list-usage --by user -w team-a\n  \
                            peregrine compute list-usage -n lab --hours 168")]
    ListUsage(UsageArgs),
    /// Apply instance types to a Kubernetes cluster: `InstanceType` and `InstanceTypeList` files
    #[cfg(feature = "kubernetes")]
    #[command(after_help = "Examples:\n  peregrine compute apply -f instance-types.yml\n  \
                            peregrine compute apply -f small.yml gpu.yml --context lab --dry-run")]
    Apply(ApplyTypes),
    /// Print instance types that go with the nodes of a Kubernetes cluster
    #[cfg(feature = "kubernetes")]
    #[command(after_help = "Examples:\n  peregrine compute generate-instance-types\n  \
                            peregrine compute generate-instance-types --apply")]
    GenerateInstanceTypes(GenerateTypes),
    /// Check a compute file
    #[command(after_help = "Examples:\n  peregrine compute validate -f cluster.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceVerb {
    /// Create a workspace
    #[command(after_help = "Examples:\n  peregrine workspace create -n team-a")]
    Create(WorkspaceCreate),
    /// Show a workspace
    #[command(after_help = "Examples:\n  peregrine workspace show -n team-a")]
    Show(OptionalName),
    /// List workspaces
    #[command(after_help = "Examples:\n  peregrine workspace list")]
    List(List),
    /// Change tags, display name or description
    #[command(after_help = "Examples:\n  peregrine workspace update -n team-a --set description=vision")]
    Update(Update),
    /// Delete a workspace that runs nothing
    #[command(after_help = "Examples:\n  peregrine workspace delete -n team-a --yes")]
    Delete(Delete),
    /// Show quotas and what of them is in use; with amounts, set one
    #[command(after_help = "Examples:\n  peregrine workspace quota -n team-a\n  \
                      peregrine workspace quota -n team-a --cpus 64 --gpus 8\n  \
                      peregrine workspace quota -n team-a --each-user --jobs 4 --compute lab\n  \
                      peregrine workspace quota -n team-a --team vision --gpus 8\n  \
                      peregrine workspace quota -n team-a --user ana --clear")]
    Quota(QuotaArgs),
    /// Show the teams of a workspace, or say who is in one; a quota may be a team's
    #[command(after_help = "Examples:\n  peregrine workspace team -n team-a\n  \
                      peregrine workspace team -n team-a --team vision --people ana bob\n  \
                      peregrine workspace team -n team-a --team vision --delete")]
    Team(TeamArgs),
    /// Check a workspace file
    #[command(after_help = "Examples:\n  peregrine workspace validate -f workspace.yml")]
    Validate(ValidateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// Who has it now and has used how much in the last week: the users or the teams of this workspace, or all workspaces
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) by: Option<UsageBy>,
    /// How full this target on a cluster was lately
    #[arg(short, long, conflicts_with = "by")]
    pub(crate) name: Option<String>,
    /// For how long back, at most a week
    #[arg(long, requires = "name", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=168))]
    pub(crate) hours: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum UsageBy {
    User,
    Team,
    Workspace,
}

#[derive(Debug, Args)]
pub(crate) struct TeamArgs {
    /// Name of the workspace; the one in use when absent
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// The team to make, to change or to delete
    #[arg(long, value_name = "TEAM")]
    pub(crate) team: Option<String>,
    /// Everyone who is in it from now on, by name
    #[arg(long, value_name = "NAME", num_args = 1.., requires = "team", conflicts_with = "delete")]
    pub(crate) people: Vec<String>,
    /// Take the team away; its people stay
    #[arg(long, requires = "team")]
    pub(crate) delete: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QuotaArgs {
    /// Name of the workspace; the one in use when absent
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// The quota of one user, by name
    #[arg(long, value_name = "NAME", conflicts_with = "each_user")]
    pub(crate) user: Option<String>,
    /// The quota of a team as a whole
    #[arg(long, value_name = "TEAM", conflicts_with_all = ["user", "each_user"])]
    pub(crate) team: Option<String>,
    /// The quota of everyone in the workspace, each alone
    #[arg(long)]
    pub(crate) each_user: bool,
    /// On this compute target only
    #[arg(long, value_name = "TARGET")]
    pub(crate) compute: Option<String>,
    /// The most CPUs at once
    #[arg(long)]
    pub(crate) cpus: Option<String>,
    /// The most memory at once, such as `64Gi`
    #[arg(long)]
    pub(crate) memory: Option<String>,
    /// The most GPUs at once
    #[arg(long)]
    pub(crate) gpus: Option<u64>,
    /// The most jobs at once
    #[arg(long)]
    pub(crate) jobs: Option<u64>,
    /// Take the quota away
    #[arg(long, conflicts_with_all = ["cpus", "memory", "gpus", "jobs"])]
    pub(crate) clear: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Name; the file's when absent
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// Print the resources that would be sent, as JSON, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ComputeCreate {
    #[command(flatten)]
    pub(crate) common: Create,
    /// Kind of target, where no file says it
    #[arg(short, long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
    /// Size of each machine of a cluster or instance
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<String>,
    #[command(flatten)]
    pub(crate) scale: Scale,
    /// `dedicated` or `low_priority`
    #[arg(long, value_name = "TIER")]
    pub(crate) tier: Option<String>,
    /// The cluster or machine to attach
    #[arg(long, value_name = "ID")]
    pub(crate) resource_id: Option<String>,
    /// Name or address of a machine reached by SSH
    #[arg(long, value_name = "HOST")]
    pub(crate) address: Option<String>,
    /// Who to log in as there
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// The port of SSH there
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// File of the private key that opens it
    #[arg(long, value_name = "FILE")]
    pub(crate) private_key: Option<std::path::PathBuf>,
    /// Fingerprint of the key it must show, `SHA256:…`
    #[arg(long, value_name = "FINGERPRINT")]
    pub(crate) host_key: Option<String>,
    /// Hosts on the way to it, as `user@host:port`
    #[arg(long, value_name = "HOSTS")]
    pub(crate) jump_host: Option<String>,
    /// How many jobs it takes at a time
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<u32>,
    /// Namespace of jobs in the cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Return once the server has accepted it
    #[arg(long)]
    pub(crate) no_wait: bool,
}

/// How many nodes a managed cluster has.
#[derive(Debug, Args)]
pub(crate) struct Scale {
    /// Machines a cluster keeps
    #[arg(long, value_name = "N")]
    pub(crate) min_instances: Option<u32>,
    /// Machines a cluster may have
    #[arg(long, value_name = "N")]
    pub(crate) max_instances: Option<u32>,
    /// Seconds until an idle machine goes
    #[arg(long, value_name = "SECONDS")]
    pub(crate) idle_time_before_scale_down: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct ComputeUpdate {
    #[command(flatten)]
    pub(crate) update: Update,
    #[command(flatten)]
    pub(crate) scale: Scale,
}

#[derive(Debug, Args)]
pub(crate) struct Preempt {
    /// Name
    #[arg(short, long)]
    pub(crate) name: String,
    /// The node; one that has work, when absent
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WorkspaceCreate {
    #[command(flatten)]
    pub(crate) common: Create,
    /// Shown in lists
    #[arg(long)]
    pub(crate) display_name: Option<String>,
    /// Free text
    #[arg(short, long)]
    pub(crate) description: Option<String>,
    /// Region; only kept
    #[arg(short, long)]
    pub(crate) location: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Name
    #[arg(short, long)]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Act {
    /// Name
    #[arg(short, long)]
    pub(crate) name: String,
    /// Return once the server has accepted it
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OptionalName {
    /// Name; the workspace in use when absent
    #[arg(short, long)]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Most entries to list
    #[arg(short = 'r', long, default_value_t = 1000, value_name = "COUNT")]
    pub(crate) max_results: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ComputeList {
    #[command(flatten)]
    pub(crate) list: List,
    /// Only targets of this kind
    #[arg(short, long = "type", value_name = "TYPE")]
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Name
    #[arg(short, long)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Name
    #[arg(short, long)]
    pub(crate) name: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Return once the server has accepted it
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Detach {
    #[command(flatten)]
    pub(crate) delete: Delete,
    /// Cancel the jobs that are there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MountTest {
    /// Name
    #[arg(short, long)]
    pub(crate) name: String,
    /// Path in the datastore to read
    #[arg(short, long, default_value = "")]
    pub(crate) path: String,
}

#[cfg(feature = "kubernetes")]
#[derive(Debug, Args)]
pub(crate) struct ApplyTypes {
    /// YAML files to read
    #[arg(short, long, num_args = 1.., required = true, value_name = "FILE")]
    pub(crate) file: Vec<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) reach: super::extension::Reach,
    /// Only ask the cluster whether it would take them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[cfg(feature = "kubernetes")]
#[derive(Debug, Args)]
pub(crate) struct GenerateTypes {
    #[command(flatten)]
    pub(crate) reach: super::extension::Reach,
    /// Apply them instead of printing them
    #[arg(long)]
    pub(crate) apply: bool,
    /// Leave no room for the memory that the extension holds back
    #[arg(long)]
    pub(crate) no_reservation: bool,
}
