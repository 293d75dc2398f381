//! The environment of a user's process: what the platform promises, what the user asked for, who it is among its ranks.

use super::share::{self, Hosts};
use domain::{Assignment, assignment::DistributionKind};
use std::{collections::BTreeMap, path::Path};

/// Marks every process of an attempt, so that none can hide. Its value is a path: agents of other homes on this machine
/// may have attempts with the same id, and must not end each other's processes.
const MARKER: &str = "PEREGRINE_ATTEMPT_FOLDER";

/// Variables of the platform's own processes that jobs must not see.
const HIDDEN: [&str; 10] = [
    "PEREGRINE_HOME",
    "PEREGRINE_TOKEN",
    "PEREGRINE_SERVER",
    "PEREGRINE_ATTEMPT",
    "PEREGRINE_PART",
    "PEREGRINE_TOKEN_FILE",
    "PEREGRINE_JOIN_TOKEN",
    "PEREGRINE_JOIN_FILE",
    "PEREGRINE_CA_FILE",
    "RUST_LOG",
];

/// The mark of an attempt's processes, as it stands in their environment.
pub(super) fn marker(folder: &Path) -> String {
    format!("{MARKER}={}", folder.display())
}

pub(super) struct Paths<'a> {
    /// The attempt's own.
    pub(super) folder: &'a Path,
    pub(super) work: &'a Path,
    pub(super) inputs: &'a BTreeMap<String, String>,
    pub(super) outputs: &'a BTreeMap<String, String>,
    pub(super) first_on_path: &'a [std::path::PathBuf],
    pub(super) environment: &'a BTreeMap<String, String>,
    /// What a container has to see beside inputs and outputs.
    pub(super) mounts: &'a [std::path::PathBuf],
    /// The devices it may use; absent where all that can be seen are its own.
    pub(super) gpus: Option<&'a [u32]>,
}

/// The variables of one rank; `None` takes a variable away.
pub(super) fn of_rank(assignment: &Assignment, paths: &Paths<'_>, rank: u32) -> Vec<(String, Option<String>)> {
    let mut all: BTreeMap<String, String> = BTreeMap::new();
    all.extend(assignment.server_variables.clone());
    if assignment.plan.variables.contains_key("MLFLOW_TRACKING_URI") {
        // The user tracks elsewhere, where nobody knows this run or its token.
        all.retain(|name, _| !name.starts_with("MLFLOW_"));
    }
    all.insert("AZUREML_RUN_ID".into(), assignment.job.to_string());
    all.insert("AZUREML_COMPUTE_USE_COMMON_RUNTIME".into(), "true".into());
    all.insert("AZ_BATCHAI_JOB_WORK_DIR".into(), paths.work.display().to_string());
    all.insert("PEREGRINE_ATTEMPT_ID".into(), assignment.attempt.to_string());
    for (name, path) in paths.inputs {
        all.insert(format!("AZURE_ML_INPUT_{name}"), path.clone());
        all.insert(format!("AZUREML_DATAREFERENCE_{name}"), path.clone());
    }
    for (name, path) in paths.outputs {
        all.insert(format!("AZURE_ML_OUTPUT_{name}"), path.clone());
        all.insert(format!("AZUREML_DATAREFERENCE_{name}"), path.clone());
    }
    all.extend(paths.environment.clone());
    if !paths.first_on_path.is_empty() {
        let rest = std::env::var("PATH").unwrap_or_default();
        let first: Vec<String> = paths.first_on_path.iter().map(|p| p.display().to_string()).collect();
        all.insert("PATH".into(), format!("{}:{rest}", first.join(":")));
    }
    all.extend(ranked(assignment, rank));
    if let Some(gpus) = paths.gpus {
        let gpus: Vec<String> = gpus.iter().map(u32::to_string).collect();
        all.insert("CUDA_VISIBLE_DEVICES".into(), gpus.join(","));
    }
    // The server names a file on its own machine.
    if all.get("REQUESTS_CA_BUNDLE").is_some_and(|bundle| !Path::new(bundle).exists()) {
        all.remove("REQUESTS_CA_BUNDLE");
    }
    // Log lines should be seen when they are written, not when a buffer is full.
    all.entry("PYTHONUNBUFFERED".into()).or_insert_with(|| "1".into());
    // The user's own word is the last.
    all.extend(assignment.plan.variables.clone());
    all.insert(MARKER.into(), paths.folder.display().to_string());
    let hidden = HIDDEN.iter().map(|name| ((*name).to_owned(), None));
    hidden.chain(all.into_iter().map(|(name, value)| (name, Some(value)))).collect()
}

/// Who a rank is, in the words of its framework.
fn ranked(assignment: &Assignment, rank: u32) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut set = |name: &str, value: String| drop(all.insert(name.to_owned(), value));
    let hosts = Hosts::of(assignment);
    set("AZ_BATCH_HOST_LIST", hosts.all().join(","));
    set("AZ_BATCH_NODE_LIST", hosts.all().join(";"));
    set("AZ_BATCHAI_MPI_MASTER_NODE", hosts.first().into());
    set("AZ_BATCHAI_JOB_MASTER_NODE_IP", hosts.first().into());
    if hosts.all().len() > 1 {
        set("AZ_BATCH_MASTER_NODE", share::with_port(hosts.first(), 6000));
    }
    let Some(spread) = &assignment.plan.distribution else {
        set("AZUREML_CR_NODE_RANK", "0".into());
        set("AZUREML_PROCESS_NAME", "rank_0".into());
        return all;
    };
    let per_node = spread.processes_per_node.max(1);
    let (node, local) = (rank / per_node, rank % per_node);
    let world = spread.nodes * per_node;
    let port = port_of(assignment);
    set("AZUREML_CR_NODE_RANK", node.to_string());
    set("AZUREML_PROCESS_NAME", format!("rank_{rank}"));
    match spread.kind {
        DistributionKind::PyTorch => {
            set("MASTER_ADDR", hosts.first().into());
            set("MASTER_PORT", port.to_string());
            set("WORLD_SIZE", world.to_string());
            set("NODE_RANK", node.to_string());
            set("RANK", rank.to_string());
            set("LOCAL_RANK", local.to_string());
        }
        DistributionKind::Mpi => {
            set("OMPI_COMM_WORLD_RANK", rank.to_string());
            set("OMPI_COMM_WORLD_SIZE", world.to_string());
            set("OMPI_COMM_WORLD_LOCAL_RANK", local.to_string());
            set("OMPI_COMM_WORLD_LOCAL_SIZE", per_node.to_string());
        }
        DistributionKind::TensorFlow => {
            let at = |rank: u32| share::with_port(hosts.of_rank(rank), port + rank);
            let workers: Vec<String> = (0..world).map(at).collect();
            let servers: Vec<String> = (world..world + spread.parameter_servers).map(at).collect();
            let (kind, index) = if rank < world { ("worker", rank) } else { ("ps", rank - world) };
            let mut cluster = serde_json::json!({"worker": workers});
            if !servers.is_empty() {
                cluster["ps"] = serde_json::json!(servers);
            }
            let config = serde_json::json!({
                "cluster": cluster, "task": {"type": kind, "index": index}, "environment": "cloud",
            });
            set("TF_CONFIG", config.to_string());
            set("AZUREML_PROCESS_NAME", format!("{kind}_{index}"));
        }
        DistributionKind::Ray => {
            let port = spread.ray.as_ref().and_then(|ray| ray.port).map_or(port, u32::from);
            set("RAY_ADDRESS", meeting_point(assignment, port));
        }
    }
    all
}

/// Where the ranks of an attempt meet.
pub(super) fn meeting_point(assignment: &Assignment, port: u32) -> String {
    share::with_port(Hosts::of(assignment).first(), port)
}

/// A port that two gangs on this machine are unlikely to share.
pub(super) fn port_of(assignment: &Assignment) -> u32 {
    let (seq, number) = assignment.attempt.parts().unwrap_or((0, 0));
    20_000 + u32::try_from((seq * 7 + i64::from(number)).rem_euclid(10_000)).unwrap_or(0) * 2
}
