//! What the router does between a key and a replica: shares, copies, paths, retries, counting.

use super::world::{Answer, KEY, Replica, World, eventually, get, iris, post, settings, spec};
use std::{
    fs,
    io::Write,
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

fn two(blue: &Replica, green: &Replica, traffic: &str, more: &str) -> String {
    let many = "request_settings: {max_concurrent_requests_per_instance: 100, max_queue_wait_ms: 5000}";
    format!(
        "endpoints:\n  iris:\n    keys: {{primary: {KEY}}}\n    traffic: {traffic}\n{more}    deployments:\n      \
         blue: {{replicas: ['{}'], {many}}}\n      green: {{replicas: ['{}'], {many}}}\n",
        blue.address, green.address
    )
}

#[test]
fn traffic_is_split_by_weight_and_a_header_goes_past_it() {
    let (blue, green) = (Replica::named("blue"), Replica::named("green"));
    let world = World::start(&two(&blue, &green, "{blue: 90, green: 10}", ""));
    let mut caller = world.connect();
    let greens = (0..2000).filter(|_| caller.ask(&post("", "x")).text() == "green").count();
    // Chi-square with one degree of freedom; 15 is passed once in ten thousand fair runs.
    let off = greens as f64 - 200.0;
    assert!(off * off / 200.0 + off * off / 1800.0 < 15.0, "{greens} of 2000");
    let direct = caller.ask(&post("azureml-model-deployment: green\r\n", "x"));
    assert_eq!((direct.text().as_str(), direct.field("azureml-model-deployment")), ("green", "green"));
    world.routes.install(&spec(&two(&blue, &green, "{blue: 0, green: 100}", "")));
    assert!((0..50).all(|_| caller.ask(&post("", "x")).text() == "green"));
}

#[test]
fn a_shadow_gets_copies_and_nobody_sees_its_answers() {
    let blue = Replica::named("blue");
    let green = Replica::says("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n");
    let world = World::start(&two(&blue, &green, "{blue: 100}", "    mirror_traffic: {green: 50}\n"));
    let mut caller = world.connect();
    for _ in 0..200 {
        assert_eq!(caller.ask(&post("", "payload")).text(), "blue");
    }
    assert_eq!(caller.ask(&post("azureml-model-deployment: blue\r\n", "x")).text(), "blue");
    eventually("copies arrive", || green.seen().len() > 50);
    assert!(green.seen().len() < 150 && green.seen().iter().all(|seen| seen.body == b"payload"));
    // What becomes of copies is counted by itself: no caller got it.
    let line = |name: &str| format!("peregrine_router_{name}{{endpoint=\"iris\",deployment=\"green\",code=\"502\"}} ");
    let told = |name: &str| {
        world.admin("/metrics").1.lines().find_map(|text| Some(text.strip_prefix(&line(name))?.to_owned()))
    };
    eventually("all copies are counted", || told("mirrored_requests_total") == Some(green.seen().len().to_string()));
    assert_eq!(told("requests_total"), None);
    let answered = world.routes.answered();
    let mirrored: Vec<_> = answered.iter().map(|one| (one.deployment.as_str(), one.mirrored)).collect();
    assert!(mirrored.contains(&("green", true)) && !mirrored.contains(&("green", false)), "{mirrored:?}");
}

#[test]
fn a_shadow_that_is_gone_is_seen_in_its_count() {
    let (blue, green) = (Replica::named("blue"), Replica::named("green"));
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = two(&blue, &green, "{blue: 100}", "    mirror_traffic: {green: 50}\n");
    let world = World::start(&text.replace(&green.address.to_string(), &gone.to_string()));
    let mut caller = world.connect();
    let count = || world.routes.answered().iter().find(|one| one.mirrored).map_or(0, |one| one.codes[&502]);
    eventually("a copy is counted", || {
        assert_eq!(caller.ask(&post("", "x")).text(), "blue");
        count() > 0
    });
}

#[test]
fn routers_that_share_slots_send_a_replica_no_more_than_it_takes() {
    let (at_work, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&at_work), Arc::clone(&most));
    let replica = Replica::start(move |_, stream| {
        peak.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
        thread::sleep(Duration::from_millis(5));
        now.fetch_sub(1, SeqCst);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_ok()
    });
    let slots = "request_settings: {max_concurrent_requests_per_instance: 3, max_queue_wait_ms: 60000}";
    let worlds: Vec<World> = (0..3).map(|_| World::start(&iris(&[&replica], slots))).collect();
    for (index, world) in (0..).zip(&worlds) {
        world.routes.share_slots(domain::serving::SlotShare { index, of: 3 });
    }
    let ask = |world: &World| (0..20).for_each(|_| assert_eq!(world.score("x").status, 200));
    let all =
        || thread::scope(|scope| worlds.iter().for_each(|world| (0..4).for_each(|_| drop(scope.spawn(|| ask(world))))));
    all();
    assert!(most.load(SeqCst) <= 3, "{most:?}");
    // Alone again, each takes what there is.
    worlds[0].routes.share_slots(domain::serving::SlotShare::default());
    thread::scope(|scope| (0..9).for_each(|_| drop(scope.spawn(|| ask(&worlds[0])))));
    assert_eq!(most.load(SeqCst), 3);
}

#[test]
fn a_shadow_without_room_costs_nothing() {
    let blue = Replica::named("blue");
    let green = Replica::start(|_, _| true);
    let text = two(&blue, &green, "{blue: 100}", "    mirror_traffic: {green: 50}\n");
    let text = text.replace("instance: 100", "instance: 1");
    let world = World::start(&text);
    let mut caller = world.connect();
    (0..100).for_each(|_| assert_eq!(caller.ask(&post("", "x")).text(), "blue"));
    let (_, metrics) = world.admin("/metrics");
    let line = metrics.lines().find(|line| line.starts_with("peregrine_router_unmirrored") && line.contains("green"));
    assert!(line.unwrap().rsplit(' ').next().unwrap().parse::<u32>().unwrap() > 10, "{line:?}");
}

#[test]
fn paths_lead_to_what_is_behind_them() {
    let replica = Replica::echo();
    let text = iris(&[&replica], "scoring_path: /v2/models/iris/infer")
        .replace("    keys", "    hosts: [iris.example]\n    keys");
    let world = World::start(&text);
    for (path, host, expected) in [
        ("/api/v1/endpoint/iris/score?a=1", "a", "/v2/models/iris/infer?a=1"),
        ("/api/v1/service/iris/score", "a", "/v2/models/iris/infer"),
        ("/api/v1/endpoint/iris/swagger.json", "a", "/swagger.json"),
        ("/api/v1/endpoint/iris/v1/chat/completions", "a", "/v1/chat/completions"),
        ("/api/v1/endpoint/iris", "a", "/"),
        ("/score", "iris.example:80", "/v2/models/iris/infer"),
        ("/v2/health/ready", "IRIS.example", "/v2/health/ready"),
        ("http://iris.example/score", "elsewhere", "/v2/models/iris/infer"),
    ] {
        let request = get(path, "").replace("host: a", &format!("host: {host}"));
        assert_eq!(world.raw(request.as_bytes()).status, 200, "{path}");
        let head = replica.seen().pop().unwrap().head;
        assert!(head.starts_with(&format!("GET {expected} HTTP/1.1\r\n")), "{path}: {head}");
    }
}

#[test]
fn browsers_are_told_who_may_call() {
    let replica = Replica::says("HTTP/1.1 200 OK\r\naccess-control-allow-origin: wrong\r\ncontent-length: 0\r\n\r\n");
    let cors = "    cors: {origins: ['https://app.example']}\n    keys";
    let world = World::start(&iris(&[&replica], "").replace("    keys", cors));
    let path = "/api/v1/endpoint/iris/score";
    let ask = |origin: &str| {
        let fields = format!("origin: {origin}\r\naccess-control-request-method: POST\r\n");
        world.raw(format!("OPTIONS {path} HTTP/1.1\r\nhost: a\r\n{fields}\r\n").as_bytes())
    };
    let allowed = ask("https://app.example");
    assert_eq!((allowed.status, allowed.field("access-control-allow-origin")), (204, "https://app.example"));
    assert!(allowed.field("access-control-allow-headers").contains("authorization"));
    assert_eq!(ask("https://evil.example").status, 401, "no key, no word");
    let answer = world.raw(post("origin: https://app.example\r\n", "x").as_bytes());
    assert_eq!(answer.field("access-control-allow-origin"), "https://app.example");
}

#[test]
fn a_replica_that_refuses_is_passed_over_and_left_alone() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let good = Replica::echo();
    let text = iris(&[&good], "").replace("replicas: [", &format!("replicas: ['{gone}', "));
    let world = World::start(&text);
    let mut caller = world.connect();
    (0..50).for_each(|_| assert_eq!(caller.ask(&post("", "x")).status, 200));
    let (_, metrics) = world.admin("/metrics");
    assert!(
        metrics.contains("peregrine_router_resting_replicas{endpoint=\"iris\",deployment=\"blue\"} 1"),
        "{metrics}"
    );
}

#[test]
fn a_connection_that_the_replica_closed_is_not_used_again() {
    let replica = Replica::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        // Says that it stays, and goes.
        false
    });
    let world = World::start(&iris(&[&replica], ""));
    let mut caller = world.connect();
    for _ in 0..20 {
        assert_eq!(caller.ask(&post("", "x")).status, 200);
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_faulty_replica_is_left_alone_after_a_while_and_tried_again_later() {
    let bad = Replica::start(|_, _| false);
    let good = Replica::named("good");
    let many = "request_settings: {max_concurrent_requests_per_instance: 100}";
    let world = World::start(&iris(&[&bad, &good], many));
    let answers: Vec<u16> = (0..60).map(|_| world.score("x").status).collect();
    assert_eq!(answers.iter().filter(|status| **status == 502).count(), 3, "{answers:?}");
    eventually("it is tried again", || world.score("x").status == 502);
}

#[test]
fn trace_context_is_passed_or_begun() {
    let replica = Replica::echo();
    let world = World::start(&iris(&[&replica], ""));
    let given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    world.raw(post(&format!("traceparent: {given}\r\ntracestate: a=b\r\n"), "x").as_bytes());
    let head = replica.seen().pop().unwrap().head;
    assert!(head.contains(&format!("traceparent: {given}\r\n")) && head.contains("tracestate: a=b\r\n"), "{head}");
    world.raw(post("traceparent: nonsense\r\ntracestate: a=b\r\n", "x").as_bytes());
    let head = replica.seen().pop().unwrap().head;
    assert!(!head.contains("nonsense") && !head.contains("tracestate") && head.contains("traceparent: 00-"), "{head}");
}

#[test]
fn requests_are_counted_and_logged() {
    let replica = Replica::echo();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    let settings = router::Settings { access_log: Some(file.clone()), ..settings() };
    let world = World::with(&iris(&[&replica], ""), settings);
    world.score("hello");
    let id = world.raw(get("/api/v1/endpoint/iris/score?q", "azureml-model-deployment: red\r\n").as_bytes());
    world.raw(b"nonsense\r\n\r\n");
    let (_, metrics) = world.admin("/metrics");
    for line in [
        "peregrine_router_requests_total{endpoint=\"iris\",deployment=\"blue\",code=\"200\"} 1",
        "peregrine_router_requests_total{endpoint=\"iris\",deployment=\"\",code=\"404\"} 1",
        "peregrine_router_requests_total{endpoint=\"\",deployment=\"\",code=\"400\"} 1",
        "peregrine_router_request_seconds_count{endpoint=\"iris\",deployment=\"blue\"} 1",
        "peregrine_router_replicas{endpoint=\"iris\",deployment=\"blue\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    world.join();
    let lines: Vec<serde_json::Value> =
        fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["status"], &lines[0]["bytes_in"], &lines[0]["deployment"]),
        (&200.into(), &5.into(), &"blue".into())
    );
    assert_eq!(lines[0]["replica"], replica.address.to_string());
    assert_eq!(
        (&lines[1]["error"], &lines[1]["path"]),
        (&"NoDeployment".into(), &"/api/v1/endpoint/iris/score?q".into())
    );
    assert_eq!(lines[1]["request_id"], id.field("x-request-id"));
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(KEY), "no key in the log");
}

#[test]
fn a_file_that_changes_is_read_and_one_with_mistakes_is_not() {
    let (one, other) = (Replica::named("one"), Replica::named("other"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("routes.yml");
    fs::write(&file, iris(&[&one], "")).unwrap();
    let settings = router::Settings { routes_file: Some(router::RoutesFile::now(&file)), ..settings() };
    let world = World::with(&iris(&[&one], ""), settings);
    let mut caller = world.connect();
    let mut ask = || caller.ask(&post("", "x"));
    assert_eq!(ask().text(), "one");
    fs::write(&file, "endpoints: [").unwrap();
    // Nothing is to happen, so there is nothing to wait for but the time in which it would.
    thread::sleep(Duration::from_millis(600));
    assert_eq!(ask().text(), "one", "a broken file changes nothing");
    fs::write(&file, iris(&[&other], "")).unwrap();
    eventually("the new table is used", || ask().text() == "other");
}

#[test]
fn readiness_and_demand_are_on_the_admin_port() {
    let world = World::start(&iris(&[], "hold_ms: 10000"));
    assert_eq!(world.admin("/readyz").0, 200);
    assert_eq!(world.admin("/nothing").0, 404);
    let mut held = world.connect();
    held.send(&post("", "x"));
    eventually("demand is seen", || world.admin("/demand").1.contains("\"queued\":1"));
    world.stop();
    eventually("it says that it stops", || world.admin("/readyz").0 == 503);
    let replica = Replica::named("late");
    world.routes.install(&spec(&iris(&[&replica], "")));
    let answer: Answer = held.read().unwrap();
    assert_eq!(
        (answer.text().as_str(), answer.field("connection")),
        ("late", "close"),
        "held requests are served to the end"
    );
}
