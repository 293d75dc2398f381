//! A machine that is full: who runs, who waits, in which order.

use crate::harness::Home;
use std::fs;

#[test]
fn priority_decides_and_then_who_came_first() {
    let home = Home::new();
    home.configure("[local]\ncpus = 1\n");
    let (gate, order) = (home.path().join("gate"), home.path().join("order"));
    home.begin("holder", &format!("until [ -e {} ]; do sleep 0.05; done", gate.display()), "");
    home.until_status("holder", "Running");
    for (name, priority) in
        [("low-1", "low"), ("mid-1", "medium"), ("high-1", "high"), ("low-2", "low"), ("high-2", "high")]
    {
        home.begin(
            name,
            &format!("echo {name} >> {}", order.display()),
            &format!("queue_settings: {{priority: {priority}}}"),
        );
        assert_eq!(home.job(name)["status"], "Queued");
    }
    fs::write(&gate, "").unwrap();
    ["low-1", "mid-1", "high-1", "low-2", "high-2"]
        .iter()
        .for_each(|name| assert_eq!(home.ended(name)["status"], "Completed"));
    assert_eq!(fs::read_to_string(order).unwrap(), "high-1\nhigh-2\nmid-1\nlow-1\nlow-2\n");
}

#[test]
fn as_many_jobs_run_at_once_as_there_are_cores() {
    let home = Home::new();
    home.configure("[local]\ncpus = 2\n");
    let here = home.path().join("here");
    fs::create_dir(&here).unwrap();
    // Each job says it is here, looks who else is, and leaves only once there were two.
    let command = format!(
        "cd {}; touch $AZUREML_RUN_ID; echo 1 >> ../seen; until [ $(wc -l < ../seen) -ge 2 ]; do sleep 0.05; done\nls | wc -l >> ../together; sleep 0.3; ls | wc -l >> ../together; rm $AZUREML_RUN_ID",
        here.display()
    );
    let names = ["one", "two", "three", "four"];
    names.iter().for_each(|name| home.begin(name, &command, ""));
    names.iter().for_each(|name| assert_eq!(home.ended(name)["status"], "Completed"));
    let together = fs::read_to_string(home.path().join("together")).unwrap();
    assert_eq!(together.lines().map(|n| n.trim().parse::<u32>().unwrap()).max(), Some(2), "{together}");
}

#[test]
fn what_never_fits_is_refused_at_once() {
    let home = Home::new();
    home.configure("[local]\ncpus = 2\n[[local.instance_types]]\nname = \"vast\"\ncpu = 64\nmemory = \"1Gi\"\n");
    let said = home.stream("echo hi", "resources: {instance_type: vast}");
    said.must(2, &["`resources`", "needs 64 CPUs", "`local` has 2 CPUs", "ask for less"]);
    home.is_well();
}

#[test]
fn an_azure_size_becomes_a_request_that_fits() {
    let home = Home::new();
    home.configure("[local]\ncpus = 2\n");
    let said = home.stream("echo fits", "resources: {instance_type: Standard_DS3_v2}");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "fits\n"), "{}", said.err);
}
