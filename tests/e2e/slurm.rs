//! A Slurm cluster as a target, with the real Slurm: jobs are batch jobs, Slurm's own reasons are shown, and nothing is lost
//! with the server.

use crate::harness::Home;
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// A controller and one node of two CPUs, with folders, ports and an authentication of their own.
struct Slurm {
    folder: PathBuf,
    daemons: Vec<Child>,
}

impl Slurm {
    /// `None`, said aloud, where it cannot be had.
    fn start(home: &Home) -> Option<Slurm> {
        let needed = ["/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/sbatch"];
        if let Some(missing) = needed.iter().find(|program| !Path::new(program).exists()) {
            crate::skip::skip(&format!("Slurm clusters (`{missing}` is not installed)"));
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            crate::skip::skip("Slurm clusters (Slurm's daemons want to be root)");
            return None;
        }
        let folder = home.home().join("slurm");
        for part in ["state", "spool", "user"] {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        let (at, name) = (folder.display().to_string(), host_name());
        let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::write(folder.join("munge.key"), [7; 1024]).unwrap();
        fs::set_permissions(folder.join("munge.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let config = format!(
            "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={}\nSlurmdPort={}\nAuthType=auth/munge\n\
             AuthInfo=socket={at}/munge.sock\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool\nSlurmctldPidFile={at}/c.pid\n\
             SlurmdPidFile={at}/d.pid\nSlurmctldLogFile={at}/c.log\nSlurmdLogFile={at}/d.log\nSlurmUser=root\n\
             ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\nReturnToService=2\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nMpiDefault=none\n\
             NodeName={name} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN\n\
             PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
            port(),
            port(),
        );
        fs::write(folder.join("slurm.conf"), config).unwrap();
        let mut slurm = Slurm { folder, daemons: Vec::new() };
        let file = |name: &str| format!("{at}/{name}");
        slurm.daemon(
            "/usr/sbin/munged",
            &[
                "--foreground",
                "--force",
                "--key-file",
                &file("munge.key"),
                "--socket",
                &file("munge.sock"),
                "--pid-file",
                &file("munge.pid"),
                "--log-file",
                &file("munge.log"),
                "--seed-file",
                &file("munge.seed"),
            ],
        );
        home.until("munge", || Path::new(&file("munge.sock")).exists());
        slurm.daemon("/usr/sbin/slurmctld", &["-D", "-c"]);
        slurm.daemon("/usr/sbin/slurmd", &["-D"]);
        home.until("a node", || slurm.says("sinfo", &["-h", "-o", "%T"]).trim() == "idle");
        Some(slurm)
    }

    fn daemon(&mut self, program: &str, args: &[&str]) {
        let log = fs::File::create(self.folder.join("daemon.log")).unwrap();
        let mut daemon = Command::new(program);
        daemon.args(args).env("SLURM_CONF", self.folder.join("slurm.conf")).stdin(Stdio::null());
        self.daemons.push(daemon.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    }

    fn says(&self, program: &str, args: &[&str]) -> String {
        let said = Command::new(program).args(args).env("SLURM_CONF", self.folder.join("slurm.conf")).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    }

    /// Starts the server, which finds this Slurm by its environment.
    fn serve(&self, home: &Home) {
        let mut server = home.command(&["server", "start", "-o", "none"]);
        server.env("SLURM_CONF", self.folder.join("slurm.conf")).env("HOME", self.folder.join("user"));
        assert!(server.status().unwrap().success());
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.says("scancel", &["--user=root"]);
        // Its steps are ended by the node, which must not go before them.
        for _ in 0..100 {
            if self.says("squeue", &["-h"]).is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[test]
fn jobs_are_batch_jobs_of_a_real_slurm() {
    let home = Home::new();
    let Some(slurm) = Slurm::start(&home) else { return };
    slurm.serve(&home);
    let target = |types: &str| format!("type: slurm\nname: hpc\npartition: main\ninstance_types:\n{types}");
    home.file("bad.yml", &target("  odd: {partition: nowhere}\n"));
    home.run(&["compute", "attach", "-f", "bad.yml"]).must(2, &["no partition `nowhere`; there are main"]);
    home.file("hpc.yml", &target("  both: {cpus: 2}\n  huge: {cpus: 64}\n"));
    home.ok(&["compute", "attach", "-f", "hpc.yml"]);
    home.job_file("huge.yml", "true", "compute: azureml:hpc\nresources: {instance_type: huge}");
    home.run(&["job", "create", "-f", "huge.yml"]).must(2, &["more than any node can hold"]);

    let hello = home.stream("echo job $SLURM_JOB_ID on $(uname -n)", "compute: azureml:hpc");
    assert_eq!(hello.code, Some(0), "{}", hello.err);
    assert!(hello.out.starts_with("job ") && hello.out.trim().ends_with(&host_name()), "{}", hello.out);

    // One takes the node, one waits for it by Slurm's own word; the server is killed meanwhile.
    let both = "compute: azureml:hpc\nresources: {instance_type: both}";
    home.begin("first", "for i in 1 2 3 4 5 6; do echo step $i; sleep 1; done", both);
    home.until_status("first", "Running");
    home.begin("second", "echo never", both);
    home.until("Slurm's reason", || home.ok(&["job", "why", "-n", "second"]).contains("(Resources)"));
    assert!(home.kill("server"));
    slurm.serve(&home);
    home.ok(&["job", "cancel", "-n", "second"]);
    assert_eq!(home.ended("second")["status"], "Canceled");
    assert_eq!(home.ended("first")["status"], "Completed");
    let steps: String = (1..=6).map(|n| format!("step {n}\n")).collect();
    assert_eq!(home.log("first"), steps);
    home.until("an empty queue", || slurm.says("squeue", &["-h"]).is_empty());
    let attempts = || {
        let targets = fs::read_dir(slurm.folder.join("user/.peregrine-agent")).unwrap().flatten();
        targets.filter_map(|target| fs::read_dir(target.path().join("a")).ok()).flatten().count()
    };
    home.until("a clean home", || attempts() == 0);
}
