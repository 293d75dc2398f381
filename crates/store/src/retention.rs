//! Giving space back: what was deleted long ago goes from the database, then from the disk, then the database shrinks.
//!
//! Rows go first, with a note of their folders; a pass that is cut off anywhere is finished by the next one.

use crate::{Error, Purged, Store, files::ARTIFACT_CONTAINER};
use domain::Timestamp;

/// Pages given back in one transaction; others write in between.
const PAGES: i64 = 2000;

/// What a pass gave back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Freed {
    pub rows: Purged,
    /// Bytes of artifacts.
    pub file_bytes: u64,
    /// Bytes that the database file is smaller by.
    pub database_bytes: u64,
}

impl Store {
    /// Removes for good what was deleted before `before`, if that is given, and gives all space back that nothing uses.
    pub async fn free(&self, before: Option<Timestamp>) -> Result<Freed, Error> {
        let mut freed = Freed::default();
        let mut place = before.map(|_| crate::tables::Place::default());
        while let (Some(from), Some(before)) = (place, before) {
            let work = move |tx: &mut crate::Tx<'_>| {
                let mut purged = Purged::default();
                Ok((tx.purge_some(before, from, &mut purged)?, purged))
            };
            let (next, purged) = self.write(work).await?;
            freed.rows.add(purged);
            place = next;
        }
        freed.file_bytes = self.remove_leftovers().await?;
        freed.database_bytes = self.shrink().await?;
        Ok(freed)
    }

    async fn remove_leftovers(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        for (workspace, path) in self.read(|tx| tx.leftovers()).await? {
            let (files, at) = (self.files().clone(), (workspace.clone(), path.clone()));
            let remove = move || files.remove_folder(&at.0, ARTIFACT_CONTAINER, &at.1);
            bytes += tokio::task::spawn_blocking(remove).await.map_err(|_| Error::Closed)??;
            self.write(move |tx| tx.delete_leftover(&workspace, &path)).await?;
        }
        Ok(bytes)
    }

    async fn shrink(&self) -> Result<u64, Error> {
        let mut bytes = 0;
        loop {
            match self.look(|tx| tx.give_back(PAGES)).await? {
                0 => return Ok(bytes),
                more => bytes += more,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewRun, tables::Place};

    fn insert(tx: &mut crate::Tx<'_>) -> Result<i64, Error> {
        let experiment = tx.experiment_named("w", "e", Timestamp(1))?;
        tx.insert_run(&NewRun {
            workspace: "w",
            run_id: "gone",
            experiment,
            job_seq: None,
            name: "gone",
            user: "me",
            status: "FINISHED",
            started_at: Timestamp(1),
        })
    }

    #[tokio::test]
    async fn a_folder_whose_rows_went_before_a_crash_goes_at_the_next_pass() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        let folder = store.files().artifacts("w", "gone");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("f"), "12345").unwrap();
        let purge = store.write(|tx| {
            insert(tx)?;
            let row = tx.run("w", "gone")?.ok_or(Error::Conflict)?;
            tx.put_run(&crate::RunRow { deleted_at: Some(Timestamp(2)), ..row })?;
            tx.purge_some(Timestamp(3), Place::default(), &mut Purged::default()).map(drop)
        });
        purge.await.unwrap();
        drop(store);
        assert!(folder.exists(), "the server died before it came to the files");
        let next = Store::open(home.path()).unwrap();
        // Someone brings a run of that id in again: the folder is not to be taken from under it.
        let again = next.write(insert).await.unwrap();
        assert_eq!(next.free(None).await.unwrap().file_bytes, 0);
        assert!(folder.exists());
        next.write(move |tx| tx.purge_run(again)).await.unwrap();
        assert_eq!(next.free(None).await.unwrap().file_bytes, 5);
        assert!(!folder.exists());
        assert_eq!(next.free(None).await.unwrap().file_bytes, 0);
    }
}
