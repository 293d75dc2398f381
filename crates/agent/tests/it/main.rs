//! The agent against real processes, packages and object stores.

mod environment;
