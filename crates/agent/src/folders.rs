//! Folders for attempts, used again where nothing was left in them.
//!
//! On many disks making a folder costs far more than renaming one, and a machine that runs small jobs would spend most of
//! its time at it. Invariant: a folder is handed out as if new: an empty `work/outputs`, at most empty logs beside it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// More than this is not kept for later.
const SPARE: usize = 64;

#[derive(Clone)]
pub(crate) struct Folders {
    spare_root: Arc<Path>,
    spare: Arc<Mutex<Vec<PathBuf>>>,
}

impl Folders {
    pub(crate) fn open(agent: &Path) -> io::Result<Folders> {
        let root = agent.join("spare");
        // Whatever an earlier agent kept may have been left half-cleaned.
        match fs::remove_dir_all(&root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(&root)?,
        }
        Ok(Folders { spare_root: root.into(), spare: Arc::default() })
    }

    /// A folder at `to` with an empty `work/outputs` in it; what was there before is removed.
    pub(crate) fn make(&self, to: &Path) -> io::Result<()> {
        match fs::remove_dir_all(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let spare = self.spare.lock().expect("nothing panics while it holds the list").pop();
        if spare.is_some_and(|spare| fs::rename(spare, to).is_ok()) {
            return Ok(());
        }
        fs::create_dir_all(to.join("work").join("outputs"))
    }

    /// Takes a folder back, to hand it out again if it is as good as new.
    pub(crate) fn give_back(&self, folder: &Path) {
        let mut spare = self.spare.lock().expect("nothing panics while it holds the list");
        if spare.len() < SPARE && is_pristine(folder).unwrap_or(false) {
            let Some(name) = folder.file_name() else { return };
            let kept = self.spare_root.join(name);
            if fs::rename(folder, &kept).is_ok() {
                spare.push(kept);
                return;
            }
        }
        drop(spare);
        let _ = fs::remove_dir_all(folder);
    }
}

/// Whether an empty `work/outputs` and nothing else but empty logs is in a folder.
fn is_pristine(folder: &Path) -> io::Result<bool> {
    let mut has_outputs = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        let fine = match entry.file_name().to_str() {
            Some("work") => {
                has_outputs = meta.is_dir() && only_empty_outputs(&entry.path())?;
                has_outputs
            }
            Some(name) => name.starts_with("log-") && meta.is_file() && meta.len() == 0,
            None => false,
        };
        if !fine {
            return Ok(false);
        }
    }
    Ok(has_outputs)
}

fn only_empty_outputs(work: &Path) -> io::Result<bool> {
    let mut entries = fs::read_dir(work)?;
    let Some(first) = entries.next().transpose()? else { return Ok(false) };
    let outputs = first.file_name() == "outputs" && first.file_type()?.is_dir();
    Ok(outputs && entries.next().is_none() && fs::read_dir(first.path())?.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_as_good_as_new_is_handed_out_again() {
        let root = tempfile::tempdir().unwrap();
        let folders = Folders::open(root.path()).unwrap();
        let (a, b) = (root.path().join("a"), root.path().join("b"));
        folders.make(&a).unwrap();
        fs::write(a.join("log-0"), "").unwrap();
        folders.give_back(&a);
        assert!(!a.exists());
        folders.make(&b).unwrap();
        assert!(b.join("log-0").exists(), "the spare folder was used");
        for dirt in ["work/x", "work/outputs/x", "log-1", "results"] {
            folders.make(&b).unwrap();
            fs::write(b.join(dirt), "x").unwrap();
            folders.give_back(&b);
            folders.make(&b).unwrap();
            assert!(!b.join(dirt).exists(), "{dirt}");
        }
        fs::remove_dir_all(b.join("work")).unwrap();
        folders.give_back(&b);
        assert!(!b.exists(), "a folder without `work` is removed too");
        folders.make(&a).unwrap();
        assert!(a.join("work/outputs").exists());
    }
}
