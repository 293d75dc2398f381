//! Copying between folders of this machine.
//!
//! Invariant: what is sent appears under its name only when it is whole and on the disk.

use super::{
    Error, Sent,
    tree::{Kind, Tree, below, walk},
};
use std::{
    fs::{self, File},
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

/// Past this many files one flush of the whole file system is quicker than one per file.
const FLUSH_ONE_BY_ONE: usize = 64;

/// A writable copy for a job: `to` for a folder, `to/<name>` for a file. Stops between two files when it is not wanted.
pub(super) fn copy(from: &Path, to: &Path, wanted: impl Fn() -> bool) -> Result<PathBuf, Error> {
    if !wanted() {
        return Ok(to.to_owned());
    }
    let tree = walk(from)?;
    let single = from.is_file();
    make_folder(to)?;
    for entry in tree.entries.iter().take_while(|_| wanted()) {
        let target = below(to, &entry.name)?;
        match entry.kind {
            Kind::Folder => make_folder(&target)?,
            Kind::File => {
                let source = if single { from.to_owned() } else { from.join(&entry.name) };
                fs::copy(&source, &target).map_err(|error| disk(&target, "written", error))?;
                make_writable(&target);
            }
        }
    }
    Ok(match tree.entries.first() {
        Some(entry) if single => to.join(&entry.name),
        _ => to.to_owned(),
    })
}

/// Puts a file at `to`, or a folder's contents below it.
pub(super) fn send(from: &Path, to: &Path) -> Result<Sent, Error> {
    let tree = walk(from)?;
    let bytes = if fs::canonicalize(from).is_ok_and(|from| fs::canonicalize(to).is_ok_and(|to| from == to)) {
        tree.entries.iter().map(|entry| entry.bytes).sum()
    } else if from.is_file() {
        send_file(from, to)?
    } else {
        make_folder(to)?;
        send_tree(from, to, &tree)?
    };
    Ok(Sent { bytes, notices: tree.notices })
}

fn send_file(from: &Path, to: &Path) -> Result<u64, Error> {
    let parent = to.parent().ok_or_else(|| Error::BadName { name: to.display().to_string() })?;
    make_folder(parent)?;
    let bytes = place(from, to, true)?;
    sync_folder(parent)?;
    Ok(bytes)
}

fn send_tree(from: &Path, to: &Path, tree: &Tree) -> Result<u64, Error> {
    let one_by_one = tree.entries.len() <= FLUSH_ONE_BY_ONE;
    let mut bytes = 0;
    let mut folders = vec![to.to_owned()];
    for entry in &tree.entries {
        let target = below(to, &entry.name)?;
        match entry.kind {
            Kind::Folder => {
                make_folder(&target)?;
                folders.push(target);
            }
            Kind::File => bytes += place(&from.join(&entry.name), &target, one_by_one)?,
        }
    }
    if one_by_one {
        folders.iter().try_for_each(|folder| sync_folder(folder))?;
    } else {
        let all = File::open(to).map_err(|error| disk(to, "read", error))?;
        rustix::fs::syncfs(&all).map_err(|error| disk(to, "written", error.into()))?;
    }
    Ok(bytes)
}

/// Copies beside the target, then renames over it. The copy's name follows from its source, so that sending again after
/// a crash takes up what the crash left.
fn place(from: &Path, to: &Path, flush: bool) -> Result<u64, Error> {
    let mut hasher = DefaultHasher::new();
    from.hash(&mut hasher);
    let partial = to.with_file_name(format!(".partial-{:016x}", hasher.finish()));
    let copied = fs::copy(from, &partial).and_then(|bytes| {
        if flush {
            File::open(&partial)?.sync_all()?;
        }
        fs::rename(&partial, to)?;
        Ok(bytes)
    });
    copied.map_err(|error| {
        let _not_made = fs::remove_file(&partial);
        disk(to, "written", error)
    })
}

/// A name nobody else uses, in the same folder.
pub(super) fn partial_beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".partial-{}-{number}", std::process::id()))
}

pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|error| disk(path, "made", error))
}

pub(super) fn disk(path: &Path, what: &'static str, source: io::Error) -> Error {
    Error::Disk { path: path.to_owned(), what, source }
}

fn sync_folder(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|error| disk(path, "written", error))
}

/// A copy is the job's own, also where its source is write-protected.
fn make_writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    if let Ok(meta) = path.metadata() {
        let _as_it_is = fs::set_permissions(path, fs::Permissions::from_mode(meta.permissions().mode() | 0o200));
    }
}
