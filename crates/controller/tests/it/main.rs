//! The loops against a real store.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may as well stop where it stands")]

mod front;
mod sim;
mod upkeep;
