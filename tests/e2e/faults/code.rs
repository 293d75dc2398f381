//! Code folders with things in them that are no code.

use super::root;
use crate::harness::{Home, Said, binary, is_long, said};
use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    process::Command,
    time::Instant,
};

/// The user that owns nothing.
const NOBODY: &str = "65534";

#[test]
fn sockets_pipes_and_links_to_nowhere_are_left_out_with_a_notice() {
    let home = Home::new();
    home.file("code/sub/a.txt", "a");
    let code = home.path().join("code");
    let _socket = UnixListener::bind(code.join("socket")).unwrap();
    assert!(Command::new("mkfifo").arg(code.join("pipe")).status().unwrap().success());
    symlink("..", code.join("sub/loop")).unwrap();
    symlink("self", code.join("self")).unwrap();
    symlink("/etc", code.join("etc")).unwrap();
    symlink("sub/a.txt", code.join("b.txt")).unwrap();
    let said = home.stream("find . -type f | sort; cat b.txt", "code: code");
    said.must(
        0,
        &["left out `socket`", "left out `pipe`", "left out `sub/loop`", "left out `self`", "left out `etc`", "`/etc`"],
    );
    assert_eq!(said.out, "./b.txt\n./sub/a.txt\na");
}

#[test]
fn a_folder_with_nothing_to_upload_is_refused() {
    let home = Home::new();
    fs::create_dir(home.path().join("code")).unwrap();
    home.stream("ls", "code: code").must(2, &["`code`", "the folder is empty"]);
    home.is_well();
}

#[test]
fn what_may_not_be_read_is_named() {
    if !root("what_may_not_be_read_is_named") {
        return;
    }
    let home = Home::new();
    home.file("code/a.txt", "a");
    home.file("code/locked/b.txt", "b");
    fs::create_dir(home.home()).unwrap();
    let owned = Command::new("chown").arg("-R").arg(format!("{NOBODY}:{NOBODY}")).arg(home.path()).status().unwrap();
    assert!(owned.success());
    home.job_file("job.yml", "cat a.txt", "code: code");
    for (mode, path) in [("000", "code/locked"), ("000", "code/a.txt")] {
        chmod(mode, &home.path().join(path));
        as_nobody(&home, &["job", "create", "-f", "job.yml"])
            .must(2, &[path, "permission is denied", "make it readable", ".amlignore"]);
        chmod("755", &home.path().join(path));
    }
    as_nobody(&home, &["job", "create", "-f", "job.yml", "--stream"]).must(0, &["completed"]);
    chmod("700", &home.home());
    let other = Home::new();
    let mut command = other.command(&["job", "list"]);
    command.env("PEREGRINE_HOME", "/root/none-of-yours/home");
    as_user(&other, command).must(2, &["/root/none-of-yours/home", "permission is denied"]);
}

#[test]
fn a_folder_of_very_many_files_arrives_whole() {
    let home = Home::new();
    let folders = if is_long() { 500 } else { 25 };
    for folder in 0..folders {
        let at = home.path().join(format!("code/d{folder}"));
        fs::create_dir_all(&at).unwrap();
        (0..200).for_each(|file| fs::write(at.join(file.to_string()), format!("{folder}/{file}")).unwrap());
    }
    let started = Instant::now();
    let said = home.stream("find . -type f | wc -l; cat d7/199", "code: code");
    assert_eq!((said.code, said.out), (Some(0), format!("{}\n7/199", folders * 200)), "{}", said.err);
    let (first, again) = (started.elapsed(), Instant::now());
    home.stream("cat d7/199", "code: code").must(0, &["completed"]);
    eprintln!(
        "{} files: {first:.1?} the first time, {:.1?} when they are there already",
        folders * 200,
        again.elapsed()
    );
}

fn chmod(mode: &str, path: &Path) {
    assert!(Command::new("chmod").arg(mode).arg(path).status().unwrap().success());
}

fn as_nobody(home: &Home, args: &[&str]) -> Said {
    as_user(home, home.command(args))
}

/// Runs a command of ours as a user that is not root.
fn as_user(home: &Home, ours: Command) -> Said {
    // The binary may lie where only root can reach it.
    let program = home.path().join("peregrine");
    if !program.exists() {
        fs::copy(binary(), &program).unwrap();
        chmod("755", &program);
    }
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]).arg(&program);
    command.args(ours.get_args()).current_dir(home.path()).env("HOME", home.path());
    for (name, value) in ours.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    chmod("755", home.path());
    said(command.output().unwrap())
}
