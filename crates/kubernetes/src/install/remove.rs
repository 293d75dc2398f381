//! Taking the extension away, and proving that nothing of it is left.
//!
//! Found by labels, not by memory: what an older version or a broken installation made goes too.

use super::kinds::{ATTEMPTS, DEFINITION, EXTENSION, Kind, NAMESPACE};
use crate::{
    connect::{Cluster, Error},
    instance_type::InstanceType,
    names::{ATTEMPT, OPERATOR, PART_OF, PRODUCT},
    operator::labels,
    reservation,
};
use futures_util::future::try_join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use tokio::time::{Instant, sleep};

/// Something of ours that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    kind: Kind,
    namespace: Option<String>,
    name: String,
    /// Found by the label of an attempt.
    attempt: Option<String>,
}

/// How a removal ended.
#[derive(Debug, Clone, Default)]
pub struct Removal {
    pub removed: Vec<Left>,
    /// Still there when time was up.
    pub left: Vec<Left>,
    /// The namespace, where it holds things that are not ours and therefore stays.
    pub kept_namespace: Option<String>,
}

impl Left {
    /// `Pod team-a/att-x-0`.
    pub fn name(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind.name, self.name),
            None => format!("{} {}", self.kind.name, self.name),
        }
    }
}

/// Everything of the extension and of attempts, wherever it lies. `namespace` is the extension's own.
pub async fn leftovers(cluster: &Cluster, namespace: &str) -> Result<Vec<Left>, Error> {
    let ours = format!("{PART_OF}={PRODUCT}");
    let attempts = ATTEMPTS.iter().map(|kind| found(cluster, *kind, ATTEMPT));
    let extension = EXTENSION.iter().map(|kind| found(cluster, *kind, &ours));
    let (attempts, extension) = tokio::try_join!(try_join_all(attempts), try_join_all(extension))?;
    // What an attempt consists of may carry both labels.
    let mut known = BTreeSet::new();
    let all = attempts.into_iter().chain(extension).flatten();
    let mut all: Vec<Left> = all.filter(|one| known.insert(one.name())).collect();
    all.extend(lease(cluster, namespace, &all).await?);
    Ok(all)
}

/// Attempts whose pods have not ended, each with the endpoint that it is a replica of.
pub async fn running_attempts(cluster: &Cluster) -> Result<BTreeMap<String, Option<String>>, Error> {
    let pods: Api<Pod> = Api::all(cluster.client.clone());
    let list = pods.list(&ListParams::default().labels(ATTEMPT)).await;
    let list = list.map_err(|error| cluster.told("list the pods of jobs", error))?;
    let runs = |pod: &&Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        !matches!(phase, Some("Succeeded" | "Failed"))
    };
    let named = |pod: &Pod| Some((pod.labels().get(ATTEMPT)?.clone(), pod.labels().get(labels::ENDPOINT).cloned()));
    Ok(list.items.iter().filter(runs).filter_map(named).collect())
}

/// Names of the instance types there are; none where the cluster does not know them.
pub async fn instance_types(cluster: &Cluster) -> Result<Vec<String>, Error> {
    let api: Api<InstanceType> = Api::all(cluster.client.clone());
    match api.list_metadata(&ListParams::default()).await {
        Ok(list) => Ok(list.items.iter().map(ResourceExt::name_any).collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(cluster.told("list instance types", error)),
    }
}

/// Removes the pods that hold memory back, where nobody wants it held any more.
pub async fn release_memory(cluster: &Cluster, namespace: &str) -> Result<(), Error> {
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), namespace);
    let held = ListParams::default().labels(reservation::LABEL);
    let done = pods.delete_collection(&DeleteParams::background(), &held).await;
    done.map(drop).map_err(|error| cluster.told("remove the pods that hold memory back", error))
}

/// Removes everything and waits until it is gone. `keep_types` leaves instance types and their definition.
pub async fn remove(cluster: &Cluster, namespace: &str, keep_types: bool, within: Duration) -> Result<Removal, Error> {
    let deadline = Instant::now() + within;
    let (mut removal, mut known) = (Removal::default(), BTreeSet::new());
    let foreign = foreign(cluster, namespace).await?;
    let stays = |one: &Left| {
        (keep_types && one.kind == DEFINITION) || (one.kind == NAMESPACE && (one.name != namespace || foreign))
    };
    loop {
        let all = leftovers(cluster, namespace).await?;
        removal.kept_namespace = all.iter().find(|one| one.kind == NAMESPACE && stays(one)).map(|one| one.name.clone());
        let left: Vec<Left> = all.into_iter().filter(|one| !stays(one)).collect();
        if left.is_empty() {
            return Ok(removal);
        }
        if Instant::now() > deadline {
            return Ok(Removal { left, ..removal });
        }
        // Who makes things goes before what it made, so that nothing comes back.
        let first: Vec<&Left> = left.iter().filter(|one| one.kind.name == "Deployment").collect();
        let now: Vec<&Left> = if first.is_empty() { left.iter().collect() } else { first };
        delete(cluster, &now).await?;
        removal.removed.extend(now.into_iter().filter(|one| known.insert(one.name())).cloned());
        sleep(Duration::from_millis(300)).await;
    }
}

/// What a label finds of one kind. A kind the cluster does not know has nothing.
async fn found(cluster: &Cluster, kind: Kind, label: &str) -> Result<Vec<Left>, Error> {
    let list = kind.api(&cluster.client, None).list_metadata(&ListParams::default().labels(label)).await;
    match list {
        Ok(list) => Ok(list
            .items
            .iter()
            .map(|one| Left {
                kind,
                namespace: one.namespace(),
                name: one.name_any(),
                attempt: one.labels().get(ATTEMPT).cloned(),
            })
            .collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(cluster.told(format!("list {}", kind.plural), error)),
    }
}

/// The operator's lease has no label when the operator made it.
async fn lease(cluster: &Cluster, namespace: &str, all: &[Left]) -> Result<Option<Left>, Error> {
    let kind = *EXTENSION.iter().find(|kind| kind.name == "Lease").expect("listed above");
    let api = kind.api(&cluster.client, Some(namespace));
    let found = api.get_metadata_opt(OPERATOR).await;
    let found = found.map_err(|error| cluster.told("look at the operator's lease", error))?;
    let known = all.iter().any(|one| one.kind == kind);
    let (namespace, name) = (Some(namespace.to_owned()), OPERATOR.to_owned());
    Ok(found.filter(|_| !known).map(|_| Left { kind, namespace, name, attempt: None }))
}

/// Whether a namespace holds pods, claims or settings that are somebody else's.
async fn foreign(cluster: &Cluster, namespace: &str) -> Result<bool, Error> {
    let kinds = [
        ("Pod", "pods"),
        ("PersistentVolumeClaim", "persistentvolumeclaims"),
        ("ConfigMap", "configmaps"),
        ("Secret", "secrets"),
    ];
    for (name, plural) in kinds {
        let api = Kind { version: "v1", name, plural, namespaced: true }.api(&cluster.client, Some(namespace));
        let others = format!("{PART_OF}!={PRODUCT},!{ATTEMPT}");
        let list = api.list_metadata(&ListParams::default().labels(&others)).await;
        let list = list.map_err(|error| cluster.told(format!("list {plural} in `{namespace}`"), error))?;
        // What every namespace gets from the cluster itself.
        let given = |name: &str| name.ends_with(".crt") || name.contains("-token-") || name.contains("-dockercfg-");
        if list.items.iter().any(|one| !given(&one.name_any())) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Thousands of pods go in a few calls: one for each kind, namespace and label.
async fn delete(cluster: &Cluster, all: &[&Left]) -> Result<(), Error> {
    let mut groups: BTreeMap<(&str, &str, bool), Vec<&Left>> = BTreeMap::new();
    for one in all {
        let place = one.namespace.as_deref().unwrap_or_default();
        groups.entry((one.kind.plural, place, one.attempt.is_some())).or_default().push(one);
    }
    for ((_, _, attempts), group) in groups {
        let kind = group[0].kind;
        let api = kind.api(&cluster.client, group[0].namespace.as_deref());
        let params = DeleteParams::background();
        let told = |error: kube::Error| cluster.told(format!("remove {}", kind.plural), error);
        if attempts && group.len() > 1 {
            api.delete_collection(&params, &ListParams::default().labels(ATTEMPT)).await.map_err(told)?;
            continue;
        }
        for one in group {
            match api.delete(&one.name, &params).await {
                Err(kube::Error::Api(status)) if status.code == 404 || status.code == 409 => {}
                other => drop(other.map_err(told)?),
            }
        }
    }
    Ok(())
}
