//! Copies that take no room: the same bytes under another name, where the disk can.
//!
//! Invariant: a copy is whole when it appears in its place.

use super::{Files, full_or};
use crate::Error;
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
            .and_then(|()| link_all(from, &draft))
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

fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    let meta = fs::metadata(from)?;
    if !meta.is_dir() {
        // Another disk, or one without links.
        return fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        // A link may lead out of the folder; what it leads to is not part of it.
        if entry.file_type()?.is_symlink() {
            continue;
        }
        link_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
