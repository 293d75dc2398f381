//! Commands that fail, vanish, outlive their parents or never stop talking.

use crate::harness::{Home, is_long, processes_with};
use std::{fs, io::Read, process::Stdio};

#[test]
fn each_way_to_fail_is_told_apart() {
    let home = Home::new();
    for (command, words) in [
        ("no-such-program --now", &["the program `no-such-program` was not found"][..]),
        ("no-such-program --now; exit 3", &["exited with code 3", "no-such-program: command not found"]),
        ("echo last words >&2; exit 7", &["exited with code 7", "last words"]),
        ("kill -KILL $$", &["signal 9 (SIGKILL)", "out of memory"]),
        ("kill -SEGV $$", &["signal 11 (SIGSEGV)"]),
    ] {
        let said = home.stream(command, "");
        said.must(1, words);
        said.must(1, &["peregrine job why -n "]);
    }
    let newest = home.json(&["job", "list", "-r", "1"])[0].clone();
    assert_eq!(newest["status"], "Failed");
    assert_eq!(newest["peregrine"]["failure"]["signal"], 11);
    home.is_well();
}

#[test]
fn a_child_that_outlives_its_parent_ends_with_the_job() {
    let home = Home::new();
    let secret = |n: u32| format!("86{}.{n}", std::process::id());
    for (n, escape) in ["setsid", "nohup", "env -i setsid", "trap '' TERM; setsid"].into_iter().enumerate() {
        let long = secret(u32::try_from(n).unwrap());
        let said = home.stream(
            &format!("({escape} sleep {long} >/dev/null 2>&1 &)\nwhile ! pgrep -f 'sleep {long}'; do :; done"),
            "",
        );
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(processes_with(&format!("sleep {long}")), [], "{escape}");
    }
    home.is_well();
}

#[test]
fn the_children_of_one_job_do_not_end_with_another() {
    let home = Home::new();
    let gate = home.path().join("gate");
    let waits = format!(
        "(setsid sh -c 'until [ -e {0} ]; do sleep 0.05; done; echo through > {0}.done' &)\nuntil [ -e {0}.done ]; do sleep 0.05; done",
        gate.display()
    );
    home.begin("waiting", &waits, "");
    home.until_status("waiting", "Running");
    let left = format!("env -i setsid sleep 87{} >/dev/null 2>&1 &\nsleep 0.2", std::process::id());
    assert_eq!(home.stream(&left, "").code, Some(0));
    assert_eq!(processes_with(&format!("sleep 87{}", std::process::id())), []);
    fs::write(&gate, "").unwrap();
    assert_eq!(home.ended("waiting")["status"], "Completed");
}

#[test]
fn a_very_long_line_passes_through_flat_memory() {
    let home = Home::new();
    home.is_well();
    let mib: usize = if is_long() { 1024 } else { 200 };
    let before = (memory(&home, "server"), memory(&home, "agent"));
    home.job_file("long.yml", &format!("head -c {mib}M /dev/zero | tr '\\0' x"), "");
    let mut stream = home.command(&["job", "create", "-f", "long.yml", "-n", "long", "--stream"]);
    let mut child = stream.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut seen, mut piece, mut client) = (0, vec![0_u8; 1 << 20], 0);
    loop {
        let n = out.read(&mut piece).unwrap();
        assert!(piece[..n].iter().all(|byte| *byte == b'x'));
        // Near the end, while the process is still there to be asked.
        if seen < (mib - 8) << 20 && seen + n >= (mib - 8) << 20 {
            client = peak(child.id().cast_signed());
        }
        seen += n;
        if n == 0 {
            break;
        }
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(seen, mib << 20);
    let stored = home.artifacts("long").join("user_logs/std_log.txt");
    assert_eq!(fs::metadata(stored).unwrap().len(), (mib as u64) << 20);
    let after = (memory(&home, "server"), memory(&home, "agent"));
    eprintln!(
        "{mib} MiB in one line; peak KiB of server and agent before {before:?}, after {after:?}, of the client {client}"
    );
    assert!(after.0 < before.0 + (48 << 10) && after.1 < before.1 + (16 << 10), "{before:?} {after:?}");
    assert!((1..96 << 10).contains(&client), "{client}");
    home.is_well();
}

fn memory(home: &Home, role: &str) -> u64 {
    peak(home.pid(role).unwrap())
}

/// The most memory a process has had, in KiB.
fn peak(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
