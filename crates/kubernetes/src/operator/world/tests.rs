//! What is made of the news of a cluster, in any order.

use super::*;
use serde_json::{Value, json};

fn pod(part: u32, change: impl Fn(&mut Value)) -> PodSeen {
    let mut pod = json!({
        "metadata": {
            "name": format!("att-1-0-{part}"), "namespace": "ml", "uid": format!("u{part}"), "resourceVersion": "7",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"peregrine.dev/attempt": "att_1_0", "peregrine.dev/part": part.to_string(), "peregrine.dev/parts": "2"},
            "annotations": {"peregrine.dev/priority": "3", "peregrine.dev/secret": "att-1-0-k"},
        },
        "spec": {"containers": [{"name": "job", "resources": {"requests": {"cpu": "1"}}}], "schedulingGates": [{"name": labels::GATE}]},
        "status": {"phase": "Pending"},
    });
    change(&mut pod);
    serde_json::from_value(pod).unwrap()
}

fn bind(pod: &mut Value) {
    pod["spec"]["nodeName"] = json!("n1");
    pod["spec"]["schedulingGates"] = json!([]);
    pod["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"}]);
}

fn attempt() -> AttemptId {
    AttemptId::parse("att_1_0").unwrap()
}

#[test]
fn a_gang_is_known_again_by_what_its_pods_carry() {
    let mut world = World::default();
    assert_eq!(world.see_pod(pod(0, |_| {})), Some((attempt(), 0)));
    let gang = &world.gangs[&attempt()];
    assert_eq!((gang.parts, gang.priority, gang.secret.as_str()), (2, 3, "att-1-0-k"));
    assert!(!gang.is_whole() && !gang.is_free() && !gang.is_placed());
    world.see_pod(pod(1, |_| {}));
    assert!(world.gangs[&attempt()].is_whole());
}

#[test]
fn a_gang_is_partial_from_the_first_node_it_got_to_the_last() {
    let mut world = World::default();
    world.see_pod(pod(0, bind));
    world.see_pod(pod(1, |pod| pod["spec"]["schedulingGates"] = json!([])));
    let since = world.gangs[&attempt()].partial_since().unwrap();
    assert_eq!(since.iso(), "2026-01-01T00:00:10.000+00:00");
    world.see_pod(pod(1, bind));
    assert_eq!(world.gangs[&attempt()].partial_since(), None);
}

#[test]
fn the_end_of_an_older_pod_says_nothing_of_the_one_in_its_place() {
    let mut world = World::default();
    world.see_pod(pod(0, |pod| pod["metadata"]["uid"] = json!("new")));
    assert!(world.lose_pod(&pod(0, |_| {}).metadata).is_none());
    let lost = world.lose_pod(&pod(0, |pod| pod["metadata"]["uid"] = json!("new")).metadata);
    assert_eq!(lost.unwrap().2.if_deleted.code, "Deleted");
    assert!(world.gangs.is_empty());
}

#[test]
fn a_pod_whose_node_is_no_more_was_lost_with_it() {
    let mut world = World::default();
    world.see_pod(pod(0, bind));
    assert_eq!(world.lose_pod(&pod(0, bind).metadata).unwrap().2.if_deleted.code, "NodeLost");
}

#[test]
fn what_a_fresh_list_does_not_have_is_gone() {
    let mut world = World::default();
    world.see_pod(pod(0, |_| {}));
    world.see_pod(pod(1, |_| {}));
    assert_eq!(world.unlisted_pods(&HashSet::from(["u1".to_owned()])), [(attempt(), 0)]);
}

#[test]
fn room_is_what_pods_left_and_the_scheduler_was_not_promised() {
    let mut world = World::default();
    let node = json!({
        "metadata": {"name": "n1", "uid": "n"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    world.see_node(serde_json::from_value(node).unwrap());
    let taken = json!({"metadata": {"uid": "x"}, "spec": {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "500m"}}}]}});
    assert!(world.see_bound(serde_json::from_value(taken.clone()).unwrap()));
    assert!(!world.see_bound(serde_json::from_value(taken).unwrap()), "nothing new");
    assert_eq!(world.rooms()[0].free.cpu_milli, 3500);
    world.see_pod(pod(0, |pod| pod["spec"]["schedulingGates"] = json!([])));
    assert_eq!((world.rooms()[0].free.cpu_milli, world.rooms_left()[0].free.cpu_milli), (3500, 2500));
    world.lose_bound("x");
    assert_eq!(world.rooms()[0].free.cpu_milli, 4000);
    world.see_pod(pod(0, bind));
    assert_eq!(world.rooms()[0].free.cpu_milli, 3000, "whichever watch is first to tell");
}

#[test]
fn claims_with_a_path_are_mounted_in_their_own_namespace() {
    let mut world = World::default();
    for (name, path) in [("data", Some("/data")), ("loose", None), ("odd", Some("data"))] {
        let claim = json!({"metadata": {"name": name, "namespace": "ml", "annotations": path.map(|p| json!({"ml.azure.com/mountpath": p}))}});
        world.see_claim(&serde_json::from_value(claim).unwrap());
    }
    assert_eq!(world.claims("ml").mounted, [Claim { name: "data".into(), path: "/data".into() }]);
    assert!(world.claims("other").mounted.is_empty());
    let leaves = json!({"metadata": {"name": "data", "namespace": "ml", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    world.see_claim(&serde_json::from_value(leaves).unwrap());
    assert!(world.claims("ml").mounted.is_empty(), "the scheduler places no new pod on a claim that is being deleted");
}
