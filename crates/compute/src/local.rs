//! This machine as a compute target, or as a node: its agent is a process apart, under a keeper.
//!
//! The keeper holds a lock for as long as it lives, so whether one runs is never a guess, and a server that
//! restarts finds the keeper, the agent and the jobs of its predecessor where they were.

use crate::{Driver, LaunchError};
use rustix::fs::{FlockOperation, flock};
use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Mutex,
};

/// Starts `peregrine agent keep` where none runs.
pub struct LocalDriver {
    program: PathBuf,
    home: PathBuf,
    /// The keeper this process started, if it did; reaped when it ends.
    child: Mutex<Option<Child>>,
}

/// The target's name.
pub(crate) const LOCAL: &str = "local";

impl LocalDriver {
    pub fn new(program: PathBuf, home: PathBuf) -> LocalDriver {
        LocalDriver { program, home, child: Mutex::new(None) }
    }

    /// Whether a keeper runs, whoever started it.
    pub fn is_kept(&self) -> bool {
        let child = self.child.lock().expect("nothing panics while it holds the keeper").as_mut().map(Child::try_wait);
        match child {
            Some(Ok(None)) => true,
            _ => fs::File::create(self.lock())
                .is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err()),
        }
    }

    fn lock(&self) -> PathBuf {
        self.home.join("agent").join("keeper.lock")
    }
}

impl Driver for LocalDriver {
    fn target(&self) -> &str {
        LOCAL
    }

    fn tend(&self) -> Result<(), LaunchError> {
        let folder = self.home.join("agent");
        let look = |source| LaunchError::Look { path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(look)?;
        let mut child = self.child.lock().expect("nothing panics while it holds the keeper");
        if let Some(running) = child.as_mut() {
            match running.try_wait() {
                Ok(None) => return Ok(()),
                _ => *child = None,
            }
        }
        let lock = fs::File::create(self.lock()).map_err(look)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        drop(lock);
        let log = fs::File::options().create(true).append(true).open(folder.join("keeper.log")).map_err(look)?;
        let started = Command::new(&self.program)
            .args(["agent", "keep", "--home"])
            .arg(&self.home)
            // The password of the server's database may be in it.
            .env_remove("PEREGRINE_STORE_URL")
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|source| LaunchError::Start { program: self.program.clone(), source })?;
        *child = Some(started);
        Ok(())
    }
}
