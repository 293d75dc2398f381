//! Finding a process of the home and ending it for good.

use crate::harness::{Home, PATIENCE};
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, path::PathBuf, time::Duration};

/// The process of a role, as soon as there is one.
pub(super) fn find(home: &Home, role: &str) -> Pid {
    let mut found = None;
    home.until(&format!("a process that is the {role}"), || {
        found = process(home, role);
        found.is_some()
    });
    found.unwrap()
}

fn process(home: &Home, role: &str) -> Option<Pid> {
    let home = home.home().display().to_string();
    let word = match role {
        "server" => "--detached",
        "keeper" => "keep",
        _ => "run",
    };
    let ours = |line: &[u8]| {
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&home.as_bytes()) && words.iter().skip(1).take(3).any(|w| *w == word.as_bytes())
    };
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        ours(&fs::read(entry.path().join("cmdline")).ok()?).then_some(pid)
    });
    // A process about to become another still looks like its parent, which is older.
    pids.min().and_then(Pid::from_raw)
}

/// Kills, and returns when the process is no more; false when it was gone before.
pub(super) fn kill(pid: Pid) -> bool {
    if kill_process(pid, Signal::KILL).is_err() {
        return false;
    }
    let mut left = PATIENCE.as_millis();
    while is_there(pid) {
        assert!(left > 0, "process {pid:?} outlives its kill");
        std::thread::sleep(Duration::from_millis(1));
        left -= 1;
    }
    true
}

/// Until its last thread is gone, a process may still hold its locks and its port.
fn is_there(pid: Pid) -> bool {
    let folder = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let Ok(status) = fs::read_to_string(folder.join("stat")) else { return false };
    let is_zombie = status.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']));
    !is_zombie || fs::read_dir(folder.join("task")).is_ok_and(|threads| threads.count() > 1)
}
