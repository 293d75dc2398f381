//! Mini-batches: the script itself, run as the agent runs it, with real processes that fail in every way there is.

use crate::serve::site::prepared;
use domain::EnvironmentPlan;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/attempt/parallel/parallel.py");

/// Does to each file what the file says; how often it was tried is counted beside it.
const ENTRY: &str = "
import argparse, os, signal, time

def init():
    parser = argparse.ArgumentParser()
    parser.add_argument('--greet', default='')
    global greeting
    greeting = parser.parse_args().greet
    print('begun', os.getpid())

def run(mini_batch, context):
    print('batch', context.minibatch_index)
    made = []
    for path in mini_batch:
        with open(path) as file:
            text = file.read().strip()
        with open(path.replace('/in/', '/tries/'), 'a') as tries:
            tries.write('x')
        once = os.path.getsize(path.replace('/in/', '/tries/')) == 1
        if text == 'raise' or (text == 'raise once' and once):
            raise ValueError('told to')
        if text == 'die' or (text == 'die once' and once):
            os.kill(os.getpid(), signal.SIGSEGV)
        if text == 'hang' or (text == 'hang once' and once):
            time.sleep(600)
        if text != 'short':
            made.append(greeting + text)
    return made

def shutdown():
    print('ended')
";

struct Case {
    folder: tempfile::TempDir,
    settings: Value,
    python: PathBuf,
}

/// A Python that can read tables and models; `None`, said aloud, where none can be had.
fn with_pandas() -> Option<PathBuf> {
    let pip = vec!["pandas".to_owned(), "mlflow-skinny".to_owned()];
    let ready = prepared(&EnvironmentPlan { pip, ..EnvironmentPlan::default() }, "mini-batches of rows")?;
    Some(ready.path_first[0].join("python"))
}

impl Case {
    fn new(files: &[&str]) -> Case {
        let folder = tempfile::tempdir().unwrap();
        for name in ["in", "tries", "work"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        for (number, text) in files.iter().enumerate() {
            fs::write(folder.path().join(format!("in/{number:02}.txt")), text).unwrap();
        }
        fs::write(folder.path().join("work/entry.py"), ENTRY).unwrap();
        let settings = json!({
            "entry": "entry.py", "mlflow": null, "arguments": "--resource_monitor_interval 0", "rows": false,
            "inputs": [{"name": "d", "path": folder.path().join("in")}], "mini_batch_size": 1, "partition_keys": [],
            "concurrency": 2, "max_retries": 1, "timeout": 20, "mini_batch_error_threshold": -1, "error_threshold": -1,
            "logging_level": "INFO", "append_to": folder.path().join("out.txt"), "logs": folder.path().join("logs"),
        });
        Case { folder, settings, python: "python3".into() }
    }

    /// Rows instead of files: `n` counts up, `kind` is a letter for each row.
    fn of_rows(python: &Path, kinds: &str) -> Case {
        let mut case = Case::new(&[]).with(json!({"rows": true, "max_retries": 0}));
        case.python = python.to_owned();
        let rows: String = kinds.chars().enumerate().map(|(n, kind)| format!("{n},{kind}\n")).collect();
        fs::write(case.path("in/table.csv"), format!("n,kind\n{rows}")).unwrap();
        case
    }

    fn entry(self, text: &str) -> Case {
        fs::write(self.path("work/entry.py"), text).unwrap();
        self
    }

    fn with(mut self, changes: Value) -> Case {
        for (key, value) in changes.as_object().unwrap() {
            self.settings[key] = value.clone();
        }
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, variables: &[(&str, &str)]) -> Child {
        fs::write(self.path("job.json"), self.settings.to_string()).unwrap();
        let mut command = Command::new(&self.python);
        command.arg(SCRIPT).arg("node").arg(self.path("job.json")).current_dir(self.path("work"));
        command.envs(variables.iter().copied()).env_remove("MLFLOW_TRACKING_URI");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs to the end: whether it went well, and what it printed.
    fn run(&self) -> (bool, String) {
        told(self.start(&[]).wait_with_output().unwrap())
    }

    fn rows(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("out.txt")).unwrap_or_default();
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    }

    /// All logs whose path has a part.
    fn logs(&self, part: &str) -> String {
        let mut all = String::new();
        walk(&self.path("logs"), &mut |path| {
            if path.to_string_lossy().contains(part) {
                all.push_str(&fs::read_to_string(path).unwrap());
            }
        });
        all
    }
}

fn walk(folder: &Path, seen: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() { walk(&entry.path(), seen) } else { seen(&entry.path()) }
    }
}

fn told(output: Output) -> (bool, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

#[test]
fn every_item_comes_back_once_and_scripts_begin_and_end() {
    let case = Case::new(&["a", "b", "c", "d", "e"]).with(json!({
        "mini_batch_size": 2, "arguments": "--greet 'hi ' --error_threshold 0 --copy_logs_to_parent True"}));
    let (well, said) = case.run();
    assert!(well, "{said}");
    assert_eq!(case.rows(), ["hi a", "hi b", "hi c", "hi d", "hi e"]);
    assert!(said.contains("mini-batches: 3 of 3 processed, 0 failed; items: 5, 0 failed"), "{said}");
    let progress = case.logs("job_progress_overview.");
    assert!(progress.contains("mini-batches created: 3") && progress.contains("mini-batches left: 0"), "{progress}");
    let printed = case.logs("user/stdout/127.0.0.1/process");
    assert_eq!(printed.matches("begun").count(), printed.matches("ended").count(), "{printed}");
    assert!(case.logs("sys/master_role.txt").contains("3 mini-batches"));
    assert!(!case.logs("perf/127.0.0.1/node_resource_usage.csv").is_empty());
}

#[test]
fn whoever_fails_dies_or_hangs_once_is_tried_again() {
    let case = Case::new(&["a", "raise once", "die once", "hang once", "e"]).with(json!({"timeout": 2}));
    let (well, said) = case.run();
    assert!(well, "{said}");
    assert_eq!(case.rows(), ["a", "die once", "e", "hang once", "raise once"]);
    let errors = case.logs("user/error.txt");
    for told in ["ValueError: told to", "ended by signal 11", "longer than the 2 s of `retry_settings.timeout`"] {
        assert!(errors.contains(told), "{errors}");
    }
    assert!(case.logs("user/error/127.0.0.1/process").contains("Traceback"));
}

#[test]
fn thresholds_hold_exactly() {
    let files = ["a", "raise", "raise", "short"];
    for (changes, well) in [
        (json!({"mini_batch_error_threshold": 3}), true),
        (json!({"mini_batch_error_threshold": 2}), false),
        (json!({"error_threshold": 3}), true),
        (json!({"error_threshold": 2}), false),
        (json!({"arguments": "--error_threshold 2"}), false),
        (json!({"arguments": "--allowed_failed_percent 75"}), true),
        (json!({"arguments": "--allowed_failed_percent 74"}), false),
        (json!({"mini_batch_error_threshold": 0, "error_threshold": -1, "max_retries": 0}), false),
    ] {
        let case = Case::new(&files).with(json!({"max_retries": 0})).with(changes.clone());
        let (did, said) = case.run();
        assert_eq!(did, well, "{changes}: {said}");
        assert_eq!(case.path("out.txt").exists(), well, "what failed leaves no half result");
        assert_eq!(said.contains("error: "), !well, "{said}");
    }
}

#[test]
fn a_batch_is_tried_as_often_as_was_asked_and_its_items_count_as_failed() {
    let case = Case::new(&["raise", "a"]).with(json!({"max_retries": 3, "mini_batch_size": 2}));
    let (well, said) = case.run();
    assert!(well && said.contains("failed after 4 tries: ValueError: told to"), "{said}");
    assert!(said.contains("1 of 1 processed, 1 failed; items: 2, 2 failed"), "{said}");
    assert_eq!(fs::read_to_string(case.path("tries/00.txt")).unwrap(), "xxxx");
}

#[test]
fn a_file_that_vanishes_is_a_failed_item_and_no_more() {
    let case = Case::new(&["a", "b"]);
    std::os::unix::fs::symlink("/nowhere", case.path("in/02.txt")).unwrap();
    let (well, said) = case.run();
    assert!(well && said.contains("items: 3, 1 failed"), "{said}");
    assert!(case.logs("user/error.txt").contains("FileNotFoundError"));
}

#[test]
fn what_can_never_work_is_told_at_once() {
    let raises = "def init():\n    raise RuntimeError('no weights')\ndef run(b):\n    return b\n";
    for (entry, changes, told) in [
        (raises, json!({}), "`init` failed 2 times: RuntimeError: no weights"),
        ("import nowhere_to_be_found\n", json!({}), "ModuleNotFoundError"),
        ("def init():\n    pass\n", json!({}), "`init` failed 2 times: AttributeError"),
        ("import os\nos._exit(3)\n", json!({}), "the worker process exited with code 3"),
        (ENTRY, json!({"partition_keys": ["year"]}), "does not say what year is"),
    ] {
        let case = Case::new(&["a"]).with(changes);
        fs::write(case.path("work/entry.py"), entry).unwrap();
        let (well, said) = case.run();
        assert!(!well && said.contains(told), "{said}");
    }
    let empty = Case::new(&[]);
    assert!(empty.run().1.contains("error: the input `d` holds no file"));
    let full = Case::new(&["a"]);
    fs::write(full.path("out.txt"), "earlier").unwrap();
    let (well, said) = full.run();
    assert!(!well && said.contains("`out.txt` is in the output already"), "{said}");
    assert_eq!(fs::read_to_string(full.path("out.txt")).unwrap(), "earlier");
}

#[test]
fn returns_that_are_no_list_fail_their_batch() {
    let case = Case::new(&["a"]).with(json!({"error_threshold": 0, "max_retries": 0}));
    fs::write(case.path("work/entry.py"), "def run(b):\n    return 'text'\n").unwrap();
    let (well, said) = case.run();
    assert!(!well && said.contains("must return a list, a tuple or a DataFrame, not str"), "{said}");
}

#[test]
fn folders_are_partitions() {
    let entry =
        "def run(batch, context):\n    return [str(sorted(context.partition_key_value.items())) + str(len(batch))]\n";
    for folders in [["year=1/kind=a", "year=1/kind=b", "year=2/kind=a"], ["1/a", "1/b", "2/a"]] {
        let case = Case::new(&[]).with(json!({"partition_keys": ["year", "kind"], "error_threshold": 0}));
        for folder in folders {
            fs::create_dir_all(case.path("in").join(folder)).unwrap();
            for name in ["x", "y"] {
                fs::write(case.path("in").join(folder).join(name), "").unwrap();
            }
        }
        fs::write(case.path("work/entry.py"), entry).unwrap();
        let (well, said) = case.run();
        assert!(well, "{said}");
        let expected = [("a", "1"), ("a", "2"), ("b", "1")]
            .map(|(kind, year)| format!("[('kind', '{kind}'), ('year', '{year}')]2"));
        assert_eq!(case.rows(), expected);
    }
}

#[test]
fn rows_come_in_tables_of_about_the_size_asked_for_and_go_back_as_a_table() {
    let Some(python) = with_pandas() else { return };
    let entry = "def run(table, context):\n    table['batch'] = context.minibatch_index\n    return table[['n', 'kind', 'batch']]\n";
    // A row is 4 bytes, and the line of names goes with all of them.
    let case = Case::of_rows(&python, "aabbccddee").with(json!({"mini_batch_size": 15, "error_threshold": 0}));
    let case = case.entry(entry);
    let (well, said) = case.run();
    assert!(well, "{said}");
    let rows: Vec<Vec<String>> = case.rows().iter().map(|row| row.split(',').map(str::to_owned).collect()).collect();
    let numbers: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], "every row once");
    assert_eq!(rows[2][1], "b");
    let batches: std::collections::BTreeSet<&String> = rows.iter().map(|row| &row[2]).collect();
    assert!((3..=5).contains(&batches.len()), "{rows:?}");
    assert!(said.contains("items: 10, 0 failed"), "{said}");
    let short = case.entry("def run(table):\n    return table.head(1)\n");
    fs::remove_file(short.path("out.txt")).unwrap();
    let (well, said) = short.run();
    assert!(!well && said.contains("items failed, and `error_threshold` is 0"), "{said}");
}

#[test]
fn every_row_of_a_partition_that_fails_is_a_failed_item() {
    let Some(python) = with_pandas() else { return };
    // However a partition fails; the last needs time for the others on a busy machine.
    for (fails, threshold, seconds) in
        [("raise ValueError('told to')", 3, 60), ("os.kill(os.getpid(), 11)", 2, 60), ("time.sleep(600)", 2, 25)]
    {
        let entry = format!(
            "import os, time\ndef run(table, context):\n    if context.partition_key_value['kind'] == 'b':\n        {fails}\n    return [f'{{len(table)}} {{sorted(set(table.kind))}}']\n"
        );
        let changes = json!({"partition_keys": ["kind"], "error_threshold": threshold, "timeout": seconds});
        let case = Case::of_rows(&python, "abacbb").with(changes).entry(&entry);
        let (did, said) = case.run();
        assert_eq!(did, threshold == 3, "{fails}: {said}");
        if did {
            assert_eq!(case.rows(), ["1 ['c']", "2 ['a']"]);
            assert!(said.contains("3 of 3 processed, 1 failed; items: 6, 3 failed"), "{said}");
        } else {
            assert!(said.contains("3 items failed, and `error_threshold` is 2"), "{said}");
        }
    }
}

#[test]
fn a_model_of_mlflow_needs_no_script() {
    let Some(python) = with_pandas() else { return };
    let save = "
import sys, mlflow.pyfunc
class Twice(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [2 * n for n in model_input['n']]
mlflow.pyfunc.save_model(sys.argv[1], python_model=Twice(), pip_requirements=[])
";
    let mut case = Case::new(&[]);
    let model = case.path("model");
    let saved = Command::new(&python).args(["-c", save]).arg(&model).current_dir(case.path("work")).output().unwrap();
    assert!(saved.status.success(), "{}", String::from_utf8_lossy(&saved.stderr));
    case.python = python;
    for (name, rows) in [("x.csv", "n\n1\n2\n"), ("y.csv", "n\n5\n")] {
        fs::write(case.path("in").join(name), rows).unwrap();
    }
    let case = case.with(json!({"mlflow": model, "entry": null}));
    let (well, said) = case.run();
    assert!(well, "{said}");
    assert_eq!(case.rows(), ["0,10,y.csv", "0,2,x.csv", "1,4,x.csv"]);
}

#[test]
fn two_nodes_share_the_work_and_strangers_get_none() {
    // Nodes that share a machine share its address, whether it is told once or for each.
    for hosts in ["127.0.0.1", "127.0.0.1,127.0.0.1"] {
        shared_by_two(hosts);
    }
}

fn shared_by_two(hosts: &str) {
    let files: Vec<String> = (0..20).map(|n| format!("f{n:02}")).collect();
    let case = Case::new(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let slow = ENTRY.replace("made = []", "made = []; time.sleep(0.2)");
    fs::write(case.path("work/entry.py"), slow).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let start = |rank: &str, key: &str| {
        case.start(&[
            ("RANK", rank),
            ("WORLD_SIZE", "2"),
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", &port),
            ("PEREGRINE_GANG_KEY", key),
            ("AZ_BATCH_HOST_LIST", hosts),
        ])
    };
    let first = start("0", "secret");
    let mut stranger = start("1", "guess");
    let second = start("1", "secret");
    let (well, said) = told(first.wait_with_output().unwrap());
    assert!(well, "{said}");
    assert!(told(second.wait_with_output().unwrap()).0);
    stranger.kill().unwrap();
    let (_, refused) = told(stranger.wait_with_output().unwrap());
    assert!(refused.contains("AuthenticationError"), "{refused}");
    assert_eq!(case.rows(), files);
    for node in ["127.0.0.1_0", "127.0.0.1_1"] {
        assert!(case.logs(&format!("user/stdout/{node}/")).contains("batch"), "both worked");
    }
}
