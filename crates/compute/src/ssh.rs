//! A machine that is reached by SSH, with nothing of ours installed on it.
//!
//! OpenSSH's own client carries everything: one connection per machine stays open, commands go through it, and a port on the
//! machine leads back to the server, so that agents there need no network but this. Invariants: no host is believed that was
//! not vouched for; a secret is on disk only while a connection is being made; what runs there outlives the connection.

mod connection;
mod host;
pub(crate) mod scripts;

pub(crate) use connection::Connection;
pub use connection::Login;
pub use host::Host;
pub(crate) use host::{amounts, place, reach};
