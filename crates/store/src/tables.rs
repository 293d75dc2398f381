//! One file a table: the statements over it, as methods of [`crate::Tx`].

mod assets;
mod events;
mod jobs;
mod nodes;
mod operations;
mod places;
mod records;

pub use assets::{AssetKey, AssetRow};
pub use events::EventRow;
pub use jobs::{InUse, JobFilter, JobRow, NewJob, QueuedJob};
pub use nodes::NodeRow;
pub use operations::OperationRow;
pub use places::{ComputeRow, DatastoreRow, WorkspaceRow};
pub use records::{RecordFilter, RecordKey, RecordRow};
