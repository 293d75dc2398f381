//! Running other programs: from the repository's root, with one target folder, each command shown before it runs.
//!
//! Invariant: every child sees the same absolute `CARGO_TARGET_DIR`, so the binary that one step builds is the binary
//! that the next step runs.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a developer command did not succeed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The command line was not understood.
    Usage(String),
    /// A program ran and ended badly, or could not be started.
    Program { line: String, cause: String },
    /// One of our own checks found something.
    Check(String),
    /// A file or folder could not be read or written.
    File { path: PathBuf, source: std::io::Error },
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Usage(message) | Failed::Check(message) => f.write_str(message),
            Failed::Program { line, cause } => write!(f, "`{line}` {cause}"),
            Failed::File { path, source } => write!(f, "cannot use `{}`: {source}", path.display()),
        }
    }
}

impl Failed {
    /// Names the path that an IO error belongs to.
    pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Failed {
        let path = path.to_owned();
        move |source| Failed::File { path, source }
    }
}

/// Where commands run: the repository's root, the target folder, and extra variables for children.
#[derive(Clone, Debug)]
pub(crate) struct Shell {
    pub(crate) root: PathBuf,
    target: Option<PathBuf>,
    vars: Vec<(String, String)>,
}

impl Shell {
    /// The shell for the checkout that this program was started from.
    pub(crate) fn here() -> Shell {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest).parent().expect("xtask lies inside the repository").to_owned();
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .filter(|dir| !dir.is_empty())
            .map(|dir| std::path::absolute(&dir).unwrap_or_else(|_| dir.into()));
        Shell { root, target, vars: Vec::new() }
    }

    /// The same shell with this target folder, unless the environment already named one.
    pub(crate) fn or_target(mut self, target: PathBuf) -> Shell {
        self.target.get_or_insert(target);
        self
    }

    /// The same shell with one more variable for its children.
    pub(crate) fn with(&self, name: &str, value: impl AsRef<OsStr>) -> Shell {
        let mut shell = self.clone();
        shell.vars.push((name.to_owned(), value.as_ref().to_string_lossy().into_owned()));
        shell
    }

    /// The folder that cargo builds into.
    pub(crate) fn target(&self) -> PathBuf {
        self.target.clone().unwrap_or_else(|| self.root.join("target"))
    }

    /// Runs a program to its end, showing the line first; anything but success is a failure.
    pub(crate) fn run(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Result<(), Failed> {
        let line = line(program.as_ref(), args);
        say(&format!("$ {line}"));
        match self.command(program.as_ref(), args).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failed::Program { line, cause: format!("ended with {status}") }),
            Err(error) => Err(Failed::Program { line, cause: format!("did not start: {error}") }),
        }
    }

    /// Runs cargo; see `run`.
    pub(crate) fn cargo(&self, args: &[&str]) -> Result<(), Failed> {
        self.run(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args)
    }

    /// Runs cargo, shows what it prints on both streams as one, and lets `hear` have every line.
    pub(crate) fn cargo_heard(&self, args: &[&str], mut hear: impl FnMut(&str)) -> Result<(), Failed> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let line = line(&cargo, args);
        say(&format!("$ {line}"));
        let failed = |cause| Failed::Program { line: line.clone(), cause };
        let (reader, writer) = std::io::pipe().map_err(|error| failed(format!("has no pipe: {error}")))?;
        let second = writer.try_clone().map_err(|error| failed(format!("has no pipe: {error}")))?;
        // The command holds our ends of the pipe, and must go before the last line can come.
        let child = self.command(&cargo, args).stdout(writer).stderr(second).spawn();
        let mut child = child.map_err(|error| failed(format!("did not start: {error}")))?;
        for text in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let text = String::from_utf8_lossy(&text);
            say(&text);
            hear(&text);
        }
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(format!("ended with {status}"))),
            Err(error) => Err(failed(format!("was lost: {error}"))),
        }
    }

    /// Runs a program without a word unless it fails; what it said is then part of the failure.
    pub(crate) fn quiet(&self, program: &str, args: &[&str]) -> Result<(), Failed> {
        let failed = |cause| Failed::Program { line: line(program.as_ref(), args), cause };
        let output = self.command(program.as_ref(), args).stdin(Stdio::null()).output();
        match output.map_err(|error| failed(format!("did not start: {error}")))? {
            output if output.status.success() => Ok(()),
            output => {
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(failed(format!("ended with {}: {said}", output.status)))
            }
        }
    }

    /// Whether a program starts and succeeds; its output is dropped.
    pub(crate) fn succeeds(&self, program: impl AsRef<OsStr>, args: &[&str]) -> bool {
        let mut command = self.command(program.as_ref(), args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// What a program prints, if it starts and succeeds.
    pub(crate) fn output(&self, program: &str, args: &[&str]) -> Option<String> {
        let output = self.command(program.as_ref(), args).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn command(&self, program: &OsStr, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(&self.root);
        // What `cargo run` says of this program is not meant for what it starts, and names the clone: build scripts of
        // dependencies that look at it would run again in every clone, and all that stands on them would be built again.
        let ours = |name: &String| ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|start| name.starts_with(start));
        std::env::vars().map(|(name, _)| name).filter(ours).for_each(|name| {
            command.env_remove(name);
        });
        // The tests start Python a few hundred times, with packages of thousands of files: they are to be compiled once.
        command.env_remove("PYTHONDONTWRITEBYTECODE").env("CARGO_TARGET_DIR", self.target());
        for (name, value) in &self.vars {
            command.env(name, value);
        }
        command
    }
}

/// Where things are kept between runs and between clones: `~/.cache/peregrine`.
pub(crate) fn cache_dir() -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_else(|| std::env::temp_dir().into());
    Path::new(&home).join(".cache").join("peregrine")
}

/// Prints one line for the developer. A closed pipe is no reason to stop the work.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _closed = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn line(program: &OsStr, args: &[&str]) -> String {
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    let quoted = args.iter().map(|a| if a.contains(' ') { format!("'{a}'") } else { (*a).to_owned() });
    std::iter::once(name).chain(quoted).collect::<Vec<_>>().join(" ")
}
