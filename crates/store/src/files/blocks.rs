//! Uploads in blocks: parts that come in any order, many at a time, and are listed at the end.
//!
//! All blocks of an upload lie in one file. A block whose name says where it belongs (most clients number them, by index or
//! by offset) is written to that place at once, so that a list in that order is committed by a rename; any other list is
//! copied together. Invariants: no two blocks share bytes of the file; a block counts only when it is whole; nobody
//! writes to a file that was put in place. Blocks outlive the server, but not the machine: they are not synced.

mod index;
mod place;

use super::{
    Draft, Files, Spot,
    draft::unique,
    full_or,
    usage::{Room, Usage},
};
use crate::Error;
use ring::digest::{SHA256, digest};
use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// So many bytes may wait in memory for the disk before a writer sees to it that they go there.
const SYNC_EVERY: u64 = 64 << 20;

/// Uploads that anyone wrote to since the server started.
#[derive(Debug)]
pub(super) struct Uploads {
    folder: PathBuf,
    open: Mutex<HashMap<String, Arc<Upload>>>,
}

#[derive(Debug)]
struct Upload {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    blocks: BTreeMap<String, Slot>,
    /// Every stretch of the file that is written or being written: where it begins, and how long it is.
    taken: BTreeMap<u64, u64>,
    /// The largest block so far; what an index counts in.
    step: u64,
    writers: usize,
    unsynced: u64,
    /// It was committed or given up; no block comes to it any more.
    over: bool,
    room: Room,
}

/// Where a block lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    at: u64,
    bytes: u64,
}

/// A block being written; its place is free again when it is dropped unfinished.
#[derive(Debug)]
pub struct Block {
    upload: Arc<Upload>,
    id: String,
    slot: Slot,
    file: fs::File,
    room: Option<Room>,
}

/// A block that is whole and not committed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    pub id: String,
    pub bytes: u64,
}

/// An upload that was ended by a list of its blocks.
struct Ended {
    slots: Vec<Slot>,
    /// The file they lie in.
    body: Draft,
    /// Nobody writes to that file any more.
    alone: bool,
}

/// A list names a block that never came.
#[derive(Debug, thiserror::Error)]
#[error("block `{0}` is not among those that were uploaded")]
pub struct UnknownBlock(pub String);

impl Uploads {
    pub(super) fn under(folder: &Path) -> Uploads {
        Uploads { folder: folder.to_owned(), open: Mutex::default() }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Upload>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The upload to a spot; one from before the last start is found again by its folder.
    fn of(&self, spot: &Spot, usage: &Arc<Usage>) -> io::Result<Arc<Upload>> {
        let key = key(spot);
        // Held throughout: folders come and go only with their entry.
        let mut all = self.all();
        if let Some(upload) = all.get(&key) {
            return Ok(Arc::clone(upload));
        }
        let folder = self.folder.join(&key);
        fs::create_dir_all(&folder)?;
        let blocks = index::read(&folder);
        let state = State {
            taken: blocks.values().filter(|slot| slot.bytes > 0).map(|slot| (slot.at, slot.bytes)).collect(),
            step: blocks.values().map(|slot| slot.bytes).max().unwrap_or(0),
            blocks,
            writers: 0,
            unsynced: 0,
            over: false,
            room: Room::nothing(usage, spot.workspace()),
        };
        let upload = Arc::new(Upload { folder, state: Mutex::new(state) });
        all.insert(key, Arc::clone(&upload));
        Ok(upload)
    }

    /// Forgets an upload and removes its folder. `false` while someone writes to it.
    pub(super) fn give_up(&self, key: &str) -> bool {
        let mut all = self.all();
        if let Some(upload) = all.get(key) {
            let mut state = upload.state();
            if state.writers > 0 {
                return false;
            }
            state.over = true;
        }
        all.remove(key);
        let _ = fs::remove_dir_all(self.folder.join(key));
        true
    }

    /// Ends an upload with a list of its blocks: where they lie, the file they lie in, and whether nobody writes to it.
    fn end(&self, spot: &Spot, usage: &Arc<Usage>, ids: &[String]) -> io::Result<Result<Ended, UnknownBlock>> {
        let upload = self.of(spot, usage)?;
        let mut all = self.all();
        let mut state = upload.state();
        let mut slots = Vec::with_capacity(ids.len());
        for id in ids {
            match state.blocks.get(id) {
                Some(slot) if !state.over => slots.push(*slot),
                _ => return Ok(Err(UnknownBlock(id.clone()))),
            }
        }
        let path = self.folder.join(unique());
        fs::rename(upload.folder.join("body"), &path)?;
        state.over = true;
        all.remove(&key(spot));
        let _ = fs::remove_dir_all(&upload.folder);
        let file = fs::File::options().read(true).write(true).open(&path)?;
        Ok(Ok(Ended { slots, body: Draft::adopt(path, file), alone: state.writers == 0 }))
    }
}

impl Upload {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// A place for a block of so many bytes.
    pub fn stage(&self, spot: &Spot, id: &str, bytes: u64, room: Room) -> Result<Block, Error> {
        let fail = |source| full_or(source, "write a block of", self.uploads.folder.clone());
        loop {
            let upload = self.uploads.of(spot, &self.usage).map_err(fail)?;
            let mut state = upload.state();
            if state.over {
                continue;
            }
            let body = upload.folder.join("body");
            let opened = fs::File::options().read(true).write(true).create(true).truncate(false).open(body);
            let file = opened.map_err(fail)?;
            let slot = Slot { at: place::place(&state, id, bytes), bytes };
            if bytes > 0 {
                state.taken.insert(slot.at, bytes);
            }
            state.step = state.step.max(bytes);
            state.writers += 1;
            drop(state);
            return Ok(Block { upload, id: id.to_owned(), slot, file, room: Some(room) });
        }
    }

    /// How many blocks wait to be committed, and which, by name.
    pub fn staged(&self, spot: &Spot) -> Vec<Staged> {
        let Some(upload) = self.uploads.all().get(&key(spot)).cloned() else { return Vec::new() };
        let state = upload.state();
        state.blocks.iter().map(|(id, slot)| Staged { id: id.clone(), bytes: slot.bytes }).collect()
    }

    /// The blocks of a list, in its order, as one draft. All other blocks of the upload are forgotten.
    pub fn assemble(&self, spot: &Spot, ids: &[String]) -> Result<Result<Draft, UnknownBlock>, Error> {
        let fail = |source| full_or(source, "put together", self.uploads.folder.clone());
        if ids.is_empty() {
            self.uploads.give_up(&key(spot));
            return self.draft().map(Ok).map_err(fail);
        }
        let Ended { slots, body, alone } = match self.uploads.end(spot, &self.usage, ids).map_err(fail)? {
            Ok(ended) => ended,
            Err(unknown) => return Ok(Err(unknown)),
        };
        if let Some(bytes) = place::in_order(&slots).filter(|_| alone) {
            body.file().set_len(bytes).map_err(fail)?;
            return Ok(Ok(body));
        }
        let copy = self.draft().map_err(fail)?;
        place::copy(body.file(), &slots, copy.file()).map_err(fail)?;
        Ok(Ok(copy))
    }
}

impl Block {
    pub fn file(&self) -> &fs::File {
        &self.file
    }

    /// Where in the file its first byte goes.
    pub fn offset(&self) -> u64 {
        self.slot.at
    }

    /// The block is whole. `false` when its upload was committed without it.
    pub fn finish(mut self) -> Result<bool, Error> {
        let upload = Arc::clone(&self.upload);
        let fail = |source| full_or(source, "keep a block of", upload.folder.clone());
        let mut state = upload.state();
        if state.over {
            return Ok(false);
        }
        index::add(&upload.folder, &self.id, self.slot).map_err(fail)?;
        let old = state.blocks.insert(self.id.clone(), self.slot);
        if let Some(old) = old.filter(|old| old.bytes > 0) {
            state.taken.remove(&old.at);
        }
        if let Some(room) = self.room.take() {
            state.room.join(room);
        }
        state.unsynced += self.slot.bytes;
        let flush = state.unsynced >= SYNC_EVERY;
        if flush {
            state.unsynced = 0;
        }
        // From here on its place is the block's, not the writer's.
        self.slot.bytes = 0;
        drop(state);
        if flush {
            self.file.sync_data().map_err(fail)?;
        }
        Ok(true)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let mut state = self.upload.state();
        state.writers -= 1;
        if self.slot.bytes > 0 {
            state.taken.remove(&self.slot.at);
        }
    }
}

fn key(spot: &Spot) -> String {
    let text = format!("{}\0{}\0{}", spot.workspace(), spot.container(), spot.path());
    crate::secrets::hex(digest(&SHA256, text.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests;
