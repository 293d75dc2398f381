//! agent
pub mod cgroup;
pub mod gpu;
pub mod sample;
