//! A Slurm cluster as a target, with the real Slurm: jobs are batch jobs, Slurm's own reasons are shown, and nothing is lost
//! with the server or with Slurm's controller.

use crate::{
    certificates::{certify, works},
    harness::{Home, is_long, processes_with, signal},
    ssh::Machine,
};
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A controller and nodes of two CPUs each, with folders, ports and an authentication of their own.
struct Slurm {
    folder: PathBuf,
    daemons: Vec<Child>,
}

impl Slurm {
    /// `None`, said aloud, where it cannot be had.
    fn start(home: &Home, nodes: usize) -> Option<Slurm> {
        Slurm::with(home, nodes, None)
    }

    /// The same with accounting in a database of its own, and a controller that soon forgets.
    fn accounted(home: &Home) -> Option<Slurm> {
        let needed = ["/usr/sbin/slurmdbd", "/usr/sbin/mariadbd", "/usr/bin/sacct"];
        if let Some(missing) = needed.iter().find(|program| !Path::new(program).exists()) {
            crate::skip::skip(&format!("Slurm's accounting (`{missing}` is not installed)"));
            return None;
        }
        let port = port();
        let slurm = Slurm::with(home, 1, Some(port))?;
        home.until("the accounting to know the cluster", || {
            slurm.says("sacctmgr", &["-n", "-P", "show", "cluster"]).contains("test")
        });
        Some(slurm)
    }

    fn with(home: &Home, nodes: usize, accounting: Option<u16>) -> Option<Slurm> {
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
        let names: Vec<String> = (1..=nodes).map(|n| format!("n{n}")).collect();
        for part in names.iter().map(|name| format!("spool-{name}")).chain(["state".into(), "user".into()]) {
            fs::create_dir_all(folder.join(part)).unwrap();
        }
        let (at, name) = (folder.display().to_string(), host_name());
        fs::write(folder.join("munge.key"), [7; 1024]).unwrap();
        fs::set_permissions(folder.join("munge.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let node = |node: &String| {
            let ours = format!("NodeHostname={name} NodeAddr=127.0.0.1 Port={}", port());
            format!("NodeName={node} {ours} CPUs=2 RealMemory=1000 State=UNKNOWN\n")
        };
        let list: String = names.iter().map(node).collect();
        let accounts = accounting.map_or_else(String::new, |port| {
            format!("AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\nAccountingStoragePort={port}\nAccountingStoragePass={at}/munge.sock\nMinJobAge=2\n")
        });
        let config = format!(
            "ClusterName=test\nSlurmctldHost={name}(127.0.0.1)\nSlurmctldPort={}\nAuthType=auth/munge\n\
             AuthInfo=socket={at}/munge.sock\nStateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool-%n\nSlurmctldPidFile={at}/c.pid\n\
             SlurmdPidFile={at}/d-%n.pid\nSlurmctldLogFile={at}/c.log\nSlurmdLogFile={at}/d-%n.log\nSlurmUser=root\n\
             ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\nReturnToService=2\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nMpiDefault=none\n\
             {accounts}{list}PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n\
             PartitionName=short Nodes=ALL MaxTime=5 State=UP\n",
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
        if let Some(port) = accounting {
            slurm.account(home, port);
        }
        slurm.daemon("/usr/sbin/slurmctld", &["-D", "-c"]);
        names.iter().for_each(|name| slurm.daemon("/usr/sbin/slurmd", &["-D", "-N", name]));
        home.until("its nodes", || {
            slurm.says("sinfo", &["-h", "-p", "main", "-o", "%T %D"]).trim() == format!("idle {nodes}")
        });
        Some(slurm)
    }

    /// Starts the accounting and the database under it.
    fn account(&mut self, home: &Home, port: u16) {
        let (at, database) = (self.folder.display().to_string(), self::port());
        let data = format!("--datadir={at}/database");
        let socket = format!("--socket={at}/database.sock");
        let made =
            Command::new("mariadb-install-db").args(["--no-defaults", "--user=root", "--skip-test-db", &data]).output();
        assert!(made.as_ref().is_ok_and(|made| made.status.success()), "{made:?}");
        let listen = format!("--port={database}");
        self.daemon(
            "/usr/sbin/mariadbd",
            &["--no-defaults", "--user=root", "--bind-address=127.0.0.1", &data, &socket, &listen],
        );
        let grant = "create user slurm@'%' identified by 'secret'; grant all on *.* to slurm@'%'";
        home.until("the database", || {
            Command::new("mariadb")
                .args(["--no-defaults", &socket, "-e", grant])
                .output()
                .is_ok_and(|done| done.status.success())
        });
        let config = format!(
            "AuthType=auth/munge\nAuthInfo=socket={at}/munge.sock\nDbdHost={}\nDbdAddr=127.0.0.1\nDbdPort={port}\nSlurmUser=root\n\
             LogFile={at}/accounting.log\nPidFile={at}/accounting.pid\nStorageType=accounting_storage/mysql\n\
             StorageHost=127.0.0.1\nStoragePort={database}\nStorageUser=slurm\nStoragePass=secret\nStorageLoc=accounting\n",
            host_name()
        );
        let file = self.folder.join("slurmdbd.conf");
        fs::write(&file, config).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        self.daemon("/usr/sbin/slurmdbd", &["-D"]);
        home.until("the accounting", || {
            Command::new("sacctmgr")
                .args(["-n", "show", "cluster"])
                .env("SLURM_CONF", self.folder.join("slurm.conf"))
                .output()
                .unwrap()
                .status
                .success()
        });
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
        if std::thread::panicking() {
            let told = fs::read_to_string(self.folder.join("c.log")).unwrap_or_default();
            eprintln!("{}\n{}", self.says("squeue", &["-h", "-o", "%i %j %T %r %N"]), told);
        }
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

fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A job that Slurm says is completing is over for everybody else, but it may say so for minutes.
fn in_the_end(what: &str, so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(240);
    while !so() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Folders of attempts below a home.
fn attempts(user: &Path) -> usize {
    let targets = fs::read_dir(user.join(".peregrine-agent")).into_iter().flatten().flatten();
    targets.filter_map(|target| fs::read_dir(target.path().join("a")).ok()).flatten().count()
}

#[test]
fn jobs_are_batch_jobs_of_a_real_slurm() {
    let home = Home::new();
    let Some(mut slurm) = Slurm::start(&home, 1) else { return };
    slurm.serve(&home);
    let target = |types: &str| format!("type: slurm\nname: hpc\npartition: main\ninstance_types:\n{types}");
    home.file("bad.yml", &target("  odd: {partition: nowhere}\n"));
    home.run(&["compute", "attach", "-f", "bad.yml"]).must(2, &["no partition `nowhere`; there are main"]);
    home.file("hpc.yml", &target("  both: {cpus: 2}\n  huge: {cpus: 64}\n  quick: {partition: short}\n"));
    home.ok(&["compute", "attach", "-f", "hpc.yml"]);
    home.job_file("huge.yml", "true", "compute: azureml:hpc\nresources: {instance_type: huge}");
    home.run(&["job", "create", "-f", "huge.yml"]).must(2, &["more than any node can hold"]);

    let hello = home.stream("echo job $SLURM_JOB_ID on $SLURMD_NODENAME", "compute: azureml:hpc");
    assert_eq!(hello.code, Some(0), "{}", hello.err);
    assert!(hello.out.starts_with("job ") && hello.out.trim().ends_with(" on n1"), "{}", hello.out);

    // One takes the node, others wait for it by Slurm's own word; the server is killed meanwhile, and Slurm's controller.
    let both = "compute: azureml:hpc\nresources: {instance_type: both}\nlimits: {timeout: 7200}";
    // It has the node until the others have been seen to wait, however long that takes.
    let go = home.path().join("go");
    let steps = format!(
        "for i in $(seq 25); do echo step $i; sleep 1; done; while [ ! -e {} ]; do sleep 0.2; done",
        go.display()
    );
    home.begin("first", &steps, both);
    home.until_status("first", "Running");
    assert_eq!(slurm.says("squeue", &["-h", "-o", "%l"]).trim(), "3:00:00", "two hours, and one to collect");
    home.begin("second", "echo never", both);
    home.begin(
        "third",
        "echo never",
        "compute: azureml:hpc\nresources: {instance_type: quick}\nlimits: {timeout: 600}",
    );
    let why = |job: &str| home.ok(&["job", "why", "-n", job]);
    home.until("Slurm's reason", || {
        why("second").contains("(Resources)") && why("third").contains("(PartitionTimeLimit)")
    });
    // Slurm writes down what it knows every few seconds; a controller that dies before has never heard of a job.
    std::thread::sleep(Duration::from_secs(6));
    assert!(home.kill("server"));
    let controller = &mut slurm.daemons[1];
    controller.kill().unwrap();
    controller.wait().unwrap();
    slurm.serve(&home);
    // Long enough to be looked for more than once, and not found.
    std::thread::sleep(Duration::from_secs(4));
    slurm.daemon("/usr/sbin/slurmctld", &["-D"]);
    for job in ["second", "third"] {
        home.ok(&["job", "cancel", "-n", job]);
        assert_eq!(home.ended(job)["status"], "Canceled");
    }
    fs::write(&go, "").unwrap();
    assert_eq!(home.ended("first")["status"], "Completed", "{}", why("first"));
    let steps: String = (1..=25).map(|n| format!("step {n}\n")).collect();
    assert_eq!(home.log("first"), steps, "{}", why("first"));
    in_the_end("an empty queue", || slurm.says("squeue", &["-h"]).is_empty());
    in_the_end("a clean home", || attempts(&slurm.folder.join("user")) == 0);
}

#[test]
fn what_slurm_has_forgotten_its_accounting_tells() {
    let home = Home::new();
    let Some(slurm) = Slurm::accounted(&home) else { return };
    slurm.serve(&home);
    home.file("hpc.yml", "type: slurm\nname: hpc\npartition: main\n");
    home.ok(&["compute", "attach", "-f", "hpc.yml"]);
    home.begin("lost", "sleep 601", "compute: azureml:hpc\nproperties: {peregrine.max_retries: '0'}");
    home.until_status("lost", "Running");
    // Its owner takes it back in Slurm while the server is away, with everything that could leave a word.
    home.ok(&["server", "stop"]);
    let id = slurm.says("squeue", &["-h", "-o", "%A"]).trim().to_owned();
    slurm.says("scancel", &["--signal=KILL", "--full", &id]);
    in_the_end("Slurm to forget it", || slurm.says("squeue", &["-h", "-t", "all"]).is_empty());
    // Slurm is told here to look for processes by their group alone.
    for (pid, _) in processes_with("sleep 601") {
        signal(pid, "KILL");
    }
    slurm.serve(&home);
    let ended = home.ended("lost");
    let why = home.ok(&["job", "why", "-n", "lost"]);
    assert_eq!(ended["status"], "Failed", "{why}");
    assert!(why.contains("it was canceled in Slurm"), "{why}");
    in_the_end("a clean home", || attempts(&slurm.folder.join("user")) == 0);
}

#[test]
fn compute_nodes_trust_whoever_signed_the_certificate_at_the_address_they_are_told() {
    let home = Home::new();
    let Some(slurm) = Slurm::start(&home, 1) else { return };
    certify(&home, "IP:127.0.0.2");
    let port = TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    let at = home.path().display();
    home.configure(&format!(
        "[server]\nlisten = \"0.0.0.0:{port}\"\ntls_cert = \"{at}/server.pem\"\ntls_key = \"{at}/server.key\"\n\
         authority_file = \"{at}/ca.pem\"\n"
    ));
    slurm.serve(&home);
    for (name, more) in [("told", format!("server_url: 'https://127.0.0.2:{port}'\n")), ("here", String::new())] {
        home.file("target.yml", &format!("type: slurm\nname: {name}\npartition: main\n{more}"));
        home.ok(&["compute", "attach", "-f", "target.yml"]);
        works(&home, &format!("on-{name}"), &format!("compute: azureml:{name}"));
    }
}

/// Programs that write down that they were called, before Slurm's own are.
fn counted(folder: &Path) -> String {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).unwrap();
    for program in ["squeue", "sacct", "sinfo", "sbatch", "scancel"] {
        let text = format!(
            "#!/bin/sh\necho {program} >> {}\nexec /usr/bin/{program} \"$@\"\n",
            folder.join("calls").display()
        );
        fs::write(bin.join(program), text).unwrap();
        fs::set_permissions(bin.join(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    format!("{}:/usr/bin:/bin", bin.display())
}

#[test]
fn a_sweep_is_one_array_on_a_cluster_behind_ssh_and_a_gang_has_its_nodes() {
    let home = Home::new();
    let Some(slurm) = Slurm::start(&home, 2) else { return };
    let variables =
        [("SLURM_CONF", slurm.folder.join("slurm.conf").display().to_string()), ("PATH", counted(&slurm.folder))];
    let Some(login) = Machine::called(&home, "login", &variables, None) else { return };
    let calls = |program: &str| {
        let all = fs::read_to_string(slurm.folder.join("calls")).unwrap_or_default();
        all.lines().filter(|line| *line == program).count()
    };
    home.file(
        "hpc.yml",
        &format!(
            "type: slurm\nname: hpc\nhost: 127.0.0.1\nhost_key: {}\npartition: main\n\
             ssh_settings: {{admin_username: {}, ssh_port: {}, ssh_private_key_file: {}}}\n\
             instance_types:\n  both: {{cpus: 2}}\n  again: {{arguments: ['--requeue']}}\n",
            login.fingerprint(),
            login.user,
            login.port,
            login.folder.join("id").display()
        ),
    );
    home.ok(&["compute", "attach", "-f", "hpc.yml"]);

    // A gang has a node for each rank.
    let (at, on) = (home.path().display(), "compute: azureml:hpc");
    let gang = format!(
        "{on}\nresources: {{instance_count: 2, instance_type: both}}\ndistribution: {{type: pytorch, process_count_per_instance: 1}}"
    );
    let go = home.path().join("go");
    let until = format!("until [ -e {} ]; do sleep 0.2; done", go.display());
    home.begin("gang", &format!("echo $SLURMD_NODENAME $WORLD_SIZE > {at}/rank-$RANK; {until}"), &gang);
    home.until_status("gang", "Running");
    let rank = |n: u32| fs::read_to_string(home.path().join(format!("rank-{n}"))).unwrap_or_default();
    home.until("both ranks", || rank(0) == "n1 2\n" && rank(1) == "n2 2\n");

    // All trials wait for it, as one array; Slurm is asked once for all of them.
    let count = if is_long() { 1000 } else { 100 };
    let sent = calls("sbatch");
    home.file(
        "many.yml",
        &format!(
            "type: sweep\ntrial:\n  command: echo ${{{{search_space.x}}}}\n  environment: {{image: 'python:3.12-slim'}}\n{on}\n\
             sampling_algorithm: random\nsearch_space: {{x: {{type: uniform, min_value: 0, max_value: 1}}}}\n\
             objective: {{goal: minimize, primary_metric: loss}}\nlimits: {{max_total_trials: {count}, max_concurrent_trials: {count}}}\n"
        ),
    );
    home.ok(&["job", "create", "-f", "many.yml", "-n", "many", "-o", "none"]);
    let waiting = || slurm.says("squeue", &["-h", "-r", "-t", "PENDING", "-o", "%F"]);
    home.until("all trials", || waiting().lines().count() == count);
    let mut arrays: Vec<String> = waiting().lines().map(str::to_owned).collect();
    arrays.dedup();
    assert_eq!((arrays.len(), calls("sbatch") - sent), (count.div_ceil(200), count.div_ceil(200)));
    home.until("Slurm's reason", || home.ok(&["job", "why", "-n", "many_7"]).contains("(Resources)"));
    let (before, since) = (calls("squeue"), Instant::now());
    std::thread::sleep(Duration::from_secs(7));
    let looks = since.elapsed().as_secs() as usize / 3 + 2;
    assert!((1..=looks).contains(&(calls("squeue") - before)), "{} in {looks} looks", calls("squeue") - before);
    assert_eq!(calls("sacct"), 0, "nothing was forgotten");
    home.ok(&["job", "cancel", "-n", "many"]);
    assert_eq!(home.ended("many")["status"], "Canceled");
    home.until("the gang alone", || slurm.says("squeue", &["-h", "-r"]).lines().count() == 1);
    assert!(calls("scancel") < 20, "{} for {count}", calls("scancel"));
    home.file("go", "");
    assert_eq!(home.ended("gang")["status"], "Completed");

    // Trials that run do so each with its own values, and each once.
    let few = fs::read_to_string(home.path().join("many.yml")).unwrap().replace(&count.to_string(), "5");
    home.file("few.yml", &few.replace("command: echo", &format!("command: echo $AZUREML_RUN_ID >> {at}/ran; echo")));
    home.ok(&["job", "create", "-f", "few.yml", "-n", "few", "-o", "none"]);
    assert_eq!(home.ended("few")["status"], "Completed");
    let ran = fs::read_to_string(home.path().join("ran")).unwrap();
    let mut ran: Vec<&str> = ran.lines().collect();
    ran.sort_unstable();
    assert_eq!(ran, ["few_0", "few_1", "few_2", "few_3", "few_4"]);

    // One that Slurm puts back in its queue is another attempt of ours, and Slurm's own second try runs nothing.
    let twice = format!("echo $SLURM_JOB_ID >> {at}/begun; [ $(wc -l < {at}/begun) -gt 1 ] || sleep 600");
    home.begin("twice", &twice, &format!("{on}\nresources: {{instance_type: again}}"));
    let begun = || fs::read_to_string(home.path().join("begun")).unwrap_or_default();
    home.until("its first try", || begun().lines().count() == 1);
    slurm.says("scontrol", &["requeue", begun().trim()]);
    assert_eq!(home.ended("twice")["status"], "Completed", "{}", home.ok(&["job", "why", "-n", "twice"]));
    assert_eq!(begun().lines().count(), 2);
    home.until("an empty queue", || slurm.says("squeue", &["-h"]).is_empty());
    home.until("a clean home", || attempts(&login.folder.join("user")) == 0);
}
