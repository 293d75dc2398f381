//! One worker: a thread, its own runtime, its own listener, its own connections. Workers share the routes and nothing else
//! that a request touches.

use crate::{
    access_log::AccessLog, auth::wrong::WrongKeys, buffers::Buffers, chance::Chance, http2, idle::Idle, pool::Pool,
    prepare::Caller, run::Limits, serve::Conn, table::Routes, ticket::Ticket, timer::Timers, tls::Tls,
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
/// How long requests are waited for by the routes: never less, lest streams end for nothing, and never more, for others wait too.
const LEAST_DRAIN: Duration = Duration::from_secs(10);
const MOST_DRAIN: Duration = Duration::from_secs(60);
/// How often idle connections, of callers and to replicas, are looked at.
const ROUND: Duration = Duration::from_millis(250);

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
    pub(crate) timers: Timers,
    pub(crate) idle: Idle,
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
            timers: Timers::default(),
            idle: Idle::default(),
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

    /// Rung when connections of HTTP/2 shall look at [`Worker::is_closing`].
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

    /// Counts a copy of a request that is over. Nobody was told how it ended, so no line of the log is about it.
    pub(crate) fn finish_copy(&self, ticket: Ticket) {
        if let Some(deployment) = &ticket.deployment {
            deployment.live.copies.add(ticket.status, ticket.began.elapsed());
        }
    }
}

/// Serves until `stop` turns true and the last request is answered, or until `patience` after that; without one, until no request
/// that keeps to the limits of the routes can still run.
pub(crate) async fn work(
    listener: TcpListener,
    parts: Parts,
    mut stop: watch::Receiver<bool>,
    patience: Option<Duration>,
) {
    let (worker, tls) = Worker::new(parts);
    let rounds = u32::try_from(worker.limits.idle.as_millis() / ROUND.as_millis()).unwrap_or(u32::MAX);
    let mut connections = JoinSet::new();
    let mut sweep = interval(ROUND);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => converse(&mut connections, &worker, stream, peer, &tls),
                // Out of file descriptors, most likely; trying again at once would only spin.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = sweep.tick() => {
                worker.pool.sweep(worker.limits.pool_idle, Instant::now());
                worker.idle.sweep(rounds);
            }
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    worker.draining.set(true);
    let patience = patience.unwrap_or_else(|| worker.routes.longest().clamp(LEAST_DRAIN, MOST_DRAIN));
    // Whoever has connected already is served.
    while let Some(Ok((stream, peer))) = ready(&listener).await {
        converse(&mut connections, &worker, stream, peer, &tls);
    }
    drop(listener);
    let end = Instant::now() + patience;
    let _ = timeout(LAST_WORDS.min(patience), all(&mut connections)).await;
    worker.closing.set(true);
    worker.closed.notify_waiters();
    worker.idle.close();
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

/// Has one connection served. What TLS needs is in a box: plain connections that are idle must stay small.
fn converse(to: &mut JoinSet<()>, worker: &Rc<Worker>, stream: TcpStream, peer: SocketAddr, tls: &Option<Tls>) {
    let _ = stream.set_nodelay(true);
    let caller = Caller { address: peer.ip().to_canonical(), secure: tls.is_some() };
    let worker = Rc::clone(worker);
    match tls {
        None => to.spawn_local(Conn::new(worker, stream, caller).converse()),
        Some(tls) => to.spawn_local(Box::pin(private(worker, stream, caller, tls.clone()))),
    };
}

async fn private(worker: Rc<Worker>, stream: TcpStream, caller: Caller, tls: Tls) {
    let Some((stream, second)) = tls.accept(stream, worker.limits.head).await else { return };
    match second {
        true => http2::serve(worker, stream, Vec::new(), caller).await,
        false => Conn::new(worker, stream, caller).without_http2().converse().await,
    }
}

#[cfg(test)]
mod tests {
    use crate::serve::Conversation;
    use tokio::net::TcpStream;

    #[test]
    fn an_idle_connection_costs_next_to_nothing_beside_its_socket() {
        let size = size_of::<Conversation<TcpStream>>();
        assert!(size <= 96, "{size} bytes");
    }
}
