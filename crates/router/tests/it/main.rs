//! The router over real sockets, before replicas that do as they are told.

mod codes;
mod drain;
mod features;
mod http2;
mod odd;
mod peers;
mod streams;
mod tls;
mod world;
