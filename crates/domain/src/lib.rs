//! The nouns of Peregrine and their laws: names, times, resources, job states, and the files users write.
//!
//! Invariant: nothing here does IO, waits, reads a clock or draws a random number. A value of one of
//! these types is already true; text becomes a value only through a `parse` or a `check`.

pub mod access;
pub mod assignment;
pub mod calendar;
pub mod causes;
pub mod cluster;
pub mod curated;
pub mod gang;
pub mod job;
pub mod kept;
pub mod likeness;
pub mod machine;
pub mod mltable;
pub mod names;
pub mod parallel;
pub mod pipeline;
pub mod report;
pub mod resources;
pub mod search;
pub mod serving;
pub mod sharing;
pub mod sizes;
pub mod spec;
pub mod time;
pub mod tracking;
pub mod tunnel;

pub use access::Role;
pub use assignment::{Assignment, EnvironmentPlan, Part, Place, Plan, PlannedInput, PlannedOutput};
pub use job::{Illegal, Job, JobEvent, JobState, Outcome};
pub use names::{AttemptId, BadName, JobName, NodeId};
pub use parallel::Parallel;
pub use resources::{InstanceType, Resources};
pub use search::Search;
pub use serving::{Probe, Serving, ServingKind};
pub use time::Timestamp;
