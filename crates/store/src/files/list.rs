//! Listing a container in order, page by page, without holding more than a page of it.
//!
//! Names come in the order of their bytes, folders by their name with a `/` behind it, which is the order of the whole
//! paths. A page begins behind the last name of the one before, so blobs that come and go in between shift nothing.
//! Invariant: memory follows the size of a page and the depth of the tree, never the number of blobs.

use super::{BadPath, Files, Found, Note, Spot, beneath};
use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Dir, FileType, statat},
};
use std::{
    collections::{BinaryHeap, VecDeque},
    rc::Rc,
};

/// So many names of one folder are held at a time.
const AT_ONCE: usize = 1024;

/// Which part of a container is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    pub prefix: &'a str,
    /// Names that go on behind this text are shown as one entry that ends with it.
    pub delimiter: Option<&'a str>,
    /// The last name of the page before; empty for the first page.
    pub after: &'a str,
    pub limit: usize,
}

/// One line of a listing.
#[derive(Debug, Clone)]
pub enum Entry {
    Blob(Found, Note),
    /// Names that share a beginning, up to and with the delimiter.
    Shared(String),
}

impl Entry {
    pub fn name(&self) -> &str {
        match self {
            Entry::Blob(found, _) => &found.path,
            Entry::Shared(name) => name,
        }
    }
}

impl Files {
    /// Files below a prefix, by path; at most `limit`, after `marker`.
    pub fn list(
        &self,
        workspace: &str,
        container: &str,
        prefix: &str,
        marker: &str,
        limit: usize,
    ) -> Result<Vec<Found>, BadPath> {
        let listing = Listing { prefix, delimiter: None, after: marker, limit };
        let mut walk = self.walk(workspace, container, &listing)?;
        Ok(std::iter::from_fn(|| walk.next()).filter_map(|step| step.found()).take(limit).collect())
    }

    /// One page, and whether there is more behind it.
    pub fn page(&self, workspace: &str, container: &str, wanted: &Listing<'_>) -> Result<(Vec<Entry>, bool), BadPath> {
        let mut walk = self.walk(workspace, container, wanted)?;
        let mut page: Vec<Entry> = Vec::new();
        while let Some(step) = walk.next() {
            let last = page.last().map_or(wanted.after, Entry::name);
            let Some(entry) = step.entry(wanted, last) else { continue };
            if page.len() == wanted.limit {
                return Ok((page, true));
            }
            page.push(entry);
        }
        Ok((page, false))
    }

    fn walk(&self, workspace: &str, container: &str, wanted: &Listing<'_>) -> Result<Walk, BadPath> {
        let folder = wanted.prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        // Also without a folder in the prefix, the names themselves must be sound.
        Spot::parse(workspace, container, if folder.is_empty() { "any" } else { folder })?;
        let mut walk = Walk {
            prefix: wanted.prefix.to_owned(),
            after: wanted.after.to_owned(),
            by_folder: wanted.delimiter == Some("/"),
            levels: Vec::new(),
        };
        if let Ok(opened) = beneath::folder(&self.container(workspace, container), folder) {
            let path = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            walk.levels.push(Level::new(opened, path));
        }
        Ok(walk)
    }
}

/// A walk through a tree in the order of paths.
struct Walk {
    prefix: String,
    after: String,
    /// Folders are steps themselves and not entered.
    by_folder: bool,
    levels: Vec<Level>,
}

/// A folder on the way, and the next of its names.
struct Level {
    opened: Rc<OwnedFd>,
    /// From the container, with a `/` behind it unless empty.
    path: String,
    ready: VecDeque<String>,
    last: Option<String>,
    done: bool,
}

/// What a walk comes by: a file, or a folder that is not entered.
struct Step {
    path: String,
    stat: Option<rustix::fs::Stat>,
    in_folder: Rc<OwnedFd>,
}

impl Walk {
    fn next(&mut self) -> Option<Step> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(name) = level.next_name(&self.prefix, &self.after, self.by_folder) else {
                self.levels.pop();
                continue;
            };
            let path = format!("{}{name}", level.path);
            let Some(folder) = name.strip_suffix('/') else {
                let Ok(stat) = statat(&level.opened, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
                return Some(Step { path, stat: Some(stat), in_folder: Rc::clone(&level.opened) });
            };
            let Ok(opened) = beneath::subfolder(&level.opened, folder) else { continue };
            if !self.by_folder {
                self.levels.push(Level::new(opened, path));
            } else if holds_a_file(&opened) {
                return Some(Step { path, stat: None, in_folder: Rc::new(opened) });
            }
        }
    }
}

impl Level {
    fn new(opened: OwnedFd, path: String) -> Level {
        Level { opened: Rc::new(opened), path, ready: VecDeque::new(), last: None, done: false }
    }

    fn next_name(&mut self, prefix: &str, after: &str, by_folder: bool) -> Option<String> {
        if self.ready.is_empty() && !self.done {
            self.fill(prefix, after, by_folder);
        }
        let name = self.ready.pop_front()?;
        self.last = Some(name.clone());
        Some(name)
    }

    /// Reads the folder once and keeps the next few names of those that matter.
    fn fill(&mut self, prefix: &str, after: &str, by_folder: bool) {
        let mut next: BinaryHeap<String> = BinaryHeap::new();
        self.done = true;
        for (name, folder) in names(&self.opened) {
            let name = if folder { name + "/" } else { name };
            let path = format!("{}{name}", self.path);
            let wanted = path.starts_with(prefix) || folder && prefix.starts_with(&path);
            let ahead = path.as_str() > after || folder && !by_folder && after.starts_with(&path);
            if !wanted || !ahead || self.last.as_ref().is_some_and(|last| name <= *last) {
                continue;
            }
            next.push(name);
            if next.len() > AT_ONCE {
                next.pop();
                self.done = false;
            }
        }
        self.ready = next.into_sorted_vec().into();
    }
}

impl Step {
    fn found(self) -> Option<Found> {
        let stat = self.stat?;
        let nanos = i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec);
        Some(Found::at(self.path, u64::try_from(stat.st_size).unwrap_or(0), u64::try_from(nanos).unwrap_or(0)))
    }

    /// The line it makes, unless `last` covers it.
    fn entry(self, wanted: &Listing<'_>, last: &str) -> Option<Entry> {
        let rest = self.path.get(wanted.prefix.len()..).unwrap_or_default();
        let shared = wanted.delimiter.filter(|delimiter| !delimiter.is_empty()).and_then(|delimiter| {
            let end = wanted.prefix.len() + rest.find(delimiter)? + delimiter.len();
            Some(self.path[..end].to_owned())
        });
        if let Some(shared) = shared {
            return (shared != last).then_some(Entry::Shared(shared));
        }
        let name = self.path.rsplit_once('/').map_or(self.path.as_str(), |(_, name)| name);
        let note = beneath::plain_file(&self.in_folder, name).and_then(|(file, _)| Note::read(&file));
        let note = note.unwrap_or_default();
        self.found().map(|found| Entry::Blob(found, note))
    }
}

/// Names of the files and folders in a folder. Links and names that are no text are nobody's blobs.
fn names(folder: &OwnedFd) -> impl Iterator<Item = (String, bool)> + '_ {
    let entries = Dir::read_from(folder).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let name = entry.file_name().to_str().ok()?.to_owned();
        let kind = match entry.file_type() {
            // Some disks do not say.
            FileType::Unknown => {
                FileType::from_raw_mode(statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?.st_mode)
            }
            kind => kind,
        };
        match kind {
            FileType::RegularFile => Some((name, false)),
            FileType::Directory if name != "." && name != ".." => Some((name, true)),
            _ => None,
        }
    })
}

fn holds_a_file(folder: &OwnedFd) -> bool {
    let mut below = Vec::new();
    for (name, is_folder) in names(folder) {
        if !is_folder {
            return true;
        }
        below.push(name);
    }
    below.iter().any(|name| beneath::subfolder(folder, name).is_ok_and(|inner| holds_a_file(&inner)))
}
