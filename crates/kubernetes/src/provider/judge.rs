//! How a node is doing, by what the cluster says of its pod.
//!
//! What keeps a pod is told while it waits; it is given up only when that lasts. Whether a pod that runs is of use is not for
//! the cluster to say: a node is heard of by the server.

use crate::operator::{
    explain::brief,
    fate::{Verdict, deleted, verdict},
    seen::{Condition, PodSeen, condition, instant},
};
use compute::Health;
use domain::Timestamp;

/// A cluster that grows takes minutes to have another machine.
const ROOM_PATIENCE_MS: i64 = 10 * 60_000;
/// A node calls within seconds of its start.
const CALL_PATIENCE_MS: i64 = 20_000;

/// Judges the pod of a node. `server` is where the node was told to call.
pub(super) fn health(pod: &PodSeen, now: Timestamp, server: &str) -> Health {
    let status = &pod.status;
    match (status.phase.as_str(), verdict(status, 0)) {
        ("Succeeded", _) => return Health::Dead("its agent has ended".to_owned()),
        (_, Verdict::Over(fate)) => return Health::Dead(fate.why),
        _ if pod.metadata.deletion_timestamp.is_some() => return Health::Leaves(deleted(status, true).why),
        (_, Verdict::Stalled { fate, patience }) => {
            let patience = i64::try_from(patience.as_millis()).unwrap_or(i64::MAX);
            return kept(fate.why, now.0 - since(pod, "PodScheduled") > patience);
        }
        (_, Verdict::Fine) => {}
    }
    if let Some(unplaced) = is(pod, "PodScheduled", "False") {
        let why = format!("no machine of the Kubernetes cluster takes its pod: {}", brief(&unplaced.message));
        return kept(why, now.0 - since(pod, "PodScheduled") > ROOM_PATIENCE_MS);
    }
    if status.phase == "Running" {
        let quiet = now.0 - since(pod, "ContainersReady") > CALL_PATIENCE_MS;
        let why = format!("its pod runs, and has not called at `{server}`: `server_url` must lead here from there");
        return if quiet { Health::Waits(why) } else { Health::Well };
    }
    Health::Well
}

fn kept(why: String, too_long: bool) -> Health {
    if too_long { Health::Dead(why) } else { Health::Waits(why) }
}

fn is<'p>(pod: &'p PodSeen, kind: &str, word: &str) -> Option<&'p Condition> {
    condition(&pod.status.conditions, kind).filter(|condition| condition.status == word)
}

/// When a condition last changed, or the pod was made.
fn since(pod: &PodSeen, kind: &str) -> i64 {
    let changed = condition(&pod.status.conditions, kind).and_then(|condition| condition.last_transition_time.as_ref());
    changed.or(pod.metadata.creation_timestamp.as_ref()).map_or(i64::MAX, |time| instant(time).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const BEGAN: i64 = 1_767_225_600_000;

    /// What is said of a pod so many seconds after it was made.
    fn shown(seconds: i64, metadata: Value, status: Value) -> String {
        let mut pod = json!({"metadata": metadata, "status": status});
        pod["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        let pod: PodSeen = serde_json::from_value(pod).unwrap();
        match health(&pod, Timestamp(BEGAN + seconds * 1000), "https://s") {
            Health::Well => "well".to_owned(),
            Health::Waits(why) => format!("waits: {why}"),
            Health::Leaves(why) => format!("leaves: {why}"),
            Health::Dead(why) => format!("dead: {why}"),
        }
    }

    #[test]
    fn what_keeps_a_pod_is_told_at_once_and_believed_in_time() {
        let unplaced = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}]});
        let image = json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting":
            {"reason": "ImagePullBackOff", "message": "no such host"}}}]});
        let volumes =
            json!({"phase": "Pending", "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}]});
        let running = json!({"phase": "Running", "conditions": [{"type": "ContainersReady", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:30Z"}]});
        let room = "no machine of the Kubernetes cluster takes its pod: 0/3 nodes are available: 3 Insufficient cpu.";
        let prepared = "its node has not got the pod's volumes or network ready";
        let pull = "the image cannot be pulled: no such host";
        for (seconds, status, expect) in [
            (0, json!({}), "well".to_owned()),
            (5, unplaced.clone(), format!("waits: {room}")),
            (601, unplaced, format!("dead: {room}")),
            (5, image.clone(), format!("waits: {pull}")),
            (121, image, format!("dead: {pull}")),
            (60, volumes.clone(), format!("waits: {prepared}")),
            (121, volumes, format!("dead: {prepared}")),
            (40, running.clone(), "well".to_owned()),
            (
                60,
                running,
                "waits: its pod runs, and has not called at `https://s`: `server_url` must lead here from there"
                    .to_owned(),
            ),
        ] {
            assert_eq!(shown(seconds, json!({}), status), expect);
        }
    }

    #[test]
    fn a_pod_that_ends_is_dead_and_one_that_is_sent_away_leaves() {
        let going = json!({"deletionTimestamp": "2026-01-01T00:01:00Z"});
        let drained = json!({"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True",
            "reason": "EvictionByEvictionAPI"}]});
        let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"});
        let killed = json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated":
            {"reason": "OOMKilled", "exitCode": 137}}}]});
        for (metadata, status, expect) in [
            (going.clone(), json!({"phase": "Running"}), "leaves: its pod was deleted"),
            (going, drained, "leaves: the pod was asked to leave its node (drain)"),
            (json!({}), evicted, "dead: its node evicted the pod: the node was low on memory"),
            (json!({}), killed, "dead: the container ran out of memory"),
            (json!({}), json!({"phase": "Succeeded"}), "dead: its agent has ended"),
        ] {
            assert_eq!(shown(30, metadata, status), expect);
        }
    }
}
