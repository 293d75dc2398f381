//! Stewards: every target that is reached from here has one, for as long as it is attached.
//!
//! A steward asks this server for work as the operator of a cluster does, with a token of its own. Invariant: what its
//! target was changed to is what it works by; a secret is opened here and goes nowhere else but to it.

use api::{Client, Connection};
use compute::{Desk, Host, Login, Site, Trouble, keep};
use domain::{
    Timestamp,
    cluster::{Check, ClusterAnswer, ClusterPoll, ClusterReport},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
    time::Duration,
};
use store::{Bell, Store, TargetState, Tx};
use tokio::task::{AbortHandle, JoinSet};

/// How long after a change, or after nothing, targets are looked at again.
const AGAIN: Duration = Duration::from_secs(5);

/// What stewards are made with.
pub(crate) struct Sites {
    pub(crate) store: Store,
    pub(crate) home: PathBuf,
    /// This program's own file, which is the agent elsewhere.
    pub(crate) program: PathBuf,
    /// Where this server listens.
    pub(crate) url: String,
    pub(crate) authority: Option<Vec<u8>>,
}

/// A target that is reached from here.
struct Place {
    /// As the server calls it.
    name: String,
    /// Changes with everything that its steward must know.
    mark: String,
    token: String,
    body: Value,
    secrets: BTreeMap<String, String>,
    checks: Vec<Check>,
}

impl Sites {
    /// Keeps a steward for every such target, for as long as it is polled.
    pub(crate) async fn run(self) {
        let mut bell = self.store.changed(Bell::Clusters);
        let mut running: HashMap<String, (String, AbortHandle)> = HashMap::new();
        let mut stewards = JoinSet::new();
        loop {
            bell.mark_unchanged();
            match self.store.read(places).await {
                Ok(places) => self.settle(places, &mut running, &mut stewards),
                Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "cannot look for targets"),
            }
            while stewards.try_join_next().is_some() {}
            let _ = tokio::time::timeout(AGAIN, bell.changed()).await;
        }
    }

    /// Ends the stewards of targets that are gone or have changed, and starts those that are missing.
    fn settle(
        &self,
        places: Vec<Place>,
        running: &mut HashMap<String, (String, AbortHandle)>,
        stewards: &mut JoinSet<()>,
    ) {
        running.retain(|name, (mark, steward)| {
            let stays = places.iter().any(|place| &place.name == name && &place.mark == mark);
            if !stays {
                steward.abort();
            }
            stays
        });
        for place in places {
            if running.contains_key(&place.name) {
                continue;
            }
            match self.steward(&place) {
                Ok((host, desk)) => {
                    let (name, mark) = (place.name.clone(), place.mark.clone());
                    let steward = stewards.spawn(async move { keep(&place.name, host, desk, place.checks).await });
                    running.insert(name, (mark, steward));
                }
                Err(trouble) => tracing::error!(target = place.name, "{trouble}"),
            }
        }
    }

    fn steward(&self, place: &Place) -> Result<(impl Site + use<>, ServerDesk), Trouble> {
        let (scheme, listens) = self.url.split_once("://").unwrap_or(("https", &self.url));
        // Nobody but this server calls the target so, whoever else uses the same machine.
        let mut key = self.store.keyring().sign(&format!("site {}", place.name));
        key.truncate(8);
        let slots = place.body["slots"].as_u64().and_then(|slots| u32::try_from(slots).ok()).unwrap_or(1);
        let folder = self.home.join("sites").join(&key);
        let server = (scheme.to_owned(), listens.to_owned());
        let host = Host::new((key, login(place), slots), folder, self.program.clone(), server)?;
        let connection =
            Connection { url: self.url.clone(), token: place.token.clone(), authority: self.authority.clone() };
        let client = Client::new(connection).map_err(|error| Trouble::new("server", error.to_string()))?;
        Ok((host, ServerDesk(client)))
    }
}

fn places(tx: &mut Tx<'_>) -> Result<Vec<Place>, store::Error> {
    let mut places = Vec::new();
    for cluster in tx.clusters()?.into_iter().filter(|row| row.is_site()) {
        let Some(target) = tx.targets_on(&cluster.name)?.pop() else { continue };
        let Some(row) = tx.compute(&target.workspace, &target.target.compute)? else { continue };
        let token = server::cluster_token(tx.keyring(), &cluster.name, cluster.generation);
        let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
        let mut inner = body["properties"]["properties"].clone();
        if inner["address"].is_null() {
            let id = body["properties"]["resourceId"].as_str().unwrap_or_default();
            inner["address"] = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default().into();
        }
        let waits = target.state == TargetState::Creating;
        let check = waits.then(|| Check { id: target.check_id.clone(), target: target.target.clone() });
        places.push(Place {
            mark: format!("{} {}", row.changed_at.0, cluster.generation),
            name: cluster.name,
            token,
            body: inner,
            secrets: tx.compute_secret(&target.workspace, &row.name)?,
            checks: check.into_iter().collect(),
        });
    }
    Ok(places)
}

fn login(place: &Place) -> Login {
    let word = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let secret = |key: &str| {
        let found =
            place.secrets.iter().find(|(path, value)| path.rsplit('.').next() == Some(key) && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    Login {
        host: word(&place.body["address"]).unwrap_or_default(),
        port: place.body["sshPort"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(22),
        user: word(&place.body["administratorAccount"]["username"]).unwrap_or_default(),
        jump: word(&place.body["jumpHost"]),
        password: secret("password"),
        private_key: secret("privateKeyData"),
        host_key: word(&place.body["hostKey"]),
    }
}

/// The server, as a steward speaks with it.
struct ServerDesk(Client);

impl Desk for ServerDesk {
    async fn poll(&self, poll: ClusterPoll) -> Result<ClusterAnswer, String> {
        self.0.post("/cluster/v1/poll", &poll).await.map_err(|error| error.to_string())
    }

    async fn report(&self, report: ClusterReport) -> Result<(), String> {
        self.0.post::<Value>("/cluster/v1/report", &report).await.map(drop).map_err(|error| error.to_string())
    }

    fn now(&self) -> Timestamp {
        server::clock::now()
    }
}
