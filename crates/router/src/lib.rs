//! Inference: a stable address before every model.
//!
//! `serve` is one connection, `prepare` decides about a request, `admit` hands out slots, `forward` moves bytes. [`Routes`] is the
//! table that all of it looks things up in: loaded without a lock, swapped whole. Invariants: nothing on the way of a request
//! that need not wait for a slot takes a lock, and nothing calls anyone but a replica or grows with the length of a body; a
//! request is sent again only while no byte of it has reached a replica.

mod access_log;
mod admin;
mod admit;
mod answer;
mod auth;
mod buffers;
mod chance;
mod counts;
mod file;
mod forward;
mod http;
mod http2;
mod idle;
mod line;
mod metrics;
mod pool;
mod prepare;
mod run;
mod serve;
mod sockets;
mod table;
mod ticket;
mod timer;
mod tls;
mod trace;
mod worker;

pub use auth::token::mint;
pub use file::RoutesFile;
pub use run::{Limits, Running, Settings, StartError, TlsFiles, bind_all, start, start_on};
pub use table::Routes;
pub use tls::TlsError;
