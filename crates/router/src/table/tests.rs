//! Shares, and what survives a change of tables.

use super::*;
use domain::spec::Routes as Spec;

fn spec(traffic: &str, replicas: &str) -> Spec {
    let text = format!(
        "endpoints:\n  iris:\n    keys: {{primary: abcdefgh}}\n    hosts: [Iris.Example]\n    traffic: {traffic}\n    deployments:\n      \
         blue: {{replicas: [{replicas}]}}\n      green: {{replicas: ['127.0.0.1:9']}}\n"
    );
    Spec::read("routes.yml", &text).unwrap()
}

#[test]
fn shares_are_kept_to() {
    let routes = Routes::new(&spec("{blue: 90, green: 10}", ""));
    let (table, chance) = (routes.table(), Chance::new());
    let iris = table.endpoint("iris").unwrap();
    let greens = (0..10_000).filter(|_| &*iris.choose(&chance).unwrap().name == "green").count();
    // Ten standard deviations.
    assert!((700..1300).contains(&greens), "{greens}");
    routes.install(&spec("{blue: 0, green: 0}", ""));
    assert!(routes.table().endpoint("iris").unwrap().choose(&chance).is_none());
}

#[test]
fn a_replica_in_both_tables_keeps_its_requests_and_one_that_left_is_watched() {
    let routes = Routes::new(&spec("{blue: 100}", "'127.0.0.1:1', '127.0.0.1:2'"));
    let before = routes.table().endpoint("iris").unwrap().deployment(b"blue").unwrap().clone();
    before.replicas.iter().for_each(|replica| assert!(replica.take(5)));
    routes.install(&spec("{blue: 100}", "'127.0.0.1:2', '127.0.0.1:3'"));
    let after = routes.table().endpoint("iris").unwrap().deployment(b"blue").unwrap().clone();
    assert_eq!(after.replicas.iter().map(|replica| replica.busy()).collect::<Vec<_>>(), [1, 0]);
    assert!(Arc::ptr_eq(&before.live, &after.live));
    assert_eq!(routes.leaving(), [("127.0.0.1:1".parse().unwrap(), 1)]);
    before.replicas[0].release();
    assert_eq!(routes.leaving(), []);
}

#[test]
fn hosts_are_found_whatever_their_case_and_port() {
    let routes = Routes::new(&spec("{}", ""));
    let table = routes.table();
    for (host, found) in [("iris.example", true), ("IRIS.example:8080", true), ("example", false), ("[::1]:80", false)]
    {
        assert_eq!(table.host(host.as_bytes()).is_some(), found, "{host}");
    }
}

#[test]
fn demand_is_what_is_at_work_and_waiting() {
    let routes = Routes::new(&spec("{}", ""));
    let table = routes.table();
    let blue = table.endpoint("iris").unwrap().deployment(b"blue").unwrap();
    let _waiting = [(); 3].map(|()| blue.live.line.join());
    let demand = routes.demand();
    assert_eq!((demand[0].deployment.as_str(), demand[0].queued, demand[0].replicas), ("blue", 3, 0));
    assert_eq!((demand[1].deployment.as_str(), demand[1].queued, demand[1].replicas), ("green", 0, 1));
}

#[test]
fn a_request_takes_no_longer_than_the_most_patient_deployment_lets_it() {
    let text = "endpoints:\n  iris:\n    keys: {primary: abcdefgh}\n    deployments:\n      \
                blue: {request_settings: {request_timeout_ms: 20000, max_queue_wait_ms: 1000}}\n      green: {}\n";
    let routes = Routes::new(&domain::spec::Routes::read("r.yml", text).unwrap());
    assert_eq!(routes.longest(), Duration::from_secs(21));
    assert_eq!(Routes::new(&domain::spec::Routes::default()).longest(), Duration::ZERO);
}
