//! The programs of a cluster: Debian's container runtime, and Kubernetes, etcd and Volcano built with Go.
//!
//! The repository holds only `go.mod` and `go.sum` (tests/cluster/). What is built from them is kept per content and
//! Go release, so a machine builds once; a half-made folder never carries the final name.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::shell::{self, Failed, Shell, say};

const PACKAGES: &[(&str, &str)] = &[
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("conntrack", "conntrack"),
    ("ethtool", "ethtool"),
    ("socat", "socat"),
    ("busybox", "busybox-static"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("debootstrap", "debootstrap"),
    ("openssl", "openssl"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
];

const KUBE_VERSION: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.4 \
     -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36";

/// The folder with all the binaries, made if this machine has none yet.
pub(super) fn ready(sh: &Shell, volcano: bool) -> Result<PathBuf, Failed> {
    install(sh)?;
    let sources = sh.root.join("tests/cluster");
    let version = sh.output("go", &["env", "GOVERSION"]).ok_or_else(|| no_binaries("there is no `go`"))?;
    let kept = shell::cache_dir().join("kube").join(key(sh, &sources, &version)?);
    let parent = kept.parent().expect("a folder below the cache");
    fs::create_dir_all(parent).map_err(Failed::at(parent))?;
    let lock = File::create(parent.join("lock")).map_err(Failed::at(parent))?;
    lock.lock().map_err(Failed::at(parent))?;
    build(&sources.join("kube"), KUBE_VERSION, &kept.join("kube"))?;
    if volcano {
        build(&sources.join("volcano"), "-s -w", &kept.join("volcano"))?;
        copy_crds(sh, &kept.join("volcano"))?;
    }
    Ok(kept)
}

fn no_binaries(why: &str) -> Failed {
    Failed::Check(format!("no Kubernetes binaries ({why})"))
}

fn install(sh: &Shell) -> Result<(), Failed> {
    let there = |program: &str| sh.succeeds("sh", &["-c", &format!("command -v {program}")]);
    let missing: Vec<&str> =
        PACKAGES.iter().filter(|(program, _)| !there(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let sh = sh.with("DEBIAN_FRONTEND", "noninteractive");
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(&missing);
    let done = sh.run("apt-get", &["update", "--quiet"]).and_then(|()| sh.run("apt-get", &args));
    done.map_err(|failed| no_binaries(&format!("cannot install {}: {failed}", missing.join(" "))))
}

fn key(sh: &Shell, sources: &Path, version: &str) -> Result<String, Failed> {
    let files = ["kube/go.mod", "kube/go.sum", "volcano/go.mod", "volcano/go.sum"];
    let list = files.map(|file| sources.join(file).display().to_string()).join(" ");
    let line = format!("{{ cat {list}; echo '{version} {KUBE_VERSION}'; }} | sha256sum | cut -c1-16");
    sh.output("sh", &["-c", &line]).ok_or_else(|| no_binaries("cannot read tests/cluster"))
}

/// Builds the tools of one module unless they are kept, showing how far it is: from nothing it takes long.
fn build(module: &Path, flags: &str, kept: &Path) -> Result<(), Failed> {
    if kept.is_dir() {
        return Ok(());
    }
    let partial = kept.with_extension("partial");
    fs::create_dir_all(&partial).map_err(Failed::at(&partial))?;
    let name = module.file_name().unwrap_or_default().to_string_lossy();
    say(&format!("building {name} with go: 5 to 20 minutes, once on a machine"));
    let mut go = Command::new("nice")
        .args(["-n", "10", "go", "build", "-v", "-trimpath", "-ldflags", flags, "-o"])
        .arg(format!("{}/", partial.display()))
        .arg("tool")
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| no_binaries(&format!("go does not start: {error}")))?;
    let said = go.stderr.take().expect("it is piped");
    let mut last = String::new();
    for (count, line) in BufReader::new(said).lines().map_while(Result::ok).enumerate() {
        if count > 0 && count % 100 == 0 {
            say(&format!("  {name}: {count} packages"));
        }
        last = line;
    }
    match go.wait() {
        Ok(status) if status.success() => fs::rename(&partial, kept).map_err(Failed::at(kept)),
        _ => Err(no_binaries(&last)),
    }
}

/// Volcano's definitions, out of the module that its programs were built from.
fn copy_crds(sh: &Shell, kept: &Path) -> Result<(), Failed> {
    if kept.join("crds").is_dir() {
        return Ok(());
    }
    let line = format!(
        "set -e; cd tests/cluster/volcano; from=$(go list -m -f '{{{{.Dir}}}}' volcano.sh/volcano)
         rm -rf {0}.partial; mkdir {0}.partial; cp \"$from\"/config/crd/*/bases/*.yaml {0}.partial; mv {0}.partial {0}",
        kept.join("crds").display()
    );
    sh.quiet("sh", &["-c", &line])
}
