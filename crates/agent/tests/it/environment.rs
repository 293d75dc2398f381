//! Environments really built on this machine, from the package index it is configured for.

use agent::{
    container::{Engine, Kind},
    environment::{Environments, Error, Log, Ready},
};
use domain::EnvironmentPlan;
use futures_util::future::join_all;
use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};
use tokio::sync::Notify;

/// Remembers the lines and rings at each.
#[derive(Default)]
pub(crate) struct Heard {
    lines: Mutex<Vec<String>>,
    bell: Notify,
}

impl Log for Heard {
    fn line(&self, text: &str) {
        self.lines.lock().unwrap().push(text.to_owned());
        self.bell.notify_one();
    }
}

impl Heard {
    fn count(&self, start: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|line| line.starts_with(start)).count()
    }
}

/// A home whose tools are kept between test runs, so that uv is installed once.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let tools = PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/peregrine/tools/agent-1");
    fs::create_dir_all(&tools).unwrap();
    symlink(tools, home.path().join("tools")).unwrap();
    home
}

fn pip(lines: &[&str]) -> EnvironmentPlan {
    let pip = lines.iter().map(|line| (*line).to_owned()).collect();
    EnvironmentPlan { label: "it:1".to_owned(), pip, ..EnvironmentPlan::default() }
}

fn conda(text: &str) -> EnvironmentPlan {
    EnvironmentPlan { conda: Some(text.to_owned()), ..pip(&[]) }
}

fn image(reference: &str) -> EnvironmentPlan {
    EnvironmentPlan { image: Some(reference.to_owned()), ..pip(&[]) }
}

fn python(ready: &Ready, script: &str) -> String {
    let output = Command::new(ready.path_first[0].join("python")).args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn left_in(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home.join("environments")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Only the host's Python, under its plain name.
fn bare_path(folder: &Path) -> OsString {
    let real = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    program(folder, "python3", &format!("exec {} \"$@\"", String::from_utf8(real.stdout).unwrap().trim()));
    folder.into()
}

#[tokio::test]
async fn packages_are_there_once_built_and_found_again_when_warm() {
    let home = home();
    let (cold, warm) = (Heard::default(), Heard::default());
    let plan = pip(&["six==1.16.0"]);
    let ready = Environments::new(home.path()).prepare(&plan, None, false, &cold).await.unwrap();
    assert_eq!(python(&ready, "import six; print(six.__version__)"), "1.16.0");
    assert_eq!((ready.isolation, ready.notices.len()), ("venv", 0));
    assert!(Path::new(&ready.variables["VIRTUAL_ENV"]).starts_with(home.path()));
    assert!(ready.path_first[0].join("pip").exists(), "a command's own `pip install` must not reach the host");
    assert_eq!((cold.count("building"), cold.count("built")), (1, 1));

    let again = Environments::new(home.path()).prepare(&plan, None, false, &warm).await.unwrap();
    assert_eq!(again, ready);
    assert_eq!(warm.lines.into_inner().unwrap(), Vec::<String>::new());
    assert_eq!(left_in(home.path()).len(), 1);
}

#[tokio::test]
async fn callers_at_once_share_one_build() {
    let home = home();
    // Two of them share a process's memory, the other two only the disk.
    let (one, other) = (Environments::new(home.path()), Environments::new(home.path()));
    let logs: Vec<Heard> = (0..4).map(|_| Heard::default()).collect();
    let plan = pip(&["six"]);
    let all =
        logs.iter().enumerate().map(|(i, log)| if i % 2 == 0 { &one } else { &other }.prepare(&plan, None, false, log));
    let ready: Vec<Ready> = join_all(all).await.into_iter().map(Result::unwrap).collect();
    assert!(ready.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(logs.iter().map(|log| log.count("building")).sum::<usize>(), 1);
    assert_eq!(logs.iter().map(|log| log.count("waiting for the build of `it:1` by another job")).sum::<usize>(), 3);
    assert_eq!(left_in(home.path()).len(), 1);
}

#[tokio::test]
async fn a_failed_build_is_told_to_all_and_leaves_nothing() {
    let home = home();
    let environments = Environments::new(home.path());
    let logs = [Heard::default(), Heard::default(), Heard::default()];
    let plan = pip(&["no-such-package-peregrine==1"]);
    for result in join_all(logs.iter().map(|log| environments.prepare(&plan, None, false, log))).await {
        let error = result.unwrap_err();
        assert_eq!(error.to_string(), "environment `it:1` cannot be built");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("no-such-package-peregrine"), "{cause}");
    }
    assert_eq!(logs.iter().map(|log| log.count("building")).sum::<usize>(), 1);
    assert_eq!(left_in(home.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn an_abandoned_build_leaves_nothing_and_the_next_one_succeeds() {
    let home = home();
    let environments = Environments::new(home.path());
    let plan = pip(&["six"]);
    let log = Heard::default();
    tokio::select! {
        _ = environments.prepare(&plan, None, false, &log) => panic!("it should not have been so quick"),
        () = async { while log.count("using Python") == 0 { log.bell.notified().await } } => {}
    }
    assert!(left_in(home.path()).iter().all(|path| !path.join("ok").exists()));
    environments.prepare(&plan, None, false, &log).await.unwrap();
    assert_eq!(left_in(home.path()).len(), 1);
}

#[tokio::test]
async fn what_a_killed_agent_left_is_swept_and_never_used() {
    let home = home();
    let environments = Environments::new(home.path());
    let plan = pip(&["six"]);
    environments.prepare(&plan, None, false, &Heard::default()).await.unwrap();
    let made = left_in(home.path()).remove(0);
    fs::remove_file(made.join("ok")).unwrap();
    fs::write(made.join("stale"), "").unwrap();
    environments.prepare(&plan, None, false, &Heard::default()).await.unwrap();
    assert!(made.join("ok").exists() && !made.join("stale").exists());
    fs::create_dir(home.path().join("environments/half")).unwrap();
    environments.sweep();
    assert_eq!(left_in(home.path()), [made]);
}

#[tokio::test]
async fn the_python_that_was_asked_for_is_used_or_its_absence_noticed() {
    let home = home();
    let environments = Environments::new(home.path());
    let text = "dependencies:\n- python=3.99\n- pip:\n  - six\n";
    let ready = environments.prepare(&conda(text), None, false, &Heard::default()).await.unwrap();
    let version = python(&ready, "import six, sys; print('%d.%d.%d' % sys.version_info[:3])");
    let notice = format!("asked for Python 3.99, which is not on this machine; using {version}");
    assert_eq!(ready.notices, [notice]);

    let asked = EnvironmentPlan { python: Some("3.10".to_owned()), ..pip(&[]) };
    let ready = environments.prepare(&asked, None, false, &Heard::default()).await.unwrap();
    let version = python(&ready, "import sys; print('%d.%d' % sys.version_info[:2])");
    assert_eq!(version == "3.10", ready.notices.is_empty(), "{version} {:?}", ready.notices);
}

#[tokio::test]
async fn without_uv_pip_does_it() {
    let home = tempfile::tempdir().unwrap();
    // Nothing can be installed below a file.
    fs::write(home.path().join("tools"), "").unwrap();
    let environments = Environments::with_host(home.path(), bare_path(&home.path().join("bin")), None);
    let log = Heard::default();
    let ready = environments.prepare(&pip(&["six==1.16.0"]), None, false, &log).await.unwrap();
    assert_eq!(python(&ready, "import six; print(six.__version__)"), "1.16.0");
    assert_eq!(log.count("uv cannot be installed"), 1);
}

#[tokio::test]
async fn a_machine_without_python_says_so() {
    let home = tempfile::tempdir().unwrap();
    let environments = Environments::with_host(home.path(), "/no/such/folder".into(), None);
    let error = environments.prepare(&pip(&["six"]), None, false, &Heard::default()).await.unwrap_err();
    assert!(error.to_string().starts_with("no Python 3 on this machine (next step: install"), "{error}");
}

const WITH_CONDA: &str = "dependencies:\n- python=3.10\n- numpy=1.26\n- cudatoolkit\n- pip:\n  - six\n";

#[tokio::test]
async fn conda_packages_without_conda_are_named() {
    let home = home();
    let environments = Environments::with_host(home.path(), bare_path(&home.path().join("bin")), None);
    let error = environments.prepare(&conda(WITH_CONDA), None, false, &Heard::default()).await.unwrap_err();
    assert!(error.to_string().contains("`numpy=1.26`, `cudatoolkit`"), "{error}");
    assert!(error.to_string().contains("move them to `pip:`"), "{error}");
    assert_eq!(left_in(home.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn conda_packages_go_to_the_conda_there_is() {
    let home = home();
    let bin = home.path().join("bin");
    program(
        &bin,
        "micromamba",
        "echo $@; [ \"$1 $3\" = 'create --prefix' ] && /bin/grep -q cudatoolkit $6 && /bin/mkdir -p $4/bin",
    );
    let environments = Environments::with_host(home.path(), bin.into(), None);
    let ready = environments.prepare(&conda(WITH_CONDA), None, false, &Heard::default()).await.unwrap();
    assert!(ready.path_first[0].is_dir());
    assert_eq!(ready.variables["CONDA_PREFIX"], ready.path_first[0].parent().unwrap().display().to_string());
}

#[tokio::test]
async fn an_image_without_an_engine_runs_on_the_host_and_says_so() {
    let home = home();
    let environments = Environments::with_host(home.path(), std::env::var_os("PATH").unwrap(), None);
    let prepare =
        async |plan: &EnvironmentPlan, required| environments.prepare(plan, None, required, &Heard::default()).await;

    let ready = prepare(&image("ubuntu:24.04"), false).await.unwrap();
    assert_eq!((ready.isolation, ready.image), ("none", None));
    assert!(ready.notices[0].contains("running `image` jobs in the host environment (isolation: none)"));
    let base = prepare(&image("mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"), false).await.unwrap();
    assert!(base.isolation == "none" && base.notices[0].contains("plain Python"), "{base:?}");
    let both = EnvironmentPlan { pip: vec!["six".to_owned()], ..image("ubuntu:24.04") };
    assert_eq!(prepare(&both, false).await.unwrap().isolation, "venv");

    assert!(matches!(prepare(&image("ubuntu:24.04"), true).await, Err(Error::NoEngine)));
    assert!(matches!(prepare(&pip(&["six"]), true).await, Err(Error::NoImage { .. })));
    let nothing = prepare(&pip(&[]), false).await.unwrap();
    assert_eq!((nothing.isolation, nothing.notices.len(), nothing.variables.len()), ("none", 0, 0));
}

#[tokio::test]
async fn a_host_with_only_python3_still_has_python() {
    let home = tempfile::tempdir().unwrap();
    let environments = Environments::with_host(home.path(), bare_path(&home.path().join("bin")), None);
    let ready = environments.prepare(&pip(&[]), None, false, &Heard::default()).await.unwrap();
    assert_eq!(python(&ready, "print(1)"), "1");
}

#[tokio::test]
async fn an_image_with_an_engine_is_a_container() {
    let home = tempfile::tempdir().unwrap();
    let calls = home.path().join("calls");
    let script = format!("echo \"$@\" >> {}; [ \"$1\" != image ]", calls.display());
    let engine = Engine { kind: Kind::Podman, program: program(&home.path().join("bin"), "podman", &script) };
    let environments = Environments::with_host(home.path(), "/usr/bin:/bin".into(), Some(engine));
    let plan = EnvironmentPlan { pip: vec!["six".to_owned()], ..image("ubuntu:24.04") };
    let ready = environments.prepare(&plan, None, true, &Heard::default()).await.unwrap();
    assert_eq!(ready.isolation, "container");
    assert!(ready.image.unwrap().reference.starts_with("localhost/peregrine/environment:"));
    let calls = fs::read_to_string(calls).unwrap();
    assert!(calls.contains("pull ubuntu:24.04\n") && calls.contains("\nbuild --tag"), "{calls}");
    assert_eq!(left_in(home.path()), Vec::<PathBuf>::new());
}
