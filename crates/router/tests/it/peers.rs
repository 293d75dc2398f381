//! The same odd requests to nginx and to us, before the same replica: what it refuses we refuse, and what both forward is the
//! same request.

use super::{
    odd,
    world::{Answer, KEY, Replica, Seen, Wire, World, eventually, iris, post},
};
use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

/// A running nginx; stopped when dropped.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        // Its children go with it when it is asked politely.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

impl Nginx {
    fn start(folder: &Path, replica: SocketAddr) -> Option<(Nginx, SocketAddr)> {
        let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
            .into_iter()
            .find(|path| Path::new(path).exists());
        let Some(program) = program else {
            println!("skipped: nginx (not installed; `cargo xtask setup` installs it where it can)");
            return None;
        };
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let at = folder.display();
        let config = format!(
            "daemon off; pid {at}/pid; error_log {at}/error.log; events {{}}\nhttp {{ access_log off; client_body_temp_path {at}/a; proxy_temp_path {at}/b; \
             fastcgi_temp_path {at}/c; uwsgi_temp_path {at}/d; scgi_temp_path {at}/e;\n server {{ listen {address}; location / {{ proxy_pass http://{replica}; \
             proxy_http_version 1.1; proxy_ignore_client_abort on; rewrite ^/api/v1/endpoint/iris/(.*)$ /$1 break; }} }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, config).unwrap();
        let error_log = folder.join("error.log");
        let child =
            Command::new(program).arg("-c").arg(&file).arg("-e").arg(&error_log).stdin(Stdio::null()).spawn().unwrap();
        let nginx = Nginx(child);
        eventually("nginx listens", || TcpStream::connect(address).is_ok());
        Some((nginx, address))
    }
}

/// The statuses of the answers to these bytes: so many, or until there are no more.
fn statuses(to: SocketAddr, bytes: &[u8], most: usize) -> Vec<u16> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let _ = stream.write_all(bytes);
    let mut wire = Wire::default();
    std::iter::from_fn(|| wire.message(&mut stream))
        .map(|seen| Answer::of(seen).status)
        .filter(|status| *status >= 200)
        .take(most)
        .collect()
}

/// Requests that are odd and right.
fn accepted() -> Vec<String> {
    let to = "POST /api/v1/endpoint/iris/score HTTP/1.1\r\n";
    let auth = format!("host: a\r\nauthorization: Bearer {KEY}\r\n");
    let chunks = |body: &str| format!("{to}{auth}transfer-encoding: chunked\r\n\r\n{body}");
    vec![
        post("", "plain"),
        post("x-empty:\r\nX-MiXeD:no space\r\nx-tab:\ta\tb \r\n", "fields"),
        post("x-latin: caf\u{e9}\r\n", "letters"),
        format!("\r\n{}", post("", "an empty line before")),
        format!("{}{}", post("", "one"), post("", "two")),
        chunks("5\r\nhello\r\n0\r\n\r\n"),
        chunks("005\r\nhello\r\n000\r\n\r\n"),
        chunks("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"),
        chunks("5\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n"),
        format!("{to}{auth}Transfer-Encoding: CHUNKED\r\n\r\n2\r\nhi\r\n0\r\n\r\n"),
        format!("{}{auth}content-length: 2\r\n\r\nhi", to.replace("HTTP/1.1", "HTTP/1.0")),
        format!("{}{auth}content-length: 2\r\n\r\nhi", to.replace("POST /", "POST http://a/")),
        format!("{}{auth}\r\n", to.replace("POST", "GET").replace("/score", "/a%20b?x=%2e%2e/&y")),
        post("connection: close\r\n", "last"),
    ]
}

/// What a replica saw that matters: request line and body.
fn essence(seen: &Seen) -> (String, String) {
    let line = seen.head.lines().next().unwrap_or_default().replace("HTTP/1.0", "HTTP/1.1");
    let body = String::from_utf8_lossy(&seen.body).replace("x-trailer: 1\r\n", "");
    (line, body)
}

#[test]
fn nginx_and_the_router_agree_on_odd_requests() {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = (Replica::echo(), Replica::echo());
    let Some((_nginx, nginx)) = Nginx::start(folder.path(), theirs.address) else { return };
    let world = World::start(&iris(&[&ours], ""));
    for request in accepted() {
        let (before_theirs, before_ours) = (theirs.seen().len(), ours.seen().len());
        let count = request.matches("HTTP/1.").count();
        let (a, b) = (statuses(nginx, request.as_bytes(), count), statuses(world.address, request.as_bytes(), count));
        assert_eq!(a, b, "{request:?}");
        let essences = |replica: &Replica, from: usize| replica.seen()[from..].iter().map(essence).collect::<Vec<_>>();
        assert_eq!(essences(&theirs, before_theirs), essences(&ours, before_ours), "{request:?}");
    }
    // What we refuse, the other may let pass; never the other way round.
    let mut stricter = 0;
    for (request, status) in odd::refused() {
        let (a, b) = (statuses(nginx, request.as_bytes(), 1), statuses(world.address, request.as_bytes(), 2));
        assert_eq!(b, [status], "{:?}", &request[..request.len().min(300)]);
        stricter += u32::from(a.iter().all(|status| *status < 400));
    }
    println!("nginx lets {stricter} of {} pass that the router refuses", odd::refused().len());
}

/// Requests made of odd parts: what the router forwards nginx forwards, too, and as the same request.
#[test]
fn what_the_router_forwards_nginx_understands_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = (Replica::echo(), Replica::echo());
    let Some((_nginx, nginx)) = Nginx::start(folder.path(), theirs.address) else { return };
    let world = World::start(&iris(&[&ours], ""));
    let mut same = 0;
    for round in 0..odd::rounds(300) {
        let opening = post("", "").replace("content-length: 0\r\n\r\n", "");
        let request = odd::more(opening, &odd::Dice::of(round));
        let shown = String::from_utf8_lossy(&request).into_owned();
        let [of_theirs, of_ours] = [(&theirs, nginx), (&ours, world.address)].map(|(replica, address)| {
            let before = replica.seen().len();
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let _ = stream.write_all(&request);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
            replica.seen()[before..].iter().map(essence).collect::<Vec<_>>()
        });
        // Paths are normalised by the other and passed on as they are by us; of methods it knows only those in capitals.
        let ordinary = |(line, _): &&(String, String)| {
            line.strip_suffix(" /score HTTP/1.1").is_some_and(|method| method.bytes().all(|b| b.is_ascii_uppercase()))
        };
        for one in of_ours.iter().filter(ordinary) {
            assert!(of_theirs.contains(one), "round {round}: {shown:?}: {of_theirs:?} {one:?}");
            same += 1;
        }
    }
    assert!(same > 20, "only {same} requests were forwarded");
}

/// Answers of a replica, each followed by the end of its connection.
const ANSWERS: [&str; 21] = [
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello",
    "HTTP/1.1 404 Not here\r\ncontent-length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello and more",
    "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloworld\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff1\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nhello to the end",
    "HTTP/1.0 200 OK\r\n\r\nhello to the end",
    "HTTP/1.1 200 OK\r\ncontent-length: five\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx\0y: z\r\n\r\nhello",
    "HTTP/1.1 204 No\r\n\r\n",
    "HTTP/1.1 304 Same\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx: y",
    "HTTP/1.1 ",
    "",
];

/// The status and body of the first whole answer; `None` where it breaks off.
fn answer(to: SocketAddr) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(post("", "x").as_bytes()).unwrap();
    let answer = Answer::of(Wire::default().message(&mut stream)?);
    Some((answer.status, if answer.status < 500 { answer.text() } else { String::new() }))
}

#[test]
fn nginx_and_the_router_agree_on_odd_answers() {
    let folder = tempfile::tempdir().unwrap();
    let said: Arc<Mutex<Vec<u8>>> = Arc::default();
    let says = Arc::clone(&said);
    let replica = Replica::start(move |_, stream| {
        let answer = says.lock().unwrap().clone();
        stream.write_all(&answer).is_err()
    });
    let Some((_nginx, nginx)) = Nginx::start(folder.path(), replica.address) else { return };
    let world = World::start(&iris(&[&replica], ""));
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 5\r\n\r\nhello", "y".repeat(40_000));
    let mut stricter = Vec::new();
    for text in ANSWERS.into_iter().chain([long.as_str()]) {
        *said.lock().unwrap() = text.as_bytes().to_vec();
        let (theirs, ours) = (answer(nginx), answer(world.address));
        let shown = &text[..text.len().min(200)];
        match (&theirs, &ours) {
            // What one refuses or breaks off the other does not pass on as whole.
            (Some((200..500, _)), Some((502, _)) | None) => stricter.push(shown),
            (None, Some((502, _))) => {}
            _ => assert_eq!(theirs, ours, "{shown:?}"),
        }
    }
    println!("nginx passes on {stricter:?}, which the router does not");
}
