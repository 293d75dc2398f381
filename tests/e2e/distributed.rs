//! Distributed jobs with the real frameworks: every rank computes with the others, has its own log, and falls with them.

use crate::{
    harness::{Home, is_long},
    sdk::venv,
    skip::skip,
};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

const RAY: &str = "2.60.0";

/// A sum over all ranks, through MPI's C interface.
const SUM: &str = r#"
import ctypes, os, sys
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
of = lambda name: ctypes.byref(ctypes.c_char.in_dll(mpi, name))
mpi.MPI_Init(None, None)
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(of("ompi_mpi_comm_world"), ctypes.byref(rank))
mpi.MPI_Comm_size(of("ompi_mpi_comm_world"), ctypes.byref(size))
mine, total = ctypes.c_int(rank.value + 1), ctypes.c_int()
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, of("ompi_mpi_int"), of("ompi_mpi_op_sum"), of("ompi_mpi_comm_world"))
print(f"rank {rank.value} of {size.value}, sum {total.value}, node {os.environ['AZUREML_CR_NODE_RANK']}, "
      f"local {os.environ['OMPI_COMM_WORLD_LOCAL_RANK']}", flush=True)
if "fail" in sys.argv and rank.value == 2:
    sys.exit(9)
mpi.MPI_Barrier(of("ompi_mpi_comm_world"))
mpi.MPI_Finalize()
"#;

/// A task on each node, all at the same time.
const TASKS: &str = r#"
import os, ray
ray.init(address=os.environ["RAY_ADDRESS"], logging_level="ERROR")
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
here = ray.remote(num_cpus=0)(lambda: ray.get_runtime_context().get_node_id())
nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
seen = ray.get([here.options(scheduling_strategy=On(node, soft=False)).remote() for node in nodes])
print("tasks ran on", len(set(seen)), "nodes", flush=True)
"#;

const REDUCE: &str = r#"
import torch, torch.distributed as dist
dist.init_process_group("gloo")
mine = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(mine)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}, sum {mine.item():.0f}", flush=True)
dist.destroy_process_group()
"#;

/// The root of a folder that holds a package of Debian; nothing where it cannot be had.
fn debian(package: &str) -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/debian.sh");
    let home = PathBuf::from(std::env::var_os("HOME")?);
    let folder = home.join(format!(".cache/peregrine/tools/{package}-bookworm-1"));
    let made = Command::new("timeout").args(["300", "sh", script]).arg(&folder).arg(package).output().ok()?;
    made.status.success().then(|| folder.join("root"))
}

fn two_by_two(kind: &str, variables: &str) -> String {
    format!(
        "code: src\nresources: {{instance_count: 2}}\ndistribution: {{type: {kind}, process_count_per_instance: 2}}\n{variables}"
    )
}

/// The logs of all ranks, in their order.
fn logs(home: &Home, job: &str, ranks: usize) -> Vec<String> {
    let folder = home.artifacts(job).join("user_logs");
    (0..ranks)
        .map(|rank| std::fs::read_to_string(folder.join(format!("std_log_process_{rank}.txt"))).unwrap_or_default())
        .collect()
}

fn run(home: &Home, name: &str, command: &str, more: &str) -> String {
    home.job_file(&format!("{name}.yml"), command, more);
    home.ok(&["job", "create", "-f", &format!("{name}.yml"), "--name", name]);
    home.ended(name)["status"].as_str().unwrap_or_default().to_owned()
}

fn mpi_variables(root: &Path) -> String {
    let (root, path) = (root.display(), std::env::var("PATH").unwrap());
    let libraries = format!(
        "{root}/lib/x86_64-linux-gnu:{root}/usr/lib/x86_64-linux-gnu:{root}/usr/lib/x86_64-linux-gnu/openmpi/lib"
    );
    format!(
        "environment_variables: {{PATH: '{root}/usr/bin:{path}', LD_LIBRARY_PATH: '{libraries}', \
         OPAL_PREFIX: '{root}/usr', OMPI_MCA_plm_rsh_agent: '/bin/false', \
         OMPI_MCA_mca_base_component_path: '{root}/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi3'}}"
    )
}

#[test]
fn mpirun_starts_all_ranks_and_one_that_fails_takes_the_others_with_it() {
    let Some(root) = debian("openmpi-bin") else {
        return skip("MPI jobs (Open MPI cannot be had from Debian here)");
    };
    let home = Home::new();
    home.file("src/sum.py", SUM);
    let more = two_by_two("mpi", &mpi_variables(&root));
    let status = run(&home, "sum", "python3 sum.py", &more);
    let said = logs(&home, "sum", 4);
    assert_eq!(status, "Completed", "{said:?}");
    for (rank, log) in said.iter().enumerate() {
        let wanted = format!("rank {rank} of 4, sum 10, node {}, local {}", rank / 2, rank % 2);
        assert!(log.contains(&wanted), "no `{wanted}` in {said:?}");
    }
    assert_eq!(run(&home, "broken", "python3 sum.py fail", &more), "Failed");
    assert!(logs(&home, "broken", 4)[3].contains("sum 10"), "the others had begun");
    home.is_well();
}

#[test]
fn a_rank_that_hangs_holds_the_others_no_longer_than_the_job_may_take() {
    let home = Home::new();
    home.file("src/rank.sh", "echo rank $RANK is here\ntest $RANK = 3 || exit 0\ntrap '' TERM\nsleep 600\n");
    let more = two_by_two("pytorch", "limits: {timeout: 3}");
    assert_eq!(run(&home, "stuck", "sh rank.sh", &more), "Canceled");
    let why = home.ok(&["job", "why", "-n", "stuck"]);
    assert!(why.contains("3 s"), "{why}");
    for (rank, log) in logs(&home, "stuck", 4).iter().enumerate() {
        assert_eq!(log.trim_end(), format!("rank {rank} is here"));
    }
    let left = crate::harness::processes_with(&home.path().display().to_string());
    assert!(!left.iter().any(|(_, line)| line.contains("sleep")), "{left:?}");
    home.is_well();
}

#[test]
fn a_ray_cluster_has_all_nodes_before_the_command_runs_on_the_first() {
    let Some(python) = venv::with("ray", RAY, &[]) else {
        return skip("Ray jobs (`ray` is not kept here and the package index cannot be reached)");
    };
    let home = Home::new();
    home.file("src/tasks.py", TASKS);
    let path = format!("{}:{}", python.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let more = format!(
        "code: src\nresources: {{instance_count: 2}}\ndistribution: {{type: ray, include_dashboard: false, \
         head_node_additional_args: '--num-cpus=1', worker_node_additional_args: '--num-cpus=1'}}\n\
         environment_variables: {{PATH: '{path}'}}"
    );
    let status = run(&home, "tasks", "python tasks.py", &more);
    let said = logs(&home, "tasks", 2);
    assert_eq!(status, "Completed", "{said:?}");
    assert!(said[0].contains("tasks ran on 2 nodes"), "{said:?}");
    assert_eq!(run(&home, "broken", "exit 7", &more), "Failed");
    let left = crate::harness::processes_with(&home.path().display().to_string());
    assert!(!left.iter().any(|(_, line)| line.contains("raylet")), "{left:?}");
}

#[test]
fn torch_reduces_over_two_nodes_with_two_processes_each() {
    if !is_long() {
        return;
    }
    let Some(root) = debian("python3-torch") else {
        return skip("PyTorch jobs (python3-torch cannot be had from Debian here)");
    };
    let home = Home::new();
    home.file("src/reduce.py", REDUCE);
    let (lib, root) = (format!("{0}/usr/lib/x86_64-linux-gnu", root.display()), root.display());
    let libraries = format!("{root}/lib/x86_64-linux-gnu:{root}/usr/lib:{lib}:{lib}/blas:{lib}/lapack");
    let variables = format!(
        "environment_variables: {{PYTHONPATH: '{root}/usr/lib/python3/dist-packages', \
         LD_LIBRARY_PATH: '{libraries}', GLOO_SOCKET_IFNAME: lo}}"
    );
    let python = format!("{root}/usr/bin/python3.11");
    let python = if Path::new(&python).exists() { python } else { "python3".to_owned() };
    let status = run(&home, "reduce", &format!("{python} reduce.py"), &two_by_two("pytorch", &variables));
    let said = logs(&home, "reduce", 4);
    assert_eq!(status, "Completed", "{said:?}");
    for (rank, log) in said.iter().enumerate() {
        assert!(log.contains(&format!("rank {rank} of 4, sum 10")), "{said:?}");
    }
}

#[test]
fn every_task_of_tensorflow_finds_the_others_in_its_configuration() {
    let home = Home::new();
    let more = "distribution: {type: tensorflow, worker_count: 2, parameter_server_count: 1}";
    assert_eq!(run(&home, "tasks", "echo $TF_CONFIG", more), "Completed");
    let said: Vec<serde_json::Value> =
        logs(&home, "tasks", 3).iter().map(|log| serde_json::from_str(log.trim()).unwrap()).collect();
    let task = |told: &serde_json::Value| format!("{} {}", told["task"]["type"], told["task"]["index"]);
    assert_eq!(said.iter().map(task).collect::<Vec<_>>(), [r#""worker" 0"#, r#""worker" 1"#, r#""ps" 0"#]);
    let all = |kind: &str| said[0]["cluster"][kind].as_array().unwrap().len();
    assert_eq!((all("worker"), all("ps")), (2, 1));
    assert!(said.iter().all(|told| told["cluster"] == said[0]["cluster"] && told["environment"] == "cloud"));
}
