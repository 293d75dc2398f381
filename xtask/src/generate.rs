//! Files that the binary writes about itself: reference pages, the chart and the definitions for Kubernetes.
//!
//! Both modes generate into a scratch folder first and compare. A file that is no longer generated counts as a
//! change, so the committed folders are always exactly what the binary says, and hold nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::image;
use crate::shell::{Failed, Shell, say};

/// File contents by path relative to their folder.
type Pages = BTreeMap<PathBuf, Vec<u8>>;

#[derive(Debug, PartialEq, Eq)]
enum Change {
    New(PathBuf),
    Differs(PathBuf),
    Gone(PathBuf),
}

impl Change {
    fn line(&self) -> String {
        match self {
            Change::New(page) => format!("  new      {}", page.display()),
            Change::Differs(page) => format!("  differs  {}", page.display()),
            Change::Gone(page) => format!("  gone     {}", page.display()),
        }
    }
}

/// Folders whose files are all generated.
const FOLDERS: &[&str] = &["docs/reference", "deploy/chart", "deploy/crds"];

/// Brings the generated folders up to date.
pub(crate) fn write(sh: &Shell) -> Result<(), Failed> {
    let fresh = generate(sh)?;
    let changes = compare(&pages(&sh.root)?, &fresh);
    for change in &changes {
        say(&change.line());
        apply(&sh.root, change, &fresh)?;
    }
    say(&format!("gen: {} of {} files written", changes.len(), fresh.len()));
    Ok(())
}

/// Fails, with the list, if `write` would change anything.
pub(crate) fn check(sh: &Shell) -> Result<(), Failed> {
    let fresh = generate(sh)?;
    let changes = compare(&pages(&sh.root)?, &fresh);
    for change in &changes {
        say(&change.line());
    }
    match changes.len() {
        0 => Ok(()),
        n => Err(Failed::Check(format!("{n} generated files are out of date: run `cargo xtask gen`"))),
    }
}

fn generate(sh: &Shell) -> Result<Pages, Failed> {
    let binary = image::build(sh)?;
    let scratch = sh.target().join("xtask").join("generated");
    if scratch.exists() {
        fs::remove_dir_all(&scratch).map_err(Failed::at(&scratch))?;
    }
    for (what, folder) in [("docs", "docs/reference"), ("deploy", "deploy")] {
        sh.run(&binary, &["gen", what, "--to", &scratch.join(folder).to_string_lossy()])?;
    }
    pages(&scratch)
}

/// The generated folders below a root, by path from it.
fn pages(root: &Path) -> Result<Pages, Failed> {
    let mut all = Pages::new();
    for folder in FOLDERS {
        all.extend(read(&root.join(folder))?.into_iter().map(|(page, text)| (Path::new(folder).join(page), text)));
    }
    Ok(all)
}

fn compare(committed: &Pages, fresh: &Pages) -> Vec<Change> {
    let mut changes = Vec::new();
    for (page, text) in fresh {
        match committed.get(page) {
            None => changes.push(Change::New(page.clone())),
            Some(old) if old != text => changes.push(Change::Differs(page.clone())),
            Some(_) => {}
        }
    }
    changes.extend(committed.keys().filter(|page| !fresh.contains_key(*page)).cloned().map(Change::Gone));
    changes
}

fn apply(home: &Path, change: &Change, fresh: &Pages) -> Result<(), Failed> {
    match change {
        Change::Gone(page) => fs::remove_file(home.join(page)).map_err(Failed::at(page)),
        Change::New(page) | Change::Differs(page) => {
            let path = home.join(page);
            let folder = path.parent().unwrap_or(home);
            fs::create_dir_all(folder).map_err(Failed::at(folder))?;
            fs::write(&path, &fresh[page]).map_err(Failed::at(&path))
        }
    }
}

/// Every file below a folder; a folder that does not exist holds none.
fn read(folder: &Path) -> Result<Pages, Failed> {
    let mut pages = Pages::new();
    let mut folders = if folder.exists() { vec![folder.to_owned()] } else { Vec::new() };
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(Failed::at(&next))? {
            let path = entry.map_err(Failed::at(&next))?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read(&path).map_err(Failed::at(&path))?;
            pages.insert(path.strip_prefix(folder).unwrap_or(&path).to_owned(), text);
        }
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(list: &[(&str, &str)]) -> Pages {
        list.iter().map(|(page, text)| (PathBuf::from(page), text.as_bytes().to_vec())).collect()
    }

    #[test]
    fn every_kind_of_difference_is_listed_and_equal_pages_are_not() {
        let committed = pages(&[("same.md", "a"), ("old.md", "b"), ("changed.md", "c")]);
        let fresh = pages(&[("same.md", "a"), ("changed.md", "d"), ("new.md", "e")]);
        let expected =
            [Change::Differs("changed.md".into()), Change::New("new.md".into()), Change::Gone("old.md".into())];
        assert_eq!(compare(&committed, &fresh), expected);
    }
}
