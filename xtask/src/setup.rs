//! Installs what the tests need from the system: a Python that can make virtual environments, git, Postgres, and a browser.
//!
//! Nothing is changed on a machine that already has them. Where packages cannot be installed, says which and what
//! will not run without them; the tests themselves then fail or skip with their own words.

use crate::shell::{Failed, Shell, say};

/// Something a test starts: how to see that it is there, the Debian package that brings it, and who needs it.
struct Need {
    program: &'static str,
    args: &'static [&'static str],
    package: &'static str,
    used_by: &'static str,
}

const NEEDS: &[Need] = &[
    Need { program: "python3", args: &["--version"], package: "python3", used_by: "training examples and benches" },
    Need {
        program: "python3",
        args: &["-c", "import venv, ensurepip"],
        package: "python3-venv",
        used_by: "tests that build environments",
    },
    Need {
        program: "sh",
        args: &["-c", "ls /usr/lib/postgresql/*/bin/initdb"],
        package: "postgresql",
        used_by: "tests of the store on Postgres",
    },
    Need {
        program: "chromium",
        args: &["--version"],
        package: "chromium",
        used_by: "the studio's stories in a browser",
    },
    Need { program: "git", args: &["--version"], package: "git", used_by: "tests of code snapshots" },
    Need {
        program: "nginx",
        args: &["-v"],
        package: "nginx-light",
        used_by: "the router's test beside another proxy, and its bench",
    },
    Need {
        program: "sh",
        args: &["-c", "test -x /usr/sbin/sshd"],
        package: "openssh-server",
        used_by: "tests of machines reached by SSH",
    },
    Need { program: "/usr/sbin/slurmctld", args: &["-V"], package: "slurmctld", used_by: "tests of Slurm clusters" },
    Need { program: "/usr/sbin/slurmd", args: &["-V"], package: "slurmd", used_by: "tests of Slurm clusters" },
    // Slurm's clients do not even say their version without a cluster.
    Need {
        program: "sh",
        args: &["-c", "command -v sbatch"],
        package: "slurm-client",
        used_by: "tests of Slurm clusters",
    },
    Need {
        program: "sh",
        args: &["-c", "test -x /usr/sbin/slurmdbd"],
        package: "slurmdbd",
        used_by: "tests of Slurm's accounting",
    },
    Need {
        program: "/usr/sbin/mariadbd",
        args: &["--version"],
        package: "mariadb-server-core",
        used_by: "tests of Slurm's accounting",
    },
    Need {
        program: "mariadb",
        args: &["--version"],
        package: "mariadb-client-core",
        used_by: "tests of Slurm's accounting",
    },
    Need { program: "/usr/sbin/munged", args: &["-V"], package: "munge", used_by: "tests of Slurm clusters" },
];

/// Installs what is missing, where that is possible.
pub(crate) fn run(sh: &Shell) -> Result<(), Failed> {
    let missing = missing(sh);
    if missing.is_empty() {
        return Ok(());
    }
    if can_install(sh) {
        install(sh, &missing);
    }
    for need in self::missing(sh) {
        say(&format!("setup: could not install `{}`, used by {}", need.package, need.used_by));
        say(&format!("  next: as root, run `apt-get install {}` or the like of your system", need.package));
    }
    Ok(())
}

fn missing(sh: &Shell) -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !sh.succeeds(need.program, need.args)).collect()
}

fn can_install(sh: &Shell) -> bool {
    let root = sh.output("id", &["-u"]).as_deref() == Some("0");
    let apt = sh.succeeds("apt-get", &["--version"]);
    if !root {
        say("setup: not root, so no packages are installed");
    } else if !apt {
        say("setup: no `apt-get` here, so no packages are installed");
    }
    root && apt
}

/// A failure is not returned: what counts is which needs are still missing afterwards.
fn install(sh: &Shell, missing: &[&Need]) {
    let sh = sh.with("DEBIAN_FRONTEND", "noninteractive");
    let mut args = vec!["install", "--yes", "--no-install-recommends"];
    args.extend(missing.iter().map(|need| need.package));
    let done = sh.run("apt-get", &["update", "--quiet"]).and_then(|()| sh.run("apt-get", &args));
    if let Err(failed) = done {
        say(&format!("setup: {failed}"));
    }
}
