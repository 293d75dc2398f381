//! The routing table: what requests look things up in, swapped whole and never changed in place.
//!
//! Counters live beside the table, not in it: a deployment or replica that is in two tables one after the other keeps its
//! [`Live`] and its [`Replica`], so requests that began under the old table are still counted under the new one.
//! Invariant: a request that has a slot keeps its replica, whatever becomes of the table.

mod build;
mod replica;

use crate::{auth::Access, chance::Chance, counts::Counts, line::Line};
use arc_swap::{ArcSwap, Guard};
use domain::{
    serving::{Answered, Demand, SlotShare},
    spec::routes::Cors,
};
pub(crate) use replica::{Replica, Wrong};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst},
    },
    time::Duration,
};

/// The table behind a handle that all workers share. Readers load it; whoever owns the source of routes installs.
#[derive(Clone)]
pub struct Routes(Arc<Inner>);

struct Inner {
    table: ArcSwap<Table>,
    /// Replicas that are in no table any more and may still be at work. Never touched by requests.
    leaving: Mutex<Vec<Arc<Replica>>>,
    /// Requests that led to no endpoint.
    nowhere: Counts,
    share: Arc<Share>,
}

/// One state of the routes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    endpoints: HashMap<Box<str>, Arc<Endpoint>>,
    hosts: HashMap<Box<str>, Arc<Endpoint>>,
}

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: Arc<str>,
    pub(crate) access: Access,
    pub(crate) max_body: u64,
    pub(crate) cors: Option<Cors>,
    /// Deployments with a share of the traffic, and that share.
    shares: Vec<(u32, Arc<Deployment>)>,
    /// Who gets copies, and of how many requests in a hundred.
    mirror: Option<(u32, Arc<Deployment>)>,
    deployments: Vec<Arc<Deployment>>,
    /// Requests that were refused before they had a deployment.
    pub(crate) refused: Arc<Counts>,
}

#[derive(Debug)]
pub(crate) struct Deployment {
    pub(crate) endpoint: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) scoring_path: Box<str>,
    pub(crate) timeout: Duration,
    pub(crate) queue_wait: Duration,
    pub(crate) hold: Duration,
    pub(crate) max_queued: u32,
    /// Requests that one replica takes at a time, from all routers together.
    slots: u32,
    pub(crate) replicas: Vec<Arc<Replica>>,
    pub(crate) live: Arc<Live>,
    /// Which part of the slots is this router's.
    share: Arc<Share>,
}

/// A router's part of the slots, as index and number of routers in one word.
#[derive(Debug, Default)]
pub(crate) struct Share(AtomicU64);

impl Share {
    fn set(&self, share: SlotShare) {
        self.0.store((u64::from(share.index) << 32) | u64::from(share.of), SeqCst);
    }

    fn get(&self) -> SlotShare {
        let word = self.0.load(Relaxed);
        SlotShare { index: (word >> 32) as u32, of: word as u32 }
    }
}

/// What changes about a deployment while requests run.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) in_flight: AtomicU32,
    /// Who waits for a slot.
    pub(crate) line: Line,
    pub(crate) counts: Counts,
    /// What became of copies of requests.
    pub(crate) copies: Counts,
    /// Copies that were not sent, because there was no room for them.
    pub(crate) unmirrored: AtomicU32,
}

impl Routes {
    pub(crate) fn table(&self) -> Guard<Arc<Table>> {
        self.0.table.load()
    }

    pub(crate) fn nowhere(&self) -> &Counts {
        &self.0.nowhere
    }

    /// Uses this part of the replicas' slots from now on.
    pub fn share_slots(&self, share: SlotShare) {
        if self.0.share.get() == share {
            return;
        }
        self.0.share.set(share);
        // What was not theirs may be free now.
        let table = self.table();
        let deployments = table.endpoints.values().flat_map(|endpoint| &endpoint.deployments);
        deployments.for_each(|deployment| deployment.live.line.call_all());
    }

    /// What is asked of every deployment now.
    pub fn demand(&self) -> Vec<Demand> {
        let table = self.table();
        let deployments = table.endpoints.values().flat_map(|endpoint| &endpoint.deployments);
        let mut demand: Vec<Demand> = deployments.map(|deployment| deployment.demand()).collect();
        demand.sort_by(|a, b| (&a.endpoint, &a.deployment).cmp(&(&b.endpoint, &b.deployment)));
        demand
    }

    /// How long a request may wait for a slot and for its answer, at the most patient deployment.
    pub(crate) fn longest(&self) -> Duration {
        let table = self.table();
        let deployments = table.endpoints.values().flat_map(|endpoint| &endpoint.deployments);
        deployments.map(|one| one.timeout.saturating_add(one.queue_wait)).max().unwrap_or_default()
    }

    /// Everything that is counted, in Prometheus text.
    pub fn metrics(&self) -> String {
        crate::metrics::render(self)
    }

    /// What was answered for every deployment that was asked, and what endpoints refused.
    pub fn answered(&self) -> Vec<Answered> {
        let table = self.table();
        let of = |endpoint: &Endpoint| {
            let own = endpoint.deployments.iter().map(|deployment| (&*deployment.name, &deployment.live.counts));
            let counted = own.chain([("", &*endpoint.refused)]);
            let counted = counted.map(|(deployment, counts)| counts.answered(&endpoint.name, deployment));
            let copied = endpoint.deployments.iter().map(|deployment| Answered {
                mirrored: true,
                ..deployment.live.copies.answered(&endpoint.name, &deployment.name)
            });
            counted.chain(copied).collect::<Vec<_>>()
        };
        table.endpoints.values().flat_map(|endpoint| of(endpoint)).filter(|one| !one.codes.is_empty()).collect()
    }

    /// Replicas that get no new requests and still work on old ones, with how many. One that is missing here can be
    /// stopped.
    pub fn leaving(&self) -> Vec<(SocketAddr, u32)> {
        let mut leaving = self.0.leaving.lock().expect("nothing panics while it holds the list");
        leaving.retain(|replica| replica.busy() > 0);
        leaving.iter().map(|replica| (replica.address, replica.busy())).collect()
    }
}

impl Table {
    pub(crate) fn endpoint(&self, name: &str) -> Option<&Arc<Endpoint>> {
        self.endpoints.get(name)
    }

    /// The endpoint that answers under a host name, given with or without a port.
    pub(crate) fn host(&self, host: &[u8]) -> Option<&Arc<Endpoint>> {
        if self.hosts.is_empty() {
            return None;
        }
        let host = std::str::from_utf8(host).ok()?;
        let bare = match host.rsplit_once(':') {
            Some((bare, port)) if port.bytes().all(|b| b.is_ascii_digit()) => bare,
            _ => host,
        };
        match bare.bytes().any(|b| b.is_ascii_uppercase()) {
            true => self.hosts.get(bare.to_ascii_lowercase().as_str()),
            false => self.hosts.get(bare),
        }
    }

    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.endpoints.values()
    }
}

impl Endpoint {
    pub(crate) fn deployment(&self, name: &[u8]) -> Option<&Arc<Deployment>> {
        self.deployments.iter().find(|deployment| deployment.name.as_bytes() == name)
    }

    pub(crate) fn deployments(&self) -> &[Arc<Deployment>] {
        &self.deployments
    }

    /// A deployment by the traffic's shares; `None` when none has any.
    pub(crate) fn choose(&self, chance: &Chance) -> Option<&Arc<Deployment>> {
        if let [(_, only)] = self.shares.as_slice() {
            return Some(only);
        }
        let total: u32 = self.shares.iter().map(|(share, _)| share).sum();
        let mut draw = chance.below(total.max(1) as usize) as u32;
        for (share, deployment) in &self.shares {
            if draw < *share {
                return Some(deployment);
            }
            draw -= share;
        }
        None
    }

    /// Who gets a copy of this request, if anyone does.
    pub(crate) fn mirror(&self, chance: &Chance) -> Option<&Arc<Deployment>> {
        let (share, deployment) = self.mirror.as_ref()?;
        (chance.below(100) < *share as usize).then_some(deployment)
    }
}

impl Deployment {
    /// Requests that this router may have at its `at`-th replica at a time.
    pub(crate) fn slots_at(&self, at: usize) -> u32 {
        self.share.get().of_replica(at, self.replicas.len(), self.slots)
    }

    fn demand(&self) -> Demand {
        Demand {
            endpoint: self.endpoint.to_string(),
            deployment: self.name.to_string(),
            in_flight: self.live.in_flight.load(SeqCst),
            queued: self.live.line.length(),
            replicas: u32::try_from(self.replicas.len()).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests;
