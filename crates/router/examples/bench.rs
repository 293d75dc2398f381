//! What `bench/router.py` measures and measures with: the router alone, and replicas that cost next to nothing.
//!
//! `bench router LISTEN ROUTES WORKERS` and `bench replica LISTEN BYTES`, each until it is killed.

use domain::{Timestamp, spec::Routes as Spec};
use router::{Limits, Routes, RoutesFile, Settings};
use std::{net::SocketAddr, path::PathBuf, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Builder,
    task::{JoinSet, LocalSet},
};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["router", listen, routes, workers] => serve(address(listen), routes.into(), number(workers)),
        ["replica", listen, bytes] => answer(address(listen), number(bytes)),
        _ => panic!("`bench router LISTEN ROUTES WORKERS`, or `bench replica LISTEN BYTES`"),
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address and a port")
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

fn serve(listen: SocketAddr, file: PathBuf, workers: usize) {
    let known = RoutesFile::now(&file);
    let text = std::fs::read_to_string(&file).expect("a file of routes");
    let spec = Spec::read("routes", &text).expect("routes without mistakes");
    let settings = Settings {
        listen,
        workers,
        tls: None,
        http2: true,
        admin: None,
        access_log: None,
        routes_file: Some(known),
        share_port: false,
        drain: Some(Duration::from_secs(5)),
        limits: Limits::default(),
        clock: || Timestamp(0),
    };
    router::start(settings, Routes::new(&spec)).expect("a free port").join();
}

/// Reads requests with a length, and answers each with the same bytes.
fn answer(listen: SocketAddr, bytes: usize) {
    let mut said =
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n").into_bytes();
    said.resize(said.len() + bytes, b'x');
    let said: &'static [u8] = said.leak();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    LocalSet::new().block_on(&runtime, async move {
        let listener = TcpListener::bind(listen).await.expect("a free port");
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn_local(converse(stream, said));
        }
    });
}

async fn converse(mut stream: TcpStream, said: &'static [u8]) {
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::with_capacity(64 << 10);
    loop {
        let Some((head, length)) = request(&bytes) else {
            bytes.reserve(16 << 10);
            match stream.read_buf(&mut bytes).await {
                Ok(read) if read > 0 => continue,
                _ => return,
            }
        };
        let have = (bytes.len() - head).min(length);
        bytes.drain(..head + have);
        let mut left = length - have;
        while left > 0 {
            bytes.clear();
            match stream.read_buf(&mut bytes).await {
                Ok(read) if read > 0 && read <= left => left -= read,
                _ => return,
            }
            bytes.clear();
        }
        if stream.write_all(said).await.is_err() {
            return;
        }
    }
}

/// Lengths of the head and the body, once the head is there.
fn request(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(head) = request.parse(bytes).ok()? else { return None };
    let length = request.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok());
    Some((head, length.unwrap_or(0)))
}
