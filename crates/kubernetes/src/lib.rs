//! All that knows a Pod: the resources we define, what the extension consists of, and the operator.
//!
//! The operator runs inside the cluster and dials out to the server; the server never reaches into a cluster. What the
//! operator must remember is in the cluster itself, as labels on what it made. Invariants: nothing outside this crate knows
//! a Kubernetes type; every act may be repeated.

pub mod certificate;
pub mod connect;
pub mod health;
pub mod install;
pub mod instance_type;
pub mod manifests;
pub mod names;
pub mod operator;
pub mod provider;
pub mod quantity;
pub mod reservation;
pub mod settings;
