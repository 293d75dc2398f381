//! One question to a replica: does it answer, and how.
//!
//! A connection of its own each time, closed as soon as the status is known, so that neither a replica that never
//! answers nor one that answers without end costs more than the time-out.

use domain::Probe;
use std::{io, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// A status line that is longer is none.
const HEAD_BYTES: usize = 512;

/// Why a replica is not well, in words.
pub(super) type Seen = String;

/// Asks once.
pub(super) async fn ask(address: SocketAddr, probe: &Probe) -> Result<(), Seen> {
    let limit = Duration::from_millis(probe.timeout_ms.max(1));
    match &probe.path {
        None => match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("port {}: {}", address.port(), words(&error))),
            Err(_) => Err(format!("port {}: no connection within {} ms", address.port(), limit.as_millis())),
        },
        Some(path) => {
            let what = format!("`GET {path}` on port {}", address.port());
            match timeout(limit, status(address, path)).await {
                Ok(Ok(200..=399)) => Ok(()),
                Ok(Ok(status)) => Err(format!("{what}: status {status}")),
                Ok(Err(error)) => Err(format!("{what}: {}", words(&error))),
                Err(_) => Err(format!("{what}: no answer within {} ms", limit.as_millis())),
            }
        }
    }
}

async fn status(address: SocketAddr, path: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let head = format!(
        "GET {slash}{path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: peregrine-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut got = Vec::with_capacity(HEAD_BYTES);
    while !got.contains(&b'\n') && got.len() < HEAD_BYTES {
        if stream.read_buf(&mut got).await? == 0 {
            break;
        }
    }
    read_status(&got).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "what it answers is not HTTP"))
}

fn read_status(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head.split(|b| *b == b'\r' || *b == b'\n').next()?).ok()?;
    let mut words = line.strip_prefix("HTTP/1.")?.split(' ');
    words.nth(1)?.parse().ok().filter(|status| (100..600).contains(status))
}

fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => "it closed the connection".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A server that answers each connection with the same bytes, and then waits.
    async fn answering(bytes: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        crate::tasks::detach("answering", async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(bytes).await;
                open.push(stream);
            }
        });
        address
    }

    #[tokio::test]
    async fn only_a_good_status_in_time_is_well() {
        let probe = |path: Option<&str>| Probe { path: path.map(str::to_owned), timeout_ms: 200, ..Probe::default() };
        for (answer, seen) in [
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"[..], None),
            (b"HTTP/1.0 302 Found\r\n", None),
            (b"HTTP/1.1 503 Busy\r\n\r\n", Some("status 503")),
            (b"SSH-2.0-OpenSSH\r\n", Some("is not HTTP")),
            (b"HTTP/1.1", Some("no answer within 200 ms")),
            (b"", Some("no answer within 200 ms")),
        ] {
            let address = answering(answer).await;
            let got = ask(address, &probe(Some("/"))).await;
            match seen {
                None => assert_eq!(got, Ok(())),
                Some(part) => assert!(got.clone().is_err_and(|text| text.contains(part)), "{got:?}"),
            }
            assert_eq!(ask(address, &probe(None)).await, Ok(()), "a connection is enough");
        }
    }

    #[tokio::test]
    async fn a_port_that_nobody_opened_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let seen = ask(address, &Probe::default()).await.unwrap_err();
        assert!(seen.contains("nothing listens there") && seen.contains(&address.port().to_string()), "{seen}");
    }
}
