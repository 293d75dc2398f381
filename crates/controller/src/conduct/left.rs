//! What steps left on this machine, read while the pipeline is led: a value, a yes, the items of a loop.
//!
//! Invariants: only plain files are opened, and only so much of them is read; an MLTable names files below its folder.

use domain::{
    Place,
    mltable::{FILE, Named, fits, paths, rows, split_pattern},
    pipeline::{Item, items, items_in},
    spec::{Mistake, yaml},
};
use serde_json::Value;
use std::{
    fs,
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

const VALUE_BYTES: u64 = 64 << 10;
const ITEMS_BYTES: u64 = 16 << 20;
const MOST_FILES: usize = 10_000;

/// Whether a file holds a yes or a no, or why that cannot be told.
pub(super) fn says_yes(place: &Place) -> Result<bool, String> {
    let text = text_at(place)?;
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => {
            let shown: String = text.chars().take(40).collect();
            Err(format!("it holds `{shown}`, which is neither `true` nor `false`"))
        }
    }
}

/// The value a step wrote into a file of this machine, or why there is none.
pub(super) fn text_at(place: &Place) -> Result<String, String> {
    let path = match place {
        Place::Folder { path } => path,
        Place::Object { datastore, .. } => {
            return Err(format!(
                "it lies in datastore `{datastore}`, which is not on this machine; values are read where the server runs, so keep the output in `workspaceblobstore`"
            ));
        }
        Place::Http { url } => return Err(format!("it lies at `{url}`, which is not on this machine")),
    };
    let mut text = String::new();
    // Nobody means more than this by a value.
    let read = opened(path).and_then(|file| file.take(VALUE_BYTES).read_to_string(&mut text));
    match read {
        Ok(_) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err("the step wrote no such file".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err("it is no file".to_owned()),
        Err(error) => Err(format!("the file cannot be read: {error}")),
    }
}

/// The items that a step listed: in a file, in the one file of JSON in a folder, or as the rows of an MLTable.
pub(super) fn listed(place: &Place) -> Result<Vec<Item>, String> {
    let Place::Folder { path } = place else {
        return Err("the items lie in a datastore that is not on this machine".to_owned());
    };
    let mut left = ITEMS_BYTES;
    if path.join(FILE).is_file() {
        return in_table(path, &mut left);
    }
    let file = match fs::read_dir(path) {
        Ok(entries) => {
            let is_json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json" || end == "jsonl");
            let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_json).collect();
            match (files.pop(), files.is_empty()) {
                (Some(only), true) => only,
                (None, _) => return Err("there is no `.json` or `.jsonl` file in the folder of items".to_owned()),
                _ => return Err("there are several `.json` and `.jsonl` files in the folder of items".to_owned()),
            }
        }
        Err(_) => path.clone(),
    };
    let text = text_of(&file, &mut left)?;
    items_in(&text).ok_or_else(|| "the file of items holds no list or map of maps".to_owned())
}

/// The rows of all files that an MLTable names, numbered in their order.
fn in_table(folder: &Path, left: &mut u64) -> Result<Vec<Item>, String> {
    let told = |mistakes: Vec<Mistake>| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let table = yaml::parse(FILE, &text_of(&folder.join(FILE), left)?)
        .map_err(|mistakes| format!("the MLTable cannot be read: {}", told(mistakes)))?;
    let transformations = table.to_json()["transformations"].take();
    let mut all = Vec::new();
    for named in paths(&table).map_err(|why| format!("the MLTable cannot be used: {why}"))? {
        let files = files_of(folder, &named)?;
        if files.is_empty() {
            return Err(format!("the MLTable's `{}` matches no file", named.text));
        }
        for (name, path) in files {
            let found = rows(&transformations, &name, &text_of(&path, left)?)?;
            all.extend(found.into_iter().map(Value::Object));
        }
    }
    items(&Value::Array(all)).ok_or_else(|| "the MLTable has no rows".to_owned())
}

/// Files that one of an MLTable's paths names, with their names, in the order of those.
fn files_of(folder: &Path, named: &Named) -> Result<Vec<(String, PathBuf)>, String> {
    let text = named.text.strip_prefix("./").unwrap_or(&named.text).trim_end_matches('/');
    let (base, pattern) = split_pattern(text, named.is_pattern);
    let base = if base == "." { "" } else { base };
    if text.contains("://") || !Path::new(base).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(format!("the MLTable's `{}` leads out of its folder; items are read from inside it", named.text));
    }
    let (mut folders, mut found) = (vec![folder.join(base)], Vec::new());
    let start = folders[0].clone();
    while let Some(path) = folders.pop() {
        if path.is_symlink() {
            continue;
        }
        if path.is_file() {
            let name = path.strip_prefix(&start).unwrap_or(&path).display().to_string();
            // A path that is a file is named by its text and by nothing below it.
            let name = if name.is_empty() { base.to_owned() } else { name };
            if name != FILE && pattern.is_none_or(|pattern| fits(pattern, &name)) {
                found.push((name, path));
            }
        } else if path.is_dir() {
            folders.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
        if folders.len() + found.len() > MOST_FILES {
            return Err(format!("the MLTable's `{}` is more than {MOST_FILES} files", named.text));
        }
    }
    found.sort();
    Ok(found)
}

/// What a file of items holds, if there may be so much; what is `left` to be read after it is less.
fn text_of(path: &Path, left: &mut u64) -> Result<String, String> {
    let mut text = String::new();
    let read = opened(path).and_then(|file| file.take(*left + 1).read_to_string(&mut text));
    if read.is_err() || text.len() as u64 > *left {
        return Err(format!("the file of items cannot be read as text of at most {} MiB", ITEMS_BYTES >> 20));
    }
    *left -= text.len() as u64;
    Ok(text)
}

/// A file that a step left. Whatever else goes by its name, such as a pipe, would be waited for with everyone's writes.
fn opened(path: &Path) -> io::Result<fs::File> {
    if fs::metadata(path)?.is_file() { fs::File::open(path) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yes_is_read_and_what_is_neither_yes_nor_no_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Folder { path: folder.path().join("more") };
        assert_eq!(says_yes(&place).unwrap_err(), "the step wrote no such file");
        for (text, said) in [("True\n", Ok(true)), ("false", Ok(false)), ("0", Ok(false)), ("maybe", Err("`maybe`"))] {
            fs::write(folder.path().join("more"), text).unwrap();
            match (says_yes(&place), said) {
                (Err(why), Err(piece)) => assert!(why.contains(piece), "{why}"),
                (found, said) => assert_eq!(found, said.map_err(str::to_owned)),
            }
        }
        assert_eq!(text_at(&Place::Folder { path: folder.path().into() }).unwrap_err(), "it is no file");
        let far = Place::Object { url: "s3://b/k".into(), datastore: "far".into(), options: Default::default() };
        assert!(text_at(&far).unwrap_err().contains("datastore `far`"));
    }

    fn told(files: &[(&str, &str)]) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let items = listed(&Place::Folder { path: folder.path().to_owned() })?;
        Ok(items
            .iter()
            .map(|(word, item)| format!("{word}={}", Value::Object(item.clone())))
            .collect::<Vec<_>>()
            .join(" "))
    }

    #[test]
    fn the_rows_of_a_table_are_items() {
        let csv = "paths:\n- pattern: ./parts/*.csv\n- file: more.txt\ntransformations:\n- read_delimited: {delimiter: ','}\n";
        let files = [(FILE, csv), ("parts/b.csv", "n\n2\n"), ("parts/a.csv", "n\n1\n"), ("more.txt", "n\n3\n")];
        assert_eq!(told(&files).unwrap(), r#"0={"n":"1"} 1={"n":"2"} 2={"n":"3"}"#);
        let lines = [(FILE, "paths:\n- folder: ./\n"), ("deep/a.jsonl", "{\"n\": 1}\n")];
        assert_eq!(told(&lines).unwrap(), r#"0={"n":1}"#);
    }

    #[test]
    fn a_table_that_cannot_be_used_says_why() {
        for (table, says) in [
            ("paths:\n- file: ../a.csv\n", "leads out of its folder"),
            ("paths:\n- file: /a.csv\n", "leads out of its folder"),
            ("paths:\n- folder: azureml://datastores/d/paths/x\n", "leads out of its folder"),
            ("paths:\n- file: gone.csv\n", "`gone.csv` matches no file"),
            ("paths:\n- file: a.csv\n", "has no rows"),
            ("paths:\n- text: a.csv\n", "needs `file`, `folder` or `pattern`"),
            ("paths: [\n", "cannot be read"),
        ] {
            let why = told(&[(FILE, table), ("a.csv", "n\n")]).unwrap_err();
            assert!(why.contains(says), "no `{says}` in {why}");
        }
    }
}
