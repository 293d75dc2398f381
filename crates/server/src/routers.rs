//! What routers are told and tell: routes one way, demand the other.
//!
//! A router has the routes of the site it stands at: this machine ([`store::HERE`]) or a cluster, whose replicas it can
//! reach and no others. Every router holds one version of them. It says which, what is asked of it and which replicas it has not let go of
//! yet, and gets the next version as soon as there is one. Invariants: versions only grow, also over a restart; a replica
//! counts as used until every router that was heard of lately holds routes without it and is done with it; nothing counts as
//! unused before the routers of an earlier server had the time to speak.

mod build;
mod counted;
mod history;

pub(crate) use build::{CORS, MAX_BODY, endpoint_token, site_of};
pub(crate) use history::{STEP_MS, Step};

use crate::http::records::Kind;
use domain::{
    Timestamp,
    serving::{Demand, RouterAnswer, RouterNews, SlotShare, Use},
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

/// What a router counts, in Prometheus text.
type Metrics = Box<dyn Fn() -> String + Send + Sync>;

struct Inner {
    store: Store,
    /// Where the keys lie that web tokens are signed with.
    keys: Option<PathBuf>,
    /// Of the router in this process.
    metrics: OnceLock<Metrics>,
    /// The loopback of this process; see [`RouterNews::loopback`].
    loopback: OnceLock<String>,
    clock: fn() -> Timestamp,
    /// When this server began to listen to routers.
    began: Timestamp,
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
    /// When it last had something to do.
    busy_at: Timestamp,
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
            metrics: OnceLock::new(),
            loopback: OnceLock::new(),
            store,
            keys,
            clock,
            began: clock(),
            reading: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            history: Mutex::default(),
        }))
    }

    /// Shows what the router in this process counts from now on.
    pub fn show_metrics(&self, metrics: impl Fn() -> String + Send + Sync + 'static) {
        // There is one router in a process, so nobody comes second.
        let _ = self.0.metrics.set(Box::new(metrics));
    }

    /// What the router in this process has counted, in Prometheus text; nothing where none runs in it.
    pub(crate) fn metrics(&self) -> String {
        self.0.metrics.get().map_or_else(String::new, |metrics| metrics())
    }

    /// What all routers together have counted of an endpoint since this server began, in Prometheus text; nothing where no
    /// router that serves it was heard of lately.
    pub(crate) fn counters(&self, endpoint: &str) -> String {
        let (now, sites) = ((self.0.clock)(), self.sites());
        let serves = |state: &&State| {
            let fresh = state.heard.values().any(|heard| heard.is_fresh(now));
            fresh && state.routes.endpoints.contains_key(endpoint)
        };
        let Some(state) = sites.values().find(serves) else { return String::new() };
        let there = state.routes.endpoints[endpoint].deployments.keys().cloned().collect();
        drop(sites);
        counted::text(endpoint, &there, self.past().totals(endpoint))
    }

    /// What an endpoint has answered in the last hours, at all routers together, oldest first.
    pub(crate) fn history(&self, endpoint: &str) -> Vec<Step> {
        self.past().of(endpoint)
    }

    /// Hears a router of a site, and answers with routes other than those it holds, as soon as there are any within `wait`.
    pub async fn exchange(&self, site: &str, news: RouterNews, wait: Duration) -> Result<RouterAnswer, Error> {
        let (held, name, near) = (news.held, news.router.clone(), self.is_near(site, &news));
        self.hear(site, news);
        let mut bell = self.0.store.changed(Bell::Serving);
        let deadline = Instant::now() + wait;
        loop {
            bell.mark_unchanged();
            let (version, routes) = self.current(site).await?;
            if version != held {
                let (routes, left_out) = if near { (Routes::clone(&routes), 0) } else { without_loopback(&routes) };
                let share = self.share(site, &name);
                return Ok(RouterAnswer { version, routes: Some(routes), share, left_out });
            }
            if Instant::now() + PAUSE >= deadline {
                let share = self.share(site, &name);
                return Ok(RouterAnswer { version, share, ..RouterAnswer::default() });
            }
            let _ = tokio::time::timeout_at(deadline, bell.changed()).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Which part of the replicas' slots a router may use: those of its site that had something to do lately share them.
    fn share(&self, site: &str, router: &str) -> SlotShare {
        let (now, sites) = ((self.0.clock)(), self.sites());
        let Some(state) = sites.get(site) else { return SlotShare::default() };
        let busy = |heard: &Heard| heard.is_fresh(now) && now.0 - heard.busy_at.0 < FORGET_MS;
        let mut at_work: Vec<&str> =
            state.heard.iter().filter(|(_, heard)| busy(heard)).map(|(name, _)| &**name).collect();
        at_work.sort_unstable();
        match at_work.iter().position(|name| *name == router) {
            Some(index) => SlotShare { index: count(index), of: count(at_work.len()) },
            // One that is asked for the first time begins as if it were one more.
            None => SlotShare { index: count(at_work.len()), of: count(at_work.len() + 1) },
        }
    }

    /// Whether a router of this machine's site reaches what listens on the loopback of this machine.
    fn is_near(&self, site: &str, news: &RouterNews) -> bool {
        let here = self.0.loopback.get().map(String::as_str).unwrap_or_default();
        site != store::HERE || news.loopback.is_empty() || here.is_empty() || news.loopback == here
    }

    /// Says which loopback the replicas of this machine listen on.
    pub fn stand_at(&self, loopback: String) {
        // A process has one, so nobody comes second.
        let _ = self.0.loopback.set(loopback);
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
    pub fn uses(&self, site: &str, address: SocketAddr) -> Use {
        let (now, sites) = ((self.0.clock)(), self.sites());
        let fresh = |state: &State| -> Vec<Use> {
            let fresh = state.heard.values().filter(|heard| heard.is_fresh(now));
            fresh.map(|heard| state.says(heard, address)).collect()
        };
        let said = sites.get(site).map(fresh).unwrap_or_default();
        // Routers beside this one may not have found it yet, and those elsewhere go on without us.
        let unheard = now.0 - self.0.began.0 < FORGET_MS || (site != store::HERE && said.is_empty());
        match unheard || said.contains(&Use::Unknown) {
            _ if said.contains(&Use::Yes) => Use::Yes,
            true => Use::Unknown,
            false => Use::No,
        }
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
        let worked = before.is_some_and(|old| old.answered != news.answered) || news.demand.iter().any(is_asked);
        let busy_at =
            if worked { now } else { state.heard.get(&news.router).map_or(Timestamp(0), |heard| heard.busy_at) };
        // Someone waits for a first replica, or a replica may be free now.
        let wakes = waits(&news) || before.is_none_or(|old| old.held != news.held || old.leaving != news.leaving);
        state.heard.insert(news.router.clone(), Heard { at: now, busy_at, news });
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

fn is_asked(demand: &Demand) -> bool {
    demand.in_flight > 0 || demand.queued > 0
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Routes for a router on another machine, which would send requests to its own loopback; and how many replicas they lack.
fn without_loopback(routes: &Routes) -> (Routes, usize) {
    let (mut routes, mut left_out) = (routes.clone(), 0);
    for deployment in routes.endpoints.values_mut().flat_map(|endpoint| endpoint.deployments.values_mut()) {
        let all = deployment.replicas.len();
        deployment.replicas.retain(|replica| !replica.ip().is_loopback());
        left_out += all - deployment.replicas.len();
    }
    (routes, left_out)
}

impl State {
    /// Whether a router uses a replica, by the routes it holds and by what it says.
    fn says(&self, heard: &Heard, address: SocketAddr) -> Use {
        let held = self.versions.iter().find(|(version, _)| *version == heard.news.held);
        match held {
            _ if heard.news.leaving.contains(&address) => Use::Yes,
            None => Use::Unknown,
            Some((_, replicas)) if replicas.contains(&address) => Use::Yes,
            Some(_) => Use::No,
        }
    }
}

impl Heard {
    fn is_fresh(&self, now: Timestamp) -> bool {
        now.0 - self.at.0 < FORGET_MS
    }
}
