//! Sockets, with room for long bodies from the first byte on, and no more underway than is soon taken.
//!
//! The system gives a new connection room for 64 KiB and more only as it learns that it is read. A body of a mebibyte then comes in
//! many small turns, and on a busy machine each of them waits in line; the slowest requests are those on new connections.
//!
//! The other way the system would take a whole answer for a caller who reads slowly. Whoever got much in early is then served
//! before the rest; with little that waits to be sent, all get on alike. What is sent and not yet confirmed is not limited by that,
//! so that callers far away have all the speed of their line.
//!
//! Whoever vanishes without a word, as a machine does whose cable is pulled, is found out by asking: a WebSocket may be silent for
//! hours, and nothing else would ever give its slot back.

use std::{io, net::SocketAddr, sync::LazyLock, time::Duration};
use tokio::net::{TcpSocket, TcpStream};

/// What may have come on a connection before it is read.
const ROOM: u32 = 1 << 20;
/// What may wait to be sent to a caller.
const UNSENT: u32 = 64 << 10;
/// A connection on which nothing came for this long is asked whether the other end is there, so often and in such steps.
const SILENT: Duration = Duration::from_secs(60);
const ASKED: Duration = Duration::from_secs(15);
const UNANSWERED: u32 = 4;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;

/// Whether the system gives that much. One that gives less is left alone: what is asked for stays as it is, and what the system
/// would come to by itself is more.
static ROOMY: LazyLock<bool> = LazyLock::new(|| {
    let given = || -> io::Result<u32> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(ROOM)?;
        socket.recv_buffer_size()
    };
    given().is_ok_and(|given| given >= ROOM)
});

/// A listener; `shared` with others at the same port.
pub(crate) fn listen(address: SocketAddr, shared: bool) -> io::Result<std::net::TcpListener> {
    let socket = roomy(address)?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(shared)?;
    // A system that knows no such limit serves all the same.
    let _ = socket2::SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT);
    // Connections have it from the listener they came to.
    let _ = socket2::SockRef::from(&socket).set_tcp_keepalive(&alive());
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// A connection to a replica.
pub(crate) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = roomy(address)?.connect(address).await?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// Notices one day that the other end has vanished, however long both ends have nothing to say.
pub(crate) fn keep_alive(stream: &TcpStream) {
    // Without it a connection is as good, and only one that nobody ends is open for too long.
    let _ = socket2::SockRef::from(stream).set_tcp_keepalive(&alive());
}

fn alive() -> socket2::TcpKeepalive {
    socket2::TcpKeepalive::new().with_time(SILENT).with_interval(ASKED).with_retries(UNANSWERED)
}

/// A socket of the address's family. Connections have the room of the listener that they came to.
fn roomy(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if *ROOMY {
        socket.set_recv_buffer_size(ROOM)?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;

    #[tokio::test]
    async fn callers_that_vanish_are_found_out_and_so_are_replicas_behind_a_tunnel() {
        let listener = listen("127.0.0.1:0".parse().unwrap(), false).unwrap();
        let stream = connect(listener.local_addr().unwrap()).await.unwrap();
        listener.set_nonblocking(false).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        keep_alive(&stream);
        for socket in [SockRef::from(&accepted), SockRef::from(&stream)] {
            assert!(socket.keepalive().unwrap());
            assert_eq!(socket.tcp_keepalive_time().unwrap(), SILENT);
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), ASKED);
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), UNANSWERED);
        }
    }
}
