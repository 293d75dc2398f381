//! Machines in networks of their own: the way to them is cut without a word, for seconds and for longer than their lease, the
//! server is replaced meanwhile, and in the end every job has run once.

use crate::{
    harness::{Home, binary, is_long, processes_with, signal},
    ssh::{Machine, words},
};
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::Duration,
};

static NEXT: AtomicU32 = AtomicU32::new(0);
/// Nobody has this address, so that what is sent to it is lost and nobody says so.
const NOBODY: &str = "02:00:00:00:00:99";

/// A network of two: this machine, and whatever runs within.
pub(crate) struct Net {
    name: String,
    pub(crate) here: String,
    pub(crate) there: String,
}

impl Net {
    /// `None`, said aloud, where it cannot be had.
    pub(crate) fn new() -> Option<Net> {
        let (pid, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let name = format!("pg{}x{n}", pid % 100_000);
        let net = format!("10.{}.{}", 128 + pid % 100, (pid / 100 + n * 37) % 250);
        let net = Net { here: format!("{net}.1"), there: format!("{net}.2"), name };
        let Net { name, here, there } = &net;
        let made = ip(&format!("netns add {name}"))
            && ip(&format!("link add {name}h type veth peer name {name}t"))
            && ip(&format!("link set {name}t netns {name}"))
            && ip(&format!("addr add {here}/24 dev {name}h"))
            && ip(&format!("link set {name}h up"))
            && ip(&format!("-n {name} addr add {there}/24 dev {name}t"))
            && ip(&format!("-n {name} link set {name}t up"))
            && ip(&format!("-n {name} link set lo up"));
        if !made {
            crate::skip::skip("machines in networks of their own (no namespaces of networks, or not root)");
            return None;
        }
        Some(net)
    }

    /// A program that runs within.
    pub(crate) fn within(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// From now on everything is lost on the way, in both directions, and no connection ends.
    fn cut(&self) {
        let Net { name, here, there } = self;
        assert!(ip(&format!("neigh replace {there} lladdr {NOBODY} dev {name}h nud permanent")));
        assert!(ip(&format!("-n {name} neigh replace {here} lladdr {NOBODY} dev {name}t nud permanent")));
    }

    fn heal(&self) {
        let Net { name, here, there } = self;
        assert!(
            ip(&format!("neigh del {there} dev {name}h")) && ip(&format!("-n {name} neigh del {here} dev {name}t"))
        );
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let pids = Command::new("ip").args(["netns", "pids", &self.name]).output().unwrap();
        for pid in String::from_utf8_lossy(&pids.stdout).split_whitespace() {
            signal(pid.parse().unwrap(), "KILL");
        }
        ip(&format!("netns del {}", self.name));
        ip(&format!("link del {}h", self.name));
    }
}

fn ip(words: &str) -> bool {
    Command::new("ip")
        .args(words.split_whitespace())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The same program as another file with other bytes, as the next version is.
fn next_version(home: &Home) -> PathBuf {
    let next = home.path().join("next-peregrine");
    fs::copy(binary(), &next).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&next).unwrap();
    std::io::Write::write_all(&mut file, b"next").unwrap();
    next
}

/// Kills the server and starts the next version in its place.
fn upgrade(home: &Home) {
    let next = next_version(home);
    assert!(home.kill("server"));
    let mut server = Command::new(next);
    server.args(["server", "start", "-o", "none"]).env("PEREGRINE_HOME", home.home()).current_dir(home.path());
    assert!(server.env("PEREGRINE_ROUTER_LISTEN", "127.0.0.1:0").stdin(Stdio::null()).status().unwrap().success());
}

const STEPS: &str = "for i in $(seq 12); do echo step $i; sleep 1; done";

fn ran_once(home: &Home, job: &str) {
    let why = || home.ok(&["job", "why", "-n", job]);
    assert_eq!(home.ended(job)["status"], "Completed", "{}", why());
    let steps: String = (1..=12).map(|n| format!("step {n}\n")).collect();
    assert_eq!(home.log(job), steps, "{}", why());
}

#[test]
fn a_job_over_ssh_outlives_a_silent_network_and_the_server() {
    let home = Home::new();
    let Some(net) = Net::new() else { return };
    let Some(machine) = Machine::called(&home, "machine", &[], Some(&net)) else { return };
    home.ok(&words(&machine.attach("id", &[("--host-key", &machine.fingerprint())])));
    home.begin("steps", STEPS, "compute: azureml:box");
    home.until_status("steps", "Running");
    net.cut();
    sleep(Duration::from_secs(2));
    upgrade(&home);
    // Longer than ssh waits for a sign of life, or for a moment.
    sleep(Duration::from_secs(if is_long() { 100 } else { 4 }));
    net.heal();
    ran_once(&home, "steps");
}

/// A server that can be reached from other networks, by a certificate of its operator's own.
fn reachable(home: &Home, net: &Net) -> u16 {
    let (at, here) = (home.path().display(), &net.here);
    let script = format!(
        "set -e; cd {at}\nopenssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test -keyout ca.key -out ca.pem\n\
         openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout server.key -out server.csr\n\
         printf 'subjectAltName=IP:{here},IP:127.0.0.1,DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > ext\n\
         openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.pem"
    );
    let made = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    home.configure(&format!(
        "[server]\nlisten = \"0.0.0.0:{port}\"\npublic_url = \"https://{here}:{port}\"\ntls_cert = \"{at}/server.pem\"\ntls_key = \"{at}/server.key\"\nauthority_file = \"{at}/ca.pem\"\n"
    ));
    port
}

/// A program that brings nodes within a network, and takes everything there away with one; `stuck` has it fail at that.
fn provider(home: &Home, net: &Net) -> PathBuf {
    let folder = home.path().join("cloud");
    fs::create_dir_all(&folder).unwrap();
    let program = home.file(
        "home/providers/lab",
        &format!(
            r#"#!/bin/sh
cd {folder} || exit 1
echo "$@" >> calls
case "$1" in
list) ls -d crew-* 2>/dev/null; exit 0 ;;
delete)
  [ -e stuck ] && exit 1
  for p in $(ip netns pids {net}); do kill -9 $p; done
  rm -rf "$2"; exit 0 ;;
esac
mkdir "$2" || exit 0
export PEREGRINE_TOP="$PWD/$2/top"
setsid nohup ip netns exec {net} {binary} agent node --home "$PWD/$2" > "$2/log" 2>&1 < /dev/null &
"#,
            folder = folder.display(),
            net = net.name,
            binary = binary().display(),
        ),
    );
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn nodes(folder: &Path) -> usize {
    let of_home = processes_with(&folder.display().to_string());
    of_home.into_iter().filter(|(_, line)| line.contains("agent node")).count()
}

#[test]
fn a_node_that_nobody_can_reach_goes_on_or_leaves_and_its_job_runs_once() {
    const ON: &str = "compute: azureml:crew";
    let home = Home::new();
    let Some(net) = Net::new() else { return };
    let port = reachable(&home, &net);
    let folder = provider(&home, &net);
    home.file(
        "crew.yml",
        &format!(
            "name: crew\ntype: amlcompute\nsize: Standard_D1_v2\nmax_instances: 1\nidle_time_before_scale_down: 600\n\
             provider: {{type: command, program: lab, timeout_seconds: 10, lease_seconds: 30, server_url: 'https://{}:{port}'}}\n",
            net.here
        ),
    );
    home.ok(&["compute", "create", "-f", "crew.yml"]);
    home.begin("steps", STEPS, ON);
    home.until_status("steps", "Running");
    net.cut();
    sleep(Duration::from_secs(2));
    upgrade(&home);
    sleep(Duration::from_secs(4));
    net.heal();
    ran_once(&home, "steps");
    let calls = || fs::read_to_string(folder.join("calls")).unwrap();
    assert_eq!(calls().lines().filter(|line| line.starts_with("create")).count(), 1, "{}", calls());
    if !is_long() {
        return;
    }

    // Cut for longer than the lease: the node is taken away before its job begins elsewhere.
    let wrote = home.path().join("wrote");
    let both = format!("while :; do echo $$ >> {0}; [ -e {0}.go ] && exit 0; sleep 0.5; done", wrote.display());
    home.begin("held", &both, ON);
    home.until("it to write", || wrote.exists());
    net.cut();
    home.until("its end", || calls().contains("delete crew-"));
    let first = fs::read_to_string(&wrote).unwrap().lines().count();
    net.heal();
    home.until("it to go on", || fs::read_to_string(&wrote).unwrap().lines().count() > first + 2);
    home.file("wrote.go", "");
    assert_eq!(home.ended("held")["status"], "Completed");
    let lines = fs::read_to_string(&wrote).unwrap();
    let mut tries: Vec<&str> = lines.lines().collect();
    tries.dedup();
    assert_eq!(tries.len(), 2, "one after the other: {tries:?}");

    // A node without work that its provider cannot take away leaves by itself.
    home.until("an idle node", || nodes(&folder) == 1);
    fs::write(folder.join("stuck"), "").unwrap();
    net.cut();
    home.until("it to leave", || nodes(&folder) == 0);
    fs::remove_file(folder.join("stuck")).unwrap();
}
