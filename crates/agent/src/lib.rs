//! agent
pub mod cgroup;
pub mod gpu;
pub mod sample;
pub mod container;
pub mod environment;
pub mod data;
