//! Managed clusters: nodes come with work and go without it, whoever brings them; what they run lives through the loss of agents
//! and of the server, and nothing of them is left behind.

mod corpus;
mod lost;
mod pass;
mod pods;
mod program;

pub(crate) use program::provider;

use crate::{
    faults::machine::SmallDisk,
    harness::{Home, binary, processes_with, signal},
    skip::skip,
    ssh::Machine,
};
use serde_json::Value;
use std::{fs, process::Command};

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
