//! What crosses the wire: the route table, the resource bodies, and a client that speaks them.
//!
//! Foreign names (`computeId`, `ReadOnlyMount`, `AmlCompute`) live here and nowhere further in.
//! Invariant: what the client sends, the server reads with the functions beside it.

pub mod arm;
pub mod blob;
pub mod client;
pub mod openapi;
pub mod routes;

pub use client::{Client, ClientError, Connection};
