//! Slots under pressure: nothing over the limit, nobody forgotten.

use super::*;
use domain::spec::Routes as Spec;
use std::{cell::RefCell, rc::Rc, time::Duration};
use tokio::task::{JoinSet, LocalSet};

fn spec(replicas: &str, more: &str) -> Spec {
    let text = format!(
        "endpoints:\n  iris:\n    keys: {{primary: abcdefgh}}\n    deployments:\n      blue: {{replicas: [{replicas}], {more}}}\n"
    );
    Spec::read("routes.yml", &text).unwrap()
}

fn blue(routes: &Routes) -> Arc<Deployment> {
    Arc::clone(routes.table().endpoint("iris").unwrap().deployment(b"blue").unwrap())
}

async fn ask(routes: Routes) -> Result<Slot, u16> {
    let deployment = blue(&routes);
    slot(&routes, &deployment, &Chance::new(), &mut Timer::new(), Instant::now()).await.map_err(|answer| answer.status)
}

/// Waits until so many stand in line; what is asked of a deployment is seen while its requests wait.
async fn queued(routes: &Routes, count: u32) {
    let seen = async {
        while routes.demand()[0].queued != count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), seen).await.expect("they stand in line");
}

const TWO: &str = "'127.0.0.1:1', '127.0.0.1:2'";

#[tokio::test]
async fn a_herd_is_served_in_turn_and_never_over_the_limit() {
    let settings = "request_settings: {max_concurrent_requests_per_instance: 2, max_queue_wait_ms: 60000}";
    let routes = Routes::new(&spec(TWO, settings));
    let (mut herd, local) = (JoinSet::new(), LocalSet::new());
    let served: Rc<RefCell<Vec<u32>>> = Rc::default();
    for number in 0..200 {
        let (routes, served) = (routes.clone(), Rc::clone(&served));
        herd.spawn_local_on(
            async move {
                let slot = ask(routes).await.unwrap();
                served.borrow_mut().push(number);
                assert!(slot.replica.busy() <= 2);
                tokio::time::sleep(Duration::from_millis(2)).await;
            },
            &local,
        );
    }
    local.run_until(herd.join_all()).await;
    assert!(served.borrow().is_sorted(), "first come, first served: {served:?}");
    assert_eq!(routes.demand()[0], domain::serving::Demand { in_flight: 0, queued: 0, ..routes.demand()[0].clone() });
}

#[tokio::test]
async fn a_request_is_held_until_the_first_replica_comes() {
    let routes = Routes::new(&spec("", "hold_ms: 30000"));
    let (mut herd, local) = (JoinSet::new(), LocalSet::new());
    (0..50).for_each(|_| drop(herd.spawn_local_on(ask(routes.clone()), &local)));
    local.run_until(queued(&routes, 50)).await;
    let many = "request_settings: {max_concurrent_requests_per_instance: 100}";
    routes.install(&spec("'127.0.0.1:1'", many));
    assert!(local.run_until(herd.join_all()).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn waiting_ends_with_503() {
    for (replicas, more, after) in [
        ("", "hold_ms: 70", 70),
        ("'127.0.0.1:1'", "request_settings: {max_queue_wait_ms: 30}", 30),
        ("'127.0.0.1:1'", "max_queued: 0", 0),
    ] {
        let routes = Routes::new(&spec(replicas, more));
        let _held = ask(routes.clone()).await;
        let start = Instant::now();
        assert_eq!(ask(routes.clone()).await.unwrap_err(), 503, "{more}");
        assert!(start.elapsed().as_millis() >= after, "{more}");
    }
}

#[tokio::test]
async fn who_waits_for_a_deployment_that_goes_away_hears_of_it() {
    let routes = Routes::new(&spec("", ""));
    let (mut waiting, local) = (JoinSet::new(), LocalSet::new());
    waiting.spawn_local_on(ask(routes.clone()), &local);
    local.run_until(queued(&routes, 1)).await;
    routes.install(&Spec::default());
    assert_eq!(local.run_until(waiting.join_next()).await.unwrap().unwrap().unwrap_err(), 503);
}

#[tokio::test]
async fn the_less_busy_of_two_is_taken_and_a_resting_one_is_not() {
    let many = "request_settings: {max_concurrent_requests_per_instance: 100}";
    let routes = Routes::new(&spec(TWO, many));
    let (deployment, chance) = (blue(&routes), Chance::new());
    let slots: Vec<Slot> = (0..100).map(|_| free_slot(&deployment, &[], &chance, Instant::now()).unwrap()).collect();
    assert_eq!(deployment.replicas.iter().map(|replica| replica.busy()).collect::<Vec<_>>(), [50, 50]);
    drop(slots);
    deployment.replicas[0].rest(Instant::now());
    let slot = free_slot(&deployment, &[], &chance, Instant::now()).unwrap();
    assert_eq!(slot.replica.id, deployment.replicas[1].id);
    deployment.replicas[1].rest(Instant::now());
    assert!(free_slot(&deployment, &[], &chance, Instant::now()).is_some(), "when all rest, none does");
    assert!(free_slot(&deployment, &[deployment.replicas[0].id], &chance, Instant::now()).is_some());
}

#[tokio::test]
async fn a_router_keeps_to_its_share_of_the_slots_unless_its_own_replicas_are_not_well() {
    let routes = Routes::new(&spec(TWO, "request_settings: {max_concurrent_requests_per_instance: 1}"));
    routes.share_slots(domain::serving::SlotShare { index: 0, of: 2 });
    let (deployment, chance) = (blue(&routes), Chance::new());
    let free = |tried: &[u64]| free_slot(&deployment, tried, &chance, Instant::now());
    let own = free(&[]).expect("one of two is its own");
    assert!(free(&[]).is_none(), "the other is another router's");
    let borrowed = free(&[own.replica.id]).expect("its own cannot be reached");
    assert_ne!(borrowed.replica.id, own.replica.id);
    drop((own, borrowed));
    routes.share_slots(domain::serving::SlotShare::default());
    assert!([free(&[]), free(&[])].iter().all(Option::is_some), "alone, it has both");
}
