//! Whether nodes could be had as pods: asked of the cluster itself, item by item.
//!
//! The last item is the pod of a node, sent to be judged and not to be made: what the namespace's quotas, its Pod Security or
//! a missing service account have against it is known before anybody waits for it.

use super::{Pods, pod, said};
use crate::operator::check::may;
use compute::Order;
use domain::{Resources, cluster::Finding};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{Api, api::PostParams};

/// What is asked of the cluster, in the namespace of the nodes.
const NEEDED: &[(&str, &str)] = &[
    ("pods", "create"),
    ("pods", "get"),
    ("pods", "list"),
    ("pods", "delete"),
    ("secrets", "create"),
    ("secrets", "delete"),
];

pub(super) async fn run(pods: &Pods) -> Vec<Finding> {
    let mut findings = vec![server(&pods.0.settings.server)];
    let answers = answers(pods).await;
    let reached = answers.passed;
    findings.push(answers);
    if !reached {
        return findings;
    }
    let exists = namespace(pods).await;
    let there = exists.passed;
    findings.push(exists);
    if there {
        findings.push(permission(pods).await);
        findings.push(trial(pods).await);
    }
    findings
}

/// Whether the server's address can mean the server in a pod.
fn server(url: &str) -> Finding {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let at = rest.split('/').next().unwrap_or_default();
    let host = at.rsplit_once(':').map_or(at, |(host, _)| host).trim_matches(['[', ']']);
    let here = host == "localhost"
        || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback() || address.is_unspecified());
    match here {
        true => failed(
            "server",
            format!("in a pod `{url}` is the pod itself; set `server_url` to where pods reach this server"),
        ),
        false => passed("server", format!("nodes call `{url}`")),
    }
}

async fn answers(pods: &Pods) -> Finding {
    let cluster = match pods.cluster().await {
        Ok(cluster) => cluster,
        Err(error) => return failed("cluster", said(&error)),
    };
    match cluster.client.apiserver_version().await {
        Ok(version) => passed("cluster", format!("Kubernetes {} answers at {}", version.git_version, cluster.url)),
        Err(error) => failed("cluster", said(&cluster.told("ask for its version", error))),
    }
}

async fn namespace(pods: &Pods) -> Finding {
    let name = &pods.0.settings.shape.namespace;
    let Ok(cluster) = pods.cluster().await else {
        return failed("namespace", "the cluster is out of reach".to_owned());
    };
    match Api::<Namespace>::all(cluster.client.clone()).get_metadata_opt(name).await {
        Ok(Some(found)) if found.metadata.deletion_timestamp.is_some() => {
            failed("namespace", format!("namespace `{name}` is being deleted; wait until it is gone and make it anew"))
        }
        Ok(Some(_)) => passed("namespace", format!("namespace `{name}` exists")),
        Ok(None) => {
            failed("namespace", format!("there is no namespace `{name}`; run `kubectl create namespace {name}`"))
        }
        // The trial of a pod would not find it either.
        Err(kube::Error::Api(status)) if status.code == 403 => {
            passed("namespace", format!("namespace `{name}` may not be looked at"))
        }
        Err(error) => failed("namespace", said(&cluster.told(format!("look for namespace `{name}`"), error))),
    }
}

async fn permission(pods: &Pods) -> Finding {
    let namespace = &pods.0.settings.shape.namespace;
    let Ok(cluster) = pods.cluster().await else {
        return failed("permission", "the cluster is out of reach".to_owned());
    };
    let mut denied = Vec::new();
    for (resource, verb) in NEEDED {
        match may(&cluster.client, namespace, ("", resource, verb)).await {
            Ok(true) => {}
            Ok(false) => denied.push(format!("{verb} {resource}")),
            Err(error) => return failed("permission", said(&cluster.told("ask what is allowed", error))),
        }
    }
    match denied.is_empty() {
        true => passed("permission", format!("nodes may be made and deleted in `{namespace}`")),
        false => {
            let missing = denied.join(", ");
            failed(
                "permission",
                format!("may not {missing} in `{namespace}`; apply the role that the guide to clusters shows"),
            )
        }
    }
}

/// A pod like those of nodes, as small as can be, which the cluster judges and does not make.
async fn trial(pods: &Pods) -> Finding {
    let settings = &pods.0.settings;
    let order = Order {
        name: format!("{}-trial", settings.compute),
        token: String::new(),
        size: String::new(),
        amounts: Resources { cpu_milli: 100, memory_bytes: 64 << 20, gpus: 0 },
        tier: Default::default(),
    };
    let made = match pod::pod(settings, &order) {
        Ok(made) => made,
        Err(trouble) => return failed("pod", trouble.why),
    };
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let tried = match pods.api::<Pod>().await {
        Ok(api) => api.create(&dry, &made).await,
        Err(trouble) => return failed("pod", trouble.why),
    };
    match tried {
        Ok(_) => passed("pod", format!("the cluster takes pods of image `{}`", settings.shape.image)),
        Err(error) => failed("pod", pods.trouble("take a node's pod", error).why),
    }
}

fn passed(check: &str, detail: String) -> Finding {
    Finding { check: check.to_owned(), passed: true, detail }
}

fn failed(check: &str, detail: String) -> Finding {
    Finding { check: check.to_owned(), passed: false, detail }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_means_the_pod_itself_is_not_the_servers() {
        for (url, good) in [
            ("https://127.0.0.1:7423", false),
            ("https://localhost:7423/", false),
            ("https://[::1]:7423", false),
            ("https://0.0.0.0:7423", false),
            ("https://10.0.0.4:7423", true),
            ("https://peregrine.lab", true),
        ] {
            assert_eq!(server(url).passed, good, "{url}");
        }
    }
}
