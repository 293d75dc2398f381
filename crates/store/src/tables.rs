//! One file a table: the statements over it, as methods of [`crate::Tx`].

mod assets;
mod audit;
mod blobs;
mod events;
mod job_pages;
mod jobs;
mod nodes;
mod operations;
mod places;
mod principals;
mod records;

pub use assets::{AssetKey, AssetRow, VersionFilter};
pub(crate) use audit::act_under_way;
pub use audit::{Act, AuditRow, acting};
pub use events::EventRow;
pub use job_pages::{JobFilter, JobPage};
pub use jobs::{InUse, JobRow, NewJob, QueuedJob};
pub use nodes::NodeRow;
pub use operations::OperationRow;
pub use places::{ComputeRow, DatastoreRow, WorkspaceRow};
pub use principals::PrincipalRow;
pub use records::{RecordFilter, RecordKey, RecordRow};
