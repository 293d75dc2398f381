//! Drivers: how each kind of compute target is made to act.
//!
//! What runs next to the user's process is always the same agent; a driver only sees to it that the agent is
//! there. A machine reached by SSH is a [`Site`]: the server speaks with its steward as it does with the operator of a
//! Kubernetes cluster. Invariant: every act may be repeated without harm.

mod local;
mod provider;
mod shell;
mod slurm;
mod ssh;
mod steward;

pub use local::LocalDriver;
pub use provider::{Commands, Found, Health, Listing, Machines, Order, Provider, Tier};
pub use slurm::{Shape, Slurm};
pub use ssh::{Host, Login};
pub use steward::{Desk, Held, Look, Part, PartState, Site, Started, Trouble, keep};

use std::{io, path::PathBuf};

/// Makes one compute target act.
pub trait Driver: Send + Sync {
    /// The target's name, as jobs write it.
    fn target(&self) -> &str;

    /// Sees to it that the target's agent runs; called again and again.
    fn tend(&self) -> Result<(), LaunchError>;
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("cannot start the agent `{}`", .program.display())]
    Start {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot look at `{}`", .path.display())]
    Look {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}
