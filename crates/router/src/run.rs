//! Starting and stopping a router.
//!
//! Each worker is a thread with a listener of its own on the same port; one more thread answers the admin port and looks at files.
//! Stopping loses nothing: doors close, requests that run are finished, connections that are idle get a moment for last words.

use crate::{
    access_log::AccessLog,
    admin,
    file::{self, RoutesFile},
    sockets,
    table::Routes,
    tls::{Certificate, Tls, TlsError},
    worker::{self, Parts},
};
use domain::Timestamp;
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{net::TcpListener, runtime::Builder, sync::watch, task::LocalSet};

/// How a router runs.
#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    /// Threads that serve.
    pub workers: usize,
    pub tls: Option<TlsFiles>,
    /// Speak HTTP/2 with callers that want it.
    pub http2: bool,
    /// Where `/metrics`, `/readyz` and `/demand` are answered.
    pub admin: Option<SocketAddr>,
    /// A file for a line of JSON a request; `-` is standard error.
    pub access_log: Option<PathBuf>,
    /// Read this file again when it changes.
    pub routes_file: Option<RoutesFile>,
    /// Share the port with a router that is about to stop.
    pub share_port: bool,
    /// How long requests may take to finish once the router is told to stop; when absent, as long as the slowest of them may
    /// take by the routes there are then, within a minute.
    pub drain: Option<Duration>,
    pub limits: Limits,
    pub clock: fn() -> Timestamp,
}

/// PEM files; read again when they change.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// How long who may take for what.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A head, from its first byte to its last.
    pub head: Duration,
    /// A connection between two requests.
    pub idle: Duration,
    /// A caller that neither sends nor takes a byte.
    pub stall: Duration,
    /// A connection to a replica.
    pub connect: Duration,
    /// How long a connection to a replica may have been idle to be used again.
    pub pool_idle: Duration,
    /// Wrong keys that one address may try in a minute at one worker.
    pub wrong_keys_per_minute: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            stall: Duration::from_secs(30),
            connect: Duration::from_secs(2),
            pool_idle: Duration::from_secs(1),
            wrong_keys_per_minute: 60,
        }
    }
}

/// Why a router does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    #[error("cannot use the certificate")]
    Tls(#[from] TlsError),
    #[error("cannot write the access log `{}`", .0.display())]
    AccessLog(PathBuf, #[source] io::Error),
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// A router at work.
pub struct Running {
    /// Where it listens, with the port it got.
    pub address: SocketAddr,
    pub admin: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    over: watch::Sender<bool>,
    workers: Vec<JoinHandle<()>>,
    aside: Vec<JoinHandle<()>>,
}

impl Running {
    /// Tells it to take no more connections and finish what runs. Returns at once.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the last request is answered, or the time for it is over.
    pub fn join(self) {
        for worker in self.workers {
            let _ = worker.join();
        }
        self.over.send_replace(true);
        for thread in self.aside {
            let _ = thread.join();
        }
    }
}

/// Binds the sockets and starts the threads.
pub fn start(settings: Settings, routes: Routes) -> Result<Running, StartError> {
    let listeners = bind_all(&settings)?;
    start_on(listeners, settings, routes)
}

/// Starts a worker for each of these sockets, which share an address; `settings.workers` and `listen` do not matter.
pub fn start_on(
    mut listeners: Vec<std::net::TcpListener>,
    settings: Settings,
    routes: Routes,
) -> Result<Running, StartError> {
    let certificate = match &settings.tls {
        Some(files) => Some(Arc::new(Certificate::read(files)?)),
        None => None,
    };
    let tls = certificate.as_ref().map(|certificate| Tls::new(certificate, settings.http2)).transpose()?;
    let address = local(&listeners[0], settings.listen)?;
    let admin = settings.admin.map(|address| bind(address, false)).transpose()?;
    let admin_address = match (&admin, settings.admin) {
        (Some(listener), Some(address)) => Some(local(listener, address)?),
        _ => None,
    };
    let (log, writer) = match &settings.access_log {
        Some(path) => {
            let opened = AccessLog::open(path).map_err(|error| StartError::AccessLog(path.clone(), error))?;
            (Some(opened.0), Some(opened.1))
        }
        None => (None, None),
    };
    let (stop, stopped) = watch::channel(false);
    let (over, ended) = watch::channel(false);
    let mut workers = Vec::new();
    for (at, listener) in listeners.drain(..).enumerate() {
        let parts = Parts {
            routes: routes.clone(),
            limits: settings.limits,
            clock: settings.clock,
            http2: settings.http2,
            log: log.clone(),
            tls: tls.clone(),
        };
        let (stopped, drain) = (stopped.clone(), settings.drain);
        workers.push(thread(format!("worker-{at}"), async move || match TcpListener::from_std(listener) {
            Ok(listener) => worker::work(listener, parts, stopped, drain).await,
            Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "a worker cannot use its socket"),
        })?);
    }
    let mut aside: Vec<JoinHandle<()>> = writer.into_iter().collect();
    let file = settings.routes_file;
    aside.push(thread("aside".to_owned(), async move || {
        tokio::select! {
            () = admin::serve(admin, &routes, &stopped) => {}
            () = file::keep_fresh(&routes, file) => {}
            () = Certificate::keep_fresh(certificate.as_deref()) => {}
            () = until(ended) => {}
        }
    })?);
    Ok(Running { address, admin: admin_address, stop, over, workers, aside })
}

async fn until(mut over: watch::Receiver<bool>) {
    let _ = over.wait_for(|over| *over).await;
}

/// A thread with a runtime of its own.
fn thread(name: String, work: impl AsyncFnOnce() + Send + 'static) -> Result<JoinHandle<()>, StartError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(StartError::Thread)?;
    let run = move || LocalSet::new().block_on(&runtime, work());
    thread::Builder::new().name(name).spawn(run).map_err(StartError::Thread)
}

/// One listener a worker, all on the same port.
pub fn bind_all(settings: &Settings) -> Result<Vec<std::net::TcpListener>, StartError> {
    let mut address = settings.listen;
    if !settings.share_port && address.port() != 0 {
        // Sharing a port by accident would send half of the requests to the wrong router.
        drop(bind(address, false)?);
    }
    let mut listeners = Vec::new();
    for _ in 0..settings.workers.max(1) {
        let listener = bind(address, true)?;
        address = local(&listener, address)?;
        listeners.push(listener);
    }
    Ok(listeners)
}

fn bind(address: SocketAddr, shared: bool) -> Result<std::net::TcpListener, StartError> {
    let bound = || -> io::Result<std::net::TcpListener> {
        // A socket of tokio's has to be made inside a runtime.
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let bound = sockets::listen(address, shared);
        drop(inside);
        // Whoever starts a router may be inside a runtime already, where waiting for one to end is not allowed.
        runtime.shutdown_background();
        bound
    };
    bound().map_err(|error| StartError::Listen(address, error))
}

fn local(listener: &std::net::TcpListener, asked: SocketAddr) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|error| StartError::Listen(asked, error))
}
