//! MLTable files: the set of files that one names, laid out as a folder.
//!
//! Only `paths` is evaluated here; transformations are left to the script. Invariant: a relative path stays within the MLTable's folder.

use super::{
    Data, Error, Secrets,
    local::{disk, make_folder},
    tree::{Kind, below, walk},
};
use domain::{
    Place,
    spec::yaml::{self, Node, Raw},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// How an MLTable is laid out.
pub struct Eval<'a> {
    /// Copies that may be written to (`eval_download`), or links to what is there (`eval_mount`).
    pub copies: bool,
    pub secrets: &'a Secrets,
    /// Holds what is fetched, as for [`Data::view`].
    pub holder: &'a str,
}

/// An MLTable as it was laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evaluated {
    pub folder: PathBuf,
    /// What the user should know.
    pub notices: Vec<String>,
}

const FILE: &str = "MLTable";

impl Data {
    /// Lays out the files that the MLTable in `folder` names below `to`. Addresses in it may be `http(s)`, or object
    /// stores that the node's own identity opens.
    pub async fn mltable(&self, folder: &Path, to: &Path, eval: &Eval<'_>) -> Result<Evaluated, Error> {
        let file = folder.join(FILE);
        let bad = |reason: String| Error::MlTable { path: file.clone(), reason };
        let text = fs::read_to_string(&file).map_err(|error| disk(&file, "read", error))?;
        let table = yaml::parse(FILE, &text)
            .map_err(|mistakes| bad(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
        make_folder(to)?;
        for named in paths(&table).map_err(&bad)? {
            let files = match named.text.contains("://") {
                true => self.remote_files(&named, eval).await?,
                false => local_files(folder, &named).map_err(|error| match error {
                    Error::BadName { name } => bad(format!("`{name}` leaves its folder")),
                    other => other,
                })?,
            };
            if files.is_empty() {
                return Err(bad(format!("`{}` matches no file", named.text)));
            }
            for (from, name) in files {
                lay(&from, &below(to, &name)?, eval.copies)?;
            }
        }
        let left = table.get("transformations").is_some();
        let notice = "the MLTable's `transformations` are left to the script; its files are laid out as they are";
        let notices = if left { vec![notice.to_owned()] } else { Vec::new() };
        Ok(Evaluated { folder: to.to_owned(), notices })
    }

    /// Files behind an address, named after it: host or bucket, then path.
    async fn remote_files(&self, named: &Named, eval: &Eval<'_>) -> Result<Vec<(PathBuf, String)>, Error> {
        let (base, pattern) = split_pattern(&named.text, named.is_pattern);
        let place = match base.starts_with("http://") || base.starts_with("https://") {
            true => Place::Http { url: base.to_owned() },
            false => Place::Object { url: base.to_owned(), datastore: String::new(), options: BTreeMap::new() },
        };
        let path = self.view(&place, eval.secrets, eval.holder).await?;
        let prefix = base.split_once("://").map_or("", |(_, rest)| rest).split('?').next().unwrap_or_default();
        let prefix = prefix.replace([':', '@'], "_");
        collect(&path, prefix.trim_matches('/'), pattern)
    }
}

/// One item of `paths`.
#[derive(Debug, PartialEq)]
struct Named {
    text: String,
    is_pattern: bool,
}

fn paths(table: &Node) -> Result<Vec<Named>, String> {
    let Some(Node { value: Raw::List(items), .. }) = table.get("paths") else {
        return Err("it has no list `paths`".to_owned());
    };
    let named = |item: &Node| {
        let found =
            ["file", "folder", "pattern"].into_iter().find_map(|kind| Some((kind, item.get(kind)?.scalar_text()?)));
        found.map(|(kind, text)| Named { text: text.trim().to_owned(), is_pattern: kind == "pattern" })
    };
    items
        .iter()
        .map(|item| named(item).ok_or_else(|| "each of `paths` needs `file`, `folder` or `pattern`".to_owned()))
        .collect()
}

fn local_files(folder: &Path, named: &Named) -> Result<Vec<(PathBuf, String)>, Error> {
    let text = named.text.strip_prefix("./").unwrap_or(&named.text).trim_end_matches('/');
    let (base, pattern) = split_pattern(text, named.is_pattern);
    match base {
        "" | "." => collect(folder, "", pattern),
        base => match below(folder, base)? {
            path if path.exists() => collect(&path, base, pattern),
            path => Err(Error::Absent { at: path.display().to_string() }),
        },
    }
}

/// Every file at or below `path` whose name within it fits the pattern, with the name it is laid out under.
fn collect(path: &Path, prefix: &str, pattern: Option<&str>) -> Result<Vec<(PathBuf, String)>, Error> {
    if path.is_file() {
        return Ok(vec![(path.to_owned(), prefix.to_owned())]);
    }
    let within = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
    let wanted = |name: &str| name != FILE && pattern.is_none_or(|pattern| fits(pattern, name));
    let entries = walk(path)?.entries.into_iter().filter(|entry| entry.kind == Kind::File && wanted(&entry.name));
    Ok(entries.map(|entry| (path.join(&entry.name), within(&entry.name))).collect())
}

/// The folder before the first wildcard, and the rest.
fn split_pattern(text: &str, is_pattern: bool) -> (&str, Option<&str>) {
    let Some(wild) = text.find(['*', '?', '[']).filter(|_| is_pattern) else { return (text, None) };
    match text[..wild].rfind('/') {
        Some(slash) => (&text[..slash], Some(&text[slash + 1..])),
        None => ("", Some(text)),
    }
}

/// `*` and `?` stay within one part of a name, `**` spans any number of parts.
fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    // `reached[i]`: the parts of the name so far can be used up by the first `i` parts of the pattern.
    let mut reached = vec![false; pattern.len() + 1];
    reached[0] = true;
    skip_spans(&pattern, &mut reached);
    for part in name.split('/') {
        let mut next = vec![false; pattern.len() + 1];
        for (i, piece) in pattern.iter().enumerate().filter(|(i, _)| reached[*i]) {
            if *piece == "**" {
                next[i] = true;
            } else if fits_part(piece.as_bytes(), part.as_bytes()) {
                next[i + 1] = true;
            }
        }
        reached = next;
        skip_spans(&pattern, &mut reached);
    }
    reached[pattern.len()]
}

/// A `**` may span nothing.
fn skip_spans(pattern: &[&str], reached: &mut [bool]) {
    for (i, piece) in pattern.iter().enumerate() {
        reached[i + 1] |= reached[i] && *piece == "**";
    }
}

/// Goes back only to the last `*`, so a hostile pattern costs at most the product of both lengths.
fn fits_part(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match back {
                Some((star, start)) => {
                    (p, n) = (star + 1, start + 1);
                    back = Some((star, start + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

fn lay(from: &Path, to: &Path, copies: bool) -> Result<(), Error> {
    if let Some(parent) = to.parent() {
        make_folder(parent)?;
    }
    if to.symlink_metadata().is_ok() {
        // Named by two of the paths.
        return Ok(());
    }
    let done = if copies { fs::copy(from, to).map(drop) } else { std::os::unix::fs::symlink(from, to) };
    done.map_err(|error| disk(to, "written", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_people_expect() {
        for (pattern, name, fit) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "d/a.csv", false),
            ("**/*.csv", "d/e/a.csv", true),
            ("**/*.csv", "a.csv", true),
            ("d/**", "d/e/f", true),
            ("a?.txt", "ab.txt", true),
            ("a?.txt", "a.txt", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xxaxxbxx", false),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
        assert!(!fits(&format!("{}c", "a*".repeat(60)), &"a".repeat(5000)), "in reasonable time");
        assert!(!fits(&format!("{}c", "**/a/".repeat(30)), &"a/".repeat(200)), "in reasonable time");
    }

    #[test]
    fn a_pattern_starts_at_its_first_wildcard() {
        assert_eq!(split_pattern("a/b*/c", true), ("a", Some("b*/c")));
        assert_eq!(split_pattern("*.csv", true), ("", Some("*.csv")));
        assert_eq!(split_pattern("a*b", false), ("a*b", None));
    }
}
