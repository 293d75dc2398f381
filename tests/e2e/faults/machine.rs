//! Faults of the machine: a full disk, a taken port, no Python.

use super::root;
use crate::harness::Home;
use std::{
    fs,
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

/// A small disk at a folder, gone with this value.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn at(folder: &Path) -> Option<SmallDisk> {
        fs::create_dir_all(folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"]).arg(folder);
        mount.status().is_ok_and(|done| done.success()).then(|| SmallDisk(folder.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: what still runs there ends with the home.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn on_a_full_disk_submits_are_refused_until_there_is_room() {
    if !root("on_a_full_disk_submits_are_refused_until_there_is_room") {
        return;
    }
    let home = Home::new();
    let Some(_disk) = SmallDisk::at(&home.home()) else {
        return eprintln!("SKIPPED: on_a_full_disk_submits_are_refused_until_there_is_room: no tmpfs may be mounted");
    };
    home.is_well();
    let server = home.pid("server");
    let filler = home.home().join("filler");
    let _until_full = fs::write(&filler, vec![1_u8; 32 << 20]);
    home.job_file("job.yml", "echo hi", "");
    for _ in 0..3 {
        let refused = home.run(&["job", "create", "-f", "job.yml"]);
        refused.must(5, &["cannot submit", "disk is full", "nothing was changed", "free some space"]);
    }
    home.file("code/large", &"x".repeat(4 << 20));
    home.stream("ls", "code: code").must(5, &["cannot upload", "disk is full", "free some space"]);
    assert_eq!(home.json(&["job", "list"]).as_array().unwrap().len(), 1, "reading goes on");
    fs::remove_file(filler).unwrap();
    home.is_well();
    assert_eq!(home.pid("server"), server, "it is the same server all along");
}

#[test]
fn a_job_that_fills_the_disk_fails_and_makes_room_again() {
    if !root("a_job_that_fills_the_disk_fails_and_makes_room_again") {
        return;
    }
    let home = Home::new();
    let Some(_disk) = SmallDisk::at(&home.home()) else {
        return eprintln!("SKIPPED: a_job_that_fills_the_disk_fails_and_makes_room_again: no tmpfs may be mounted");
    };
    home.is_well();
    let said = home.stream("head -c 64M /dev/zero > outputs/large || exit 9", "");
    said.must(1, &["exited with code 9"]);
    home.is_well();
}

#[test]
fn a_chosen_port_that_is_taken_is_an_error_and_the_usual_one_is_not() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let words = [address.as_str(), "in use", "choose another address with `--listen`"];
    home.run(&["server", "start", "--listen", &address]).must(2, &words);
    home.run(&["server", "start", "--foreground", "--listen", &address]).must(2, &words);
    home.run(&["server", "start", "--http", &address]).must(2, &words[..2]);
    // Someone else's if not ours; taken either way.
    let _usual = TcpListener::bind("127.0.0.1:7423");
    home.is_well();
    let url = home.json(&["server", "status"])["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("https://127.0.0.1:") && !url.ends_with(":7423"), "{url}");
}

#[test]
fn without_python_only_what_needs_it_fails() {
    let home = Home::new();
    for program in ["bash", "sh", "env", "cat", "echo", "sleep"] {
        let real = ["/usr/bin", "/bin"].iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists());
        fs::create_dir_all(home.path().join("bin")).unwrap();
        symlink(real.unwrap(), home.path().join("bin").join(program)).unwrap();
    }
    let run = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("PATH", home.path().join("bin")).env("HOME", home.path()).env_remove("PYENV_ROOT");
        crate::harness::said(command.output().unwrap())
    };
    home.job_file("script.yml", "python train.py", "");
    run(&["job", "create", "-f", "script.yml", "--stream"]).must(1, &["the program `python` was not found"]);
    let conda =
        "environment: {image: 'python:3.12-slim', conda_file: {dependencies: [python=3.11, pip, {pip: [six]}]}}";
    home.file("packages.yml", &format!("command: echo hi\n{conda}\n"));
    let failed = run(&["job", "create", "-f", "packages.yml", "--stream"]);
    failed.must(1, &["environment `inline`", "no Python", "install Python 3"]);
    let doctor = run(&["doctor", "-o", "table"]);
    assert!(doctor.out.contains("no Python 3 on the PATH"), "{}", doctor.out);
    home.is_well();
}
