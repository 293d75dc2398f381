//! Groups on this machine, with real processes. Where none may be made the tests say so and pass.

use super::*;
use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
};

const MIB: u64 = 1 << 20;

fn group(name: &str, limits: Resources) -> Option<Cgroup> {
    match Cgroup::create(&format!("test-{name}-{}", std::process::id()), &limits) {
        Ok(group) => Some(group),
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            None
        }
    }
}

fn joined(group: &Cgroup, script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    let join: String = group.join_files().iter().map(|file| format!("echo 0 > {}; ", file.display())).collect();
    command.arg("-c").arg(format!("{join}{script}")).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
fn a_child_over_its_memory_is_killed_and_told_apart() {
    let Some(group) = group("oom", Resources { cpu_milli: 0, memory_bytes: 24 * MIB, gpus: 0 }) else { return };
    assert!(!group.oom_killed());
    let status = joined(&group, "exec dd if=/dev/zero of=/dev/null bs=200M count=1").status().unwrap();
    assert_eq!(status.signal(), Some(9), "{status:?}");
    assert!(group.oom_killed());
    group.remove().unwrap();
    assert!(!group.folders.iter().any(|folder| folder.exists()));
}

#[test]
fn a_child_within_its_limits_is_left_alone() {
    let Some(group) = group("ok", Resources { cpu_milli: 500, memory_bytes: 64 * MIB, gpus: 0 }) else { return };
    assert!(joined(&group, "exec true").status().unwrap().success());
    assert!(!group.oom_killed());
    group.remove().unwrap();
}

#[test]
fn a_group_is_killed_whole_and_stays_until_then() {
    let Some(group) = group("kill", Resources { cpu_milli: 1000, memory_bytes: 0, gpus: 0 }) else { return };
    // The shell's child leaves its process group; the control group still has it.
    let mut child = joined(&group, "setsid sleep 600 & echo up; wait").stdout(Stdio::piped()).spawn().unwrap();
    let mut up = [0; 3];
    io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
    assert!(group.processes().contains(&i32::try_from(child.id()).unwrap()));
    assert!(group.remove().is_err());
    group.kill_all();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    while !group.processes().is_empty() {
        std::thread::yield_now();
    }
    group.remove().unwrap();
}

#[test]
fn a_group_is_found_again_by_name_and_dismissed_with_what_is_in_it() {
    let Some(made) = group("find", Resources { cpu_milli: 1000, memory_bytes: 64 * MIB, gpus: 0 }) else { return };
    let name = format!("test-find-{}", std::process::id());
    assert_eq!(Cgroup::open(&name), Some(made.clone()));
    let mut child = joined(&made, "echo up; exec sleep 600").stdout(Stdio::piped()).spawn().unwrap();
    io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 3]).unwrap();
    let reaper = std::thread::spawn(move || child.wait().unwrap());
    Cgroup::dismiss(&name);
    assert_eq!(reaper.join().unwrap().signal(), Some(9));
    assert_eq!(Cgroup::open(&name), None);
}

#[test]
fn names_that_would_leave_the_group_are_refused() {
    for bad in ["", "..", "a/b", "a b"] {
        assert!(matches!(Cgroup::create(bad, &Resources::default()), Err(Error::BadName(_))), "{bad}");
    }
}

#[test]
fn quotas_are_in_the_kernels_units() {
    let limits = Resources { cpu_milli: 1500, memory_bytes: 5, gpus: 1 };
    assert_eq!(v2_settings(&limits)[0].1, "150000 100000");
    assert_eq!(v1_settings(&limits)[1].1, "150000");
    assert_eq!(quota(&Resources { cpu_milli: 1, ..limits }), 1000);
    assert!(v2_settings(&Resources::default()).is_empty());
}
