//! One file a table: the statements over it, as methods of [`crate::Tx`].

mod assets;
mod audit;
mod events;
mod jobs;
mod nodes;
mod places;
mod principals;

pub use assets::{AssetKey, AssetRow};
pub(crate) use audit::act_under_way;
pub use audit::{Act, AuditRow, acting};
pub use events::EventRow;
pub use jobs::{JobFilter, JobRow, NewJob, QueuedJob};
pub use nodes::NodeRow;
pub use places::{ComputeRow, DatastoreRow, WorkspaceRow};
pub use principals::PrincipalRow;
