//! One worker: a thread, its own runtime, its own listener, its own connections. Workers share the routes and nothing else
//! that a request touches.

use crate::{
    access_log::AccessLog,
    auth::wrong::WrongKeys,
    buffers::Buffers,
    chance::Chance,
    http2,
    pool::Pool,
    prepare::Caller,
    run::Limits,
    serve::{Conn, Ended},
    table::Routes,
    ticket::Ticket,
    tls::Tls,
};
use domain::Timestamp;
use std::{
    cell::{Cell, RefCell},
    io,
    net::SocketAddr,
    rc::Rc,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{Notify, watch},
    task::JoinSet,
    time::{Instant, interval, timeout},
};

/// While a router stops, connections that are idle may still send one request for this long.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Both directions of a connection.
pub(crate) trait Io: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Io for S {}

/// What the connections of one worker share.
pub(crate) struct Worker {
    pub(crate) routes: Routes,
    pub(crate) limits: Limits,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) http2: bool,
    pub(crate) log: Option<AccessLog>,
    pub(crate) buffers: Buffers,
    pub(crate) pool: Pool,
    pub(crate) chance: Chance,
    pub(crate) wrong_keys: WrongKeys,
    /// Copies under way.
    pub(crate) mirrors: RefCell<JoinSet<()>>,
    draining: Cell<bool>,
    closing: Cell<bool>,
    closed: Notify,
}

/// What a worker is made of.
pub(crate) struct Parts {
    pub(crate) routes: Routes,
    pub(crate) limits: Limits,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) http2: bool,
    pub(crate) log: Option<AccessLog>,
    pub(crate) tls: Option<Tls>,
}

impl Worker {
    fn new(parts: Parts) -> (Rc<Worker>, Option<Tls>) {
        let worker = Worker {
            routes: parts.routes,
            limits: parts.limits,
            clock: parts.clock,
            http2: parts.http2,
            log: parts.log,
            buffers: Buffers::default(),
            pool: Pool::default(),
            chance: Chance::new(),
            wrong_keys: WrongKeys::default(),
            mirrors: RefCell::default(),
            draining: Cell::new(false),
            closing: Cell::new(false),
            closed: Notify::new(),
        };
        (Rc::new(worker), parts.tls)
    }

    /// New requests are answered, and their connections closed afterwards.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Idle connections are closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// Rung when connections that are idle shall look at [`Worker::is_closing`].
    pub(crate) fn closed(&self) -> &Notify {
        &self.closed
    }

    /// Counts and logs a request that is over.
    pub(crate) fn finish(&self, ticket: Ticket) {
        let took = ticket.began.elapsed();
        let counts = match (&ticket.deployment, &ticket.endpoint) {
            (Some(deployment), _) => &deployment.live.counts,
            (None, Some(endpoint)) => &endpoint.refused,
            (None, None) => self.routes.nowhere(),
        };
        counts.add(ticket.status, took);
        if let Some(log) = &self.log {
            log.write((self.clock)(), ticket, took);
        }
    }
}

/// Serves until `stop` turns true and the last request is answered, or until `patience` after that.
pub(crate) async fn work(listener: TcpListener, parts: Parts, mut stop: watch::Receiver<bool>, patience: Duration) {
    let (worker, tls) = Worker::new(parts);
    let mut connections = JoinSet::new();
    let mut sweep = interval(Duration::from_millis(250));
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => drop(connections.spawn_local(converse(Rc::clone(&worker), stream, peer, tls.clone()))),
                // Out of file descriptors, most likely; trying again at once would only spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = sweep.tick() => worker.pool.sweep(worker.limits.pool_idle, Instant::now()),
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    worker.draining.set(true);
    // Whoever has connected already is served.
    while let Some(Ok((stream, peer))) = ready(&listener).await {
        connections.spawn_local(converse(Rc::clone(&worker), stream, peer, tls.clone()));
    }
    drop(listener);
    let end = Instant::now() + patience;
    let _ = timeout(LAST_WORDS.min(patience), all(&mut connections)).await;
    worker.closing.set(true);
    worker.closed.notify_waiters();
    let _ = tokio::time::timeout_at(end, all(&mut connections)).await;
    let mut mirrors = worker.mirrors.take();
    let _ = tokio::time::timeout_at(end, all(&mut mirrors)).await;
}

/// A connection that waits to be accepted, if there is one.
async fn ready(listener: &TcpListener) -> Option<io::Result<(TcpStream, SocketAddr)>> {
    tokio::select! {
        biased;
        accepted = listener.accept() => Some(accepted),
        () = tokio::task::yield_now() => None,
    }
}

async fn all(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

/// Serves one connection. What only TLS or HTTP/2 needs is in boxes: plain connections that are idle must stay small.
async fn converse(worker: Rc<Worker>, stream: TcpStream, peer: SocketAddr, tls: Option<Tls>) {
    let _ = stream.set_nodelay(true);
    let address = peer.ip().to_canonical();
    let caller = Caller { address, shown: address.to_string().into(), secure: tls.is_some() };
    match tls {
        None => plain(worker, stream, caller).await,
        Some(tls) => Box::pin(private(worker, stream, caller, tls)).await,
    }
}

async fn plain(worker: Rc<Worker>, stream: TcpStream, caller: Caller) {
    let sniff = worker.http2;
    let conn = Conn::new(Rc::clone(&worker), stream, caller.clone());
    if let Ended::Http2(stream, begun) = conn.run(sniff).await {
        Box::pin(http2::serve(worker, stream, begun, caller)).await;
    }
}

async fn private(worker: Rc<Worker>, stream: TcpStream, caller: Caller, tls: Tls) {
    let Some((stream, second)) = tls.accept(stream, worker.limits.head).await else { return };
    match second {
        true => http2::serve(worker, stream, Vec::new(), caller).await,
        false => drop(Conn::new(worker, stream, caller).run(false).await),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_idle_connection_costs_less_than_a_kilobyte_of_task() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let routes = Routes::new(&domain::spec::Routes::default());
        let (limits, clock) = (Limits::default(), || Timestamp(0));
        let (worker, _) = Worker::new(Parts { routes, limits, clock, http2: true, log: None, tls: None });
        let size = size_of_val(&converse(worker, stream, address, None));
        assert!(size < 1024, "{size} bytes");
    }
}
