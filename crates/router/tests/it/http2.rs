//! HTTP/2: the same endpoint, the same rules.

use super::world::{Answer, KEY, Replica, World, iris, post};
use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;
use std::{collections::BTreeMap, future::poll_fn, io::Write};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

/// One connection, driven beside the requests.
pub(crate) struct Session {
    send: SendRequest<Bytes>,
    _driver: JoinSet<()>,
}

pub(crate) fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(std::time::Duration::from_secs(60), work).await.unwrap() });
}

impl Session {
    pub(crate) async fn over(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Session {
        let (send, connection) = h2::client::handshake(io).await.unwrap();
        let mut driver = JoinSet::new();
        driver.spawn(async { drop(connection.await) });
        Session { send, _driver: driver }
    }

    async fn to(world: &World) -> Session {
        Session::over(tokio::net::TcpStream::connect(world.address).await.unwrap()).await
    }

    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &[u8]) -> Answer {
        let request = Request::builder().method(method).uri(format!("http://a{path}"));
        self.send(request.header("authorization", format!("Bearer {KEY}")).body(()).unwrap(), body).await
    }

    async fn send(&mut self, request: Request<()>, body: &[u8]) -> Answer {
        poll_fn(|cx| self.send.poll_ready(cx)).await.unwrap();
        let (response, mut stream) = self.send.send_request(request, body.is_empty()).unwrap();
        let upload = async {
            for piece in body.chunks(16_384) {
                stream.reserve_capacity(piece.len());
                while stream.capacity() < piece.len() {
                    poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
                }
                stream.send_data(Bytes::copy_from_slice(piece), false).unwrap();
            }
            if !body.is_empty() {
                stream.send_data(Bytes::new(), true).unwrap();
            }
        };
        let download = async {
            let (head, mut body) = response.await.unwrap().into_parts();
            let mut all = Vec::new();
            while let Some(data) = body.data().await {
                let data = data.unwrap();
                body.flow_control().release_capacity(data.len()).unwrap();
                all.extend_from_slice(&data);
            }
            let mut fields = BTreeMap::new();
            for (name, value) in head.headers.iter().chain(body.trailers().await.unwrap().iter().flatten()) {
                fields.insert(name.to_string(), value.to_str().unwrap().to_owned());
            }
            Answer { status: head.status.as_u16(), fields, body: all }
        };
        tokio::join!(upload, download).1
    }
}

const SCORE: &str = "/api/v1/endpoint/iris/score";

#[test]
fn requests_of_any_size_are_answered() {
    let world = World::start(&iris(&[&Replica::echo()], ""));
    block_on(async {
        let mut session = Session::to(&world).await;
        for length in [0, 5, 70_000, 5_000_000] {
            let body = vec![b'x'; length];
            let answer = session.ask("POST", SCORE, &body).await;
            assert_eq!((answer.status, answer.body.len()), (200, length));
            assert_eq!(answer.field("azureml-model-deployment"), "blue");
        }
    });
}

#[test]
fn streams_run_side_by_side_and_the_rules_hold() {
    let replica = Replica::start(|request, stream| {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\nkeep-alive: 5\r\n\r\n";
        let body = if request.head.starts_with("HEAD") { "" } else { "3\r\nabc\r\n0\r\nx-sum: 3\r\n\r\n" };
        write!(stream, "{head}{body}").is_ok()
    });
    let many = "request_settings: {max_concurrent_requests_per_instance: 50, max_queue_wait_ms: 10000}";
    let world = World::start(&iris(&[&replica], many));
    block_on(async {
        let mut session = Session::to(&world).await;
        let mut tasks = JoinSet::new();
        for _ in 0..100 {
            let mut one = Session { send: session.send.clone(), _driver: JoinSet::new() };
            tasks.spawn(async move { one.ask("POST", SCORE, b"x").await });
        }
        for answer in tasks.join_all().await {
            assert_eq!((answer.status, answer.text().as_str(), answer.field("x-sum")), (200, "abc", "3"));
            assert!(
                !answer.fields.contains_key("connection") && !answer.fields.contains_key("keep-alive"),
                "{answer:?}"
            );
        }
        assert_eq!(session.ask("HEAD", SCORE, b"").await.status, 200);
        assert_eq!(session.ask("POST", "/api/v1/endpoint/none/score", b"x").await.error().0, "NoEndpoint");
        assert_eq!(session.ask("GET", "/a/%2e%2e/b", b"").await.status, 400);
        let wrong = Request::post(format!("http://a{SCORE}")).header("authorization", "Bearer wrong").body(()).unwrap();
        assert_eq!(session.send(wrong, b"x").await.status, 401);
    });
    let head = replica.seen()[0].head.to_ascii_lowercase();
    assert!(head.contains("host: a\r\n") && !head.contains("connection"), "{head}");
}

#[test]
fn a_router_without_it_says_so() {
    let settings = router::Settings { http2: false, ..super::world::settings() };
    let world = World::with(&iris(&[&Replica::echo()], ""), settings);
    assert_eq!(world.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
    assert_eq!(world.raw(post("", "x").as_bytes()).status, 200);
}

#[test]
fn a_stream_that_is_given_up_frees_its_slot() {
    let replica = Replica::start(|_, _| true);
    let world = World::start(&iris(&[&replica], "request_settings: {request_timeout_ms: 300}"));
    block_on(async {
        let mut session = Session::to(&world).await;
        let request = Request::post(format!("http://a{SCORE}")).header("authorization", format!("Bearer {KEY}"));
        let (response, mut stream) = session.send.send_request(request.body(()).unwrap(), false).unwrap();
        stream.send_data(Bytes::from_static(b"x"), true).unwrap();
        drop((response, stream));
        let mut last = Session::to(&world).await;
        assert_eq!(last.ask("GET", "/healthz", b"").await.status, 200);
    });
    super::world::eventually("the slot is free", || world.routes.demand()[0].in_flight == 0);
}

#[test]
fn hints_pass_before_the_answer() {
    let replica =
        Replica::says("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let world = World::start(&iris(&[&replica], ""));
    block_on(async {
        let mut session = Session::to(&world).await;
        poll_fn(|cx| session.send.poll_ready(cx)).await.unwrap();
        let request = Request::get(format!("http://a{SCORE}")).header("authorization", format!("Bearer {KEY}"));
        let (mut response, _) = session.send.send_request(request.body(()).unwrap(), true).unwrap();
        let hint = poll_fn(|cx| response.poll_informational(cx)).await.unwrap().unwrap();
        assert_eq!((hint.status().as_u16(), hint.headers()["link"].to_str().unwrap()), (103, "</a>"));
        assert_eq!(response.await.unwrap().status(), 200);
    });
}
