//! One file a table: the statements over it, as methods of [`crate::Tx`].

mod assets;
mod blobs;
mod events;
mod jobs;
mod nodes;
mod places;

pub use assets::{AssetKey, AssetRow};
pub use events::EventRow;
pub use jobs::{JobFilter, JobRow, NewJob, QueuedJob};
pub use nodes::NodeRow;
pub use places::{ComputeRow, DatastoreRow, WorkspaceRow};
