//! What a command finds around it: variables, pre-step, ranks, limits.

use crate::harness::Home;

#[test]
fn variables_of_the_job_and_of_the_platform_are_set() {
    let home = Home::new();
    let command = "echo $COLOUR/$AZUREML_RUN_ID/$AZUREML_ARM_WORKSPACE_NAME/$MLFLOW_RUN_ID$AZUREML_CR_NODE_RANK\npwd -P\necho $SECOND";
    home.begin("env", command, "environment_variables: {COLOUR: dark blue, SECOND: '2'}\nexperiment_name: colours");
    assert_eq!(home.ended("env")["experiment_name"], "colours");
    let log = home.log("env");
    assert!(log.starts_with("dark blue/env/default/"), "{log}");
    assert!(log.ends_with("/work\n2\n"), "{log}");
}

#[test]
fn the_pre_step_runs_first_under_either_spelling() {
    let home = Home::new();
    home.configure("[local]\ncpus = 4\n[[local.instance_types]]\nname = \"three\"\ncpu = 3\nmemory = \"64Mi\"\n");
    for spelling in ["AMLARC_PRESTEP", "AMLARC_RESTEP"] {
        let more = format!(
            "resources: {{instance_type: three}}\nenvironment_variables:\n  {spelling}: 'export OMP_NUM_THREADS=`get_cores`'"
        );
        let said = home.stream("echo threads $OMP_NUM_THREADS", &more);
        assert_eq!((said.code, said.out.as_str()), (Some(0), "threads 3\n"), "{}", said.err);
    }
}

#[test]
fn each_rank_has_its_place_and_its_log() {
    let home = Home::new();
    let more = "distribution: {type: pytorch, process_count_per_instance: 2}";
    home.begin("ranks", "echo rank $RANK of $WORLD_SIZE at ${MASTER_ADDR:?}:${MASTER_PORT:?} local $LOCAL_RANK", more);
    assert_eq!(home.ended("ranks")["status"], "Completed");
    for rank in 0..2 {
        let log = home.artifacts("ranks").join(format!("user_logs/std_log_process_{rank}.txt"));
        let log = std::fs::read_to_string(log).unwrap();
        assert!(
            log.starts_with(&format!("rank {rank} of 2 at ")) && log.ends_with(&format!("local {rank}\n")),
            "{log}"
        );
    }
    let streamed = home.ok(&["job", "stream", "-n", "ranks", "--all"]);
    assert!(streamed.contains("rank 0 of 2") && streamed.contains("rank 1 of 2"), "{streamed}");
}

#[test]
fn one_failed_rank_fails_the_job_and_ends_the_others() {
    let home = Home::new();
    let said = home
        .stream("[ $RANK = 1 ] && exit 5; sleep 600", "distribution: {type: pytorch, process_count_per_instance: 2}");
    said.must(1, &["exited with code 5"]);
    home.is_well();
}

#[test]
fn memory_beyond_the_limit_is_told_apart() {
    let home = Home::new();
    let doctor = home.json(&["doctor"]);
    let cgroups = doctor.as_array().and_then(|all| all.iter().find(|check| check["check"] == "cgroups").cloned());
    if !cgroups.is_some_and(|check| check.to_string().contains("writable") && check.to_string().contains("\"ok\"")) {
        return eprintln!("SKIPPED: memory_beyond_the_limit_is_told_apart: no writable cgroups: {doctor}");
    }
    home.configure("[[local.instance_types]]\nname = \"small\"\ncpu = 1\nmemory = \"32Mi\"\nlimits = true\n");
    let said = home.stream("x=$(head -c 200M /dev/zero | tr '\\0' x); echo ${#x}", "resources: {instance_type: small}");
    said.must(1, &["memory", "32 MiB"]);
    let failure = home.json(&["job", "list"])[0]["peregrine"]["failure"].clone();
    assert_eq!(failure["code"], "UserError.OutOfMemory", "{failure}");
    home.is_well();
}
