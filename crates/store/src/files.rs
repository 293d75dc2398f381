//! Files of the workspace's own stores: blobs in containers, on this machine's disk.
//!
//! Invariants: a path from outside never leaves its container, not even through a link; a file appears whole or not at
//! all, and what was answered as written outlives a power cut. Layout: `<home>/blobs/<workspace>/<container>/<path>`.
//! The artifact container `azureml` holds `ExperimentRun/dcid.<job>/` for each job, which agents on this machine write to
//! directly. `<home>/blobs/.drafts` holds what is being written; nothing there has a reader.

mod append;
mod beneath;
mod blocks;
mod draft;
mod list;
mod note;
mod sweep;
mod usage;

pub use append::Appended;
pub use blocks::{Block, Staged, UnknownBlock};
pub use draft::{Draft, Expectation, Expected, Put};
pub use list::{Entry, Listing};
pub use note::Note;
pub(crate) use sweep::snapshots_in;
pub use sweep::{DRAFT_LIFE, SNAPSHOT_LIFE, Swept};
pub use usage::{NoRoom, Room};

mod aside;
mod copy;

use crate::Error;
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// The container of run artifacts: logs and captured outputs.
pub const ARTIFACT_CONTAINER: &str = "azureml";
/// The most letters a blob's name may have.
const NAME_CHARS: usize = 1024;
/// The most bytes of them; the kernel takes no longer paths.
const NAME_BYTES: usize = 4000;
/// Writers of the same blob take turns; others rarely meet.
const TURNS: usize = 64;

/// Names files under a home, and knows what is being written to them. Clones share what they know.
#[derive(Debug, Clone)]
pub struct Files {
    root: Arc<Path>,
    uploads: Arc<blocks::Uploads>,
    usage: Arc<usage::Usage>,
    turns: Arc<[Mutex<()>; TURNS]>,
}

/// A path that would leave its container, or cannot be a file name.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a path inside a container")]
pub struct BadPath(pub String);

/// A blob's place: whose, in which container, under which name. Its parts are sound.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spot {
    workspace: String,
    container: String,
    path: String,
}

/// What is known of a file without reading it.
#[derive(Debug, Clone)]
pub struct Found {
    /// Relative to the container, with `/`.
    pub path: String,
    pub bytes: u64,
    pub modified: domain::Timestamp,
    /// The same instant as exactly as the disk knows it.
    pub modified_ns: u64,
}

impl Spot {
    pub fn parse(workspace: &str, container: &str, path: &str) -> Result<Spot, BadPath> {
        let bad = || BadPath(path.chars().take(200).collect());
        let plain = |part: &str| !part.is_empty() && part.len() <= 255 && !part.contains(['/', '\0']);
        if [workspace, container].iter().any(|part| !plain(part) || part.starts_with('.')) {
            return Err(BadPath(format!("{workspace}/{container}").chars().take(200).collect()));
        }
        let sound = path.split('/').all(|part| plain(part) && part != "." && part != "..");
        if !sound || path.chars().count() > NAME_CHARS || path.len() > NAME_BYTES {
            return Err(bad());
        }
        Ok(Spot { workspace: workspace.to_owned(), container: container.to_owned(), path: path.to_owned() })
    }

    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    pub fn container(&self) -> &str {
        &self.container
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    /// The folder inside the container, empty for none, and the name in it.
    fn split(&self) -> (&str, &str) {
        self.path.rsplit_once('/').unwrap_or(("", &self.path))
    }
}

impl Found {
    pub(crate) fn of(path: String, meta: &fs::Metadata) -> Found {
        let nanos = i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec());
        Found::at(path, meta.len(), u64::try_from(nanos).unwrap_or(0))
    }

    fn at(path: String, bytes: u64, modified_ns: u64) -> Found {
        let modified = domain::Timestamp(i64::try_from(modified_ns / 1_000_000).unwrap_or(0));
        Found { path, bytes, modified, modified_ns }
    }
}

impl Files {
    pub fn under(home: &Path) -> Files {
        let root: Arc<Path> = home.join("blobs").into();
        Files {
            uploads: Arc::new(blocks::Uploads::under(&root.join(".drafts"))),
            usage: Arc::default(),
            turns: Arc::new(std::array::from_fn(|_| Mutex::new(()))),
            root,
        }
    }

    /// The folder that holds all of them.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn container(&self, workspace: &str, container: &str) -> PathBuf {
        self.root.join(workspace).join(container)
    }

    /// Where a blob lies; the path may use `/` and must stay inside.
    pub fn blob(&self, workspace: &str, container: &str, path: &str) -> Result<PathBuf, BadPath> {
        let spot = Spot::parse(workspace, container, path)?;
        Ok(self.container(workspace, container).join(spot.path))
    }

    /// The folder of a job's logs and captured outputs.
    pub fn artifacts(&self, workspace: &str, job: &str) -> PathBuf {
        self.container(workspace, ARTIFACT_CONTAINER).join("ExperimentRun").join(format!("dcid.{job}"))
    }

    /// Opens a blob to read, with what is known of it; `None` when no file of that name lies in the container.
    pub fn open(&self, spot: &Spot) -> io::Result<Option<(fs::File, Found)>> {
        match beneath::open_file(&self.container(&spot.workspace, &spot.container), &spot.path) {
            Ok((file, meta)) => Ok(Some((file, Found::of(spot.path.clone(), &meta)))),
            Err(error) if beneath::says_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes a blob, and the folders that it leaves empty. `false` when it was not there.
    pub fn delete(&self, spot: &Spot) -> Result<bool, Error> {
        let container = self.container(&spot.workspace, &spot.container);
        let fail = |source| Error::Io { what: "remove", path: container.join(&spot.path), source };
        let (parent, name) = spot.split();
        let _turn = self.turn(spot);
        let folder = match beneath::folder(&container, parent) {
            Ok(folder) => folder,
            Err(error) if beneath::says_absent(&error) => return Ok(false),
            Err(error) => return Err(fail(error)),
        };
        let bytes = match beneath::plain_file(&folder, name) {
            Ok((_, meta)) => meta.len(),
            Err(error) if beneath::says_absent(&error) => return Ok(false),
            Err(error) => return Err(fail(error)),
        };
        match rustix::fs::unlinkat(&folder, name, rustix::fs::AtFlags::empty()) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::ISDIR) => return Ok(false),
            Err(errno) => return Err(fail(errno.into())),
        }
        self.usage.freed(&spot.workspace, bytes);
        beneath::prune(&container, parent);
        Ok(true)
    }

    /// Makes everything written to this disk so far survive a power cut.
    pub fn sync(&self) -> Result<(), Error> {
        let fail = |source: io::Error| Error::Io { what: "sync", path: self.root.to_path_buf(), source };
        fs::create_dir_all(&self.root).map_err(fail)?;
        let folder = fs::File::open(&self.root).map_err(fail)?;
        rustix::fs::syncfs(&folder).map_err(|errno| fail(errno.into()))
    }

    /// Looking at a blob and then changing it is done in one's turn.
    fn turn(&self, spot: &Spot) -> std::sync::MutexGuard<'_, ()> {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(spot);
        let at = usize::try_from(hash % TURNS as u64).unwrap_or(0);
        self.turns[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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

#[cfg(test)]
mod tests;
