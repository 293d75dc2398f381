//! What of a folder is sent: a walk that ends, whatever the folder holds.
//!
//! `.amlignore` decides what is left out, else `.gitignore`; both in gitignore's own syntax, in any folder. `.git`
//! is never sent. Invariants: no file outside the folder is ever read; links that would lead outside or around in
//! a circle are skipped and told; the order is that of the names, so equal folders give equal lists.

use crate::failure::{Done, Failure};
use api::blob::Item;
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use std::{
    fs::{self, FileType},
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// Files to send, and what people should know about those that are not.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) items: Vec<Item>,
    pub(super) notices: Vec<String>,
}

/// Lists a folder; `honour` says whether ignore files count.
pub(super) fn walk(folder: &Path, honour: bool) -> Done<Snapshot> {
    let root = fs::canonicalize(folder).map_err(|error| unreadable(folder, &error))?;
    let ignore_file = [".amlignore", ".gitignore"].into_iter().find(|name| honour && root.join(name).is_file());
    let mut walk =
        Walk { root: root.clone(), ignore_file, rules: Vec::new(), chain: Vec::new(), found: Snapshot::default() };
    walk.folder(&root, "")?;
    // Names are compared whole, so that `a.b` and `a/b` have one place each in every listing.
    walk.found.items.sort_by(|a, b| a.name.cmp(&b.name));
    if walk.found.items.is_empty() {
        let failure = Failure::input(format!("there is nothing to upload in `{}`", folder.display()));
        return Err(match ignore_file {
            Some(name) => failure.because(format!("it is empty, or `{name}` leaves out everything in it")),
            None => failure.because("the folder is empty"),
        });
    }
    Ok(walk.found)
}

struct Walk {
    root: PathBuf,
    ignore_file: Option<&'static str>,
    /// Of the folders from the root to here, outermost first.
    rules: Vec<Gitignore>,
    /// Real paths of the folders we are in, to notice circles.
    chain: Vec<PathBuf>,
    found: Snapshot,
}

impl Walk {
    fn folder(&mut self, real: &Path, name: &str) -> Done {
        let here = self.root.join(name);
        let entries = fs::read_dir(&here).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
        let mut entries = entries.map_err(|error| unreadable(&here, &error))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        self.chain.push(real.to_owned());
        let ruled = self.enter(&here)?;
        for entry in entries {
            let Ok(file_name) = entry.file_name().into_string() else {
                self.found.notices.push(format!("left out `{}`: its name is not UTF-8", entry.path().display()));
                continue;
            };
            let child = if name.is_empty() { file_name } else { format!("{name}/{file_name}") };
            let kind = entry.file_type().map_err(|error| unreadable(&entry.path(), &error))?;
            self.entry(&child, kind)?;
        }
        if ruled {
            self.rules.pop();
        }
        self.chain.pop();
        Ok(())
    }

    /// Takes up the ignore file of a folder, if it has one.
    fn enter(&mut self, here: &Path) -> Done<bool> {
        let Some(file) = self.ignore_file.map(|name| here.join(name)).filter(|file| file.is_file()) else {
            return Ok(false);
        };
        let mut builder = GitignoreBuilder::new(here);
        if let Some(error) = builder.add(&file) {
            return Err(Failure::input(format!("cannot use `{}`", file.display())).because(error.to_string()));
        }
        let rules = builder
            .build()
            .map_err(|error| Failure::input(format!("cannot use `{}`", file.display())).because(error.to_string()))?;
        self.rules.push(rules);
        Ok(true)
    }

    fn entry(&mut self, name: &str, kind: FileType) -> Done {
        let path = self.root.join(name);
        if kind.is_symlink() {
            return self.link(name, &path);
        }
        if self.is_left_out(&path, kind.is_dir()) || (kind.is_dir() && path.file_name().is_some_and(|n| n == ".git")) {
            return Ok(());
        }
        if kind.is_dir() {
            let real = self
                .chain
                .last()
                .map_or_else(|| path.clone(), |parent| parent.join(path.file_name().unwrap_or_default()));
            return self.folder(&real, name);
        }
        if kind.is_file() {
            return self.file(name, path);
        }
        self.found.notices.push(format!("left out `{name}`: it is {}", in_words(kind)));
        Ok(())
    }

    fn link(&mut self, name: &str, path: &Path) -> Done {
        let Ok(real) = fs::canonicalize(path) else {
            self.found.notices.push(format!("left out `{name}`: the link leads nowhere"));
            return Ok(());
        };
        if !real.starts_with(&self.root) {
            if !self.is_left_out(path, real.is_dir()) {
                self.found
                    .notices
                    .push(format!("left out `{name}`: the link leads out of the folder, to `{}`", real.display()));
            }
            return Ok(());
        }
        let facts = fs::metadata(&real).map_err(|error| unreadable(path, &error))?;
        if self.is_left_out(path, facts.is_dir()) {
            return Ok(());
        }
        if facts.is_dir() && self.chain.iter().any(|folder| folder.starts_with(&real)) {
            self.found.notices.push(format!("left out `{name}`: the link leads around in a circle"));
            return Ok(());
        }
        match facts.file_type() {
            kind if kind.is_dir() => self.folder(&real, name),
            kind if kind.is_file() => self.file(name, path.to_owned()),
            kind => {
                self.found.notices.push(format!("left out `{name}`: it is {}", in_words(kind)));
                Ok(())
            }
        }
    }

    fn file(&mut self, name: &str, path: PathBuf) -> Done {
        // Opening tells now what an upload of thousands of files would tell late.
        let file = fs::File::open(&path).map_err(|error| unreadable(&path, &error))?;
        let bytes = file.metadata().map_err(|error| unreadable(&path, &error))?.len();
        self.found.items.push(Item { name: name.to_owned(), path, bytes });
        Ok(())
    }

    /// The innermost rule that has an opinion wins.
    fn is_left_out(&self, path: &Path, is_dir: bool) -> bool {
        for rules in self.rules.iter().rev() {
            match rules.matched(path, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::file(format!("cannot read `{}`", path.display()), error)
        .hint("make it readable, or name it in `.amlignore` to leave it out")
}

fn in_words(kind: FileType) -> &'static str {
    match () {
        () if kind.is_socket() => "a socket",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_block_device() || kind.is_char_device() => "a device",
        () => "no ordinary file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::{fs::symlink, net::UnixListener};

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn with(files: &[(&str, &str)]) -> Folder {
            let folder = Folder(tempfile::tempdir().unwrap());
            for (name, text) in files {
                let path = folder.at(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            folder
        }
        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }
        fn check(&self, names: &str, notices: &[&str]) {
            let found = walk(self.0.path(), true).unwrap();
            let seen: Vec<&str> = found.items.iter().map(|item| item.name.as_str()).collect();
            assert_eq!(seen.join(" "), names);
            assert_eq!(found.notices.len(), notices.len(), "{:?}", found.notices);
            for (seen, part) in found.notices.iter().zip(notices) {
                assert!(seen.contains(part), "{seen}");
            }
        }
    }

    #[test]
    fn a_gitignore_is_honoured_in_every_folder_and_git_is_left_out() {
        Folder::with(&[
            (".gitignore", "*.log\nbuild/\n"),
            ("a.py", ""),
            ("a.log", ""),
            ("build/x", ""),
            ("sub/.gitignore", "!keep.log\nb.py\n"),
            ("sub/keep.log", ""),
            ("sub/b.py", ""),
            (".git/HEAD", ""),
        ])
        .check(".gitignore a.py sub/.gitignore sub/keep.log", &[]);
    }

    #[test]
    fn an_amlignore_wins_over_a_gitignore() {
        Folder::with(&[(".gitignore", "a.py\n"), (".amlignore", "b.py\n"), ("a.py", ""), ("b.py", "")])
            .check(".amlignore .gitignore a.py", &[]);
    }

    #[test]
    fn links_inside_are_followed_and_others_are_told() {
        let folder = Folder::with(&[("real/a", ""), ("real/deep/b", "")]);
        let outside = Folder::with(&[("secret", "")]);
        symlink(folder.at("real"), folder.at("also")).unwrap();
        symlink(outside.at("secret"), folder.at("out")).unwrap();
        symlink("..", folder.at("real/deep/up")).unwrap();
        symlink("gone", folder.at("dangling")).unwrap();
        folder.check("also/a also/deep/b real/a real/deep/b", &["circle", "nowhere", "out of the folder", "circle"]);
    }

    #[test]
    fn sockets_are_skipped_with_a_notice() {
        let folder = Folder::with(&[("a", "")]);
        let _socket = UnixListener::bind(folder.at("s")).unwrap();
        folder.check("a", &["a socket"]);
    }

    #[test]
    fn a_folder_without_anything_to_send_is_refused() {
        let shown = walk(Folder::with(&[(".amlignore", "*\n"), ("a", "")]).0.path(), true).unwrap_err().to_string();
        assert!(shown.contains("nothing to upload") && shown.contains("`.amlignore`"), "{shown}");
    }
}
