//! Removing what nobody finished: drafts and blocks whose client never came back, snapshots that no code refers to.

use super::Files;
use domain::Timestamp;
use std::{collections::HashSet, fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

/// A draft or a block that nobody wrote to for this long belongs to nobody.
pub const DRAFT_LIFE: Duration = Duration::from_secs(24 * 3600);
/// A snapshot that no code version refers to is kept this long.
pub const SNAPSHOT_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Containers of code snapshots begin with this.
const SNAPSHOT: &str = "snap-";

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub drafts: usize,
    pub snapshots: usize,
}

impl Files {
    /// Removes drafts and blocks that nobody touched since `DRAFT_LIFE` before `now`.
    pub fn sweep_drafts(&self, now: Timestamp) -> usize {
        let Ok(entries) = fs::read_dir(self.root.join(".drafts")) else { return 0 };
        let old = entries.flatten().filter(|entry| is_older(&entry.path(), now, DRAFT_LIFE));
        let removed = old.filter(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => self.uploads.give_up(&entry.file_name().to_string_lossy()),
            _ => fs::remove_file(entry.path()).is_ok(),
        });
        removed.count()
    }

    /// Snapshots that are older than `SNAPSHOT_LIFE`, as workspace and container.
    pub fn old_snapshots(&self, now: Timestamp) -> Vec<(String, String)> {
        let mut old = Vec::new();
        for workspace in fs::read_dir(&*self.root).into_iter().flatten().flatten() {
            let name = workspace.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            for container in fs::read_dir(workspace.path()).into_iter().flatten().flatten() {
                let inner = container.file_name().to_string_lossy().into_owned();
                if inner.starts_with(SNAPSHOT) && is_older(&container.path(), now, SNAPSHOT_LIFE) {
                    old.push((name.clone(), inner));
                }
            }
        }
        old
    }

    /// Removes those snapshots that are not `referred` to.
    pub fn sweep_snapshots(&self, old: &[(String, String)], referred: &HashSet<String>) -> usize {
        let lost = old.iter().filter(|(_, container)| !referred.contains(container));
        lost.filter(|(workspace, container)| fs::remove_dir_all(self.container(workspace, container)).is_ok()).count()
    }
}

/// The names of snapshots in a text.
pub(crate) fn snapshots_in(text: &str) -> impl Iterator<Item = String> {
    text.match_indices(SNAPSHOT).map(|(at, _)| {
        let rest = &text[at + SNAPSHOT.len()..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        format!("{SNAPSHOT}{}", &rest[..end])
    })
}

/// Whether a file, or all of a folder's own files, were last changed longer ago than this.
fn is_older(path: &Path, now: Timestamp, than: Duration) -> bool {
    let inner = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let times = inner.chain([path.to_owned()]).filter_map(|path| Some(fs::symlink_metadata(path).ok()?.mtime()));
    let newest = times.max().map_or(i64::MAX, |seconds| seconds.saturating_mul(1000));
    now.0.saturating_sub(newest) > i64::try_from(than.as_millis()).unwrap_or(i64::MAX)
}
