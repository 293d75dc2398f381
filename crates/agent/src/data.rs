//! Data on this node: views of what lies elsewhere, copies of it, and sending results away.
//!
//! A folder on this machine is used in place. What lies in an object store or behind an address is fetched once
//! into a cache named by content and shared by all attempts. Invariants: a view is complete or absent; an entry that
//! an attempt holds is never evicted, also not by an agent that was started later; no name that comes from outside
//! leaves the folder it is meant for.

mod cache;
mod http;
mod local;
mod mltable;
mod moved;
mod peers;
mod remote;
mod tree;

pub use mltable::{Eval, Evaluated};
pub use peers::Shelf;
pub use tree::{Entry, Kind, Tree, walk};

pub(crate) use remote::SERVER;

use crate::{outpost::Outpost, server::Server};
use cache::{Cache, Claim, Filling};
use domain::{AttemptId, Place, kept::Kept, resources::humane_bytes};
pub(crate) use moved::Tally;
use peers::Neighbours;
use remote::{Listing, OwnStore, Remote};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::OnceCell;

/// Credentials by datastore: connection options such as `access_key_id`.
pub type Secrets = BTreeMap<String, BTreeMap<String, String>>;

/// Why data cannot be had or sent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is nothing at `{at}` (next step: check the path, and that the data was written)")]
    Absent { at: String },
    #[error("`{url}` is no address of data (next step: use `s3://`, `az://`, `gs://`, `http(s)://` or a path)")]
    BadAddress { url: String },
    #[error("datastore `{datastore}` cannot be opened for `{url}`")]
    Open {
        datastore: String,
        url: String,
        #[source]
        source: object_store::Error,
    },
    #[error("`{at}` cannot be {what}")]
    Store {
        at: String,
        what: &'static str,
        #[source]
        source: object_store::Error,
    },
    #[error("`{url}` cannot be fetched")]
    Http {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("`{url}` answered {status}")]
    Status { url: String, status: u16 },
    #[error("`{at}` ended after {got} of {expected} bytes (next step: try again; it may have changed meanwhile)")]
    Short { at: String, got: u64, expected: u64 },
    #[error("`{}` cannot be {what}", .path.display())]
    Disk {
        path: PathBuf,
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("there is no room for {} in `{}`: {} are left when all that nobody uses is removed (next step: free space there, or use a node with a larger disk)", humane_bytes(*.needs), .at.display(), humane_bytes(*.free))]
    NoRoom { at: PathBuf, needs: u64, free: u64 },
    #[error("`{name}` is no name for a file here (next step: rename it without `..`, a leading `/` or odd bytes)")]
    BadName { name: String },
    #[error("`{}` points out of its folder to `{}` (next step: copy what it points to into the folder)", .link.display(), .target.display())]
    Leaves { link: PathBuf, target: PathBuf },
    #[error("{count} files cannot be read, first `{}` (next step: change their permissions)", .first.display())]
    Unreadable { count: usize, first: PathBuf },
    #[error("`{at}` can only be read (next step: send outputs to a datastore)")]
    ReadOnly { at: String },
    #[error("`{}` is no MLTable: {reason}", .path.display())]
    MlTable { path: PathBuf, reason: String },
}

/// What was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    pub bytes: u64,
    /// What was left out and why.
    pub notices: Vec<String>,
}

/// Data of one agent. Clones share the cache.
#[derive(Debug, Clone)]
pub struct Data(Arc<Inner>, Arc<Tally>);

#[derive(Debug)]
struct Inner {
    cache: Cache,
    client: OnceCell<reqwest::Client>,
    copies: AtomicU64,
    /// Where copies are being made now, waited for or not.
    writing: Mutex<Vec<PathBuf>>,
    own: Option<OwnStore>,
    neighbours: Option<Neighbours>,
}

/// Where fetched data lies below a home, or below what the agents of a machine share.
fn cache_folder(top: &Path) -> PathBuf {
    top.join("cache/data")
}

impl Data {
    /// The cache is `<home>/cache/data` and holds at most `limit_bytes`, unless what is in use is more.
    pub fn new(home: &Path, limit_bytes: u64) -> Data {
        let cache = Cache::new(cache_folder(home), limit_bytes, home.to_owned());
        let inner = Inner {
            cache,
            client: OnceCell::new(),
            copies: AtomicU64::new(0),
            writing: Mutex::default(),
            own: None,
            neighbours: None,
        };
        Data(Arc::new(inner), Arc::default())
    }

    /// The same for an agent whose server is elsewhere, and so is what the server itself stores. On a machine that keeps
    /// things for all its agents the cache is one of them, and others like it may have what this one lacks.
    pub(crate) fn near(self, home: &Path, outpost: Option<&Outpost>, server: &Arc<Server>) -> Data {
        let inner = Arc::into_inner(self.0).expect("nobody has a clone yet");
        let Some(outpost) = outpost else { return Data(Arc::new(inner), self.1) };
        // Under Slurm they share a folder of the network's, and each has its own disk.
        let shared = outpost.shared.as_ref().filter(|shared| shared.parent().is_some_and(|top| home.starts_with(top)));
        let cache = shared.map(|shared| Cache::new(cache_folder(shared), inner.cache.limit_bytes(), home.to_owned()));
        let neighbours = shared.map(|_| Neighbours::of(Arc::clone(server)));
        let own = Some(OwnStore::of(outpost));
        let inner = Inner { own, neighbours, cache: cache.unwrap_or(inner.cache), ..inner };
        Data(Arc::new(inner), self.1)
    }

    /// The same data for one attempt, with a count of its own of what is moved.
    pub(crate) fn counted(&self, attempt: &AttemptId) -> Data {
        Data(Arc::clone(&self.0), Arc::new(Tally::of(attempt.clone())))
    }

    /// What was moved through this value and its clones.
    pub(crate) fn tally(&self) -> &Tally {
        &self.1
    }

    /// What the machine keeps for all its agents.
    pub(crate) fn keeps(&self) -> Vec<Kept> {
        self.0.neighbours.as_ref().map_or_else(Vec::new, |_| self.cache().kept(peers::WORTH_BYTES))
    }

    /// A path at which the data can be read. Cached data stays there until [`Data::release`] is called for `holder`
    /// (an attempt's id), whatever happens to this process; it must not be written to.
    pub async fn view(&self, place: &Place, secrets: &Secrets, holder: &str) -> Result<PathBuf, Error> {
        match place {
            Place::Folder { path } if path.symlink_metadata().is_ok() => Ok(path.clone()),
            Place::Folder { path } => Err(Error::Absent { at: path.display().to_string() }),
            Place::Object { .. } => {
                let remote = self.open(place, secrets)?;
                let listing = remote.list().await?;
                let data = match self.cache().claim(&listing.key(), holder).await? {
                    Claim::There(data) => {
                        self.tally().cache(listing.bytes());
                        data
                    }
                    Claim::Missing(filling) => {
                        self.make_room(&filling, listing.bytes()).await?;
                        let sum = self.fill(&remote, &listing, &filling).await?;
                        filling.finish(listing.url(), sum.as_deref())?
                    }
                };
                Ok(listing.path_in(&data))
            }
            Place::Http { url } => self.view_http(url, holder).await,
        }
    }

    /// A copy of the data that may be written to: `to` itself for a folder, `to/<name>` for a single file. One that nobody
    /// waits for any more ends at its next file; until then [`Data::writes_below`] knows of it.
    pub async fn copy(&self, place: &Place, secrets: &Secrets, to: &Path) -> Result<PathBuf, Error> {
        if let Place::Object { .. } = place {
            let remote = self.open(place, secrets)?;
            let listing = remote.list().await?;
            if listing.bytes() > self.cache().limit_bytes() {
                self.tally().begin(listing.bytes());
                remote.fetch(&listing, to, self.tally()).await?;
                return Ok(listing.path_in(to));
            }
        }
        let holder = format!("copy-{}-{}", std::process::id(), self.0.copies.fetch_add(1, Ordering::Relaxed));
        let held = Held { data: self, holder };
        let from = self.view(place, secrets, &held.holder).await?;
        let waited = Arc::new(());
        let writing = Writing::begin(self, to, Arc::downgrade(&waited));
        blocking(move || local::copy(&from, &writing.to, || writing.is_wanted())).await
    }

    /// Whether a copy is still being made at or below `folder`: it must not be removed or used for anything else yet.
    pub(crate) fn writes_below(&self, folder: &Path) -> bool {
        self.writing().iter().any(|to| to.starts_with(folder))
    }

    /// Sends a file or the contents of a folder to `to`; tells how much. Nothing half-written can be seen at
    /// the other end, file by file.
    pub async fn send(&self, from: &Path, to: &Place, secrets: &Secrets) -> Result<Sent, Error> {
        let source = from.to_owned();
        match to {
            Place::Folder { path } => {
                let path = path.clone();
                blocking(move || local::send(&source, &path)).await
            }
            Place::Object { .. } => {
                let tree = blocking(move || walk(&source)).await?;
                let bytes = self.open(to, secrets)?.send(from, &tree).await?;
                Ok(Sent { bytes, notices: tree.notices })
            }
            Place::Http { url } => Err(Error::ReadOnly { at: url.clone() }),
        }
    }

    /// What `holder` viewed may be evicted from now on.
    pub fn release(&self, holder: &str) {
        self.cache().release(|name| name == holder);
    }

    /// After a restart: only `holders` are still at work; what others held is free, what was half-fetched is removed.
    pub fn keep_only(&self, holders: &[&str]) {
        self.cache().release(|name| !holders.contains(&name));
        self.cache().sweep();
    }

    /// From a neighbour that has it, or else from the store; its digest where it was taken.
    async fn fill(&self, remote: &Remote, listing: &Listing, filling: &Filling) -> Result<Option<String>, Error> {
        self.tally().begin(listing.bytes());
        if let Some(neighbours) = &self.0.neighbours
            && let Some(sum) = neighbours.fetch(listing, &filling.data(), self.tally()).await?
        {
            return Ok(Some(sum));
        }
        remote.fetch(listing, &filling.data(), self.tally()).await.map(|()| None)
    }

    /// Room for an entry on its way. What has to go for it may be much.
    async fn make_room(&self, filling: &Filling, bytes: u64) -> Result<(), Error> {
        let data = self.clone();
        blocking(move || data.cache().make_room(bytes)).await?;
        filling.wants(bytes)
    }

    fn open(&self, place: &Place, secrets: &Secrets) -> Result<Remote, Error> {
        Remote::open(place, secrets, self.0.own.as_ref())
    }

    fn cache(&self) -> &Cache {
        &self.0.cache
    }

    fn writing(&self) -> std::sync::MutexGuard<'_, Vec<PathBuf>> {
        self.0.writing.lock().expect("nothing panics while it holds the list")
    }
}

/// A hold for the time of one copy.
struct Held<'d> {
    data: &'d Data,
    holder: String,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.data.release(&self.holder);
    }
}

/// One copy under way; it goes with the work itself, which outlives a caller that was cancelled.
struct Writing {
    data: Data,
    to: PathBuf,
    waiting: Weak<()>,
}

impl Writing {
    fn begin(data: &Data, to: &Path, waiting: Weak<()>) -> Writing {
        data.writing().push(to.to_owned());
        Writing { data: data.clone(), to: to.to_owned(), waiting }
    }

    fn is_wanted(&self) -> bool {
        self.waiting.strong_count() > 0
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut writing = self.data.writing();
        if let Some(at) = writing.iter().position(|to| *to == self.to) {
            writing.swap_remove(at);
        }
    }
}

/// The names of all files below a folder, in the order in which their bytes follow each other between neighbours.
fn files_in_order(folder: &Path) -> Result<BTreeSet<String>, Error> {
    let tree = walk(folder)?;
    Ok(tree.entries.into_iter().filter(|entry| entry.kind == Kind::File).map(|entry| entry.name).collect())
}

/// File work off the async threads. It runs to its end even if nobody waits for it any more.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(join) => std::panic::resume_unwind(join.into_panic()),
    }
}
