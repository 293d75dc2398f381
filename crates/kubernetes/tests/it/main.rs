//! The operator on a real control plane with fake nodes, talking to a stand-in of the server.
//!
//! An operator sees every gang of its cluster, so these tests take turns; claims about single gangs are played side by
//! side under one operator (`beside`).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may as well stop where it stands")]
#![expect(clippy::print_stdout, reason = "a storm tells what it was like")]
#![expect(clippy::disallowed_methods, reason = "these tests watch a real cluster by the real clock")]

mod beside;
#[path = "../../../../tests/e2e/cluster.rs"]
mod cluster;
mod faults;
mod gangs;
mod outages;
mod refusals;
mod server;
#[path = "../../../../tests/e2e/skip.rs"]
mod skip;
mod stage;
mod storm;
