//! From routes as they are written to a table, keeping what is alive.

use super::{Deployment, Endpoint, Inner, Live, Replica, Routes, Share, Table};
use crate::{auth::Access, counts::Counts};
use arc_swap::ArcSwap;
use domain::{
    serving::SlotShare,
    spec::{
        Routes as Spec,
        routes::{DeploymentRoute, EndpointRoute},
    },
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

impl Routes {
    /// A handle on a table of these routes.
    pub fn new(routes: &Spec) -> Routes {
        let share = Arc::<Share>::default();
        share.set(SlotShare::default());
        let table = ArcSwap::from_pointee(table(routes, &Table::default(), &share));
        let (leaving, nowhere) = (Mutex::default(), Counts::default());
        Routes(Arc::new(Inner { table, leaving, nowhere, share }))
    }

    /// Puts a new table in place of the old one. Requests that run go on; those that wait look again.
    pub fn install(&self, routes: &Spec) {
        let mut leaving = self.0.leaving.lock().expect("nothing panics while it holds the list");
        let old = self.0.table.load_full();
        self.0.table.store(Arc::new(table(routes, &old, &self.0.share)));
        let new = self.table();
        let stays = |replica: &Arc<Replica>| new.replicas().any(|other| other.id == replica.id);
        leaving.extend(old.replicas().filter(|replica| !stays(replica)).cloned());
        leaving.retain(|replica| replica.busy() > 0);
        drop(leaving);
        // Also those whose deployment is gone: they must hear that it is.
        old.deployments().for_each(|deployment| deployment.live.line.call_all());
    }
}

impl Table {
    fn deployments(&self) -> impl Iterator<Item = &Arc<Deployment>> {
        self.endpoints.values().flat_map(|endpoint| &endpoint.deployments)
    }

    fn replicas(&self) -> impl Iterator<Item = &Arc<Replica>> {
        self.deployments().flat_map(|deployment| &deployment.replicas)
    }
}

fn table(routes: &Spec, old: &Table, share: &Arc<Share>) -> Table {
    let mut table = Table::default();
    for (name, route) in &routes.endpoints {
        let endpoint = Arc::new(endpoint(name, route, old.endpoint(name).map(AsRef::as_ref), share));
        for host in &route.hosts {
            table.hosts.insert(host.to_ascii_lowercase().into(), Arc::clone(&endpoint));
        }
        table.endpoints.insert(name.as_str().into(), endpoint);
    }
    table
}

fn endpoint(name: &str, route: &EndpointRoute, old: Option<&Endpoint>, share: &Arc<Share>) -> Endpoint {
    let name: Arc<str> = name.into();
    let mut made: HashMap<&str, Arc<Deployment>> = HashMap::new();
    for (at, route) in &route.deployments {
        let before = old.and_then(|old| old.deployment(at.as_bytes())).map(AsRef::as_ref);
        let share = Arc::clone(share);
        made.insert(at, Arc::new(Deployment { share, ..deployment(&name, at, route, before) }));
    }
    let shared = |shares: &std::collections::BTreeMap<String, u32>| -> Vec<(u32, Arc<Deployment>)> {
        let positive = shares.iter().filter(|(_, share)| **share > 0);
        positive.filter_map(|(at, share)| Some((*share, Arc::clone(made.get(at.as_str())?)))).collect()
    };
    Endpoint {
        access: Access::of(&name, route),
        name,
        max_body: route.max_body_bytes,
        cors: route.cors.clone(),
        shares: shared(&route.traffic),
        mirror: shared(&route.mirror_traffic).pop(),
        deployments: made.into_values().collect(),
        refused: old.map(|old| Arc::clone(&old.refused)).unwrap_or_default(),
    }
}

fn deployment(endpoint: &Arc<str>, name: &str, route: &DeploymentRoute, old: Option<&Deployment>) -> Deployment {
    let known = |address| old.and_then(|old| old.replicas.iter().find(|replica| replica.address == address));
    let replica = |address| known(address).cloned().unwrap_or_else(|| Arc::new(Replica::new(address)));
    let settings = &route.request_settings;
    Deployment {
        endpoint: Arc::clone(endpoint),
        name: name.into(),
        scoring_path: route.scoring_path.as_str().into(),
        timeout: Duration::from_millis(settings.request_timeout_ms),
        queue_wait: Duration::from_millis(settings.max_queue_wait_ms),
        hold: Duration::from_millis(route.hold_ms),
        max_queued: route.max_queued,
        slots: settings.max_concurrent_requests_per_instance,
        replicas: route.replicas.iter().copied().map(replica).collect(),
        live: old.map(|old| Arc::<Live>::clone(&old.live)).unwrap_or_default(),
        share: Arc::default(),
    }
}
