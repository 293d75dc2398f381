//! What crosses the wire: the route table, the resource bodies, and a client that speaks them.
//!
//! Foreign names (`computeId`, `ReadOnlyMount`, `AmlCompute`) live here and nowhere further in.
//! Invariant: what the client sends, the server reads with the functions beside it.

pub mod arm;
pub mod blob;
pub mod client;
#[macro_use]
pub mod routes;
pub mod mlflow;
pub mod openapi;
pub mod peer;

pub use client::{Client, ClientError, Connection};

/// What a request becomes that asks to be a stream of bytes both ways (`upgrade`).
pub const STREAM: &str = "peregrine-stream";
