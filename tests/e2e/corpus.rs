//! Files that users have: each is checked by the real command line, and those that can run here do run.
//!
//! The corpus is beside the checkout and no part of it; where it is missing the tests say so and pass.

mod kinds;
mod runs;

use crate::{
    environments::shared_builds,
    harness::{Home, some_of},
};
use runs::{Beside, RUNS, Run};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Kinds of files that have a noun here, and how many of each must be accepted at least. The others are templates
/// whose blanks are still to be filled in.
const KINDS: [(&str, &str, usize); 5] = [
    ("commandJob", "job", 33),
    ("environment", "environment", 8),
    ("data", "data", 18),
    ("model", "model", 2),
    ("datastore", "datastore", 0),
];

/// What files name and the corpus defines: noun, file, files of ours beside it.
type Assets = &'static [(&'static str, &'static str, Beside)];

const ASSETS: Assets = &[
    ("data", "cli/jobs/pipelines-with-components/basics/4d_data_input/data.yml", &[("data/sample.csv", "a,b\n1,2\n")]),
    (
        "environment",
        "best-practices/largescale-deep-learning/Training/Bert-Pretrain/src/environment/env.yml",
        &[("context/Dockerfile", "FROM python:3.12-slim\n")],
    ),
    (
        "environment",
        "best-practices/largescale-deep-learning/Training/Bloom-Pretrain/src/environment/env.yml",
        &[("context/Dockerfile", "FROM python:3.12-slim\n")],
    ),
];

/// Papermill and pygit2, for the jobs that would install them as they go.
const NOTEBOOKS: &str = "name: notebooks\nconda_file:\n  dependencies:\n  - python=3.10\n  - pip:\n    \
                         - ipykernel\n    - papermill\n    - pygit2\n";

/// Puts the sample data where jobs of the corpus look for it: into the workspace's own store.
const FILL: &str = "command: cp iris.csv ${{outputs.data}}/iris.csv\ncode: iris\nenvironment:\n  image: python:3.12-slim\n\
                    outputs:\n  data:\n    path: azureml://datastores/workspaceblobstore/paths/example-data/\n";

/// An MLflow model that asks for nothing but MLflow.
pub(crate) const MLMODEL: &str = "flavors:\n  python_function:\n    loader_module: twice\n    code: code\n    data: data\n    \
                       python_version: 3.12.0\n    env: {conda: conda.yaml}\nmlflow_version: 3.0.0\nmodel_uuid: 0a0b0c0d\n";
pub(crate) const TWICE: &str = include_str!("serving/scripts/twice.py");

#[test]
fn every_file_of_the_corpus_is_accepted_or_refused_with_its_place() {
    let Some(corpus) = corpus() else { return };
    let home = Home::new();
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (path, kind) in index(&corpus) {
        let Some((name, noun, _)) = KINDS.iter().find(|(name, ..)| kind.split(['(', '/']).next() == Some(name)) else {
            continue;
        };
        let file = corpus.join(&path).display().to_string();
        let said = home.run(&[noun, "validate", "--spec-only", "-f", &file]);
        let count = counts.entry(name).or_default();
        count.0 += 1;
        match said.code {
            Some(0) => count.1 += 1,
            Some(2) => {
                assert!(said.err.contains(&format!("{file}:")), "{path} is refused without a place:\n{}", said.err);
                eprintln!("refused: {path}\n{}", said.err);
            }
            code => panic!("{path}: exit code {code:?}\n{}", said.err),
        }
    }
    for (kind, _, least) in KINDS {
        let (files, accepted) = counts.get(kind).copied().unwrap_or_default();
        eprintln!("{kind}: {accepted} of {files} accepted");
        assert!(files > 0 && accepted >= least, "{kind}: only {accepted} of {files} accepted");
    }
}

#[test]
fn every_job_that_needs_neither_internet_nor_gpu_runs_and_leaves_what_it_should() {
    let Some(corpus) = corpus() else { return };
    let home = shared_builds();
    make_assets(&home, &corpus);
    let jobs: Vec<(&Run, String)> = some_of(RUNS).into_iter().map(|run| (run, submit(&home, &corpus, run))).collect();
    let mut wrong = Vec::new();
    for (run, job) in &jobs {
        match outcome(&home, run, job) {
            Ok(()) => eprintln!("ran: {} (with {})", run.file, run.software),
            Err(why) => wrong.push(format!("{} ({job}): {why}", run.file)),
        }
    }
    assert!(wrong.is_empty(), "{} of {} failed\n{}", wrong.len(), jobs.len(), wrong.join("\n"));
    every_job_is_listed(&corpus);
    eprintln!("{} jobs of the corpus ran", jobs.len());
}

/// None may be forgotten: whatever the index calls a command job has a run.
fn every_job_is_listed(corpus: &Path) {
    let jobs = index(corpus).into_iter().filter(|(_, kind)| kind.starts_with("commandJob"));
    let forgotten: Vec<String> =
        jobs.map(|(path, _)| path).filter(|path| !RUNS.iter().any(|run| run.file == path)).collect();
    assert!(forgotten.is_empty(), "no run for: {forgotten:#?}");
}

fn create(home: &Home, corpus: &Path, assets: Assets) {
    for (noun, file, beside) in assets {
        let copy = copy(home, corpus, file, beside);
        home.ok(&[noun, "create", "-f", &copy, "-o", "none"]);
    }
}

fn make_assets(home: &Home, corpus: &Path) {
    create(home, corpus, ASSETS);
    home.file("notebooks.yml", NOTEBOOKS);
    home.ok(&["environment", "create", "-f", "notebooks.yml", "-o", "none"]);
    home.file("cifar/batch-1", "pixels\n");
    home.ok(&["data", "create", "-n", "cifar-10-example", "--path", "cifar", "--type", "uri_folder", "-o", "none"]);
    home.file("iris/iris.csv", runs::IRIS);
    let sampledata =
        copy(home, corpus, "cli/assets/data/local-folder-sampledata.yml", &[("example-data/iris.csv", runs::IRIS)]);
    home.ok(&["data", "create", "-f", &sampledata, "-n", "sampledata", "-o", "none"]);
    let bloom = home.path().join("bloom");
    fs::create_dir_all(&bloom).unwrap();
    home.file("bloom.yml", &format!("name: bloomdatastore\ntype: local\npath: {}\n", bloom.display()));
    home.ok(&["datastore", "create", "-f", "bloom.yml", "-o", "none"]);
    home.file("fill.yml", FILL);
    home.ok(&["job", "create", "-f", "fill.yml", "--stream"]);
}

fn submit(home: &Home, corpus: &Path, run: &Run) -> String {
    let file = copy(home, corpus, run.file, run.beside);
    let mut args = vec!["job", "create", "-f", &file, "--set", "compute=local"];
    args.extend(run.sets.iter().flat_map(|set| ["--set", set]));
    home.json(&args)["name"].as_str().unwrap().to_owned()
}

/// The file at its own path below the test's folder, with ours beside it.
pub(crate) fn copy(home: &Home, corpus: &Path, file: &str, beside: &[(&str, &str)]) -> String {
    let folder = Path::new("corpus").join(file).parent().unwrap().to_owned();
    for (name, text) in beside {
        home.file(&plain(&folder.join(name)), text);
    }
    let text = fs::read_to_string(corpus.join(file)).unwrap();
    home.file(&plain(&Path::new("corpus").join(file)), &text).display().to_string()
}

/// The path without its `..`.
fn plain(path: &Path) -> String {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out.display().to_string()
}

/// Fills in the blanks that a file leaves to its user.
pub(crate) fn fill(file: &str, blanks: &[(&str, &str)]) {
    let text = fs::read_to_string(file).unwrap();
    fs::write(file, blanks.iter().fold(text, |text, (blank, word)| text.replace(blank, word))).unwrap();
}

/// Waits for a job and compares what it said and left with what it should have.
fn outcome(home: &Home, run: &Run, job: &str) -> Result<(), String> {
    let streamed = home.run(&["job", "stream", "-n", job]);
    if streamed.code != Some(0) {
        return Err(format!("it did not complete\n{}\n{}", streamed.out, streamed.err));
    }
    let to = home.path().join("downloads").join(job);
    let downloaded = home.run(&["job", "download", "-n", job, "--all", "-p", &to.display().to_string()]);
    if downloaded.code != Some(0) {
        return Err(format!("its files cannot be had\n{}", downloaded.err));
    }
    let log = logs(home, job, &to.join("artifacts/user_logs"));
    if let Some(missing) = run.log.iter().find(|piece| !log.contains(**piece)) {
        return Err(format!("its log has no `{missing}`\n{log}"));
    }
    for (path, piece) in run.leaves {
        let bytes = fs::read(to.join(path)).map_err(|error| format!("it left no `{path}`: {error}"))?;
        if !String::from_utf8_lossy(&bytes).contains(piece) {
            return Err(format!("`{path}` has no `{piece}`"));
        }
    }
    Ok(())
}

/// What a job said, from its folder of logs; of one that has none, what its steps said.
fn logs(home: &Home, job: &str, folder: &Path) -> String {
    if let Ok(own) = fs::read_dir(folder) {
        return own.flatten().map(|log| fs::read_to_string(log.path()).unwrap_or_default()).collect();
    }
    let steps = home.json(&["job", "list", "--parent", job]);
    steps.as_array().unwrap().iter().map(|step| home.log(step["name"].as_str().unwrap())).collect()
}

/// The corpus beside the checkout; says so aloud where there is none.
pub(crate) fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.join("INDEX.csv").is_file() {
        return Some(path.canonicalize().unwrap());
    }
    crate::skip::note(&format!("no files that users have: there is no corpus at {}", path.display()));
    None
}

/// Path and kind of every file. Neither holds a comma, so the notes behind them need not be read.
pub(crate) fn index(corpus: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(corpus.join("INDEX.csv")).unwrap();
    let row = |line: &str| {
        let mut fields = line.splitn(3, ',');
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    };
    text.lines().skip(1).filter_map(row).collect()
}
