//! Bodies that come in pieces, in both directions, and connections that end in odd ways.

use super::world::{Caller, KEY, Replica, Seen, World, eventually, get, iris, post, settings};
use std::{
    fs,
    io::{Read, Write},
    net::Shutdown,
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunked(fields: &str) -> String {
    format!(
        "POST /api/v1/endpoint/iris/score HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {KEY}\r\ntransfer-encoding: chunked\r\n{fields}\r\n"
    )
}

/// Reads until the text is there.
fn until(caller: &mut Caller, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        let mut byte = [0];
        assert_eq!(caller.stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn each_event_arrives_before_the_next_is_made() {
    let (next, told) = mpsc::channel::<&str>();
    let told = Mutex::new(told);
    let replica = Replica::start(move |_, stream| {
        stream.write_all(CHUNKED).unwrap();
        for event in told.lock().unwrap().iter() {
            write!(stream, "{:x}\r\n{event}\r\n", event.len()).unwrap();
        }
        stream.write_all(b"0\r\nx-total: 2\r\n\r\n").is_ok()
    });
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    caller.send(&post("", "x"));
    next.send("data: 1\n\n").unwrap();
    assert!(until(&mut caller, "data: 1\n\n").contains("content-type: text/event-stream"));
    next.send("data: 2\n\n").unwrap();
    until(&mut caller, "data: 2\n\n");
    drop(next);
    assert!(until(&mut caller, "\r\n\r\n").contains("0\r\nx-total: 2\r\n\r\n"), "trailers pass");
}

#[test]
fn a_request_in_pieces_arrives_in_pieces_with_its_trailers() {
    let (sender, arrived) = mpsc::channel();
    let sender = Mutex::new(sender);
    let replica = Replica::start(move |request, stream| {
        sender.lock().unwrap().send(String::from_utf8(request.body.clone()).unwrap()).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_ok()
    });
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    caller.send(&chunked("trailer: x-sum\r\n"));
    caller.send("3\r\nabc\r\n");
    eventually("the slot is taken", || world.routes.demand()[0].in_flight == 1);
    caller.send("2\r\nde\r\n0\r\nx-sum: 5\r\ncontent-length: 9\r\n\r\n");
    assert_eq!(arrived.recv_timeout(Duration::from_secs(10)).unwrap(), "abcdex-sum: 5\r\n");
    assert_eq!(caller.read().unwrap().text(), "ok");
    // The connection goes on, also with what was sent too early.
    caller.send(&format!("{}1\r\nz\r\n0\r\n\r\n{}", chunked(""), post("", "next")));
    assert_eq!((caller.read().unwrap().status, caller.read().unwrap().status), (200, 200));
}

#[test]
fn long_bodies_pass_both_ways_in_little_memory() {
    const LENGTH: usize = 192 << 20;
    // A replica that answers while it reads, so that both directions are full at the same time.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n").unwrap();
        let (mut left, mut piece) = (LENGTH, vec![0; 1 << 16]);
        while left > 0 {
            let read = stream.read(&mut piece).unwrap();
            stream.write_all(&piece[..read]).unwrap();
            left -= read;
        }
    });
    let text = iris(&[], "").replace("replicas: []", &format!("replicas: ['{address}']"));
    let world = World::start(&text.replace("    traffic", &format!("    max_body_bytes: {LENGTH}\n    traffic")));
    let mut caller = world.connect();
    let head = post("", "").replace("content-length: 0", &format!("content-length: {LENGTH}"));
    caller.send(&head);
    let mut sending = caller.stream.try_clone().unwrap();
    let before = resident();
    let sender = std::thread::spawn(move || {
        let piece = vec![7_u8; 1 << 16];
        (0..LENGTH / piece.len()).for_each(|_| sending.write_all(&piece).unwrap());
    });
    assert!(until(&mut caller, "\r\n\r\n").starts_with("HTTP/1.1 200"));
    let (mut left, mut piece, mut most) = (LENGTH, vec![0; 1 << 16], 0);
    while left > 0 {
        let read = caller.stream.read(&mut piece).unwrap();
        assert!(read > 0 && piece[..read].iter().all(|byte| *byte == 7));
        left -= read;
        most = most.max(resident());
    }
    sender.join().unwrap();
    assert!(most.saturating_sub(before) < 32 << 20, "grew by {} MiB", (most - before) >> 20);
    assert_eq!(caller.ask(&get("/healthz", "")).status, 200, "the connection goes on");
}

#[test]
fn an_answer_of_two_gigabytes_passes_in_little_memory() {
    const LENGTH: u64 = (2 << 30) + 1;
    let replica = Replica::start(|_, stream| {
        let _ = write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
        std::io::copy(&mut std::io::repeat(7).take(LENGTH), stream).is_ok()
    });
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    caller.send(&post("", "x"));
    let before = resident();
    assert!(until(&mut caller, "\r\n\r\n").starts_with("HTTP/1.1 200"));
    let (mut left, mut piece, mut most) = (LENGTH, vec![0; 1 << 20], 0);
    while left > 0 {
        let read = caller.stream.read(&mut piece).unwrap();
        assert!(read > 0, "{left} bytes are missing");
        left -= read as u64;
        most = most.max(resident());
    }
    assert!(most.saturating_sub(before) < 32 << 20, "grew by {} MiB", (most - before) >> 20);
}

/// Bytes of memory this process holds.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn an_answer_before_the_end_of_the_request_is_passed_on() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig").unwrap();
    });
    let world = World::start(&iris(&[], "").replace("replicas: []", &format!("replicas: ['{address}']")));
    let mut caller = world.connect();
    caller.send(&chunked(""));
    caller.send("3\r\nabc\r\n");
    let answer = caller.read().unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (413, "big"));
}

#[test]
fn a_caller_that_closes_its_half_still_gets_its_answer() {
    let world = World::start(&iris(&[&Replica::echo()], ""));
    let mut caller = world.connect();
    caller.send(&post("", "bye"));
    caller.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(caller.read().unwrap().text(), "bye");
}

#[test]
fn an_answer_that_breaks_off_is_not_made_whole() {
    for (answer, form) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc", "a length"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabc", "chunks"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz", "bad chunks"),
    ] {
        let bytes = answer.as_bytes().to_vec();
        let replica = Replica::start(move |_, stream| stream.write_all(&bytes).is_err());
        let world = World::start(&iris(&[&replica], ""));
        let mut caller = world.connect();
        caller.send(&post("", "x"));
        assert!(caller.read().is_none(), "{form}");
        eventually("it counts as the replica's fault", || counted(&world, "502") == 1);
        assert_eq!(counted(&world, "200"), 0, "{form}");
    }
}

/// Answers of `blue` with this status.
fn counted(world: &World, code: &str) -> u64 {
    let name = format!("peregrine_router_requests_total{{endpoint=\"iris\",deployment=\"blue\",code=\"{code}\"}} ");
    world
        .admin("/metrics")
        .1
        .lines()
        .find_map(|line| line.strip_prefix(&name))
        .map_or(0, |count| count.parse().unwrap())
}

#[test]
fn a_caller_that_leaves_before_its_answer_counts_as_one_who_left() {
    let replica = Replica::start(|_, stream| {
        let _ = stream.write_all(CHUNKED);
        while stream.write_all(b"5\r\nevent\r\n").is_ok() {}
        false
    });
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    caller.send(&post("", "x"));
    until(&mut caller, "event");
    drop(caller);
    eventually("the caller left", || counted(&world, "499") == 1);
    // One who leaves in the middle of a body was never answered.
    let mut caller = world.connect();
    caller.send(&post("", "a body").replace("a body", "a"));
    drop(caller);
    eventually("the caller left", || counted(&world, "499") == 2);
    assert_eq!((counted(&world, "100"), counted(&world, "200")), (0, 0));
}

#[test]
fn an_answer_that_ends_with_its_connection_is_made_whole() {
    let replica = Replica::start(|_, stream| stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nto the end").is_err());
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    for _ in 0..3 {
        let answer = caller.ask(&post("", "x"));
        assert_eq!((answer.text().as_str(), answer.field("transfer-encoding")), ("to the end", "chunked"));
    }
}

#[test]
fn callers_of_the_old_protocol_get_no_chunks() {
    let replica = Replica::start(|_, stream| stream.write_all(&[CHUNKED, b"3\r\nabc\r\n0\r\n\r\n"].concat()).is_ok());
    let world = World::start(&iris(&[&replica], ""));
    let request = get("/api/v1/endpoint/iris/score", "connection: keep-alive\r\n").replace("HTTP/1.1", "HTTP/1.0");
    let answer = world.raw(request.as_bytes());
    assert_eq!((answer.text().as_str(), answer.field("connection")), ("abc", "close"));
    assert_eq!(answer.field("transfer-encoding"), "");
}

#[test]
fn a_caller_that_waits_is_told_to_continue_once_it_may() {
    let world = World::start(&iris(&[&Replica::echo()], ""));
    let request = post("expect: 100-continue\r\n", "later");
    let (head, body) = request.split_at(request.len() - 5);
    let mut caller = world.connect();
    caller.send(head);
    assert_eq!(caller.read().unwrap().status, 100);
    caller.send(body);
    assert_eq!(caller.read().unwrap().text(), "later");
    // Who may not is told at once, and sends nothing.
    let mut caller = world.connect();
    caller.send(&head.replace(KEY, "wrong"));
    assert_eq!(caller.read().unwrap().status, 401);
}

#[test]
fn hints_pass_before_the_answer_and_heads_have_no_body() {
    let replica = Replica::start(|request: &Seen, stream| {
        let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n";
        let body = if request.head.starts_with("HEAD") { "" } else { "ok" };
        write!(stream, "{hints}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{body}").is_ok()
    });
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    let hint = caller.ask(&post("", "x"));
    assert_eq!((hint.status, hint.field("link")), (103, "</a>"));
    assert_eq!(caller.read().unwrap().text(), "ok");
    caller.send(&get("/api/v1/endpoint/iris/score", "").replace("GET", "HEAD"));
    assert!(until(&mut caller, "\r\n\r\n").contains("103"));
    assert!(until(&mut caller, "\r\n\r\n").contains("content-length: 2"));
    assert_eq!(caller.ask(&get("/healthz", "")).status, 200, "nothing came after the head");
}

#[test]
fn a_websocket_is_a_tunnel() {
    let replica = Replica::start(|request, stream| {
        assert!(request.head.to_ascii_lowercase().contains("upgrade: websocket\r\n"));
        stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: k\r\n\r\nhello").unwrap();
        let mut piece = [0; 100];
        while let Ok(read @ 1..) = stream.read(&mut piece) {
            stream.write_all(&piece[..read].to_ascii_uppercase()).unwrap();
        }
        false
    });
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    caller.send(&get(
        "/api/v1/endpoint/iris/ws",
        "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-key: x\r\n",
    ));
    caller.send("early ");
    assert!(until(&mut caller, "\r\n\r\n").contains("sec-websocket-accept: k"));
    assert_eq!(until(&mut caller, "helloEARLY "), "helloEARLY ");
    caller.send("more");
    until(&mut caller, "MORE");
    assert_eq!(world.routes.demand()[0].in_flight, 1, "it holds its slot");
    drop(caller);
    eventually("the slot is free again", || world.routes.demand()[0].in_flight == 0);
}

#[test]
fn a_caller_that_takes_nothing_is_let_go() {
    let replica = Replica::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
        let piece = vec![0; 1 << 20];
        while stream.write_all(&piece).is_ok() {}
        false
    });
    let mut settings = settings();
    settings.limits.stall = Duration::from_millis(200);
    let world = World::with(&iris(&[&replica], ""), settings);
    let mut caller = world.connect();
    caller.send(&post("", "x"));
    eventually("it is being served", || world.routes.demand()[0].in_flight == 1);
    eventually("it is let go", || world.routes.demand()[0].in_flight == 0);
}

#[test]
fn requests_may_be_sent_ahead() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&order);
    let replica = Replica::start(move |request, stream| {
        noted.lock().unwrap().push(request.body.clone());
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{}", request.body[0] as char).is_ok()
    });
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    let all: String = "abcdefghij".chars().map(|letter| post("", &letter.to_string())).collect();
    caller.send(&format!("\r\n{all}"));
    let answers: String = (0..10).map(|_| caller.read().unwrap().text()).collect();
    assert_eq!((answers.as_str(), order.lock().unwrap().concat().as_slice()), ("abcdefghij", b"abcdefghij".as_slice()));
}
