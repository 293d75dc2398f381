//! The agent as the entry point of a pod: real keeper, agent and command processes against a stand-in for the server.
//!
//! The test binary plays all roles: a script that the keeper takes for the program starts it again as the agent.

pub(crate) mod house;
pub(crate) mod stand_in;

use domain::{
    Assignment, AttemptId, JobName, Outcome, Part, Place, Plan,
    assignment::{DistributionKind, PlannedDistribution},
    report::What,
};
use house::{House, wait_for};
use stand_in::StandIn;
use std::{collections::BTreeMap, fs};

pub(crate) fn attempt() -> AttemptId {
    AttemptId::of(7, 0)
}

fn assignment(command: &str) -> Assignment {
    let artifacts = Place::Object { url: "az://c/p".into(), datastore: "@server".into(), options: BTreeMap::new() };
    Assignment {
        attempt: attempt(),
        number: 0,
        workspace: "w".into(),
        job: JobName::parse("j").unwrap(),
        priority: 0,
        turn: 0,
        plan: Plan { command: command.into(), artifacts, ..Plan::default() },
        part: None,
        secrets: BTreeMap::new(),
        server_variables: BTreeMap::new(),
    }
}

fn gang(command: &str, kind: DistributionKind, per_node: u32) -> Assignment {
    let spread = PlannedDistribution { kind, nodes: 2, processes_per_node: per_node, parameter_servers: 0, ray: None };
    let one = assignment(command);
    Assignment { plan: Plan { distribution: Some(spread), ..one.plan.clone() }, ..one }
}

/// The words of what was reported of a part, without notes.
fn story(server: &StandIn, part: u32) -> Vec<&'static str> {
    let name = |what: What| match what {
        What::Note { .. } | What::Notice { .. } | What::Staged { .. } | What::Serving { .. } | What::Returned => None,
        What::Preparing => Some("preparing"),
        What::Started { .. } => Some("started"),
        What::Exited { .. } => Some("exited"),
        What::Over { .. } => Some("over"),
    };
    server.reports(part).into_iter().filter_map(name).collect()
}

fn outcome(server: &StandIn, part: u32) -> Outcome {
    let over = server.reports(part).into_iter().find_map(|what| match what {
        What::Over { outcome, .. } => Some(outcome),
        _ => None,
    });
    over.expect("the end was reported")
}

fn failure(server: &StandIn, part: u32) -> domain::job::Failure {
    match outcome(server, part) {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

/// Not a test: the agent of a keeper that one of the tests below has started.
#[test]
fn role() {
    house::play_role();
}

#[test]
fn a_pod_runs_its_attempt_ships_its_logs_and_leaves() {
    let server = StandIn::start(1, assignment("echo to out; echo to err >&2; echo $PEREGRINE_TOKEN_FILE."));
    let pod = House::new(&server, 0);
    assert_eq!(pod.exit_code(), 0);
    assert_eq!(story(&server, 0), ["preparing", "started", "exited", "over"]);
    assert_eq!(server.log("user_logs/std_log.txt"), "to out\nto err\n.\n", "the pod's own variables are hidden");
    let contained = |what: &What| matches!(what, What::Over { isolation, .. } if isolation == "container");
    assert!(server.reports(0).iter().any(contained), "{:?}", server.reports(0));
}

#[test]
fn the_command_runs_on_while_the_server_is_away_and_no_byte_of_its_log_is_lost() {
    let server =
        StandIn::start(1, assignment("echo one; touch $F/a; until [ -e $F/b ]; do sleep 0.05; done; echo two"));
    let pod = House::new(&server, 0);
    wait_for("the first line", || server.log("user_logs/std_log.txt") == "one\n");
    server.go_away();
    fs::write(pod.files().join("b"), "").unwrap();
    wait_for("the end of the command", || pod.journal().contains("\"exited\""));
    server.come_back();
    assert_eq!(pod.exit_code(), 0);
    assert_eq!(server.log("user_logs/std_log.txt"), "one\ntwo\n");
    assert_eq!(outcome(&server, 0), Outcome::Completed);
}

#[test]
fn what_is_said_twice_is_done_once() {
    let server = StandIn::start(1, assignment("echo ran >> $F/ran; seq 1 3"));
    server.change(|state| {
        state.offers_again = true;
        state.loses_answers = 2;
    });
    let pod = House::new(&server, 0);
    assert_eq!(pod.exit_code(), 0);
    assert_eq!(fs::read_to_string(pod.files().join("ran")).unwrap(), "ran\n");
    assert_eq!(server.log("user_logs/std_log.txt"), "1\n2\n3\n");
    assert!(story(&server, 0).iter().filter(|word| **word == "over").count() > 1, "the end was told again");
}

#[test]
fn a_server_that_has_less_of_a_log_than_it_said_gets_it_again() {
    let server = StandIn::start(1, assignment("seq 1 100; until [ -e $F/b ]; do sleep 0.05; done; seq 101 200"));
    let pod = House::new(&server, 0);
    let whole: String = (1..=200).map(|n| format!("{n}\n")).collect();
    wait_for("the first half", || server.log("user_logs/std_log.txt").ends_with("100\n"));
    server.change(|state| state.logs.get_mut("user_logs/std_log.txt").unwrap().truncate(5));
    fs::write(pod.files().join("b"), "").unwrap();
    assert_eq!(pod.exit_code(), 0);
    assert_eq!(server.log("user_logs/std_log.txt"), whole);
}

#[test]
fn an_agent_that_is_killed_comes_back_to_its_command() {
    let server = StandIn::start(1, assignment("echo one; until [ -e $F/b ]; do sleep 0.05; done; echo two"));
    let pod = House::new(&server, 0);
    wait_for("the first line", || server.log("user_logs/std_log.txt") == "one\n");
    let first = pod.kill_agent();
    wait_for("another agent", || pod.agent().is_some_and(|pid| pid != first));
    fs::write(pod.files().join("b"), "").unwrap();
    assert_eq!(pod.exit_code(), 0);
    assert_eq!(server.log("user_logs/std_log.txt"), "one\ntwo\n");
}

#[test]
fn a_pod_that_has_to_go_ends_its_command_politely_and_may_be_tried_again() {
    let server = StandIn::start(1, assignment("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"));
    let pod = House::new(&server, 0);
    wait_for("the command", || server.log("user_logs/std_log.txt") == "up\n");
    pod.signal("TERM");
    assert_eq!(pod.exit_code(), 1);
    let failure = failure(&server, 0);
    assert!(failure.retryable && failure.message.contains("asked to leave"), "{failure:?}");
    assert!(server.log("user_logs/std_log.txt").ends_with("bye\n"), "its last words are kept");
}

#[test]
fn a_pod_that_has_to_go_before_its_gang_is_there_says_so_and_starts_nothing() {
    let server = StandIn::start(2, gang("touch $F/ran", DistributionKind::PyTorch, 1));
    let pod = House::new(&server, 1);
    wait_for("the part to join", || server.joined().contains_key(&1));
    pod.signal("TERM");
    assert_eq!(pod.exit_code(), 1);
    assert!(failure(&server, 1).retryable);
    assert!(!pod.files().join("ran").exists());
}

#[test]
fn each_part_runs_its_ranks_and_none_before_all_are_there() {
    let command = "echo $MASTER_ADDR $WORLD_SIZE $NODE_RANK $RANK $LOCAL_RANK $AZUREML_CR_NODE_RANK $AZ_BATCH_NODE_LIST $AZ_BATCH_MASTER_NODE";
    let server = StandIn::start(2, gang(command, DistributionKind::PyTorch, 2));
    let second = House::new(&server, 1);
    wait_for("one part", || server.joined().len() == 1);
    wait_for("more polls of a part that waits", || server.polls() > 3);
    assert!(story(&server, 1).is_empty(), "nothing begins before the whole gang is there");
    let first = House::new(&server, 0);
    assert_eq!((first.exit_code(), second.exit_code()), (0, 0));
    for rank in 0..4 {
        let (node, local) = (rank / 2, rank % 2);
        let log = server.log(&format!("user_logs/std_log_process_{rank}.txt"));
        assert_eq!(log, format!("10.0.0.0 4 {node} {rank} {local} {node} 10.0.0.0;10.0.0.1 10.0.0.0:6000\n"));
    }
    assert_eq!((outcome(&server, 0), outcome(&server, 1)), (Outcome::Completed, Outcome::Completed));
}

#[test]
fn tensorflow_is_told_where_every_task_is() {
    let mut one = gang("echo $TF_CONFIG", DistributionKind::TensorFlow, 1);
    one.plan.distribution.as_mut().unwrap().parameter_servers = 1;
    let server = StandIn::start(2, one);
    let pods = [House::new(&server, 0), House::new(&server, 1)];
    assert_eq!(pods.map(|pod| pod.exit_code()), [0, 0]);
    let hosts = |key: &str| {
        let config: serde_json::Value =
            serde_json::from_str(&server.log("user_logs/std_log_process_2.txt")).expect("the third rank has run");
        let of = |at: &serde_json::Value| at.as_str().unwrap().rsplit_once(':').unwrap().0.to_owned();
        assert_eq!(config["task"]["type"], "ps");
        config["cluster"][key].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!((hosts("worker"), hosts("ps")), (vec!["10.0.0.0".into(), "10.0.0.1".into()], vec!["10.0.0.0".into()]));
}

#[test]
fn a_part_is_stopped_when_the_server_says_so_and_a_failed_one_names_its_rank() {
    let command = "if [ $RANK = 1 ]; then exit 9; fi; while :; do sleep 0.05; done";
    let server = StandIn::start(2, gang(command, DistributionKind::PyTorch, 1));
    let pods = [House::new(&server, 0), House::new(&server, 1)];
    wait_for("the failure", || story(&server, 1).contains(&"over"));
    assert!(failure(&server, 1).message.contains("of rank 1 exited with code 9"), "{:?}", failure(&server, 1));
    server.stop(0);
    assert_eq!(pods.map(|pod| pod.exit_code()), [1, 1]);
    assert!(matches!(outcome(&server, 0), Outcome::Canceled { .. }));
}

#[test]
fn an_attempt_stopped_before_it_was_handed_out_is_over() {
    let server = StandIn::start(2, gang("touch $F/ran", DistributionKind::PyTorch, 1));
    server.stop(0);
    let pod = House::new(&server, 0);
    assert_eq!(pod.exit_code(), 1);
    assert!(matches!(outcome(&server, 0), Outcome::Canceled { .. }));
}

#[test]
fn an_attempt_nobody_knows_is_ended_and_left() {
    let server = StandIn::start(1, assignment("echo $$ > $F/pid; echo up; while :; do sleep 0.05; done"));
    let pod = House::new(&server, 0);
    wait_for("the command", || server.log("user_logs/std_log.txt") == "up\n");
    let pid = fs::read_to_string(pod.files().join("pid")).unwrap();
    server.change(|state| state.unknown = true);
    assert_eq!(pod.exit_code(), 1);
    assert!(!fs::exists(format!("/proc/{}", pid.trim())).unwrap(), "the command is gone too");
}

#[test]
fn a_server_that_stays_away_too_long_is_not_waited_for() {
    let server = StandIn::start(1, assignment("echo $$ > $F/pid; echo up; while :; do sleep 0.05; done"));
    let pod = House::with(&server, 0, &[("TEST_AWAY_SECONDS", "1")]);
    wait_for("the command", || server.log("user_logs/std_log.txt") == "up\n");
    server.go_away();
    assert_eq!(pod.exit_code(), 1);
    let pid = fs::read_to_string(pod.files().join("pid")).unwrap();
    assert!(!fs::exists(format!("/proc/{}", pid.trim())).unwrap(), "the command is gone too");
}

#[test]
fn a_part_that_has_ended_does_not_outstay_the_lease_of_its_node() {
    let server = StandIn::start(1, assignment("echo up; while ! [ -e $F/go ]; do sleep 0.05; done; echo x > $F/done"));
    let pod = House::with(&server, 0, &[("TEST_LEASE_SECONDS", "1")]);
    wait_for("the command", || server.log("user_logs/std_log.txt") == "up\n");
    server.go_away();
    // The command runs on for as long as it takes.
    fs::write(pod.files().join("go"), "").unwrap();
    wait_for("its end", || pod.files().join("done").exists());
    assert_eq!(pod.exit_code(), 0, "it goes as it ended, though nobody has heard of it");
}

#[test]
fn what_shares_a_machine_sees_the_gpus_that_are_its_own_and_what_has_a_container_sees_what_that_has() {
    let command = "echo devices ${CUDA_VISIBLE_DEVICES-all}";
    for (variables, expect) in [
        (vec![], "devices all\n"),
        (vec![("TEST_OUTSIDE", "1"), ("TEST_DEVICES", "1,3")], "devices 1,3\n"),
        (vec![("TEST_OUTSIDE", "1"), ("TEST_DEVICES", "")], "devices\n"),
    ] {
        let server = StandIn::start(1, assignment(command));
        let pod = House::with(&server, 0, &variables);
        assert_eq!(pod.exit_code(), 0);
        assert_eq!(server.log("user_logs/std_log.txt"), expect);
    }
}

#[test]
fn a_command_over_the_memory_of_its_container_is_told_so() {
    let server = StandIn::start(1, assignment("dd if=/dev/zero of=/dev/null bs=600M count=1"));
    let limits = domain::Resources { cpu_milli: 0, memory_bytes: 256 << 20, gpus: 0 };
    let group = match agent::cgroup::Cgroup::create(&format!("pod-{}", std::process::id()), &limits) {
        Ok(group) => group,
        Err(error) => return house::skipped(&format!("a container of 256 MiB ({error})")),
    };
    let pod = House::within(&server, &group.join_files());
    assert_eq!(pod.exit_code(), 1);
    let failure = failure(&server, 0);
    assert_eq!(failure.code, "UserError.OutOfMemory", "{failure:?}");
    assert!(failure.message.contains("used more memory than its limit of 256 MiB"), "{failure:?}");
    group.kill_all();
    drop(group.remove());
}

#[test]
fn a_pod_needs_neither_root_nor_an_image_that_can_be_written_to() {
    let server = StandIn::start(1, assignment("id -u; echo x > $HOME/x && echo x > $TMPDIR/x && echo written"));
    let Some(pod) = House::read_only(&server) else { return };
    assert_eq!(pod.exit_code(), 0, "{:?}", server.log("user_logs/std_log.txt"));
    assert_eq!(server.log("user_logs/std_log.txt"), "65534\nwritten\n");
}

#[test]
fn system_logs_of_parts_do_not_meet() {
    let mut one = gang("sleep 600 & echo up", DistributionKind::PyTorch, 1);
    one.part = Some(Part::default());
    let server = StandIn::start(2, one);
    let pods = [House::new(&server, 0), House::new(&server, 1)];
    assert_eq!(pods.map(|pod| pod.exit_code()), [0, 0]);
    for name in ["system_logs/lifecycle.log", "system_logs/lifecycle-part1.log"] {
        assert!(server.log(name).contains("outlived"), "{name}");
    }
}
