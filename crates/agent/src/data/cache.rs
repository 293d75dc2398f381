//! Fetched data, kept by content until room is needed.
//!
//! An entry is a folder `<key>` with `data/`, the file `ok` (its size; its time is the last use) and `holds/`, one
//! empty file for each attempt that uses it. Holds are files so that they outlive this process. Invariants: an entry
//! has its `ok` from the moment it has its name; an entry with a hold is not evicted.

use super::{
    Error,
    local::{disk, make_folder, partial_beside},
};
use crate::environment::lock::Lock;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
    time::SystemTime,
};

/// Entries by key under one folder.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
    limit_bytes: u64,
    /// Between finding an entry and holding it nothing may be evicted.
    gate: Mutex<()>,
}

impl Cache {
    pub(super) fn new(root: PathBuf, limit_bytes: u64) -> Cache {
        Cache { root, limit_bytes, gate: Mutex::new(()) }
    }

    pub(super) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// The entry `key`, held by `holder`: there already, or for the caller to fill. Callers at once take turns, so all
    /// but the first find it there.
    pub(super) async fn claim(&self, key: &str, holder: &str) -> Result<Claim, Error> {
        let folder = self.root.join(key);
        if self.hold(&folder, holder)? {
            return Ok(Claim::There(folder.join("data")));
        }
        let lock = Lock::acquire(&folder.with_extension("lock"), || {}).await;
        let lock = lock.map_err(|error| disk(&folder, "written", error))?;
        if self.hold(&folder, holder)? {
            lock.forget();
            return Ok(Claim::There(folder.join("data")));
        }
        let partial = Partial { folder: folder.with_extension("partial"), lock: Some(lock) };
        let _left_by_a_killed_agent = fs::remove_dir_all(&partial.folder);
        make_folder(&partial.folder.join("holds"))?;
        Ok(Claim::Missing(Filling { partial, folder, holder: holder.to_owned() }))
    }

    /// A folder of its own for something that has no key yet, removed when dropped.
    pub(super) fn scratch(&self) -> Result<Partial, Error> {
        let folder = partial_beside(&self.root.join("x")).with_extension("partial");
        let lock =
            Lock::try_acquire(&folder.with_extension("lock")).map_err(|error| disk(&folder, "written", error))?;
        make_folder(&folder)?;
        Ok(Partial { folder, lock })
    }

    pub(super) fn release(&self, whose: impl Fn(&str) -> bool) {
        for entry in self.entries() {
            for hold in entry.holds() {
                if hold.file_name().and_then(|name| name.to_str()).is_some_and(&whose) {
                    let _gone_already = fs::remove_file(hold);
                }
            }
        }
    }

    /// Removes what killed agents have left half-fetched.
    pub(super) fn sweep(&self) {
        let Ok(found) = self.root.read_dir() else { return };
        for folder in found
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "partial"))
        {
            if let Ok(Some(lock)) = Lock::try_acquire(&folder.with_extension("lock")) {
                drop(Partial { folder, lock: Some(lock) });
            }
        }
    }

    /// Evicts entries that nobody holds, longest unused first, until `bytes` more fit or none is left.
    pub(super) fn make_room(&self, bytes: u64) {
        let _closed = self.gate();
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.used_at);
        let mut all: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries.iter().filter(|entry| entry.holds().is_empty()) {
            if all.saturating_add(bytes) <= self.limit_bytes {
                return;
            }
            tracing::info!(bytes = entry.bytes, "evicting `{}` from the data cache", entry.folder.display());
            // Without its `ok` it is no entry, even if removing it takes long or fails.
            if fs::remove_file(entry.folder.join("ok")).and_then(|()| fs::remove_dir_all(&entry.folder)).is_ok() {
                all = all.saturating_sub(entry.bytes);
            }
        }
    }

    /// Marks the entry as used by `holder`; false if there is none.
    fn hold(&self, folder: &Path, holder: &str) -> Result<bool, Error> {
        let _closed = self.gate();
        let Ok(ok) = File::options().write(true).open(folder.join("ok")) else {
            // A folder without its mark was being evicted when its agent was killed.
            let _absent = fs::remove_dir_all(folder);
            return Ok(false);
        };
        add_hold(folder, holder).map_err(|error| disk(folder, "written", error))?;
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let _less_exact_eviction = futimens(&ok, &Timestamps { last_access: now, last_modification: now });
        Ok(true)
    }

    fn entries(&self) -> Vec<CacheEntry> {
        let found = self.root.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        found.filter_map(CacheEntry::read).collect()
    }

    fn gate(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What a caller finds under a key.
pub(super) enum Claim {
    /// The finished `data` folder.
    There(PathBuf),
    Missing(Filling),
}

/// An entry on its way; dropped before its end it leaves nothing.
pub(super) struct Filling {
    partial: Partial,
    folder: PathBuf,
    holder: String,
}

impl Filling {
    /// The folder to make and fill.
    pub(super) fn data(&self) -> PathBuf {
        self.partial.folder.join("data")
    }

    /// Makes it an entry; gives its `data` folder.
    pub(super) fn finish(self) -> Result<PathBuf, Error> {
        let failed = |error| disk(&self.folder, "written", error);
        add_hold(&self.partial.folder, &self.holder).map_err(failed)?;
        fs::write(self.partial.folder.join("ok"), size_of(&self.data()).to_string()).map_err(failed)?;
        fs::rename(&self.partial.folder, &self.folder).map_err(failed)?;
        Ok(self.folder.join("data"))
    }
}

struct CacheEntry {
    folder: PathBuf,
    bytes: u64,
    used_at: SystemTime,
}

impl CacheEntry {
    fn read(folder: PathBuf) -> Option<CacheEntry> {
        if folder.extension().is_some() {
            return None;
        }
        let ok = folder.join("ok");
        let bytes = fs::read_to_string(&ok).ok()?.parse().ok()?;
        let used_at = ok.metadata().and_then(|meta| meta.modified()).ok()?;
        Some(CacheEntry { folder, bytes, used_at })
    }

    fn holds(&self) -> Vec<PathBuf> {
        self.folder.join("holds").read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }
}

/// A fetch on its way; what it leaves is removed unless it took its final name.
#[derive(Debug)]
pub(super) struct Partial {
    folder: PathBuf,
    lock: Option<Lock>,
}

impl Partial {
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _renamed = fs::remove_dir_all(&self.folder);
        if let Some(lock) = self.lock.take() {
            lock.forget();
        }
    }
}

/// Attempt ids are plain names; anything else would not be found again.
fn add_hold(folder: &Path, holder: &str) -> io::Result<()> {
    if holder.is_empty() || holder.contains('/') || holder.starts_with('.') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{holder}` is no holder")));
    }
    fs::write(folder.join("holds").join(holder), "")
}

fn size_of(folder: &Path) -> u64 {
    super::walk(folder).map_or(0, |tree| tree.entries.iter().map(|entry| entry.bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn put(cache: &Cache, key: &str, holder: &str, bytes: usize) -> PathBuf {
        let Claim::Missing(filling) = cache.claim(key, holder).await.unwrap() else { panic!("`{key}` is there") };
        cache.make_room(bytes as u64);
        fs::create_dir_all(filling.data()).unwrap();
        fs::write(filling.data().join("f"), vec![0; bytes]).unwrap();
        filling.finish().unwrap()
    }

    #[tokio::test]
    async fn the_longest_unused_goes_first_and_what_is_held_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("c"), 100);
        let a = put(&cache, "a", "one", 40).await;
        let b = put(&cache, "b", "two", 40).await;
        cache.release(|holder| holder == "two");
        let c = put(&cache, "c", "three", 40).await;
        assert!(a.exists() && !b.exists() && c.exists(), "`a` is older, but held");
        cache.release(|_| true);
        assert!(cache.hold(a.parent().unwrap(), "four").unwrap());
        cache.release(|_| true);
        put(&cache, "d", "five", 30).await;
        assert!(a.exists() && !c.exists(), "`a` was used after `c`");
    }

    #[tokio::test]
    async fn a_failed_fetch_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), 100);
        let Claim::Missing(filling) = cache.claim("k", "h").await.unwrap() else { panic!("`k` is there") };
        fs::create_dir_all(filling.data()).unwrap();
        drop(filling);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn what_a_killed_agent_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned(), 100);
        fs::create_dir_all(folder.path().join("k.partial/data")).unwrap();
        let evicting = folder.path().join("e/data/half");
        fs::create_dir_all(&evicting).unwrap();
        cache.sweep();
        put(&cache, "e", "h", 1).await;
        assert!(!folder.path().join("k.partial").exists() && !evicting.exists());
    }
}
