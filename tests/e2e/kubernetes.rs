//! Jobs on a real node of a real cluster, through the extension that `peregrine extension install` makes: everything a user
//! does, with the built binary and our own image.

#![expect(clippy::print_stdout, reason = "how long each step took is worth reading")]

mod away;
mod blue_green;
mod client;
mod serving;
mod strict;

use crate::{
    cluster::Cluster,
    extension::{alone, serve},
    harness::Home,
    services,
};
use serde_json::Value;
use std::{
    fs,
    time::{Duration, Instant},
};

/// A pod has to be made, placed and started before a job begins.
const PATIENCE: Duration = Duration::from_secs(180);

struct Lab<'a> {
    home: &'a Home,
    cluster: &'a Cluster,
    /// Where the server is.
    url: &'a str,
    /// The namespace of jobs.
    namespace: &'a str,
}

impl Lab<'_> {
    /// Submits a job for the cluster that runs in the cluster's Python image.
    fn begin(&self, name: &str, command: &str, more: &str) {
        let image = self.cluster.fact("PYTHON_IMAGE");
        let block = command.replace('\n', "\n  ");
        let text = format!("command: |\n  {block}\nenvironment: {{image: '{image}'}}\ncompute: azureml:lab\n{more}\n");
        self.home.file(&format!("{name}.yml"), &text);
        self.home.ok(&["job", "create", "-f", &format!("{name}.yml"), "-n", name, "-o", "none"]);
    }

    fn until(&self, what: &str, mut so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !so() {
            let pods = || self.cluster.ok(&["get", "pods,vcjob,events", "-o", "wide"]);
            assert!(Instant::now() < deadline, "waited in vain for {what}\n{}", pods());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn ended(&self, name: &str) -> Value {
        let over = |job: &Value| matches!(job["status"].as_str(), Some("Completed" | "Failed" | "Canceled"));
        self.until(&format!("the end of `{name}`"), || over(&self.home.job(name)));
        self.home.job(name)
    }

    fn why(&self, name: &str) -> String {
        self.home.ok(&["job", "why", "-n", name])
    }
}

#[test]
fn jobs_live_on_a_real_node_from_install_to_uninstall() {
    let Some(cluster) = Cluster::lease() else { return };
    let _alone = alone();
    let home = Home::new();
    let url = serve(&home, &cluster);
    let kubeconfig = cluster.fact("KUBECONFIG");
    let began = Instant::now();
    let install = ["extension", "install", "--cluster-name", "real", "--kubeconfig", kubeconfig, "--server", &url];
    let namespace = cluster.field("serviceaccount/default", ".metadata.namespace");
    // Everything below is done by an extension that may make pods there and nowhere else.
    let only = format!("jobNamespaces={namespace}");
    let image = ["--image", cluster.fact("PEREGRINE_IMAGE"), "--config", "enableTraining=True", &only];
    home.ok(&[&install[..], &image, &serving::SETTINGS].concat());
    let installed = began.elapsed();
    home.ok(&["compute", "attach", "--type", "kubernetes", "-n", "lab", "--namespace", &namespace]);
    println!(
        "installed in {:.1} s, attached in {:.1} s",
        installed.as_secs_f64(),
        (began.elapsed() - installed).as_secs_f64()
    );
    let outside = home.run(&["compute", "attach", "--type", "kubernetes", "-n", "outside", "--namespace", "default"]);
    outside.must(2, &["permission", "may not create pods", "`default` among `jobNamespaces`"]);
    home.ok(&["compute", "detach", "-n", "outside", "--yes"]);
    let lab = Lab { home: &home, cluster: &cluster, url: &url, namespace: &namespace };
    let steps: &[Step] = &[
        ("hello", hello),
        ("no image named", an_environment_without_an_image_is_made_in_the_target_s),
        ("training", trains_with_inputs_and_outputs),
        ("two pods", two_pods_know_each_other),
        ("out of memory", over_its_memory),
        ("cancel", canceled_within_seconds),
        ("a service", a_service_is_reached_through_the_agent),
        ("another attempt", tried_again_after_its_pod_is_killed),
        ("endpoints", serving::a_model_is_replaced_and_its_pods_killed_without_a_lost_request),
        ("the corpus's endpoint", blue_green::the_corpus_by_the_command_line),
        ("no image", an_image_that_is_nowhere_is_said),
        ("the SDK", client::the_sdk_attaches_and_runs),
        ("new settings", strict::a_job_outlives_new_settings_and_a_second_attach),
        ("a volume", strict::a_gang_writes_to_a_volume_and_a_later_job_reads_it),
        ("a volume behind an endpoint", serving::a_replica_reads_the_volume),
        ("a pipeline", strict::a_pipeline_orders_what_a_parallel_step_made),
        ("kubelet stopped", away::a_job_ends_although_its_kubelet_has_stopped),
        ("cut off", away::a_job_that_was_cut_off_runs_once_and_loses_nothing),
        ("behind a proxy", away::behind_a_proxy_everything_goes_through_it),
    ];
    let more: &[Step] = &[("the corpus's endpoint by the SDK", blue_green::the_corpus_by_the_sdk)];
    let long = std::env::var_os("PEREGRINE_CUT_SECONDS").is_some();
    for (name, step) in more.iter().filter(|_| long).chain(steps) {
        let began = Instant::now();
        step(&lab);
        println!("{name}: {:.1} s", began.elapsed().as_secs_f64());
    }
    home.ok(&["compute", "detach", "-n", "lab", "--yes"]);
    let of_jobs = ["get", "pods,secrets,vcjob", "-l", "peregrine.dev/attempt", "-o", "name"];
    lab.until("nothing of a job to be left", || cluster.ok(&of_jobs).is_empty());
    home.ok(&["extension", "uninstall", "--kubeconfig", kubeconfig, "--yes"]);
}

/// What a data scientist does, and what it is called.
type Step = (&'static str, fn(&Lab<'_>));

fn hello(lab: &Lab) {
    lab.begin("hello", "echo hello from $(cat /etc/hostname)", "");
    let job = lab.ended("hello");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", lab.why("hello"));
    assert!(lab.home.log("hello").starts_with("hello from "), "{}", lab.home.log("hello"));
    let system = lab.home.artifacts("hello").join("system_logs/amlarc_cr_bootstrap.log");
    assert!(fs::read_to_string(system).unwrap().contains("Run on node: real"));
}

/// The test image has Python and nothing to make an environment with, so the agent in it gets no further than that.
fn an_environment_without_an_image_is_made_in_the_target_s(lab: &Lab) {
    let environment = "environment: {conda_file: {dependencies: [python]}}";
    lab.home.file("plain.yml", &format!("command: python3 -V\n{environment}\ncompute: azureml:lab\n"));
    let create = ["job", "create", "-f", "plain.yml", "-n", "plain", "-o", "none"];
    lab.home.run(&create).must(2, &["names no image, and pods on `lab` run from one", "`default_image`"]);
    let (namespace, image) = (lab.namespace, lab.cluster.fact("PYTHON_IMAGE"));
    let target =
        format!("name: lab\ntype: kubernetes\nnamespace: {namespace}\nproperties: {{default_image: '{image}'}}\n");
    lab.home.file("lab.yml", &target);
    lab.home.ok(&["compute", "attach", "-f", "lab.yml", "-o", "none"]);
    lab.home.ok(&create);
    let job = lab.ended("plain");
    let why = lab.why("plain");
    assert!(job["status"] == "Failed" && why.contains("ensurepip is not"), "{job:#}\n{why}");
}

fn trains_with_inputs_and_outputs(lab: &Lab) {
    lab.home.file("src/train.py", "import sys\nnumbers = open(sys.argv[1]).read().split()\nopen(sys.argv[2] + '/sum.txt', 'w').write(str(sum(map(int, numbers))))\nprint('trained')\n");
    lab.home.file("data/numbers.txt", "1 2 3");
    let more =
        "code: src\ninputs:\n  data: {type: uri_file, path: data/numbers.txt}\noutputs:\n  out: {type: uri_folder}";
    lab.begin("trains", "python3 train.py ${{inputs.data}} ${{outputs.out}}", more);
    let job = lab.ended("trains");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}\n{}", lab.why("trains"), lab.home.log("trains"));
    lab.home.ok(&["job", "download", "-n", "trains", "--output-name", "out", "--download-path", "got"]);
    let found = crate::pod::cluster::find(&lab.home.path().join("got"), "sum.txt").expect("the output is there");
    assert_eq!(fs::read_to_string(found).unwrap(), "6");
}

/// Rank 0 waits for a word of rank 1 at the address both were given.
fn two_pods_know_each_other(lab: &Lab) {
    let program = "import os, socket, time\nrank, at = int(os.environ['RANK']), (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n\
        if rank == 0:\n    s = socket.create_server(('', at[1])); c, _ = s.accept(); print('heard', c.recv(9).decode())\n\
        else:\n    for _ in range(100):\n        try: socket.create_connection(at).sendall(b'one'); break\n        except OSError: time.sleep(0.2)\n";
    lab.home.file("pair/meet.py", program);
    let more = "code: pair\nresources: {instance_count: 2}\ndistribution: {type: pytorch}";
    lab.begin("pair", "python3 meet.py", more);
    let job = lab.ended("pair");
    assert_eq!(job["status"], "Completed", "{job:#}\n{}", lab.why("pair"));
    let log = lab.home.artifacts("pair").join("user_logs/std_log_process_0.txt");
    assert_eq!(fs::read_to_string(log).unwrap(), "heard one\n");
}

fn over_its_memory(lab: &Lab) {
    lab.cluster.apply(
        r#"{"apiVersion": "amlarc.azureml.com/v1alpha1", "kind": "InstanceType", "metadata": {"name": "narrow"}, "spec": {"resources":
        {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}}}"#,
    );
    let knows = || lab.home.run(&["compute", "show", "-n", "lab"]).out.contains("narrow");
    lab.until("the server to know the type", knows);
    lab.begin("hog", "python3 -c 'bytearray(1 << 30)'", "resources: {instance_type: narrow}");
    let job = lab.ended("hog");
    assert_eq!(job["status"], "Failed", "{job:#}");
    let why = lab.why("hog");
    assert!(why.contains("memory") && why.contains("limit of 128 MiB"), "{why}");
    lab.cluster.ok(&["delete", "instancetype", "narrow"]);
}

fn canceled_within_seconds(lab: &Lab) {
    lab.begin("endless", "echo up; while :; do sleep 0.1; done", "");
    lab.until("the command", || lab.home.log("endless") == "up\n");
    let began = Instant::now();
    lab.home.ok(&["job", "cancel", "-n", "endless"]);
    assert_eq!(lab.ended("endless")["status"], "Canceled");
    println!("canceled in {:.1} s", began.elapsed().as_secs_f64());
    let none = || lab.cluster.ok(&["get", "pods", "-l", "peregrine.dev/job=endless", "-o", "name"]).is_empty();
    lab.until("its pod to be gone", none);
}

fn tried_again_after_its_pod_is_killed(lab: &Lab) {
    lab.begin("moved", "echo attempt; sleep 600", "");
    lab.until("the first attempt", || lab.home.log("moved") == "attempt\n");
    let pod = lab.cluster.ok(&["get", "pods", "-l", "peregrine.dev/job=moved", "-o", "name"]);
    lab.cluster.ok(&["delete", &pod, "--grace-period=0", "--force"]);
    let second =
        || fs::read_to_string(lab.home.artifacts("moved").join("retry-001/user_logs/std_log.txt")).unwrap_or_default();
    lab.until("a second attempt", || second() == "attempt\n");
    lab.home.ok(&["job", "cancel", "-n", "moved"]);
    assert_eq!(lab.ended("moved")["status"], "Canceled");
}

fn a_service_is_reached_through_the_agent(lab: &Lab) {
    services::write_site(lab.home);
    lab.begin("site", "python3 site.py 8080", &services::services(8080));
    lab.until("the site", || lab.home.log("site") == "up\n");
    assert_eq!(services::page(lab.home, "site"), "hello from site");
    lab.home.ok(&["job", "cancel", "-n", "site"]);
    assert_eq!(lab.ended("site")["status"], "Canceled");
}

fn an_image_that_is_nowhere_is_said(lab: &Lab) {
    lab.home.file(
        "nowhere.yml",
        "command: 'true'\nenvironment: {image: 'peregrine.test/nowhere:1'}\ncompute: azureml:lab\n",
    );
    lab.home.ok(&["job", "create", "-f", "nowhere.yml", "-n", "nowhere", "-o", "none"]);
    lab.until("the reason", || lab.why("nowhere").contains("the image cannot be pulled"));
    lab.home.ok(&["job", "cancel", "-n", "nowhere"]);
    assert_eq!(lab.ended("nowhere")["status"], "Canceled");
}
