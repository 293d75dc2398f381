//! Fetched data, kept by content until room is needed.
//!
//! An entry is a folder `<key>` with `data/`, the file `ok` (its size; its time is the last use), `source` (its address), `sum`
//! (a digest, where it was taken) and `holds/`, one file for each attempt that uses it, with the home of its agent in it. Holds
//! are files so that they outlive this process; one whose home is gone holds nothing. Several agents of one machine may share
//! the folder. Invariants: an entry has its `ok` from the moment it has its name, and has its name until it is gone; an entry
//! with a hold is not evicted; what is on its way counts as there.

use super::{
    Error,
    local::{disk, make_folder, partial_beside},
};
use crate::environment::lock::Lock;
use domain::kept::{Kept, MOST_TOLD};
use ring::digest;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens, statvfs};
use std::{
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// What is left on the disk for everything else.
const SPARE_BYTES: u64 = 128 << 20;

/// Entries by key under one folder.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
    limit_bytes: u64,
    /// The home of this agent, whose holds are ours.
    owner: PathBuf,
}

impl Cache {
    pub(super) fn new(root: PathBuf, limit_bytes: u64, owner: PathBuf) -> Cache {
        Cache { root, limit_bytes, owner }
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
        // A folder without its mark is no entry; while the lock is ours nobody makes it one.
        let _absent = fs::remove_dir_all(&folder);
        make_folder(&partial.folder.join("holds"))?;
        let hold = self.hold_of(holder).map_err(|error| disk(&folder, "written", error))?;
        Ok(Claim::Missing(Filling { partial, folder, hold }))
    }

    /// A folder of its own for something that has no key yet, removed when dropped.
    pub(super) fn scratch(&self) -> Result<Partial, Error> {
        let folder = partial_beside(&self.root.join("x")).with_extension("partial");
        let lock =
            Lock::try_acquire(&folder.with_extension("lock")).map_err(|error| disk(&folder, "written", error))?;
        make_folder(&folder)?;
        Ok(Partial { folder, lock })
    }

    /// Lets go of what agents of this home hold under such names.
    pub(super) fn release(&self, whose: impl Fn(&str) -> bool) {
        for hold in self.entries().iter().flat_map(CacheEntry::holds) {
            let name = hold.file_name().and_then(|name| name.to_str()?.split('.').next());
            if name.is_some_and(&whose) && owner_of(&hold).is_none_or(|owner| owner == self.owner) {
                let _gone_already = fs::remove_file(hold);
            }
        }
    }

    /// Removes what killed agents have left half-fetched.
    pub(super) fn sweep(&self) {
        for folder in self.partials() {
            if let Ok(Some(lock)) = Lock::try_acquire(&folder.with_extension("lock")) {
                drop(Partial { folder, lock: Some(lock) });
            }
        }
    }

    /// Evicts entries that nobody holds, longest unused first, until `bytes` more fit into the limit or none is left, and onto
    /// the disk. Where the disk would be too small all the same, nothing is evicted.
    pub(super) fn make_room(&self, bytes: u64) -> Result<(), Error> {
        let gate = self.gate()?;
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.used_at);
        let on_their_way: u64 = self.partials().filter_map(|folder| read_number(&folder.join("want"))).sum();
        let mut all: u64 = entries.iter().map(|entry| entry.bytes).sum::<u64>() + on_their_way;
        let needs = bytes.saturating_add(SPARE_BYTES);
        let mut free = free_bytes(&self.root);
        entries.retain(|entry| !entry.is_held());
        let could_be = entries.iter().fold(free, |sum, entry| sum.saturating_add(entry.bytes));
        if could_be < needs {
            return Err(Error::NoRoom { at: self.root.clone(), needs: bytes, free: could_be });
        }
        let mut leaving = Vec::new();
        for entry in &entries {
            if all.saturating_add(bytes) <= self.limit_bytes && free >= needs {
                break;
            }
            tracing::info!(bytes = entry.bytes, "evicting `{}` from the data cache", entry.folder.display());
            // It loses its name in one step; removing it may take long, or end with this process.
            let away = partial_beside(&entry.folder).with_extension("partial");
            if fs::rename(&entry.folder, &away).is_ok() {
                (all, free) = (all.saturating_sub(entry.bytes), free.saturating_add(entry.bytes));
                leaving.push(away);
            }
        }
        drop(gate);
        leaving.iter().for_each(|folder| drop(fs::remove_dir_all(folder)));
        Ok(())
    }

    /// What there is of at least this size, last used first.
    pub(super) fn kept(&self, least: u64) -> Vec<Kept> {
        let mut entries = self.entries();
        entries.retain(|entry| entry.bytes >= least);
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used_at));
        entries.truncate(MOST_TOLD);
        entries.iter().map(CacheEntry::told).collect()
    }

    /// Takes the digest of one entry of at least this size that has none; false when all have theirs.
    pub(super) fn sum_one(&self, least: u64) -> bool {
        // One that was evicted meanwhile needs none.
        let take = |entry: &CacheEntry| {
            let sum = sum_of(&entry.folder.join("data"))?;
            fs::write(entry.folder.join("sum.new"), sum)?;
            fs::rename(entry.folder.join("sum.new"), entry.folder.join("sum"))
        };
        let lacks = |entry: &&CacheEntry| entry.bytes >= least && !entry.folder.join("sum").exists();
        self.entries().iter().filter(lacks).any(|entry| take(entry).is_ok())
    }

    /// When an entry last came or went.
    pub(super) fn changed_at(&self) -> Option<SystemTime> {
        self.root.metadata().and_then(|meta| meta.modified()).ok()
    }

    /// The finished `data` folder of an entry, held until it is dropped.
    pub(super) fn lend(&self, key: &str, holder: &str) -> Result<Option<Lent>, Error> {
        let folder = self.root.join(key);
        let hold = folder.join("holds").join(self.hold_of(holder).map_err(|error| disk(&folder, "read", error))?.0);
        Ok(self.hold(&folder, holder)?.then(|| Lent { data: folder.join("data"), hold }))
    }

    /// Marks the entry as used by `holder`; false if there is none.
    fn hold(&self, folder: &Path, holder: &str) -> Result<bool, Error> {
        let _closed = self.gate()?;
        let Ok(ok) = File::options().write(true).open(folder.join("ok")) else { return Ok(false) };
        let hold = self.hold_of(holder).and_then(|hold| hold.add(folder));
        hold.map_err(|error| disk(folder, "written", error))?;
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let _less_exact_eviction = futimens(&ok, &Timestamps { last_access: now, last_modification: now });
        Ok(true)
    }

    /// Attempt ids are plain names; anything else would not be found again.
    fn hold_of(&self, holder: &str) -> io::Result<Hold> {
        if holder.is_empty() || holder.contains(['/', '.']) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{holder}` is no holder")));
        }
        // Parts of one attempt may share the machine.
        let own = digest::digest(&digest::SHA256, self.owner.as_os_str().as_bytes());
        let name = format!("{holder}.{}", crate::environment::request::hex(&own.as_ref()[..4]));
        Ok(Hold(name, self.owner.clone()))
    }

    fn entries(&self) -> Vec<CacheEntry> {
        self.folders().filter_map(CacheEntry::read).collect()
    }

    fn partials(&self) -> impl Iterator<Item = PathBuf> {
        self.folders().filter(|path| path.extension().is_some_and(|end| end == "partial"))
    }

    fn folders(&self) -> impl Iterator<Item = PathBuf> + use<> {
        self.root.read_dir().into_iter().flatten().flatten().map(|entry| entry.path())
    }

    /// Between finding an entry and holding it nothing may be evicted, by whichever process.
    fn gate(&self) -> Result<File, Error> {
        let path = self.root.with_extension("gate");
        make_folder(&self.root)?;
        let file = File::create(&path).and_then(|file| file.lock().map(|()| file));
        file.map_err(|error| disk(&path, "locked", error))
    }
}

/// A use of an entry: its name, and the home of whoever uses it.
struct Hold(String, PathBuf);

impl Hold {
    fn add(&self, entry: &Path) -> io::Result<()> {
        fs::write(entry.join("holds").join(&self.0), self.1.as_os_str().as_bytes())
    }
}

/// An entry that somebody reads for a moment.
pub(super) struct Lent {
    pub(super) data: PathBuf,
    hold: PathBuf,
}

impl Drop for Lent {
    fn drop(&mut self) {
        let _gone_already = fs::remove_file(&self.hold);
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
    hold: Hold,
}

impl Filling {
    /// The folder to make and fill.
    pub(super) fn data(&self) -> PathBuf {
        self.partial.folder.join("data")
    }

    /// Counts as this many bytes from now on.
    pub(super) fn wants(&self, bytes: u64) -> Result<(), Error> {
        let want = self.partial.folder.join("want");
        fs::write(&want, bytes.to_string()).map_err(|error| disk(&want, "written", error))
    }

    /// Makes it an entry, with the digest of its content where that is known; gives its `data` folder.
    pub(super) fn finish(self, source: &str, sum: Option<&str>) -> Result<PathBuf, Error> {
        let failed = |error| disk(&self.folder, "written", error);
        let write = |name: &str, text: &str| fs::write(self.partial.folder.join(name), text).map_err(failed);
        self.hold.add(&self.partial.folder).map_err(failed)?;
        write("source", source)?;
        sum.map_or(Ok(()), |sum| write("sum", sum))?;
        write("ok", &seal(&self.data())?.to_string())?;
        let _never_wanted = fs::remove_file(self.partial.folder.join("want"));
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
        let bytes = read_number(&ok)?;
        let used_at = ok.metadata().and_then(|meta| meta.modified()).ok()?;
        Some(CacheEntry { folder, bytes, used_at })
    }

    fn holds(&self) -> Vec<PathBuf> {
        self.folder.join("holds").read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }

    /// Whether an agent that is still there uses it.
    fn is_held(&self) -> bool {
        self.holds().iter().any(|hold| owner_of(hold).is_none_or(|owner| owner.exists()))
    }

    fn told(&self) -> Kept {
        let text = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        let key = self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Kept { key, source: text("source"), bytes: self.bytes, sum: text("sum") }
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

/// The home of whoever holds an entry; `None` where none was written down.
fn owner_of(hold: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(hold).ok()?;
    (!text.is_empty()).then(|| PathBuf::from(text))
}

fn read_number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.parse().ok()
}

fn free_bytes(folder: &Path) -> u64 {
    // A disk that cannot be asked says so when it is written to.
    statvfs(folder).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Takes the right to write from every file of an entry, which others read too; its size.
fn seal(folder: &Path) -> Result<u64, Error> {
    let tree = super::walk(folder)?;
    for file in tree.entries.iter().filter(|entry| entry.kind == super::Kind::File) {
        let _as_it_is = fs::set_permissions(folder.join(&file.name), fs::Permissions::from_mode(0o444));
    }
    Ok(tree.entries.iter().map(|entry| entry.bytes).sum())
}

/// SHA-256 of all files of an entry, one after the other by name.
fn sum_of(folder: &Path) -> io::Result<String> {
    let mut sum = digest::Context::new(&digest::SHA256);
    let mut buffer = vec![0; 1 << 20];
    for name in super::files_in_order(folder).map_err(io::Error::other)? {
        let mut file = File::open(folder.join(name))?;
        loop {
            match io::Read::read(&mut file, &mut buffer)? {
                0 => break,
                read => sum.update(&buffer[..read]),
            }
        }
    }
    Ok(crate::environment::request::hex(sum.finish().as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache that the agent of `home`, a folder beside it, uses.
    fn cache(top: &Path, home: &str, limit: u64) -> Cache {
        fs::create_dir_all(top.join(home)).unwrap();
        Cache::new(top.join("c"), limit, top.join(home))
    }

    async fn put(cache: &Cache, key: &str, holder: &str, bytes: usize) -> PathBuf {
        let Claim::Missing(filling) = cache.claim(key, holder).await.unwrap() else { panic!("`{key}` is there") };
        cache.make_room(bytes as u64).unwrap();
        fs::create_dir_all(filling.data()).unwrap();
        fs::write(filling.data().join("f"), vec![0; bytes]).unwrap();
        filling.finish("s3://b/k", None).unwrap()
    }

    #[tokio::test]
    async fn the_longest_unused_goes_first_and_what_is_held_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path(), "h", 100);
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
        let cache = cache(folder.path(), "h", 100);
        let Claim::Missing(filling) = cache.claim("k", "h").await.unwrap() else { panic!("`k` is there") };
        fs::create_dir_all(filling.data()).unwrap();
        drop(filling);
        assert_eq!(fs::read_dir(folder.path().join("c")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn what_a_killed_agent_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path(), "h", 100);
        fs::create_dir_all(folder.path().join("c/k.partial/data")).unwrap();
        let evicting = folder.path().join("c/e/data/half");
        fs::create_dir_all(&evicting).unwrap();
        cache.sweep();
        put(&cache, "e", "h", 1).await;
        assert!(!folder.path().join("c/k.partial").exists() && !evicting.exists());
    }

    #[tokio::test]
    async fn agents_of_one_machine_share_entries_and_a_home_that_is_gone_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (cache(folder.path(), "one", 50), cache(folder.path(), "other", 50));
        let a = put(&one, "a", "att_1", 40).await;
        let Claim::There(found) = other.claim("a", "att_1").await.unwrap() else { panic!("`a` is fetched twice") };
        assert_eq!(found, a);
        // Neither the end of one part nor the start of another agent takes it from the other.
        one.release(|_| true);
        put(&one, "b", "att_2", 40).await;
        assert!(a.exists());
        one.release(|_| true);
        fs::remove_dir_all(folder.path().join("other")).unwrap();
        put(&one, "c", "att_3", 40).await;
        assert!(!a.exists(), "its agent was removed with all it held");
        let kept = one.kept(0);
        assert_eq!((kept.len(), kept[0].key.as_str(), kept[0].bytes), (1, "c", 40));
    }

    #[tokio::test]
    async fn what_is_on_its_way_counts_and_what_the_disk_cannot_hold_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path(), "h", 100);
        let a = put(&cache, "a", "one", 40).await;
        cache.release(|_| true);
        let error = cache.make_room(u64::MAX / 2).unwrap_err();
        let told = error.to_string();
        assert!(matches!(error, Error::NoRoom { .. }) && told.contains("next step"), "{told}");
        assert!(a.exists(), "nothing is evicted in vain");
        let Claim::Missing(filling) = cache.claim("b", "two").await.unwrap() else { panic!("`b` is there") };
        filling.wants(50).unwrap();
        cache.make_room(20).unwrap();
        assert!(!a.exists(), "40, 50 and 20 are more than 100");
    }

    #[tokio::test]
    async fn an_entry_is_sealed_and_its_digest_is_that_of_its_files_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path(), "h", 100);
        let Claim::Missing(filling) = cache.claim("k", "h").await.unwrap() else { panic!("`k` is there") };
        fs::create_dir_all(filling.data().join("b")).unwrap();
        fs::write(filling.data().join("b/c"), "two").unwrap();
        fs::write(filling.data().join("b.x"), "one").unwrap();
        let data = filling.finish("s3://b/k", None).unwrap();
        assert_eq!(fs::metadata(data.join("b/c")).unwrap().permissions().mode() & 0o777, 0o444);
        assert!(cache.sum_one(0) && !cache.sum_one(0));
        let expect = digest::digest(&digest::SHA256, b"onetwo");
        let kept = cache.kept(0);
        assert_eq!(kept[0].sum, crate::environment::request::hex(expect.as_ref()), "`b.x` comes before `b/c`");
        assert_eq!(kept[0].source, "s3://b/k");
    }
}
