//! Notes of blobs that their files cannot carry, and what the records say of the files beside them.

use crate::{Error, Tx, files::snapshots_in};
use std::collections::{BTreeMap, HashSet};

impl Tx<'_> {
    /// The notes of a container's blobs whose names lie between two, both included.
    pub fn blob_notes(
        &mut self,
        workspace: &str,
        container: &str,
        from: &str,
        to: &str,
    ) -> Result<BTreeMap<String, BTreeMap<String, String>>, Error> {
        let sql = "select path, body from blob_metadata where workspace = ?1 and container = ?2 and path >= ?3 and path <= ?4";
        let rows = self.fetch(sql, &[workspace.into(), container.into(), from.into(), to.into()])?;
        rows.into_iter().map(|mut row| Ok((row.text(0)?, row.json(1)?))).collect()
    }

    /// Forgets the note of a blob that is no more. `false` when there was none.
    pub fn delete_blob_note(&mut self, workspace: &str, container: &str, path: &str) -> Result<bool, Error> {
        let sql = "delete from blob_metadata where workspace = ?1 and container = ?2 and path = ?3";
        Ok(self.exec(sql, &[workspace.into(), container.into(), path.into()])? > 0)
    }

    /// Snapshots that an asset, a record or a job that has not ended refers to.
    pub fn referred_snapshots(&mut self) -> Result<HashSet<String>, Error> {
        let mut referred = HashSet::new();
        for sql in [
            "select body from assets where body like '%snap-%'",
            "select body from records where body like '%snap-%'",
            "select plan from jobs where phase in ('queued', 'placed', 'preparing', 'running', 'finalizing', 'stopping') \
             and plan like '%snap-%'",
        ] {
            for mut row in self.fetch(sql, &[])? {
                referred.extend(snapshots_in(&row.text(0)?));
            }
        }
        Ok(referred)
    }
}
