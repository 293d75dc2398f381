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
    mltable::{FILE, Named, fits, paths, split_pattern},
    spec::yaml,
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
