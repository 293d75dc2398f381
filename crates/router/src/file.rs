//! A file of routes, read again when it changes. A file with mistakes leaves the table as it was.

use crate::table::Routes;
use domain::spec::Routes as Spec;
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What tells one state of a file from another; files that are moved into place differ in the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp(Option<(SystemTime, u64, u64)>);

impl Stamp {
    pub(crate) fn of(path: &Path) -> Stamp {
        use std::os::unix::fs::MetadataExt;
        let stamp = |meta: fs::Metadata| Some((meta.modified().ok()?, meta.len(), meta.ino()));
        Stamp(fs::metadata(path).ok().and_then(stamp))
    }
}

/// A file of routes as it was at some time.
#[derive(Debug, Clone)]
pub struct RoutesFile {
    path: PathBuf,
    known: Stamp,
}

impl RoutesFile {
    /// Remembers the file as it is. Whoever reads it does so afterwards: what changes in between is then read again.
    pub fn now(path: &Path) -> RoutesFile {
        RoutesFile { path: path.to_owned(), known: Stamp::of(path) }
    }
}

/// Looks at the file for as long as it is polled.
pub(crate) async fn keep_fresh(routes: &Routes, file: Option<RoutesFile>) {
    let Some(RoutesFile { path, mut known }) = file else { return std::future::pending().await };
    loop {
        let found = Stamp::of(&path);
        if found != known {
            known = found;
            read(routes, &path);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn read(routes: &Routes, path: &Path) {
    let shown = path.display().to_string();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            return tracing::warn!(%error, file = shown, "kept the routes as they were: the file cannot be read");
        }
    };
    match Spec::read(&shown, &text) {
        Ok(spec) => {
            routes.install(&spec);
            tracing::info!(file = shown, endpoints = spec.endpoints.len(), "installed the routes");
        }
        Err(mistakes) => {
            for mistake in mistakes {
                tracing::warn!(%mistake, "kept the routes as they were");
            }
        }
    }
}
