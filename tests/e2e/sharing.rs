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

    home.ok(&["workspace", "quota", "--cpus", "10m"]);
    home.job_file("large.yml", "true", "");
    home.run(&["job", "create", "-f", "large.yml"]).must(2, &["the quota of workspace `default` is 0.01 CPUs"]);
    home.file("bad.yml", "name: loop\ntype: pool\ntargets: [anywhere]\n");
    home.run(&["compute", "create", "-f", "bad.yml"]).must(2, &["is a pool itself"]);
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
