//! The router over real sockets, before replicas that do as they are told.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may as well stop where it stands")]
#![expect(clippy::print_stdout, reason = "what is skipped is said aloud")]

mod codes;
mod drain;
mod features;
mod http2;
mod odd;
mod peers;
mod streams;
mod tls;
mod world;
