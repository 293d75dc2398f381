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
mod remote;
mod tree;

pub use mltable::{Eval, Evaluated};
pub use tree::{Entry, Kind, Tree, walk};

pub(crate) use remote::SERVER;

use crate::outpost::Outpost;
use cache::{Cache, Claim};
use domain::Place;
use remote::{OwnStore, Remote};
use std::{
    collections::BTreeMap,
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
pub struct Data(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    cache: Cache,
    client: OnceCell<reqwest::Client>,
    copies: AtomicU64,
    /// Where copies are being made now, waited for or not.
    writing: Mutex<Vec<PathBuf>>,
    own: Option<OwnStore>,
}

impl Data {
    /// The cache is `<home>/cache/data` and holds at most `limit_bytes`, unless what is in use is more.
    pub fn new(home: &Path, limit_bytes: u64) -> Data {
        let cache = Cache::new(home.join("cache/data"), limit_bytes);
        Data(Arc::new(Inner {
            cache,
            client: OnceCell::new(),
            copies: AtomicU64::new(0),
            writing: Mutex::default(),
            own: None,
        }))
    }

    /// The same for an agent whose server is elsewhere, and so is what the server itself stores.
    pub(crate) fn near(self, outpost: Option<&Outpost>) -> Data {
        let inner = Arc::into_inner(self.0).expect("nobody has a clone yet");
        Data(Arc::new(Inner { own: outpost.map(OwnStore::of), ..inner }))
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
                    Claim::There(data) => data,
                    Claim::Missing(filling) => {
                        self.cache().make_room(listing.bytes());
                        remote.fetch(&listing, &filling.data()).await?;
                        filling.finish()?
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
                remote.fetch(&listing, to).await?;
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

/// File work off the async threads. It runs to its end even if nobody waits for it any more.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(join) => std::panic::resume_unwind(join.into_panic()),
    }
}
