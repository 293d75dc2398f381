//! The router inside the server, and how any router follows a server: it tells what is asked of it and is told where
//! replicas are.
//!
//! Invariant: a router that loses its server goes on with the routes it has.

use crate::{
    config::Config,
    failure::{Done, Failure},
    local,
};
use agent::doors::Taken;
use anyhow::Context;
use domain::{
    serving::{Demand, RouterAnswer, RouterNews, Use},
    spec::routes::Routes as Table,
};
use router::{Limits, Routes, Running, Settings, StartError, TlsFiles};
use server::{Certificates, Routers};
use std::{
    collections::HashSet,
    fs,
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    pin::Pin,
    sync::Mutex,
    time::Duration,
};
use store::{Error, ServingKey, Store};
use tokio::time::{Instant, sleep};

/// How long an exchange waits for other routes: no longer than demand may be old.
pub(crate) const EXCHANGE: Duration = Duration::from_secs(1);
/// How soon it is noticed that a request waits for a first replica.
const NOTICE: Duration = Duration::from_millis(20);
/// How long to leave a server alone that cannot be asked.
const AGAIN: Duration = Duration::from_millis(500);
/// More than this no machine needs for the callers of its own models, and their sockets fit into one message.
const MOST_WORKERS: usize = 64;
/// How long a first call may take, from the moment that replicas are ready.
const PROOF: Duration = Duration::from_secs(15);

/// The router of this server.
pub(crate) struct Embedded {
    pub(crate) routes: Routes,
    pub(crate) running: Running,
    /// Where callers find it.
    pub(crate) url: String,
    /// Copies of its sockets.
    pub(crate) sockets: Vec<TcpListener>,
}

/// Starts the router of this server with the routes there are, before anyone can call it; at the sockets of the last one
/// where these are kept.
pub(crate) fn start(config: &Config, certificates: &Certificates, table: &Table, kept: &mut Taken) -> Done<Embedded> {
    let (certificate, key) = certificates.files().context("cannot use the certificate")?;
    if let Some(folder) = config.router_access_log.as_deref().and_then(Path::parent) {
        // One that cannot be made is told of with the file.
        let _ = fs::create_dir_all(folder);
    }
    let routes = Routes::new(table);
    let settings = |listen: SocketAddr| Settings {
        listen,
        workers: std::thread::available_parallelism().map_or(1, Into::into).min(MOST_WORKERS),
        tls: Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }),
        http2: true,
        admin: None,
        access_log: config.router_access_log.clone(),
        routes_file: None,
        share_port: false,
        drain: None,
        limits: Limits::default(),
        clock: server::clock::now,
    };
    let port = if config.router_listen_chosen { config.router_listen.port() } else { 0 };
    let kept = kept.claim("router", SocketAddr::new(config.router_listen.ip(), port));
    let mut tries = vec![config.router_listen];
    if !config.router_listen_chosen {
        // Endpoints keep their address when the server comes back.
        let last = fs::read_to_string(port_file(config)).ok().and_then(|text| text.trim().parse().ok());
        tries.splice(0..0, last.map(|port| SocketAddr::new(config.router_listen.ip(), port)));
        tries.push(SocketAddr::new(config.router_listen.ip(), 0));
    }
    let mut bound = Ok(kept);
    for listen in tries {
        match &bound {
            Ok(sockets) if !sockets.is_empty() => break,
            Err(StartError::Listen(_, error)) if error.kind() != ErrorKind::AddrInUse => break,
            _ => bound = router::bind_all(&settings(listen)),
        }
    }
    let started = bound.and_then(|sockets| {
        let copies = sockets.iter().map(TcpListener::try_clone).collect::<Result<_, _>>();
        let copies = copies.map_err(|error| StartError::Listen(config.router_listen, error))?;
        Ok((copies, router::start_on(sockets, settings(config.router_listen), routes.clone())?))
    });
    let (sockets, running) = started.map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let failure = Failure::input("cannot start the router").because(error.to_string()).because(cause);
        failure.hint(match error {
            StartError::AccessLog(..) => "choose another file with the setting `router.access_log`, or `off`",
            _ => "choose another address with the setting `router.listen`",
        })
    })?;
    // Without it the next start only takes another port.
    let _ = fs::write(port_file(config), running.address.port().to_string());
    let url = config.router_public_url.clone().unwrap_or_else(|| address_of(running.address));
    Ok(Embedded { routes, running, url, sockets })
}

fn port_file(config: &Config) -> PathBuf {
    config.home.join("router.port")
}

fn address_of(bound: SocketAddr) -> String {
    match bound.ip() {
        ip if ip.is_unspecified() => format!("https://localhost:{}", bound.port()),
        _ => format!("https://{bound}"),
    }
}

/// Keeps a router's routes as the server has them, for as long as it is polled.
pub(crate) async fn follow(routes: &Routes, name: &str, ask: impl AsyncFn(RouterNews) -> anyhow::Result<RouterAnswer>) {
    let (mut held, mut lost, loopback) = (0, false, self::loopback());
    loop {
        let demand = routes.demand();
        let waiting = waiting(&demand);
        let leaving: Vec<SocketAddr> = routes.leaving().into_iter().map(|(address, _)| address).collect();
        let known: HashSet<SocketAddr> = leaving.iter().copied().collect();
        let (answered, loopback) = (routes.answered(), loopback.clone());
        let news = RouterNews { router: name.to_owned(), demand, leaving, held, answered, loopback };
        let answer = tokio::select! {
            answer = ask(news) => answer,
            () = outdated(routes, &waiting, &known) => continue,
        };
        match answer {
            Ok(answer) => {
                if let Some(table) = answer.routes {
                    routes.install(&table);
                    held = answer.version;
                    if answer.left_out > 0 {
                        tracing::warn!(
                            "{} replicas cannot be reached from here: they listen on the loopback of the server's machine; \
                             run the router there, or serve the endpoint on a cluster",
                            answer.left_out
                        );
                    }
                }
                routes.share_slots(answer.share);
                lost = false;
            }
            Err(error) => {
                if !lost {
                    tracing::warn!("the router goes on with the routes it has: {error:#}");
                }
                lost = true;
                sleep(AGAIN).await;
            }
        }
    }
}

/// Which loopback is ours: that of this machine, since it was started, in this process's network. Empty where the system does not
/// say.
pub(crate) fn loopback() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = fs::read_link("/proc/self/ns/net").unwrap_or_default();
    match boot.trim() {
        "" => String::new(),
        boot => format!("{boot} {}", network.display()),
    }
}

/// Returns once a request waits for a first replica of a deployment where none did, or a replica was let go.
async fn outdated(routes: &Routes, waited: &HashSet<(String, String)>, leaving: &HashSet<SocketAddr>) {
    loop {
        sleep(NOTICE).await;
        let free = !leaving.is_empty() && routes.leaving().len() < leaving.len();
        if free || !waiting(&routes.demand()).is_subset(waited) {
            return;
        }
    }
}

/// Deployments without a replica that requests wait for.
fn waiting(demand: &[Demand]) -> HashSet<(String, String)> {
    let empty = demand.iter().filter(|demand| demand.queued > 0 && demand.replicas == 0);
    empty.map(|demand| (demand.endpoint.clone(), demand.deployment.clone())).collect()
}

/// The server that a router of its own follows; found anew when it does not answer.
pub(crate) struct Server<'c> {
    config: &'c Config,
    client: Mutex<Option<api::Client>>,
}

impl<'c> Server<'c> {
    pub(crate) fn new(config: &'c Config) -> Server<'c> {
        Server { config, client: Mutex::default() }
    }

    /// The routes there are, for a router that is about to start.
    pub(crate) async fn first(&self, name: &str) -> Done<Table> {
        let news = RouterNews { router: name.to_owned(), loopback: loopback(), ..RouterNews::default() };
        Ok(self.ask(&news).await?.routes.unwrap_or_default())
    }

    pub(crate) async fn ask(&self, news: &RouterNews) -> anyhow::Result<RouterAnswer> {
        let known = self.client.lock().expect("nothing panics while it holds the client").take();
        let client = match known {
            Some(client) => client,
            None => local::connect(self.config, false).await?,
        };
        let answer = client.post("/router/v1/exchange", news).await?;
        *self.client.lock().expect("nothing panics while it holds the client") = Some(client);
        Ok(answer)
    }
}

/// What the serving loop is told of routers.
pub(crate) struct Known {
    pub(crate) routers: Routers,
    pub(crate) store: Store,
    /// Where callers find endpoints; nobody is called where there is no router.
    pub(crate) url: Option<String>,
    /// The authority that signed the router's certificate.
    pub(crate) authority: Option<Vec<u8>>,
    /// That certificate is the operator's, and for callers: this machine need not believe it.
    pub(crate) given: bool,
}

impl controller::Routers for Known {
    fn demand(&self) -> Vec<Demand> {
        self.routers.demand()
    }

    fn uses(&self, cluster: &str, address: SocketAddr) -> Use {
        self.routers.uses(cluster, address)
    }

    fn call(&self, key: ServingKey) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        let Some(url) = self.url.clone() else { return Box::pin(std::future::ready(Ok(()))) };
        let (routers, store, given) = (self.routers.clone(), self.store.clone(), self.given);
        let here = (url, self.authority.clone());
        Box::pin(async move { call(&routers, &store, here, given, &key).await.map_err(|error| format!("{error:#}")) })
    }
}

/// Asks a deployment whether it lives, as a caller would: through its public address and with its key.
async fn call(
    routers: &Routers,
    store: &Store,
    (url, authority): (String, Option<Vec<u8>>),
    given: bool,
    key: &ServingKey,
) -> anyhow::Result<()> {
    let wanted = key.clone();
    let found = store.read(move |tx| {
        let row = tx.serving(&wanted)?.ok_or(Error::Conflict)?;
        let path = tx.serving_plan(&wanted, row.generation)?.and_then(|plan| plan.serve?.liveness.path);
        Ok((row.cluster.clone(), tx.facts(&row.cluster)?.scoring_url, path))
    });
    let (site, scoring_url, path) = found.await.context("the deployment is gone")?;
    let path = path.unwrap_or_else(|| "/".to_owned());
    let elsewhere = site != store::HERE;
    let (url, authority) = if elsewhere { (scoring_url, None) } else { (url, authority) };
    let deadline = Instant::now() + PROOF;
    while !routers.is_followed(&site) && Instant::now() < deadline {
        sleep(NOTICE).await;
    }
    if elsewhere && (url.is_empty() || !routers.is_followed(&site)) {
        anyhow::bail!(
            "the router of cluster `{site}` was not heard of, or has no address; see `peregrine extension status`"
        );
    }
    let token = routers.bearer(key).await.context("the endpoint is gone")?;
    let client = api::Client::new(api::Connection { url, token, authority })?;
    let at = format!("/api/v1/endpoint/{}/{}", key.endpoint, path.trim_start_matches('/'));
    let request = client.request(reqwest::Method::GET, &at).header("azureml-model-deployment", &key.deployment);
    let answer = match request.timeout(PROOF).send().await {
        Ok(answer) => answer,
        // Its callers may well reach a router that this machine does not, or trust a certificate that it does not.
        Err(error) if (elsewhere || given) && (error.is_connect() || error.is_timeout()) => {
            let why = domain::causes::in_one_line(&error);
            tracing::warn!(
                "deployment `{}` of endpoint `{}` was not called: this machine does not reach `{}`: {why}",
                key.deployment,
                key.endpoint,
                client.url()
            );
            return Ok(());
        }
        Err(error) => {
            return Err(error).with_context(|| format!("`{}{at}` cannot be reached", client.url()));
        }
    };
    let status = answer.status();
    // A model that answers with an error of its own has answered.
    if status.is_success()
        || status.is_redirection()
        || answer.headers().contains_key("ms-azureml-model-error-statuscode")
    {
        return Ok(());
    }
    let body = answer.text().await.unwrap_or_default();
    anyhow::bail!(
        "`GET {}{at}` was answered with {status}: {}",
        client.url(),
        body.chars().take(500).collect::<String>()
    )
}
