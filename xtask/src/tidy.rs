//! Rules of the house that no compiler checks: crate edges, module docs, names, links in documents, sizes.
//!
//! Two kinds of finding: an *error* fails the command, a *mention* is only shown. The tree is read as text, so tidy
//! works while crates do not compile.

mod documents;
mod edges;
mod lexer;
mod scripts;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Failed, Shell, say};

/// What tidy has to say, in the order found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    errors: Vec<String>,
    mentions: Vec<String>,
}

/// One text file of the tree.
struct File {
    /// Relative to the repository's root, with `/` between parts.
    path: String,
    text: String,
}

/// Files with one of these endings are read; all else is taken for data.
const TEXT: &[&str] = &["rs", "md", "toml", "py", "sh", "yml", "yaml", "ts", "tsx", "css", "html"];
/// Built or private folders, left out beside those whose name starts with a dot.
const SKIPPED: &[&str] = &["target", "node_modules"];
/// In two halves, so that this file does not find itself.
const MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// Checks the whole tree.
pub(crate) fn run(sh: &Shell) -> Result<(), Failed> {
    let mut report = Report::default();
    let files = files(&sh.root)?;
    edges::check(&files, &mut report);
    for file in &files {
        marks(file, &mut report);
        match file.path.rsplit('.').next() {
            Some("rs") => sources::check(file, &mut report),
            Some("ts" | "tsx") => scripts::check(file, &mut report),
            Some("md") => documents::check(file, &sh.root, &mut report),
            _ => {}
        }
    }
    show(&report, files.len())
}

fn show(report: &Report, files: usize) -> Result<(), Failed> {
    for mention in &report.mentions {
        say(&format!("mention: {mention}"));
    }
    for error in &report.errors {
        say(&format!("error: {error}"));
    }
    let (errors, mentions) = (report.errors.len(), report.mentions.len());
    say(&format!("tidy: {files} files, {errors} errors, {mentions} mentions"));
    if errors == 0 { Ok(()) } else { Err(Failed::Check(format!("tidy found {errors} errors, listed above"))) }
}

/// Work left for later belongs in an issue, where someone sees it.
fn marks(file: &File, report: &mut Report) {
    for (at, line) in file.text.lines().enumerate() {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        if let Some(mark) = words.find(|word| MARKS.contains(word)) {
            report.errors.push(format!("{}:{}: a `{mark}`; do it, or open an issue", file.path, at + 1));
        }
    }
}

fn files(root: &Path) -> Result<Vec<File>, Failed> {
    let mut paths = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(Failed::at(&folder))? {
            let entry = entry.map_err(Failed::at(&folder))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().map_err(Failed::at(&folder))?;
            if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                folders.push(entry.path());
            } else if kind.is_file() && name.rsplit_once('.').is_some_and(|(_, end)| TEXT.contains(&end)) {
                paths.push(entry.path());
            }
        }
    }
    paths.sort();
    paths.into_iter().filter_map(|path| load(root, path).transpose()).collect()
}

/// `None` for a file that is not UTF-8: a fixture of bad input, say.
fn load(root: &Path, path: PathBuf) -> Result<Option<File>, Failed> {
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        // An editor's or a colleague's file may go between the listing and the reading.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failed::at(&path)(error)),
    };
    let relative = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
    Ok(String::from_utf8(bytes).ok().map(|text| File { path: relative, text }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_counts_as_a_word_and_not_inside_one() {
        let mark = MARKS[0];
        let text = format!("fine\n// {mark}: later\nlet {mark}_list = 1;\n");
        let mut report = Report::default();
        marks(&File { path: "a.rs".into(), text }, &mut report);
        assert_eq!(report.errors, [format!("a.rs:2: a `{mark}`; do it, or open an issue")]);
    }
}
