//! Ranks whose framework has a launcher of its own: `mpirun` starts all of them, `ray start` makes a cluster of them.
//!
//! Everything else is started rank by rank, with variables that tell each who it is. Invariant: what the user wrote
//! reaches a launcher as arguments, never as a text that a shell reads again.

use super::{
    share,
    variables::{meeting_point, port_of},
};
use domain::{Assignment, assignment::DistributionKind};
use std::path::{Path, PathBuf};

const RAY: &str = include_str!("spread/ray.py");
/// Runs a script with the Python of the environment.
const WITH_PYTHON: &str = "for name in python3 python; do if command -v $name >/dev/null 2>&1; then exec $name -c \"$0\" \"$@\"; fi; done; \
    echo 'ray: there is no Python in the environment' >&2; exit 127";
/// A rank that `mpirun` has started: its log is its own, but for the first, whose log is where `mpirun` writes; and it is
/// told apart by the nodes that the job asked for.
const AS_RANK: &str = "rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}; per_node=$1; shift; \
    [ \"$rank\" = 0 ] || exec >>\"$0$rank\" 2>&1; \
    export AZUREML_PROCESS_NAME=rank_$rank AZUREML_CR_NODE_RANK=$((rank / per_node)) \
    OMPI_COMM_WORLD_LOCAL_RANK=$((rank % per_node)) OMPI_COMM_WORLD_LOCAL_SIZE=$per_node; exec \"$@\"";

/// The `mpirun` that starts all ranks of an attempt, where it is MPI's, on this machine alone, and there is one.
pub(super) fn mpirun(assignment: &Assignment, first_on_path: &[PathBuf]) -> Option<PathBuf> {
    let spread = assignment.plan.distribution.as_ref().filter(|spread| spread.kind == DistributionKind::Mpi)?;
    if assignment.part.is_some() || spread.nodes * spread.processes_per_node < 2 {
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let asked = assignment.plan.variables.get("PATH").map(|path| path.as_str().into());
    let rest: Vec<PathBuf> = std::env::split_paths(&asked.unwrap_or(path)).collect();
    first_on_path.iter().chain(&rest).map(|folder| folder.join("mpirun")).find(|file| file.is_file())
}

/// Arguments that start all ranks with `mpirun`; the log of each is `log` and its number.
pub(super) fn by_mpirun(assignment: &Assignment, mpirun: &Path, log: &str, argv: &[String]) -> Vec<String> {
    let per_node = assignment.plan.distribution.as_ref().map_or(1, |spread| spread.processes_per_node);
    let (program, count) = (mpirun.display().to_string(), share::ranks(assignment).to_string());
    let mut all = vec![program, "-np".into(), count, "/bin/sh".into(), "-c".into(), AS_RANK.into(), log.into()];
    all.push(per_node.to_string());
    all.extend_from_slice(argv);
    all
}

/// Variables under which `mpirun` starts more ranks than there are cores, whoever runs it.
pub(super) const FOR_MPIRUN: [(&str, &str); 5] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];

/// The arguments of one rank: the user's own, or those that make it a node of a Ray cluster.
pub(super) fn of_rank(assignment: &Assignment, argv: Vec<String>, rank: u32) -> Vec<String> {
    let Some(ray) = assignment.plan.distribution.as_ref().and_then(|spread| spread.ray.as_ref()) else { return argv };
    let address = meeting_point(assignment, ray.port.map_or_else(|| port_of(assignment), u32::from));
    let mut all = vec!["/bin/sh".into(), "-c".into(), WITH_PYTHON.into(), RAY.into()];
    all.extend([share::ranks(assignment).to_string(), rank.to_string(), address]);
    all.extend(if rank == 0 { ray.head.clone() } else { ray.worker.clone() });
    all.push("--".into());
    all.extend(argv);
    all
}

/// Whether an attempt is over when this rank is, however the others are.
pub(super) fn leads(assignment: &Assignment, rank: u32) -> bool {
    rank == 0 && assignment.plan.distribution.as_ref().is_some_and(|spread| spread.kind == DistributionKind::Ray)
}
