//! What became of a pod that can no longer speak for itself, in words for the job's story.
//!
//! Whether another attempt may help is decided here: yes when the platform took the pod away, no when the same pod would
//! meet the same end. Invariant: a pod that may still get on by itself is given time; one that ended is judged at once.

use super::{
    explain::brief,
    seen::{ContainerStatus, PodStatus, condition},
};
use domain::resources::humane_bytes;
use std::time::Duration;

/// Why a part is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) code: &'static str,
    pub(crate) why: String,
    pub(crate) retryable: bool,
}

/// How a pod is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Verdict {
    #[default]
    Fine,
    /// It cannot start; given up when that lasts for `patience`.
    Stalled {
        fate: Fate,
        patience: Duration,
    },
    Over(Fate),
}

/// Registries come and go; names that are wrong do not get better.
const PULL_PATIENCE: Duration = Duration::from_secs(120);
/// A Secret or ConfigMap may be made a moment after the pod that wants it.
const CONFIG_PATIENCE: Duration = Duration::from_secs(30);

/// By then volumes are there, or will never be.
const VOLUME_PATIENCE: Duration = Duration::from_secs(120);

/// Judges a pod. `memory_bytes`: what its container may use at most, 0 where there is no limit.
pub(crate) fn verdict(status: &PodStatus, memory_bytes: u64) -> Verdict {
    match status.phase.as_str() {
        "Failed" => Verdict::Over(failed(status, memory_bytes)),
        "Succeeded" => over("Ended", "its pod ended without having reported how", true),
        _ => stalled(status),
    }
}

/// Why a pod was deleted, from the last that was seen of it.
pub(crate) fn deleted(status: &PodStatus, node_exists: bool) -> Fate {
    if let Some(fate) = disrupted(status) {
        return fate;
    }
    match node_exists {
        true => fate("Deleted", "its pod was deleted", true),
        false => fate("NodeLost", "its node left the cluster", true),
    }
}

fn failed(status: &PodStatus, memory_bytes: u64) -> Fate {
    let said = brief(&status.message);
    match status.reason.as_str() {
        "Evicted" => return fate("Evicted", &join("its node evicted the pod", &said), true),
        "Preempting" | "Preempted" => return fate("Preempted", &join("the pod made way for another", &said), true),
        "NodeLost" => return fate("NodeLost", &join("its node was lost", &said), true),
        "Shutdown" | "NodeShutdown" | "Terminated" => {
            return fate("NodeShutdown", &join("its node was shut down", &said), true);
        }
        "DeadlineExceeded" => return fate("DeadlineExceeded", "it ran past its time limit and was ended", false),
        _ => {}
    }
    let ended = |all: &[ContainerStatus]| {
        all.iter().find_map(|one| one.state.terminated.clone().filter(|end| end.exit_code != 0))
    };
    if let Some(end) = ended(&status.init_container_statuses) {
        let why = format!("the agent could not be put into the pod (exit code {})", end.exit_code);
        return fate("InitFailed", &join(&why, &brief(&end.message)), true);
    }
    let Some(end) = ended(&status.container_statuses) else {
        return disrupted(status).unwrap_or_else(|| fate("Failed", &join("its pod failed", &said), true));
    };
    match end.reason.as_str() {
        "OOMKilled" => fate("OutOfMemory", &out_of_memory(memory_bytes), false),
        "ContainerCannotRun" | "StartError" => {
            fate("CannotStart", &join("the container could not be started", &brief(&end.message)), false)
        }
        _ => disrupted(status).unwrap_or_else(|| {
            let how = match end.signal {
                0 => format!("exit code {}", end.exit_code),
                signal => format!("signal {signal}"),
            };
            fate("AgentEnded", &join(&format!("the agent in the pod ended with {how}"), &brief(&end.message)), true)
        }),
    }
}

fn out_of_memory(limit: u64) -> String {
    match limit {
        0 => "the container ran out of memory".to_owned(),
        limit => format!("the container used more memory than its own limit of {}", humane_bytes(limit)),
    }
}

/// What the platform says of a pod that it ended itself.
fn disrupted(status: &PodStatus) -> Option<Fate> {
    let target = condition(&status.conditions, "DisruptionTarget").filter(|c| c.status == "True")?;
    let (code, why) = match target.reason.as_str() {
        "PreemptionByScheduler" => ("Preempted", "the pod made way for another of higher priority"),
        "DeletionByTaintManager" => ("NodeLost", "its node stopped answering or was tainted"),
        "EvictionByEvictionAPI" => ("Evicted", "the pod was asked to leave its node (drain)"),
        "DeletionByPodGC" => ("NodeLost", "its node left the cluster"),
        "TerminationByKubelet" => ("Evicted", "its node ended the pod"),
        _ => ("Disrupted", "the platform ended the pod"),
    };
    Some(fate(code, &join(why, &brief(&target.message)), true))
}

/// What keeps a container from starting.
fn stalled(status: &PodStatus) -> Verdict {
    let all = status.init_container_statuses.iter().chain(&status.container_statuses);
    let Some(waiting) = all.filter_map(|one| one.state.waiting.as_ref()).find(|waiting| is_trouble(&waiting.reason))
    else {
        // Volumes and network come before any container.
        let unprepared =
            condition(&status.conditions, "PodReadyToStartContainers").is_some_and(|c| c.status == "False");
        return match unprepared && status.phase == "Pending" {
            true => Verdict::Stalled {
                fate: fate("NotPrepared", "its node has not got the pod's volumes or network ready", true),
                patience: VOLUME_PATIENCE,
            },
            false => Verdict::Fine,
        };
    };
    let said = brief(&waiting.message);
    match waiting.reason.as_str() {
        "InvalidImageName" | "ErrImageNeverPull" => {
            Verdict::Over(fate("ImagePullFailed", &join("the image cannot be used", &said), false))
        }
        "ErrImagePull" | "ImagePullBackOff" | "ImageInspectError" | "RegistryUnavailable" => Verdict::Stalled {
            fate: fate("ImagePullFailed", &join("the image cannot be pulled", &said), false),
            patience: PULL_PATIENCE,
        },
        reason => Verdict::Stalled {
            fate: fate("CannotStart", &join(&format!("the container cannot be started ({reason})"), &said), false),
            patience: CONFIG_PATIENCE,
        },
    }
}

fn is_trouble(reason: &str) -> bool {
    !matches!(reason, "" | "ContainerCreating" | "PodInitializing")
}

fn over(code: &'static str, why: &str, retryable: bool) -> Verdict {
    Verdict::Over(fate(code, why, retryable))
}

fn fate(code: &'static str, why: &str, retryable: bool) -> Fate {
    Fate { code, why: why.to_owned(), retryable }
}

fn join(what: &str, said: &str) -> String {
    if said.is_empty() { what.to_owned() } else { format!("{what}: {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shown(status: Value) -> String {
        match verdict(&serde_json::from_value(status).unwrap(), 512 << 20) {
            Verdict::Fine => "fine".to_owned(),
            Verdict::Stalled { fate, patience } => format!("after {} s: {}", patience.as_secs(), say(&fate)),
            Verdict::Over(fate) => say(&fate),
        }
    }

    fn say(fate: &Fate) -> String {
        format!("{} ({}): {}", fate.code, if fate.retryable { "again" } else { "for good" }, fate.why)
    }

    fn ended(reason: &str, code: i32, message: &str) -> Value {
        json!([{"state": {"terminated": {"reason": reason, "exitCode": code, "message": message}}}])
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": message}}}]})
    }

    #[test]
    fn every_end_has_its_words() {
        let target =
            |reason: &str| json!([{"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"}]);
        for (status, expect) in [
            (json!({"phase": "Running"}), "fine"),
            (waiting("ContainerCreating", ""), "fine"),
            (
                json!({"phase": "Pending", "conditions": [{"type": "PodReadyToStartContainers", "status": "False"}]}),
                "after 120 s: NotPrepared (again): its node has not got the pod's volumes or network ready",
            ),
            (
                json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
                "Evicted (again): its node evicted the pod: The node was low on resource: memory.",
            ),
            (
                json!({"phase": "Failed", "containerStatuses": ended("OOMKilled", 137, "")}),
                "OutOfMemory (for good): the container used more memory than its own limit of 512 MiB",
            ),
            (
                json!({"phase": "Failed", "reason": "DeadlineExceeded"}),
                "DeadlineExceeded (for good): it ran past its time limit and was ended",
            ),
            (
                json!({"phase": "Failed", "conditions": target("PreemptionByScheduler"), "containerStatuses": ended("Error", 143, "")}),
                "Preempted (again): the pod made way for another of higher priority: m",
            ),
            (
                json!({"phase": "Failed", "conditions": target("EvictionByEvictionAPI")}),
                "Evicted (again): the pod was asked to leave its node (drain): m",
            ),
            (
                json!({"phase": "Failed", "initContainerStatuses": ended("Error", 1, "no space left on device")}),
                "InitFailed (again): the agent could not be put into the pod (exit code 1): no space left on device",
            ),
            (
                json!({"phase": "Failed", "containerStatuses": ended("StartError", 128, "exec: no such file")}),
                "CannotStart (for good): the container could not be started: exec: no such file",
            ),
            (
                json!({"phase": "Failed", "containerStatuses": ended("Error", 101, "panicked")}),
                "AgentEnded (again): the agent in the pod ended with exit code 101: panicked",
            ),
            (json!({"phase": "Succeeded"}), "Ended (again): its pod ended without having reported how"),
            (
                waiting("ImagePullBackOff", "Back-off pulling image \"x\": not found"),
                "after 120 s: ImagePullFailed (for good): the image cannot be pulled: Back-off pulling image \"x\": not found",
            ),
            (
                waiting("InvalidImageName", "couldn't parse image name"),
                "ImagePullFailed (for good): the image cannot be used: couldn't parse image name",
            ),
            (
                waiting("CreateContainerConfigError", "secret \"x\" not found"),
                "after 30 s: CannotStart (for good): the container cannot be started (CreateContainerConfigError): secret \"x\" not found",
            ),
        ] {
            assert_eq!(shown(status.clone()), expect, "{status}");
        }
    }

    #[test]
    fn a_deleted_pod_may_be_tried_again_elsewhere() {
        let status = PodStatus::default();
        assert_eq!(say(&deleted(&status, true)), "Deleted (again): its pod was deleted");
        assert_eq!(say(&deleted(&status, false)), "NodeLost (again): its node left the cluster");
    }
}
