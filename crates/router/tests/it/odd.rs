//! Requests that mean harm or make no sense: refused, never forwarded, never fatal.

use super::world::{Answer, KEY, Replica, Wire, World, eventually, get, iris, post};
use std::{
    io::{Read, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

const TO: &str = "POST /api/v1/endpoint/iris/score HTTP/1.1\r\n";

fn auth() -> String {
    format!("host: a\r\nauthorization: Bearer {KEY}\r\n")
}

/// Requests that must be refused, with the status.
pub(crate) fn refused() -> Vec<(String, u16)> {
    let auth = auth();
    let with = |fields: &str, body: &str| format!("{TO}{auth}{fields}\r\n{body}");
    let chunks = |body: &str| with("transfer-encoding: chunked\r\n", body);
    vec![
        (with("content-length: 4\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"), 400),
        (with("transfer-encoding: chunked\r\ncontent-length: 4\r\n", "0\r\n\r\n"), 400),
        (with("content-length: 1\r\ncontent-length: 2\r\n", "ab"), 400),
        (with("content-length: 1\r\ncontent-length: 1\r\n", "a"), 400),
        (with("content-length: 1, 1\r\n", "a"), 400),
        (with("content-length: +1\r\n", "a"), 400),
        (with("content-length: 1 2\r\n", "a"), 400),
        (with("content-length: 0x1\r\n", "a"), 400),
        (with("content-length: -1\r\n", ""), 400),
        (with("content-length: 184467440737095516160\r\n", ""), 400),
        (with("content-length : 1\r\n", "a"), 400),
        (with(" content-length: 1\r\n", "a"), 400),
        (with("x: a\r\n folded\r\n", ""), 400),
        (with("x: a\r\n\tfolded\r\n", ""), 400),
        (with("x: a\nb: c\r\n", ""), 400),
        (with("x: a\0b\r\n", ""), 400),
        (with("x\0: a\r\n", ""), 400),
        (with("x y: a\r\n", ""), 400),
        (with(": a\r\n", ""), 400),
        (with("x: a\rb\r\n", ""), 400),
        (with("host: b\r\n", ""), 400),
        (with("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n", "0\r\n\r\n"), 501),
        (with("transfer-encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501),
        (with("transfer-encoding: \x0bchunked\r\n", "0\r\n\r\n"), 400),
        (with("transfer-encoding: xchunked\r\n", "0\r\n\r\n"), 501),
        (with("transfer-encoding: chunked, chunked\r\n", "0\r\n\r\n"), 501),
        (with("expect: 200-ok\r\n", ""), 417),
        (chunks("zz\r\n"), 400),
        (chunks("3\nabc\r\n0\r\n\r\n"), 400),
        (chunks("3;ext=1\r\nabc\r\n0\r\n\r\n"), 400),
        (chunks("-3\r\nabc\r\n0\r\n\r\n"), 400),
        (chunks("fffffffffffffffff\r\n"), 400),
        (chunks("3\r\nabcd\r\n0\r\n\r\n"), 400),
        (chunks("0\r\nbad trailer\r\n\r\n"), 400),
        (format!("{}{auth}\r\n", TO.replace("\r\n", "\n")), 400),
        (format!("{}{auth}\r\n", TO.replace("HTTP/1.1", "HTTP/1.9")), 505),
        (format!("{}{auth}\r\n", TO.replace("HTTP/1.1", "HTTP/2.0")), 505),
        (format!("{}{auth}\r\n", TO.replace(" HTTP", "  HTTP")), 400),
        (format!("{}{auth}\r\n", TO.replace("POST ", "PO(ST ")), 400),
        (format!("{}{auth}\r\n", TO.replace("/score", "/sc ore")), 400),
        (format!("{}{auth}\r\n", TO.replace("/score", "/../../x")), 400),
        (format!("{}{auth}\r\n", TO.replace("POST /", "CONNECT /")), 405),
        (format!("{TO}authorization: Bearer {KEY}\r\n\r\n"), 400),
        (format!("{TO}{}\r\n", auth.replace("host: a", "host: a/b")), 400),
        (format!("{TO}{}\r\n", auth.replace("host: a", "host:")), 400),
        (with("expect: 100-continue\r\nexpect: 100-continue\r\n", ""), 400),
        (with(&"x: y\r\n".repeat(10_000), ""), 431),
        (with(&format!("x: {}\r\n", "y".repeat(40_000)), ""), 431),
        (with(&(0..200).map(|n| format!("x{n}: y\r\n")).collect::<String>(), ""), 431),
        (format!("GET /{} HTTP/1.1\r\n{auth}\r\n", "a".repeat(40_000)), 431),
    ]
}

#[test]
fn what_could_be_understood_in_two_ways_is_refused_and_the_connection_closed() {
    let replica = Replica::echo();
    let world = World::start(&iris(&[&replica], ""));
    for (request, status) in refused() {
        let mut caller = world.connect();
        let _ = caller.stream.write_all(request.as_bytes());
        // Were it still read as requests, this would be one.
        let _ = caller.stream.write_all(post("", "smuggled").as_bytes());
        let answer = caller.read().unwrap_or_else(|| panic!("no answer to {:?}", &request[..request.len().min(300)]));
        let shown = &request[TO.len().min(request.len())..request.len().min(300)];
        assert_eq!(answer.status, status, "{shown:?}");
        assert_eq!(answer.field("connection"), "close", "{shown:?}");
        assert!(caller.read().is_none(), "one answer to {shown:?}");
    }
    let smuggled =
        replica.seen().into_iter().filter(|seen| seen.body == b"smuggled" || seen.head.contains("smuggled")).count();
    assert_eq!(smuggled, 0);
    assert_eq!(world.score("fine").text(), "fine", "and it goes on");
}

#[test]
fn fields_of_one_connection_end_with_it() {
    let replica = Replica::echo();
    let world = World::start(&iris(&[&replica], ""));
    let fields = "connection: keep-alive, x-private, content-length\r\nx-private: 1\r\nkeep-alive: 5\r\nte: gzip\r\nproxy-connection: x\r\nupgrade: h2c\r\nhttp2-settings: x\r\nx-public: 1\r\n";
    assert_eq!(world.raw(post(fields, "hello").as_bytes()).text(), "hello");
    let head = replica.seen().pop().unwrap().head.to_ascii_lowercase();
    for gone in ["x-private", "keep-alive", "te:", "proxy-connection", "upgrade", "http2-settings", "connection"] {
        assert!(!head.contains(gone), "{gone} in {head}");
    }
    assert!(head.contains("x-public: 1") && head.contains("content-length: 5"), "{head}");
}

/// A seeded source of bytes and choices.
pub(crate) struct Dice(AtomicU64);

impl Dice {
    /// Of one round of a run; `PEREGRINE_SEED` makes another run.
    pub(crate) fn of(round: u64) -> Dice {
        Dice(AtomicU64::new(number("PEREGRINE_SEED").unwrap_or(7) * 1_000_003 + round))
    }

    pub(crate) fn roll(&self, sides: u64) -> u64 {
        let state =
            self.0.load(Relaxed).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.store(state, Relaxed);
        (state >> 33) % sides
    }

    fn pick<'a>(&self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len() as u64) as usize]
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// How many rounds to go; `PEREGRINE_FUZZ` makes them more.
pub(crate) fn rounds(usually: u64) -> u64 {
    number("PEREGRINE_FUZZ").unwrap_or(usually)
}

/// Changes, adds or takes away a byte, one time in four.
fn marred(text: String, dice: &Dice) -> Vec<u8> {
    let mut bytes = text.into_bytes();
    if dice.roll(4) == 0 && !bytes.is_empty() {
        let at = dice.roll(bytes.len() as u64) as usize;
        match dice.roll(3) {
            0 => bytes[at] = dice.roll(256) as u8,
            1 => bytes.insert(at, dice.roll(256) as u8),
            _ => drop(bytes.remove(at)),
        }
    }
    bytes
}

/// A request out of parts that are right, odd or wrong, then perhaps with a byte changed.
fn made(dice: &Dice) -> Vec<u8> {
    let mut text = String::new();
    text += dice.pick(&["POST", "GET", "HEAD", "post", "PUT", "", "P\0ST", "OPTIONS"]);
    text += dice.pick(&[" ", " ", " ", "  ", "\t"]);
    text += dice.pick(&[
        "/api/v1/endpoint/iris/score",
        "/api/v1/endpoint/iris/score",
        "/",
        "*",
        "/../x",
        "http://a/score",
        "/%00",
    ]);
    text += dice.pick(&[" HTTP/1.1\r\n", " HTTP/1.1\r\n", " HTTP/1.0\r\n", " HTTP/1.1\n", "\r\n", " HTTP/9.9\r\n"]);
    text += dice.pick(&["host: a\r\n", "host: a\r\n", "", "host: a\r\nhost: b\r\n", "host:\r\n"]);
    text += &dice
        .pick(&["authorization: Bearer KEY\r\n", "authorization: Bearer KEY\r\n", "", "Authorization:Bearer x\r\n"])
        .replace("KEY", KEY);
    more(text, dice)
}

/// The rest of a request: fields, a body, perhaps with a byte changed anywhere.
pub(crate) fn more(mut text: String, dice: &Dice) -> Vec<u8> {
    for _ in 0..dice.roll(4) {
        text += dice.pick(&[
            "content-length: 5\r\n",
            "content-length: 0\r\n",
            "content-length: 5, 5\r\n",
            "transfer-encoding: chunked\r\n",
            "Transfer-Encoding : chunked\r\n",
            "connection: close\r\n",
            "connection: content-length\r\n",
            "x: y\r\n",
            "x: y\r\n z\r\n",
            "expect: 100-continue\r\n",
            "upgrade: websocket\r\nconnection: upgrade\r\n",
            "x:\0\r\n",
            "\u{e9}: y\r\n",
            "te: trailers\r\n",
        ]);
    }
    text += dice.pick(&["\r\n", "\r\n", "\r\n", "\n", ""]);
    text += dice.pick(&[
        "hello",
        "",
        "5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhel",
        "0\r\n\r\n",
        "5;x\r\nhello\r\n0\r\n\r\n",
        "ffffffff\r\n",
    ]);
    marred(text, dice)
}

/// Every request a replica sees is one that was framed by the router, and one request is at most one.
#[test]
fn whatever_is_sent_replicas_see_whole_requests_and_the_router_lives() {
    let replica = Replica::echo();
    let world = impatient(&replica);
    for round in 0..rounds(1500) {
        let dice = Dice::of(round);
        let bytes = made(&dice);
        let mut caller = world.connect();
        // In two pieces, so that every state is entered in the middle as well.
        let cut = dice.roll(bytes.len() as u64 + 1) as usize;
        let _ = caller.stream.write_all(&bytes[..cut]);
        let _ = caller.stream.write_all(&bytes[cut..]);
        let _ = caller.stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = caller.stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer);
        let shown = String::from_utf8_lossy(&bytes);
        assert!(text.is_empty() || text.starts_with("HTTP/1.1 "), "round {round}: {shown:?} -> {text:?}");
        assert!(
            !text.starts_with("HTTP/1.1 5") || text.starts_with("HTTP/1.1 50"),
            "round {round}: {shown:?} -> {text:?}"
        );
        for seen in replica.seen() {
            well_framed(&seen.head, round, &shown);
        }
    }
    assert_eq!(world.score("fine").text(), "fine");
    eventually("every slot is free", || world.routes.demand()[0].in_flight == 0);
}

/// A router that waits for nobody.
fn impatient(replica: &Replica) -> World {
    let many = "request_settings: {max_concurrent_requests_per_instance: 100, request_timeout_ms: 300}";
    let mut settings = super::world::settings();
    settings.limits.head = Duration::from_millis(100);
    settings.limits.stall = Duration::from_millis(100);
    settings.limits.idle = Duration::from_millis(100);
    World::with(&iris(&[replica], many), settings)
}

fn well_framed(head: &str, round: u64, shown: &str) {
    let lower = head.to_ascii_lowercase();
    let count = |name: &str| lower.lines().filter(|line| line.starts_with(name)).count();
    assert!(count("content-length:") + count("transfer-encoding:") <= 1, "round {round}: {shown:?} -> {head:?}");
    assert!(count("host:") == 1 && !lower.contains('\0'), "round {round}: {shown:?} -> {head:?}");
    assert!(lower.matches('\n').count() == lower.matches("\r\n").count(), "round {round}: {shown:?} -> {head:?}");
    assert!(!lower.contains("authorization"), "round {round}: {shown:?} -> {head:?}");
}

#[test]
fn answers_read_the_same_however_they_are_cut() {
    let answers = [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\na: b\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    ];
    for answer in answers {
        for cut in 1..answer.len() {
            let (first, rest) = {
                let (first, rest) = answer.as_bytes().split_at(cut);
                (first.to_vec(), rest.to_vec())
            };
            let replica = Replica::start(move |_, stream| {
                stream.set_nodelay(true).unwrap();
                stream.write_all(&first).unwrap();
                std::thread::yield_now();
                stream.write_all(&rest).is_ok()
            });
            let world = World::start(&iris(&[&replica], ""));
            let mut caller = world.connect();
            caller.send(&get("/api/v1/endpoint/iris/score", ""));
            let mut wire = Wire::default();
            let mut got = Answer::of(wire.message(&mut caller.stream).unwrap());
            if got.status == 103 {
                got = Answer::of(wire.message(&mut caller.stream).unwrap());
            }
            assert!(got.text().starts_with("hello"), "{answer:?} at {cut}: {got:?}");
        }
    }
}

/// An answer out of parts that are right, odd or wrong, then perhaps with a byte changed.
fn answered(dice: &Dice) -> Vec<u8> {
    let mut text = String::new();
    text += dice.pick(&["", "", "", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"]);
    text += dice.pick(&["HTTP/1.1 ", "HTTP/1.1 ", "HTTP/1.0 ", "HTTP/2.0 ", "ICY "]);
    text += dice.pick(&[
        "200 OK",
        "200 OK",
        "200",
        "204 No",
        "304 Same",
        "404 No",
        "500 Oops",
        "101 Switch",
        "99 x",
        "2000 x",
    ]);
    text += dice.pick(&["\r\n", "\r\n", "\r\n", "\n"]);
    for _ in 0..dice.roll(4) {
        text += dice.pick(&[
            "content-length: 5\r\n",
            "content-length: 0\r\n",
            "content-length: 99\r\n",
            "content-length: 5, 5\r\n",
            "transfer-encoding: chunked\r\n",
            "transfer-encoding: gzip\r\n",
            "connection: close\r\n",
            "connection: upgrade\r\nupgrade: websocket\r\n",
            "x : y\r\n",
            "x: y\r\n z\r\n",
            "x:\0\r\n",
            "x-request-id: forged\r\n",
        ]);
    }
    text += dice.pick(&["\r\n", "\r\n", "\r\n", "\n", ""]);
    text += dice.pick(&[
        "hello",
        "hello",
        "",
        "5\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\nx: y\r\n\r\n",
        "5\r\nhel",
        "zz\r\n",
        "helloHTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nsmuggled",
    ]);
    marred(text, dice)
}

/// Whatever a replica says, its caller gets one answer with our own id, or none, and the next caller gets nothing of it.
#[test]
fn whatever_a_replica_answers_callers_see_whole_answers_and_the_router_lives() {
    let said: Arc<Mutex<Vec<u8>>> = Arc::default();
    let says = Arc::clone(&said);
    let replica = Replica::start(move |request, stream| {
        let fine = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine".to_vec();
        let answer = if request.body == b"fine" { fine } else { says.lock().unwrap().clone() };
        let _ = stream.write_all(&answer);
        request.body == b"stay" || request.body == b"fine"
    });
    let world = impatient(&replica);
    for round in 0..rounds(300) {
        let answer = answered(&Dice::of(round));
        let shown = String::from_utf8_lossy(&answer).into_owned();
        *said.lock().unwrap() = answer;
        let mut caller = world.connect();
        caller.send(&post("connection: close\r\n", if round % 2 == 0 { "stay" } else { "go" }));
        let mut got = Vec::new();
        let _ = caller.stream.read_to_end(&mut got);
        let (mut wire, mut rest) = (Wire::default(), got.as_slice());
        let whole = std::iter::from_fn(|| wire.message(&mut rest)).filter(|one| !one.head.starts_with("HTTP/1.1 1"));
        let heads: Vec<String> = whole.map(|one| one.head.to_ascii_lowercase()).collect();
        assert!(heads.len() <= 1, "round {round}: {shown:?} -> {heads:?}");
        for head in heads {
            let ids = head.lines().filter(|line| line.starts_with("x-request-id:")).count();
            let fine = head.starts_with("http/1.1 ")
                && ids == 1
                && !head.contains("x-request-id: forged")
                && !head.contains('\0');
            assert!(fine, "round {round}: {shown:?} -> {head:?}");
        }
        assert_eq!(world.score("fine").text(), "fine", "round {round}: after {shown:?}");
    }
    eventually("every slot is free", || world.routes.demand()[0].in_flight == 0);
}

/// What begins as HTTP/2 and goes on as noise ends its connection and nothing else.
#[test]
fn noise_in_the_second_protocol_ends_one_connection() {
    let replica = Replica::echo();
    let world = impatient(&replica);
    for round in 0..rounds(200) {
        let dice = Dice::of(round);
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        for _ in 0..=dice.roll(6) {
            // Length, kind, flags, stream: plausible enough to get past the first look.
            let length = dice.roll(40);
            bytes.extend([0, 0, length as u8, dice.roll(12) as u8, dice.roll(64) as u8, 0, 0, 0, dice.roll(6) as u8]);
            bytes.extend((0..length).map(|_| dice.roll(256) as u8));
        }
        let mut caller = world.connect();
        let _ = caller.stream.write_all(&bytes);
        let _ = caller.stream.shutdown(std::net::Shutdown::Write);
        let _ = caller.stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(world.score("fine").text(), "fine");
    assert!(replica.seen().iter().all(|seen| seen.body == b"fine"), "noise is no request");
    eventually("every slot is free", || world.routes.demand()[0].in_flight == 0);
}
