//! Decisions: a world goes in, decisions come out.
//!
//! Invariants: nothing here does IO or reads a clock; the same world gives the same decisions, so a pass may be
//! repeated or lost without harm; every decision and every wait carries its *because*.

pub mod nodes;
pub mod pipeline;
mod place;
pub mod preempt;
pub mod rollout;
pub mod scale;
pub mod spill;
pub mod sweep;

pub use place::{Decision, Handed, Node, Share, Waiting, World, place, turn};
