//! One file a table: the statements over it, as methods of [`crate::Tx`].

mod assets;
mod audit;
mod blobs;
mod events;
mod experiments;
mod job_labels;
mod job_pages;
mod jobs;
mod logged_models;
mod nodes;
mod operations;
mod places;
mod points;
mod principals;
mod records;
mod run_search;
mod runs;

pub use assets::{AssetKey, AssetRow, VersionFilter};
pub(crate) use audit::act_under_way;
pub use audit::{Act, AuditRow, acting};
pub use events::EventRow;
pub use experiments::{DEFAULT_EXPERIMENT, ExperimentRow};
pub use job_pages::{JobFilter, JobPage};
pub use jobs::{InUse, JobRow, NewJob, QueuedJob};
pub use logged_models::{LoggedModelRow, ModelPoint, RunModel};
pub use nodes::NodeRow;
pub use operations::OperationRow;
pub use places::{ComputeRow, DatastoreRow, WorkspaceRow};
pub use points::{Latest, Since};
pub use principals::PrincipalRow;
pub use records::{RecordFilter, RecordKey, RecordRow};
pub use run_search::RunQuery;
pub use runs::{NewRun, RunInput, RunRow, Texts};
