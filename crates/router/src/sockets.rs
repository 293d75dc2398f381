//! Sockets, with room for long bodies from the first byte on, and no more underway than is soon taken.
//!
//! The system gives a new connection room for 64 KiB and more only as it learns that it is read. A body of a mebibyte then comes in
//! many small turns, and on a busy machine each of them waits in line; the slowest requests are those on new connections.
//!
//! The other way the system would take a whole answer for a caller who reads slowly. Whoever got much in early is then served
//! before the rest; with little that waits to be sent, all get on alike. What is sent and not yet confirmed is not limited by that,
//! so that callers far away have all the speed of their line.

use std::{io, net::SocketAddr, sync::LazyLock};
use tokio::net::{TcpSocket, TcpStream};

/// What may have come on a connection before it is read.
const ROOM: u32 = 1 << 20;
/// What may wait to be sent to a caller.
const UNSENT: u32 = 64 << 10;
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
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

/// A connection to a replica.
pub(crate) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = roomy(address)?.connect(address).await?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

/// A socket of the address's family. Connections have the room of the listener that they came to.
fn roomy(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if *ROOMY {
        socket.set_recv_buffer_size(ROOM)?;
    }
    Ok(socket)
}
