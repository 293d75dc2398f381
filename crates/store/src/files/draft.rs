//! Writing a blob: a draft beside the containers, synced, then put in place in one step.
//!
//! Invariants: a draft that is not put in place is removed; what a reader finds under a name is always the whole of one
//! write; `publish` returns only when bytes, note and name outlive a power cut. The bytes are synced before the rename, so
//! that a name never leads to less than them, and the folder after it.

use super::{Files, Found, Note, Spot, beneath, full_or};
use crate::Error;
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, CWD, FileType, RenameFlags, fsync, renameat_with, statat},
    io::Errno,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// A folder that was just made may be removed again by someone who empties it.
const TRIES: usize = 16;

/// A file that nobody else sees yet; removed when dropped.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    file: fs::File,
}

/// What became of putting a draft in place.
#[derive(Debug)]
pub enum Put {
    /// It is there and will stay. `kept`: whether its whole note is with it, or the database must keep it.
    Done { found: Found, note: Note, kept: bool },
    /// Something is there that may not be replaced.
    Exists,
    /// What is there is not what the writer expected.
    Unexpected,
    /// A folder or a file of this name is in the way.
    Blocked(String),
}

/// What a writer expects to find in the place.
pub type Expected<'a> = Option<&'a Expectation<'a>>;

/// Says whether what is in the place now, if anything, will do.
pub type Expectation<'a> = dyn Fn(Option<(&Found, &Note)>) -> bool + 'a;

impl Draft {
    pub fn file(&self) -> &fs::File {
        &self.file
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn adopt(path: PathBuf, file: fs::File) -> Draft {
        Draft { path, file }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Absent when it was put in place.
        let _ = fs::remove_file(&self.path);
    }
}

impl Files {
    /// A fresh file on the same disk to write to.
    pub fn draft(&self) -> io::Result<Draft> {
        let folder = self.root.join(".drafts");
        loop {
            let path = folder.join(unique());
            match fs::File::options().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Draft::adopt(path, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(&folder)?,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts a finished draft in its place with its note, over nothing else if `only_new`, and only over what is `expected`.
    pub fn publish(
        &self,
        draft: Draft,
        spot: &Spot,
        mut note: Note,
        only_new: bool,
        expected: Expected<'_>,
    ) -> Result<Put, Error> {
        let fail = |what| {
            move |source| full_or(source, what, self.container(&spot.workspace, &spot.container).join(&spot.path))
        };
        let found = Found::of(spot.path.clone(), &draft.file.metadata().map_err(fail("look at"))?);
        let kept = note.write(&draft.file, &found, unique()).map_err(fail("describe"))?;
        draft.file.sync_data().map_err(fail("sync"))?;
        let container = self.container(&spot.workspace, &spot.container);
        let (parent, name) = spot.split();
        for _ in 0..TRIES {
            let folder = match beneath::make_folder(&container, parent) {
                Ok(folder) => folder,
                Err(error) => return blocked(error, &container, parent).map_err(fail("make the folder of")),
            };
            match self.put(&draft, spot, &folder, only_new, expected).map_err(fail("put"))? {
                Some(Put::Done { .. }) => {
                    fsync(&folder).map_err(|errno| fail("sync the folder of")(errno.into()))?;
                    return Ok(Put::Done { found, note, kept });
                }
                Some(other) => return Ok(other),
                // The folder was removed in between.
                None => debug_assert!(!name.is_empty(), "a spot has a name"),
            }
        }
        Err(Error::Conflict)
    }

    /// The look and the rename, with no other writer of the same blob in between.
    fn put(
        &self,
        draft: &Draft,
        spot: &Spot,
        folder: &OwnedFd,
        only_new: bool,
        expected: Expected<'_>,
    ) -> io::Result<Option<Put>> {
        let (_, name) = spot.split();
        let _turn = self.turn(spot);
        if let Some(expected) = expected
            && !self.is_as(spot, expected)?
        {
            return Ok(Some(Put::Unexpected));
        }
        let before = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        if before.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) {
            return Ok(Some(Put::Blocked(spot.path.clone())));
        }
        let flags = if only_new { RenameFlags::NOREPLACE } else { RenameFlags::empty() };
        match renameat_with(CWD, &draft.path, folder, name, flags) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(Some(Put::Exists)),
            Err(Errno::ISDIR | Errno::NOTEMPTY) => return Ok(Some(Put::Blocked(spot.path.clone()))),
            Err(Errno::NOENT) if draft.path.exists() => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        let found = Found::of(spot.path.clone(), &draft.file.metadata()?);
        let instead_of = before.and_then(|stat| u64::try_from(stat.st_size).ok()).unwrap_or(0);
        self.usage.stored(&spot.workspace, found.bytes, instead_of);
        Ok(Some(Put::Done { found, note: Note::default(), kept: true }))
    }

    /// Whether what is there now is as someone expects.
    pub fn is_as(&self, spot: &Spot, expected: &Expectation<'_>) -> io::Result<bool> {
        Ok(match self.open(spot)? {
            Some((file, found)) => expected(Some((&found, &Note::read(&file)?))),
            None => expected(None),
        })
    }

    /// Changes the note of a blob; `None` when there is no such blob.
    pub fn annotate(
        &self,
        spot: &Spot,
        expected: Expected<'_>,
        change: impl FnOnce(&mut Note),
        rest: Option<Note>,
    ) -> Result<Option<Put>, Error> {
        let fail =
            |source| full_or(source, "describe", self.container(&spot.workspace, &spot.container).join(&spot.path));
        let _turn = self.turn(spot);
        let Some((file, found)) = self.open(spot).map_err(fail)? else { return Ok(None) };
        let own = Note::read(&file).map_err(fail)?;
        if expected.is_some_and(|expected| !expected(Some((&found, &own)))) {
            return Ok(Some(Put::Unexpected));
        }
        let mut note = if own.lies_elsewhere() { rest.unwrap_or_default() } else { own };
        let md5 = note.md5(&found).map(str::to_owned);
        note.set_md5(md5.as_deref());
        change(&mut note);
        let kept = note.write(&file, &found, unique()).map_err(fail)?;
        file.sync_all().map_err(fail)?;
        Ok(Some(Put::Done { found, note, kept }))
    }
}

/// Why a folder could not be made: something of the client's is in the way, or a fault of ours.
fn blocked(error: io::Error, container: &Path, parent: &str) -> io::Result<Put> {
    match beneath::in_the_way(container, parent) {
        Some(name) if beneath::says_absent(&error) || error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(Put::Blocked(name))
        }
        _ => Err(error),
    }
}

/// A word that no other write uses: the process, a seed of its own, a count.
pub(super) fn unique() -> String {
    use std::hash::{BuildHasher, RandomState};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    static SEED: std::sync::LazyLock<RandomState> = std::sync::LazyLock::new(RandomState::new);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}{count:x}", SEED.hash_one((count, std::process::id())))
}
