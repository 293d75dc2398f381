//! The real binary, used as its users use it: real server, agent and job processes, one fresh home per test.
//!
//! `PEREGRINE_BIN` names the binary to test; without it, the one cargo has just built.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may as well stop where it stands")]
#![expect(clippy::disallowed_methods, reason = "these tests watch real processes by the real clock")]

mod certificates;
mod cluster;
mod containers;
mod corpus;
mod distributed;
mod environments;
mod extension;
mod faults;
mod from_zero;
mod harness;
mod import;
mod jobs;
mod kill;
mod kubernetes;
mod managed;
mod nearby;
mod network;
mod openapi;
mod parallel;
mod pipelines;
mod pod;
mod postgres;
mod records;
mod sdk;
mod services;
mod serving;
mod sharing;
mod skip;
mod slurm;
mod ssh;
mod test_cluster;
mod tracking;
