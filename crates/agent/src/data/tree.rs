//! Walking a folder that a user's program has filled.
//!
//! Invariants: every entry lies within the folder, also through links; a loop of links ends; names are relative,
//! without `..`, and UTF-8, so that every store can hold them.

use super::Error;
use rustix::fs::Access;
use std::{
    collections::HashSet,
    fs, io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Component, Path, PathBuf},
};

/// What there is in a folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Sorted; a folder comes before what is in it. A single file has one entry with its own name.
    pub entries: Vec<Entry>,
    /// What was left out and why.
    pub notices: Vec<String>,
}

/// One file or folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Relative to the folder, parts joined by `/`.
    pub name: String,
    pub kind: Kind,
    /// Zero for a folder.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Folder,
    File,
}

/// Lists `root`. Links within it count as what they point to; one that points out of it is an error, since what it
/// names may be anybody's. Sockets, pipes and devices are left out with a notice.
pub fn walk(root: &Path) -> Result<Tree, Error> {
    let failed = |source| Error::Disk { path: root.to_owned(), what: "read", source };
    let real = fs::canonicalize(root).map_err(failed)?;
    let meta = fs::metadata(&real).map_err(failed)?;
    let mut walk = Walk { root: real.clone(), ..Walk::default() };
    if meta.is_dir() {
        walk.enter(&real, "", (meta.dev(), meta.ino()))?;
        walk.go()?;
    } else {
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        walk.tree.entries.push(Entry { name: checked(&name)?, kind: Kind::File, bytes: meta.len() });
    }
    match walk.unreadable.first() {
        Some(first) => Err(Error::Unreadable { count: walk.unreadable.len(), first: first.clone() }),
        None => Ok(walk.tree),
    }
}

/// `name` below `folder`, if it is a plain relative name.
pub(super) fn below(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    Ok(folder.join(checked(name)?))
}

fn checked(name: &str) -> Result<String, Error> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let whole = !name.is_empty() && !name.contains('\0') && !name.split('/').any(|part| part == "." || part.is_empty());
    match whole && Path::new(name).components().all(plain) {
        true => Ok(name.to_owned()),
        false => Err(Error::BadName { name: name.to_owned() }),
    }
}

/// Folders we are in, outermost first. A list instead of recursion: a program can nest deeper than a stack.
#[derive(Default)]
struct Walk {
    root: PathBuf,
    tree: Tree,
    unreadable: Vec<PathBuf>,
    open: Vec<Open>,
    /// The same folders by device and inode: meeting one again is a loop.
    parents: HashSet<(u64, u64)>,
}

struct Open {
    id: (u64, u64),
    /// What is left to look at, last first: path and name.
    left: Vec<(PathBuf, String)>,
}

impl Walk {
    fn go(&mut self) -> Result<(), Error> {
        while let Some(folder) = self.open.last_mut() {
            match folder.left.pop() {
                Some((path, name)) => self.entry(&path, name)?,
                None => {
                    self.parents.remove(&folder.id);
                    self.open.pop();
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, folder: &Path, prefix: &str, id: (u64, u64)) -> Result<(), Error> {
        let listed = fs::read_dir(folder).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let Ok(mut entries) = listed else {
            self.unreadable.push(folder.to_owned());
            return Ok(());
        };
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
        let mut left = Vec::with_capacity(entries.len());
        for entry in entries {
            let Ok(name) = entry.file_name().into_string() else {
                return Err(Error::BadName { name: entry.file_name().to_string_lossy().into_owned() });
            };
            left.push((entry.path(), if prefix.is_empty() { name } else { format!("{prefix}/{name}") }));
        }
        self.parents.insert(id);
        self.open.push(Open { id, left });
        Ok(())
    }

    fn entry(&mut self, path: &Path, name: String) -> Result<(), Error> {
        let Ok(plain) = path.symlink_metadata() else {
            // Removed while we looked.
            return Ok(());
        };
        if plain.is_symlink() && !self.stays_inside(path)? {
            self.tree.notices.push(format!("left out `{name}`: its link points to nothing"));
            return Ok(());
        }
        let Ok(meta) = fs::metadata(path) else { return Ok(()) };
        let kind = meta.file_type();
        if kind.is_dir() {
            return self.subfolder(path, name, (meta.dev(), meta.ino()));
        }
        if kind.is_socket() || kind.is_fifo() || kind.is_block_device() || kind.is_char_device() {
            self.tree.notices.push(format!("left out `{name}`: not a file or folder"));
            return Ok(());
        }
        if rustix::fs::access(path, Access::READ_OK).is_err() {
            self.unreadable.push(path.to_owned());
        }
        self.tree.entries.push(Entry { name, kind: Kind::File, bytes: meta.len() });
        Ok(())
    }

    fn subfolder(&mut self, path: &Path, name: String, id: (u64, u64)) -> Result<(), Error> {
        if self.parents.contains(&id) {
            self.tree.notices.push(format!("left out `{name}`: its link leads back to a folder it is in"));
            return Ok(());
        }
        self.tree.entries.push(Entry { name: name.clone(), kind: Kind::Folder, bytes: 0 });
        self.enter(path, &name, id)
    }

    /// False for a link to nothing or to itself.
    fn stays_inside(&self, link: &Path) -> Result<bool, Error> {
        match fs::canonicalize(link) {
            Ok(target) if target.starts_with(&self.root) => Ok(true),
            Ok(target) => Err(Error::Leaves { link: link.to_owned(), target }),
            Err(_) => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::{fs::symlink, net::UnixListener};

    fn names(tree: &Tree) -> Vec<String> {
        tree.entries.iter().map(|entry| format!("{}:{}", entry.name, entry.bytes)).collect()
    }

    #[test]
    fn files_folders_and_inner_links_are_listed_and_the_rest_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/f"), "123").unwrap();
        symlink("../a/b", at("a/link")).unwrap();
        symlink("..", at("a/b/loop")).unwrap();
        symlink("self", at("self")).unwrap();
        symlink("missing", at("dangling")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        let tree = walk(folder.path()).unwrap();
        assert_eq!(names(&tree), ["a:0", "a/b:0", "a/b/f:3", "a/link:0", "a/link/f:3"]);
        let about: Vec<&str> = tree.notices.iter().filter_map(|notice| notice.split('`').nth(1)).collect();
        assert_eq!(about, ["a/b/loop", "a/link/loop", "dangling", "self", "socket"]);
    }

    #[test]
    fn a_very_deep_folder_is_walked() {
        let folder = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", 1900).collect();
        fs::create_dir_all(folder.path().join(&deep)).unwrap();
        assert_eq!(walk(folder.path()).unwrap().entries.len(), 1900);
    }

    #[test]
    fn a_link_out_of_the_folder_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", folder.path().join("secret")).unwrap();
        let message = walk(folder.path()).unwrap_err().to_string();
        assert!(message.contains("secret` points out of its folder to `/etc/passwd`"), "{message}");
    }

    #[test]
    fn a_single_file_is_a_tree_of_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f.txt"), "12").unwrap();
        assert_eq!(names(&walk(&folder.path().join("f.txt")).unwrap()), ["f.txt:2"]);
        assert!(walk(&folder.path().join("none")).is_err());
    }

    #[test]
    fn names_that_leave_their_folder_are_refused() {
        for bad in ["", "..", "../a", "a/../../b", "/etc/passwd", "a//b", "./a", "a\0b", "a/."] {
            assert!(matches!(below(Path::new("/x"), bad), Err(Error::BadName { .. })), "{bad:?}");
        }
        assert_eq!(below(Path::new("/x"), "a/..b/c d").unwrap(), Path::new("/x/a/..b/c d"));
    }
}
