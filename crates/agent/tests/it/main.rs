//! The agent against real processes, packages and object stores.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop there")]

mod data;
mod environment;
mod parallel;
mod pod;
mod serve;
mod servers;
