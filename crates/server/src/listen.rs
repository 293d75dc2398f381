//! Listening: https always, plain http beside it where asked, both on the same router. Where https shows a certificate of the
//! operator's, there is a door on loopback too with one of our own, for what runs on this machine.
//!
//! Whoever comes through a door is told addresses and an authority that are good there.
//! A connection that fails or misbehaves ends alone. On shutdown the doors close first, then requests in
//! flight get a moment to finish.

use crate::{
    app::{App, Settings},
    auth::{Shown, Tokens},
    canonical::canonical,
    patience::{Patient, Timely},
    router::router,
    tls::{Certificates, Reloading, TlsError},
};
use axum::{Router, body::Body, extract::Request};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    convert::Infallible,
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    os::fd::AsFd,
    path::Path,
    sync::Arc,
    time::Duration,
};
use store::Store;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

/// The other end of a request's connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Sockets that are bound, and the address clients use.
pub struct Listening {
    https: TcpListener,
    http: Option<TcpListener>,
    inner: Option<(TcpListener, TlsAcceptor)>,
    acceptor: TlsAcceptor,
    certificate: Arc<Reloading>,
    pub url: String,
    /// The address for what runs on this machine, with a certificate of our own authority.
    pub local_url: String,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    #[error("cannot use the certificate")]
    Tls(#[from] TlsError),
    #[error("cannot make the keys of this home")]
    Keys(#[source] io::Error),
    #[error("cannot set up the workspace")]
    Store(#[from] store::Error),
}

/// Sockets of an earlier server, with callers that wait at them.
#[derive(Debug, Default)]
pub struct Kept {
    pub https: Option<std::net::TcpListener>,
    pub http: Option<std::net::TcpListener>,
    pub inner: Option<std::net::TcpListener>,
}

/// Binds the sockets that are not kept. With `any_port`, a taken port is replaced by a free one.
pub async fn listen(
    address: SocketAddr,
    any_port: bool,
    http: Option<SocketAddr>,
    certificates: &Certificates,
    mut kept: Kept,
) -> Result<Listening, StartError> {
    let bind = async |address: SocketAddr, kept: Option<std::net::TcpListener>| {
        let bound = match kept {
            Some(socket) => TcpListener::from_std(socket),
            None => TcpListener::bind(address).await,
        };
        bound.map_err(|error| StartError::Listen(address, error))
    };
    let https = match bind(address, kept.https.take()).await {
        Err(StartError::Listen(_, error)) if any_port && error.kind() == io::ErrorKind::AddrInUse => {
            bind(SocketAddr::new(address.ip(), 0), None).await?
        }
        other => other?,
    };
    let http = match http {
        Some(address) => Some(bind(address, kept.http.take()).await?),
        None => None,
    };
    let bound = https.local_addr().map_err(|error| StartError::Listen(address, error))?;
    let host = if bound.ip().is_unspecified() { "localhost".to_owned() } else { bound.ip().to_string() };
    let host = if bound.is_ipv6() && !bound.ip().is_unspecified() { format!("[{host}]") } else { host };
    let url = format!("https://{host}:{}", bound.port());
    // First, for our own authority is made by it where there was none.
    let (inner, local_url) = match certificates.inner()? {
        None => (None, url.clone()),
        Some(own) => {
            let (config, _) = own.asking()?;
            let socket = inner_socket(certificates.keys(), kept.inner.take()).await?;
            let bound = socket.local_addr().map_err(|error| StartError::Listen(address, error))?;
            (Some((socket, TlsAcceptor::from(config))), format!("https://{bound}"))
        }
    };
    let (config, certificate) = certificates.asking()?;
    let acceptor = TlsAcceptor::from(config);
    Ok(Listening { https, http, inner, acceptor, certificate, url, local_url })
}

/// The socket of the inner door: kept, or at the port it had, which running jobs know, or at any.
async fn inner_socket(keys: &Path, kept: Option<std::net::TcpListener>) -> Result<TcpListener, StartError> {
    let file = keys.join("inner.port");
    let last = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = match kept {
        Some(socket) => TcpListener::from_std(socket),
        None => match TcpListener::bind(at(last)).await {
            Err(_) if last != 0 => TcpListener::bind(at(0)).await,
            bound => bound,
        },
    };
    let socket = bound.map_err(|error| StartError::Listen(at(last), error))?;
    if let Ok(bound) = socket.local_addr() {
        // Without it the next start only takes another port.
        let _ = fs::write(file, bound.port().to_string());
    }
    Ok(socket)
}

impl Listening {
    /// Copies of the sockets, by the names they have in [`Kept`].
    pub fn sockets(&self) -> io::Result<Vec<(&'static str, std::net::TcpListener)>> {
        let inner = self.inner.as_ref().map(|(socket, _)| ("inner", socket));
        let all = std::iter::once(("https", &self.https)).chain(self.http.as_ref().map(|http| ("http", http)));
        all.chain(inner).map(|(name, socket)| Ok((name, socket.as_fd().try_clone_to_owned()?.into()))).collect()
    }
}

/// Serves until `stop` turns true, then lets requests in flight finish for a moment.
pub async fn serve(
    listening: Listening,
    store: Store,
    settings: Settings,
    keys: &Path,
    mut stop: watch::Receiver<bool>,
) -> Result<(), StartError> {
    let tokens = Tokens::load_or_make(keys, store.keyring(), (settings.clock)()).map_err(StartError::Keys)?;
    tokens.principals.refresh(&store).await?;
    let url = settings.public_url.clone().unwrap_or_else(|| listening.url.clone());
    let app = App::new(store, settings, tokens, url);
    app.sessions.remember(keys.join("sessions-left"), app.now()).map_err(StartError::Keys)?;
    crate::http::workspaces::ensure_default(&app).await?;
    let idle = app.settings.idle;
    let mut loops = JoinSet::new();
    loops.spawn(crate::webhooks::run(app.clone()));
    loops.spawn(crate::calendar::run(app.clone()));
    loops.spawn(crate::tunnels::run(app.clone()));
    let within = match &listening.inner {
        Some(_) => {
            let authority = fs::read_to_string(keys.join("authority.pem")).map_err(StartError::Keys)?;
            app.at(&listening.local_url, authority)
        }
        None => app.clone(),
    };
    let (router, within) = (router(app), router(within));
    let (closing, closes) = watch::channel(false);
    let mut connections = JoinSet::new();
    let fresh = listening.certificate.keep_fresh();
    tokio::pin!(fresh);
    loop {
        tokio::select! {
            accepted = listening.https.accept() => {
                let Ok((stream, peer)) = accepted else { breathe().await; continue };
                connections.spawn(greet(listening.acceptor.clone(), (stream, peer), router.clone(), closes.clone(), idle));
            }
            accepted = accept_at(listening.inner.as_ref().map(|(socket, _)| socket)) => {
                let Ok((stream, peer)) = accepted else { breathe().await; continue };
                let Some((_, acceptor)) = &listening.inner else { continue };
                connections.spawn(greet(acceptor.clone(), (stream, peer), within.clone(), closes.clone(), idle));
            }
            accepted = accept_at(listening.http.as_ref()) => {
                let Ok((stream, peer)) = accepted else { breathe().await; continue };
                let _ = stream.set_nodelay(true);
                connections.spawn(converse(stream, (peer, None), router.clone(), closes.clone(), idle));
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = &mut fresh => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    closing.send_replace(true);
    let all_gone = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(Duration::from_secs(2), all_gone).await;
    Ok(())
}

async fn accept_at(listener: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Out of file descriptors, most likely; trying again at once would only spin.
async fn breathe() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn greet(
    acceptor: TlsAcceptor,
    (stream, peer): (TcpStream, SocketAddr),
    router: Router,
    closes: watch::Receiver<bool>,
    idle: Duration,
) {
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(Duration::from_secs(10), acceptor.accept(stream)).await;
    if let Ok(Ok(stream)) = handshake {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let shown = chain.first().map(|certificate| Shown(Arc::new(certificate.clone().into_owned())));
        converse(stream, (peer, shown), router, closes, idle).await;
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (peer, shown): (SocketAddr, Option<Shown>),
    router: Router,
    mut closes: watch::Receiver<bool>,
    idle: Duration,
) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        let mut request: Request = request.map(|body| Body::new(Timely::new(body, idle)));
        request.extensions_mut().insert(Peer(peer));
        if let Some(shown) = &shown {
            request.extensions_mut().insert(shown.clone());
        }
        if let Some(uri) = canonical(request.uri()) {
            *request.uri_mut() = uri;
        }
        async move { Ok::<_, Infallible>(router.call(request).await.unwrap_or_else(|never| match never {})) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(60))
        .serve_connection(TokioIo::new(Patient::new(stream, idle)), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let went = tokio::select! {
        went = connection.as_mut() => went,
        () = async { drop(closes.wait_for(|closes| *closes).await) } => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = went {
        tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended early");
    }
}
