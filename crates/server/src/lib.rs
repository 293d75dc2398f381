//! HTTP: the resource tree, the agents' routes, blobs, health and metrics.
//!
//! Every request is asked who it is and whether it may before a handler sees it; the answer to "which route" and
//! "who may" is the table in `api::routes`. Invariant: a handler does who, may they, do it, show it; it holds
//! no SQL and starts no work.

mod app;
mod auth;
mod calendar;
mod calls;
mod canonical;
pub mod clock;
mod guard;
mod http;
mod listen;
mod metrics;
mod patience;
mod problem;
mod resolve;
mod router;
mod routers;
mod tls;
mod tunnels;
mod webhooks;

pub use app::{App, Settings};
pub use auth::{Caller, JOIN_AGAIN, NOT_SHOWN, Who, cluster_token, join_token, make_token, node_key, node_request};
pub use http::assets::register_outputs;
pub use listen::{Kept, Listening, StartError, listen, serve};
pub use problem::Problem;
pub use routers::Routers;
pub use tls::{Certificates, write_bundle};
