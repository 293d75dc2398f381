//! Stopping, restarting and changing the table under load: no request is lost.

use super::world::{Caller, Replica, World, eventually, iris, post, settings, spec};
use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

const MANY: &str = "request_settings: {max_concurrent_requests_per_instance: 100, max_queue_wait_ms: 10000}";

#[test]
fn a_request_that_runs_is_finished_and_an_idle_connection_closed() {
    let barrier = Arc::new(Barrier::new(2));
    let held = Arc::clone(&barrier);
    let replica = Replica::start(move |_, stream| {
        held.wait();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_ok()
    });
    let world = World::start(&iris(&[&replica], ""));
    let (mut idle, mut busy) = (world.connect(), world.connect());
    busy.send(&post("", "x"));
    eventually("the request runs", || world.routes.demand()[0].in_flight == 1);
    world.stop();
    assert!(idle.read().is_none(), "an idle connection is closed");
    assert!(TcpStream::connect(world.address).is_err(), "nobody new is let in");
    barrier.wait();
    let answer = busy.read().unwrap();
    assert_eq!((answer.text().as_str(), answer.field("connection")), ("ok", "close"));
    assert!(world.join() < Duration::from_secs(5));
}

#[test]
fn the_time_to_finish_has_an_end() {
    let replica = Replica::start(|_, _| true);
    let settings = router::Settings { drain: Some(Duration::from_millis(300)), ..settings() };
    let world = World::with(&iris(&[&replica], "request_settings: {request_timeout_ms: 60000}"), settings);
    let mut caller = world.connect();
    caller.send(&post("", "x"));
    eventually("the request runs", || world.routes.demand()[0].in_flight == 1);
    assert!(world.join() < Duration::from_secs(5));
}

#[test]
fn without_a_limit_of_its_own_a_router_waits_as_long_as_a_request_may_take() {
    let (go, told) = std::sync::mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let replica = Replica::start(move |_, stream| {
        let _ = told.lock().unwrap().recv();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_ok()
    });
    let settings = router::Settings { drain: None, ..settings() };
    let world = World::with(&iris(&[&replica], "request_settings: {request_timeout_ms: 30000}"), settings);
    let (mut idle, mut caller) = (world.connect(), world.connect());
    caller.send(&post("", "x"));
    eventually("the request runs", || world.routes.demand()[0].in_flight == 1);
    world.stop();
    assert!(idle.read().is_none(), "the time for last words is over");
    go.send(()).unwrap();
    assert_eq!(caller.read().unwrap().text(), "ok");
    assert!(world.join() < Duration::from_secs(5), "who has nothing to do does not wait");
}

/// Callers that keep their connections and open new ones when told to.
struct Load {
    over: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    callers: Vec<thread::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(address: SocketAddr) -> Load {
        let (over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let caller = |_| {
            let (over, answered) = (Arc::clone(&over), Arc::clone(&answered));
            thread::spawn(move || call(address, &over, &answered))
        };
        let callers = (0..8).map(caller).collect();
        Load { over, answered, callers }
    }

    /// Waits for so many more answers.
    fn go_on(&self, answers: u64) {
        let until = self.answered.load(Relaxed) + answers;
        eventually("requests are answered", || self.answered.load(Relaxed) >= until);
    }

    /// What was lost.
    fn stop(self) -> Vec<String> {
        self.over.store(true, Relaxed);
        self.callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    }
}

fn call(address: SocketAddr, over: &AtomicBool, answered: &AtomicU64) -> Vec<String> {
    let mut lost = Vec::new();
    let mut open: Option<Caller> = None;
    while !over.load(Relaxed) {
        let mut caller = open.take().unwrap_or_else(|| Caller::to(address));
        caller.send(&post("", "x"));
        match caller.read() {
            Some(answer) if answer.status == 200 => {
                answered.fetch_add(1, Relaxed);
                open = (answer.field("connection") != "close").then_some(caller);
            }
            other => lost.push(format!("{other:?}")),
        }
    }
    lost
}

#[test]
fn a_change_of_tables_loses_no_request() {
    let replicas: Vec<Replica> = (0..6).map(|_| Replica::echo()).collect();
    let world = World::start(&iris(&[&replicas[0]], MANY));
    let load = Load::start(world.address);
    for round in 0..60 {
        let (a, b) = (&replicas[round % 6], &replicas[(round + 3) % 6]);
        world.routes.install(&spec(&iris(&[a, b], MANY)));
        load.go_on(10);
        // A replica that is asked for nothing any more could be stopped now.
        eventually("those that left are done", || world.routes.leaving().is_empty());
    }
    assert_eq!(load.stop(), Vec::<String>::new());
}

#[test]
fn a_new_router_takes_over_from_an_old_one_without_losing_a_request() {
    let replica = Replica::echo();
    // The sockets themselves are handed on: one that is closed would take along whoever waits at it.
    let sockets = router::bind_all(&router::Settings { workers: 2, ..settings() }).unwrap();
    let start = || {
        let copies = sockets.iter().map(|socket| socket.try_clone().unwrap()).collect();
        World::on(copies, &iris(&[&replica], MANY), settings())
    };
    let mut world = start();
    let load = Load::start(world.address);
    for _ in 0..3 {
        load.go_on(100);
        let next = start();
        load.go_on(100);
        std::mem::replace(&mut world, next).join();
    }
    load.go_on(100);
    assert_eq!(load.stop(), Vec::<String>::new());
}

#[test]
fn a_port_is_not_shared_by_accident() {
    let world = World::start(&iris(&[], ""));
    let settings = router::Settings { listen: world.address, ..settings() };
    let Err(error) = router::start(settings, world.routes.clone()) else { panic!("two routers on one port") };
    assert_eq!(error.to_string(), format!("cannot listen on {}", world.address));
}
