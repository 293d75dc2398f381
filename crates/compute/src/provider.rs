//! Who brings the nodes of a managed cluster, and takes them away.
//!
//! A provider is told a node's name before the machine exists and knows the machine by it ever after. Invariants: ordering and
//! taking away may be repeated without harm; a name is used for one machine only.

mod command;
mod machines;

pub use command::Commands;
pub use machines::Machines;

use crate::Trouble;
use domain::{Resources, cluster::Finding};
use std::future::Future;

/// A node to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Unlike any before.
    pub name: String,
    /// Opens the server to one machine, once.
    pub token: String,
    pub size: String,
    pub amounts: Resources,
}

/// A node that a provider knows of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub name: String,
    pub health: Health,
}

/// How a node is doing, as far as its provider can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    Well,
    /// It is on its way, and this is what keeps it.
    Waits(String),
    /// Whoever owns the machine takes it back; it is there for a little while yet.
    Leaves(String),
    /// It is of no use any more.
    Dead(String),
}

pub trait Provider: Clone + Send + Sync + 'static {
    /// Has a node come. It need not be there yet when this returns.
    fn create(&self, order: &Order) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// When this has returned, nothing runs on the node any more and it costs nothing.
    fn delete(&self, name: &str) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// Every node of the cluster that is there; `None` where not all places could be asked.
    fn list(&self) -> impl Future<Output = Result<Option<Vec<Found>>, Trouble>> + Send;
    /// Whether a listed node that nobody has written down is surely this cluster's, so that it may be taken away.
    fn is_own(&self, _: &str) -> bool {
        true
    }
    /// What a node of this size would have here.
    fn offers(&self, size: &Resources) -> impl Future<Output = Result<Resources, Trouble>> + Send;
    /// Whether an order that is repeated starts a dead node again, with what it had on its disk.
    fn revives(&self) -> bool {
        true
    }
    /// The cluster is gone, and what its nodes have left for later ones goes too.
    fn end(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
    /// Whether nodes could be had, item by item.
    fn check(&self) -> impl Future<Output = Vec<Finding>> + Send;
}
