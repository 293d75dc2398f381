//! Container images without a container engine: archives of one layer, as `docker load` and `ctr images import` read.
//!
//! Invariant: the same files give the same bytes, so an image's digest changes only with what is in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Failed, Shell, say};

/// Our own image as tests name it.
pub(crate) const OURS: &str = "peregrine.test/peregrine:test";
/// Debian with Python, for jobs.
pub(crate) const PYTHON: &str = "peregrine.test/python:1";
/// One static program with the usual names; also what holds a pod's namespaces.
pub(crate) const MINIMAL: &str = "peregrine.test/minimal:1";

/// What an image starts with, and as whom.
struct Config {
    user: &'static str,
    command: &'static [&'static str],
}

/// The images that tests run their pods from, made once on a machine: name and archive.
pub(crate) fn for_tests(sh: &Shell) -> Result<Vec<(String, PathBuf)>, Failed> {
    let kept = |name: &str| shell::cache_dir().join("tools").join(name).join("image.tar");
    let (minimal, python) = (kept("minimal-image-1"), kept("python-image-1"));
    if !minimal.is_file() {
        let config = Config { user: "0", command: &["/bin/sh", "-c", "while :; do sleep 3600 & wait; done"] };
        make(sh, MINIMAL, &config, &minimal, BUSYBOX)?;
    }
    if !python.is_file() {
        say("making a Python image with debootstrap: two minutes, once on a machine");
        make(sh, PYTHON, &Config { user: "0", command: &["/usr/bin/python3"] }, &python, DEBIAN)?;
    }
    Ok(vec![(MINIMAL.to_owned(), minimal), (PYTHON.to_owned(), python)])
}

/// Our image: the binary alone, for the operator, the router and the init container that brings the agent.
pub(crate) fn ours(sh: &Shell, binary: &Path, archive: &Path) -> Result<(), Failed> {
    let binary = std::path::absolute(binary).map_err(Failed::at(binary))?;
    let config = Config { user: "65532:65532", command: &["/peregrine"] };
    let fill = format!("mkdir tmp; chmod 1777 tmp; install -m 0755 '{}' peregrine", binary.display());
    make(sh, OURS, &config, archive, &fill)
}

/// A pod's first process must reap, so the minimal image is more than its one program asleep.
const BUSYBOX: &str = "mkdir -p bin etc tmp; chmod 1777 tmp; cp $(command -v busybox) bin/busybox
for name in $(bin/busybox --list); do [ $name = busybox ] || ln -s busybox bin/$name; done";

const DEBIAN: &str = "debootstrap --variant=minbase --include=python3 bookworm \"$PWD\" > ../debootstrap.log 2>&1
rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc usr/share/man usr/share/locale dev/*";

/// Fills a folder by a line of shell and packs it. The archive appears under its name when it is whole.
fn make(sh: &Shell, name: &str, config: &Config, archive: &Path, fill: &str) -> Result<(), Failed> {
    let parent = archive.parent().expect("an archive lies in a folder");
    fs::create_dir_all(parent).map_err(Failed::at(parent))?;
    let work = archive.with_extension("partial");
    let command = config.command.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(",");
    let (work, user) = (work.display(), config.user);
    let script = format!(
        "set -eu; rm -rf {work}; mkdir -p {work}/root; cd {work}/root
{fill}
cd ..; tar --sort=name --mtime=@0 --owner=+0 --group=+0 --numeric-owner -C root -cf layer.tar .
layer=$(sha256sum layer.tar | cut -d' ' -f1)
cat > config.json <<END
{{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{{\"User\":\"{user}\",\"Env\":[\"PATH=/usr/local/bin:/usr/bin:/bin\"],\"Cmd\":[{command}]}},
\"rootfs\":{{\"type\":\"layers\",\"diff_ids\":[\"sha256:$layer\"]}}}}
END
echo '[{{\"Config\":\"config.json\",\"RepoTags\":[\"{name}\"],\"Layers\":[\"layer.tar\"]}}]' > manifest.json
tar --mtime=@0 --owner=+0 --group=+0 -cf done.tar manifest.json config.json layer.tar
mv done.tar {}; rm -rf {work}",
        archive.display()
    );
    sh.quiet("sh", &["-c", &script])
}
