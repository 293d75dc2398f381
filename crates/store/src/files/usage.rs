//! How much the stores of a workspace hold, for those that may hold only so much.
//!
//! The sum is taken once by walking, then kept by adding and subtracting; jobs write to stores directly, so it is taken
//! anew now and then. Invariant: what is being written counts from the moment it was let in.

use super::Files;
use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// What the stores of each workspace hold; only those that someone asked about.
#[derive(Debug, Default)]
pub(super) struct Usage(Mutex<HashMap<String, Held>>);

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    stored: u64,
    /// Let in, not yet stored or given up.
    coming: u64,
}

/// The workspace's stores may not hold this much more.
#[derive(Debug, thiserror::Error)]
#[error("the stores of workspace `{workspace}` hold {held} of {limit} bytes, so {asked} more do not fit")]
pub struct NoRoom {
    pub workspace: String,
    pub held: u64,
    pub limit: u64,
    pub asked: u64,
}

/// Bytes that were let in; given back when dropped.
#[derive(Debug)]
pub struct Room {
    usage: Arc<Usage>,
    workspace: String,
    bytes: u64,
    limit: u64,
}

impl Files {
    /// Room for `bytes` more in the stores of a workspace that may hold `limit`; 0 is no limit. May walk the stores.
    pub fn room(&self, workspace: &str, bytes: u64, limit: u64) -> Result<Room, NoRoom> {
        let mut room = Room { usage: Arc::clone(&self.usage), workspace: workspace.to_owned(), bytes: 0, limit };
        if limit > 0 && !self.usage.all().contains_key(workspace) {
            self.recount(workspace);
        }
        room.grow(bytes)?;
        Ok(room)
    }

    /// Takes the sum of a workspace anew.
    fn recount(&self, workspace: &str) {
        let stored = bytes_below(&self.root.join(workspace));
        self.usage.all().entry(workspace.to_owned()).or_default().stored = stored;
    }

    /// Takes every sum anew that anyone asked for.
    pub fn recount_all(&self) {
        let known: Vec<String> = self.usage.all().keys().cloned().collect();
        known.iter().for_each(|workspace| self.recount(workspace));
    }
}

impl Usage {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stored(&self, workspace: &str, bytes: u64, instead_of: u64) {
        if let Some(held) = self.all().get_mut(workspace) {
            held.stored = held.stored.saturating_add(bytes).saturating_sub(instead_of);
        }
    }

    pub(super) fn freed(&self, workspace: &str, bytes: u64) {
        self.stored(workspace, 0, bytes);
    }
}

impl Room {
    /// Lets `bytes` more in.
    pub fn grow(&mut self, bytes: u64) -> Result<(), NoRoom> {
        if self.limit == 0 {
            return Ok(());
        }
        let mut all = self.usage.all();
        let held = all.entry(self.workspace.clone()).or_default();
        let now = held.stored.saturating_add(held.coming);
        if now.saturating_add(bytes) > self.limit {
            return Err(NoRoom { workspace: self.workspace.clone(), held: now, limit: self.limit, asked: bytes });
        }
        held.coming += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// How much was let in.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes over what another let in.
    pub(super) fn join(&mut self, mut other: Room) {
        self.limit = other.limit;
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub(super) fn nothing(usage: &Arc<Usage>, workspace: &str) -> Room {
        Room { usage: Arc::clone(usage), workspace: workspace.to_owned(), bytes: 0, limit: 0 }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.bytes > 0
            && let Some(held) = self.usage.all().get_mut(&self.workspace)
        {
            held.coming = held.coming.saturating_sub(self.bytes);
        }
    }
}

pub(super) fn bytes_below(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().filter_map(|entry| {
        let meta = entry.metadata().ok()?;
        Some(if meta.is_dir() { bytes_below(&entry.path()) } else { meta.len() })
    });
    sizes.sum()
}
