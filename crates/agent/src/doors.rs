//! Doors: listening sockets kept for whoever listens at them next.
//!
//! A server leaves copies of its sockets with the keeper, which outlives it; a router hands them to its successor. Who connects
//! while nobody accepts waits in the socket's queue and is not refused. Invariants: a socket that nobody has taken within
//! [`PATIENCE`] of its owner's end is closed, so that callers of a server that stays away are told at last; no process
//! that is started here inherits one.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::{
    fs, io,
    io::{IoSlice, IoSliceMut, Read},
    mem::MaybeUninit,
    net::{SocketAddr, TcpListener},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Duration,
};
use tokio::io::AsyncReadExt;

/// How long sockets are kept for a next owner.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The most that one message can carry, by a limit of Linux.
pub const MOST: usize = 253;
/// How long the other end may take to say what it wants.
const WORD: Duration = Duration::from_secs(5);
/// How soon the keeper is looked for again.
const AGAIN: Duration = Duration::from_secs(1);
const TAKE: &str = "?";

/// A socket that listens, and what it is for.
#[derive(Debug)]
pub struct Door {
    pub name: &'static str,
    pub socket: TcpListener,
}

/// Where sockets are kept.
#[derive(Debug, Clone, Default)]
pub struct Doors(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    doors: Vec<(String, OwnedFd)>,
    /// Tells one owner from the next.
    owner: u64,
    /// The owner is gone.
    waiting: bool,
}

/// Where the keeper of a home keeps the sockets of its server.
pub fn of_server(home: &Path) -> PathBuf {
    home.join("agent").join("doors.sock")
}

/// Where a router that shares its port hands its sockets on.
pub fn of_router(home: &Path, port: u16) -> PathBuf {
    home.join(format!("router-{port}.sock"))
}

impl Doors {
    /// Answers at `path` from now on, for as long as the process lives.
    pub fn open(path: &Path) -> io::Result<Doors> {
        let _ = fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let doors = Doors::default();
        let asked = doors.clone();
        let answer = move || {
            for stream in listener.incoming().flatten() {
                let doors = asked.clone();
                // Whoever breaks off is gone; nobody waits for what became of it.
                thread::spawn(move || drop(doors.attend(&stream)));
            }
        };
        thread::Builder::new().name("doors".to_owned()).spawn(answer)?;
        Ok(doors)
    }

    /// Keeps these sockets in place of those that were kept.
    pub fn put(&self, doors: Vec<(String, OwnedFd)>) -> u64 {
        let mut kept = self.kept();
        *kept = Kept { doors, owner: kept.owner + 1, waiting: false };
        kept.owner
    }

    /// Whether callers may be waiting for a next owner.
    pub fn is_waiting(&self) -> bool {
        self.kept().waiting
    }

    fn attend(&self, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(WORD))?;
        let (said, sockets) = receive(stream)?;
        if said == TAKE {
            let mut kept = self.kept();
            let sockets: Vec<(&str, BorrowedFd<'_>)> =
                kept.doors.iter().map(|(name, socket)| (name.as_str(), socket.as_fd())).collect();
            send(stream, &sockets)?;
            if kept.waiting {
                // The next owner may want to listen elsewhere at the same port.
                kept.doors.clear();
            }
            return Ok(());
        }
        let owner = self.put(said.split(' ').map(str::to_owned).zip(sockets).collect());
        stream.set_read_timeout(None)?;
        // It says nothing more: this ends when its process does.
        let _ = stream.read(&mut [0]);
        self.wait(owner, true);
        thread::sleep(PATIENCE);
        self.wait(owner, false);
        Ok(())
    }

    /// The owner is gone; or the time is over in which another may come.
    fn wait(&self, owner: u64, more: bool) {
        let mut kept = self.kept();
        if kept.owner == owner {
            kept.waiting = more;
            if !more {
                kept.doors.clear();
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().expect("nothing panics while it holds the sockets")
    }
}

/// Sockets that were taken, by name.
#[derive(Debug, Default)]
pub struct Taken(Vec<(String, TcpListener)>);

/// Takes what is kept at `path`; nothing where nobody answers.
pub fn take(path: &Path) -> Taken {
    let ask = || {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(WORD))?;
        send_text(&stream, TAKE, &[])?;
        receive(&stream)
    };
    let (names, sockets) = ask().unwrap_or_default();
    Taken(names.split(' ').map(str::to_owned).zip(sockets.into_iter().map(TcpListener::from)).collect())
}

impl Taken {
    /// The sockets of this name at this address; where it names no port, at any. Those at other addresses are closed.
    pub fn claim(&mut self, name: &str, address: SocketAddr) -> Vec<TcpListener> {
        let at = |bound: SocketAddr| bound == address || address.port() == 0 && bound.ip() == address.ip();
        let named = self.0.extract_if(.., |(of, _)| of == name).map(|(_, socket)| socket);
        named.filter(|socket| socket.local_addr().is_ok_and(at)).collect()
    }
}

/// Leaves copies of these sockets with the keeper, and with the next one when it goes; for as long as it is polled.
pub async fn leave(path: &Path, doors: &[Door]) {
    let sockets: Vec<(&str, BorrowedFd<'_>)> = doors.iter().map(|door| (door.name, door.socket.as_fd())).collect();
    let offer = || {
        let stream = UnixStream::connect(path)?;
        send(&stream, &sockets)?;
        stream.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(stream)
    };
    loop {
        // Without a keeper it is as it would be without this: callers of a server that restarts are refused.
        if let Ok(mut stream) = offer() {
            let _ = stream.read(&mut [0]).await;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

fn send(stream: &UnixStream, sockets: &[(&str, BorrowedFd<'_>)]) -> io::Result<()> {
    let names: Vec<&str> = sockets.iter().map(|(name, _)| *name).collect();
    let sockets: Vec<BorrowedFd<'_>> = sockets.iter().map(|(_, socket)| *socket).collect();
    send_text(stream, &names.join(" "), &sockets)
}

fn send_text(stream: &UnixStream, text: &str, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    if !sockets.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(stream, &[IoSlice::new(text.as_bytes())], &mut rights, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// One message: its words and its sockets.
fn receive(stream: &UnixStream) -> io::Result<(String, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut rights = RecvAncillaryBuffer::new(&mut space);
    let mut text = [0; 4096];
    let got = recvmsg(stream, &mut [IoSliceMut::new(&mut text)], &mut rights, RecvFlags::CMSG_CLOEXEC)?;
    let mut sockets = Vec::new();
    for message in rights.drain() {
        if let RecvAncillaryMessage::ScmRights(these) = message {
            sockets.extend(these);
        }
    }
    Ok((String::from_utf8_lossy(&text[..got.bytes]).into_owned(), sockets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[tokio::test]
    async fn who_connects_while_nobody_listens_is_served_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("doors.sock");
        let doors = Doors::open(&path).unwrap();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let first = [Door { name: "router", socket }];
        let elsewhere: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let there = until(|| {
            let mut taken = take(&path);
            let some = !taken.0.is_empty();
            assert!(taken.claim("router", elsewhere).is_empty(), "another address was taken for ours");
            some
        });
        tokio::select! { () = leave(&path, &first) => panic!("it ends with its owner only"), () = there => {} }
        until(|| doors.is_waiting()).await;
        drop(first);
        let caller = TcpStream::connect(address).unwrap();
        let mut taken = take(&path);
        assert!(taken.claim("https", address).is_empty());
        let next = taken.claim("router", SocketAddr::new(address.ip(), 0)).remove(0);
        assert_eq!(next.accept().unwrap().1, caller.local_addr().unwrap());
        assert!(take(&path).0.is_empty(), "what the next owner has is kept no more");
        drop(next);
        assert!(TcpStream::connect(address).is_err(), "a socket was left open");
    }

    async fn until(mut so: impl FnMut() -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while !so() {
            assert!(tokio::time::Instant::now() < deadline, "waited in vain");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[test]
    fn where_nobody_keeps_anything_nothing_is_taken() {
        assert!(take(Path::new("/nowhere")).0.is_empty());
    }
}
