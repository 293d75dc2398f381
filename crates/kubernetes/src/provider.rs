//! Nodes of a managed cluster as pods: a pod is a node, for as long as it lives.
//!
//! The server makes the pods itself; there is no operator of ours where they run. A pod's name comes from its node's, so that
//! ordering twice makes one, and the Secret with its token belongs to it and goes with it. Invariants: Secrets are made and
//! deleted, never read; a pod is gone only when the cluster has no object of it any more; a node object is believed to be gone
//! only when the cluster says so.

mod check;
mod judge;
mod pod;

use crate::{
    connect::{Cluster, Error},
    operator::{
        explain::brief,
        labels,
        refusal::{code, is_there},
        seen::PodSeen,
    },
};
use compute::{Found, Listing, Order, Provider, Trouble};
use domain::{Resources, Timestamp, cluster::Finding};
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Preconditions},
};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::OnceCell,
    time::{Instant, sleep},
};

/// On everything of a managed cluster's nodes. They are no part of the extension, which is removed by other labels.
const NAME: (&str, &str) = ("app.kubernetes.io/name", "peregrine-node");
/// Which cluster of which server a node is of.
const CLUSTER: &str = "peregrine.dev/cluster";
/// The node's name.
const NODE: &str = "peregrine.dev/node";
/// A node that is deleted has ended its work, or was given up.
const GRACE_SECONDS: u32 = 1;
/// How long it is waited for the end of a pod before that is tried again.
const GONE_AT_MOST: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the pods of a cluster are to be.
#[derive(Clone)]
pub struct PodSettings {
    /// Tells this cluster's pods from those of others, and of other servers.
    pub key: String,
    pub workspace: String,
    pub compute: String,
    /// The text of a kubeconfig; without one, the cluster that this process runs in.
    pub kubeconfig: Option<String>,
    /// Where pods reach the server, and the authority that signed its certificate.
    pub server: String,
    pub authority: String,
    pub clock: fn() -> Timestamp,
    shape: Shape,
}

/// What the target's file says of pods.
#[derive(Clone, Default)]
struct Shape {
    context: Option<String>,
    namespace: String,
    image: String,
    agent_image: String,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Value>,
    priority_class: Option<String>,
    service_account: Option<String>,
    pull_secrets: Vec<String>,
}

/// Pods that are nodes.
#[derive(Clone)]
pub struct Pods(Arc<Inner>);

struct Inner {
    settings: PodSettings,
    /// Made at first use, and again where it could not be.
    cluster: OnceCell<Cluster>,
}

impl PodSettings {
    /// Reads a target's `nodeProvider`; `server` is where pods reach the server, and the authority that signed its certificate.
    pub fn of(
        provider: &Value,
        (key, workspace, compute): (String, String, String),
        kubeconfig: Option<String>,
        (server, authority): (String, String),
        clock: fn() -> Timestamp,
    ) -> PodSettings {
        let word = |key: &str| provider[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let labels = provider["nodeSelector"].as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shape = Shape {
            context: word("context"),
            namespace: word("namespace").unwrap_or_else(|| "default".to_owned()),
            image: word("image").unwrap_or_default(),
            agent_image: word("agentImage").unwrap_or_else(|| format!("peregrine:{}", env!("CARGO_PKG_VERSION"))),
            node_selector: labels.map(|(key, value)| (key.clone(), text(value))).collect(),
            tolerations: provider["tolerations"].as_array().cloned().unwrap_or_default(),
            priority_class: word("priorityClass"),
            service_account: word("serviceAccount"),
            pull_secrets: provider["imagePullSecrets"].as_array().into_iter().flatten().map(text).collect(),
        };
        let server = server.trim_end_matches('/').to_owned();
        PodSettings { key, workspace, compute, kubeconfig, server, authority, clock, shape }
    }
}

impl Pods {
    pub fn new(settings: PodSettings) -> Pods {
        Pods(Arc::new(Inner { settings, cluster: OnceCell::new() }))
    }

    async fn cluster(&self) -> Result<&Cluster, Error> {
        let PodSettings { kubeconfig, shape, .. } = &self.0.settings;
        let connect = || async {
            match kubeconfig {
                Some(text) => Cluster::sent(text, shape.context.as_deref()).await,
                None => Cluster::inside(),
            }
        };
        self.0.cluster.get_or_try_init(connect).await
    }

    /// The cluster's objects of one kind, in the namespace of the nodes.
    async fn api<K>(&self) -> Result<Api<K>, Trouble>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        let cluster = self.cluster().await.map_err(|error| Trouble::new("cluster", said(&error)))?;
        Ok(Api::namespaced(cluster.client.clone(), &self.0.settings.shape.namespace))
    }

    /// What went wrong with an object.
    fn trouble(&self, doing: &str, error: kube::Error) -> Trouble {
        let Some(cluster) = self.0.cluster.get() else { return Trouble::new("cluster", error.to_string()) };
        Trouble::new("cluster", said(&cluster.told(doing, error)))
    }

    /// Makes the pod of a node, or finds that it is there.
    async fn pod(&self, order: &Order) -> Result<Pod, Trouble> {
        let (pods, made) = (self.api::<Pod>().await?, pod::pod(&self.0.settings, order)?);
        let name = pod::name(&order.name);
        match pods.create(&Default::default(), &made).await {
            Ok(pod) => Ok(pod),
            Err(error) if is_there(&error) => {
                let doing = format!("look at pod `{name}`");
                let there = pods.get(&name).await.map_err(|error| self.trouble(&doing, error))?;
                let ours = there.metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER));
                match ours == Some(&self.0.settings.key) {
                    true => Ok(there),
                    false => {
                        Err(Trouble::new("cluster", format!("there is a pod `{name}` that is no node of this cluster")))
                    }
                }
            }
            Err(error) => Err(self.trouble(&format!("make pod `{name}`"), error)),
        }
    }

    /// Whether a machine of the Kubernetes cluster left it. Who may not ask that does not know.
    async fn has_left(&self, machine: &str) -> bool {
        let Ok(cluster) = self.cluster().await else { return false };
        matches!(Api::<Node>::all(cluster.client.clone()).get_metadata_opt(machine).await, Ok(None))
    }
}

impl Provider for Pods {
    async fn create(&self, order: &Order) -> Result<(), Trouble> {
        let owner = self.pod(order).await?;
        // It is made second, for it belongs to the pod; the pod waits for it.
        let secret = pod::secret(&self.0.settings, order, &owner);
        match self.api::<Secret>().await?.create(&Default::default(), &secret).await {
            Err(error) if !is_there(&error) => Err(self.trouble(&format!("make a secret for `{}`", order.name), error)),
            _ => Ok(()),
        }
    }

    async fn delete(&self, name: &str) -> Result<(), Trouble> {
        let (pods, object) = (self.api::<PodSeen>().await?, pod::name(name));
        let doing = format!("delete pod `{object}`");
        let Some(there) = pods.get_opt(&object).await.map_err(|error| self.trouble(&doing, error))? else {
            return self.forget(&object).await;
        };
        if there.metadata.labels.as_ref().and_then(|labels| labels.get(CLUSTER)) != Some(&self.0.settings.key) {
            return Ok(());
        }
        let only = Preconditions { uid: there.metadata.uid.clone(), resource_version: None };
        let polite = DeleteParams::default().grace_period(GRACE_SECONDS).preconditions(only);
        let begun = Instant::now();
        let mut how = polite;
        loop {
            match self.api::<Pod>().await?.delete(&object, &how).await {
                Ok(_) => {}
                // Gone, or there is another of that name by now.
                Err(error) if matches!(code(&error), 404 | 409) => return self.forget(&object).await,
                Err(error) => return Err(self.trouble(&doing, error)),
            }
            let machine = match self.ended(&pods, (&object, there.metadata.uid.as_ref()), begun).await? {
                Ended::Yes => return self.forget(&object).await,
                Ended::On(machine) => machine,
            };
            if how.grace_period_seconds == Some(0) || !self.has_left(&machine).await {
                let why = format!("pod `{object}` does not end: Kubernetes node `{machine}` does not say that it has");
                return Err(Trouble::new("cluster", why));
            }
            // Nobody is left who could say that it ended.
            how = how.grace_period(0);
        }
    }

    async fn list(&self) -> Result<Listing, Trouble> {
        let settings = &self.0.settings;
        let ours = ListParams::default().labels(&format!("{}={},{CLUSTER}={}", NAME.0, NAME.1, settings.key));
        let listed = self.api::<PodSeen>().await?.list(&ours).await;
        let listed = listed.map_err(|error| self.trouble("list pods", error))?;
        let now = (settings.clock)();
        let found = |pod: &PodSeen| {
            let name = pod.metadata.labels.as_ref()?.get(NODE)?.clone();
            Some(Found { name, health: judge::health(pod, now, &settings.server) })
        };
        Ok(Listing::all(listed.items.iter().filter_map(found).collect()))
    }

    async fn offers(&self, size: &Resources) -> Result<Resources, Trouble> {
        Ok(*size)
    }

    fn revives(&self) -> bool {
        false
    }

    async fn check(&self) -> Vec<Finding> {
        check::run(self).await
    }
}

/// How the wait for a pod's end ended.
enum Ended {
    Yes,
    /// It is still there, on this machine of the Kubernetes cluster.
    On(String),
}

impl Pods {
    /// Waits until there is no such pod any more, for a while, or until its machine is known to have left.
    async fn ended(
        &self,
        pods: &Api<PodSeen>,
        (object, uid): (&str, Option<&String>),
        begun: Instant,
    ) -> Result<Ended, Trouble> {
        let mut looks = 0_u32;
        loop {
            let there = pods.get_opt(object).await;
            let there = there.map_err(|error| self.trouble(&format!("look at pod `{object}`"), error))?;
            let Some(there) = there.filter(|there| there.metadata.uid.as_ref() == uid) else { return Ok(Ended::Yes) };
            let machine = there.spec.node_name.unwrap_or_default();
            looks += 1;
            // The first time it may just take a moment.
            let left = looks.is_multiple_of(20) && self.has_left(&machine).await;
            if left || begun.elapsed() >= GONE_AT_MOST {
                return Ok(Ended::On(machine));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// The Secret goes with its pod; nobody waits until the cluster has come round to it.
    async fn forget(&self, object: &str) -> Result<(), Trouble> {
        match self.api::<Secret>().await?.delete(object, &DeleteParams::default()).await {
            Err(error) if code(&error) != 404 => Err(self.trouble(&format!("delete secret `{object}`"), error)),
            _ => Ok(()),
        }
    }
}

/// What went wrong, why, and what to do, on one line.
fn said(error: &Error) -> String {
    let reasons = error.reasons().iter().map(|reason| brief(reason)).collect::<Vec<_>>().join(": ");
    let next = match error {
        Error::Kubeconfig(_) => "give another with `kubeconfig_file` and `context`",
        Error::Credentials(_) | Error::Unauthorized { .. } => {
            "create the target again with a kubeconfig that `kubectl` can use"
        }
        Error::Unreachable { .. } => "this server's machine must reach that address",
        Error::Forbidden { .. } => "give its user the role that the guide to clusters shows",
        _ => "",
    };
    let next = if matches!(error, Error::NotPortable { .. } | Error::NotInside(_)) { error.next_step() } else { next };
    let parts = [error.to_string(), reasons].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    if next.is_empty() { parts } else { format!("{parts}; {next}") }
}

/// Labels by which everything of a node is found again.
fn labelled(settings: &PodSettings, node: &str) -> BTreeMap<String, String> {
    let all = [
        (NAME.0, NAME.1.to_owned()),
        (CLUSTER, settings.key.clone()),
        (NODE, node.to_owned()),
        (labels::COMPUTE, labels::value(&settings.compute)),
        (labels::WORKSPACE, labels::value(&settings.workspace)),
    ];
    all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
