//! Container images without a container engine: archives of one layer, as `docker load` and `ctr images import` read.
//!
//! Invariant: the same files give the same bytes, so an image's digest changes only with what is in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Failed, Shell, say};

/// Our own image as tests name it.
pub(crate) const OURS: &str = "peregrine.test/peregrine:test";
/// Debian with Python, for jobs, and the public inference server, for deployments: a node of ours reaches no package index.
pub(crate) const PYTHON: &str = "peregrine.test/python:2";
/// One static program with the usual names; also what holds a pod's namespaces.
pub(crate) const MINIMAL: &str = "peregrine.test/minimal:1";

/// The oldest C library that our binary starts on: images from Ubuntu 20.04 on have a later one.
const GLIBC: u32 = 28;
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const PROFILE: &str = "release";
const ZIGBUILD: &str = "0.24.0";
const ZIG: &str = "0.17.0";

/// What an image starts with, and as whom.
struct Config {
    user: &'static str,
    /// `Entrypoint` where a pod's `args` are for the program, `Cmd` where they replace it.
    key: &'static str,
    command: &'static [&'static str],
}

/// `cargo xtask image`: our image as an archive; a quick build unless it is to be given away.
pub(crate) fn run(sh: &Shell, archive: &Path, release: bool) -> Result<(), Failed> {
    let binary = portable(sh, if release { "dist" } else { PROFILE })?;
    ours(sh, &binary, archive)?;
    say(&format!("`{OURS}` is in {}; import it with `ctr -n k8s.io images import`", archive.display()));
    Ok(())
}

/// The `peregrine` that tests, examples and benches run, on this machine and in images: one build for all of them.
pub(crate) fn build(sh: &Shell) -> Result<PathBuf, Failed> {
    portable(sh, PROFILE)
}

/// Builds `peregrine` so that it runs inside users' images. Linked dynamically: a static one could not load NVML.
fn portable(sh: &Shell, profile: &str) -> Result<PathBuf, Failed> {
    let tool = zigbuild(sh)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let sh = sh.with("PATH", format!("{}:{path}", tool.display()));
    let target = format!("{TRIPLE}.2.{GLIBC}");
    let what = ["--package", "peregrine-cli", "--bin", "peregrine"];
    sh.cargo(&[&["zigbuild", "--profile", profile, "--target", &target], &what[..]].concat())?;
    let binary = sh.target().join(TRIPLE).join(profile).join("peregrine");
    match newest_glibc(&fs::read(&binary).map_err(Failed::at(&binary))?) {
        Some(needs) if needs > GLIBC => {
            Err(Failed::Check(format!("`{}` needs glibc 2.{needs}, later than 2.{GLIBC}", binary.display())))
        }
        _ => Ok(binary),
    }
}

/// The latest minor release of glibc whose symbols a binary names.
fn newest_glibc(binary: &[u8]) -> Option<u32> {
    const MARK: &[u8] = b"GLIBC_2.";
    let minor = |at: usize| {
        let digits: String = binary[at..].iter().take_while(|b| b.is_ascii_digit()).map(|b| char::from(*b)).collect();
        digits.parse().ok()
    };
    let ends =
        binary.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK).map(|(at, _)| at + MARK.len());
    ends.filter_map(minor).max()
}

/// The folder of cargo-zigbuild, installed from the package index when absent.
fn zigbuild(sh: &Shell) -> Result<PathBuf, Failed> {
    let folder = shell::cache_dir().join("tools").join(format!("zigbuild-{ZIGBUILD}"));
    let bin = folder.join("bin");
    if !bin.join("cargo-zigbuild").is_file() {
        sh.quiet("python3", &["-m", "venv", &folder.display().to_string()])?;
        let (tool, zig) = (format!("cargo-zigbuild=={ZIGBUILD}"), format!("ziglang=={ZIG}"));
        sh.quiet(&bin.join("pip").display().to_string(), &["install", "--quiet", &zig, &tool])?;
    }
    Ok(bin)
}

/// The images that tests run their pods from, made once on a machine: name and archive.
pub(crate) fn for_tests(sh: &Shell) -> Result<Vec<(String, PathBuf)>, Failed> {
    let kept = |name: &str| shell::cache_dir().join("tools").join(name).join("image.tar");
    let (minimal, python) = (kept("minimal-image-1"), kept("python-image-2"));
    if !minimal.is_file() {
        let config =
            Config { user: "0", key: "Cmd", command: &["/bin/sh", "-c", "while :; do sleep 3600 & wait; done"] };
        make(sh, MINIMAL, &config, &minimal, BUSYBOX)?;
    }
    if !python.is_file() {
        say("making a Python image with debootstrap: two minutes, once on a machine");
        make(sh, PYTHON, &Config { user: "0", key: "Cmd", command: &["/usr/bin/python3"] }, &python, DEBIAN)?;
    }
    Ok(vec![(MINIMAL.to_owned(), minimal), (PYTHON.to_owned(), python)])
}

/// Our image: the binary and what it loads, for the operator, the router and the init container that brings the agent.
pub(crate) fn ours(sh: &Shell, binary: &Path, archive: &Path) -> Result<(), Failed> {
    let binary = std::path::absolute(binary).map_err(Failed::at(binary))?;
    let config = Config { user: "65532:65532", key: "Entrypoint", command: &["/peregrine"] };
    let fill = format!(
        "mkdir tmp; chmod 1777 tmp; install -m 0755 '{0}' peregrine
ldd peregrine | grep -o '/[^ ]*' | while read -r file; do install -D \"$file\" \".$file\"; done
for file in /etc/ssl/certs/ca-certificates.crt; do [ ! -e $file ] || install -D -m 0644 $file .$file; done",
        binary.display()
    );
    make(sh, OURS, &config, archive, &fill)
}

/// A pod's first process must reap, so the minimal image is more than its one program asleep.
const BUSYBOX: &str = "mkdir -p bin etc tmp; chmod 1777 tmp; cp $(command -v busybox) bin/busybox
for name in $(bin/busybox --list); do [ $name = busybox ] || ln -s busybox bin/$name; done";

const DEBIAN: &str = "debootstrap --variant=minbase --include=python3 bookworm \"$PWD\" > ../debootstrap.log 2>&1
python3 -m venv ../pip; packages=usr/lib/python3/dist-packages
../pip/bin/pip install --quiet --only-binary=:all: --python-version 3.11 --target $packages azureml-inference-server-http
sed -i '1s|.*|#!/usr/bin/python3|' $packages/bin/*; mv $packages/bin/* usr/local/bin/
rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc usr/share/man usr/share/locale dev/*";

/// Fills a folder by a line of shell and packs it. The archive appears under its name when it is whole.
fn make(sh: &Shell, name: &str, config: &Config, archive: &Path, fill: &str) -> Result<(), Failed> {
    let parent = archive.parent().expect("an archive lies in a folder");
    fs::create_dir_all(parent).map_err(Failed::at(parent))?;
    let work = archive.with_extension("partial");
    let command = config.command.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(",");
    let (work, user, key) = (work.display(), config.user, config.key);
    let script = format!(
        "set -eu; rm -rf {work}; mkdir -p {work}/root; cd {work}/root
{fill}
cd ..; tar --sort=name --mtime=@0 --owner=+0 --group=+0 --numeric-owner -C root -cf layer.tar .
layer=$(sha256sum layer.tar | cut -d' ' -f1)
cat > config.json <<END
{{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{{\"User\":\"{user}\",\"Env\":[\"PATH=/usr/local/bin:/usr/bin:/bin\"],\"{key}\":[{command}]}},
\"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[\"sha256:$layer\"]}}}}
END
echo '[{{\"Config\":\"config.json\",\"RepoTags\":[\"{name}\"],\"Layers\":[\"layer.tar\"]}}]' > manifest.json
tar --mtime=@0 --owner=+0 --group=+0 -cf done.tar manifest.json config.json layer.tar
mv done.tar {}; rm -rf {work}",
        archive.display()
    );
    sh.quiet("sh", &["-c", &script])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_glibc_that_a_binary_names_is_found_as_a_number() {
        assert_eq!(newest_glibc(b"\0GLIBC_2.2.5\0GLIBC_2.28\0GLIBC_2.9\0"), Some(28));
        assert_eq!(newest_glibc(b"\x7fELF, static"), None);
    }
}
