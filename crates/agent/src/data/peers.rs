//! Data between nodes of one cluster: fetched from a neighbour that has it before the store is asked, and lent to others.
//!
//! An entry travels as the bytes of its files one after the other, by name; names and sizes are known from the store itself.
//! Invariants: nothing is lent without a token of the server's for that entry; nothing is kept whose digest is not the one that
//! the server told; a neighbour that is slow, gone or wrong costs moments, and the store serves.

use super::{
    Error, Tally,
    cache::{Cache, Lent},
    cache_folder, files_in_order,
    local::{disk, make_folder},
    remote::Listing,
    tree::below,
};
use crate::{environment::request::hex, server::Server};
use api::{Client, Connection, peer};
use domain::{
    Timestamp,
    kept::{Kept, Peer, Peers, Wanted},
};
use futures_util::TryStreamExt;
use object_store::ObjectMeta;
use ring::digest;
use std::{
    collections::btree_map,
    fmt, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Instant, timeout},
};

/// Less than this is had from the store as quickly, and is not told of.
pub(super) const WORTH_BYTES: u64 = if cfg!(test) { 1 } else { 1 << 20 };
/// How long the server may take to name neighbours, and one to answer or to send on.
const ASK_LIMIT: Duration = Duration::from_secs(5);
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
const SILENCE_LIMIT: Duration = if cfg!(test) { Duration::from_secs(1) } else { Duration::from_secs(5) };
/// One that has sent less than this a second, after so long, is left.
const SLOWEST: u64 = 1 << 20;
const SLOW_AFTER: Duration = Duration::from_secs(15);
/// The longest request that is read.
const REQUEST_BYTES: usize = 4 << 10;

/// Who may have what an attempt lacks.
pub(super) struct Neighbours(Arc<Server>);

impl fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Neighbours").finish_non_exhaustive()
    }
}

impl Neighbours {
    pub(super) fn of(server: Arc<Server>) -> Neighbours {
        Neighbours(server)
    }

    /// Fills `folder` from the first neighbour that has it, if any; gives its digest. Only a fault of this node's own disk is an
    /// error.
    pub(super) async fn fetch(&self, listing: &Listing, folder: &Path, tally: &Tally) -> Result<Option<String>, Error> {
        let Some(attempt) = tally.attempt().filter(|_| listing.bytes() >= WORTH_BYTES) else { return Ok(None) };
        let (path, key) = (format!("/agent/v1/attempts/{attempt}/peers"), listing.key());
        let wanted = Wanted { key: key.clone() };
        let asked = timeout(ASK_LIMIT, self.0.post::<Peers>(&path, &wanted)).await;
        let Ok(Ok(Peers { peers })) = asked else { return Ok(None) };
        for peer in peers {
            let mut got = 0;
            match take(&peer, &key, listing, (folder, &mut got, tally)).await {
                Ok(()) => return Ok(Some(peer.sum)),
                Err(Fault::Disk(error)) => return Err(error),
                Err(Fault::Peer(why)) => {
                    let text = format!("node `{}` could not give its copy, the store is used: {why}", peer.node);
                    tracing::warn!("{text}");
                    tally.in_vain(got, text);
                    let _not_made = std::fs::remove_dir_all(folder);
                }
            }
        }
        Ok(None)
    }
}

enum Fault {
    Peer(String),
    Disk(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Disk(error)
    }
}

/// Fetches an entry from one neighbour; `got` counts its bytes.
async fn take(
    peer: &Peer,
    key: &str,
    listing: &Listing,
    (folder, got, tally): (&Path, &mut u64, &Tally),
) -> Result<(), Fault> {
    let fault = |why: &str| Fault::Peer(why.to_owned());
    let failed = |error: reqwest::Error| Fault::Peer(domain::causes::in_one_line(&error.without_url()));
    let begun = Instant::now();
    let address: SocketAddr = peer.door.address.parse().map_err(|_| fault("it has no address"))?;
    // Its certificate is for its own machine, whatever others call it.
    let url = format!("https://localhost:{}", address.port());
    let authority = Some(peer.door.authority.clone().into_bytes());
    let connection = Connection { url: url.clone(), token: String::new(), authority };
    let builder = Client::builder(&connection).map_err(|error| Fault::Peer(error.to_string()))?;
    let builder = builder.resolve("localhost", address).connect_timeout(CONNECT_LIMIT);
    let client = builder.build().map_err(failed)?;
    let asked = client.get(format!("{url}/{key}")).bearer_auth(&peer.token).send();
    let silent = || fault(&format!("it was silent for {} s", SILENCE_LIMIT.as_secs()));
    let answer = timeout(SILENCE_LIMIT, asked).await.map_err(|_| silent())?.map_err(failed)?;
    if !answer.status().is_success() {
        return Err(Fault::Peer(format!("it answered {}", answer.status().as_u16())));
    }
    let mut bytes = answer.bytes_stream();
    let mut sum = digest::Context::new(&digest::SHA256);
    let mut row = Row { folder, files: listing.files.iter(), file: None, left: 0 };
    make_folder(folder)?;
    while let Some(chunk) = timeout(SILENCE_LIMIT, bytes.try_next()).await.map_err(|_| silent())?.map_err(failed)? {
        sum.update(&chunk);
        *got += chunk.len() as u64;
        tally.peers(chunk.len() as u64);
        let took = begun.elapsed();
        if took > SLOW_AFTER && *got < SLOWEST * took.as_secs() {
            return Err(fault("it is slow"));
        }
        row.write(&chunk).await?;
    }
    row.end().await?;
    match hex(sum.finish().as_ref()) == peer.sum {
        true => Ok(()),
        false => Err(fault("its bytes are not the ones it said it has")),
    }
}

/// The files of an entry, filled one after the other.
struct Row<'a> {
    folder: &'a Path,
    files: btree_map::Iter<'a, String, ObjectMeta>,
    file: Option<(PathBuf, File)>,
    /// What the file at hand lacks.
    left: u64,
}

impl Row<'_> {
    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            if self.left == 0 && !self.next().await? {
                return Err(Fault::Peer("it sent more than there is".to_owned()));
            }
            let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)));
            if let Some((path, file)) = &mut self.file {
                file.write_all(now).await.map_err(|error| disk(path, "written", error))?;
            }
            (self.left, bytes) = (self.left - now.len() as u64, later);
        }
        Ok(())
    }

    /// Goes on to the next file; false when there is none.
    async fn next(&mut self) -> Result<bool, Error> {
        if let Some((path, file)) = &mut self.file {
            file.flush().await.map_err(|error| disk(path, "written", error))?;
        }
        let Some((name, meta)) = self.files.next() else { return Ok(false) };
        let path = below(self.folder, name)?;
        path.parent().map_or(Ok(()), make_folder)?;
        let file = File::create(&path).await.map_err(|error| disk(&path, "written", error))?;
        (self.file, self.left) = (Some((path, file)), meta.size);
        Ok(true)
    }

    /// Only empty files may be left.
    async fn end(mut self) -> Result<(), Fault> {
        while self.left == 0 {
            if !self.next().await? {
                return Ok(());
            }
        }
        Err(Fault::Peer("it broke off".to_owned()))
    }
}

/// What a machine keeps for all its agents, as its node tells of it and lends it.
pub struct Shelf {
    cache: Cache,
    lent: AtomicU64,
}

impl Shelf {
    /// What lies in `shared`. `home` is the folder of the node, which goes with it.
    pub fn new(shared: &Path, home: &Path) -> Shelf {
        Shelf { cache: Cache::new(cache_folder(shared), u64::MAX, home.to_owned()), lent: AtomicU64::new(0) }
    }

    /// Every entry that is worth fetching, last used first.
    pub fn kept(&self) -> Vec<Kept> {
        self.cache.kept(WORTH_BYTES)
    }

    /// Differs from what it was if an entry has come or gone since.
    pub fn changed_at(&self) -> Option<SystemTime> {
        self.cache.changed_at()
    }

    /// Takes the digest of one entry that has none; false when all have theirs. Reads all of it.
    pub fn sum_one(&self) -> bool {
        self.cache.sum_one(WORTH_BYTES)
    }

    /// Answers one request on a connection: an entry, for a token that was made with `secret`.
    pub async fn answer(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        secret: &str,
        now: Timestamp,
    ) -> io::Result<()> {
        let request = timeout(SILENCE_LIMIT, read_request(stream)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let opened = request.as_deref().and_then(asked).ok_or("400 Bad Request").and_then(|(key, token)| {
            match peer::opens(secret, key, token, now) {
                true => self.lend(key).ok_or("404 Not Found"),
                false => Err("403 Forbidden"),
            }
        });
        let lent = match opened {
            Ok(lent) => lent,
            Err(status) => {
                let refused = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(refused.as_bytes()).await?;
                return stream.shutdown().await;
            }
        };
        let names = files_in_order(&lent.data).map_err(io::Error::other)?;
        let mut files = Vec::new();
        for name in names {
            let path = lent.data.join(name);
            files.push((path.metadata()?.len(), path));
        }
        let bytes: u64 = files.iter().map(|(bytes, _)| bytes).sum();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        for (bytes, path) in files {
            let mut file = File::open(path).await?.take(bytes);
            tokio::io::copy(&mut file, stream).await?;
        }
        stream.shutdown().await
    }

    fn lend(&self, key: &str) -> Option<Lent> {
        let number = self.lent.fetch_add(1, Ordering::Relaxed);
        self.cache.lend(key, &format!("lent-{}-{number}", std::process::id())).ok()?
    }
}

/// The head of a request; `None` where it has no end.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == REQUEST_BYTES {
            return Ok(None);
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head).ok())
}

/// The entry that is asked for, and with which token.
fn asked(request: &str) -> Option<(&str, &str)> {
    let mut lines = request.lines();
    let key = lines.next()?.strip_prefix("GET /")?.strip_suffix(" HTTP/1.1")?;
    let header = |line: &'_ str| line.get(..14).is_some_and(|name| name.eq_ignore_ascii_case("authorization:"));
    let token = lines.find(|line| header(line))?[14..].trim().strip_prefix("Bearer ")?;
    let plain = key.len() == 64 && key.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    plain.then_some((key, token))
}

#[cfg(test)]
mod tests;
