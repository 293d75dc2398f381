//! What a node keeps of fetched data: the server is told of it, and where others of its cluster may fetch it, they can.
//!
//! Invariants: the door opens for tokens of the server's only, over TLS with a certificate of this node's own; without a door
//! everything else works as before.

use super::Told;
use agent::data::Shelf;
use domain::{
    kept::{Door, Kept},
    machine::NodeJoined,
};
use server::Certificates;
use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};

/// How often the cache is looked at.
const LOOK: Duration = Duration::from_secs(1);
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(5);
/// One that fetches for longer than this has given up.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// As many fetch at a time; others find no answer in time and go to the store.
const MOST_AT_ONCE: usize = 16;

pub(super) struct Lending {
    shelf: Arc<Shelf>,
    open: Option<(TcpListener, Certificates)>,
    pub(super) door: Option<Door>,
}

impl Lending {
    /// With a door at `address` where peers are to be let in and one can be made.
    pub(super) async fn new(told: &Told, joined: &NodeJoined, address: &str) -> Lending {
        let top = told.folder.parent().unwrap_or(&told.folder);
        let shelf = Arc::new(Shelf::new(&top.join("shared"), &told.folder));
        if !joined.peers {
            return Lending { shelf, open: None, door: None };
        }
        match open(told, address).await {
            Ok((listener, certificates, door)) => {
                let door = Door { apart: !joined.lending.is_empty(), ..door };
                Lending { shelf, open: Some((listener, certificates)), door: Some(door) }
            }
            Err(error) => {
                tracing::warn!(%error, "others cannot fetch data from this node");
                Lending { shelf, open: None, door: None }
            }
        }
    }

    /// Tells what is kept, and lends it, for as long as it is polled.
    pub(super) async fn run(&self, secret: &str, kept: &watch::Sender<Vec<Kept>>) {
        tokio::join!(self.look(kept), self.lend(secret));
    }

    async fn look(&self, kept: &watch::Sender<Vec<Kept>>) {
        let mut seen = None;
        loop {
            let changed = self.shelf.changed_at();
            if changed.is_none() || changed == seen {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            seen = changed;
            let (shelf, sums) = (Arc::clone(&self.shelf), self.open.is_some());
            let looked = tokio::task::spawn_blocking(move || {
                while sums && shelf.sum_one() {}
                let mut all = shelf.kept();
                all.sort_by(|one, other| one.key.cmp(&other.key));
                all
            });
            if let Ok(all) = looked.await {
                kept.send_if_modified(|before| {
                    *before != all && {
                        *before = all;
                        true
                    }
                });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn lend(&self, secret: &str) {
        let Some((listener, certificates)) = &self.open else { return };
        let Ok(acceptor) = certificates.acceptor() else { return };
        let mut guests = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept(), if guests.len() < MOST_AT_ONCE => {
                    let Ok((stream, _)) = accepted else { tokio::time::sleep(LOOK).await; continue };
                    let (shelf, acceptor, secret) = (Arc::clone(&self.shelf), acceptor.clone(), secret.to_owned());
                    guests.spawn(async move {
                        let Ok(Ok(mut stream)) = timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await else { return };
                        // Whoever breaks off goes to the store.
                        let _ = timeout(LONGEST, shelf.answer(&mut stream, &secret, server::clock::now())).await;
                    });
                }
                Some(_) = guests.join_next(), if !guests.is_empty() => {}
            }
        }
    }
}

async fn open(told: &Told, address: &str) -> io::Result<(TcpListener, Certificates, Door)> {
    let keys = told.folder.join("door");
    fs::create_dir_all(&keys)?;
    let certificates = Certificates::Own { keys: keys.clone() };
    certificates.files().map_err(io::Error::other)?;
    let authority = fs::read_to_string(keys.join("authority.pem"))?;
    let ip = resolved(address).ok_or_else(|| io::Error::other(format!("`{address}` is no address")))?;
    let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    // An address that others know this machine by may be none of its own.
    let listener = match TcpListener::bind(SocketAddr::new(ip, 0)).await {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind(any).await?,
    };
    let address = SocketAddr::new(ip, listener.local_addr()?.port()).to_string();
    Ok((listener, certificates, Door { address, authority, apart: false }))
}

/// The address behind a name.
pub(super) fn resolved(name: &str) -> Option<IpAddr> {
    Some((name, 0).to_socket_addrs().ok()?.next()?.ip())
}
