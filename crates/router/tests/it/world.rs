//! A router, replicas that follow a script, and callers that send exactly the bytes they are given.

use domain::{Timestamp, spec::Routes as Spec};
use router::{Limits, Routes, Running, Settings};
use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

pub(crate) const KEY: &str = "a-key-of-iris";

/// What a replica got: the head as it came, and the body without its framing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A server on a port of its own; every request is noted and handed to the script with the connection.
pub(crate) struct Replica {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Replica {
    /// `script` says whether the connection goes on.
    pub(crate) fn start(script: impl Fn(&Seen, &mut TcpStream) -> bool + Send + Sync + 'static) -> Replica {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (noted, script) = (Arc::clone(&seen), Arc::new(script));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, script) = (Arc::clone(&noted), Arc::clone(&script));
                thread::spawn(move || {
                    let mut stream = stream;
                    let mut wire = Wire::default();
                    while let Some(request) = wire.message(&mut stream) {
                        noted.lock().unwrap().push(request.clone());
                        if !script(&request, &mut stream) {
                            return;
                        }
                    }
                });
            }
        });
        Replica { address, seen }
    }

    /// Answers everything with these bytes.
    pub(crate) fn says(answer: &str) -> Replica {
        let answer = answer.as_bytes().to_vec();
        Replica::start(move |_, stream| stream.write_all(&answer).is_ok())
    }

    /// Answers with the body it got.
    pub(crate) fn echo() -> Replica {
        Replica::start(|request, stream| {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", request.body.len());
            stream.write_all(&[head.as_bytes(), &request.body].concat()).is_ok()
        })
    }

    /// Answers `200` with this text.
    pub(crate) fn named(name: &str) -> Replica {
        Replica::says(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{name}", name.len()))
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// Bytes of one direction that were read too early.
#[derive(Default)]
pub(crate) struct Wire {
    ahead: Vec<u8>,
}

impl Wire {
    /// The next message, or `None` when there is no whole one.
    pub(crate) fn message(&mut self, from: &mut impl Read) -> Option<Seen> {
        let head = self.until(from, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&head).into_owned();
        let lower = head.to_ascii_lowercase();
        let field = |name: &str| lower.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
        let first = lower.lines().next().unwrap_or_default();
        let body = match (field("content-length:"), field("transfer-encoding:")) {
            _ if first.starts_with("http/1.1 1") || first.starts_with("http/1.1 204") => Vec::new(),
            (Some(length), _) => self.take(from, length.parse().unwrap())?,
            (None, Some(_)) => self.chunks(from)?,
            (None, None) if first.starts_with("http/") => self.rest(from),
            (None, None) => Vec::new(),
        };
        Some(Seen { head, body })
    }

    fn until(&mut self, from: &mut impl Read, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.ahead.windows(end.len()).position(|part| part == end) {
                return Some(self.ahead.drain(..at + end.len()).collect());
            }
            self.more(from)?;
        }
    }

    fn take(&mut self, from: &mut impl Read, length: usize) -> Option<Vec<u8>> {
        while self.ahead.len() < length {
            self.more(from)?;
        }
        Some(self.ahead.drain(..length).collect())
    }

    /// The body, with the trailers behind it.
    fn chunks(&mut self, from: &mut impl Read) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.until(from, b"\r\n")?;
            let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16).unwrap();
            if size == 0 {
                loop {
                    let line = self.until(from, b"\r\n")?;
                    if line == b"\r\n" {
                        return Some(body);
                    }
                    body.extend(line);
                }
            }
            body.extend(self.take(from, size)?);
            self.take(from, 2)?;
        }
    }

    fn rest(&mut self, from: &mut impl Read) -> Vec<u8> {
        while self.more(from).is_some() {}
        std::mem::take(&mut self.ahead)
    }

    fn more(&mut self, from: &mut impl Read) -> Option<()> {
        let mut bytes = [0; 65_536];
        match from.read(&mut bytes) {
            Ok(read) if read > 0 => {
                self.ahead.extend_from_slice(&bytes[..read]);
                Some(())
            }
            _ => None,
        }
    }
}

/// A router that stops when it is dropped.
pub(crate) struct World {
    pub(crate) routes: Routes,
    running: Option<Running>,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

/// One endpoint `iris` with all traffic on `blue`.
pub(crate) fn iris(blue: &[&Replica], more: &str) -> String {
    let replicas: Vec<String> = blue.iter().map(|replica| format!("'{}'", replica.address)).collect();
    format!(
        "endpoints:\n  iris:\n    keys: {{primary: {KEY}}}\n    traffic: {{blue: 100}}\n    deployments:\n      blue: {{replicas: [{}]{}{more}}}\n",
        replicas.join(", "),
        if more.is_empty() { "" } else { ", " },
    )
}

pub(crate) fn settings() -> Settings {
    let local = "127.0.0.1:0".parse().unwrap();
    Settings {
        listen: local,
        workers: 1,
        tls: None,
        http2: true,
        admin: Some(local),
        access_log: None,
        routes_file: None,
        share_port: false,
        drain: Some(Duration::from_secs(10)),
        limits: Limits::default(),
        clock: || Timestamp(1_700_000_000_000),
    }
}

pub(crate) fn spec(text: &str) -> Spec {
    Spec::read("routes.yml", text).unwrap_or_else(|mistakes| panic!("{mistakes:?}\n{text}"))
}

impl World {
    pub(crate) fn start(routes: &str) -> World {
        World::with(routes, settings())
    }

    pub(crate) fn with(routes: &str, settings: Settings) -> World {
        let sockets = router::bind_all(&settings).unwrap();
        World::on(sockets, routes, settings)
    }

    /// A router at sockets that others may have, too.
    pub(crate) fn on(sockets: Vec<TcpListener>, routes: &str, settings: Settings) -> World {
        let routes = Routes::new(&spec(routes));
        let running = router::start_on(sockets, settings, routes.clone()).unwrap();
        let (address, admin) = (running.address, running.admin.unwrap());
        World { routes, running: Some(running), address, admin }
    }

    pub(crate) fn connect(&self) -> Caller {
        Caller::to(self.address)
    }

    /// Sends bytes on a new connection; the first message that comes back.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Answer {
        let mut caller = self.connect();
        // The router may have refused and closed before everything was sent.
        let _ = caller.stream.write_all(bytes);
        caller.read().expect("an answer")
    }

    pub(crate) fn score(&self, body: &str) -> Answer {
        self.raw(post("", body).as_bytes())
    }

    /// The text of a page of the admin port.
    pub(crate) fn admin(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        let answer = Answer::of(Wire::default().message(&mut stream).unwrap());
        (answer.status, answer.text())
    }

    pub(crate) fn stop(&self) {
        self.running.as_ref().unwrap().stop();
    }

    /// Stops, and says how long that took.
    pub(crate) fn join(mut self) -> Duration {
        let begun = now();
        let running = self.running.take().unwrap();
        running.stop();
        running.join();
        begun.elapsed()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop();
        }
    }
}

/// A request to `/score` with the key, and more fields.
pub(crate) fn post(fields: &str, body: &str) -> String {
    format!(
        "POST /api/v1/endpoint/iris/score HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {KEY}\r\ncontent-length: {}\r\n{fields}\r\n{body}",
        body.len()
    )
}

/// A request without a body, and with the key.
pub(crate) fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {KEY}\r\n{fields}\r\n")
}

/// One connection of a caller.
pub(crate) struct Caller {
    pub(crate) stream: TcpStream,
    wire: Wire,
}

impl Caller {
    pub(crate) fn to(address: SocketAddr) -> Caller {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Caller { stream, wire: Wire::default() }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn read(&mut self) -> Option<Answer> {
        self.wire.message(&mut self.stream).map(Answer::of)
    }

    pub(crate) fn ask(&mut self, text: &str) -> Answer {
        self.send(text);
        self.read().expect("an answer")
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn of(seen: Seen) -> Answer {
        let mut lines = seen.head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let fields = lines.filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        Answer { status, fields, body: seen.body }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }

    /// The word for what went wrong, and whose fault it was.
    pub(crate) fn error(&self) -> (String, String) {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?}"));
        let part = |key: &str| body["error"][key].as_str().unwrap().to_owned();
        (part("code"), part("fault"))
    }
}

#[expect(clippy::disallowed_methods, reason = "tests with real sockets have real deadlines")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until something holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let end = now() + Duration::from_secs(20);
    while !holds() {
        assert!(now() < end, "{what}: not within 20 s");
        thread::sleep(Duration::from_millis(5));
    }
}
