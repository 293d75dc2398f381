//! `peregrine job …`.

use super::{ChangeArgs, ValidateArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Submit a job
    #[command(after_help = "Examples:\n  peregrine job create -f job.yml --stream\n  \
                            peregrine job create -f job.yml --set inputs.rate=0.1 -n try-2 --query name -o tsv\n  \
                            peregrine job create -f job.yml --dry-run")]
    Create(Create),
    /// Show a job
    #[command(
        after_help = "Examples:\n  peregrine job show -n JOB\n  peregrine job show -n JOB --query status -o tsv\n  \
                            peregrine job show -n JOB --graph=mermaid"
    )]
    Show(Show),
    /// List jobs, newest first
    #[command(
        after_help = "Examples:\n  peregrine job list -r 10\n  peregrine job list --query \"[?status=='Failed'].name\" -o tsv"
    )]
    List(List),
    /// Follow the log of a job until it ends
    #[command(after_help = "Examples:\n  peregrine job stream -n JOB\n  peregrine job stream -n JOB --all")]
    Stream(Stream),
    /// Submit a job once more; what its steps did already is taken from it
    #[command(after_help = "Examples:\n  peregrine job resubmit -n JOB --stream")]
    Resubmit(Resubmit),
    /// Stop a job
    #[command(after_help = "Examples:\n  peregrine job cancel -n JOB")]
    Cancel(Cancel),
    /// Download logs, captured files and outputs of a job
    #[command(
        after_help = "Examples:\n  peregrine job download -n JOB --all -p results\n  peregrine job download -n JOB --output-name model"
    )]
    Download(Download),
    /// Change tags, display name or description of a job
    #[command(after_help = "Examples:\n  peregrine job update -n JOB --set tags.kept=yes display_name=final")]
    Update(Update),
    /// Leave a job out of lists
    #[command(after_help = "Examples:\n  peregrine job archive -n JOB")]
    Archive(Name),
    /// Bring an archived job back into lists
    #[command(after_help = "Examples:\n  peregrine job restore -n JOB")]
    Restore(Name),
    /// Check a job file without submitting it
    #[command(
        after_help = "Examples:\n  peregrine job validate -f job.yml\n  peregrine job validate -f job.yml --spec-only"
    )]
    Validate(ValidateArgs),
    /// Explain where a job is, and why
    #[command(after_help = "Examples:\n  peregrine job why -n JOB")]
    Why(Name),
    /// Show what a job has logged, each metric with its line
    #[command(after_help = "Examples:\n  peregrine job metrics -n JOB\n  peregrine job metrics -n JOB --watch\n  \
                      peregrine job metrics -n JOB --query \"[?metric=='loss'].latest\" -o tsv")]
    Metrics(Metrics),
    /// Show jobs side by side: status, parameters, metrics
    #[command(after_help = "Examples:\n  peregrine job compare -n FIRST -n SECOND\n  \
                            peregrine job compare -n FIRST -n SECOND --differing")]
    Compare(Compare),
    /// List the interactive services of a job
    #[command(after_help = "Examples:\n  peregrine job show-services -n JOB")]
    ShowServices(ShowServices),
    /// Reach a service of a running job through a port of this machine
    #[command(after_help = "Examples:\n  peregrine job connect -n JOB --service lab --port 8888")]
    Connect(Connect),
    /// Open a shell where a job runs, through its `ssh` service
    #[command(after_help = "Examples:\n  peregrine job connect-ssh -n JOB -i ~/.ssh/id_ed25519\n  \
                            peregrine job connect-ssh -n JOB -- nvidia-smi")]
    ConnectSsh(ConnectSsh),
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Job file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Name of the job; a friendly one is made when absent
    #[arg(short, long)]
    pub(crate) name: Option<String>,
    /// Change a value of the file, as in `--set inputs.rate=0.1`
    #[arg(long, num_args = 1.., value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Follow the log until the job ends; the exit code is 1 when it fails
    #[arg(short, long)]
    pub(crate) stream: bool,
    /// Open the job in a browser, signed in; where there is none, print the link
    #[arg(long)]
    pub(crate) web: bool,
    /// Return once the job is accepted; the default without `--stream`
    #[arg(long, conflicts_with = "stream")]
    pub(crate) no_wait: bool,
    /// Also write the submitted job to this file, as YAML
    #[arg(long, value_name = "FILE")]
    pub(crate) save_as: Option<PathBuf>,
    /// Print the resources that would be sent, as JSON, and send nothing
    #[arg(long, conflicts_with_all = ["stream", "save_as"])]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    /// Show the steps of a pipeline and what each waits for
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub(crate) graph: Option<GraphForm>,
}

/// How a graph is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GraphForm {
    Text,
    Mermaid,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Most jobs to list
    #[arg(short = 'r', long, default_value_t = 50, value_name = "COUNT")]
    pub(crate) max_results: usize,
    /// List every job
    #[arg(long, conflicts_with = "max_results")]
    pub(crate) all_results: bool,
    /// List archived jobs only
    #[arg(long, conflicts_with = "include_archived")]
    pub(crate) archived_only: bool,
    /// List archived jobs too
    #[arg(long)]
    pub(crate) include_archived: bool,
    /// Only the steps or trials of this job, which lists leave out otherwise
    #[arg(short = 'p', long, value_name = "JOB")]
    pub(crate) parent: Option<String>,
    /// Only jobs that this schedule has made
    #[arg(long, value_name = "NAME")]
    pub(crate) schedule: Option<String>,
    /// Only jobs with this tag, as `name` or `name=value`
    #[arg(long)]
    pub(crate) tag: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Stream {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    /// Show every log file, each under its name
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Resubmit {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    /// Name of the new job; a friendly one is made when absent
    #[arg(long, value_name = "NAME")]
    pub(crate) new_name: Option<String>,
    /// Follow it until it ends; the exit code is 1 when it fails
    #[arg(short, long)]
    pub(crate) stream: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    /// Do not wait until everything has stopped
    #[arg(long)]
    pub(crate) no_wait: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Download {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    /// Only this named output
    #[arg(long, value_name = "OUTPUT", conflicts_with = "all")]
    pub(crate) output_name: Option<String>,
    /// Logs, captured files and every named output
    #[arg(long)]
    pub(crate) all: bool,
    /// Folder to write to
    #[arg(short = 'p', long, default_value = ".", value_name = "DIR")]
    pub(crate) download_path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Metrics {
    /// Name of the job, or id of a run
    #[arg(short, long)]
    pub(crate) name: String,
    /// Only this metric
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: Option<String>,
    /// Most points of each metric
    #[arg(long, default_value_t = 120, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=2500))]
    pub(crate) points: u32,
    /// Go on showing what is logged until the job ends
    #[arg(long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// Name of a job, or id of a run; give at least two
    #[arg(short, long, required = true, num_args = 1..)]
    pub(crate) name: Vec<String>,
    /// Leave out what is the same for all of them
    #[arg(long)]
    pub(crate) differing: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowServices {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    /// Node whose services to list
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    pub(crate) node_index: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    /// Which service; may be left out where there is only one
    #[arg(long)]
    pub(crate) service: Option<String>,
    /// Node whose service it is
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    pub(crate) node_index: u32,
    /// Port of this machine to listen on; any free one when 0
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectSsh {
    /// Name of the job
    #[arg(short, long)]
    pub(crate) name: String,
    /// Which service; may be left out where only one is of type `ssh`
    #[arg(long)]
    pub(crate) service: Option<String>,
    /// Node to enter
    #[arg(long, default_value_t = 0, value_name = "INDEX")]
    pub(crate) node_index: u32,
    /// Private key that goes with one of the service's `ssh_public_keys`
    #[arg(short = 'i', long, value_name = "FILE")]
    pub(crate) private_key_file_path: Option<PathBuf>,
    /// Whom the command runs as there
    #[arg(short = 'l', long, default_value = "root")]
    pub(crate) user: String,
    /// What to run instead of a shell
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}
