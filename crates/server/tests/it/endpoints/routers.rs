//! What routers are told of endpoints, and what they tell.

use super::*;
use domain::serving::{Answered, Demand, LATENCY_BOUNDS_US, SlotShare, Use};

#[tokio::test]
async fn what_routers_answer_is_told_in_steps_with_the_replicas_that_came_and_went() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    deploy(&server, "blue").await;
    replica(&server, "blue").await;
    let counted = |ok: u64| {
        let answered = Answered {
            endpoint: "ep1".into(),
            deployment: "blue".into(),
            mirrored: false,
            codes: [(200, ok)].into(),
            buckets: vec![ok; LATENCY_BOUNDS_US.len() + 1],
        };
        RouterNews { router: "r".into(), answered: vec![answered], ..RouterNews::default() }
    };
    for ok in [5, 7, 12] {
        let _: RouterAnswer = server.user.post("/router/v1/exchange", &counted(ok)).await.unwrap();
    }
    let told = server.get("onlineEndpoints/ep1/activity").await.expect(200);
    let sum: u64 = told["answers"].as_array().unwrap().iter().map(|one| one["codes"]["200"].as_u64().unwrap()).sum();
    assert_eq!(sum, 7, "what was counted before the first word is not news: {told}");
    assert_eq!(told["boundsSeconds"].as_array().unwrap().len(), LATENCY_BOUNDS_US.len());
    assert_eq!(told["replicas"][0]["deployment"], "blue");
    assert!(told["replicas"][0]["readyAt"].is_null() && told["replicas"][0]["askedForAt"].is_string());
    server.get("onlineEndpoints/none/activity").await.refused(404);
    let (code, message) = server.post("onlineEndpoints/ep1/try", json!({"input": "{}"})).await.refused(409);
    assert!(message.contains("no address yet"), "{code} {message}");
    server.post("onlineEndpoints/none/try", json!({})).await.refused(404);
}

fn blue(ok: u64) -> Answered {
    let buckets = vec![0; LATENCY_BOUNDS_US.len()].into_iter().chain([ok]).collect();
    let (endpoint, deployment) = ("ep1".into(), "blue".into());
    Answered { endpoint, deployment, mirrored: false, codes: [(200, ok)].into(), buckets }
}

#[tokio::test]
async fn what_every_router_counts_is_counted_together() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    deploy(&server, "blue").await;
    let counters = async || server.get("onlineEndpoints/ep1/counters").await.text();
    assert_eq!(counters().await, "", "no router was heard of");
    let tell = async |router: &str, answered: Vec<Answered>| {
        let news = RouterNews { router: router.into(), answered, ..RouterNews::default() };
        let _: RouterAnswer = server.user.post("/router/v1/exchange", &news).await.unwrap();
    };
    tell("one", vec![]).await;
    let nothing = counters().await;
    assert!(
        nothing.contains("request_seconds_bucket{endpoint=\"ep1\",deployment=\"blue\",le=\"+Inf\"} 0"),
        "{nothing}"
    );
    tell("two", vec![blue(1000)]).await;
    for (router, ok) in [("one", 3), ("two", 1004), ("one", 5)] {
        tell(router, vec![blue(ok), Answered { mirrored: true, ..blue(ok) }]).await;
    }
    let text = counters().await;
    assert!(text.contains("router_requests_total{endpoint=\"ep1\",deployment=\"blue\",code=\"200\"} 9\n"), "{text}");
    assert!(text.contains("request_seconds_bucket{endpoint=\"ep1\",deployment=\"blue\",le=\"+Inf\"} 9\n"), "{text}");
    assert!(text.contains("router_mirrored_requests_total{endpoint=\"ep1\""), "copies are told apart: {text}");
    let told = server.get("onlineEndpoints/ep1/activity").await.expect(200);
    assert!(told["answers"].as_array().unwrap().iter().any(|one| one["mirrored"] == true), "{told}");
}

#[tokio::test]
async fn a_router_on_another_machine_is_told_of_no_replica_on_this_one_s_loopback() {
    let server = Server::start().await;
    server.put("onlineEndpoints/ep1", endpoint("Key")).await.expect(201);
    deploy(&server, "blue").await;
    let attempt = replica(&server, "blue").await;
    let address = "127.0.0.1:5001".parse().unwrap();
    let answers = What::Serving { address: Some(address), ready: true, text: String::new() };
    report(&server, &attempt, vec![What::Started { pid: 1 }, answers]).await;
    let routers = server::Routers::new(server.store.clone(), || Timestamp(1_000));
    routers.stand_at("here".into());
    let ask = async |loopback: &str| {
        let news = RouterNews { router: loopback.into(), loopback: loopback.into(), ..RouterNews::default() };
        let told = routers.exchange(store::HERE, news, std::time::Duration::ZERO).await.unwrap();
        (told.routes.unwrap().endpoints["ep1"].deployments["blue"].replicas.len(), told.left_out)
    };
    assert_eq!(ask("here").await, (1, 0));
    assert_eq!(ask("").await, (1, 0), "one from before this was told");
    assert_eq!(ask("elsewhere").await, (0, 1));
}

#[tokio::test]
async fn routers_with_something_to_do_share_the_slots_and_a_new_server_waits_for_their_word() {
    static NOW: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(1_000_000);
    let pass = |ms| NOW.fetch_add(ms, std::sync::atomic::Ordering::SeqCst);
    let server = Server::start().await;
    let routers =
        server::Routers::new(server.store.clone(), || Timestamp(NOW.load(std::sync::atomic::Ordering::SeqCst)));
    let address = "127.0.0.1:5001".parse().unwrap();
    assert_eq!(routers.uses(store::HERE, address), Use::Unknown, "a router beside this one may not have found it yet");
    let tell = async |router: &str, in_flight, leaving: Vec<_>, held| {
        let demand = vec![Demand { in_flight, ..Demand::default() }];
        let news = RouterNews { router: router.into(), demand, leaving, held, ..RouterNews::default() };
        routers.exchange(store::HERE, news, std::time::Duration::ZERO).await.unwrap()
    };
    let share = |index, of| SlotShare { index, of };
    let first = tell("a", 0, vec![], 0).await;
    assert_eq!(first.share, share(0, 1), "alone");
    assert_eq!(tell("b", 1, vec![], first.version).await.share, share(0, 1), "the other has nothing to do");
    assert_eq!(tell("a", 1, vec![], first.version).await.share, share(0, 2));
    assert_eq!(tell("b", 0, vec![], first.version).await.share, share(1, 2));
    assert_eq!(routers.uses(store::HERE, address), Use::Unknown, "there may be a third");
    pass(9_999);
    tell("a", 1, vec![address], first.version).await;
    assert_eq!(routers.uses(store::HERE, address), Use::Yes);
    pass(1);
    assert_eq!(tell("a", 1, vec![], first.version).await.share, share(0, 1), "the other has left");
    assert_eq!(routers.uses(store::HERE, address), Use::No);
    assert_eq!(routers.uses("a-cluster", address), Use::Unknown);
    tell("a", 1, vec![], 7).await;
    assert_eq!(routers.uses(store::HERE, address), Use::Unknown, "it holds routes that nobody knows");
}

#[tokio::test]
async fn routers_are_told_of_replicas_that_answer_and_of_nothing_else() {
    let server = Server::start().await;
    let mut body = endpoint("Key");
    body["properties"]["keys"] = json!({"primaryKey": "chosen-by-me"});
    server.put("onlineEndpoints/ep1", body).await.expect(201);
    deploy(&server, "blue").await;
    let attempt = replica(&server, "blue").await;
    let hello = RouterNews { router: "r".into(), ..RouterNews::default() };
    let first: RouterAnswer = server.user.post("/router/v1/exchange", &hello).await.unwrap();
    let told = first.routes.unwrap();
    let endpoint = &told.endpoints["ep1"];
    assert!(endpoint.keys.primary.as_ref().unwrap().reveal().starts_with("sha256:"), "a router needs no key");
    assert!(endpoint.deployments["blue"].replicas.is_empty());
    let address = "127.0.0.1:5001".parse().unwrap();
    let serving = |ready| What::Serving { address: Some(address), ready, text: "it answers".into() };
    report(&server, &attempt, vec![What::Started { pid: 1 }, serving(true)]).await;
    let news = RouterNews { held: first.version, ..hello.clone() };
    let second: RouterAnswer = server.user.post("/router/v1/exchange", &news).await.unwrap();
    assert!(second.version > first.version);
    assert_eq!(second.routes.unwrap().endpoints["ep1"].deployments["blue"].replicas, [address]);
    let news = RouterNews { held: second.version, ..hello };
    let third: RouterAnswer = server.user.post("/router/v1/exchange", &news).await.unwrap();
    assert_eq!((third.version, third.routes), (second.version, None), "there is nothing new");
    let view = server.get("onlineEndpoints/ep1/deployments/blue").await.expect(200);
    assert_eq!(view["properties"]["properties"]["peregrine.state"], "1 of 1 replicas are ready");
    report(&server, &attempt, vec![serving(false)]).await;
    assert!(routes(&server).await.endpoints["ep1"].deployments["blue"].replicas.is_empty());
    report(&server, &attempt, vec![serving(true), What::Exited { code: Some(1), signal: None }]).await;
    assert!(routes(&server).await.endpoints["ep1"].deployments["blue"].replicas.is_empty(), "it has no process");
    assert_eq!(
        server.agent.request(reqwest::Method::POST, "/router/v1/exchange").json(&news).send().await.unwrap().status(),
        403
    );
}
