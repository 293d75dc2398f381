//! Machines that come twice, are taken back, die with all they run, or are more or fewer than before, with work on them.

use super::*;

/// Says `first` and waits to be told to end; the next attempt finds what it has written and is done.
fn may_be_taken(home: &Home, name: &str) {
    let work = "mkdir -p ${{outputs.kept}}\nif [ -e ${{outputs.kept}}/half ]; then echo again; exit 0; fi\n\
                trap 'echo told; touch ${{outputs.kept}}/half; exit 143' TERM\necho first\nwhile :; do sleep 0.1; done";
    let kept = format!(
        "outputs: {{kept: {{type: uri_folder, mode: rw_mount, path: azureml://datastores/workspaceblobstore/paths/{name}}}}}"
    );
    home.begin(name, work, &format!("{ON}\n{kept}"));
    home.until("its first line", || home.log(name).contains("first"));
}

/// Every process that belongs to nodes of this machine, by what they were started with.
fn everything(home: &Home) -> Vec<i32> {
    let mark = home.home().join("n").display().to_string();
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let of_nodes = |pid: &i32| {
        let told = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&told).contains(&mark)
    };
    pids.filter(of_nodes).collect()
}

#[test]
fn a_program_that_makes_two_machines_under_one_name_has_made_one_node() {
    let home = Home::new();
    let folder = provider(&home);
    fs::write(folder.join("mode"), "twice\n").unwrap();
    create(&home, "max_instances: 2\nidle_time_before_scale_down: 300\nprovider: {type: command, program: lab}");
    let ran = home.path().join("ran");
    home.begin("work", &format!("echo ran >> {}", ran.display()), ON);
    assert_eq!(home.ended("work")["status"], "Completed", "{}", why(&home, "work"));
    assert_eq!(fs::read_to_string(&ran).unwrap(), "ran\n");
    home.until("the second machine to be turned away", || agents(&home).len() == 1);
    assert_eq!(states(&home), ["idle"]);
    let hello = home.stream("echo hello", ON);
    assert_eq!((hello.code, hello.out.as_str()), (Some(0), "hello\n"), "{}", hello.err);
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    home.until("a clean machine", || agents(&home).is_empty());
}

#[test]
fn a_machine_that_is_taken_back_gives_notice_by_its_program_and_by_a_signal() {
    let home = Home::new();
    let folder = provider(&home);
    fs::write(folder.join("mode"), "").unwrap();
    let more = "max_instances: 2\nidle_time_before_scale_down: 300\ntier: low_priority";
    create(&home, &format!("{more}\nprovider: {{type: command, program: lab}}"));
    may_be_taken(&home, "by-program");
    assert_eq!(fs::read_to_string(folder.join("tier")).unwrap(), "low_priority\n");
    let first = nodes(&home)[0].0.clone();
    fs::write(folder.join(&first).join("back"), "the price has risen").unwrap();
    assert_eq!(home.ended("by-program")["status"], "Completed", "{}", why(&home, "by-program"));
    home.until("the first node to go", || nodes(&home).iter().all(|(name, _)| *name != first));
    assert!(!folder.join(&first).exists(), "its program was asked to take it away");

    may_be_taken(&home, "by-signal");
    let second = nodes(&home)[0].0.clone();
    assert!(signal(agents(&home)[0], "TERM"));
    assert_eq!(home.ended("by-signal")["status"], "Completed", "{}", why(&home, "by-signal"));
    home.until("the second node to go", || nodes(&home).iter().all(|(name, _)| *name != second));
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    home.until("a clean machine", || agents(&home).is_empty());
}

#[test]
fn a_node_that_dies_with_all_it_ran_says_so_and_works_on() {
    let home = Home::new();
    create(&home, "max_instances: 1\nidle_time_before_scale_down: 300");
    let runs = home.path().join("runs");
    let work = format!("echo run >> {}; echo first; sleep 600", runs.display());
    home.begin("work", &work, ON);
    home.until("its first line", || home.log("work").contains("first"));
    let all = everything(&home);
    assert!(all.len() >= 3, "a node, its keeper, its agent and the command: {all:?}");
    for pid in all {
        signal(pid, "KILL");
    }
    // Nobody knows how the command ended, so it is not begun once more behind its owner's back.
    assert_eq!(home.ended("work")["status"], "Failed", "{}", why(&home, "work"));
    assert!(why(&home, "work").contains("how the command ended is not known"), "{}", why(&home, "work"));
    assert_eq!(fs::read_to_string(&runs).unwrap(), "run\n");
    let hello = home.stream("echo hello", ON);
    assert_eq!((hello.code, hello.out.as_str()), (Some(0), "hello\n"), "{}", hello.err);
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    home.until("a clean machine", || agents(&home).is_empty() && everything(&home).is_empty());
}

#[test]
fn a_cluster_is_resized_under_load_and_no_busy_node_is_sent_away() {
    let home = Home::new();
    create(&home, "max_instances: 1\nidle_time_before_scale_down: 300");
    let go = home.path().join("go");
    let waits = format!("echo up; until [ -e {} ]; do sleep 0.1; done", go.display());
    home.begin("first", &waits, ON);
    home.until("its first line", || home.log("first").contains("up"));
    home.begin("second", &waits, ON);
    home.until("the reason to wait", || why(&home, "second").contains("1 of at most 1 at work"));
    home.ok(&["compute", "update", "-n", "crew", "--max-instances", "2"]);
    home.until("the second to run", || home.log("second").contains("up"));
    // Smaller than what is at work: both go on, and then one node goes although its idle time is not over.
    home.ok(&["compute", "update", "-n", "crew", "--max-instances", "1"]);
    assert_eq!(states(&home), ["running"; 2]);
    fs::write(&go, "").unwrap();
    for job in ["first", "second"] {
        assert_eq!(home.ended(job)["status"], "Completed", "{}", why(&home, job));
        assert_eq!(home.log(job), "up\n", "it began once: {}", why(&home, job));
    }
    home.until("one node to go", || states(&home) == ["idle"]);
    home.ok(&["compute", "delete", "-n", "crew", "--yes"]);
    home.until("a clean machine", || agents(&home).is_empty());
}
