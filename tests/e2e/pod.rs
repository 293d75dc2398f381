//! Jobs on a cluster without Kubernetes: the tests are the operator, and its pods are processes of this machine, each
//! with a home of its own and the variables that an operator sets.

pub(crate) mod cluster;

use crate::harness::Home;
use cluster::Cluster;
use std::fs;

#[test]
fn a_pod_has_its_code_and_data_and_brings_everything_home() {
    let home = Home::new();
    let cluster = Cluster::attach(&home);
    home.file("src/train.sh", "echo trains on $(cat $1) > outputs/model.txt; cp outputs/model.txt $2/copy.txt\n");
    home.file("data/numbers.txt", "1 2 3");
    let more = "code: src\ncompute: azureml:lab\ninputs:\n  data: {type: uri_file, path: data/numbers.txt}\noutputs:\n  out: {type: uri_folder}";
    let command =
        "mkdir -p outputs; echo begins; sh train.sh ${{inputs.data}} ${{outputs.out}}\necho $AZUREML_RUN_ID ends";
    home.begin("afar", command, more);
    let job = home.ended("afar");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", cluster.said());
    assert_eq!(home.log("afar"), "begins\nafar ends\n");
    assert_eq!(home.ok(&["job", "stream", "-n", "afar"]), "begins\nafar ends\n");
    let captured = fs::read_to_string(home.artifacts("afar").join("outputs/model.txt")).unwrap();
    assert_eq!(captured, "trains on 1 2 3\n");
    home.ok(&["job", "download", "-n", "afar", "--output-name", "out", "--download-path", "got"]);
    let found = cluster::find(&home.path().join("got"), "copy.txt").expect("the named output is there");
    assert_eq!(fs::read_to_string(found).unwrap(), "trains on 1 2 3\n");
    assert_eq!(cluster.exit_codes(1), [0]);
}

#[test]
fn each_part_of_a_gang_knows_who_it_is_and_where_the_others_are() {
    let home = Home::new();
    let cluster = Cluster::attach(&home);
    let command = "echo $MASTER_ADDR $WORLD_SIZE $NODE_RANK $RANK $LOCAL_RANK $AZ_BATCH_HOST_LIST";
    let more = "compute: azureml:lab\nresources: {instance_count: 2}\ndistribution: {type: pytorch, process_count_per_instance: 2}";
    home.begin("gang", command, more);
    let job = home.ended("gang");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", cluster.said());
    for rank in 0..4 {
        let log = home.artifacts("gang").join(format!("user_logs/std_log_process_{rank}.txt"));
        let expected = format!("127.0.0.1 4 {} {rank} {} 127.0.0.1,127.0.0.2\n", rank / 2, rank % 2);
        assert_eq!(fs::read_to_string(log).unwrap(), expected);
    }
    assert_eq!(cluster.exit_codes(2), [0, 0]);
}

#[test]
fn one_failed_part_ends_the_gang_and_is_named() {
    let home = Home::new();
    let cluster = Cluster::attach(&home);
    let more = "compute: azureml:lab\nresources: {instance_count: 2}\ndistribution: {type: pytorch}";
    home.begin("broken", "if [ $RANK = 1 ]; then echo no; exit 9; fi\nwhile :; do sleep 0.1; done", more);
    let job = home.ended("broken");
    assert_eq!(job["status"], "Failed", "{job:#}\n{}", cluster.said());
    let why = home.ok(&["job", "why", "-n", "broken"]);
    assert!(why.contains("rank 1 exited with code 9"), "{why}");
    assert_eq!(cluster.exit_codes(2), [1, 1]);
}

#[test]
fn a_server_that_is_away_while_the_command_ends_gets_everything_later() {
    let home = Home::new();
    let cluster = Cluster::attach(&home);
    let go = home.path().join("go");
    let command = format!(
        "mkdir -p outputs; echo one; until [ -e {} ]; do sleep 0.1; done; echo two; echo kept > outputs/x; touch {}",
        go.display(),
        home.path().join("ended").display()
    );
    home.begin("patient", &command, "compute: azureml:lab");
    home.until("the first line", || home.log("patient") == "one\n");
    home.ok(&["server", "stop"]);
    fs::write(&go, "").unwrap();
    home.until("the end of the command", || home.path().join("ended").exists());
    home.ok(&["server", "start"]);
    let job = home.ended("patient");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", cluster.said());
    assert_eq!(home.log("patient"), "one\ntwo\n");
    assert_eq!(fs::read_to_string(home.artifacts("patient").join("outputs/x")).unwrap(), "kept\n");
    assert_eq!(cluster.exit_codes(1), [0]);
}

#[test]
fn a_canceled_job_ends_in_its_pod_within_seconds() {
    let home = Home::new();
    let cluster = Cluster::attach(&home);
    home.begin("endless", "echo up; while :; do sleep 0.1; done", "compute: azureml:lab");
    home.until("the command", || home.log("endless") == "up\n");
    home.ok(&["job", "cancel", "-n", "endless"]);
    assert_eq!(home.ended("endless")["status"], "Canceled", "{}", cluster.said());
    assert_eq!(cluster.exit_codes(1), [1]);
}

#[test]
fn a_pod_that_is_evicted_is_tried_again_and_keeps_its_log() {
    let home = Home::new();
    let cluster = Cluster::attach(&home);
    let mark = home.path().join("second");
    let command = format!(
        "if [ -e {0} ]; then echo again; exit 0; fi; touch {0}; echo first; while :; do sleep 0.1; done",
        mark.display()
    );
    home.begin("moved", &command, "compute: azureml:lab");
    home.until("the first attempt", || home.log("moved") == "first\n");
    cluster.evict();
    let job = home.ended("moved");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", cluster.said());
    let second = fs::read_to_string(home.artifacts("moved").join("retry-001/user_logs/std_log.txt")).unwrap();
    assert!(home.log("moved").starts_with("first\n") && second == "again\n", "{second}");
    assert_eq!(cluster.exit_codes(2), [1, 0]);
}
