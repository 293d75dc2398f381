//! Limits on what one attempt may use, by control groups of version 1 or 2.
//!
//! A group is made below the agent's own, or below the nearest ancestor where the kernel permits it. Version 2 allows
//! no processes beside limited children, so there the ancestor is usually one level up.
//! Invariants: a group that could not be limited as asked is not made at all; a group is removed only when empty.

mod hierarchy;

use domain::Resources;
use hierarchy::Hierarchy;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// The control group of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    version: u8,
    /// One folder per controller in version 1, a single one in version 2.
    folders: Vec<PathBuf>,
}

/// Why there is no control group.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this machine has no control groups with cpu and memory controllers")]
    Absent,
    #[error("control group `{}` cannot be set up (next step: run the agent as root, or delegate cgroups to its user)", .at.display())]
    NotPermitted {
        at: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{0}` is no name for a control group")]
    BadName(String),
}

const PERIOD_MICROS: u64 = 100_000;
/// A killed process leaves its group a moment after the signal.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(5);

impl Cgroup {
    /// Makes the group `peregrine-<name>` with `limits`; an amount of zero is no limit.
    pub fn create(name: &str, limits: &Resources) -> Result<Cgroup, Error> {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Err(Error::BadName(name.to_owned()));
        }
        match Hierarchy::own() {
            Some(Hierarchy::V2 { candidates }) => create_v2(candidates, name, limits),
            Some(Hierarchy::V1 { cpu, memory }) => create_v1(cpu, memory, name, limits),
            None => Err(Error::Absent),
        }
    }

    /// The group that [`Cgroup::create`] made under `name`, perhaps in an earlier life of the agent.
    pub fn open(name: &str) -> Option<Cgroup> {
        let leaf = format!("peregrine-{name}");
        let group = match Hierarchy::own()? {
            Hierarchy::V1 { cpu, memory } => v1(cpu, memory, &leaf),
            Hierarchy::V2 { candidates } => {
                let folder = candidates.iter().map(|parent| parent.join(&leaf)).find(|folder| folder.is_dir())?;
                Cgroup { version: 2, folders: vec![folder] }
            }
        };
        group.folders.iter().all(|folder| folder.is_dir()).then_some(group)
    }

    /// The group this process is in: its container's own, where it is in one.
    pub fn own() -> Option<Cgroup> {
        match Hierarchy::own()? {
            Hierarchy::V1 { cpu, memory } => Some(Cgroup { version: 1, folders: vec![cpu.clone(), memory.clone()] }),
            Hierarchy::V2 { candidates } => Some(Cgroup { version: 2, folders: vec![candidates.first()?.clone()] }),
        }
    }

    /// Kills what is left in the group `name` and removes it, if it is there. A group whose last process is not reaped
    /// within a moment stays behind, empty and harmless.
    pub fn dismiss(name: &str) {
        let Some(group) = Cgroup::open(name) else { return };
        for _ in 0..REMOVE_TRIES {
            if group.remove().is_ok() {
                return;
            }
            group.kill_all();
            std::thread::sleep(REMOVE_PAUSE);
        }
        tracing::warn!("control group of `{name}` is still busy and stays behind");
    }

    /// The files a process writes `0` to in order to join, all of them.
    pub fn join_files(&self) -> Vec<PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs")).collect()
    }

    /// Whether the kernel has killed a process of this group for want of memory.
    pub fn oom_killed(&self) -> bool {
        self.oom_kills().is_some_and(|kills| kills > 0)
    }

    /// How many processes of this group the kernel has killed for want of memory.
    pub fn oom_kills(&self) -> Option<u64> {
        let counter = if self.version == 2 { "memory.events" } else { "memory.oom_control" };
        self.folders.iter().find_map(|folder| {
            // Kernels before 4.13 count only how often the limit was hit.
            field(&read(&folder.join(counter)), "oom_kill")
                .or_else(|| read(&folder.join("memory.failcnt")).trim().parse::<u64>().ok())
        })
    }

    /// The most memory its processes may use together, if there is a limit.
    pub fn memory_limit(&self) -> Option<u64> {
        let file = if self.version == 2 { "memory.max" } else { "memory.limit_in_bytes" };
        let limit = self.folders.iter().find_map(|folder| read(&folder.join(file)).trim().parse::<u64>().ok())?;
        // Version 1 says no limit by a number that no machine has.
        (limit < 1 << 60).then_some(limit)
    }

    /// Processor time its processes have used, in microseconds, and the memory they hold that cannot be taken back.
    pub fn usage(&self) -> Option<(u64, u64)> {
        let any = |file: &str| self.folders.iter().map(|folder| read(&folder.join(file))).find(|text| !text.is_empty());
        let number = |file: &str| any(file)?.trim().parse::<u64>().ok();
        let (processor, memory, cache) = match self.version {
            2 => (field(&any("cpu.stat")?, "usage_usec")?, number("memory.current")?, "inactive_file"),
            _ => (number("cpuacct.usage")? / 1000, number("memory.usage_in_bytes")?, "total_inactive_file"),
        };
        let cache = any("memory.stat").and_then(|stat| field(&stat, cache)).unwrap_or(0);
        Some((processor, memory.saturating_sub(cache)))
    }

    /// The processes in the group now.
    pub fn processes(&self) -> Vec<i32> {
        let mut pids: Vec<i32> = self
            .join_files()
            .iter()
            .flat_map(|file| read(file).lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Sends `SIGKILL` to every process, and again to those that appeared meanwhile. Their end is not awaited.
    pub fn kill_all(&self) {
        if self.version == 2 && self.folders.iter().all(|folder| fs::write(folder.join("cgroup.kill"), "1").is_ok()) {
            return;
        }
        // A process killed here lingers as a zombie until it is reaped, so the rounds are few and bounded.
        for _ in 0..8 {
            let pids = self.processes();
            if pids.is_empty() {
                return;
            }
            for pid in pids.into_iter().filter_map(Pid::from_raw) {
                let _gone_already = kill_process(pid, Signal::KILL);
            }
        }
    }

    /// Removes the group; fails with `ResourceBusy` while a process is left in it.
    pub fn remove(&self) -> io::Result<()> {
        for folder in &self.folders {
            match fs::remove_dir(folder) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

fn create_v2(candidates: &[PathBuf], name: &str, limits: &Resources) -> Result<Cgroup, Error> {
    let mut last = Error::Absent;
    if let Some(own) = candidates.first() {
        // Already on, or refused because there are processes in it: a child's own files tell. Ancestors belong to
        // others and are taken as they are.
        let _refused = fs::write(own.join("cgroup.subtree_control"), "+cpu +memory");
    }
    for parent in candidates {
        let group = Cgroup { version: 2, folders: vec![parent.join(format!("peregrine-{name}"))] };
        match group.limit(&v2_settings(limits)) {
            Ok(()) => return Ok(group),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn create_v1(cpu: &Path, memory: &Path, name: &str, limits: &Resources) -> Result<Cgroup, Error> {
    let group = v1(cpu, memory, &format!("peregrine-{name}"));
    group.limit(&v1_settings(limits))?;
    Ok(group)
}

fn v1(cpu: &Path, memory: &Path, leaf: &str) -> Cgroup {
    let mut folders = vec![cpu.join(leaf), memory.join(leaf)];
    folders.dedup();
    Cgroup { version: 1, folders }
}

/// A file, what to write to it, and whether the limit holds without it.
type Setting = (&'static str, String, bool);

fn v2_settings(limits: &Resources) -> Vec<Setting> {
    let mut settings = Vec::new();
    if limits.cpu_milli > 0 {
        settings.push(("cpu.max", format!("{} {PERIOD_MICROS}", quota(limits)), true));
    }
    if limits.memory_bytes > 0 {
        settings.push(("memory.max", limits.memory_bytes.to_string(), true));
        settings.push(("memory.swap.max", "0".to_owned(), false));
        settings.push(("memory.oom.group", "1".to_owned(), false));
    }
    settings
}

fn v1_settings(limits: &Resources) -> Vec<Setting> {
    let mut settings = Vec::new();
    if limits.cpu_milli > 0 {
        settings.push(("cpu.cfs_period_us", PERIOD_MICROS.to_string(), true));
        settings.push(("cpu.cfs_quota_us", quota(limits).to_string(), true));
    }
    if limits.memory_bytes > 0 {
        settings.push(("memory.limit_in_bytes", limits.memory_bytes.to_string(), true));
        settings.push(("memory.memsw.limit_in_bytes", limits.memory_bytes.to_string(), false));
    }
    settings
}

/// The kernel refuses quotas below one millisecond.
fn quota(limits: &Resources) -> u64 {
    limits.cpu_milli.saturating_mul(PERIOD_MICROS / 1000).max(1000)
}

impl Cgroup {
    fn limit(&self, settings: &[Setting]) -> Result<(), Error> {
        let done = self.make_folders().and_then(|()| settings.iter().try_for_each(|setting| self.write(setting)));
        if done.is_err() {
            let _not_made = self.remove();
        }
        done
    }

    fn make_folders(&self) -> Result<(), Error> {
        self.folders.iter().try_for_each(|folder| match fs::create_dir(folder) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                Err(Error::NotPermitted { at: folder.clone(), source })
            }
            _ => Ok(()),
        })
    }

    fn write(&self, (file, value, needed): &Setting) -> Result<(), Error> {
        let at = self.folders.iter().map(|folder| folder.join(file)).find(|path| path.exists());
        let written = match &at {
            Some(at) => fs::write(at, value),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("no `{file}`"))),
        };
        match written {
            Err(source) if *needed => {
                Err(Error::NotPermitted { at: at.unwrap_or_else(|| self.folders[0].join(file)), source })
            }
            _ => Ok(()),
        }
    }
}

/// One of the counters in a file that has a name and a number a line.
fn field(counters: &str, name: &str) -> Option<u64> {
    counters.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests;
