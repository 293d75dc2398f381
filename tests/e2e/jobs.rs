//! Good jobs: what they are given, what they leave, how they are stopped, and how people look at them.

mod cancel;
mod data;
mod queue;
mod records;
mod runtime;
mod servers;
