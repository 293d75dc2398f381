//! Waiting for the operator, with what holds it up told on the way.

use crate::{
    connect::{Cluster, Error},
    names::{COMPONENT, OPERATOR, PART_OF, PRODUCT, ROUTER},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ContainerStatus, Pod},
};
use kube::{
    Api,
    api::{ListParams, LogParams},
};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Looks until every copy of the operator, and of the router where there is one, runs as it was last applied. `progress` hears
/// each new word about it.
pub async fn until_ready(
    cluster: &Cluster,
    namespace: &str,
    (within, router): (Duration, bool),
    progress: &dyn Fn(&str),
) -> Result<(), Error> {
    let api: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespace);
    let deadline = Instant::now() + within;
    let mut said = String::new();
    let mut parts =
        [(OPERATOR, "operator"), (ROUTER, "router")].into_iter().filter(|(name, _)| *name == OPERATOR || router);
    let mut part = parts.next();
    while let Some((name, component)) = part {
        let found = api.get_opt(name).await.map_err(|error| cluster.told(format!("look at the {component}"), error))?;
        if found.as_ref().is_some_and(is_ready) {
            part = parts.next();
            continue;
        }
        let troubles = troubles(cluster, namespace, (component, found.as_ref())).await;
        let words = match troubles.is_empty() {
            true => format!("waiting for the {component}'s pod"),
            false => troubles.join("; "),
        };
        if words != said {
            progress(&words);
            said = words;
        }
        if Instant::now() > deadline {
            return Err(Error::NotReady { seconds: within.as_secs(), reasons: troubles });
        }
        sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

fn is_ready(deployment: &Deployment) -> bool {
    let (Some(spec), Some(status)) = (&deployment.spec, &deployment.status) else { return false };
    let wanted = spec.replicas.unwrap_or(1);
    status.observed_generation >= deployment.metadata.generation
        && status.updated_replicas.unwrap_or_default() >= wanted
        && status.available_replicas.unwrap_or_default() >= wanted
        && status.replicas.unwrap_or_default() == wanted
}

/// What keeps a part of the extension from running, as far as it can be seen; one line each.
pub(super) async fn troubles(
    cluster: &Cluster,
    namespace: &str,
    (component, deployment): (&str, Option<&Deployment>),
) -> Vec<String> {
    let status = deployment.and_then(|deployment| deployment.status.as_ref());
    let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let failures = conditions.filter(|one| one.type_ == "ReplicaFailure" && one.status == "True");
    let mut all: Vec<String> = failures.filter_map(|one| one.message.clone()).collect();
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let ours = format!("{PART_OF}={PRODUCT},{COMPONENT}={component}");
    for pod in pods.list(&ListParams::default().labels(&ours)).await.map(|list| list.items).unwrap_or_default() {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if let Some(trouble) = trouble(&pod) {
            all.push(format!("pod `{name}`: {trouble}"));
        }
        let crashed = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        if crashed.into_iter().any(|container| container.restart_count > 0 && !container.ready) {
            let params = LogParams { previous: true, tail_lines: Some(5), ..LogParams::default() };
            let log = pods.logs(&name, &params).await.unwrap_or_default();
            all.extend(log.lines().map(|line| format!("pod `{name}` said: {line}")));
        }
    }
    all
}

/// Why a pod does not run, in the cluster's own words.
fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers = status.container_statuses.iter().flatten();
    if let Some(words) = containers.filter_map(waiting).next() {
        return Some(words);
    }
    let unplaced = status.conditions.iter().flatten().find(|one| one.type_ == "PodScheduled" && one.status == "False");
    if let Some(condition) = unplaced {
        return Some(format!("no node takes it: {}", condition.message.clone().unwrap_or_default()));
    }
    let unready = status.container_statuses.iter().flatten().any(|container| !container.ready);
    (unready && pod.metadata.deletion_timestamp.is_none()).then(|| "it runs and is not ready yet".to_owned())
}

fn waiting(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.clone().unwrap_or_default();
    match &waiting.message {
        Some(message) => Some(format!("{reason}: {message}")),
        None => Some(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_deployment_is_ready_when_all_copies_are_of_the_last_revision() {
        let deployment = |status: serde_json::Value| -> Deployment {
            let spec = json!({"replicas": 2, "selector": {}, "template": {}});
            serde_json::from_value(json!({"metadata": {"generation": 3}, "spec": spec, "status": status})).unwrap()
        };
        let ready = json!({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert!(is_ready(&deployment(ready.clone())));
        for (key, value) in
            [("observedGeneration", 2), ("updatedReplicas", 1), ("availableReplicas", 1), ("replicas", 3)]
        {
            let mut status = ready.clone();
            status[key] = json!(value);
            assert!(!is_ready(&deployment(status)), "{key}");
        }
    }

    #[test]
    fn a_pod_says_why_it_does_not_run() {
        let pod = |status: serde_json::Value| -> Pod {
            serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap()
        };
        let container = |state: serde_json::Value| json!({"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}]});
        let unplaced = json!({"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/4 nodes"}]});
        for (status, expect) in [
            (
                container(json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}})),
                Some("ImagePullBackOff: not found"),
            ),
            (container(json!({"running": {}})), Some("it runs and is not ready yet")),
            (unplaced, Some("no node takes it: 0/4 nodes")),
            (json!({}), None),
        ] {
            assert_eq!(trouble(&pod(status)).as_deref(), expect);
        }
    }
}
