//! One build for all who want it at once.
//!
//! Within this process the waiters of a failed build get its error instead of failing again one by one; across
//! processes the folder's lock keeps builders apart. Invariant: a waiter whose builder was abandoned builds itself.

use super::{
    Environments, Error, Log,
    build::{Built, Site},
    lock::Lock,
    request::Request,
};
use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

/// Builds under way in this process, by key. A slot holds the error of a failed build for those who waited.
#[derive(Debug, Default)]
pub(crate) struct Building(Mutex<HashMap<String, Slot>>);

type Slot = Arc<tokio::sync::Mutex<Option<Arc<Error>>>>;

impl Building {
    fn slot(&self, key: &str) -> Slot {
        let mut slots = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        slots.entry(key.to_owned()).or_default().clone()
    }

    /// Later callers start anew.
    fn close(&self, key: &str) {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).remove(key);
    }
}

impl Environments {
    /// The finished environment: found, waited for, or built.
    pub(crate) async fn shared(&self, request: &Request, log: &dyn Log) -> Result<Built, Error> {
        let key = request.key();
        let folder = self.root().join(&key);
        if let Some(built) = finished(&folder) {
            return Ok(built);
        }
        let slot = self.building().slot(&key);
        let wait = || log.line(&format!("waiting for the build of `{}` by another job", request.label));
        let mut outcome = match slot.try_lock() {
            Ok(free) => free,
            Err(_) => {
                wait();
                slot.lock().await
            }
        };
        if let Some(error) = &*outcome {
            return Err(Error::Shared(error.clone()));
        }
        if let Some(built) = finished(&folder) {
            return Ok(built);
        }
        let result = self.alone(request, &folder, wait, log).await;
        self.building().close(&key);
        result.map_err(|error| {
            let error = Arc::new(error);
            *outcome = Some(error.clone());
            Error::Shared(error)
        })
    }

    async fn alone(
        &self,
        request: &Request,
        folder: &Path,
        wait: impl FnOnce(),
        log: &dyn Log,
    ) -> Result<Built, Error> {
        let disk = |source| Error::Disk { path: folder.to_owned(), source };
        let lock = Lock::acquire(&folder.with_extension("lock"), wait).await.map_err(disk)?;
        if let Some(built) = finished(folder) {
            lock.forget();
            return Ok(built);
        }
        remove(folder).map_err(disk)?;
        let mut unfinished = Unfinished { folder: folder.to_owned(), lock: Some(lock) };
        fs::create_dir_all(folder).map_err(disk)?;
        let site = Site { folder, request, lock: unfinished.lock.as_ref().expect("the lock was just put there"), log };
        let built = self.build(&site).await?;
        mark(folder, &built).map_err(disk)?;
        unfinished.keep();
        Ok(built)
    }

    /// Removes what killed builds have left. Folders that somebody builds in are left alone.
    pub fn sweep(&self) {
        let Ok(entries) = self.root().read_dir() else { return };
        let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        for folder in folders.filter(|folder| finished(folder).is_none()) {
            if let Ok(Some(lock)) = Lock::try_acquire(&folder.with_extension("lock")) {
                drop(Unfinished { folder, lock: Some(lock) });
            }
        }
    }
}

/// A folder that is removed, and its lock with it, unless the build comes to its end.
struct Unfinished {
    folder: PathBuf,
    lock: Option<Lock>,
}

impl Unfinished {
    fn keep(&mut self) {
        if let Some(lock) = self.lock.take() {
            lock.forget();
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        if let Err(error) = remove(&self.folder) {
            // A step that is still dying may write once more; without the mark the folder is removed later.
            tracing::warn!(%error, "left `{}` for the next build to remove", self.folder.display());
        }
        lock.forget();
    }
}

fn finished(folder: &Path) -> Option<Built> {
    serde_json::from_slice(&fs::read(folder.join("ok")).ok()?).ok()
}

/// Written whole or not at all, since its presence is what counts.
fn mark(folder: &Path, built: &Built) -> io::Result<()> {
    let partial = folder.join("ok.partial");
    fs::write(&partial, serde_json::to_vec(built)?)?;
    fs::File::open(&partial)?.sync_all()?;
    fs::rename(&partial, folder.join("ok"))
}

fn remove(folder: &Path) -> io::Result<()> {
    for _ in 0..3 {
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            other => return other,
        }
    }
    fs::remove_dir_all(folder)
}
