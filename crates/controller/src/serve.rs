//! The serving loop: every deployment has as many replicas as it should, of the version it should be.
//!
//! A replica is a job that this loop inserts and stops; scheduling and running it is everyone else's usual work. Invariants:
//! a replica is asked to stop only when no router uses it any more; a deployment is `Succeeded` only after a call through a
//! router was answered; what this loop keeps in memory can be lost without harm.

mod judge;
mod record;

use crate::{Context, until};
use domain::{
    Timestamp,
    serving::{Demand, Use},
};
use judge::{Judged, judge};
use planner::scale::{History, desired, scale};
use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    pin::Pin,
    time::Duration,
};
use store::{Bell, Error, ReplicaRow, ServingKey, ServingRow};
use tokio::{sync::watch, task::JoinSet};

/// Rounds follow each other no faster than this, so that many changes share one.
const PAUSE: Duration = Duration::from_millis(5);
/// How often demand is looked at when nothing rings.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What routers know and can do, whoever keeps them.
pub trait Routers: Send + Sync {
    /// What is asked of every deployment at this moment.
    fn demand(&self) -> Vec<Demand>;
    /// Whether a router of a cluster, or of this machine, may still send requests there, or waits for an answer from there.
    fn uses(&self, cluster: &str, address: SocketAddr) -> Use;
    /// Calls a deployment as its users do; otherwise what went wrong.
    fn call(&self, key: ServingKey) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
}

/// There are no routers: nothing is asked for, nothing is in use, and nobody can say that it does not answer.
#[derive(Debug, Clone, Copy)]
pub struct NoRouters;

impl Routers for NoRouters {
    fn demand(&self) -> Vec<Demand> {
        Vec::new()
    }
    fn uses(&self, _: &str, _: SocketAddr) -> Use {
        Use::No
    }
    fn call(&self, _: ServingKey) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// What the loop remembers from one round to the next.
#[derive(Default)]
pub struct Desk {
    histories: HashMap<ServingKey, History>,
    /// Calls under way, and how those ended that are over.
    calls: JoinSet<(Version, Result<(), String>)>,
    calling: HashSet<Version>,
    called: HashMap<Version, Result<(), String>>,
}

/// One state of a deployment as it was asked for.
type Version = (ServingKey, i64, Timestamp);

pub(crate) async fn run(cx: Context, mut stop: watch::Receiver<bool>) {
    let mut desk = Desk::default();
    let mut bell = cx.store.changed(Bell::Serving);
    loop {
        bell.mark_unchanged();
        match desk.tick(&cx).await {
            Ok(()) => {}
            Err(Error::Conflict) => continue,
            Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "a round of serving failed"),
        }
        let next = async {
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                _ = tokio::time::timeout(LOOK_EVERY, bell.changed()) => {}
                Some(done) = desk.calls.join_next(), if !desk.calls.is_empty() => {
                    desk.called.extend(done);
                }
            }
        };
        if !until(&mut stop, next).await {
            return;
        }
    }
}

impl Desk {
    /// One round over all deployments.
    pub async fn tick(&mut self, cx: &Context) -> Result<(), Error> {
        let (rows, mut replicas) = cx.store.look(|tx| Ok((tx.servings()?, by_key(tx.replicas()?)))).await?;
        self.forget(&rows);
        let demand = cx.routers.demand();
        for row in rows {
            let own = replicas.remove(&row.key).unwrap_or_default();
            let key = row.key.clone();
            match self.attend(cx, row, own, &demand).await {
                Ok(()) => {}
                Err(Error::Conflict) => return Err(Error::Conflict),
                // One that is broken holds up no other.
                Err(error) => tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot look after deployment `{}` of endpoint `{}`",
                    key.deployment,
                    key.endpoint
                ),
            }
        }
        Ok(())
    }

    async fn attend(
        &mut self,
        cx: &Context,
        row: ServingRow,
        replicas: Vec<ReplicaRow>,
        demand: &[Demand],
    ) -> Result<(), Error> {
        let now = (cx.clock)();
        while let Some(done) = self.calls.try_join_next() {
            self.called.extend(done);
        }
        let version = (row.key.clone(), row.generation, row.begun_at);
        let call = self.called.remove(&version);
        if call.is_some() {
            self.calling.remove(&version);
        }
        let uses = |address| cx.routers.uses(&row.cluster, address);
        let Judged { next, mut fleet, gone, ready } = judge(&row, &replicas, call, &uses, now);
        let asked = demand.iter().filter(|d| d.endpoint == row.key.endpoint && d.deployment == row.key.deployment);
        let requests: u64 = asked.map(|demand| u64::from(demand.in_flight) + u64::from(demand.queued)).sum();
        let settings = &next.settings;
        let wish = desired(&settings.scale, settings.requests.max_concurrent_requests_per_instance, requests);
        // While it is being proven it is needed, so that it is not idle the moment it works.
        let wish = judge::bounded(&next, wish);
        let history = self.histories.entry(row.key.clone()).or_default();
        let wanted = history.wanted(&settings.scale, now.0, fleet.current(), wish);
        fleet.wanted = judge::bounded(&next, wanted);
        if next.state.is_proving() && ready >= fleet.wanted && self.calling.insert(version.clone()) {
            let call = cx.routers.call(row.key.clone());
            self.calls.spawn(async move { (version, call.await) });
        }
        let empty = replicas.is_empty();
        record::all(cx, record::Round { row, next, gone, empty, steps: scale(&fleet), now }).await
    }

    /// Lets go of what is remembered of deployments that are not there.
    fn forget(&mut self, rows: &[ServingRow]) {
        let there: HashSet<&ServingKey> = rows.iter().map(|row| &row.key).collect();
        self.histories.retain(|key, _| there.contains(key));
        self.calling.retain(|(key, ..)| there.contains(key));
        self.called.retain(|(key, ..), _| there.contains(key));
    }
}

fn by_key(rows: Vec<ReplicaRow>) -> HashMap<ServingKey, Vec<ReplicaRow>> {
    let mut grouped: HashMap<ServingKey, Vec<ReplicaRow>> = HashMap::new();
    for row in rows {
        grouped.entry(row.key.clone()).or_default().push(row);
    }
    grouped
}
