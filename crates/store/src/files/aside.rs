//! Taking the files of a workspace out of the way, then off the disk.
//!
//! Invariant: files leave their workspace in one step; what is half removed lies where nobody looks.

use super::{Files, full_or};
use crate::Error;
use std::{fs, io, path::PathBuf};

const ASIDE: &str = ".removed";

impl Files {
    /// Moves everything a workspace holds out of its place, if it holds anything.
    pub fn set_aside(&self, workspace: &str, unique: &str) -> Result<(), Error> {
        let from = self.root.join(workspace);
        let fail = |path: &PathBuf| {
            let path = path.clone();
            move |source: io::Error| full_or(source, "set aside", path)
        };
        let folder = self.root.join(ASIDE);
        if !fs::exists(&from).map_err(fail(&from))? {
            return Ok(());
        }
        fs::create_dir_all(&folder).map_err(fail(&folder))?;
        fs::rename(&from, folder.join(format!("{workspace}-{unique}"))).map_err(fail(&from))
    }

    /// Removes a folder and all it holds, if it is there; how many bytes of files that were.
    pub fn remove_folder(&self, workspace: &str, container: &str, path: &str) -> Result<u64, Error> {
        let folder = self.container(workspace, container).join(path);
        let bytes = super::usage::bytes_below(&folder);
        match fs::remove_dir_all(&folder) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Io { what: "remove the folder", path: folder, source });
            }
            _ => {}
        }
        self.usage.freed(workspace, bytes);
        Ok(bytes)
    }

    /// Removes what was set aside, also by a server that stopped half-way.
    pub fn remove_set_aside(&self) -> Result<(), Error> {
        let folder = self.root.join(ASIDE);
        match fs::remove_dir_all(&folder) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(Error::Io { what: "remove the files in", path: folder, source })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_aside_is_out_of_its_place_at_once_and_then_gone() {
        let home = tempfile::tempdir().unwrap();
        let files = Files::under(home.path());
        let blob = files.blob("team", "c", "a/b").unwrap();
        fs::create_dir_all(blob.parent().unwrap()).unwrap();
        fs::write(&blob, "x").unwrap();
        files.set_aside("team", "1").unwrap();
        assert!(!blob.exists());
        assert!(home.path().join("blobs/.removed/team-1/c/a/b").exists());
        files.set_aside("team", "2").unwrap();
        files.remove_set_aside().unwrap();
        files.remove_set_aside().unwrap();
        assert!(!home.path().join("blobs/.removed").exists());
    }
}
