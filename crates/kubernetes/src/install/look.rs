//! Looking at a cluster for the health check, and leaving the report there.

use super::{
    kinds::{DEFINITION, EXTENSION, Kind},
    wait::troubles,
};
use crate::{
    certificate,
    connect::{Cluster, Error},
    health::{CertificateSeen, Definition, Health, OperatorSeen, Place, Seen, Stage},
    manifests::PROTECTED_SECRET,
    names::{OPERATOR, PART_OF, PRODUCT, ROUTER},
    settings::{Certificate, Settings},
};
use futures_util::future::try_join_all;
use k8s_openapi::api::{
    apps::v1::Deployment,
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    core::v1::{ConfigMap, Namespace, Node, Secret, Service},
};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;

/// Where the last reports are, as in Azure's extension.
const REPORTS: &str = "arcml-healthcheck";
/// What is done to each kind of object.
const VERBS: [&str; 4] = ["get", "create", "patch", "delete"];

/// Looks at everything the health check judges. Where the caller may not change what has to be changed, at nothing more.
pub async fn look(cluster: &Cluster, namespace: &str, settings: &Settings, stage: Stage) -> Result<Seen, Error> {
    let denied = if stage == Stage::Test { Vec::new() } else { denied(cluster).await? };
    if !denied.is_empty() {
        return Ok(Seen { denied, ..Seen::default() });
    }
    let version =
        cluster.client.apiserver_version().await.map_err(|error| cluster.told("ask for its version", error))?;
    // Some providers write `31+`.
    let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or_default();
    let (nodes, definition, (elsewhere, operator)) =
        tokio::try_join!(nodes(cluster, settings), definition(cluster), operators(cluster, namespace))?;
    Ok(Seen {
        uid: uid(cluster).await?,
        kubernetes: (number(&version.major), number(&version.minor)),
        namespace: place(cluster, namespace).await?,
        nodes,
        definition,
        elsewhere,
        denied,
        prometheus: knows_monitors(cluster).await?,
        operator,
        router: routers(cluster, namespace).await?,
        balanced: balanced(cluster, namespace).await?,
        certificate: certificate(cluster, namespace, settings).await?,
    })
}

/// What a cluster is known by: a namespace that is made with it and never again.
pub async fn uid(cluster: &Cluster) -> Result<String, Error> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let oldest = api.get_opt("kube-system").await.map_err(|error| cluster.told("look at `kube-system`", error))?;
    Ok(oldest.and_then(|oldest| oldest.metadata.uid).unwrap_or_default())
}

/// Leaves a report in the extension's namespace, beside those of other occasions.
pub async fn report(cluster: &Cluster, namespace: &str, stage: Stage, all: &[Health]) -> Result<(), Error> {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let text = serde_json::to_string_pretty(all).expect("a report is plain data");
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": REPORTS, "labels": {PART_OF: PRODUCT}},
        "data": {stage.report(): text},
    });
    // A manager for each occasion, or one report would take the others away.
    let manager = PatchParams::apply(&format!("{PRODUCT}-{}", stage.report())).force();
    let done = api.patch(REPORTS, &manager, &Patch::Apply(&object)).await;
    done.map(drop).map_err(|error| cluster.told(format!("write ConfigMap {namespace}/{REPORTS}"), error))
}

async fn place(cluster: &Cluster, namespace: &str) -> Result<Place, Error> {
    let api: Api<Namespace> = Api::all(cluster.client.clone());
    let found = api
        .get_opt(namespace)
        .await
        .map_err(|error| cluster.told(format!("look at namespace `{namespace}`"), error))?;
    Ok(match found {
        None => Place::Absent,
        Some(found) if found.metadata.deletion_timestamp.is_some() => Place::Terminating,
        Some(_) => Place::Active,
    })
}

async fn nodes(cluster: &Cluster, settings: &Settings) -> Result<(usize, usize), Error> {
    let api: Api<Node> = Api::all(cluster.client.clone());
    let list = api.list(&ListParams::default()).await.map_err(|error| cluster.told("list nodes", error))?;
    let is_ready = |node: &&Node| {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
    };
    let ready: Vec<&Node> = list.items.iter().filter(is_ready).collect();
    let wanted = &settings.node_selector;
    let matches = |node: &&&Node| wanted.iter().all(|(key, value)| node.labels().get(key) == Some(value));
    Ok((ready.len(), ready.iter().filter(matches).count()))
}

async fn definition(cluster: &Cluster) -> Result<Definition, Error> {
    let api = DEFINITION.api(&cluster.client, None);
    let found = api.get_metadata_opt("instancetypes.amlarc.azureml.com").await;
    let Some(found) = found.map_err(|error| cluster.told("look at the definition of instance types", error))? else {
        return Ok(Definition::Absent);
    };
    if found.labels().get(PART_OF).is_some_and(|part| part == PRODUCT) {
        return Ok(Definition::Ours);
    }
    let release = found.annotations().get("meta.helm.sh/release-name").map(|name| format!("the Helm release `{name}`"));
    // Who wrote its status has not made it.
    let mut makers = found.managed_fields().iter().filter(|fields| fields.subresource.is_none());
    let manager = makers.find_map(|fields| fields.manager.as_ref()).map(|name| format!("`{name}`"));
    Ok(Definition::Foreign(release.or(manager).unwrap_or_else(|| "somebody else".to_owned())))
}

/// The operator here, and the namespace of one that is not.
async fn operators(cluster: &Cluster, namespace: &str) -> Result<(Option<String>, Option<OperatorSeen>), Error> {
    let api: Api<Deployment> = Api::all(cluster.client.clone());
    let list = api.list(&ListParams::default().labels(&format!("{PART_OF}={PRODUCT}"))).await;
    let list = list.map_err(|error| cluster.told("list deployments", error))?;
    let is_operator = |one: &&Deployment| one.name_any() == OPERATOR;
    let mut elsewhere = list.items.iter().filter(is_operator).filter_map(ResourceExt::namespace);
    let elsewhere = elsewhere.find(|place| place != namespace);
    let here = list.items.iter().filter(is_operator).find(|one| one.namespace().as_deref() == Some(namespace));
    let Some(here) = here else { return Ok((elsewhere, None)) };
    let read = super::Installed::of(here);
    let troubles = troubles(cluster, namespace, ("operator", Some(here))).await;
    Ok((elsewhere, Some(OperatorSeen { wanted: read.wanted, ready: read.ready, image: read.image, troubles })))
}

/// How many routers are ready and wanted, where there are any.
async fn routers(cluster: &Cluster, namespace: &str) -> Result<Option<(i32, i32)>, Error> {
    let api: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespace);
    let found = api.get_opt(ROUTER).await.map_err(|error| cluster.told("look at the router's deployment", error))?;
    Ok(found.map(|found| {
        let ready = found.status.and_then(|status| status.ready_replicas).unwrap_or_default();
        (ready, found.spec.and_then(|spec| spec.replicas).unwrap_or(1))
    }))
}

/// Whether the router's load balancer has an address, where it has one at all.
async fn balanced(cluster: &Cluster, namespace: &str) -> Result<Option<bool>, Error> {
    let api: Api<Service> = Api::namespaced(cluster.client.clone(), namespace);
    let found = api.get_opt(ROUTER).await.map_err(|error| cluster.told("look at the router's service", error))?;
    let is_balanced =
        |service: &Service| service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
    Ok(found.filter(is_balanced).map(|service| {
        let given = service.status.and_then(|status| status.load_balancer?.ingress);
        given.is_some_and(|given| !given.is_empty())
    }))
}

/// The certificate that the settings name, with its key.
async fn certificate(cluster: &Cluster, namespace: &str, settings: &Settings) -> Result<CertificateSeen, Error> {
    let Some(inference) = &settings.inference else { return Ok(CertificateSeen::Unseen) };
    let (name, keys) = match &inference.certificate {
        Certificate::None => return Ok(CertificateSeen::Unseen),
        Certificate::Protected => (PROTECTED_SECRET, ["sslCertPemFile", "sslKeyPemFile"]),
        Certificate::Secret(name) => (name.as_str(), ["cert.pem", "key.pem"]),
    };
    let api: Api<Secret> = Api::namespaced(cluster.client.clone(), namespace);
    let found = match api.get_opt(name).await {
        Ok(found) => found,
        // Who may not read what is protected need not.
        Err(kube::Error::Api(status)) if status.code == 403 => return Ok(CertificateSeen::Unseen),
        Err(error) => return Err(cluster.told(format!("look at secret `{name}`"), error)),
    };
    let data = found.and_then(|found| found.data).unwrap_or_default();
    Ok(match keys.map(|key| data.get(key)) {
        [Some(chain), Some(key)] => certificate::judge(&chain.0, &key.0, &inference.host),
        _ => CertificateSeen::Absent,
    })
}

/// What the caller may not do of all that installing needs.
async fn denied(cluster: &Cluster) -> Result<Vec<String>, Error> {
    let everything = ResourceAttributes {
        group: Some("*".into()),
        resource: Some("*".into()),
        verb: Some("*".into()),
        ..ResourceAttributes::default()
    };
    if may(cluster, everything).await? {
        return Ok(Vec::new());
    }
    let pairs =
        EXTENSION.iter().filter(|kind| kind.name != "ServiceMonitor").flat_map(|kind| VERBS.map(|verb| (kind, verb)));
    let asked = pairs.map(|(kind, verb)| async move {
        let attributes = ResourceAttributes {
            group: Some(kind.group().to_owned()),
            resource: Some(kind.plural.to_owned()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        };
        Ok::<_, Error>((!may(cluster, attributes).await?).then(|| named(kind, verb)))
    });
    Ok(try_join_all(asked).await?.into_iter().flatten().collect())
}

fn named(kind: &Kind, verb: &str) -> String {
    match kind.group() {
        "" => format!("{verb} {}", kind.plural),
        group => format!("{verb} {}.{group}", kind.plural),
    }
}

async fn may(cluster: &Cluster, attributes: ResourceAttributes) -> Result<bool, Error> {
    let api: Api<SelfSubjectAccessReview> = Api::all(cluster.client.clone());
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let answer = api.create(&PostParams::default(), &review).await;
    let answer = answer.map_err(|error| cluster.told("ask what these credentials may do", error))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

async fn knows_monitors(cluster: &Cluster) -> Result<bool, Error> {
    let api = DEFINITION.api(&cluster.client, None);
    let found = api.get_metadata_opt("servicemonitors.monitoring.coreos.com").await;
    Ok(found.map_err(|error| cluster.told("look for a Prometheus operator", error))?.is_some())
}
