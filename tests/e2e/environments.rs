//! Environments on a machine without containers, really built: curated ones, shared builds, failed builds.
//!
//! Builds are named by their content, so the large ones are kept in `~/.cache/peregrine/e2e` from one run to the next;
//! from nothing each is built once, whichever test asks first. Tests about building itself build into their own home.

use crate::harness::{Home, said};
use serde_json::Value;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Curated environments that must build: how files name them, and a line that imports what they are for.
const CURATED: [(&str, &str, &str); 4] = [
    (
        "azureml://registries/azureml/environments/sklearn-1.5/labels/latest",
        "import sklearn; print('sklearn', sklearn.__version__)",
        "sklearn 1.5.",
    ),
    (
        "azureml:AzureML-lightgbm-3.3@latest",
        "import lightgbm; print('lightgbm', lightgbm.__version__)",
        "lightgbm 3.3.",
    ),
    (
        "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/1",
        "import torch; print('torch', torch.__version__, torch.ones(2, 2).sum().item())",
        "torch 2.8.",
    ),
    (
        "azureml:AzureML-tensorflow-2.16-cuda12@latest",
        "import tensorflow as tf; print('tensorflow', tf.__version__, tf.reduce_sum(tf.ones((2, 2))).numpy())",
        "tensorflow 2.16.",
    ),
];

/// The longest that a job in a built environment may take from submit to end, on a machine busy with other tests.
const WARM: Duration = Duration::from_secs(10);

/// A home whose environments and tools are kept between runs.
pub(crate) fn shared_builds() -> Home {
    let home = Home::new();
    keep(&home, "environments");
    keep(&home, "tools");
    home
}

/// A home that builds its own environments; only the build tool is kept.
fn own_builds() -> Home {
    let home = Home::new();
    keep(&home, "tools");
    home
}

fn keep(home: &Home, folder: &str) {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"));
    let kept = cache.join("peregrine/e2e").join(folder);
    fs::create_dir_all(&kept).unwrap();
    fs::create_dir_all(home.home()).unwrap();
    symlink(kept, home.home().join(folder)).unwrap();
}

#[test]
fn curated_environments_are_built_and_import_their_package() {
    let home = shared_builds();
    let jobs: Vec<String> = CURATED
        .iter()
        .enumerate()
        .map(|(at, (environment, line, _))| {
            let file = format!("job-{at}.yml");
            home.file(&file, &format!("command: python -c \"{line}\"\nenvironment: {environment}\n"));
            home.submit(&file)
        })
        .collect();
    for ((environment, _, expected), job) in CURATED.iter().zip(jobs) {
        let streamed = home.run(&["job", "stream", "-n", &job]);
        assert_eq!(streamed.code, Some(0), "{environment}\n{}\n{}", streamed.out, streamed.err);
        assert!(streamed.out.contains(expected), "{environment} printed {:?}", streamed.out);
        let shown = home.job(&job);
        assert_eq!(shown["peregrine"]["isolation"], "venv", "{shown}");
        eprintln!("{environment}: {}", streamed.out.lines().last().unwrap_or_default());
    }
    // What is built is not built again; a command that imports nothing shows what the environment itself costs.
    home.file("warm.yml", &format!("command: echo warm\nenvironment: {}\n", CURATED[0].0));
    let since = Instant::now();
    home.ok(&["job", "create", "-f", "warm.yml", "--stream"]);
    let warm = since.elapsed();
    eprintln!("a job in a built environment took {:.2} s from submit to end", warm.as_secs_f64());
    assert!(warm < WARM, "a warm start took {warm:?}");
}

#[test]
fn two_jobs_at_once_share_one_build_and_its_log_is_streamed() {
    let home = own_builds();
    home.file("job.yml", &job("python -c \"import six; print('six', six.__version__)\"", "six==1.16.0"));
    let (first, second) = (home.submit("job.yml"), home.submit("job.yml"));
    let streamed = home.run(&["job", "stream", "-n", &first]);
    assert_eq!(streamed.code, Some(0), "{}\n{}", streamed.out, streamed.err);
    home.ok(&["job", "stream", "-n", &second]);
    let logs = [&first, &second].map(|job| build_log(&home, job));
    let builds: Vec<&String> = logs.iter().filter(|log| log.contains("built `")).collect();
    assert_eq!(builds.len(), 1, "{logs:#?}");
    assert!(builds[0].contains("+ six==1.16.0"), "{}", builds[0]);
    for job in [&first, &second] {
        assert_eq!(home.log(job), "six 1.16.0\n");
    }
    assert_eq!(finished(&home).len(), 1, "one folder for both");
    // A third job finds it built and has no build log of its own.
    let third = home.submit("job.yml");
    home.ok(&["job", "stream", "-n", &third]);
    assert!(!build_log(&home, &third).contains("built `"));
}

#[test]
fn a_build_is_seen_while_it_runs() {
    let home = own_builds();
    home.file("job.yml", &job("echo done", "six==1.16.0"));
    let streamed = home.run(&["job", "create", "-f", "job.yml", "--stream"]);
    assert_eq!(streamed.code, Some(0), "{}", streamed.err);
    let place = |piece: &str| streamed.err.find(piece).unwrap_or_else(|| panic!("no `{piece}` in\n{}", streamed.err));
    assert!(place("building `") < place("+ six==1.16.0"));
    assert_eq!(streamed.out, "done\n", "the build log is not the job's own output");
}

#[test]
fn a_failed_build_fails_its_jobs_with_the_end_of_its_log_and_leaves_nothing() {
    let home = own_builds();
    home.file("job.yml", &job("echo never", "peregrine-no-such-package==9.9.9"));
    let jobs = [home.submit("job.yml"), home.submit("job.yml")];
    for job in &jobs {
        let streamed = home.run(&["job", "stream", "-n", job]);
        assert_eq!(streamed.code, Some(1), "{}\n{}", streamed.out, streamed.err);
        let failure = home.job(job)["peregrine"]["failure"].clone();
        assert_eq!(failure["code"], "EnvironmentBuildFailed");
        assert!(text(&failure).contains("peregrine-no-such-package"), "{failure}");
        assert_eq!(home.log(job), "", "the command never ran");
    }
    assert!(build_log(&home, &jobs[0]).contains("peregrine-no-such-package"));
    let left: Vec<_> = fs::read_dir(home.home().join("environments")).unwrap().flatten().map(|e| e.path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    // The machine is as well as before.
    home.file("good.yml", &job("echo well", "six==1.16.0"));
    assert_eq!(home.ok(&["job", "create", "-f", "good.yml", "--stream"]), "well\n");
}

#[test]
fn conda_packages_without_conda_are_an_error_that_names_them() {
    let home = own_builds();
    let environment = "environment:\n  conda_file:\n    dependencies:\n    - python=3.10\n    - cudatoolkit=11.8\n    - graphviz\n    \
                       - pip:\n      - six\n";
    home.file("job.yml", &format!("command: echo never\n{environment}"));
    let mut create = home.command(&["job", "create", "-f", "job.yml", "--stream"]);
    let created = said(create.env("PATH", path_without_conda()).output().unwrap());
    assert_eq!(created.code, Some(1), "{}\n{}", created.out, created.err);
    for piece in ["`cudatoolkit=11.8`", "`graphviz`", "micromamba"] {
        assert!(created.err.contains(piece), "no {piece} in\n{}", created.err);
    }
    assert!(finished(&home).is_empty());
}

fn job(command: &str, requirement: &str) -> String {
    format!(
        "command: {command}\nenvironment:\n  conda_file:\n    dependencies:\n    - python=3.10\n    - pip:\n      - {requirement}\n"
    )
}

fn build_log(home: &Home, job: &str) -> String {
    fs::read_to_string(home.artifacts(job).join("system_logs/environment.log")).unwrap_or_default()
}

/// Everything a failure tells, in one text.
fn text(failure: &Value) -> String {
    ["message", "last_lines"].map(|key| failure[key].as_str().unwrap_or_default()).join("\n")
}

/// The environments that are ready for use in this home.
fn finished(home: &Home) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.home().join("environments")).map(|entries| entries.flatten().collect::<Vec<_>>());
    entries.unwrap_or_default().iter().map(fs::DirEntry::path).filter(|path| path.join("ok").is_file()).collect()
}

fn path_without_conda() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap();
    let holds_conda = |folder: &Path| ["conda", "mamba", "micromamba"].iter().any(|name| folder.join(name).exists());
    std::env::join_paths(std::env::split_paths(&path).filter(|folder| !holds_conda(folder))).unwrap()
}
