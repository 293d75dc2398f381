//! Mini-batches and batch endpoints with the real binary: what comes back, what is said of failures, one job per call.

use crate::harness::Home;
use serde_json::Value;
use std::fs;

const PIPELINE: &str = "type: pipeline\nsettings: {default_compute: 'azureml:local'}\n\
    outputs: {rows: {type: uri_file}}\njobs:\n  each:\n    type: parallel\n    \
    inputs: {d: {type: uri_folder, path: data}, word: hello world}\n    outputs: {rows: '${{parent.outputs.rows}}'}\n    \
    input_data: '${{inputs.d}}'\n    mini_batch_size: '2'\n    max_concurrency_per_instance: 2\n    \
    mini_batch_error_threshold: 1\n    retry_settings: {max_retries: 1, timeout: 30}\n    resources: {instance_count: 2}\n    \
    task:\n      type: run_function\n      code: src\n      entry_script: entry.py\n      \
    program_arguments: --word ${{inputs.word}} --resource_monitor_interva 20\n      \
    append_row_to: '${{outputs.rows}}'\n      environment: {image: 'python:3.12-slim'}\n";
const ENTRY: &str = "import argparse, os\n\
    def init():\n    global word\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--word')\n    \
    word = parser.parse_known_args()[0].word\n\
    def run(batch):\n    texts = [open(path).read().strip() for path in batch]\n    \
    assert 'bad' not in texts, 'a bad one'\n    return [f'{word} {text}' for text in texts]\n";
const SCORE: &str = "import os\n\
    def init():\n    global weight\n    weight = int(open(os.path.join(os.environ['AZUREML_MODEL_DIR'], 'model', 'w')).read())\n\
    def run(batch):\n    return [str(weight * int(open(path).read())) for path in batch]\n";
const DEPLOYMENT: &str = "name: blue\nendpoint_name: scoring\ntype: model\nmodel: {path: model}\n\
    compute: azureml:local\ncode_configuration: {code: src, scoring_script: score.py}\n\
    environment: {image: 'python:3.12-slim'}\n\
    settings: {mini_batch_size: 1, error_threshold: 0, retry_settings: {max_retries: 0, timeout: 30}}\n";

fn home(data: &[&str]) -> Home {
    let home = Home::new();
    home.file("src/entry.py", ENTRY);
    home.file("src/score.py", SCORE);
    home.file("model/w", "3");
    for (number, text) in data.iter().enumerate() {
        home.file(&format!("data/{number}.txt"), text);
    }
    home.file("pipeline.yml", PIPELINE);
    home.file("blue.yml", DEPLOYMENT);
    home
}

/// Lines of the file that a job's output is, in order.
fn rows(home: &Home, job: &str, output: &str) -> Vec<String> {
    home.ok(&["job", "download", "-n", job, "--output-name", output, "-p", "got"]);
    let mut found = Vec::new();
    let mut folders = vec![home.path().join("got")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => found.extend(fs::read_to_string(path).unwrap().lines().map(str::to_owned)),
            }
        }
    }
    fs::remove_dir_all(home.path().join("got")).unwrap();
    found.sort();
    found
}

fn name(view: &Value) -> String {
    view["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_parallel_step_works_through_its_input_on_two_nodes() {
    let home = home(&["a", "b", "c", "d", "e"]);
    let job = home.submit("pipeline.yml");
    assert_eq!(home.ended(&job)["status"], "Completed", "{}", home.log(&format!("{job}_each")));
    let expected: Vec<String> = ["a", "b", "c", "d", "e"].iter().map(|text| format!("hello world {text}")).collect();
    assert_eq!(rows(&home, &job, "rows"), expected);
    let logs = home.artifacts(&format!("{job}_each")).join("logs");
    let overview = fs::read_dir(&logs)
        .unwrap()
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("job_progress_overview."));
    let overview = fs::read_to_string(overview.unwrap().path()).unwrap();
    assert!(overview.contains("mini-batches processed: 3"), "{overview}");
    assert!(logs.join("sys/master_role.txt").is_file() && logs.join("user/stdout").is_dir());
    let metrics = home.ok(&["job", "metrics", "-n", &format!("{job}_each"), "-o", "json"]);
    assert!(metrics.contains("Processed Items"), "{metrics}");
}

#[test]
fn a_parallel_step_on_nodes_that_come_for_it_hands_its_rows_to_the_next() {
    let home = home(&["a", "b", "c"]);
    crate::managed::create(&home, "max_instances: 2\nidle_time_before_scale_down: 300");
    let next = "  count:\n    type: command\n    command: wc -l < ${{inputs.rows}}\n    environment: {image: 'python:3.12-slim'}\n    \
        inputs: {rows: {type: uri_file, path: '${{parent.jobs.each.outputs.rows}}'}}\n";
    home.file("pipeline.yml", &(PIPELINE.replace("azureml:local", "azureml:crew") + next));
    let job = home.submit("pipeline.yml");
    assert_eq!(home.ended(&job)["status"], "Completed", "{}", home.ok(&["job", "why", "-n", &job]));
    assert_eq!(rows(&home, &job, "rows"), ["hello world a", "hello world b", "hello world c"]);
    assert_eq!(home.log(&format!("{job}_count")).trim(), "3");
    assert_eq!(crate::managed::states(&home).len(), 2, "both ran on the cluster");
}

#[test]
fn a_step_with_too_many_failures_says_so_and_one_with_as_many_as_allowed_goes_on() {
    let home = home(&["bad", "b", "c", "bad"]);
    let sized = |size: &str| {
        let set = format!("jobs.each.mini_batch_size={size}");
        name(&home.json(&["job", "create", "-f", "pipeline.yml", "--set", &set]))
    };
    let (allowed, refused) = (sized("4"), sized("2"));
    assert_eq!(home.ended(&allowed)["status"], "Completed");
    let failed = home.ended(&refused);
    assert_eq!(failed["status"], "Failed");
    let why = home.ok(&["job", "why", "-n", &format!("{refused}_each")]);
    assert!(why.contains("2 mini-batches failed, and `mini_batch_error_threshold` is 1"), "{why}");
    let bad = home.run(&["job", "create", "-f", "pipeline.yml", "--set", "jobs.each.input_data=${{inputs.other}}"]);
    bad.must(2, &["jobs.each.input_data", "names no input"]);
}

#[test]
fn a_batch_endpoint_is_called_and_every_call_is_one_job() {
    let home = home(&["1", "2", "5"]);
    home.ok(&["batch-endpoint", "create", "-n", "scoring", "-o", "none"]);
    let lost = home.run(&["batch-endpoint", "invoke", "-n", "scoring", "--input", "data"]);
    lost.must(2, &["has no default deployment"]);
    let made = home.json(&["batch-deployment", "create", "-f", "blue.yml", "--set-default"]);
    assert_eq!(made["provisioning_state"], "Succeeded", "{made}");
    let call = ["batch-endpoint", "invoke", "-n", "scoring", "--input", "data", "--request-id", "once"];
    let first = name(&home.json(&call));
    assert_eq!(name(&home.json(&call)), first, "the same key is the same job");
    let second = [
        "batch-endpoint",
        "invoke",
        "-n",
        "scoring",
        "--input",
        "data",
        "--job-name",
        "second",
        "-m",
        "3",
        "--set",
        "output_file_name=x.csv",
        "--experiment-name",
        "nightly",
    ];
    assert_eq!(name(&home.json(&second)), "second");
    for job in [first.as_str(), "second"] {
        assert_eq!(home.ended(job)["status"], "Completed", "{}", home.log(&format!("{job}_batchscoring")));
        assert_eq!(rows(&home, job, "score"), ["15", "3", "6"]);
    }
    assert_eq!(home.job("second")["experiment_name"], "nightly");
    for list in [
        &["batch-endpoint", "list-jobs", "-n", "scoring"][..],
        &["batch-deployment", "list-jobs", "-n", "blue", "-e", "scoring"],
    ] {
        let listed = home.json(list);
        let names: Vec<String> = listed.as_array().unwrap().iter().map(name).collect();
        assert_eq!(names, ["second", &first], "newest first");
    }
    home.run(&second).must(2, &["there is a job `second` already"]);
    home.ok(&["batch-endpoint", "delete", "-n", "scoring", "--yes"]);
}

#[test]
fn a_deployment_that_could_never_run_is_refused_and_one_bad_file_ends_a_job() {
    let home = home(&["1", "x"]);
    home.ok(&["batch-endpoint", "create", "-n", "scoring", "-o", "none"]);
    let bare = home.file(
        "bare.yml",
        "name: bare\nendpoint_name: scoring\ntype: model\nmodel: {path: model}\ncompute: azureml:local\n",
    );
    home.run(&["batch-deployment", "create", "-f", &bare.to_string_lossy()])
        .must(2, &["nothing says how the model is asked"]);
    home.ok(&["batch-deployment", "create", "-f", "blue.yml", "--set-default", "-o", "none"]);
    let job = name(&home.json(&["batch-endpoint", "invoke", "-n", "scoring", "--input", "data"]));
    assert_eq!(home.ended(&job)["status"], "Failed");
    let why = home.ok(&["job", "why", "-n", &job]);
    assert!(why.contains("1 items failed, and `error_threshold` is 0"), "{why}");
}

#[test]
fn a_pipeline_behind_a_batch_endpoint_takes_values_and_data() {
    let home = home(&["1"]);
    home.file("component.yml", "type: pipeline\nname: say\nversion: '1'\ninputs: {word: {type: string}, d: {type: uri_folder}}\n\
        outputs: {said: {type: uri_file}}\njobs:\n  one:\n    type: command\n    command: cat ${{inputs.d}}/0.txt > ${{outputs.said}}; echo ${{inputs.word}} >> ${{outputs.said}}\n    \
        environment: {image: 'python:3.12-slim'}\n    inputs: {word: '${{parent.inputs.word}}', d: '${{parent.inputs.d}}'}\n    outputs: {said: '${{parent.outputs.said}}'}\n");
    home.file("said.yml", "name: said\nendpoint_name: talk\ntype: pipeline\ncomponent: component.yml\nsettings: {default_compute: local}\n");
    home.file("inputs.yml", "inputs:\n  word: hi\n  d: {type: uri_folder, path: data}\n");
    home.ok(&["batch-endpoint", "create", "-n", "talk", "-o", "none"]);
    home.ok(&["batch-deployment", "create", "-f", "said.yml", "--set-default", "-o", "none"]);
    let job =
        name(&home.json(&["batch-endpoint", "invoke", "-n", "talk", "-f", "inputs.yml", "--set", "inputs.word=hey"]));
    assert_eq!(home.ended(&job)["status"], "Completed", "{}", home.ok(&["job", "why", "-n", &job]));
    assert_eq!(rows(&home, &job, "said"), ["1hey"]);
    let missing = home.run(&["batch-endpoint", "invoke", "-n", "talk", "--set", "inputs.word=hey"]);
    missing.must(2, &["needs a value for `d`"]);
}
