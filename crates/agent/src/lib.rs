//! On the node: takes an assignment, stages it, runs it, streams its logs and reports what became of it.
//!
//! Two processes: a small [`keeper`] that is the parent of everything, and the agent proper ([`run`], or [`pod::run`] in a
//! container of one attempt), which may die at any moment and go on where it was. Invariants: an attempt never has two lives; nothing the agent has accepted
//! depends on the server being there.

mod attempt;
pub mod cgroup;
pub mod container;
mod context;
pub mod data;
pub mod doors;
pub mod environment;
mod folders;
pub mod gpu;
mod journal;
pub mod keeper;
pub mod outpost;
pub mod pod;
mod report;
mod run;
pub mod sample;
pub mod server;
mod supervisor;
mod tasks;

pub use context::{Settings, facts};
pub use run::run;
