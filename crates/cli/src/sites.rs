//! Stewards: every target that is reached from here has one, for as long as it is attached.
//!
//! A steward asks this server for work as the operator of a cluster does, with a token of its own. Invariant: what its
//! target was changed to is what it works by; a secret is opened here and goes nowhere else but to it.

use api::{Client, Connection};
use compute::{Commands, Desk, Host, Login, Machines, Shape, Slurm, Tier, Trouble, keep};
use controller::{Managed, ManagedSettings};
use domain::{
    Resources, Timestamp,
    cluster::{Check, ClusterAnswer, ClusterPoll, ClusterReport, LOWER_PRIORITY},
    machine::lease_seconds,
    resources::parse_bytes,
};
#[cfg(feature = "kubernetes")]
use kubernetes::provider::{PodSettings, Pods};
use planner::nodes::Bounds;
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    path::PathBuf,
    time::Duration,
};
use store::{Bell, Store, TargetState, Tx};
use tokio::task::{AbortHandle, JoinSet};

/// How long after a change, or after nothing, targets are looked at again.
const AGAIN: Duration = Duration::from_secs(5);

/// Many changes share one look, for most are of jobs. Shorter than the pause of a poll, so that nobody asks the steward of a
/// target as it was before.
const PAUSE: Duration = Duration::from_millis(10);

/// What stewards are made with.
pub(crate) struct Sites {
    pub(crate) store: Store,
    pub(crate) home: PathBuf,
    /// This program's own file, which is the agent elsewhere.
    pub(crate) program: PathBuf,
    /// Where this server listens for what runs on its own machine, and what comes to it through a tunnel.
    pub(crate) url: String,
    /// Our own authority, in PEM: it signed the certificate there.
    pub(crate) authority: String,
    /// The address it listens at for other machines, and the authority of the certificate they see; empty where the system's
    /// are enough.
    pub(crate) outside: (String, String),
}

/// A target that is reached from here.
struct Place {
    /// As the server calls it.
    name: String,
    /// Changes with everything that its steward must know.
    mark: String,
    token: String,
    /// `VirtualMachine`, `Slurm` or `AmlCompute`.
    kind: String,
    workspace: String,
    compute: String,
    /// The operation that waits until it is gone.
    deleting: Option<String>,
    forced: bool,
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
            tokio::time::sleep(PAUSE).await;
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
            match self.start(place, stewards) {
                Ok((name, mark, steward)) => drop(running.insert(name, (mark, steward))),
                Err(trouble) => tracing::error!("{trouble}"),
            }
        }
    }

    /// A steward for a place, at work.
    fn start(&self, place: Place, stewards: &mut JoinSet<()>) -> Result<(String, String, AbortHandle), Trouble> {
        // Nobody but this server calls the target so, whoever else uses the same machine. Paths there must be short.
        let mut key = self.store.keyring().sign(&format!("site {}", place.name));
        key.truncate(8);
        let folder = self.home.join("sites").join(&key);
        let authority = Some(self.authority.clone().into_bytes());
        let connection = Connection { url: self.url.clone(), token: place.token.clone(), authority };
        let client = Client::new(connection).map_err(|error| Trouble::new("server", error.to_string()))?;
        let (name, mark) = (place.name.clone(), place.mark.clone());
        let body = &place.body;
        let desk = ServerDesk { client, authority: None };
        let server = || {
            let (scheme, listens) = self.url.split_once("://").unwrap_or(("https", &self.url));
            (scheme.to_owned(), listens.to_owned())
        };
        let steward = match place.kind.as_str() {
            "AmlCompute" => {
                let authority = self.authority.clone();
                let (store, settings, checks) =
                    (self.store.clone(), managed(&place, key.clone()), place.checks.clone());
                let provider = &body["nodeProvider"];
                match provider["type"].as_str() {
                    Some("command") => {
                        let program = self.home.join("providers").join(word(&provider["program"]).unwrap_or_default());
                        let limit = Duration::from_secs(provider["timeoutSeconds"].as_u64().unwrap_or(600).max(1));
                        let server = self.way_of_others(word(&provider["serverUrl"]));
                        let commands = Commands::new(program, limit, server, (&place.compute, &key));
                        let site = Managed::new(store, commands, settings);
                        stewards.spawn(async move { keep(&place.name, site, desk, checks).await })
                    }
                    Some("kubernetes") => {
                        let pods = pods(&place, key, self.way_of_others(word(&provider["serverUrl"])))?;
                        let site = Managed::new(store, pods, settings);
                        stewards.spawn(async move { keep(&place.name, site, desk, checks).await })
                    }
                    other => {
                        let machines = match other {
                            Some("ssh") => {
                                let there = (logins(&place), folder);
                                Machines::there(key, there, self.program.clone(), server(), authority)?
                            }
                            _ => {
                                let top = self.home.join("n").join(&key);
                                Machines::here(key, top, self.program.clone(), server(), authority)
                            }
                        };
                        let site = Managed::new(store, machines, settings);
                        stewards.spawn(async move { keep(&place.name, site, desk, checks).await })
                    }
                }
            }
            "Slurm" => {
                let login = word(&body["host"]).map(|host| login(&place, host));
                let (server, authority) = self.way_of_others(word(&body["serverUrl"]));
                let desk = ServerDesk { authority: Some(authority), ..desk };
                let slurm = Slurm::new((key, login, shapes(body)), folder, self.program.clone(), server)?;
                stewards.spawn(async move { keep(&place.name, slurm, desk, place.checks).await })
            }
            _ => {
                let slots = body["slots"].as_u64().and_then(|slots| u32::try_from(slots).ok()).unwrap_or(1);
                let login = login(&place, word(&body["address"]).unwrap_or_default());
                let host = Host::new((key, login, slots), folder, self.program.clone(), server())?;
                let host = host.preempting(preempts(body));
                stewards.spawn(async move { keep(&place.name, host, desk, place.checks).await })
            }
        };
        Ok((name, mark, steward))
    }

    /// How machines reach the server that no tunnel leads to, and the authority they are to trust: as their target says, or at
    /// the address it listens at if that is one of a network's. Otherwise they can only be this machine.
    fn way_of_others(&self, named: Option<String>) -> (String, String) {
        let (listens, authority) = &self.outside;
        let far = listens.strip_prefix("https://").and_then(|at| at.parse::<SocketAddr>().ok());
        match named.or_else(|| far.filter(|at| !at.ip().is_loopback()).map(|_| listens.clone())) {
            Some(url) => (url, authority.clone()),
            None => (self.url.clone(), self.authority.clone()),
        }
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
            kind: word(&body["properties"]["computeType"]).unwrap_or_default(),
            workspace: target.workspace.clone(),
            compute: row.name.clone(),
            deleting: word(&body["properties"]["deleting"]),
            forced: body["properties"]["forced"].as_bool().unwrap_or_default(),
            body: inner,
            secrets: tx.compute_secret(&target.workspace, &row.name)?,
            checks: check.into_iter().collect(),
        });
    }
    Ok(places)
}

fn word(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A secret of a place by the last word of its path.
fn secret(place: &Place, key: &str) -> Option<String> {
    let found = place.secrets.iter().find(|(path, value)| path.rsplit('.').next() == Some(key) && !value.is_empty());
    found.map(|(_, value)| value.clone())
}

fn login(place: &Place, host: String) -> Login {
    let secret = |key: &str| secret(place, key);
    Login {
        host,
        port: place.body["sshPort"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(22),
        user: word(&place.body["administratorAccount"]["username"]).unwrap_or_default(),
        jump: word(&place.body["jumpHost"]),
        password: secret("password"),
        private_key: secret("privateKeyData").or_else(|| secret("privateKey")),
        host_key: word(&place.body["hostKey"]),
    }
}

/// What a managed cluster is to be.
fn managed(place: &Place, uid: String) -> ManagedSettings {
    let (body, scale) = (&place.body, &place.body["scaleSettings"]);
    let count = |key: &str, otherwise| scale[key].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(otherwise);
    let idle = scale["nodeIdleTimeBeforeScaleDown"].as_str().and_then(domain::time::parse_iso_duration);
    let name = word(&body["vmSize"]).unwrap_or_default();
    let amounts = domain::sizes::find(&name).map(|size| Resources {
        cpu_milli: u64::from(size.cores) * 1000,
        memory_bytes: (size.memory_gib * f64::from(1 << 30)) as u64,
        gpus: size.gpus,
    });
    let most = count("maxNodeCount", 4);
    ManagedSettings {
        cluster: place.name.clone(),
        workspace: place.workspace.clone(),
        compute: place.compute.clone(),
        uid,
        size: (name, amounts.unwrap_or_default()),
        bounds: Bounds {
            least: count("minNodeCount", 0).min(most),
            most,
            idle_ms: idle.map_or(120_000, |idle| i64::try_from(idle.as_millis()).unwrap_or(i64::MAX)),
            lost_ms: i64::try_from(lease_seconds(body)).unwrap_or(i64::MAX).saturating_mul(1000),
        },
        tier: match body["vmPriority"].as_str() {
            Some("LowPriority") => Tier::LowPriority,
            _ => Tier::Dedicated,
        },
        preempts: preempts(body),
        deleting: place.deleting.clone(),
        forced: place.forced,
        token: server::join_token,
        clock: server::clock::now,
    }
}

/// Whether the target's owner lets higher priority take from lower.
fn preempts(body: &Value) -> bool {
    body["preemption"].as_str() == Some(LOWER_PRIORITY)
}

/// How each machine of a managed cluster is reached.
fn logins(place: &Place) -> Vec<Login> {
    let provider = &place.body["nodeProvider"];
    let usual = login(place, String::new());
    let port = |value: &Value| value["port"].as_u64().and_then(|port| u16::try_from(port).ok());
    let one = |host: &Value| Login {
        host: word(host).or_else(|| word(&host["address"])).unwrap_or_default(),
        port: port(host).or_else(|| port(provider)).unwrap_or(22),
        user: word(&provider["user"]).unwrap_or_default(),
        jump: word(&provider["jumpHost"]),
        host_key: word(&host["hostKey"]),
        ..usual.clone()
    };
    provider["hosts"].as_array().into_iter().flatten().map(one).collect()
}

/// The pods that are nodes of a managed cluster.
#[cfg(feature = "kubernetes")]
fn pods(place: &Place, key: String, server: (String, String)) -> Result<Pods, Trouble> {
    let of = (key, place.workspace.clone(), place.compute.clone());
    let settings =
        PodSettings::of(&place.body["nodeProvider"], of, secret(place, "kubeconfig"), server, server::clock::now);
    Ok(Pods::new(settings))
}

#[cfg(not(feature = "kubernetes"))]
fn pods(place: &Place, _: String, _: (String, String)) -> Result<Commands, Trouble> {
    let why = format!("`{}` wants pods, and this program was built without Kubernetes", place.name);
    Err(Trouble::new("provider", why))
}

/// The instance types of a Slurm target: its own settings, and those that differ under a name.
fn shapes(body: &Value) -> BTreeMap<String, Shape> {
    let named = body["shapes"].as_object().into_iter().flatten();
    let named = named.map(|(name, differs)| (name.clone(), shape(body, differs)));
    let usual = (domain::resources::DEFAULT_INSTANCE_TYPE.to_owned(), shape(body, &Value::Null));
    std::iter::once(usual).chain(named).collect()
}

fn shape(usual: &Value, differs: &Value) -> Shape {
    let of = |key: &str| Some(&differs[key]).filter(|value| !value.is_null()).unwrap_or(&usual[key]).clone();
    let text = |key: &str| api::arm::scalar(&of(key)).filter(|text| !text.is_empty());
    let count = |key: &str| text(key).and_then(|text| text.parse::<u32>().ok());
    Shape {
        asks: Resources {
            cpu_milli: u64::from(count("cpus").unwrap_or(1)) * 1000,
            memory_bytes: text("memory").and_then(|text| parse_bytes(&text)).unwrap_or(0),
            gpus: count("gpus").unwrap_or(0),
        },
        partition: text("partition"),
        account: text("account"),
        qos: text("qos"),
        gres: text("gres"),
        arguments: of("arguments").as_array().into_iter().flatten().filter_map(api::arm::scalar).collect(),
    }
}

/// The server, as a steward speaks with it.
struct ServerDesk {
    client: Client,
    /// What agents are to trust in place of what is good here.
    authority: Option<String>,
}

impl Desk for ServerDesk {
    async fn poll(&self, poll: ClusterPoll) -> Result<ClusterAnswer, String> {
        let asked = self.client.post("/cluster/v1/poll", &poll).await;
        let mut answer: ClusterAnswer = asked.map_err(|error| error.to_string())?;
        if let Some(authority) = &self.authority {
            answer.launch.iter_mut().for_each(|launch| launch.authority.clone_from(authority));
        }
        Ok(answer)
    }

    async fn report(&self, report: ClusterReport) -> Result<(), String> {
        self.client.post::<Value>("/cluster/v1/report", &report).await.map(drop).map_err(|error| error.to_string())
    }

    fn now(&self) -> Timestamp {
        server::clock::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_no_tunnel_leads_to_are_told_an_address_and_who_signed_what_they_see_there() {
        let folder = tempfile::tempdir().unwrap();
        let sites = |listens: &str| Sites {
            store: Store::open(folder.path()).unwrap(),
            home: folder.path().to_owned(),
            program: PathBuf::new(),
            url: "https://127.0.0.1:9".to_owned(),
            authority: "own".to_owned(),
            outside: (listens.to_owned(), "operator's".to_owned()),
        };
        for (listens, named, expect) in [
            ("https://localhost:7423", Some("https://ml:7423"), ("https://ml:7423", "operator's")),
            ("https://localhost:7423", None, ("https://127.0.0.1:9", "own")),
            ("https://127.0.0.1:7423", None, ("https://127.0.0.1:9", "own")),
            ("https://[::1]:7423", None, ("https://127.0.0.1:9", "own")),
            ("https://10.0.0.5:7423", None, ("https://10.0.0.5:7423", "operator's")),
        ] {
            let (url, authority) = sites(listens).way_of_others(named.map(str::to_owned));
            assert_eq!((url.as_str(), authority.as_str()), expect, "{listens} {named:?}");
        }
    }
}
