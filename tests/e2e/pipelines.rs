//! Pipelines and sweeps from the command line: what is told while they run, what is not run again and why, and that the loss of
//! server and agent neither loses a step nor runs one twice.

use crate::harness::{Home, said};
use std::{collections::BTreeSet, fs};

const WORDS: &str = "type: pipeline\nexperiment_name: words\ninputs: {word: one}\n\
    settings: {default_compute: 'azureml:local'}\njobs:\n  make:\n    type: command\n    \
    command: echo ${{inputs.word}} > ${{outputs.said}}/word.txt\n    environment: {image: 'python:3.12-slim'}\n    \
    inputs: {word: '${{parent.inputs.word}}'}\n    outputs: {said: {type: uri_folder}}\n  \
    use:\n    type: command\n    command: cat ${{inputs.said}}/word.txt; test -e FLAG || { echo no flag is up; exit 3; }\n    \
    environment: {image: 'python:3.12-slim'}\n    inputs: {said: '${{parent.jobs.make.outputs.said}}'}\n";

#[test]
fn a_pipeline_that_failed_goes_on_from_the_failed_step_and_says_what_differed() {
    let home = Home::new();
    let flag = home.path().join("flag");
    home.file("words.yml", &WORDS.replace("FLAG", &flag.display().to_string()));
    home.run(&["job", "create", "-f", "words.yml", "-n", "first", "--stream"]).must(
        1,
        &["step `make`: Completed", "step `use`: Failed", "step `use` (job `first_use`) failed", "no flag is up"],
    );
    fs::write(flag, "").unwrap();
    home.run(&["job", "resubmit", "-n", "first", "--new-name", "second", "--stream"])
        .must(0, &["step `make`: Completed (reused from `first_make`)", "step `use`: Completed"]);
    let why = |job: &str| home.ok(&["job", "why", "-n", job]);
    assert!(why("second_make").contains("job `first_make` is the same in everything that matters"));
    assert!(why("second_use").contains("job `first_use` is the same and has not completed"), "{}", why("second_use"));
    assert_eq!(home.log("second_use"), "one\n");

    home.ok(&["job", "create", "-f", "words.yml", "-n", "third", "--set", "inputs.word=two", "--stream"]);
    assert!(why("third_make").contains("in `inputs.word`"), "{}", why("third_make"));
    assert_eq!(home.log("third_use"), "two\n");
    let elsewhere = "jobs.make.outputs.said.path=azureml://datastores/workspaceblobstore/paths/fixed/";
    home.ok(&["job", "create", "-f", "words.yml", "-n", "fourth", "--set", "inputs.word=two", "--set", elsewhere]);
    assert_eq!(home.ended("fourth")["status"], "Completed");
    assert!(why("fourth_make").contains("in `outputs.said.path`"), "{}", why("fourth_make"));
    let graph = home.ok(&["job", "show", "-n", "third", "--graph", "-o", "table"]);
    let lines: Vec<&str> = graph.lines().collect();
    assert!(
        lines[0].starts_with("+ make") && lines[1].starts_with("+   use") && lines[1].contains("<- make"),
        "{graph}"
    );
    let chart = home.ok(&["job", "show", "-n", "third", "--graph=mermaid"]);
    assert!(chart.contains("s0[\"make<br/>Completed\"]") && chart.contains("s0 --> s1"), "{chart}");
    assert_eq!(home.json(&["job", "list", "--parent", "third"]).as_array().unwrap().len(), 2);
    home.run(&["job", "resubmit", "-n", "first", "--new-name", "second"]).must(2, &["there is already a job `second`"]);
    home.run(&["job", "resubmit", "-n", "none"]).must(2, &["`none`"]);
}

#[test]
fn a_step_that_is_canceled_ends_its_pipeline_unless_the_others_may_go_on() {
    let home = Home::new();
    let two = "type: pipeline\nsettings: {default_compute: 'azureml:local', continue_on_step_failure: GOES_ON}\njobs:\n  \
        long: {type: command, command: sleep 600, environment: {image: 'python:3.12-slim'}}\n  \
        other: {type: command, command: 'while [ ! -e DONE ]; do sleep 0.1; done', environment: {image: 'python:3.12-slim'}}\n";
    let done = home.path().join("done");
    for (name, goes_on, other) in [("stops", "false", "Canceled"), ("goes", "true", "Completed")] {
        let text = two.replace("GOES_ON", goes_on).replace("DONE", &done.display().to_string());
        home.file("two.yml", &text);
        home.ok(&["job", "create", "-f", "two.yml", "-n", name, "-o", "none"]);
        home.until_status(&format!("{name}_long"), "Running");
        home.until_status(&format!("{name}_other"), "Running");
        home.ok(&["job", "cancel", "-n", &format!("{name}_long")]);
        if goes_on == "true" {
            fs::write(&done, "").unwrap();
        }
        let ended = home.ended(name);
        assert_eq!(ended["status"], "Failed", "{ended}");
        let why = home.ok(&["job", "why", "-n", name]);
        assert!(why.contains(&format!("step `long` (job `{name}_long`) was canceled")), "{why}");
        assert_eq!(home.job(&format!("{name}_other"))["status"], other);
    }
}

/// Every step and trial writes a line of its own: too few are lost, too many ran twice.
#[test]
fn steps_and_trials_are_run_once_though_server_and_agent_are_killed() {
    let home = Home::new();
    let (steps, trials) = (home.path().join("steps"), home.path().join("trials"));
    let mut chain = "type: pipeline\nsettings: {default_compute: 'azureml:local'}\njobs:\n".to_owned();
    for n in 0..8 {
        let before =
            if n == 0 { String::new() } else { format!("after: '${{{{parent.jobs.s{}.outputs.out}}}}'", n - 1) };
        chain += &format!(
            "  s{n}:\n    type: command\n    command: 'echo {n} >> {}; sleep 0.4; touch ${{{{outputs.out}}}}/done'\n    \
             environment: {{image: 'python:3.12-slim'}}\n    inputs: {{{before}}}\n    outputs: {{out: {{type: uri_folder}}}}\n",
            steps.display()
        );
    }
    home.file("chain.yml", &chain);
    home.file(
        "sweep.yml",
        &format!(
            "type: sweep\ncompute: azureml:local\nsampling_algorithm: {{type: random, seed: 7}}\n\
             search_space: {{x: {{type: uniform, min_value: 0, max_value: 1}}}}\n\
             objective: {{goal: minimize, primary_metric: loss}}\nlimits: {{max_total_trials: 12, max_concurrent_trials: 2}}\n\
             trial:\n  command: 'echo ${{{{search_space.x}}}} >> {}; sleep 0.4'\n  environment: {{image: 'python:3.12-slim'}}\n",
            trials.display()
        ),
    );
    home.ok(&["job", "create", "-f", "chain.yml", "-n", "chain", "-o", "none"]);
    home.ok(&["job", "create", "-f", "sweep.yml", "-n", "search", "-o", "none"]);
    let told = |file| fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect::<Vec<_>>();
    for (at, role) in [(1, "server"), (3, "agent"), (5, "server")] {
        home.until("the next step", || told(&steps).len() > at);
        assert!(home.kill(role), "there is no {role}");
        // Whoever asks next starts what is missing.
        home.ok(&["job", "list", "-o", "none"]);
    }
    assert_eq!(home.ended("chain")["status"], "Completed", "{}", home.ok(&["job", "why", "-n", "chain"]));
    assert_eq!(told(&steps), (0..8).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(home.ended("search")["status"], "Completed", "{}", home.ok(&["job", "why", "-n", "search"]));
    let drawn = told(&trials);
    assert_eq!((drawn.len(), drawn.iter().collect::<BTreeSet<_>>().len()), (12, 12), "{drawn:?}");
    assert_eq!(home.json(&["job", "list", "--parent", "search"]).as_array().unwrap().len(), 12);
}

/// Mini-batches, ranks of a gang and trials inside of a pipeline: each leaves one line.
#[test]
fn batches_ranks_and_nested_trials_are_run_once_though_server_and_agent_are_killed() {
    let home = Home::new();
    let file = |name: &str| home.path().join(name);
    for n in 0..6 {
        home.file(&format!("data/{n}.txt"), &n.to_string());
    }
    let slow = "import time\ndef run(batch):\n    for path in batch:\n        print(open(path).read(), file=open('TO', 'a'))\n    \
        time.sleep(0.4)\n    return batch\n";
    home.file("src/slow.py", &slow.replace("TO", &file("items").display().to_string()));
    let whole = "type: pipeline\nsettings: {default_compute: 'azureml:local'}\njobs:\n  each:\n    type: parallel\n    \
        inputs: {d: {type: uri_folder, path: data}}\n    input_data: '${{inputs.d}}'\n    mini_batch_size: '1'\n    \
        max_concurrency_per_instance: 1\n    mini_batch_error_threshold: 0\n    resources: {instance_count: 2}\n    \
        task: {type: run_function, code: src, entry_script: slow.py, environment: {image: 'python:3.12-slim'}}\n  \
        gang:\n    type: command\n    command: 'echo $RANK >> RANKS; sleep 1'\n    environment: {image: 'python:3.12-slim'}\n    \
        distribution: {type: pytorch, process_count_per_instance: 2}\n    resources: {instance_count: 2}\n  \
        tune:\n    type: sweep\n    sampling_algorithm: grid\n    search_space: {x: {type: choice, values: [1, 2, 3, 4]}}\n    \
        objective: {goal: minimize, primary_metric: loss}\n    limits: {max_total_trials: 4, max_concurrent_trials: 1}\n    \
        trial:\n      type: command\n      inputs: {x: {type: integer}}\n      command: 'echo ${{ inputs.x }} >> TRIALS; sleep 0.4'\n      \
        environment: {image: 'python:3.12-slim'}\n";
    let at = |name: &str| file(name).display().to_string();
    home.file("whole.yml", &whole.replace("RANKS", &at("ranks")).replace("TRIALS", &at("trials")));
    home.ok(&["job", "create", "-f", "whole.yml", "-n", "whole", "-o", "none"]);
    let told = |name: &str| {
        let text = fs::read_to_string(file(name)).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let all = || ["items", "ranks", "trials"].iter().map(|name| told(name).len()).sum::<usize>();
    for (at, role) in [(1, "server"), (5, "agent"), (9, "server")] {
        home.until("more lines", || all() > at);
        assert!(home.kill(role), "there is no {role}");
        home.ok(&["job", "list", "-o", "none"]);
    }
    assert_eq!(home.ended("whole")["status"], "Completed", "{}", home.ok(&["job", "why", "-n", "whole"]));
    assert_eq!(told("items"), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(told("ranks"), ["0", "1", "2", "3"]);
    assert_eq!(told("trials"), ["1", "2", "3", "4"]);
}

/// What a terminal shows: the tree, drawn over itself until all is over.
#[test]
fn on_a_terminal_the_steps_are_a_tree_that_is_drawn_over_itself() {
    let home = Home::new();
    home.file("words.yml", &WORDS.replace("test -e FLAG", "sleep 2"));
    home.ok(&["job", "create", "-f", "words.yml", "-n", "shown", "-o", "none"]);
    let stream = home.command(&["job", "stream", "-n", "shown"]);
    let spawned = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let mut terminal = std::process::Command::new("python3");
    terminal.args(["-c", spawned]).arg(stream.get_program()).args(stream.get_args());
    terminal.envs(stream.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    let said = said(terminal.current_dir(home.path()).stdin(std::process::Stdio::null()).output().unwrap());
    assert_eq!(said.code, Some(0), "{}", said.out);
    let last = said.out.rsplit("\x1b[2A").next().unwrap();
    assert_ne!(last, said.out, "the tree of two lines is never drawn over: {:?}", said.out);
    let lines: Vec<&str> = last.lines().map(|line| line.trim_start_matches("\r\x1b[2K")).collect();
    assert!(lines[0].starts_with("+ make") && lines[0].contains("Completed"), "{last:?}");
    assert!(lines[1].starts_with("+   use") && lines[1].contains("Completed"), "{last:?}");
}

/// One trial is far more talkative than the others: its last value counts as theirs do, and the search goes on meanwhile.
#[test]
fn a_trial_that_logs_a_million_points_is_one_of_the_search() {
    let home = Home::new();
    home.file("src/talk.py", TALK);
    home.file(
        "sweep.yml",
        "type: sweep\ncompute: azureml:local\nsampling_algorithm: {type: grid}\n\
         search_space: {points: {type: choice, values: [1000000, 1, 2]}}\n\
         early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 1, delay_evaluation: 5000000}\n\
         objective: {goal: maximize, primary_metric: score}\nlimits: {max_total_trials: 3, max_concurrent_trials: 2, timeout: 300}\n\
         trial: {code: src, command: 'python3 talk.py ${{search_space.points}}', environment: {image: 'python:3.12-slim'}}\n",
    );
    home.ok(&["job", "create", "-f", "sweep.yml", "-n", "talk", "-o", "none"]);
    let ended = home.ended("talk");
    assert_eq!(ended["status"], "Completed", "{}", home.ok(&["job", "why", "-n", "talk"]));
    let trials = home.json(&["job", "list", "--parent", "talk"]);
    assert_eq!(trials.as_array().unwrap().len(), 3);
    let best = ended["properties"]["best_child_run_id"].as_str().unwrap_or_default();
    let metrics = home.json(&["job", "metrics", "-n", best]);
    assert!(metrics.to_string().contains("999999"), "{ended} {metrics}");
}

const TALK: &str = r#"
import json, os, ssl, sys, urllib.request
to, count = os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-batch", int(sys.argv[1])
context = ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE"))
for first in range(0, count, 1000):
    points = [{"key": "score", "value": n, "timestamp": n, "step": n} for n in range(first, min(count, first + 1000))]
    body = json.dumps({"run_id": os.environ["MLFLOW_RUN_ID"], "metrics": points}).encode()
    head = {"authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(to, body, head), context=context).read()
"#;
