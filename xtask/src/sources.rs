//! The times of source files, so that a new clone builds only what differs from the last run of `ci`.
//!
//! cargo goes by times, and in a new clone every file is new: all of ours would be built again. So `ci` keeps beside its builds what each
//! file held and when it was new, and gives a file that holds the same the same time again.
//!
//! Invariant: a file keeps an old time only if everything in the target folder was built from what it holds now. What another build
//! left there since, or a run that was killed, makes all files new.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::shell::{Failed, Shell};

/// A file that has the path of the clone built into it is as new as the clone.
const OF_THE_CLONE: &str = "CARGO_MANIFEST_DIR";

/// What a file held, and its time since the epoch.
type Known = BTreeMap<String, (String, Duration)>;

/// Gives the files of this clone the times that the last run knew them by.
pub(crate) fn settle(sh: &Shell) -> Result<(), Failed> {
    let (Some(names), kept) = (sh.output("git", &["ls-files"]), kept(sh)) else { return Ok(()) };
    let known = if sealed(sh, &kept) { read(&kept) } else { Known::new() };
    // Until this run has ended, what is built is known to be of no state.
    let _none = fs::remove_file(&kept);
    let names: Vec<&str> = names.lines().filter(|name| sh.root.join(name).is_file()).collect();
    let hashes = sh.output("git", &[&["hash-object", "--no-filters", "--"], &names[..]].concat()).unwrap_or_default();
    let mut now = Known::new();
    for (name, hash) in names.iter().zip(hashes.lines()) {
        let path = sh.root.join(name);
        let same = known.get(*name).filter(|(known, _)| known == hash).filter(|_| !names_the_clone(&path));
        let time = match same {
            Some((_, time)) => set(&path, *time).map(|()| *time),
            None => modified(&path),
        };
        now.insert((*name).to_owned(), (hash.to_owned(), time.map_err(Failed::at(&path))?));
    }
    let lines: String = now.iter().map(|(name, (hash, time))| format!("{hash} {} {name}\n", time.as_nanos())).collect();
    let pending = pending(sh);
    fs::create_dir_all(sh.target()).and_then(|()| fs::write(&pending, lines)).map_err(Failed::at(&pending))
}

/// Says at the end of a run that all that lies in the target folder was built from these files.
pub(crate) fn seal(sh: &Shell) {
    // A copy is as new as what was built.
    let _none = fs::copy(pending(sh), kept(sh)).and_then(|_| fs::remove_file(pending(sh)));
}

fn kept(sh: &Shell) -> PathBuf {
    sh.target().join("sources")
}

fn pending(sh: &Shell) -> PathBuf {
    sh.target().join("sources.pending")
}

/// Whether nothing was built since the list was written.
fn sealed(sh: &Shell, kept: &Path) -> bool {
    let Ok(at) = modified(kept) else { return false };
    let folders = list(&sh.target()).into_iter().flat_map(|dir| [vec![dir.clone()], list(&dir)].concat());
    let units = folders.map(|dir| dir.join(".fingerprint")).flat_map(|dir| list(&dir));
    // This program was built a moment ago, and nothing stands on it.
    let others =
        units.filter(|unit| !unit.file_name().is_some_and(|name| name.to_string_lossy().starts_with("xtask-")));
    others.flat_map(|unit| list(&unit)).all(|file| modified(&file).is_ok_and(|time| time <= at))
}

fn read(kept: &Path) -> Known {
    let text = fs::read_to_string(kept).unwrap_or_default();
    let line = |line: &str| {
        let (hash, rest) = line.split_once(' ')?;
        let (nanos, name) = rest.split_once(' ')?;
        Some((name.to_owned(), (hash.to_owned(), Duration::from_nanos(nanos.parse().ok()?))))
    };
    text.lines().filter_map(line).collect()
}

fn names_the_clone(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "rs")
        && fs::read_to_string(path).is_ok_and(|text| text.contains(OF_THE_CLONE))
}

fn modified(path: &Path) -> io::Result<Duration> {
    fs::metadata(path)?.modified()?.duration_since(SystemTime::UNIX_EPOCH).map_err(io::Error::other)
}

fn set(path: &Path, time: Duration) -> io::Result<()> {
    File::open(path)?.set_modified(SystemTime::UNIX_EPOCH + time)
}

fn list(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}
