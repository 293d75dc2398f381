//! Checks of what we depend on: licences, bans and sources (`deny.toml`), advisories, and dependencies nobody uses.
//!
//! Tools are taken from the PATH, else from the tool cache `~/.cache/peregrine/tools/<tool>-<version>`. Only
//! `cargo xtask deps` installs there, since that takes minutes; `ci` uses what is installed and says when it skips.

use std::path::PathBuf;

use crate::shell::{Failed, Shell, cache_dir, say};

struct Tool {
    name: &'static str,
    version: &'static str,
}

const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
const MACHETE: Tool = Tool { name: "cargo-machete", version: "0.9.2" };

impl Tool {
    fn home(&self) -> PathBuf {
        cache_dir().join("tools").join(format!("{}-{}", self.name, self.version))
    }

    /// Where the tool is, if it is installed at all.
    fn find(&self, sh: &Shell) -> Option<PathBuf> {
        let cached = self.home().join("bin").join(self.name);
        [PathBuf::from(self.name), cached].into_iter().find(|path| sh.succeeds(path, &["--version"]))
    }

    fn find_or_install(&self, sh: &Shell) -> Result<PathBuf, Failed> {
        if let Some(path) = self.find(sh) {
            return Ok(path);
        }
        say(&format!("deps: installing {} {} into the tool cache; this takes minutes, once", self.name, self.version));
        let home = self.home();
        let (root, build) = (home.to_string_lossy(), home.join("build"));
        let build_dir = build.to_string_lossy();
        sh.cargo(&[
            "install",
            "--locked",
            self.name,
            "--version",
            self.version,
            "--root",
            &root,
            "--target-dir",
            &build_dir,
        ])?;
        std::fs::remove_dir_all(&build).map_err(Failed::at(&build))?;
        Ok(home.join("bin").join(self.name))
    }
}

/// Every check, installing cargo-deny where it is missing.
pub(crate) fn run(sh: &Shell) -> Result<(), Failed> {
    let deny = DENY.find_or_install(sh)?;
    sh.run(&deny, &["check", "bans", "licenses", "sources"])?;
    if sh.run(&deny, &["fetch", "db"]).is_ok() {
        sh.run(&deny, &["check", "advisories"])?;
    } else {
        say("deps: skipped advisories: the advisory database cannot be fetched from here");
    }
    unused(sh)
}

/// The part that needs no network and no installation.
pub(crate) fn run_installed(sh: &Shell) -> Result<(), Failed> {
    match DENY.find(sh) {
        Some(deny) => sh.run(deny, &["check", "bans", "licenses", "sources"])?,
        None => say("deps: skipped licences and bans: no cargo-deny here (`cargo xtask deps` installs it)"),
    }
    unused(sh)
}

fn unused(sh: &Shell) -> Result<(), Failed> {
    match MACHETE.find(sh) {
        Some(machete) => sh.run(machete, &[]),
        None => {
            say("deps: skipped unused dependencies: no cargo-machete here (`cargo install --locked cargo-machete`)");
            Ok(())
        }
    }
}
