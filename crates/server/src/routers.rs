//! What routers are told and tell: routes one way, demand the other.
//!
//! A router has the routes of the site it stands at: this machine ([`store::HERE`]) or a cluster, whose replicas it can
//! reach and no others. Every router holds one version of them. It says which, what is asked of it and which replicas it has not let go of
//! yet, and gets the next version as soon as there is one. Invariants: versions only grow, also over a restart; a replica
//! counts as used until every router that was heard of lately holds routes without it and is done with it.

mod build;
mod history;

pub(crate) use build::{endpoint_token, site_of};
pub(crate) use history::{STEP_MS, Step};

use crate::http::records::Kind;
use domain::{
    Timestamp,
    serving::{Demand, RouterAnswer, RouterNews},
    spec::routes::Routes,
};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};
use store::{Bell, Error, RecordKey, ServingKey, Store};
use tokio::time::Instant;

/// A router that was not heard of for this long has nothing to say.
const FORGET_MS: i64 = 10_000;
/// How many versions are remembered; a router that holds an older one may use anything.
const REMEMBERED: usize = 64;
/// How long a token is good that is used at once.
const BEARER_MS: i64 = 60_000;
/// Changes that come close together make one version.
const PAUSE: Duration = Duration::from_millis(5);

/// A handle that all who speak with routers share.
#[derive(Clone)]
pub struct Routers(Arc<Inner>);

/// What is counted of an endpoint, by its name.
type Counters = Box<dyn Fn(&str) -> String + Send + Sync>;

struct Inner {
    store: Store,
    /// Where the keys lie that web tokens are signed with.
    keys: Option<PathBuf>,
    /// Of the router in this process.
    counters: OnceLock<Counters>,
    clock: fn() -> Timestamp,
    /// One at a time reads what the routes are, so that what is read last also stays.
    reading: tokio::sync::Mutex<()>,
    /// By site. Addresses of one site mean nothing at another.
    state: Mutex<HashMap<String, State>>,
    history: Mutex<history::History>,
}

/// What is known of a site.
#[derive(Default)]
struct State {
    version: u64,
    routes: Arc<Routes>,
    /// Replicas by version.
    versions: VecDeque<(u64, HashSet<SocketAddr>)>,
    heard: HashMap<String, Heard>,
}

struct Heard {
    at: Timestamp,
    news: RouterNews,
}

impl fmt::Debug for Routers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Routers")
    }
}

impl Routers {
    pub fn new(store: Store, clock: fn() -> Timestamp) -> Routers {
        Routers::of_home(store, None, clock)
    }

    /// Routers that also believe web tokens signed with the keys of a home.
    pub fn with_keys(store: Store, keys: &Path, clock: fn() -> Timestamp) -> Routers {
        Routers::of_home(store, Some(crate::auth::tokens_folder(keys)), clock)
    }

    fn of_home(store: Store, keys: Option<PathBuf>, clock: fn() -> Timestamp) -> Routers {
        Routers(Arc::new(Inner {
            counters: OnceLock::new(),
            store,
            keys,
            clock,
            reading: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            history: Mutex::default(),
        }))
    }

    /// Shows the counters of the router in this process from now on.
    pub fn show_counters(&self, counters: impl Fn(&str) -> String + Send + Sync + 'static) {
        // There is one router in a process, so nobody comes second.
        let _ = self.0.counters.set(Box::new(counters));
    }

    /// What was counted of an endpoint in this process, in Prometheus text; nothing where no router runs in it.
    pub(crate) fn counters(&self, endpoint: &str) -> String {
        self.0.counters.get().map_or_else(String::new, |counters| counters(endpoint))
    }

    /// What an endpoint has answered in the last hours, at all routers together, oldest first.
    pub(crate) fn history(&self, endpoint: &str) -> Vec<Step> {
        self.past().of(endpoint)
    }

    /// Hears a router of a site, and answers with routes other than those it holds, as soon as there are any within `wait`.
    pub async fn exchange(&self, site: &str, news: RouterNews, wait: Duration) -> Result<RouterAnswer, Error> {
        let held = news.held;
        self.hear(site, news);
        let mut bell = self.0.store.changed(Bell::Serving);
        let deadline = Instant::now() + wait;
        loop {
            bell.mark_unchanged();
            let (version, routes) = self.current(site).await?;
            if version != held {
                return Ok(RouterAnswer { version, routes: Some(Routes::clone(&routes)) });
            }
            if Instant::now() + PAUSE >= deadline {
                return Ok(RouterAnswer { version, routes: None });
            }
            let _ = tokio::time::timeout_at(deadline, bell.changed()).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The routes of a site as they are now.
    pub async fn current(&self, site: &str) -> Result<(u64, Arc<Routes>), Error> {
        let _turn = self.0.reading.lock().await;
        let wanted = site.to_owned();
        let (inner, now) = (Arc::clone(&self.0), (self.0.clock)());
        let signers = move || {
            let keys = inner.keys.as_deref().and_then(|folder| crate::auth::Keys::load(folder).ok());
            keys.map(|keys| keys.public(now)).unwrap_or_default()
        };
        let routes = self.0.store.read(move |tx| build::routes(tx, &wanted, signers, now)).await?;
        let mut sites = self.sites();
        let state = sites.entry(site.to_owned()).or_default();
        if state.version == 0 || *state.routes != routes {
            let now = u64::try_from((self.0.clock)().0).unwrap_or(0);
            state.version = now.max(state.version + 1);
            let replicas = routes.endpoints.values().flat_map(|endpoint| endpoint.deployments.values());
            let version =
                (state.version, replicas.flat_map(|deployment| deployment.replicas.iter().copied()).collect());
            state.versions.push_back(version);
            while state.versions.len() > REMEMBERED {
                state.versions.pop_front();
            }
            state.routes = Arc::new(routes);
            self.past().keep(|endpoint| sites.values().any(|state| state.routes.endpoints.contains_key(endpoint)));
            let state = &sites[site];
            return Ok((state.version, Arc::clone(&state.routes)));
        }
        Ok((state.version, Arc::clone(&state.routes)))
    }

    /// What is asked of every deployment, at all routers together.
    pub fn demand(&self) -> Vec<Demand> {
        let now = (self.0.clock)();
        let mut sum: HashMap<(String, String), Demand> = HashMap::new();
        let sites = self.sites();
        let heard = sites.values().flat_map(|state| state.heard.values());
        for demand in heard.filter(|heard| heard.is_fresh(now)).flat_map(|heard| &heard.news.demand) {
            let key = (demand.endpoint.clone(), demand.deployment.clone());
            match sum.get_mut(&key) {
                Some(all) => {
                    all.in_flight = all.in_flight.saturating_add(demand.in_flight);
                    all.queued = all.queued.saturating_add(demand.queued);
                }
                None => drop(sum.insert(key, demand.clone())),
            }
        }
        sum.into_values().collect()
    }

    /// Whether a router of a site may still send requests there, or waits for an answer from there.
    pub fn uses(&self, site: &str, address: SocketAddr) -> bool {
        let (now, sites) = ((self.0.clock)(), self.sites());
        let Some(state) = sites.get(site) else { return site != store::HERE };
        let mut fresh = state.heard.values().filter(|heard| heard.is_fresh(now)).peekable();
        // Routers elsewhere go on without us.
        if site != store::HERE && fresh.peek().is_none() {
            return true;
        }
        fresh.any(|heard| {
            let held = state.versions.iter().find(|(version, _)| *version == heard.news.held);
            heard.news.leaving.contains(&address) || held.is_none_or(|(_, replicas)| replicas.contains(&address))
        })
    }

    /// Whether the routers of a site that were heard of lately hold the routes as they are now; not where there are none.
    pub fn is_followed(&self, site: &str) -> bool {
        let (now, sites) = ((self.0.clock)(), self.sites());
        let Some(state) = sites.get(site) else { return false };
        let mut fresh = state.heard.values().filter(|heard| heard.is_fresh(now)).peekable();
        fresh.peek().is_some() && fresh.all(|heard| heard.news.held == state.version)
    }

    /// A key or token that opens the endpoint of a deployment; `Conflict` when the endpoint is gone.
    pub async fn bearer(&self, key: &ServingKey) -> Result<String, Error> {
        let kind = Kind::OnlineEndpoint.table().to_owned();
        let (workspace, name) = (key.workspace.clone(), key.endpoint.clone());
        let record = RecordKey { workspace, kind, parent: String::new(), name };
        let expires = Timestamp((self.0.clock)().0 + BEARER_MS);
        self.0.store.read(move |tx| build::bearer(tx, &record, expires)).await?.ok_or(Error::Conflict)
    }

    fn hear(&self, site: &str, news: RouterNews) {
        let now = (self.0.clock)();
        let mut sites = self.sites();
        let state = sites.entry(site.to_owned()).or_default();
        state.heard.retain(|_, heard| heard.is_fresh(now));
        let waits = |news: &RouterNews| news.demand.iter().any(|demand| demand.queued > 0 && demand.replicas == 0);
        let before = state.heard.get(&news.router).map(|heard| &heard.news);
        if let Some(before) = before {
            self.past().add(&before.answered, &news.answered, now);
        }
        // Someone waits for a first replica, or a replica may be free now.
        let wakes = waits(&news) || before.is_none_or(|old| old.held != news.held || old.leaving != news.leaving);
        state.heard.insert(news.router.clone(), Heard { at: now, news });
        drop(sites);
        if wakes {
            self.0.store.ring(Bell::Serving);
        }
    }

    fn past(&self) -> MutexGuard<'_, history::History> {
        self.0.history.lock().expect("nothing panics while it holds the history")
    }

    fn sites(&self) -> MutexGuard<'_, HashMap<String, State>> {
        self.0.state.lock().expect("nothing panics while it holds the state")
    }
}

impl Heard {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.0 - self.at.0 < FORGET_MS
    }
}
