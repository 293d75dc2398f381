//! Every status that the router gives, provoked, with whose fault it was.

use super::world::{Replica, World, eventually, get, iris, now, post, settings};
use std::{
    io::Write,
    net::TcpListener,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

fn said(answer: &super::world::Answer) -> (u16, String, String) {
    let (code, fault) = answer.error();
    (answer.status, code, fault)
}

fn is(answer: &super::world::Answer, status: u16, code: &str, fault: &str) {
    assert_eq!(said(answer), (status, code.to_owned(), fault.to_owned()), "{answer:?}");
}

#[test]
fn a_request_is_answered_with_what_the_model_says() {
    let replica = Replica::echo();
    let world = World::start(&iris(&[&replica], ""));
    let answer = world.raw(post("x-ms-client-request-id: my id/1\r\nx-mine: 1\r\n", "hello").as_bytes());
    assert_eq!((answer.status, answer.text().as_str()), (200, "hello"));
    assert_eq!(answer.field("azureml-model-deployment"), "blue");
    assert_eq!(answer.field("x-ms-client-request-id"), "myid1");
    assert_eq!(answer.field("x-request-id").len(), 36);
    let head = replica.seen()[0].head.to_ascii_lowercase();
    for line in [
        "post /score http/1.1\r\n",
        "host: a\r\n",
        "x-mine: 1\r\n",
        "x-forwarded-for: 127.0.0.1\r\n",
        "content-length: 5\r\n",
    ] {
        assert!(head.contains(line), "{line:?} in {head}");
    }
    assert!(head.contains(&format!("x-request-id: {}", answer.field("x-request-id"))));
    assert!(head.contains("traceparent: 00-") && !head.contains("authorization"), "{head}");
}

#[test]
fn callers_without_a_good_key_are_turned_away() {
    let world = World::start(&iris(&[], ""));
    let path = "/api/v1/endpoint/iris/score";
    for (field, code) in [
        ("", "MissingKey"),
        ("authorization: Basic x\r\n", "MissingKey"),
        ("authorization: Bearer wrong\r\n", "WrongKey"),
    ] {
        let answer = world.raw(format!("GET {path} HTTP/1.1\r\nhost: a\r\n{field}\r\n").as_bytes());
        is(&answer, 401, code, "client");
        assert_eq!(answer.field("www-authenticate"), "Bearer");
    }
}

#[test]
fn tokens_open_their_endpoint_until_they_expire() {
    let replica = Replica::echo();
    let text = format!(
        "endpoints:\n  iris:\n    auth_mode: aml_token\n    token_key: sixteen letters!\n    traffic: {{blue: 100}}\n    deployments: {{blue: {{replicas: ['{}']}}}}\n",
        replica.address
    );
    let world = World::start(&text);
    let ask = |endpoint: &str, seconds: i64| {
        let token = router::mint("sixteen letters!", endpoint, domain::Timestamp(seconds * 1000));
        world.raw(
            format!("GET /api/v1/endpoint/iris/score HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n")
                .as_bytes(),
        )
    };
    assert_eq!(ask("iris", 1_700_000_001).status, 200);
    is(&ask("iris", 1_700_000_000), 401, "ExpiredToken", "client");
    is(&ask("other", 1_700_000_001), 403, "OtherEndpoint", "client");
}

#[test]
fn a_good_token_of_another_endpoint_is_known_as_such() {
    let endpoint = |name: &str, secret: &str| {
        format!(
            "  {name}:\n    auth_mode: aml_token\n    token_key: {secret}\n    deployments: {{blue: {{replicas: []}}}}\n"
        )
    };
    let two = [endpoint("iris", "sixteen letters!"), endpoint("rose", "sixteen others!!")].concat();
    let world = World::start(&format!("endpoints:\n{two}"));
    let ask = |endpoint: &str, secret: &str, seconds: i64| {
        let token = router::mint(secret, endpoint, domain::Timestamp(seconds * 1000));
        let head = format!("authorization: Bearer {token}\r\n");
        world.raw(format!("GET /api/v1/endpoint/iris/score HTTP/1.1\r\nhost: a\r\n{head}\r\n").as_bytes())
    };
    is(&ask("rose", "sixteen others!!", 1_700_000_001), 403, "OtherEndpoint", "client");
    is(&ask("rose", "sixteen others!!", 1_699_999_999), 401, "WrongKey", "client");
    is(&ask("rose", "sixteen guesses!", 1_700_000_001), 401, "WrongKey", "client");
    is(&ask("tulip", "sixteen others!!", 1_700_000_001), 401, "WrongKey", "client");
}

#[test]
fn a_flood_of_wrong_keys_is_slowed_down_and_right_ones_are_not() {
    let replica = Replica::echo();
    let mut settings = settings();
    settings.limits.wrong_keys_per_minute = 5;
    let world = World::with(&iris(&[&replica], ""), settings);
    let wrong = "GET /api/v1/endpoint/iris/score HTTP/1.1\r\nhost: a\r\nauthorization: Bearer guess\r\n\r\n";
    let mut caller = world.connect();
    let codes: Vec<u16> = (0..7).map(|_| caller.ask(wrong).status).collect();
    assert_eq!(codes, [401, 401, 401, 401, 401, 429, 429]);
    assert_eq!(caller.ask(&post("", "x")).status, 200);
}

#[test]
fn what_is_not_there_is_not_found() {
    let text = iris(&[], "").replace("{blue: 100}", "{blue: 0}");
    let world = World::start(&text);
    is(&world.raw(get("/api/v1/endpoint/none/score", "").as_bytes()), 404, "NoEndpoint", "client");
    is(&world.raw(get("/", "").as_bytes()), 404, "NoEndpoint", "client");
    is(&world.score(""), 404, "NoTraffic", "client");
    is(&world.raw(post("azureml-model-deployment: red\r\n", "").as_bytes()), 404, "NoDeployment", "client");
    assert_eq!(world.raw(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").status, 200);
}

#[test]
fn bodies_over_the_limit_are_refused_whether_announced_or_not() {
    let replica = Replica::echo();
    let world = World::start(&iris(&[&replica], "").replace("    traffic", "    max_body_bytes: 1000\n    traffic"));
    assert_eq!(world.score(&"x".repeat(1000)).status, 200);
    is(&world.score(&"x".repeat(1001)), 413, "BodyTooLarge", "client");
    let chunked = post("", "").replace("content-length: 0", "transfer-encoding: chunked");
    is(
        &world.raw(format!("{chunked}3e9\r\n{}\r\n0\r\n\r\n", "x".repeat(1001)).as_bytes()),
        413,
        "BodyTooLarge",
        "client",
    );
}

#[test]
fn a_models_own_error_becomes_502_and_its_words_pass() {
    let replica = Replica::says("HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\nboom");
    let world = World::start(&iris(&[&replica], ""));
    let answer = world.score("x");
    assert_eq!((answer.status, answer.text().as_str()), (502, "boom"));
    assert_eq!(answer.field("ms-azureml-model-error-statuscode"), "500");
    assert_eq!(answer.field("ms-azureml-model-error-reason"), "ModelError");
}

#[test]
fn what_the_model_says_about_the_request_passes_as_it_is() {
    let replica = Replica::says("HTTP/1.1 422 Unprocessable\r\ncontent-length: 2\r\n\r\n{}");
    let world = World::start(&iris(&[&replica], ""));
    let answer = world.score("x");
    assert_eq!((answer.status, answer.field("ms-azureml-model-error-statuscode")), (422, "422"));
}

#[test]
fn a_replica_that_dies_or_makes_no_sense_is_502() {
    for (answer, code) in [
        ("", "ModelCrashed"),
        ("HTTP/1.1 200 OK\r\ncontent-", "ModelCrashed"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "UnreadableAnswer"),
        ("HTTP/1.1 200 OK\ncontent-length: 0\n\n", "UnreadableAnswer"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "UnreadableAnswer"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", "UnreadableAnswer"),
        ("HTTP/1.1 101 Switching\r\n\r\n", "UnreadableAnswer"),
    ] {
        let bytes = answer.as_bytes().to_vec();
        let replica = Replica::start(move |_, stream| stream.write_all(&bytes).is_err());
        let world = World::start(&iris(&[&replica], ""));
        is(&world.score("x"), 502, code, "model");
        assert_eq!(replica.seen().len(), 1, "sent once: {answer:?}");
    }
}

#[test]
fn a_replica_that_cannot_be_reached_is_502_after_the_queue_wait() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = iris(&[], "request_settings: {max_queue_wait_ms: 100}")
        .replace("replicas: []", &format!("replicas: ['{gone}']"));
    is(&World::start(&text).score("x"), 502, "ReplicaUnreachable", "model");
}

#[test]
fn no_slot_in_time_is_503() {
    let barrier = Arc::new(Barrier::new(2));
    let held = Arc::clone(&barrier);
    let replica = Replica::start(move |_, stream| {
        held.wait();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_ok()
    });
    let world = World::start(&iris(&[&replica], "request_settings: {max_queue_wait_ms: 50}, max_queued: 1"));
    let mut first = world.connect();
    first.send(&post("", "x"));
    eventually("the slot is taken", || world.routes.demand()[0].in_flight == 1);
    let late = world.score("x");
    is(&late, 503, "NoSlot", "router");
    assert_eq!(late.field("retry-after"), "1");
    world
        .routes
        .install(&super::world::spec(&iris(&[&replica], "request_settings: {max_queue_wait_ms: 5000}, max_queued: 1")));
    let mut second = world.connect();
    second.send(&post("", "x"));
    eventually("the queue is full", || world.routes.demand()[0].queued == 1);
    is(&world.score("x"), 503, "QueueFull", "router");
    barrier.wait();
    assert_eq!(first.read().unwrap().status, 200);
    barrier.wait();
    assert_eq!(second.read().unwrap().status, 200);
}

#[test]
fn no_replica_in_time_is_503_and_one_that_comes_is_used() {
    let world = World::start(&iris(&[], "hold_ms: 50"));
    is(&world.score("x"), 503, "NoReplica", "router");
    world.routes.install(&super::world::spec(&iris(&[], "hold_ms: 20000")));
    let mut caller = world.connect();
    caller.send(&post("", "held"));
    eventually("the request is held", || world.routes.demand()[0].queued == 1);
    let replica = Replica::echo();
    world.routes.install(&super::world::spec(&iris(&[&replica], "")));
    assert_eq!(caller.read().unwrap().text(), "held");
}

#[test]
fn a_replica_that_never_answers_is_504() {
    let replica = Replica::start(|_, _| true);
    let world = World::start(&iris(&[&replica], "request_settings: {request_timeout_ms: 100}"));
    is(&world.score("x"), 504, "TimedOut", "model");
    assert_eq!(world.routes.demand()[0].in_flight, 0, "its slot is free again");
}

#[test]
fn callers_that_are_too_slow_are_408() {
    let replica = Replica::echo();
    let mut settings = settings();
    settings.limits.head = Duration::from_millis(150);
    settings.limits.stall = Duration::from_millis(150);
    let world = World::with(&iris(&[&replica], ""), settings);
    let mut caller = world.connect();
    caller.send("POST /api/v1/endpoint/iris/sc");
    is(&caller.read().unwrap(), 408, "SlowHead", "client");
    let mut caller = world.connect();
    caller.send(&post("", "whole")[..post("", "whole").len() - 1]);
    is(&caller.read().unwrap(), 408, "SlowBody", "client");
    assert_eq!(replica.seen(), [], "a slow body takes no slot");
    // A long one is sent on as it comes, and costs a slot for no longer than the model may take.
    let mut caller = world.connect();
    let long = post("", &"x".repeat(100_000));
    caller.send(&long[..80_000]);
    is(&caller.read().unwrap(), 408, "SlowBody", "client");
    eventually("the slot is free again", || world.routes.demand()[0].in_flight == 0);
}

#[test]
fn one_byte_at_a_time_is_served_within_the_heads_time() {
    let replica = Replica::echo();
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    for byte in post("", "slowly").bytes() {
        caller.stream.write_all(&[byte]).unwrap();
        thread::yield_now();
    }
    assert_eq!(caller.read().unwrap().text(), "slowly");
}

#[test]
fn a_connection_that_is_idle_for_too_long_is_closed() {
    let replica = Replica::echo();
    let mut settings = settings();
    settings.limits.idle = Duration::from_millis(500);
    let world = World::with(&iris(&[&replica], ""), settings);
    let mut caller = world.connect();
    for _ in 0..3 {
        caller.send(&post("", "x"));
        assert_eq!(caller.read().unwrap().text(), "x");
    }
    let since = now();
    assert!(caller.read().is_none());
    assert!((500..5000).contains(&since.elapsed().as_millis()), "{:?}", since.elapsed());
}
