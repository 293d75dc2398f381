//! What the verbs of online endpoints and deployments take beyond those of other records.

use super::Deployment;
use crate::args::machine::time;
use clap::{Args, Subcommand};
use std::{num::NonZeroU32, path::PathBuf, time::Duration};

/// A noun of online serving: any of its verbs can be meant for this machine.
#[derive(Debug, Args)]
pub(crate) struct Online<V: Subcommand> {
    /// Use the server of this machine, whatever server is configured
    #[arg(long, global = true)]
    pub(crate) local: bool,
    #[command(subcommand)]
    pub(crate) verb: V,
}

#[derive(Debug, Args)]
pub(crate) struct Invoke {
    /// Name of the endpoint
    #[arg(short, long)]
    pub(crate) name: String,
    /// File with the request
    #[arg(short, long, value_name = "FILE")]
    pub(crate) request_file: PathBuf,
    /// Deployment to ask, whatever the traffic says
    #[arg(short, long, value_name = "NAME")]
    pub(crate) deployment_name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Name of the endpoint
    #[arg(short, long)]
    pub(crate) name: String,
    /// File with the request; an empty JSON object when absent
    #[arg(short, long, value_name = "FILE")]
    pub(crate) request_file: Option<PathBuf>,
    /// Deployment to ask, whatever the traffic says
    #[arg(short, long, value_name = "NAME")]
    pub(crate) deployment_name: Option<String>,
    /// Requests to send each second, whether or not earlier ones were answered
    #[arg(long, default_value = "10", value_name = "COUNT")]
    pub(crate) rps: NonZeroU32,
    /// How long to send them, such as `30s` or `2m`
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = time)]
    pub(crate) duration: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct GetLogs {
    #[command(flatten)]
    pub(crate) which: Deployment,
    /// How many lines
    #[arg(short, long, default_value_t = 50, value_name = "COUNT")]
    pub(crate) lines: u32,
    /// Which container
    #[arg(short, long, value_parser = ["inference-server", "storage-initializer"])]
    pub(crate) container: Option<String>,
    /// Which replica; a name that is not there is answered with those that are. Without it, the newest that answers
    #[arg(long, visible_alias = "instance", value_name = "NAME")]
    pub(crate) replica: Option<String>,
    /// Go on printing what is logged, until Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rollout {
    #[command(flatten)]
    pub(crate) which: Deployment,
    /// Shares of the traffic that it gets, one after the other, in percent
    #[arg(long, value_delimiter = ',', default_value = "10,25,50,100", value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) steps: Vec<u8>,
    /// How long each step is watched, such as `1m`
    #[arg(long, default_value = "1m", value_name = "TIME", value_parser = time)]
    pub(crate) step_duration: Duration,
    /// Largest part of its requests that may fail, in percent
    #[arg(long, default_value_t = 1.0, value_name = "PERCENT")]
    pub(crate) max_error_percent: f64,
    /// Longest that 95 of 100 of its requests may take
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) max_latency_ms: Option<u64>,
    /// How many times slower than the other deployments 95 of 100 of its requests may be
    #[arg(long, default_value_t = 2.0, value_name = "FACTOR")]
    pub(crate) max_slowdown: f64,
    /// Requests that a step must see before it is judged
    #[arg(long, default_value_t = 20, value_name = "COUNT")]
    pub(crate) min_requests: u64,
    /// A request to send to it meanwhile, for endpoints that few call
    #[arg(short, long, value_name = "FILE")]
    pub(crate) request_file: Option<PathBuf>,
    /// How often to send that request, each second
    #[arg(long, default_value = "5", value_name = "COUNT", requires = "request_file")]
    pub(crate) rps: NonZeroU32,
}
