//! One builder per folder, across tasks, processes and restarts.
//!
//! The lock is the kernel's, on a file beside the folder. A build step inherits it as standard input, so a step that
//! outlives a killed agent still keeps others out. Invariant: whoever holds the lock holds it on the file that now
//! bears the name, so the last holder may remove the file.

use std::{
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

const RETRY: Duration = Duration::from_millis(50);

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits for the lock; `on_wait` is called once if somebody else has it.
    pub(crate) async fn acquire(path: &Path, on_wait: impl FnOnce()) -> io::Result<Lock> {
        let mut on_wait = Some(on_wait);
        loop {
            if let Some(lock) = Lock::try_acquire(path)? {
                return Ok(lock);
            }
            if let Some(tell) = on_wait.take() {
                tell();
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// `None` if somebody else has it.
    pub(crate) fn try_acquire(path: &Path) -> io::Result<Option<Lock>> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Its last holder may have removed the file between our opening and our locking.
        let same = fs::metadata(path).is_ok_and(|now| file.metadata().is_ok_and(|ours| ours.ino() == now.ino()));
        Ok(same.then(|| Lock { file, path: path.to_owned() }))
    }

    /// The lock as a child's empty standard input.
    pub(crate) fn as_stdin(&self) -> io::Result<Stdio> {
        Ok(Stdio::from(self.file.try_clone()?))
    }

    /// Lets go and leaves no file behind.
    pub(crate) fn forget(self) {
        let _gone_already = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[tokio::test]
    async fn a_second_holder_waits_and_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/key.lock");
        let first = Lock::acquire(&path, || panic!("nobody has it")).await.unwrap();
        assert!(Lock::try_acquire(&path).unwrap().is_none());
        let mut told = 0;
        let second = Lock::acquire(&path, || told += 1);
        let (second, ()) = tokio::join!(second, async {
            tokio::task::yield_now().await;
            first.forget();
        });
        second.unwrap().forget();
        assert!(told == 1 && !path.exists());
    }

    #[tokio::test]
    async fn a_child_keeps_the_lock_of_a_holder_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.lock");
        let lock = Lock::try_acquire(&path).unwrap().unwrap();
        let mut child = Command::new("sleep").arg("600").stdin(lock.as_stdin().unwrap()).spawn().unwrap();
        drop(lock);
        assert!(Lock::try_acquire(&path).unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        // Other tests fork at any moment, and their children have the file open until they become a program.
        Lock::acquire(&path, || {}).await.unwrap();
    }
}
