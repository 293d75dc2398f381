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
use std::{collections::HashSet, future::Future};

/// A node to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Unlike any before.
    pub name: String,
    /// Opens the server to one machine, once.
    pub token: String,
    pub size: String,
    pub amounts: Resources,
    pub tier: Tier,
}

/// Whether a machine stays for as long as it is wanted, or may be taken back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tier {
    #[default]
    Dedicated,
    LowPriority,
}

impl Tier {
    /// As files of clusters call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Tier::Dedicated => "dedicated",
            Tier::LowPriority => "low_priority",
        }
    }
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

/// What a provider has of a cluster's nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    pub found: Vec<Found>,
    /// Not every place could be asked: what was not found may yet be there.
    pub blind: bool,
    /// Nodes that are not there although others may be, for where they were could be asked.
    pub absent: HashSet<String>,
}

impl Listing {
    /// Every place was asked, and these are all there are.
    pub fn all(found: Vec<Found>) -> Listing {
        Listing { found, ..Listing::default() }
    }

    /// Nothing is known.
    pub fn nothing() -> Listing {
        Listing { blind: true, ..Listing::default() }
    }

    /// Whether a node that is not among those found is surely not there.
    pub fn lacks(&self, name: &str) -> bool {
        !self.blind || self.absent.contains(name)
    }
}

pub trait Provider: Clone + Send + Sync + 'static {
    /// Has a node come. It need not be there yet when this returns.
    fn create(&self, order: &Order) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// When this has returned, nothing runs on the node any more and it costs nothing.
    fn delete(&self, name: &str) -> impl Future<Output = Result<(), Trouble>> + Send;
    /// Every node of the cluster that is there, as far as places could be asked.
    fn list(&self) -> impl Future<Output = Result<Listing, Trouble>> + Send;
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
