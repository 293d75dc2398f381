//! Opening what lies in a container without ever leaving it.
//!
//! Jobs write to containers directly and may leave links to anywhere. Invariant: no function here follows a link out
//! of the folder it was given, nor waits for a pipe that someone left in place of a file.

use super::stays_inside;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, unlinkat},
    io::Errno,
};
use std::{fs, io, path::Path};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Something moved while a path was walked; the kernel asks to try again.
const TRIES: usize = 16;

/// Whether an error says that there is no such file inside: absent, in the place of a folder, or reached by a link that leads out.
pub(super) fn says_absent(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(
        errno,
        Some(
            Errno::NOENT
                | Errno::NOTDIR
                | Errno::XDEV
                | Errno::LOOP
                | Errno::ISDIR
                | Errno::NAMETOOLONG
                | Errno::NXIO
                | Errno::INVAL
        )
    )
}

/// Opens a plain file below `container`.
pub(super) fn open_file(container: &Path, path: &str) -> io::Result<(fs::File, fs::Metadata)> {
    let folder = openat(CWD, container, FOLDER, Mode::empty())?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = fs::File::from(walk(&folder, container, path, flags)?);
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(Errno::NOENT.into()) }
}

/// Opens a folder below `container`, or the container itself for an empty path.
pub(super) fn folder(container: &Path, path: &str) -> io::Result<OwnedFd> {
    let base = openat(CWD, container, FOLDER, Mode::empty())?;
    if path.is_empty() { Ok(base) } else { walk(&base, container, path, FOLDER) }
}

/// The same, making what is missing; each folder it makes is made to last.
pub(super) fn make_folder(container: &Path, path: &str) -> io::Result<OwnedFd> {
    match folder(container, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    if !container.is_dir() {
        fs::create_dir_all(container)?;
        for above in container.ancestors().skip(1).take(2) {
            fs::File::open(above)?.sync_all()?;
        }
    }
    let mut at = openat(CWD, container, FOLDER, Mode::empty())?;
    let mut so_far = container.to_owned();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        match mkdirat(&at, part, Mode::from_raw_mode(0o777)) {
            Ok(()) => rustix::fs::fsync(&at)?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let next = walk(&at, &so_far, part, FOLDER)?;
        so_far.push(part);
        at = next;
    }
    Ok(at)
}

/// A plain file in a folder; a link is not one.
pub(super) fn plain_file(folder: &OwnedFd, name: &str) -> io::Result<(fs::File, fs::Metadata)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let file = fs::File::from(openat(folder, name, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(Errno::NOENT.into()) }
}

/// Opens a folder in a folder; a link is not one.
pub(super) fn subfolder(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty())?)
}

/// The first part of a path below `container` that is a file, where a folder is wanted.
pub(super) fn in_the_way(container: &Path, path: &str) -> Option<String> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    let base = openat(CWD, container, FOLDER, Mode::empty()).ok()?;
    for end in ends {
        let stat = rustix::fs::statat(&base, &path[..end], AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Some(path[..end].to_owned());
        }
    }
    None
}

/// Removes folders that became empty, from the innermost out; stops at the first that holds something.
pub(super) fn prune(container: &Path, path: &str) {
    let mut path = path;
    while !path.is_empty() {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Ok(folder) = folder(container, above) else { return };
        if unlinkat(&folder, name, AtFlags::REMOVEDIR).is_err() {
            return;
        }
        path = above;
    }
}

fn walk(base: &impl AsFd, base_path: &Path, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let stay = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..TRIES {
        match openat2(base, path, flags, Mode::empty(), stay) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // An older kernel, or one that someone else wrote.
            Err(Errno::NOSYS | Errno::PERM) => return checked(base, base_path, path, flags),
            other => return other.map_err(io::Error::from),
        }
    }
    Err(Errno::AGAIN.into())
}

fn checked(base: &impl AsFd, base_path: &Path, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let opened = openat(base, path, flags, Mode::empty())?;
    if stays_inside(base_path, &base_path.join(path)) { Ok(opened) } else { Err(Errno::XDEV.into()) }
}
