//! A node as the first process of a container: another that is the node, started again if it is killed.
//!
//! What runs on a node does not depend on the process that speaks for it, but everything in a container ends with its first
//! process. So that one does nothing that could fail. It has no use for the signal that asks a container to end, and the kernel
//! spares the first process that does not want it: the server hears of it too, and has the node leave in good order.
//! Invariant: whoever ends as an orphan in the container is buried.

use crate::failure::{Done, Exit, Failure};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};
use std::{
    process::{Child, Command, ExitCode},
    thread::sleep,
    time::Duration,
};
use tokio::time::Instant;

/// A node that is killed again and again is given up.
const MOST: u32 = 5;
/// After this long it is no longer the same trouble.
const LIVED: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(500);

/// Runs a node to its end, and exits as it did.
pub(super) fn keep() -> Done<ExitCode> {
    let program =
        std::env::current_exe().map_err(|error| Failure::file("cannot find this program's own file", &error))?;
    let mut killed = 0;
    loop {
        let started = Command::new(&program).args(["agent", "node"]).spawn();
        let begun = Instant::now();
        let node = started.map_err(|error| Failure::file("cannot start the node", &error))?;
        match end_of(&node).map_err(|error| Failure::file("cannot wait for the node", &error))?.exit_status() {
            Some(code) => return Ok(ExitCode::from(u8::try_from(code).unwrap_or(Exit::Ours as u8))),
            None if killed >= MOST => {
                let why = format!("it was killed {killed} times");
                return Err(Failure::new(Exit::Ours, "the node does not live").because(why));
            }
            None => killed = if begun.elapsed() < LIVED { killed + 1 } else { 1 },
        }
        sleep(AGAIN);
    }
}

/// Buries everybody until it is the node's turn.
fn end_of(node: &Child) -> std::io::Result<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == Pid::from_child(node) => return Ok(status),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
