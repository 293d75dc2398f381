//! Copies that take no room where the disk can share bytes between files until one of them is written.
//!
//! Invariants: a copy is whole when it appears in its place, and what becomes of its source does not touch it; a blob's
//! note goes with its bytes.

use super::{Files, Found, Note, draft, full_or};
use crate::Error;
use rustix::fs::ioctl_ficlone;
use std::{fs, io, path::Path};

/// Where copies are made before they are put in place.
const COPIES: &str = ".copies";

impl Files {
    /// Copies a file, or a folder with everything in it, to a place where nothing is yet. `unique` names the attempt.
    pub fn copy(&self, from: &Path, to: &Path, unique: &str) -> Result<(), Error> {
        let fail = |source: io::Error| full_or(source, "copy to", to.to_owned());
        let parent = to.parent().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
        let draft = self.root.join(COPIES).join(unique);
        let done = fs::create_dir_all(self.root.join(COPIES))
            .and_then(|()| copy_all(from, &draft))
            .and_then(|()| fs::create_dir_all(parent))
            .and_then(|()| fs::rename(&draft, to));
        if done.is_err() {
            let _ = fs::remove_dir_all(&draft).or_else(|_| fs::remove_file(&draft));
        }
        done.map_err(fail)
    }

    /// Removes copies that an earlier server did not finish.
    pub fn remove_unfinished_copies(&self) {
        // Absent when nothing was ever copied.
        let _ = fs::remove_dir_all(self.root.join(COPIES));
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let meta = fs::metadata(from)?;
    if meta.is_file() {
        return copy_file(from, to);
    }
    // Opening a pipe would wait for its other end.
    if !meta.is_dir() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a file nor a folder"));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        // A link may lead out of the folder; what it leads to is not part of it. A pipe or a socket holds nothing.
        if kind.is_file() || kind.is_dir() {
            copy_all(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = fs::File::open(from)?;
    let meta = source.metadata()?;
    let mut copy = fs::File::options().write(true).read(true).create_new(true).open(to)?;
    copy.set_permissions(meta.permissions())?;
    // Another disk, or one that cannot share.
    if ioctl_ficlone(&copy, &source).is_err() {
        io::copy(&mut source, &mut copy)?;
    }
    let mut note = Note::read(&source)?;
    if !note.lies_elsewhere() {
        // The digest is the source's as long as it is unchanged; on the copy it stands for the copy.
        let md5 = note.md5(&Found::of(String::new(), &meta)).map(str::to_owned);
        note.set_md5(md5.as_deref());
        note.write(&copy, &Found::of(String::new(), &copy.metadata()?), draft::unique())?;
    }
    copy.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Spot;
    use std::io::{Read, Write};

    #[test]
    fn a_copy_is_whole_and_outlives_its_source() {
        let home = tempfile::tempdir().unwrap();
        let files = Files::under(home.path());
        let from = home.path().join("src");
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/a.txt"), "one").unwrap();
        std::os::unix::fs::symlink("..", from.join("deep/out")).unwrap();
        let to = files.container("@r", "shared-1").join("src");
        files.copy(&from, &to, "1").unwrap();
        fs::remove_dir_all(&from).unwrap();
        assert!(!to.join("deep/out").exists());
        assert_eq!(fs::read_to_string(to.join("deep/a.txt")).unwrap(), "one");
        assert!(files.copy(&from, &files.container("@r", "shared-2").join("src"), "2").is_err());
        assert!(!files.container("@r", "shared-2").join("src").exists());
    }

    #[test]
    fn a_write_in_place_of_the_source_does_not_touch_the_copy() {
        let home = tempfile::tempdir().unwrap();
        let files = Files::under(home.path());
        let (source, copied) = (blob("w"), blob("@r"));
        let draft = files.draft().unwrap();
        (&mut draft.file()).write_all(b"one").unwrap();
        draft.file().sync_all().unwrap();
        let mut note = Note::default();
        note.set_header("content-type", "text/plain");
        note.set_md5(Some("f97c5d29941bfb1b2fdab0874906ab82"));
        note.set_metadata([("a".to_owned(), "b".to_owned())]);
        files.publish(draft, &source, note, false, None).unwrap();
        let path = files.blob("w", "c", "a.txt").unwrap();
        files.copy(&path, &files.blob("@r", "c", "a.txt").unwrap(), "1").unwrap();
        fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(b"two").unwrap();
        files
            .annotate(&source, None, |note| note.set_metadata([("a".to_owned(), "changed".to_owned())]), None)
            .unwrap();
        let (mut file, found) = files.open(&copied).unwrap().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one");
        let note = Note::read(&file).unwrap();
        if !note.lies_elsewhere() {
            assert_eq!(note.metadata().collect::<Vec<_>>(), [("a", "b")]);
            assert_eq!(note.header("content-type"), Some("text/plain"));
            assert_eq!(note.md5(&found), Some("f97c5d29941bfb1b2fdab0874906ab82"));
        }
    }

    fn blob(workspace: &str) -> Spot {
        Spot::parse(workspace, "c", "a.txt").unwrap()
    }
}
