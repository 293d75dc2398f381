//! Where an attempt's logs lie, and what the platform adds to them.
//!
//! The first attempt writes to `user_logs/` and `system_logs/`, retry `n` to the same under `retry-00n/`.
//! Processes write to their log themselves, so a log grows whether or not anyone of ours is alive.

use domain::{Assignment, Place, job::Failure};
use std::{
    fs,
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// How much of the end of a log goes into a failure message.
const TAIL_BYTES: u64 = 4096;
const TAIL_LINES: usize = 20;

pub(crate) struct Logs {
    root: PathBuf,
    ranks: u32,
}

impl Logs {
    pub(crate) fn of(assignment: &Assignment) -> Result<Logs, Failure> {
        let Place::Folder { path } = &assignment.plan.artifacts else {
            return Err(Failure::new("UnsupportedStore", "logs can only be written to a folder on this node"));
        };
        let root = match assignment.number {
            0 => path.clone(),
            n => path.join(format!("retry-{n:03}")),
        };
        Ok(Logs { root, ranks: super::ranks(assignment) })
    }

    /// The folder that holds the logs and the captured outputs of this attempt.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The log of one rank's standard output and error.
    pub(crate) fn user(&self, rank: u32) -> PathBuf {
        let name = if self.ranks > 1 { format!("std_log_process_{rank}.txt") } else { "std_log.txt".to_owned() };
        self.root.join("user_logs").join(name)
    }

    /// Adds a line of ours to a system log.
    pub(crate) fn system(&self, name: &str, line: &str) {
        let folder = self.root.join("system_logs");
        let _ = fs::create_dir_all(&folder);
        if let Ok(mut file) = fs::File::options().create(true).append(true).open(folder.join(name)) {
            let _ = writeln!(file, "{line}");
        }
    }

    /// The last lines of a rank's log.
    pub(crate) fn tail(&self, rank: u32) -> String {
        let Ok(mut file) = fs::File::open(self.user(rank)) else { return String::new() };
        let length = file.metadata().map_or(0, |meta| meta.len());
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)));
        let mut bytes = Vec::new();
        let _ = file.take(TAIL_BYTES).read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

impl crate::environment::Log for Logs {
    fn line(&self, text: &str) {
        self.system("environment.log", text);
    }
}
