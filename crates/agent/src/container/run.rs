//! The command line that runs a command in an image.
//!
//! Invariant: the result is a plain list of arguments for the engine's client, with the user's own arguments last
//! among the options, so that they win.

use super::{Image, Kind};
use domain::Resources;
use rustix::process::{getgid, getuid};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// What to run and with what.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    pub image: &'a Image,
    /// Program and arguments; takes the place of the image's entry point. Empty: the image starts what it is made for.
    pub argv: &'a [String],
    /// Folders and files of the host, seen inside under their own path.
    pub mounts: &'a [PathBuf],
    /// The same under another path inside.
    pub placed: &'a [(PathBuf, String)],
    pub variables: &'a BTreeMap<String, String>,
    /// The folder to run in; usually one of the mounts.
    pub folder: &'a Path,
    /// Indexes of the devices to hand in.
    pub gpus: &'a [u32],
    pub limits: Option<&'a Resources>,
    pub shm_bytes: Option<u64>,
    /// Arguments of the user's own, such as `--ipc=host`.
    pub extra: &'a [String],
    pub name: &'a str,
    /// A port of loopback that leads to one inside. The container has a network of its own then.
    pub publish: Option<(u16, u16)>,
}

/// Variables the client itself depends on: for these the value must be on the command line.
const CLIENTS_OWN: [&str; 4] = ["PATH", "HOME", "TMPDIR", "XDG_RUNTIME_DIR"];

/// The client's command line. Start it with `variables` set, except `PATH`, `HOME`, `TMPDIR` and
/// `XDG_RUNTIME_DIR`: it takes all other values from its own environment. The container shares the host's network, so
/// that addresses on loopback mean the same inside.
pub fn wrap(run: &Run<'_>) -> Vec<String> {
    wrap_as(run, (getuid().as_raw(), getgid().as_raw()))
}

pub(super) fn wrap_as(run: &Run<'_>, (user, group): (u32, u32)) -> Vec<String> {
    let mut line = vec![run.image.engine.program.display().to_string()];
    let mut add = |parts: &[&str]| line.extend(parts.iter().map(|part| (*part).to_owned()));
    let network = match run.publish {
        Some((here, inside)) => format!("--publish=127.0.0.1:{here}:{inside}"),
        None => "--network=host".to_owned(),
    };
    add(&["run", "--rm", "--init", &network, "--name", run.name]);
    if !run.argv.is_empty() {
        add(&["--workdir", &run.folder.display().to_string()]);
    }
    if run.image.engine.kind == Kind::Docker && user != 0 {
        // Rootless podman maps the container's root to this user; docker needs to be told.
        add(&["--user", &format!("{user}:{group}")]);
    }
    for mount in run.mounts {
        add(&["--mount", &mount_option(mount, &mount.display().to_string())]);
    }
    for (mount, inside) in run.placed {
        add(&["--mount", &mount_option(mount, inside)]);
    }
    for (name, value) in run.variables {
        match CLIENTS_OWN.contains(&name.as_str()) {
            true => add(&["--env", &format!("{name}={value}")]),
            false => add(&["--env", name]),
        }
    }
    for option in limits(run).iter().chain(&gpus(run)).chain(run.extra) {
        add(&[option]);
    }
    let Some((program, arguments)) = run.argv.split_first() else {
        add(&[&run.image.reference]);
        return line;
    };
    // Some images have an entry point that would swallow the command.
    add(&["--entrypoint", program, &run.image.reference]);
    line.extend(arguments.iter().cloned());
    line
}

/// Fields are comma-separated values, in which a path with a comma or a quote has to be quoted.
fn mount_option(path: &Path, inside: &str) -> String {
    let field = |name: &str, value: &str| {
        let text = format!("{name}={value}");
        if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
    };
    format!("type=bind,{},{}", field("source", &path.display().to_string()), field("target", inside))
}

fn limits(run: &Run<'_>) -> Vec<String> {
    let mut options = Vec::new();
    if let Some(limits) = run.limits {
        if limits.cpu_milli > 0 {
            options.push(format!("--cpus={}", limits.cpu_milli as f64 / 1000.0));
        }
        if limits.memory_bytes > 0 {
            options.push(format!("--memory={}b", limits.memory_bytes));
        }
    }
    options.extend(run.shm_bytes.map(|bytes| format!("--shm-size={bytes}b")));
    options
}

fn gpus(run: &Run<'_>) -> Vec<String> {
    let indexes: Vec<String> = run.gpus.iter().map(u32::to_string).collect();
    match run.image.engine.kind {
        _ if indexes.is_empty() => Vec::new(),
        Kind::Podman => indexes.iter().map(|index| format!("--device=nvidia.com/gpu={index}")).collect(),
        // The option is itself comma-separated, hence the quotes within.
        Kind::Docker => vec![format!("--gpus=\"device={}\"", indexes.join(","))],
    }
}
