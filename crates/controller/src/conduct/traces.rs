//! What files lie at a place, as a text that is another one when a file is added, removed or written to.
//!
//! Nothing is read but names, sizes and times of change, and only so many of them, and what many steps read is looked at
//! once: a pass holds up everyone's writes.

use domain::{
    Place,
    mltable::{FILE, paths},
    spec::yaml,
};
use std::{
    collections::HashMap,
    fmt::Write,
    fs::{self, Metadata},
    path::{Component, Path, PathBuf},
    time::UNIX_EPOCH,
};

/// The most files of one place that are looked at.
const MOST_FILES: usize = 20_000;
/// An MLTable is short.
const TABLE_BYTES: u64 = 1 << 20;

/// The places looked at in one pass.
#[derive(Default)]
pub(super) struct Traces(HashMap<PathBuf, Result<String, String>>);

impl Traces {
    /// As [`of`], of now or of a moment ago.
    pub(super) fn of(&mut self, place: &Place) -> Result<String, String> {
        match place {
            Place::Folder { path } => self.0.entry(path.clone()).or_insert_with(|| of(place)).clone(),
            _ => of(place),
        }
    }
}

/// The digest of the files at a place, or why nobody can tell whether they are what they were.
pub(super) fn of(place: &Place) -> Result<String, String> {
    match place {
        Place::Folder { path } => {
            let table = path.join(FILE);
            if table.is_file() && leads_out(&table) {
                return Err("it is an MLTable that names files outside of its folder".to_owned());
            }
            below(path, MOST_FILES).map(|lines| store::digest_of(&lines))
        }
        Place::Object { datastore, .. } => {
            Err(format!("it lies in datastore `{datastore}`, which is not on this machine"))
        }
        Place::Http { url } => Err(format!("it lies at `{url}`, which is not on this machine")),
    }
}

fn below(root: &Path, most: usize) -> Result<String, String> {
    let mut lines = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(path) = folders.pop() {
        let gone = |error| format!("`{}` cannot be looked at: {error}", path.display());
        let found = fs::metadata(&path).map_err(gone)?;
        if !found.is_dir() {
            lines.push(line(root, &path, &found));
        } else if path != root && path.is_symlink() {
            return Err(format!("`{}` is a link to another folder", path.display()));
        } else {
            for entry in fs::read_dir(&path).map_err(gone)? {
                folders.push(entry.map_err(gone)?.path());
            }
        }
        if lines.len() + folders.len() > most {
            return Err(format!("there are more than {most} files"));
        }
    }
    lines.sort();
    Ok(lines.concat())
}

fn line(root: &Path, path: &Path, found: &Metadata) -> String {
    let name = path.strip_prefix(root).unwrap_or(path);
    let changed = found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let mut line = String::new();
    // Writing into a text cannot fail.
    let _ = writeln!(line, "{} {} {}", name.display(), found.len(), changed.as_nanos());
    line
}

/// Whether an MLTable names anything that is not below its folder. One that cannot be read may.
fn leads_out(table: &Path) -> bool {
    let text = match fs::metadata(table) {
        Ok(found) if found.len() <= TABLE_BYTES => fs::read_to_string(table).unwrap_or_default(),
        _ => return true,
    };
    let named = yaml::parse(FILE, &text).ok().and_then(|table| paths(&table).ok());
    let inside = |text: &str| {
        let mut parts = Path::new(text).components();
        !text.contains("://") && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    named.is_none_or(|named| named.iter().any(|one| !inside(&one.text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn trace(path: &Path) -> Result<String, String> {
        of(&Place::Folder { path: path.to_owned() })
    }

    #[test]
    fn a_file_that_is_written_to_added_or_removed_shows_and_reading_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/x.txt");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "one").unwrap();
        let first = trace(folder.path()).unwrap();
        fs::read(&file).unwrap();
        assert_eq!(trace(folder.path()).unwrap(), first);
        let was = fs::metadata(&file).unwrap().modified().unwrap();
        // As long as before, and later by less than a millisecond.
        fs::write(&file, "two").unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(was + Duration::from_nanos(1)).unwrap();
        let second = trace(folder.path()).unwrap();
        assert_ne!(second, first);
        fs::write(folder.path().join("y.txt"), "").unwrap();
        assert_ne!(trace(folder.path()).unwrap(), second);
        fs::remove_file(folder.path().join("y.txt")).unwrap();
        assert_eq!(trace(folder.path()).unwrap(), second);
        assert_ne!(trace(&file), trace(&folder.path().join("deep")), "one file is looked at too");
        let mut traces = Traces::default();
        let place = Place::Folder { path: folder.path().to_owned() };
        let then = traces.of(&place);
        fs::write(&file, "three").unwrap();
        assert_eq!((traces.of(&place), then == of(&place)), (then.clone(), false), "it is looked at once a pass");
    }

    #[test]
    fn what_cannot_be_looked_at_whole_has_no_trace_but_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert!(below(folder.path(), 3).is_ok());
        assert!(below(folder.path(), 2).unwrap_err().contains("more than 2 files"));
        assert!(trace(&folder.path().join("gone")).unwrap_err().contains("cannot be looked at"));
        let object = Place::Object { url: "s3://b/k".into(), datastore: "far".into(), options: Default::default() };
        assert!(of(&object).unwrap_err().contains("datastore `far`"));
        for (named, is_inside) in [("./a", true), ("*", true), ("../x", false), ("/x", false), ("azureml://y", false)] {
            fs::write(folder.path().join(FILE), format!("paths:\n- file: '{named}'\n")).unwrap();
            assert_eq!(trace(folder.path()).is_ok(), is_inside, "{named}");
        }
        fs::remove_file(folder.path().join(FILE)).unwrap();
        std::os::unix::fs::symlink("/", folder.path().join("d")).unwrap();
        assert!(trace(folder.path()).unwrap_err().contains("link to another folder"));
    }
}
