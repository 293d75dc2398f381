//! Where the artifacts of an MLflow store lie on this machine.
//!
//! Invariant: only plain files below a thing's own folder are found; links lead nowhere.

use percent_encoding::percent_decode_str;
use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// A file of a run or of a model.
#[derive(Debug)]
pub(super) struct File {
    /// Its path below the thing's folder, with `/`.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// How addresses of artifacts become folders.
#[derive(Debug)]
pub(super) struct Folders {
    /// What relative paths begin at.
    pub(super) base: PathBuf,
    /// Where the MLflow server keeps artifacts, if that was said.
    pub(super) artifacts: Option<PathBuf>,
}

/// An address, as far as it matters here.
#[derive(Debug, PartialEq)]
pub(super) enum Address<'a> {
    Path(String),
    /// What an MLflow server serves, by the path below its artifacts.
    Served(String),
    Elsewhere(&'a str),
}

impl Address<'_> {
    pub(super) fn of(uri: &str) -> Address<'_> {
        if let Some(rest) = uri.strip_prefix("mlflow-artifacts:") {
            let path = match rest.strip_prefix("//") {
                Some(with_host) => with_host.split_once('/').map_or("", |(_, path)| path),
                None => rest,
            };
            return Address::Served(path.trim_matches('/').to_owned());
        }
        if let Some(rest) = uri.strip_prefix("file:") {
            let path = rest.strip_prefix("//localhost").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
            let path = path.split(['?', '#']).next().unwrap_or(path);
            return Address::Path(plain(&percent_decode_str(path).decode_utf8_lossy()));
        }
        match uri.contains("://") || uri.starts_with("dbfs:") {
            true => Address::Elsewhere(uri),
            false => Address::Path(plain(uri)),
        }
    }
}

fn plain(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}

impl Folders {
    /// The folder of a thing, by its address and its usual path below an artifact root; `None` where it has no files.
    fn folder(&self, uri: &str, usual: &str) -> Result<Option<PathBuf>, String> {
        let given = self.artifacts.as_ref().map(|root| root.join(usual)).filter(|path| path.is_dir());
        match Address::of(uri) {
            Address::Elsewhere(uri) => {
                let root = uri.split_once("://").map_or(uri, |(scheme, _)| scheme);
                Err(format!("the files are in a store of their own (`{root}`), where clients read them as before"))
            }
            Address::Served(path) => match &self.artifacts {
                None => Err("the MLflow server served the files: say where it keeps them with `--artifacts`".into()),
                Some(root) => Ok(Some(root.join(path)).filter(|path| inside(path) && path.is_dir()).or(given)),
            },
            Address::Path(path) => {
                let path = self.base.join(path);
                if path.is_dir() || given.is_some() {
                    return Ok(Some(path).filter(|path| path.is_dir()).or(given));
                }
                let depth = usual.split('/').count();
                match path.ancestors().nth(depth) {
                    Some(root) if !root.is_dir() && self.artifacts.is_none() => Err(format!(
                        "the folder `{}` is not on this machine: say where it is now with `--artifacts`",
                        root.display()
                    )),
                    _ => Ok(None),
                }
            }
        }
    }

    /// The files of a thing, by name; why there are none, and what among them is not taken, in words.
    pub(super) fn files(&self, uri: &str, usual: &str) -> (Vec<File>, Vec<String>) {
        let (mut files, mut left) = (Vec::new(), Vec::new());
        match self.folder(uri, usual) {
            Err(reason) => left.push(reason),
            Ok(None) => {}
            Ok(Some(folder)) => walk(&folder, "", &mut files, &mut left),
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        (files, left)
    }
}

fn inside(path: &Path) -> bool {
    path.components().all(|part| part != Component::ParentDir)
}

fn walk(folder: &Path, below: &str, files: &mut Vec<File>, left: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        left.push(format!("the folder `{}` cannot be read", folder.display()));
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Some(name) = entry.file_name().to_str().map(|name| format!("{below}{name}")) else {
            left.push(format!("the name of a file in `{}` is not text", folder.display()));
            continue;
        };
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => walk(&path, &format!("{name}/"), files, left),
            Ok(meta) if meta.is_file() => files.push(File { name, path, bytes: meta.len() }),
            Ok(_) => left.push(format!("`{}` is a link or no plain file", path.display())),
            Err(_) => left.push(format!("`{}` cannot be read", path.display())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_mlflow_writes_them() {
        for (uri, expect) in [
            ("/srv/mlruns/1/ab/artifacts", Address::Path("/srv/mlruns/1/ab/artifacts".into())),
            ("./mlruns/1/ab/artifacts/", Address::Path("./mlruns/1/ab/artifacts".into())),
            ("file:///srv/my%20runs", Address::Path("/srv/my runs".into())),
            ("mlflow-artifacts:/1/ab/artifacts", Address::Served("1/ab/artifacts".into())),
            ("mlflow-artifacts://host:5000/1/ab/artifacts", Address::Served("1/ab/artifacts".into())),
            ("s3://bucket/1", Address::Elsewhere("s3://bucket/1")),
            ("dbfs:/databricks/1", Address::Elsewhere("dbfs:/databricks/1")),
        ] {
            assert_eq!(Address::of(uri), expect, "{uri}");
        }
    }

    #[test]
    fn a_folder_is_found_where_it_was_or_where_it_is_said_to_be_and_links_are_left() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("old/1/ab/artifacts");
        fs::create_dir_all(own.join("model")).unwrap();
        fs::write(own.join("model/MLmodel"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", own.join("away")).unwrap();
        let found = |uri: &str, artifacts: Option<&str>| {
            let artifacts = artifacts.map(|name| root.path().join(name));
            let folders = Folders { base: root.path().to_owned(), artifacts };
            let (files, left) = folders.files(uri, "1/ab/artifacts");
            (files.into_iter().map(|file| file.name).collect::<Vec<_>>(), left.len())
        };
        let there = (vec!["model/MLmodel".to_owned()], 1);
        assert_eq!(found("./old/1/ab/artifacts", None), there);
        assert_eq!(found("/gone/1/ab/artifacts", Some("old")), there);
        assert_eq!(found("mlflow-artifacts:/1/ab/artifacts", Some("old")), there);
        for (uri, artifacts, left) in [
            ("/gone/1/ab/artifacts", None, 1),
            ("mlflow-artifacts:/1/ab/artifacts", None, 1),
            ("mlflow-artifacts:/../old/1/ab/artifacts", Some("old/1"), 0),
            ("s3://bucket/1/ab/artifacts", Some("other"), 1),
            ("./old/1/none/artifacts", None, 0),
        ] {
            assert_eq!(found(uri, artifacts), (Vec::new(), left), "{uri}");
        }
    }
}
