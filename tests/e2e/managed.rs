//! Managed clusters: nodes come with work and go without it, whoever brings them; what they run lives through the loss of agents
//! and of the server, and nothing of them is left behind.

mod corpus;
mod lost;
mod pods;

use crate::{
    faults::machine::SmallDisk,
    harness::{Home, binary, processes_with, signal},
    skip::skip,
    ssh::Machine,
};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf, process::Command};

pub(crate) const ON: &str = "compute: azureml:crew";

pub(crate) fn create(home: &Home, more: &str) {
    home.file("crew.yml", &format!("name: crew\ntype: amlcompute\nsize: Standard_D1_v2\n{more}\n"));
    home.ok(&["compute", "create", "-f", "crew.yml"]);
}

/// Names and states of the nodes.
fn nodes(home: &Home) -> Vec<(String, String)> {
    let listed = home.json(&["compute", "list-nodes", "-n", "crew"]);
    let word = |node: &Value, key: &str| node[key].as_str().unwrap().to_owned();
    let all = listed.as_array().unwrap().iter();
    all.map(|node| (word(node, "node_id"), word(node, "node_state"))).collect()
}

pub(crate) fn states(home: &Home) -> Vec<String> {
    nodes(home).into_iter().map(|(_, state)| state).collect()
}

pub(crate) fn why(home: &Home, job: &str) -> String {
    home.ok(&["job", "why", "-n", job])
}

/// The processes that are nodes of this home's.
fn agents(home: &Home) -> Vec<i32> {
    let of_home = processes_with(&home.path().display().to_string());
    of_home.into_iter().filter(|(_, line)| line.contains("agent node")).map(|(pid, _)| pid).collect()
}

#[test]
fn a_cluster_grows_with_its_work_and_shrinks_to_nothing() {
    let home = Home::new();
    create(&home, "max_instances: 3\nidle_time_before_scale_down: 3");
    assert!(nodes(&home).is_empty());
    home.file("data/in.txt", "seven\n");
    let hello = home
        .stream("cat ${{inputs.data}}/in.txt", &format!("{ON}\ninputs: {{data: {{type: uri_folder, path: data}}}}"));
    assert_eq!((hello.code, hello.out.as_str()), (Some(0), "seven\n"), "{}", hello.err);
    assert_eq!(states(&home), ["idle"]);

    // A gang is begun whole, on nodes of its own, and a job behind it waits.
    let gang = format!(
        "{ON}\ndistribution: {{type: pytorch, process_count_per_instance: 1}}\nresources: {{instance_count: 3}}"
    );
    home.begin("gang", "echo rank $RANK of $WORLD_SIZE; sleep 2", &gang);
    home.until_status("gang", "Running");
    home.begin("behind", "true", ON);
    home.until("the reason to wait", || why(&home, "behind").contains("3 of at most 3 at work"));
    assert_eq!(states(&home), ["running"; 3]);
    assert_eq!(home.ended("gang")["status"], "Completed", "{}", why(&home, "gang"));
    assert_eq!(home.ended("behind")["status"], "Completed");
    home.job_file("more.yml", "true", &format!("{ON}\nresources: {{instance_count: 4}}"));
    home.ok(&["job", "create", "-f", "more.yml", "-n", "more", "-o", "none"]);
    assert_eq!(home.ended("more")["status"], "Failed");
    assert!(why(&home, "more").contains("needs 4 nodes and `crew` has 3 at most"), "{}", why(&home, "more"));

    home.until("the last node to go", || nodes(&home).is_empty() && agents(&home).is_empty());
    home.ok(&["compute", "update", "-n", "crew", "--min-instances", "1"]);
    home.until("the least", || states(&home) == ["idle"]);

    // A name is joined by one machine.
    let token = fs::read_dir(home.home().join("n")).unwrap().flatten();
    let token = token.flat_map(|cluster| fs::read_dir(cluster.path()).unwrap().flatten());
    let token = token.map(|node| node.path().join("join")).find(|file| file.is_file()).unwrap();
    let second = |token: &str| {
        let mut agent = Command::new(binary());
        agent
            .args(["agent", "node"])
            .env("PEREGRINE_TOP", home.path().join("thief"))
            .env("PEREGRINE_JOIN_TOKEN", token);
        agent
            .env("PEREGRINE_NODE", &nodes(&home)[0].0)
            .env("PEREGRINE_CA_FILE", home.home().join("keys/authority.pem"));
        let url = home.json(&["server", "status"])["url"].as_str().unwrap().to_owned();
        crate::harness::said(agent.env("PEREGRINE_SERVER", url).output().unwrap())
    };
    second(&fs::read_to_string(&token).unwrap()).must(3, &["has joined from another machine"]);
    second("join.@default/crew/crew-000000.0").must(3, &["the token is not one of this server's"]);

    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    assert!(agents(&home).is_empty());
    assert_eq!(home.json(&["compute", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn what_runs_on_a_node_lives_through_the_loss_of_its_agent_and_of_the_server() {
    let home = Home::new();
    create(&home, "max_instances: 2\nidle_time_before_scale_down: 300\ntier: low_priority");
    let steps = "for i in 1 2 3 4 5 6 7 8 9; do echo step $i; sleep 1; done";
    home.begin("steps", steps, ON);
    home.until_status("steps", "Running");
    assert!(signal(agents(&home)[0], "KILL"));
    assert!(home.kill("server"));
    assert_eq!(home.ended("steps")["status"], "Completed", "{}", why(&home, "steps"));
    let all: String = (1..=9).map(|n| format!("step {n}\n")).collect();
    assert_eq!(home.log("steps"), all, "{}", why(&home, "steps"));
    home.until("the agent to be started again", || agents(&home).len() == 1 && states(&home) == ["idle"]);

    // Taken back: the job is told, and tried again on another node, with what it had written down.
    let work = "mkdir -p ${{outputs.kept}}\nif [ -e ${{outputs.kept}}/half ]; then echo again; exit 0; fi\n\
                trap 'echo told; touch ${{outputs.kept}}/half; exit 143' TERM\necho first\nfor i in $(seq 600); do sleep 0.1; done";
    let kept =
        "outputs: {kept: {type: uri_folder, mode: rw_mount, path: azureml://datastores/workspaceblobstore/paths/kept}}";
    home.begin("taken", work, &format!("{ON}\n{kept}"));
    home.until("its first line", || home.log("taken").contains("first"));
    let before = nodes(&home)[0].0.clone();
    home.ok(&["compute", "preempt", "-n", "crew"]);
    assert_eq!(home.ended("taken")["status"], "Completed", "{}", why(&home, "taken"));
    home.until("the node to go", || nodes(&home).iter().all(|(name, _)| *name != before));
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    home.until("a clean machine", || agents(&home).is_empty());
}

#[test]
fn small_jobs_follow_each_other_and_each_runs_once_whoever_is_killed() {
    let home = Home::new();
    create(&home, "min_instances: 2\nmax_instances: 2\nidle_time_before_scale_down: 300");
    // The agents that run attempts on nodes, under their keepers.
    let runners = || {
        let all = processes_with(&home.home().join("n").display().to_string()).into_iter();
        all.filter(|(_, line)| line.contains("agent run")).map(|(pid, _)| pid).collect::<Vec<_>>()
    };
    home.until("two agents", || runners().len() == 2);
    let ran = home.path().join("ran");
    let small = |name: &str| home.begin(name, &format!("echo {name} >> {}; echo said", ran.display()), ON);
    let names: Vec<String> = (0..20).map(|n| format!("small{n}")).collect();
    for (at, name) in names.iter().enumerate() {
        small(name);
        match at {
            5 | 11 => assert!(signal(runners()[0], "KILL")),
            8 => assert!(signal(agents(&home)[0], "KILL")),
            14 => assert!(home.kill("server")),
            _ => {}
        }
    }
    // One that takes long keeps nobody waiting who stands in line behind it.
    home.begin("long", "for i in $(seq 600); do sleep 0.1; done", ON);
    let behind: Vec<String> = (0..6).map(|n| format!("behind{n}")).collect();
    behind.iter().for_each(|name| small(name));
    for name in names.iter().chain(&behind) {
        assert_eq!(home.ended(name)["status"], "Completed", "{}", why(&home, name));
        assert_eq!(home.log(name), "said\n");
    }
    let mut all: Vec<String> = fs::read_to_string(&ran).unwrap().lines().map(str::to_owned).collect();
    all.sort();
    let mut once: Vec<String> = names.into_iter().chain(behind).collect();
    once.sort();
    assert_eq!(all, once);
    home.until_status("long", "Running");
    home.ok(&["job", "cancel", "-n", "long"]);
    assert_eq!(home.ended("long")["status"], "Canceled");
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    home.until("a clean machine", || agents(&home).is_empty() && runners().is_empty());
}

#[test]
fn a_job_of_higher_priority_takes_the_node_of_one_of_lower_which_goes_on_where_it_was() {
    let home = Home::new();
    create(&home, "max_instances: 2\nidle_time_before_scale_down: 300\npreemption: lower-priority");
    let go = home.path().join("go");
    let low = |name: &str| {
        let work = format!(
            "mkdir -p ${{{{outputs.kept}}}}\nif [ -e ${{{{outputs.kept}}}}/half ]; then echo goes on > {1}; exit 0; fi\n\
             trap 'echo told; touch ${{{{outputs.kept}}}}/half; exit 143' TERM\necho first\n\
             until [ -e {0} ]; do sleep 0.1; done",
            go.display(),
            home.path().join(format!("{name}-went-on")).display()
        );
        let kept = format!(
            "outputs: {{kept: {{type: uri_folder, mode: rw_mount, path: azureml://datastores/workspaceblobstore/paths/{name}}}}}"
        );
        home.begin(name, &work, &format!("{ON}\n{kept}\nqueue_settings: {{priority: low}}"));
        home.until("its first line", || home.log(name).contains("first"));
    };
    low("older");
    low("younger");
    home.begin("high", "echo high", &format!("{ON}\nqueue_settings: {{priority: high}}"));
    assert_eq!(home.ended("high")["status"], "Completed", "{}", why(&home, "high"));
    assert_eq!(home.ended("younger")["status"], "Completed", "{}", why(&home, "younger"));
    let story = why(&home, "younger");
    assert!(story.contains("makes way for `high`, which has a higher priority"), "{story}");
    assert!(home.log("younger").contains("told"), "{}", home.log("younger"));
    assert!(home.path().join("younger-went-on").exists(), "it found what it had written");
    // The other was not in the way.
    home.file("go", "");
    assert_eq!(home.ended("older")["status"], "Completed", "{}", why(&home, "older"));
    assert!(!why(&home, "older").contains("makes way"), "{}", why(&home, "older"));
    assert!(!home.path().join("older-went-on").exists());
    home.file("k8s.yml", "name: lab\ntype: kubernetes\nresource_id: lab\npreemption: lower-priority\n");
    home.run(&["compute", "validate", "-f", "k8s.yml"]).must(2, &["preemption", "`off`"]);
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    home.until("a clean machine", || agents(&home).is_empty());
}

/// A program that brings nodes as processes; `mode` says how badly.
pub(crate) fn provider(home: &Home) -> PathBuf {
    let folder = home.path().join("cloud");
    fs::create_dir_all(&folder).unwrap();
    fs::create_dir_all(home.home().join("providers")).unwrap();
    let program = home.home().join("providers/lab");
    let text = format!(
        r#"#!/bin/sh
cd {folder} || exit 1
echo "$@" >> calls
case "$1" in
list)
  for n in crew-*; do
    [ -d "$n" ] || continue
    if [ -e "$n/back" ]; then echo "$n leaving $(cat "$n/back")"; else echo "$n"; fi
  done
  exit 0 ;;
delete)
  for p in "$2"/pid "$2"/pid2; do [ -e "$p" ] && kill -9 "$(cat "$p")" 2>/dev/null; done
  rm -rf "$2"; exit 0 ;;
esac
mode=$(head -n 1 mode); sed -i 1d mode
case "$mode" in
fail) echo "no quota for $2" >&2; exit 7 ;;
hang) sleep 300 ;;
lie) exit 0 ;;
esac
mkdir "$2" || exit 0
echo "$PEREGRINE_TIER" > tier
if [ "$mode" = twice ]; then
  export PEREGRINE_TOP="$PWD/$2/top2"
  setsid nohup {binary} agent node --home "$PWD/$2/second" > "$2/log2" 2>&1 < /dev/null &
  echo $! > "$2/pid2"
fi
export PEREGRINE_TOP="$PWD/$2/top"
setsid nohup {binary} agent node --home "$PWD/$2" > "$2/log" 2>&1 < /dev/null &
echo $! > "$2/pid"
"#,
        folder = folder.display(),
        binary = binary().display(),
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn a_program_that_fails_hangs_and_lies_still_brings_nodes_in_the_end() {
    let home = Home::new();
    let folder = provider(&home);
    fs::write(folder.join("mode"), "fail\nhang\nlie\n").unwrap();
    home.file("crew.yml", "name: crew\ntype: amlcompute\nmax_instances: 2\nprovider: {type: command, program: ../x}\n");
    home.run(&["compute", "create", "-f", "crew.yml"]).must(2, &["`../x` is not the name of a program"]);
    home.file(
        "crew.yml",
        "name: crew\ntype: amlcompute\nmax_instances: 2\nprovider: {type: command, program: absent}\n",
    );
    home.run(&["compute", "create", "-f", "crew.yml"]).must(2, &["`absent list` does not start"]);
    // Machines of other clusters that the program serves too.
    let others = ["crew-0000ff", "crew-big-0000ff", "crew-ffffffff-0000ff"];
    others.iter().for_each(|name| fs::create_dir_all(folder.join(name)).unwrap());
    create(
        &home,
        "max_instances: 2\nidle_time_before_scale_down: 300\nprovider: {type: command, program: lab, timeout_seconds: 2}",
    );
    home.begin("work", "echo done", ON);
    home.until("the first reason", || why(&home, "work").contains("no quota for crew-"));
    // A machine that was made for this cluster and that nobody knows of.
    let calls = fs::read_to_string(folder.join("calls")).unwrap();
    let named = calls.lines().find_map(|line| line.strip_prefix("create ")).unwrap();
    let orphan = format!("{}0000ff", &named[..named.len() - 6]);
    fs::create_dir_all(folder.join(&orphan)).unwrap();
    assert_eq!(home.ended("work")["status"], "Completed", "{}", why(&home, "work"));
    let calls = fs::read_to_string(folder.join("calls")).unwrap();
    // One that failed, one that hung, one that lied, one that came: each under a name of its own, each taken away if it may be there.
    let made: Vec<&str> = calls.lines().filter_map(|line| line.strip_prefix("create ")).collect();
    assert_eq!(made.len(), 4, "{calls}");
    assert!(made[..2].iter().all(|name| calls.contains(&format!("delete {name}"))), "{calls}");
    home.until("the orphan to go", || !folder.join(&orphan).exists());
    let shown = home.json(&["compute", "show", "-n", "crew"]);
    assert!(shown["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{shown}");
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    assert!(others.iter().all(|name| folder.join(name).exists()), "what is another's stays");
    assert!(agents(&home).is_empty());
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        3 + others.len(),
        "calls, mode and tier are left, and what is another's"
    );
}

#[test]
fn machines_over_ssh_are_nodes_one_each() {
    let home = Home::new();
    let Some(machine) = Machine::start(&home) else { return };
    let Machine { folder, port, user, .. } = &machine;
    let provider = |key: &str| {
        format!(
            "max_instances: 4\nidle_time_before_scale_down: 2\nprovider:\n  type: ssh\n  user: {user}\n  port: {port}\n  private_key_file: {}\n  \
             hosts: [{{address: 127.0.0.1, host_key: '{key}'}}]",
            folder.join("id").display()
        )
    };
    home.file(
        "crew.yml",
        &format!("name: crew\ntype: amlcompute\nsize: Standard_D1_v2\n{}\n", provider("SHA256:wrong")),
    );
    home.run(&["compute", "create", "-f", "crew.yml"]).must(2, &["and not SHA256:wrong"]);
    create(&home, &provider(&machine.fingerprint()));
    let shown = home.json(&["compute", "show", "-n", "crew"]);
    assert!(!shown.to_string().contains("PRIVATE KEY"), "{shown}");
    home.begin("first", "echo one; sleep 4; echo two", ON);
    home.begin("second", "echo after", ON);
    home.until_status("first", "Running");
    machine.cut();
    assert_eq!(home.ended("first")["status"], "Completed", "{}", why(&home, "first"));
    assert_eq!(home.log("first"), "one\ntwo\n");
    // There is one machine, so there is one node.
    assert_eq!(home.ended("second")["status"], "Completed", "{}", why(&home, "second"));
    home.until("the node to go", || agents(&home).is_empty());
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
}

/// The files in which nodes keep what speaks for them.
fn passes(home: &Home) -> Vec<PathBuf> {
    let clusters = fs::read_dir(home.home().join("n")).into_iter().flatten().flatten();
    let nodes = clusters.flat_map(|cluster| fs::read_dir(cluster.path()).unwrap().flatten());
    nodes.map(|node| node.path().join("pass")).filter(|file| file.is_file()).collect()
}

#[test]
fn a_node_works_by_a_certificate_that_is_renewed_and_dies_with_the_node() {
    let home = Home::new();
    home.configure("[server]\nnode_certificate_seconds = 10\n");
    create(&home, "max_instances: 1\nidle_time_before_scale_down: 300");
    home.begin("steps", "for i in $(seq 15); do echo step $i; sleep 1; done", ON);
    home.until_status("steps", "Running");
    let file = passes(&home).pop().expect("a node keeps what speaks for it");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let first = fs::read_to_string(&file).unwrap();
    assert!(first.starts_with("node.@default/crew/crew-") && first.contains("PRIVATE KEY"), "no token: {first:.40}");
    // While the job runs it outlives its certificate, and the loss of its node's process and of the server.
    home.until("another certificate", || fs::read_to_string(&file).is_ok_and(|now| now != first));
    assert!(signal(agents(&home)[0], "KILL"));
    // The next server gives certificates that are good for long, however slow this machine is.
    home.configure("[server]\nnode_certificate_seconds = 3600\n");
    assert!(home.kill("server"));
    assert_eq!(home.ended("steps")["status"], "Completed", "{}", why(&home, "steps"));
    let all: String = (1..=15).map(|n| format!("step {n}\n")).collect();
    assert_eq!(home.log("steps"), all, "{}", why(&home, "steps"));
    let hello = home.stream("echo hello", ON);
    assert_eq!((hello.code, hello.out.as_str()), (Some(0), "hello\n"), "{}", hello.err);

    // Whoever has copied everything of a node has nothing once the node is gone.
    let stolen = home.path().join("stolen.pem");
    let mut copied = String::new();
    home.until("one that is good for longer than this test takes", || {
        copied = fs::read_to_string(&file).unwrap_or_default();
        let Some((_, identity)) = copied.split_once('\n') else { return false };
        fs::write(&stolen, identity).unwrap();
        let asked = Command::new("openssl").args(["x509", "-noout", "-checkend", "1200", "-in"]).arg(&stolen).output();
        asked.unwrap().status.success()
    });
    let (claim, _) = copied.split_once('\n').unwrap();
    let poll = || {
        let url = home.json(&["server", "status"])["url"].as_str().unwrap().to_owned();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--max-time", "30", "--output", "/dev/null", "--write-out", "%{http_code}"]);
        curl.arg("--cacert").arg(home.home().join("keys/authority.pem")).arg("--cert").arg(&stolen);
        curl.args(["-H", &format!("authorization: Bearer {claim}"), "-H", "content-type: application/json"]);
        curl.args(["-d", r#"{"facts": {}, "holds": [], "keeps": []}"#, &format!("{url}/node/v1/poll")]);
        crate::harness::said(curl.output().unwrap()).out
    };
    assert_eq!(poll(), "200");
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    assert_eq!(poll(), "401");
}

/// Ends TLS and passes on what is in it, as a proxy in front of the server does.
const PROXY: &str = r#"
import socket, ssl, sys, threading
listen, behind, cert, key = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
trust.load_cert_chain(cert, key)
def copy(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
    except OSError:
        pass
    for end in (one, other):
        try: end.shutdown(socket.SHUT_RDWR)
        except OSError: pass
def serve(raw):
    try:
        caller = trust.wrap_socket(raw, server_side=True)
        server = socket.create_connection(("127.0.0.1", behind))
    except OSError:
        return raw.close()
    threading.Thread(target=copy, args=(caller, server), daemon=True).start()
    copy(server, caller)
door = socket.create_server(("127.0.0.1", listen))
while True:
    threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()
"#;

#[test]
fn behind_a_proxy_that_ends_tls_a_node_goes_on_with_a_token() {
    let home = Home::new();
    let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (front, behind) = (free(), free());
    home.configure(&format!("[server]\nhttp = \"127.0.0.1:{behind}\"\n"));
    home.ok(&["server", "start", "-o", "none"]);
    let script = home.file("home/proxy.py", PROXY);
    let mut proxy = Command::new("python3");
    proxy.arg(script).args([front.to_string(), behind.to_string()]);
    let mut proxy =
        proxy.args(["server.pem", "server.key"].map(|key| home.home().join("keys").join(key))).spawn().unwrap();
    let folder = provider(&home);
    fs::write(folder.join("mode"), "").unwrap();
    let through = format!("server_url: 'https://127.0.0.1:{front}'");
    create(
        &home,
        &format!("max_instances: 1\nprovider: {{type: command, program: lab, timeout_seconds: 5, {through}}}"),
    );
    home.begin("work", "echo done", ON);
    let ended = home.ended("work");
    let node = fs::read_dir(&folder).unwrap().flatten().find(|entry| entry.path().join("log").exists()).unwrap();
    let log = fs::read_to_string(node.path().join("log")).unwrap();
    assert_eq!(ended["status"], "Completed", "{}\n{log}", why(&home, "work"));
    assert!(log.contains("TLS ends before the server"), "{log}");
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    leave_nothing(&folder);
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}

#[test]
fn a_node_whose_disk_is_full_says_so_and_goes_on_when_there_is_room() {
    let home = Home::new();
    let folder = provider(&home);
    let Some(_disk) = SmallDisk::at(&folder) else {
        return skip("a node with a full disk (no tmpfs may be mounted)");
    };
    fs::write(folder.join("mode"), "").unwrap();
    create(&home, "max_instances: 1\nidle_time_before_scale_down: 300\nprovider: {type: command, program: lab}");
    home.stream("head -c 64M /dev/zero > outputs/large || exit 9", ON).must(1, &["exited with code 9"]);
    let filler = folder.join("filler");
    let _until_full = fs::write(&filler, vec![1_u8; 32 << 20]);
    home.stream("echo in vain", ON).must(1, &["the disk of the node is full", "free some space"]);
    fs::remove_file(filler).unwrap();
    let late = home.stream("echo there is room", ON);
    assert_eq!((late.code, late.out.as_str()), (Some(0), "there is room\n"), "{}", late.err);
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    leave_nothing(&folder);
}

/// Whatever asks for the time of day is told another.
const CLOCK: &str = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <time.h>\n\
    int clock_gettime(clockid_t id, struct timespec *t) {\n\
    static int (*real)(clockid_t, struct timespec *);\n\
    if (!real) real = dlsym(RTLD_NEXT, \"clock_gettime\");\n\
    int done = real(id, t);\n    if (id == CLOCK_REALTIME) t->tv_sec += OFF;\n    return done;\n}\n";

#[test]
fn the_clock_of_a_node_may_be_wrong_by_an_hour_either_way() {
    let home = Home::new();
    let source = home.file("clock.c", CLOCK);
    for off in ["3600", "-3600"] {
        let library = home.path().join(format!("clock{off}.so"));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", &format!("-DOFF=({off})"), "-o"]).arg(&library).arg(&source).arg("-ldl");
        if !compiler.status().is_ok_and(|done| done.success()) {
            return skip("a node with a wrong clock (there is no C compiler)");
        }
        let folder = provider(&home);
        fs::write(folder.join("mode"), "").unwrap();
        let program = home.home().join("providers/lab");
        let wrong = fs::read_to_string(&program).unwrap();
        let wrong = wrong.replace("export ", &format!("export LD_PRELOAD={}\nexport ", library.display()));
        fs::write(&program, wrong).unwrap();
        create(&home, "max_instances: 1\nidle_time_before_scale_down: 300\nprovider: {type: command, program: lab}");
        let name = format!("off{}", off.replace('-', "_"));
        home.begin(&name, "date +%s; sleep 1", ON);
        let ended = home.ended(&name);
        assert_eq!(ended["status"], "Completed", "{}", why(&home, &name));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let told: u64 = home.log(&name).trim().parse().unwrap();
        assert!(told.abs_diff(now) > 3000, "its clock is right: {told} at {now}");
        // Nothing is on record from before it was wanted, or from the future.
        let time = |value: &Value| value.as_str().unwrap().to_owned();
        let (made, kept) = (time(&ended["creation_context"]["created_at"]), &ended["peregrine"]);
        let (began, over) = (time(&kept["started_at"]), time(&kept["ended_at"]));
        let heard = time(&ended["creation_context"]["last_modified_at"]);
        assert!(made <= began && began <= over && over <= heard, "{ended}");
        assert!(began < over, "its duration is not lost: {ended}");
        home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
        leave_nothing(&folder);
    }
}

/// This provider leaves what a node has started, as no machine that is gone would.
fn leave_nothing(folder: &std::path::Path) {
    for (pid, _) in processes_with(&folder.display().to_string()) {
        signal(pid, "KILL");
    }
}
