//! A router by a file of routes, killed, replaced and stopped under load: what is lost is what was on its way at a kill, and
//! no replica ever sees a request twice.

use super::restart::Running;
use crate::harness::{Home, PATIENCE};
use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

const KEY: &str = "a-key-of-iris";
const CALLERS: u64 = 8;
const KILLS: u64 = 4;

/// Head and body of the next message; `None` when the other end is gone.
fn message(stream: &mut BufReader<TcpStream>) -> io::Result<Option<(String, String)>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    head.make_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    Ok(Some((head, String::from_utf8(body).unwrap())))
}

/// A replica that answers each request with its own body after a moment, and counts how often it sees each.
#[derive(Clone, Default)]
struct Echo(Arc<Mutex<HashMap<String, u32>>>);

impl Echo {
    fn start(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let echo = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let echo = echo.clone();
                thread::spawn(move || echo.converse(stream));
            }
        });
        address
    }

    fn converse(&self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Ok(Some((_, body))) = message(&mut stream) {
            *self.0.lock().unwrap().entry(body.clone()).or_default() += 1;
            thread::sleep(Duration::from_millis(3));
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            if stream.get_mut().write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Callers with a number for each request, who never send one again.
struct Load {
    address: SocketAddr,
    over: AtomicBool,
    /// Nothing may be lost on connections from now on.
    calm: AtomicBool,
    next: AtomicU64,
    answered: Mutex<Vec<String>>,
    /// What was lost, and whether its connection was from before the calm.
    lost: Mutex<Vec<(String, bool)>>,
}

impl Load {
    fn call(&self) {
        let mut open = None;
        while !self.over.load(Relaxed) {
            let calm = self.calm.load(Relaxed);
            // Nothing is lost by who finds the door closed.
            let connect = || Some((BufReader::new(TcpStream::connect(self.address).ok()?), calm));
            let Some((mut stream, calm)) = open.take().or_else(connect) else { continue };
            let number = format!("request-{}", self.next.fetch_add(1, Relaxed));
            match ask(&mut stream, &number) {
                Ok(head) => {
                    self.answered.lock().unwrap().push(number);
                    open = (!head.contains("connection: close")).then_some((stream, calm));
                }
                Err(error) => self.lost.lock().unwrap().push((format!("{number}: {error}"), calm)),
            }
        }
    }

    /// Waits for so many more answers.
    fn go_on(&self, home: &Home, answers: usize) {
        let until = self.answered.lock().unwrap().len() + answers;
        home.until("more answers", || self.answered.lock().unwrap().len() >= until);
    }
}

/// Ends the calls, also where the test fails.
impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Relaxed);
    }
}

struct Over<'l>(&'l Load);

/// The head of the answer, which is to this request.
fn ask(stream: &mut BufReader<TcpStream>, number: &str) -> io::Result<String> {
    stream.get_ref().set_read_timeout(Some(PATIENCE))?;
    let fields = format!("host: a\r\nauthorization: Bearer {KEY}\r\ncontent-length: {}", number.len());
    let request = format!("POST /api/v1/endpoint/iris/score HTTP/1.1\r\n{fields}\r\n\r\n{number}");
    stream.get_mut().write_all(request.as_bytes())?;
    let (head, body) = message(stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    match head.starts_with("http/1.1 200") && body == number {
        true => Ok(head),
        false => Err(io::Error::other(format!("{head}{body}"))),
    }
}

#[test]
fn a_router_that_is_killed_loses_what_was_on_its_way_and_one_that_is_told_to_stop_nothing() {
    let (home, echo) = (Home::new(), Echo::default());
    let replicas = [echo.start(), echo.start()].map(|address| format!("'{address}'")).join(", ");
    let settings = "request_settings: {max_concurrent_requests_per_instance: 3, max_queue_wait_ms: 20000}";
    let routes = format!(
        "endpoints:\n  iris:\n    keys: {{primary: {KEY}}}\n    traffic: {{blue: 100}}\n    deployments:\n      \
         blue: {{replicas: [{replicas}], {settings}}}\n"
    );
    home.file("routes.yml", &routes);
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listen = address.to_string();
    let start = |more: &[&str]| {
        let args = [&["router", "--routes", "routes.yml", "--workers", "2", "--listen", &listen], more].concat();
        Running::router(home.command(&args))
    };
    let load = Load {
        address,
        over: AtomicBool::new(false),
        calm: AtomicBool::new(false),
        next: AtomicU64::new(0),
        answered: Mutex::default(),
        lost: Mutex::default(),
    };
    thread::scope(|scope| {
        let _over = Over(&load);
        (0..CALLERS).for_each(|_| drop(scope.spawn(|| load.call())));
        let mut router = start(&[]);
        for _ in 0..KILLS {
            load.go_on(&home, 100);
            router.signal("KILL");
            router = start(&[]);
            load.go_on(&home, 1);
        }
        load.calm.store(true, Relaxed);
        load.go_on(&home, 100);
        for _ in 0..2 {
            let next = start(&["--share-port"]);
            load.go_on(&home, 50);
            assert!(std::mem::replace(&mut router, next).signal("TERM"), "it ends well");
        }
        load.go_on(&home, 50);
        assert!(router.signal("TERM"), "it ends well");
        TcpStream::connect(address).expect_err("nobody listens any more");
    });
    let (answered, lost, seen) = (load.answered.lock().unwrap(), load.lost.lock().unwrap(), echo.0.lock().unwrap());
    // The doors of the two workers close one after the other: who comes again at once may stand at one that is about to.
    assert!(lost.len() as u64 <= KILLS * CALLERS * 3, "{} lost: {lost:?}", lost.len());
    assert!(lost.iter().all(|(_, calm)| !calm), "lost without a kill: {lost:?}");
    assert!(answered.iter().all(|number| seen.contains_key(number)), "answered by nobody");
    let twice: Vec<_> = seen.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "sent twice: {twice:?}");
    println!("{} answered, {} lost in {KILLS} kills", answered.len(), lost.len());
}
