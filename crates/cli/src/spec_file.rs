//! Reading the files users name: one message for each way a file can be wrong, before its text is looked at.
//!
//! Invariant: no more than [`MAX_BYTES`] of a file are ever read, whatever it claims to be.

use crate::failure::{Done, Failure};
use domain::spec::{
    Mistake,
    check::{self, Spec},
    shape::Noun,
    yaml::MAX_BYTES,
};
use serde_json::Value;
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// A checked file and the folder its paths are relative to.
#[derive(Debug)]
pub(crate) struct SpecFile {
    pub(crate) spec: Spec,
    pub(crate) base: Base,
}

/// Where relative paths start.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    folder: PathBuf,
}

/// Reads and checks a noun's file; `sets` are `a.b=c` changes to it.
pub(crate) fn read(noun: Noun, path: &Path, sets: &[String]) -> Done<SpecFile> {
    let text = read_text(path)?;
    let shown = path.display().to_string();
    match check::read(noun, &shown, &text, sets) {
        Ok(spec) => Ok(SpecFile { spec, base: Base::of_file(path) }),
        Err(mistakes) => Err(told(&shown, &text, &mistakes)),
    }
}

/// A checked file as a tree with its own keys, and where its paths start.
pub(crate) fn tree(noun: Noun, path: &Path, sets: &[String]) -> Done<(Value, Base)> {
    let SpecFile { spec, base } = read(noun, path, sets)?;
    let mut tree = match spec {
        Spec::Tree(_, tree) => Ok(tree),
        Spec::Job(spec) => serde_json::to_value(spec),
        Spec::Environment(spec) => serde_json::to_value(spec),
        Spec::Data(spec) => serde_json::to_value(spec),
        Spec::Model(spec) => serde_json::to_value(spec),
        Spec::Datastore(spec) => serde_json::to_value(spec),
        Spec::Compute(spec) => serde_json::to_value(spec),
        Spec::Workspace(spec) => serde_json::to_value(spec),
    }
    .expect("a spec is plain data");
    // Which schema a component was written for is part of it.
    if let (Noun::Component, Some(schema)) = (noun, raw(path)?.get("$schema")) {
        tree["$schema"] = schema.clone();
    }
    Ok((tree, base))
}

/// A file's tree as it is written, for files that have no noun of their own.
pub(crate) fn raw(path: &Path) -> Done<Value> {
    let text = read_text(path)?;
    let shown = path.display().to_string();
    let root = domain::spec::yaml::parse(&shown, &text).map_err(|mistakes| told(&shown, &text, &mistakes))?;
    Ok(root.to_json())
}

/// Mistakes in a spec that no file holds.
pub(crate) fn refuse(what: &str, mistakes: &[Mistake]) -> Failure {
    let failure = Failure::input(what);
    mistakes.iter().fold(failure, |failure, mistake| failure.because(mistake.to_string()))
}

/// The text of a file of reasonable size.
pub(crate) fn read_text(path: &Path) -> Done<String> {
    let cannot = || format!("cannot read `{}`", path.display());
    let facts = fs::metadata(path).map_err(|error| {
        let failure = Failure::file(cannot(), &error);
        match error.kind() {
            io::ErrorKind::NotFound => failure.hint("check the path; it is relative to the folder you are in"),
            _ => failure,
        }
    })?;
    if facts.is_dir() {
        return Err(Failure::input(cannot()).because("it is a folder").hint("name the YAML file in it"));
    }
    if !facts.is_file() {
        return read_bounded(path, &cannot);
    }
    if facts.len() > MAX_BYTES as u64 {
        return Err(too_large(cannot(), facts.len()));
    }
    read_bounded(path, &cannot)
}

/// Pipes and devices say no size, so the limit holds while reading.
fn read_bounded(path: &Path, cannot: &dyn Fn() -> String) -> Done<String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| Failure::file(cannot(), &error))?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| Failure::file(cannot(), &error))?;
    if bytes.len() > MAX_BYTES {
        return Err(too_large(cannot(), bytes.len() as u64));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
        Failure::input(cannot()).because(format!("line {line} is not UTF-8 text")).hint("save the file as UTF-8")
    })
}

fn too_large(cannot: String, bytes: u64) -> Failure {
    let size = domain::resources::humane_bytes(bytes);
    Failure::input(cannot)
        .because(format!("it has {size}, and the limit is {}", domain::resources::humane_bytes(MAX_BYTES as u64)))
        .hint("put data into files of its own and refer to them by path")
}

fn told(file: &str, text: &str, mistakes: &[Mistake]) -> Failure {
    let count = match mistakes.len() {
        1 => "1 mistake".to_owned(),
        n => format!("{n} mistakes"),
    };
    Failure::mistakes(format!("{count} in `{file}`"), text, mistakes)
}

impl Base {
    pub(crate) fn of_file(file: &Path) -> Base {
        Base { folder: file.parent().unwrap_or(Path::new("")).to_owned() }
    }

    /// The working folder, for paths given as flags.
    pub(crate) fn here() -> Base {
        Base { folder: PathBuf::new() }
    }

    /// A path of the file, as this process can open it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let path = path.strip_prefix("file://").unwrap_or(path);
        match path.strip_prefix("~/").zip(std::env::var_os("HOME")) {
            Some((rest, home)) => PathBuf::from(home).join(rest),
            None => self.folder.join(path),
        }
    }

    /// The path, if something is there.
    pub(crate) fn existing(&self, key: &str, path: &str) -> Done<PathBuf> {
        let full = self.path(path);
        match fs::metadata(&full) {
            Ok(_) => Ok(full),
            Err(error) => Err(Failure::file(format!("`{key}` names `{path}`, which cannot be used"), &error)
                .because(format!("looked at `{}`", full.display()))
                .hint("paths in a file are relative to the folder of the file")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &Path) -> String {
        read_text(path).unwrap_err().to_string()
    }

    #[test]
    fn each_way_a_file_can_be_wrong_has_its_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(shown(&at("none.yml")).contains("it does not exist"));
        assert!(shown(folder.path()).contains("it is a folder"));
        fs::write(at("latin.yml"), b"a: 1\nb: \xe9\n").unwrap();
        assert!(shown(&at("latin.yml")).contains("line 2 is not UTF-8"));
        let big = fs::File::create(at("big.yml")).unwrap();
        big.set_len(200 << 20).unwrap();
        assert!(shown(&at("big.yml")).contains("it has 200 MiB, and the limit is 4 MiB"));
    }

    #[test]
    fn paths_start_at_the_folder_of_the_file() {
        let base = Base::of_file(Path::new("jobs/train.yml"));
        assert_eq!(base.path("src"), Path::new("jobs/src"));
        assert_eq!(base.path("/abs"), Path::new("/abs"));
        assert_eq!(Base::here().path("x"), Path::new("x"));
    }

    #[test]
    fn mistakes_are_counted_and_placed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job.yml");
        fs::write(&file, "comand: echo\nenvironment: azureml:e:1\n").unwrap();
        let shown = read(Noun::Job, &file, &[]).unwrap_err().to_string();
        assert!(shown.contains("job.yml:1:1: "), "{shown}");
        assert!(shown.contains(" 1 | comand: echo\n   | ^"), "{shown}");
        assert!(shown.contains("mistake"), "{shown}");
    }
}
