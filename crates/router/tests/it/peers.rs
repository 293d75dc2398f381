//! The same odd requests to nginx and to us, before the same replica: what it refuses we refuse, and what both forward is the
//! same request.

use super::{
    odd,
    world::{Answer, KEY, Replica, Seen, Wire, World, eventually, iris, post},
};
use std::{
    fs,
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
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
             proxy_http_version 1.1; rewrite ^/api/v1/endpoint/iris/(.*)$ /$1 break; }} }} }}\n"
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
