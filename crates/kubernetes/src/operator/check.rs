//! What the server wants to know before it calls a target good: namespace, permissions, and whether a small pod of ours runs.
//!
//! Invariants: every finding says what was seen and, where it failed, what to do; nothing is left behind.

use super::{
    explain::brief,
    fate::Verdict,
    pods::{self, Options},
    refusal::code,
    seen::{PodSeen, condition},
};
use crate::names;
use domain::cluster::{Check, CheckResult, ClusterTarget, Finding};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    core::v1::{Namespace, Pod},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// A pod of ours is small and its image is there already; what takes longer is wrong.
const CANARY_AT_MOST: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// An image that cannot be pulled for this long is reported.
const PULL_AT_MOST: Duration = Duration::from_secs(15);
/// Value of the component label.
const CANARY: &str = "canary";

/// Makes every check of a target, for the operator of namespace `own`.
pub(crate) async fn run(
    client: &Client,
    check: &Check,
    options: &Options,
    (own, volcano): (&str, bool),
) -> CheckResult {
    let namespace = &check.target.namespace;
    let mut findings = vec![match whose(namespace, own) {
        Some(whose) => failed(
            "namespace",
            format!(
                "namespace `{namespace}` is {whose}, and whoever works there could do what it may; make one for jobs: `kubectl create namespace NAME`"
            ),
        ),
        None => namespace_exists(client, namespace).await,
    }];
    if findings[0].passed {
        findings.push(permitted(client, namespace, volcano).await);
    }
    if findings.iter().all(|finding| finding.passed) {
        findings.extend(canary(client, &check.target, options).await);
    }
    CheckResult { id: check.id.clone(), done: true, findings }
}

/// Whose a namespace is that nobody else's work may run in.
fn whose(namespace: &str, own: &str) -> Option<&'static str> {
    match namespace {
        _ if namespace == own => Some("the extension's own"),
        _ if namespace.starts_with("kube-") => Some("the cluster's own"),
        _ => None,
    }
}

async fn namespace_exists(client: &Client, name: &str) -> Finding {
    match Api::<Namespace>::all(client.clone()).get_opt(name).await {
        Ok(Some(found)) if found.metadata.deletion_timestamp.is_some() => {
            failed("namespace", format!("namespace `{name}` is being deleted; wait until it is gone and make it anew"))
        }
        Ok(Some(_)) => passed("namespace", format!("namespace `{name}` exists")),
        Ok(None) => {
            failed("namespace", format!("there is no namespace `{name}`; run `kubectl create namespace {name}`"))
        }
        Err(error) => failed("namespace", format!("cannot look for namespace `{name}`: {}", said(&error))),
    }
}

/// Asks the cluster itself what the operator may do there.
async fn permitted(client: &Client, namespace: &str, volcano: bool) -> Finding {
    let mut wanted = vec![
        ("", "pods", "create"),
        ("", "pods", "patch"),
        ("", "pods", "deletecollection"),
        ("", "secrets", "create"),
    ];
    if volcano {
        wanted.extend([("batch.volcano.sh", "jobs", "create"), ("batch.volcano.sh", "jobs", "deletecollection")]);
    }
    let mut denied = Vec::new();
    for (group, resource, verb) in wanted {
        match may(client, namespace, (group, resource, verb)).await {
            Ok(true) => {}
            Ok(false) => denied.push(format!("{verb} {resource}")),
            Err(error) => {
                return failed("permission", format!("cannot ask what the extension may do: {}", said(&error)));
            }
        }
    }
    if denied.is_empty() {
        return passed("permission", format!("the extension may do what it needs in `{namespace}`"));
    }
    let missing = denied.join(", ");
    failed(
        "permission",
        format!(
            "the extension may not {missing} in `{namespace}`; run `peregrine extension upgrade`, with `{namespace}` among `jobNamespaces` where that is set"
        ),
    )
}

/// Whether the cluster would let this be done: a group, a resource and a verb.
pub(crate) async fn may(client: &Client, namespace: &str, what: (&str, &str, &str)) -> Result<bool, kube::Error> {
    let attributes = ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        group: Some(what.0.to_owned()),
        resource: Some(what.1.to_owned()),
        verb: Some(what.2.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let answer = Api::<SelfSubjectAccessReview>::all(client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// Runs a small pod where jobs of the target would run.
async fn canary(client: &Client, target: &ClusterTarget, options: &Options) -> Vec<Finding> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &target.namespace);
    let over = ListParams::default().labels(&format!("{}={CANARY}", names::COMPONENT));
    let over = over.fields("status.phase!=Pending,status.phase!=Running");
    // One of an operator that was cut off may be left, and has ended by its deadline; another's may be at it.
    let at_once = DeleteParams::default().grace_period(0);
    let _ = pods.delete_collection(&at_once, &over).await;
    for key in ["priority_class", "priority_class_low", "priority_class_medium", "priority_class_high"] {
        let class = setting(target, key);
        // Whatever else stands in the way does so with the first as well.
        if class.is_none() && key != "priority_class" {
            continue;
        }
        let mut job = job_pod(target, options);
        job.spec.get_or_insert_default().priority_class_name = class;
        if let Err(error) = pods.create(&PostParams { dry_run: true, ..PostParams::default() }, &job).await {
            let hint = match code(&error) {
                403 if said(&error).contains("PriorityClass") => {
                    format!("make it, or set another `{key}` on the target")
                }
                _ => "where the namespace asks for it, set `pod_security: restricted` on the target or \
                      `jobPodSecurity=restricted` on the extension"
                    .to_owned(),
            };
            return vec![failed("canary", format!("pods of jobs would be refused: {}; {hint}", said(&error)))];
        }
    }
    match pods.create(&PostParams::default(), &canary_pod(target, options)).await {
        Ok(pod) => {
            let name = pod.metadata.name.unwrap_or_default();
            let findings = watch_canary(client, &target.namespace, &name, options).await;
            let _ = pods.delete(&name, &at_once).await;
            findings
        }
        Err(error) => vec![failed("canary", format!("a small pod could not be made: {}", said(&error)))],
    }
}

/// What the cluster said, without what else its answer holds.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => brief(&status.message),
        error => error.to_string(),
    }
}

fn setting(target: &ClusterTarget, key: &str) -> Option<String> {
    target.settings.get(key).filter(|value| !value.is_empty()).cloned()
}

/// The canary, confined no more than pods of jobs are, and as who they run.
fn job_pod(target: &ClusterTarget, options: &Options) -> Pod {
    let mut pod = canary_pod(target, options);
    let Some(spec) = &mut pod.spec else { return pod };
    if !options.restricted && !pods::is_restricted(target) {
        spec.security_context = None;
        spec.containers.iter_mut().for_each(|container| container.security_context = None);
    }
    spec.service_account_name = setting(target, "service_account");
    pod
}

async fn watch_canary(client: &Client, namespace: &str, name: &str, options: &Options) -> Vec<Finding> {
    let api: Api<PodSeen> = Api::namespaced(client.clone(), namespace);
    let image = &options.image;
    let started = Instant::now();
    let mut waits = String::new();
    while started.elapsed() < CANARY_AT_MOST {
        if let Ok(pod) = api.get(name).await {
            let node = pod.spec.node_name.clone().unwrap_or_default();
            if matches!(pod.status.phase.as_str(), "Running" | "Succeeded") {
                return vec![
                    passed("canary", format!("a small pod ran on node `{node}`")),
                    passed("image", format!("node `{node}` has image `{image}`")),
                ];
            }
            match super::fate::verdict(&pod.status, 0) {
                // Volumes and network may come until the end.
                Verdict::Stalled { fate, .. } if started.elapsed() < PULL_AT_MOST || fate.code == "NotPrepared" => {
                    waits = fate.why;
                }
                Verdict::Stalled { fate, .. } | Verdict::Over(fate) if fate.code == "ImagePullFailed" => {
                    return vec![failed(
                        "image",
                        format!(
                            "node `{node}` cannot get image `{image}`: {}; import it or name a registry the node reaches",
                            fate.why
                        ),
                    )];
                }
                Verdict::Stalled { fate, .. } | Verdict::Over(fate) => {
                    return vec![failed("canary", format!("a small pod did not run on node `{node}`: {}", fate.why))];
                }
                Verdict::Fine => {
                    let scheduled = condition(&pod.status.conditions, "PodScheduled");
                    waits = match node.as_str() {
                        "" => scheduled.map(|c| c.message.clone()).unwrap_or_default(),
                        node => format!("node `{node}` has not started it"),
                    };
                }
            }
        }
        sleep(LOOK_EVERY).await;
    }
    let seconds = CANARY_AT_MOST.as_secs();
    vec![failed("canary", format!("a small pod did not run within {seconds} s: {}", brief(&waits)))]
}

fn canary_pod(target: &ClusterTarget, options: &Options) -> Pod {
    let pod = json!({
        "metadata": {
            "generateName": "peregrine-canary-",
            "labels": {names::PART_OF: names::PRODUCT, names::COMPONENT: CANARY},
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": 2 * CANARY_AT_MOST.as_secs(),
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "nodeSelector": options.node_selector,
            "tolerations": pods::tolerations(target),
            "imagePullSecrets": pods::pull_secrets(target),
            "securityContext": names::pod_security(),
            "containers": [{
                "name": CANARY, "image": options.image, "imagePullPolicy": "IfNotPresent",
                "command": ["/peregrine", "version"],
                "securityContext": names::container_security(),
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "100m", "memory": "64Mi"}},
            }],
        },
    });
    serde_json::from_value(pod).expect("a pod of ours is a pod")
}

fn passed(check: &str, detail: String) -> Finding {
    Finding { check: check.to_owned(), passed: true, detail }
}

fn failed(check: &str, detail: String) -> Finding {
    Finding { check: check.to_owned(), passed: false, detail }
}
