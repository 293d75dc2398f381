//! Where an attempt's logs lie, and what the platform adds to them.
//!
//! The first attempt writes to `user_logs/` and `system_logs/`, retry `n` to the same under `retry-00n/`.
//! Processes write to their log themselves, so a log grows whether or not anyone of ours is alive. A log begins in the
//! attempt's folder and is moved to its place, still being written to, when the command has run for a moment or has
//! written something; one that stays empty to the end is never stored, and reads as empty.
//!
//! Where the job's place is not on this node, logs stay in the attempt's folder and are shipped from there; the server
//! then knows which retry they are of, and each part has system logs of its own.

use super::share;
use domain::{Assignment, Place, job::Failure};
use std::{
    convert::Infallible,
    fs,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// How much of the end of a log goes into a failure message.
const TAIL_BYTES: u64 = 4096;
const TAIL_LINES: usize = 20;
/// How far back a cause is looked for.
const END_BYTES: u64 = 128 << 10;

/// A replica may print for months: a log past this begins anew.
const CUT_AT: u64 = 16 << 20;

/// How long a command runs before its log is put in its place, empty or not.
const PUBLISH_AFTER: Duration = Duration::from_millis(100);

pub(crate) struct Logs {
    root: PathBuf,
    /// The attempt's own folder, where logs begin.
    folder: PathBuf,
    /// The ranks whose processes write here, of all there are.
    own: Vec<u32>,
    ranks: u32,
    /// Where captured outputs go.
    captured: Place,
    /// Tells the system logs of one part from another's.
    suffix: String,
}

impl Logs {
    pub(crate) fn of(assignment: &Assignment, folder: PathBuf) -> Result<Logs, Failure> {
        let retry = match assignment.number {
            0 => String::new(),
            n => format!("retry-{n:03}/"),
        };
        let (root, captured) = match &assignment.plan.artifacts {
            Place::Folder { path } => {
                let root = path.join(&retry);
                let captured = Place::Folder { path: root.join("outputs") };
                (root, captured)
            }
            Place::Object { url, datastore, options } => {
                let url = format!("{}/{retry}outputs", url.trim_end_matches('/'));
                let captured = Place::Object { url, datastore: datastore.clone(), options: options.clone() };
                (folder.join("logs"), captured)
            }
            Place::Http { .. } => {
                return Err(Failure::new("UnsupportedStore", "logs cannot be written to a plain address"));
            }
        };
        let suffix = match &assignment.part {
            Some(part) if part.index > 0 => format!("-part{}", part.index),
            _ => String::new(),
        };
        let (own, ranks) = (share::own(assignment), share::ranks(assignment));
        Ok(Logs { root, folder, own, ranks, captured, suffix })
    }

    /// Whether the logs have to be brought to the server.
    pub(crate) fn are_away(&self) -> bool {
        !matches!(self.captured, Place::Folder { .. })
    }

    /// Where a folder beside `outputs` goes, where that is not on this node.
    pub(crate) fn away(&self, name: &str) -> Option<Place> {
        let Place::Object { url, datastore, options } = &self.captured else { return None };
        let url = format!("{}{name}", url.strip_suffix("outputs")?);
        Some(Place::Object { url, datastore: datastore.clone(), options: options.clone() })
    }

    /// The folder that holds the logs of this attempt.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where what the command leaves in `./outputs` goes.
    pub(crate) fn captured(&self) -> &Place {
        &self.captured
    }

    /// Where a rank's standard output and error go at first.
    pub(crate) fn draft(&self, rank: u32) -> PathBuf {
        self.folder.join(format!("log-{rank}"))
    }

    /// The beginning of where every rank's goes; its number follows.
    pub(crate) fn draft_of_any(&self) -> String {
        self.folder.join("log-").display().to_string()
    }

    /// Moves the logs to their place once the command has run for a moment. Never returns.
    pub(crate) async fn publish_soon(&self) -> Infallible {
        tokio::time::sleep(PUBLISH_AFTER).await;
        for rank in &self.own {
            self.publish(*rank);
        }
        std::future::pending().await
    }

    /// Moves the logs that hold something to their place.
    pub(crate) fn publish_written(&self) {
        for rank in &self.own {
            if fs::metadata(self.draft(*rank)).is_ok_and(|meta| meta.len() > 0) {
                self.publish(*rank);
            }
        }
    }

    fn publish(&self, rank: u32) {
        let (from, to) = (self.draft(rank), self.user(rank));
        if let Some(folder) = to.parent()
            && from.exists()
            && let Err(error) = fs::create_dir_all(folder).and_then(|()| fs::rename(&from, &to))
        {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot put a log in its place");
        }
    }

    /// The place of one rank's log.
    pub(crate) fn user(&self, rank: u32) -> PathBuf {
        let name = if self.ranks > 1 { format!("std_log_process_{rank}.txt") } else { "std_log.txt".to_owned() };
        self.root.join("user_logs").join(name)
    }

    /// Adds a line of ours to a system log.
    pub(crate) fn system(&self, name: &str, line: &str) {
        let folder = self.root.join("system_logs");
        let _ = fs::create_dir_all(&folder);
        let name =
            name.strip_suffix(".log").map_or_else(|| name.to_owned(), |stem| format!("{stem}{}.log", self.suffix));
        if let Ok(mut file) = fs::File::options().create(true).append(true).open(folder.join(name)) {
            let _ = writeln!(file, "{line}");
        }
    }

    /// The last lines of a rank's log.
    pub(crate) fn tail(&self, rank: u32) -> String {
        let text = self.last_bytes(rank, TAIL_BYTES);
        let lines: Vec<&str> = text.trim_end().lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    /// As much of the end of a rank's log as a cause may be far from it.
    pub(crate) fn end(&self, rank: u32) -> String {
        self.last_bytes(rank, END_BYTES)
    }

    fn last_bytes(&self, rank: u32, most: u64) -> String {
        let opened = fs::File::open(self.user(rank)).or_else(|_| fs::File::open(self.draft(rank)));
        let Ok(mut file) = opened else { return String::new() };
        let length = file.metadata().map_or(0, |meta| meta.len());
        let _ = file.seek(SeekFrom::Start(length.saturating_sub(most)));
        let mut bytes = Vec::new();
        let _ = file.take(most).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Begins logs anew that have grown long. Their processes go on writing at the end of them, wherever that is.
    pub(crate) async fn cut(&self) {
        let told = self.root.join("system_logs").join(format!("lifecycle{}.log", self.suffix));
        for log in self.own.iter().map(|rank| self.user(*rank)).chain([told]) {
            let away = self.are_away();
            let cut = tokio::task::spawn_blocking(move || cut(&log, CUT_AT, away)).await;
            if let Ok(Err(error)) = cut {
                tracing::error!(error = &error as &dyn std::error::Error, "cannot cut a log");
            }
        }
    }
}

impl crate::environment::Log for Logs {
    fn line(&self, text: &str) {
        self.system("environment.log", text);
    }
}

/// Empties a log that is longer than `limit`. What it held is kept beside it, unless the server has it by now.
fn cut(log: &Path, limit: u64, away: bool) -> io::Result<()> {
    if !fs::metadata(log).is_ok_and(|meta| meta.len() > limit) {
        return Ok(());
    }
    let older = log.with_extension("1.txt");
    let before = match (away, older.file_name()) {
        (false, Some(name)) => {
            fs::copy(log, &older)?;
            format!("the part before is in `{}`, and older parts are gone", name.to_string_lossy())
        }
        _ => "the server has the part before, as far as it could be reached".to_owned(),
    };
    let mut file = fs::File::options().append(true).open(log)?;
    file.set_len(0)?;
    writeln!(file, "[peregrine] this log was cut here when it had grown past {limit} bytes; {before}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_is_cut_keeps_its_last_part_and_takes_what_comes() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("std_log.txt");
        let mut writer = fs::File::options().create(true).append(true).open(&log).unwrap();
        writeln!(writer, "{}", "a".repeat(50)).unwrap();
        cut(&log, 100, false).unwrap();
        assert_eq!(fs::metadata(&log).unwrap().len(), 51, "it is not long yet");
        writeln!(writer, "{}", "b".repeat(100)).unwrap();
        cut(&log, 100, false).unwrap();
        writeln!(writer, "after").unwrap();
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.starts_with("[peregrine]") && text.contains("`std_log.1.txt`"), "{text}");
        assert!(text.ends_with("\nafter\n") && text.lines().count() == 2, "{text}");
        assert_eq!(fs::metadata(folder.path().join("std_log.1.txt")).unwrap().len(), 152);
    }
}
