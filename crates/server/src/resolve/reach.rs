//! How far addresses reach: a job's words name files, and only some of them are its workspace's to use.
//!
//! Invariants: nothing of another workspace is found, under whatever address; of the server's home nothing is found but
//! the blobs of the job's own workspace and of registries; links are followed before it is judged.

use super::Lookup;
use crate::{
    app::is_here,
    http::blobs::address::{Account, Address},
};
use api::arm::AssetRef;
use domain::Place;
use std::path::{Component, Path, PathBuf};

impl Lookup<'_, '_> {
    /// The place of a blob's address: `None` if it is no such address, an inner `None` after a mistake was noted.
    #[expect(clippy::option_option, reason = "an address that is not ours is another thing than one that is refused")]
    pub(super) fn blob(&mut self, key: &str, uri: &str) -> Result<Option<Option<Place>>, store::Error> {
        let Some(address) = Address::parse(self.app, uri) else { return Ok(None) };
        let owner = match &address.account {
            Account::Named(name) if name.starts_with('@') && !self.to_share => Some(name.clone()),
            Account::Named(name) if is_here(self.workspace, Some(name)) => Some(self.workspace.name.clone()),
            Account::Id(id) if is_here(self.workspace, Some(id)) => Some(self.workspace.name.clone()),
            Account::Named(name) => {
                self.foreign(key, uri, name);
                None
            }
            Account::Id(_) => {
                self.foreign(key, uri, &address.container);
                None
            }
        };
        let Some(owner) = owner else { return Ok(Some(None)) };
        match address.file(self.app, &owner) {
            Ok(path) => Ok(Some(Some(Place::Folder { path }))),
            Err(bad) => {
                self.mistake(key, bad.to_string(), "correct the address");
                Ok(Some(None))
            }
        }
    }

    /// Whether a reference names another workspace, which is a mistake.
    pub(super) fn strays(&mut self, key: &str, shown: &str, reference: &AssetRef) -> bool {
        match reference {
            AssetRef::Here { workspace, .. } => self.leads_away(key, shown, workspace.as_deref()),
            AssetRef::Registry { .. } => false,
        }
    }

    /// Whether a workspace that an address names is another one, which is a mistake.
    pub(super) fn leads_away(&mut self, key: &str, shown: &str, named: Option<&str>) -> bool {
        let away = named.filter(|_| !is_here(self.workspace, named));
        if let Some(other) = away {
            self.foreign(key, shown, other);
        }
        away.is_some()
    }

    /// Notes that something is another's.
    fn foreign(&mut self, key: &str, shown: &str, owner: &str) {
        let message =
            format!("`{shown}` lies in `{owner}`, which cannot be used from workspace `{}`", self.workspace.name);
        let fix = "use data of the job's own workspace, or share the asset in a registry";
        self.mistake(key, message, fix);
    }

    /// A place, if it is within reach; `None` after a mistake was noted, now or before.
    pub(super) fn reached(&mut self, key: &str, shown: &str, place: Option<Place>) -> Option<Place> {
        let place = place?;
        if let Place::Folder { path } = &place
            && !self.reaches(path)
        {
            let message =
                format!("`{shown}` leads to the server's own files, or to no certain place, and cannot be used");
            self.mistake(
                key,
                message,
                "use a datastore path of the workspace, or a whole path outside the server's home",
            );
            return None;
        }
        Some(place)
    }

    fn reaches(&self, path: &Path) -> bool {
        let Some(path) = real(path) else { return false };
        let [home, blobs] = [self.app.store.home(), self.app.files.root()].map(|own| real(own).unwrap_or(own.into()));
        if let Ok(inside) = path.strip_prefix(&blobs) {
            let owner = inside.components().next().and_then(|part| part.as_os_str().to_str()).unwrap_or_default();
            return owner == self.workspace.name || (owner.starts_with('@') && !self.to_share);
        }
        // Neither in the home nor around it.
        !path.starts_with(&home) && !home.starts_with(&path) && !blobs.starts_with(&path)
    }
}

/// Where a path leads, with links followed as far as it exists; `None` if what does not exist leads back again.
fn real(path: &Path) -> Option<PathBuf> {
    let (head, real) = path.ancestors().find_map(|head| Some((head, head.canonicalize().ok()?)))?;
    let tail = path.strip_prefix(head).ok()?;
    let plain = tail.components().all(|part| matches!(part, Component::Normal(_)));
    (plain && path.is_absolute()).then(|| real.join(tail))
}
