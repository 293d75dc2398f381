//! The machine itself: disk, port, control groups, GPUs.

use super::Check;
use crate::{
    config::{Config, Source},
    failure::io_words,
    local,
};
use domain::resources::humane_bytes;
use std::{fs, net::TcpListener, path::Path};

/// Less free space than this will soon be none.
const LITTLE: u64 = 5 << 30;

pub(super) fn home(home: &Path) -> Check {
    let needed_for = "everything";
    let shown = home.display();
    let probe = fs::create_dir_all(home).and_then(|()| tempfile::NamedTempFile::new_in(home));
    match probe {
        Ok(_) => Check::ok("home", needed_for, format!("`{shown}` is writable")),
        Err(error) => {
            let fix = format!("make `{shown}` writable, or choose another folder with `PEREGRINE_HOME`");
            Check::missing("home", needed_for, format!("`{shown}`: {}", io_words(&error)), fix).broken()
        }
    }
}

pub(super) fn disk(home: &Path) -> Check {
    let needed_for = "logs, outputs, environments";
    let existing = home.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let Ok(facts) = rustix::fs::statvfs(existing) else {
        return Check::missing("disk", needed_for, "the file system does not tell", "");
    };
    let free = facts.f_bavail.saturating_mul(facts.f_frsize);
    let found = format!("{} free", humane_bytes(free));
    match free >= LITTLE {
        true => Check::ok("disk", needed_for, found),
        false => Check::missing(
            "disk",
            needed_for,
            found,
            format!("free some space; below {} jobs may fail", humane_bytes(LITTLE)),
        ),
    }
}

pub(super) fn port(config: &Config) -> Check {
    let needed_for = "the server";
    if let Some(running) = local::status(&config.home) {
        return Check::ok("port", needed_for, format!("a server runs at {}", running.url));
    }
    let listen = config.listen;
    match TcpListener::bind(listen) {
        Ok(_) => Check::ok("port", needed_for, format!("{listen} is free")),
        Err(error) if config.sources["server.listen"].1 == Source::Default => {
            Check::ok("port", needed_for, format!("{listen}: {}; another port will be taken", io_words(&error)))
        }
        Err(error) => {
            let fix = "choose another address with `server.listen`, or stop what uses it";
            Check::missing("port", needed_for, format!("{listen}: {}", io_words(&error)), fix).broken()
        }
    }
}

pub(super) fn umask() -> Check {
    let needed_for = "keeping jobs' files private";
    let mask = fs::read_to_string("/proc/self/status").ok().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
        u32::from_str_radix(line.trim(), 8).ok()
    });
    match mask {
        None => Check::ok("umask", needed_for, "not told by this system"),
        Some(mask) if mask & 0o002 != 0 => Check::ok("umask", needed_for, format!("{mask:04o}")),
        Some(mask) => {
            let fix = "set `umask 022` or stricter: everyone on this machine may write to files that you make";
            Check::missing("umask", needed_for, format!("{mask:04o}"), fix)
        }
    }
}

pub(super) fn cgroups() -> Check {
    let needed_for = "CPU and memory limits of instance types";
    let v2 = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let v1 = Path::new("/sys/fs/cgroup/memory").is_dir();
    let version = match (v2, v1) {
        (true, _) => "version 2",
        (false, true) => "version 1",
        (false, false) => {
            return Check::missing(
                "cgroups",
                needed_for,
                "not mounted",
                "without them limits are not enforced; jobs run all the same",
            );
        }
    };
    let limits = domain::Resources { cpu_milli: 1000, memory_bytes: 64 << 20, gpus: 0 };
    match agent::cgroup::Cgroup::create("peregrine-doctor", &limits) {
        Ok(group) => {
            // What is left behind is an empty group, found and reused the next time.
            let _ = group.remove();
            Check::ok("cgroups", needed_for, format!("{version}, writable"))
        }
        Err(error) => {
            let fix = "run under systemd with `Delegate=yes`, or as a user who may write to the cgroup; until then limits are not enforced";
            Check::missing("cgroups", needed_for, format!("{version}, but {error}"), fix)
        }
    }
}

pub(super) fn gpus() -> Check {
    let needed_for = "GPU jobs";
    let gpus = agent::gpu::detect();
    if gpus.is_empty() {
        return Check::missing(
            "gpu",
            needed_for,
            "none that NVML sees",
            "install NVIDIA's driver if this machine has a GPU",
        );
    }
    let models: Vec<String> =
        gpus.iter().map(|gpu| format!("{} ({})", gpu.model, humane_bytes(gpu.memory_bytes))).collect();
    Check::ok("gpu", needed_for, models.join(", "))
}
