//! What every handler is given.

use crate::{metrics::Metrics, problem::Problem};
use api::arm::Scope;
use axum::http::{HeaderMap, header};
use domain::{
    AttemptId, InstanceType, Resources, Timestamp, cluster::ClusterFacts, report::NodeFacts,
    resources::DEFAULT_INSTANCE_TYPE,
};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicUsize},
};
use store::{Store, Tx, WorkspaceRow, files::Files};

/// An agent that was not heard of for this long does not answer. It writes itself down more often than this.
const SILENT_MS: i64 = 60_000;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    pub version: String,
    pub subscription: String,
    pub resource_group: String,
    /// The workspace every server has.
    pub workspace: String,
    /// How clients reach this server, where that is not the address it listens on.
    pub public_url: Option<String>,
    /// The authority that signed this server's certificate, in PEM; empty where the system's are enough.
    pub authority: String,
    /// The file of authorities that jobs on this machine are told to trust.
    pub bundle: Option<std::path::PathBuf>,
    /// The operator's own instance types of the local target.
    pub instance_types: Vec<InstanceType>,
    /// Jobs whose environment names an image must run in a container.
    pub isolation_required: bool,
    /// How often a job is tried again when its node was lost.
    pub max_retries: u32,
    /// The most bytes the stores of a workspace may hold; 0 is no limit.
    pub storage_quota: u64,
    /// After how long what someone has used counts half.
    pub half_life: std::time::Duration,
    /// A client that neither sends nor takes a byte for this long is given up.
    pub idle: std::time::Duration,
    /// Requests a second that one caller may make; 0 for no limit.
    pub rate_limit: u32,
    /// Webhooks may call plain http, this machine and private networks.
    pub private_webhooks: bool,
    /// How long deleted runs and experiments can be brought back; for ever where this is nothing.
    pub keep_deleted: Option<std::time::Duration>,
    /// Where the router of this server answers, as callers reach it; the server's own address where there is none.
    pub scoring_url: Option<String>,
    /// What is known of routers, where others know of it too.
    pub routers: Option<crate::routers::Routers>,
    /// How long the certificate of a node is good.
    pub node_certificate: std::time::Duration,
    pub clock: fn() -> Timestamp,
}

/// Shared by all requests; cheap to clone.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
    /// `https://host:port`, as those who come through this door reach the server.
    pub(crate) url: Arc<String>,
    /// The authority that they are to trust, in PEM; empty where the system's are enough.
    pub(crate) authority: Arc<String>,
    /// This is the door for what runs on this machine, or comes to it through a tunnel.
    within: bool,
}

pub struct Inner {
    pub store: Store,
    pub files: Files,
    pub settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) tokens: crate::auth::Tokens,
    pub(crate) limits: crate::auth::Limits,
    pub(crate) sessions: crate::auth::sessions::Sessions,
    pub(crate) webhooks: crate::webhooks::Sender,
    pub(crate) routers: crate::routers::Routers,
    /// `https://host:port`, as clients on other machines reach this server. What is kept or shown to people has this one.
    pub(crate) outside: String,
    /// All workspaces, by their names in lower case.
    workspaces: Mutex<HashMap<String, Arc<WorkspaceRow>>>,
    reloading: tokio::sync::Mutex<()>,
    pub(crate) nodes: Mutex<HashMap<String, Seen>>,
    /// Agents of attempts elsewhere.
    pub(crate) calls: crate::calls::Calls,
    /// Streams to services of jobs.
    pub(crate) tunnels: crate::tunnels::Tunnels,
    pub(crate) clusters: Mutex<HashMap<String, Watched>>,
    /// Blobs on their way in or out.
    pub(crate) transfers: AtomicUsize,
    started_at: Timestamp,
}

/// What is remembered of a node between two writes of it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) facts: NodeFacts,
    pub(crate) written_at: Timestamp,
    /// When all its attempts were last compared with what it holds.
    pub(crate) compared_at: Timestamp,
}

/// What is remembered of a cluster between two polls of its operator.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pub(crate) written_at: Timestamp,
    /// What the operator calls the facts it has.
    pub(crate) facts: String,
    /// When they were asked for.
    pub(crate) asked_at: Option<Timestamp>,
    /// Attempts that should be there and are not, and since when.
    pub(crate) missing: HashMap<AttemptId, Timestamp>,
    /// What the cluster has, once it was told or read.
    pub(crate) told: Option<Arc<ClusterFacts>>,
    /// Attempts that are to stop and whose agents were told so.
    pub(crate) stopped: HashSet<AttemptId>,
    /// When checks were last sent.
    pub(crate) checks: HashMap<String, Timestamp>,
    /// What its operator last said is there, and when; nothing before it was heard of.
    pub(crate) holds: Option<(HashSet<AttemptId>, Timestamp)>,
    /// The uid of another cluster that came with this one's token, and when.
    pub(crate) stranger: Option<(String, Timestamp)>,
}

impl std::ops::Deref for App {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl App {
    pub(crate) fn new(store: Store, settings: Settings, tokens: crate::auth::Tokens, url: String) -> App {
        let files = store.files().clone();
        let started_at = (settings.clock)();
        let own = || crate::routers::Routers::new(store.clone(), settings.clock);
        let routers = settings.routers.clone().unwrap_or_else(own);
        let authority = Arc::new(settings.authority.clone());
        let door = Arc::new(url.clone());
        let inner = Arc::new(Inner {
            files,
            metrics: Metrics::default(),
            tokens,
            limits: crate::auth::Limits::new(settings.rate_limit),
            sessions: crate::auth::sessions::Sessions::default(),
            webhooks: crate::webhooks::Sender::new(crate::webhooks::Reach { anywhere: settings.private_webhooks }),
            routers,
            settings,
            outside: url,
            workspaces: Mutex::default(),
            reloading: tokio::sync::Mutex::default(),
            nodes: Mutex::default(),
            calls: crate::calls::Calls::default(),
            tunnels: crate::tunnels::Tunnels::default(),
            clusters: Mutex::default(),
            transfers: AtomicUsize::new(0),
            started_at,
            store,
        });
        App { inner, url: door, authority, within: false }
    }

    /// The same server as it is known to those on its own machine.
    pub(crate) fn at(&self, url: &str, authority: String) -> App {
        App { url: Arc::new(url.to_owned()), authority: Arc::new(authority), within: true, ..self.clone() }
    }

    pub fn now(&self) -> Timestamp {
        (self.settings.clock)()
    }

    /// The workspace of a request, or a 404 that names those that exist.
    pub(crate) async fn workspace(&self, name: &str) -> Result<Arc<WorkspaceRow>, Problem> {
        if let Some(row) = self.known().get(&name.to_ascii_lowercase()) {
            return Ok(Arc::clone(row));
        }
        let wanted = name.to_owned();
        let (found, names) = self
            .store
            .read(move |tx| {
                let found = tx.workspace(&wanted)?;
                let names = tx.workspaces()?.into_iter().map(|row| row.name).collect::<Vec<_>>();
                Ok((found, names))
            })
            .await?;
        found.map(Arc::new).ok_or_else(|| Problem::missing("workspace", name, &names))
    }

    /// The workspace that has this id.
    pub(crate) fn workspace_of_id(&self, id: &str) -> Option<Arc<WorkspaceRow>> {
        self.known().values().find(|row| row.id.eq_ignore_ascii_case(id)).map(Arc::clone)
    }

    /// Whose assets and files: a workspace, or with `@` a registry, shown as a workspace of that name.
    pub(crate) async fn owner(&self, name: &str) -> Result<Arc<WorkspaceRow>, Problem> {
        match name.strip_prefix('@') {
            Some(registry) => crate::http::registries::as_owner(self, registry).await.map(Arc::new),
            None => self.workspace(name).await,
        }
    }

    /// Reads all workspaces anew, at the start and after every change of one.
    pub(crate) async fn reload_workspaces(&self) -> Result<(), store::Error> {
        // In turns, so that what is read last is also what stays.
        let _turn = self.reloading.lock().await;
        let rows = self.store.read(|tx| tx.workspaces()).await.inspect_err(|_| self.known().clear())?;
        *self.known() = rows.into_iter().map(|row| (row.name.to_ascii_lowercase(), Arc::new(row))).collect();
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<WorkspaceRow>>> {
        self.workspaces.lock().expect("nothing panics while it holds the table")
    }

    /// Whether the agent should have been heard of by now and was not: what runs there may run or not.
    pub(crate) fn agent_is_silent(&self) -> bool {
        let nodes = self.nodes.lock().expect("nothing panics while it holds the table");
        let heard = nodes.values().map(|seen| seen.written_at).fold(self.started_at, Timestamp::max);
        self.now().0 - heard.0 > SILENT_MS
    }

    /// The same of the operator of a cluster.
    pub(crate) fn cluster_is_silent(&self, cluster: &str) -> bool {
        let heard = self.watched(cluster, |watched| watched.written_at).max(self.started_at);
        self.now().0 - heard.0 > SILENT_MS
    }

    /// Looks at, or changes, what is remembered of a cluster.
    pub(crate) fn watched<T>(&self, cluster: &str, work: impl FnOnce(&mut Watched) -> T) -> T {
        let mut clusters = self.clusters.lock().expect("nothing panics while it holds the table");
        work(clusters.entry(cluster.to_owned()).or_default())
    }

    /// What a cluster has, as its operator last told. They are many where it is large, so they are read once.
    pub(crate) fn facts(&self, tx: &mut Tx<'_>, cluster: &str) -> Result<Arc<ClusterFacts>, store::Error> {
        if let Some(told) = self.watched(cluster, |watched| watched.told.clone()) {
            return Ok(told);
        }
        let read = Arc::new(tx.facts(cluster)?);
        self.watched(cluster, |watched| watched.told = Some(Arc::clone(&read)));
        Ok(read)
    }

    /// The address of this server as the sender of a request reached it, so that others there reach it too.
    pub(crate) fn reached_by(&self, headers: &HeaderMap) -> String {
        let plain = |host: &&str| host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:[]".contains(&b));
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(plain);
        // Who comes through a tunnel knows no other way than its own end of it.
        match host.filter(|host| !host.is_empty() && (self.within || self.settings.public_url.is_none())) {
            Some(host) => format!("https://{host}"),
            None => self.url.to_string(),
        }
    }

    /// What this machine offers, once its agent has said so.
    pub(crate) fn capacity(&self) -> Option<Resources> {
        let nodes = self.nodes.lock().expect("nothing panics while it holds the table");
        nodes.values().map(|seen| seen.facts.capacity).next()
    }

    /// Gives an agent that has just been started a moment to say what its machine offers: without that, work that
    /// never fits could not be told from work that does.
    pub(crate) async fn until_capacity_is_known(&self) {
        for _ in 0..100 {
            if self.capacity().is_some() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// The instance types of the local target: the operator's, then the built-in ones.
    pub(crate) fn instance_types(&self) -> Vec<InstanceType> {
        let mut all = self.settings.instance_types.clone();
        let mut add = |name: &str, gpus: u32| {
            if !all.iter().any(|known| known.name == name) {
                let requests = Resources { cpu_milli: 1000, memory_bytes: 0, gpus };
                all.push(InstanceType { name: name.to_owned(), requests, limits: None });
            }
        };
        add(DEFAULT_INSTANCE_TYPE, 0);
        for gpus in 1..=self.capacity().map_or(0, |capacity| capacity.gpus) {
            add(&if gpus == 1 { "gpu".to_owned() } else { format!("gpu-{gpus}x") }, gpus);
        }
        all
    }
}

/// Whether the workspace that an address names, by name or id, is this one. An address that names none is read here.
pub(crate) fn is_here(row: &WorkspaceRow, named: Option<&str>) -> bool {
    named.is_none_or(|named| [&row.name, &row.id].iter().any(|own| own.eq_ignore_ascii_case(named)))
}

pub(crate) fn scope(row: &WorkspaceRow) -> Scope {
    Scope { subscription: row.subscription.clone(), group: row.resource_group.clone(), workspace: row.name.clone() }
}
