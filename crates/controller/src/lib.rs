//! The loops: look at the world, decide in the planner, record, act.
//!
//! Invariant: a launch is carried out only after its decision is committed, so a crash can lose time but never
//! start work that nobody remembers. Each loop repairs: what it did not get done, its next pass does.

mod conduct;
mod managed;
mod schedule;
mod serve;
mod tend;
mod upkeep;

pub use conduct::{Conductors, conduct};
pub use managed::{Managed, ManagedSettings};
pub use schedule::{WINDOW, tick};
pub use serve::{Desk, NoRouters, Routers};
pub use tend::give_up_checks;
pub use upkeep::sweep;

use compute::Driver;
use domain::{Job, Timestamp};
use std::{sync::Arc, time::Duration};
use store::{Error, Store, Tx};
use tokio::{sync::watch, task::JoinSet};

/// What every loop is given.
#[derive(Clone)]
pub struct Context {
    pub store: Store,
    pub drivers: Arc<Vec<Box<dyn Driver>>>,
    /// How long deleted runs and experiments can be brought back; for ever where this is nothing.
    pub keep_deleted: Option<Duration>,
    /// What is known of the routers that send requests to replicas.
    pub routers: Arc<dyn Routers>,
    /// Makes assets of the outputs of a job that has completed, where they are to be some.
    pub register: fn(&mut Tx<'_>, &Job, Timestamp) -> Result<(), Error>,
    pub clock: fn() -> Timestamp,
    pub sharing: Sharing,
}

/// How people share this machine.
#[derive(Debug, Clone, Copy)]
pub struct Sharing {
    /// After how long what someone has used counts half.
    pub half_life_ms: i64,
    /// A job of higher priority may stop one of lower.
    pub preempt: bool,
}

/// Runs all loops until `stop` turns true.
pub async fn run(cx: Context, stop: watch::Receiver<bool>) {
    let mut loops = JoinSet::new();
    loops.spawn(schedule::run(cx.clone(), stop.clone()));
    loops.spawn(conduct::run(cx.clone(), stop.clone()));
    loops.spawn(serve::run(cx.clone(), stop.clone()));
    loops.spawn(tend::run(cx.clone(), stop.clone()));
    loops.spawn(upkeep::run(cx, stop));
    while loops.join_next().await.is_some() {}
}

/// Waits for whichever comes first: the end, or the next round.
pub(crate) async fn until(stop: &mut watch::Receiver<bool>, next: impl Future<Output = ()>) -> bool {
    tokio::select! {
        ended = stop.wait_for(|stop| *stop) => { let _ = ended; false }
        () = next => true,
    }
}
