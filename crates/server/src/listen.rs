//! Listening: https always, plain http beside it where asked, both on the same router.
//!
//! A connection that fails or misbehaves ends alone. On shutdown the doors close first, then requests in
//! flight get a moment to finish.

use crate::{
    app::{App, Settings},
    auth::Tokens,
    canonical::canonical,
    patience::{Patient, Timely},
    router::router,
    tls::{Certificates, Reloading, TlsError},
};
use axum::{Router, body::Body, extract::Request};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, io, net::SocketAddr, os::fd::AsFd, path::Path, sync::Arc, time::Duration};
use store::Store;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
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
    acceptor: TlsAcceptor,
    certificate: Arc<Reloading>,
    pub url: String,
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
    let (config, certificate) = certificates.config()?;
    let acceptor = TlsAcceptor::from(config);
    Ok(Listening { https, http, acceptor, certificate, url: format!("https://{host}:{}", bound.port()) })
}

impl Listening {
    /// Copies of the sockets: https, then http where there is one.
    pub fn sockets(&self) -> io::Result<Vec<std::net::TcpListener>> {
        let all = std::iter::once(&self.https).chain(&self.http);
        all.map(|socket| socket.as_fd().try_clone_to_owned().map(Into::into)).collect()
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
    let router = router(app);
    let (closing, closes) = watch::channel(false);
    let mut connections = JoinSet::new();
    let fresh = listening.certificate.keep_fresh();
    tokio::pin!(fresh);
    loop {
        tokio::select! {
            accepted = listening.https.accept() => {
                let Ok((stream, peer)) = accepted else { breathe().await; continue };
                let _ = stream.set_nodelay(true);
                let (acceptor, router, closes) = (listening.acceptor.clone(), router.clone(), closes.clone());
                connections.spawn(async move {
                    let handshake = tokio::time::timeout(Duration::from_secs(10), acceptor.accept(stream)).await;
                    if let Ok(Ok(stream)) = handshake {
                        converse(stream, peer, router, closes, idle).await;
                    }
                });
            }
            accepted = accept_plain(listening.http.as_ref()) => {
                let Ok((stream, peer)) = accepted else { breathe().await; continue };
                let _ = stream.set_nodelay(true);
                connections.spawn(converse(stream, peer, router.clone(), closes.clone(), idle));
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

async fn accept_plain(listener: Option<&TcpListener>) -> io::Result<(tokio::net::TcpStream, SocketAddr)> {
    match listener {
        Some(listener) => listener.accept().await,
        None => std::future::pending().await,
    }
}

/// Out of file descriptors, most likely; trying again at once would only spin.
async fn breathe() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: SocketAddr,
    router: Router,
    mut closes: watch::Receiver<bool>,
    idle: Duration,
) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let mut router = router.clone();
        let mut request: Request = request.map(|body| Body::new(Timely::new(body, idle)));
        request.extensions_mut().insert(Peer(peer));
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
