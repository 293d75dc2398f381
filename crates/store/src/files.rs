//! Files of the workspace's own stores: blobs in containers, on this machine's disk.
//!
//! Invariants: a path from outside never leaves its container; a file appears whole or not at all.
//! Layout: `<home>/blobs/<workspace>/<container>/<path>`. The artifact container `azureml` holds
//! `ExperimentRun/dcid.<job>/` for each job, which agents on this machine write to directly.

mod aside;
mod copy;

use crate::Error;
use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// The container of run artifacts: logs and captured outputs.
pub const ARTIFACT_CONTAINER: &str = "azureml";

/// Names files under a home.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
}

/// A path that would leave its container, or cannot be a file name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a path inside a container")]
pub struct BadPath(pub String);

/// What is known of a file without reading it.
#[derive(Debug, Clone)]
pub struct Found {
    /// Relative to the container, with `/`.
    pub path: String,
    pub bytes: u64,
    pub modified: domain::Timestamp,
}

impl Files {
    pub fn under(home: &Path) -> Files {
        Files { root: home.join("blobs") }
    }

    pub fn container(&self, workspace: &str, container: &str) -> PathBuf {
        self.root.join(workspace).join(container)
    }

    /// Where a blob lies; the path may use `/` and must stay inside.
    pub fn blob(&self, workspace: &str, container: &str, path: &str) -> Result<PathBuf, BadPath> {
        let bad = || BadPath(path.chars().take(200).collect());
        if [workspace, container]
            .iter()
            .any(|part| part.is_empty() || part.contains(['/', '\0']) || *part == ".." || *part == ".")
        {
            return Err(bad());
        }
        let relative = Path::new(path);
        let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || path.contains('\0') || !inside {
            return Err(bad());
        }
        Ok(self.container(workspace, container).join(relative))
    }

    /// The folder of a job's logs and captured outputs.
    pub fn artifacts(&self, workspace: &str, job: &str) -> PathBuf {
        self.container(workspace, ARTIFACT_CONTAINER).join("ExperimentRun").join(format!("dcid.{job}"))
    }

    /// A fresh path on the same disk to write a draft to.
    pub fn draft(&self, unique: &str) -> io::Result<PathBuf> {
        let folder = self.root.join(".drafts");
        fs::create_dir_all(&folder)?;
        Ok(folder.join(unique))
    }

    /// Puts a finished draft in its place. `false` when something is there and may not be replaced.
    pub fn publish(&self, draft: &Path, to: &Path, replace: bool) -> Result<bool, Error> {
        let fail = |what| {
            let path = to.to_owned();
            move |source: io::Error| full_or(source, what, path)
        };
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(fail("make the folder of"))?;
        }
        if replace {
            fs::rename(draft, to).map_err(fail("put"))?;
            return Ok(true);
        }
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, draft, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::EXIST) => {
                let _ = fs::remove_file(draft);
                Ok(false)
            }
            Err(error) => Err(fail("put")(error.into())),
        }
    }

    /// Makes everything written to this disk so far survive a power cut.
    pub fn sync(&self) -> Result<(), Error> {
        let fail = |source: io::Error| Error::Io { what: "sync", path: self.root.clone(), source };
        fs::create_dir_all(&self.root).map_err(fail)?;
        let folder = fs::File::open(&self.root).map_err(fail)?;
        rustix::fs::syncfs(&folder).map_err(|errno| fail(errno.into()))
    }

    /// Files below a prefix, by path; at most `limit`, after `marker`.
    pub fn list(
        &self,
        workspace: &str,
        container: &str,
        prefix: &str,
        marker: &str,
        limit: usize,
    ) -> Result<Vec<Found>, BadPath> {
        let base = self.container(workspace, container);
        // Also without a folder in the prefix, the names themselves must be sound.
        let folder = match prefix.rsplit_once('/') {
            Some((folder, _)) => self.blob(workspace, container, folder)?,
            None => self.blob(workspace, container, "any").map(|_| base.clone())?,
        };
        let mut found = Vec::new();
        walk(&folder, &base, &mut found);
        found.retain(|file| file.path.starts_with(prefix) && (marker.is_empty() || file.path.as_str() > marker));
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.truncate(limit);
        Ok(found)
    }
}

/// Whether a file lies in its container also when links are followed.
pub fn stays_inside(container: &Path, file: &Path) -> bool {
    match (container.canonicalize(), file.canonicalize()) {
        (Ok(container), Ok(file)) => file.starts_with(container),
        _ => false,
    }
}

/// A full disk is a fault of its own; anything else keeps its cause.
pub fn full_or(source: io::Error, what: &'static str, path: PathBuf) -> Error {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { path },
        _ => Error::Io { what, path, source },
    }
}

fn walk(folder: &Path, base: &Path, found: &mut Vec<Found>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            walk(&path, base, found);
        } else if meta.is_file()
            && let Ok(relative) = path.strip_prefix(base)
        {
            let modified = meta.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            let millis = modified.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0);
            found.push(Found {
                path: relative.to_string_lossy().into_owned(),
                bytes: meta.len(),
                modified: domain::Timestamp(millis),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_never_leaves_its_container() {
        let files = Files::under(Path::new("/h"));
        for bad in ["", "../x", "a/../../x", "/etc/passwd", "a/./../..", "a\0b"] {
            assert!(files.blob("w", "c", bad).is_err(), "{bad:?}");
        }
        assert!(files.blob("..", "c", "a").is_err());
        assert!(files.blob("w", "a/b", "a").is_err());
        assert!(files.list("..", "..", "", "", 1).is_err());
        assert_eq!(files.blob("w", "c", "a/b.txt").unwrap(), Path::new("/h/blobs/w/c/a/b.txt"));
    }

    #[test]
    fn publishing_twice_keeps_the_first() {
        let home = tempfile::tempdir().unwrap();
        let files = Files::under(home.path());
        let to = files.blob("w", "c", "x/y").unwrap();
        for (text, first) in [("one", true), ("two", false)] {
            let draft = files.draft(text).unwrap();
            fs::write(&draft, text).unwrap();
            assert_eq!(files.publish(&draft, &to, false).unwrap(), first);
        }
        assert_eq!(fs::read_to_string(&to).unwrap(), "one");
        assert_eq!(files.list("w", "c", "x/", "", 10).unwrap().len(), 1);
    }
}
