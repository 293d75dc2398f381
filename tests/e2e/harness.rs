//! A home of its own for each test, and the binary pointed at it.

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

/// How long a test waits for something that should take moments.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A home in a temporary folder. Dropping it stops the server and everything that belongs to it.
pub(crate) struct Home {
    folder: tempfile::TempDir,
}

/// What a command said.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home { folder: tempfile::tempdir().unwrap() }
    }

    /// The folder tests put their files in; the home itself is `home` below it.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// Writes a file below the test's folder, making its parents.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.path()).env("PEREGRINE_HOME", self.home()).env_remove("PEREGRINE_LOG");
        // Servers that start at the same moment could come to share the usual port.
        command.env("PEREGRINE_ROUTER_LISTEN", "127.0.0.1:0");
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    /// Runs a command that must succeed; what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let said = self.run(args);
        assert_eq!(said.code, Some(0), "{args:?}\n{}\n{}", said.out, said.err);
        said.out
    }

    /// The same as JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let mut with: Vec<&str> = args.to_vec();
        with.extend(["-o", "json"]);
        serde_json::from_str(&self.ok(&with)).unwrap()
    }

    /// Submits a job file and returns the job's name without waiting for it.
    pub(crate) fn submit(&self, file: &str) -> String {
        self.json(&["job", "create", "-f", file])["name"].as_str().unwrap().to_owned()
    }

    pub(crate) fn job(&self, name: &str) -> Value {
        self.json(&["job", "show", "-n", name])
    }

    /// Waits until a job has ended; its last state.
    pub(crate) fn ended(&self, name: &str) -> Value {
        let mut last = Value::Null;
        self.until(&format!("the end of `{name}`"), || {
            last = self.job(name);
            matches!(last["status"].as_str(), Some("Completed" | "Failed" | "Canceled"))
        });
        last
    }

    /// Looks again and again until it is so.
    pub(crate) fn until(&self, what: &str, mut so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !so() {
            assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
            pause(began);
        }
    }

    /// A job's log as it is stored.
    pub(crate) fn log(&self, job: &str) -> String {
        fs::read_to_string(self.artifacts(job).join("user_logs/std_log.txt")).unwrap_or_default()
    }

    pub(crate) fn artifacts(&self, job: &str) -> PathBuf {
        self.home().join("blobs/default/azureml/ExperimentRun").join(format!("dcid.{job}"))
    }

    /// The pid of the server, the keeper or the agent of this home.
    pub(crate) fn pid(&self, role: &str) -> Option<i32> {
        let needle = match role {
            "server" => "--detached".to_owned(),
            "keeper" => "keep".to_owned(),
            _ => "run".to_owned(),
        };
        processes_with(&self.home().display().to_string())
            .into_iter()
            .find(|(_, line)| line.contains(&needle))
            .map(|(pid, _)| pid)
    }

    pub(crate) fn kill(&self, role: &str) -> bool {
        let Some(pid) = self.pid(role) else { return false };
        signal(pid, "KILL")
    }

    /// Writes a job file: the command as a block, more keys below it.
    pub(crate) fn job_file(&self, name: &str, command: &str, more: &str) {
        let block = command.replace('\n', "\n  ");
        self.file(name, &format!("command: |\n  {block}\nenvironment: {{image: 'python:3.12-slim'}}\n{more}\n"));
    }

    /// Runs a command as a job to its end, streaming; what the stream said.
    pub(crate) fn stream(&self, command: &str, more: &str) -> Said {
        self.job_file("streamed.yml", command, more);
        // A stream has no end of its own where a job has none; the long tests move a great deal.
        let bound = if is_long() { "1800" } else { "120" };
        let mut bounded = Command::new("timeout");
        bounded.args([bound.as_ref(), binary().as_os_str()]).args(["job", "create", "-f", "streamed.yml", "--stream"]);
        bounded
            .current_dir(self.path())
            .env("PEREGRINE_HOME", self.home())
            .env_remove("PEREGRINE_LOG")
            .stdin(Stdio::null());
        said(bounded.output().unwrap())
    }

    /// Submits a command as a job of that name and does not wait for it.
    pub(crate) fn begin(&self, name: &str, command: &str, more: &str) {
        let file = format!("{name}.yml");
        self.job_file(&file, command, more);
        self.ok(&["job", "create", "-f", &file, "-n", name, "-o", "none"]);
    }

    /// Whatever went wrong before, a good job still completes.
    pub(crate) fn is_well(&self) {
        let said = self.stream("echo all is well", "");
        assert_eq!((said.code, said.out.as_str()), (Some(0), "all is well\n"), "{}", said.err);
    }

    /// Writes the settings of the home, before its first use.
    pub(crate) fn configure(&self, settings: &str) {
        self.file("home/peregrine.toml", settings);
    }

    /// Waits until a job has this status.
    pub(crate) fn until_status(&self, name: &str, status: &str) {
        self.until(&format!("`{name}` to be {status}"), || self.job(name)["status"] == status);
    }
}

/// Whether the long forms of tests were asked for, as `cargo xtask soak` does.
pub(crate) fn is_long() -> bool {
    std::env::var_os("PEREGRINE_LONG").is_some()
}

/// Of many that are alike every third, and all where the long forms were asked for.
pub(crate) fn some_of<T>(all: &[T]) -> Vec<&T> {
    all.iter().step_by(if is_long() { 1 } else { 3 }).collect()
}

/// Sleeps before the next look at something that has been waited for since then: every look costs the processor that is waited for.
fn pause(began: Instant) {
    std::thread::sleep((began.elapsed() / 10).clamp(Duration::from_millis(50), Duration::from_millis(500)));
}

impl Said {
    /// The exit code, and every one of the words in what went to standard error.
    pub(crate) fn must(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in:\n{}", self.err);
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // The keeper first, so that nothing is started again; then whatever names this home.
        for _ in 0..3 {
            for role in ["keeper", "agent", "server"] {
                self.kill(role);
            }
        }
        for (pid, _) in processes_with(&self.home().display().to_string()) {
            signal(pid, "KILL");
        }
    }
}

pub(crate) fn binary() -> PathBuf {
    std::env::var_os("PEREGRINE_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_peregrine")), PathBuf::from)
}

pub(crate) fn said(output: Output) -> Said {
    Said {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn signal(pid: i32, name: &str) -> bool {
    Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Pid and command line of every process whose command line contains the text.
pub(crate) fn processes_with(text: &str) -> Vec<(i32, String)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (line.contains(text) && pid != i32::try_from(std::process::id()).ok()?).then_some((pid, line))
        })
        .collect()
}
