//! Sharing this machine: quotas hold, the more important stops the less, and a pool is a target like any other.

use crate::harness::Home;

const SHAPES: &str = "[[local.instance_types]]\nname = \"whole\"\ncpu = \"1\"\nmemory = \"64Mi\"\n";
const WHOLE: &str = "resources: {instance_type: whole}";

fn why(home: &Home, job: &str) -> String {
    home.ok(&["job", "why", "-n", job])
}

#[test]
fn over_quota_a_job_waits_and_says_for_what_and_a_pool_finds_it_a_place() {
    let home = Home::new();
    home.ok(&["workspace", "quota", "--each-user", "--jobs", "1"]);
    let go = home.path().join("go");
    home.begin("first", &format!("until [ -e {} ]; do sleep 0.1; done", go.display()), "limits: {timeout: 3600}");
    home.until_status("first", "Running");
    home.file("pool.yml", "name: anywhere\ntype: pool\ntargets: [local]\nmax_data: 10GiB\n");
    home.ok(&["compute", "create", "-f", "pool.yml"]);
    home.begin("second", "echo second", "compute: azureml:anywhere");
    home.until("the quota to be named", || why(&home, "second").contains("1 of 1 job in use"));
    let listed = home.json(&["workspace", "quota"]);
    assert_eq!((&listed[0]["user"], &listed[0]["limits"]["jobs"]), (&"*".into(), &1.into()), "{listed}");
    let used = home.json(&["compute", "list-usage", "--by", "user"]);
    assert_eq!(used[0]["jobs"], 1, "{used}");
    home.file("go", "");
    assert_eq!(home.ended("second")["status"], "Completed", "{}", why(&home, "second"));
    let story = why(&home, "second");
    assert!(story.contains("goes to `local`, the first of pool `anywhere`"), "{story}");
    home.ok(&["workspace", "quota", "--each-user", "--clear"]);

    let me = used[0]["name"].as_str().unwrap();
    home.run(&["workspace", "team", "--team", "vision", "--people", "nobody"]).must(2, &["there are: ", me]);
    home.ok(&["workspace", "team", "--team", "vision", "--people", me]);
    home.ok(&["workspace", "quota", "--team", "vision", "--jobs", "7"]);
    assert!(home.ok(&["workspace", "quota", "-o", "table"]).contains("team vision"));
    let team = home.json(&["compute", "list-usage", "--by", "team"]);
    assert_eq!((&team[0]["name"], team[0]["core_hours"].is_number()), (&"vision".into(), true), "{team}");
    home.run(&["workspace", "team", "--team", "vision", "--delete"]).must(2, &["has a quota; take it away first"]);
    home.ok(&["workspace", "quota", "--team", "vision", "--clear"]);
    home.ok(&["workspace", "team", "--team", "vision", "--delete"]);

    home.ok(&["workspace", "quota", "--cpus", "10m"]);
    home.job_file("large.yml", "true", "");
    home.run(&["job", "create", "-f", "large.yml"]).must(2, &["the quota of workspace `default` is 0.01 CPUs"]);
    home.file("bad.yml", "name: loop\ntype: pool\ntargets: [anywhere]\n");
    home.run(&["compute", "create", "-f", "bad.yml"]).must(2, &["is a pool itself"]);
}

#[test]
fn steps_and_trials_choose_their_place_in_a_pool_when_they_are_due() {
    let home = Home::new();
    home.file("wide.yml", "name: wide\ntype: pool\ntargets: [crew, local]\n");
    home.file("crew.yml", "name: crew\ntype: amlcompute\nsize: Standard_D1_v2\nmax_instances: 1\n");
    home.ok(&["compute", "create", "-f", "crew.yml"]);
    home.ok(&["compute", "create", "-f", "wide.yml"]);
    let runs = "environment: {image: 'python:3.12-slim'}";
    home.file(
        "parts.yml",
        &format!(
            "type: pipeline\nsettings: {{default_compute: 'azureml:wide', force_rerun: true}}\njobs:\n  make:\n    type: command\n    \
             command: mkdir -p ${{{{outputs.out}}}}; echo 7 > ${{{{outputs.out}}}}/n\n    {runs}\n    outputs: {{out: {{type: uri_folder}}}}\n  \
             search:\n    type: sweep\n    trial:\n      type: command\n      inputs: {{made: {{type: uri_folder}}}}\n      command: grep 7 ${{{{inputs.made}}}}/n; until [ -e {} ]; do sleep 0.1; done; echo ${{{{search_space.x}}}}\n      {runs}\n    \
             inputs:\n      made: ${{{{parent.jobs.make.outputs.out}}}}\n    sampling_algorithm: random\n    \
             search_space: {{x: {{type: uniform, min_value: 0, max_value: 1}}}}\n    objective: {{goal: minimize, primary_metric: loss}}\n    \
             limits: {{max_total_trials: 2, max_concurrent_trials: 2}}\n",
            home.path().join("both").display()
        ),
    );
    home.ok(&["job", "create", "-f", "parts.yml", "-n", "parts", "-o", "none"]);
    // The cluster has one node, so that of two trials one at least goes on to the next target.
    let story = |n: u32| home.run(&["job", "why", "-n", &format!("parts_search_{n}")]).out;
    let chosen =
        |n: u32| story(n).contains("goes to `crew`, the first of pool `wide`") || story(n).contains("`crew`: is full");
    home.until("both trials", || chosen(0) && chosen(1));
    assert!(story(0).contains("`crew`: is full") || story(1).contains("`crew`: is full"));
    home.file("both", "");
    assert_eq!(home.ended("parts")["status"], "Completed", "{}", why(&home, "parts"));
    assert!(
        why(&home, "parts_make").contains("goes to `crew`, the first of pool `wide`"),
        "{}",
        why(&home, "parts_make")
    );
}

#[test]
fn a_job_of_lower_priority_makes_way_and_begins_again() {
    let home = Home::new();
    home.configure(&format!("[local]\ncpus = \"1\"\ngrace_seconds = 5\npreemption = \"lower-priority\"\n{SHAPES}"));
    let begun = home.path().join("begun");
    let low = format!(
        "if [ -e {0} ]; then echo again; exit 0; fi\ntrap 'echo leaving; exit 1' TERM\ntouch {0}\nsleep 600 & wait",
        begun.display()
    );
    home.begin("low", &low, &format!("{WHOLE}\nqueue_settings: {{priority: low}}"));
    home.until("it to begin", || begun.exists());
    home.begin("high", "echo high", &format!("{WHOLE}\nqueue_settings: {{priority: high}}"));
    assert_eq!(home.ended("high")["status"], "Completed", "{}", why(&home, "high"));
    assert_eq!(home.ended("low")["status"], "Completed", "{}", why(&home, "low"));
    let story = why(&home, "low");
    assert!(story.contains("makes way for `high`, which has a higher priority"), "{story}");
}
