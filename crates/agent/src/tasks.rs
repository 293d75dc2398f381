//! The one door through which the agent starts tasks.

use std::future::Future;

/// Starts a task that ends by itself when what it serves is gone.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub(crate) fn detach(name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
    let _ = name;
    tokio::spawn(work);
}
