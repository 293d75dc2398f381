//! What a provider was asked for and has not answered yet. It may take minutes, and nobody waits for it.

use compute::{Listing, Order, Provider, Trouble};
use domain::Timestamp;
use std::collections::HashSet;
use tokio::task::JoinSet;

/// What a provider was asked, and its answer.
pub(super) enum Done {
    Created(String, Result<(), Trouble>),
    Deleted(String, Result<(), Trouble>),
    Listed(Timestamp, Result<Listing, Trouble>),
}

pub(super) struct Tasks<P> {
    pub(super) provider: P,
    running: JoinSet<Done>,
    /// Nodes that something is done about.
    at: HashSet<String>,
    listing: bool,
    done: Vec<Done>,
}

impl<P: Provider> Tasks<P> {
    pub(super) fn new(provider: P) -> Tasks<P> {
        Tasks { provider, running: JoinSet::new(), at: HashSet::new(), listing: false, done: Vec::new() }
    }

    pub(super) fn is_at(&self, name: &str) -> bool {
        self.at.contains(name)
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.at.is_empty()
    }

    pub(super) fn create(&mut self, order: Order) {
        self.at.insert(order.name.clone());
        let provider = self.provider.clone();
        self.running.spawn(async move {
            let made = provider.create(&order).await;
            Done::Created(order.name, made)
        });
    }

    /// Does nothing about a node that something is done about already.
    pub(super) fn delete(&mut self, name: &str) {
        if !self.at.insert(name.to_owned()) {
            return;
        }
        let (provider, name) = (self.provider.clone(), name.to_owned());
        self.running.spawn(async move {
            let gone = provider.delete(&name).await;
            Done::Deleted(name, gone)
        });
    }

    pub(super) fn list(&mut self, now: Timestamp) {
        if std::mem::replace(&mut self.listing, true) {
            return;
        }
        let provider = self.provider.clone();
        self.running.spawn(async move { Done::Listed(now, provider.list().await) });
    }

    /// Waits for the next answer, for ever if nothing was asked.
    pub(super) async fn changed(&mut self) {
        match self.running.join_next().await {
            Some(done) => self.done.extend(done),
            None => std::future::pending().await,
        }
    }

    /// Every answer that has come.
    pub(super) fn done(&mut self) -> Vec<Done> {
        while let Some(done) = self.running.try_join_next() {
            self.done.extend(done);
        }
        let done = std::mem::take(&mut self.done);
        for one in &done {
            match one {
                Done::Created(name, _) | Done::Deleted(name, _) => drop(self.at.remove(name)),
                Done::Listed(..) => self.listing = false,
            }
        }
        done
    }
}
