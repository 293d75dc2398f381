//! What the extension consists of: every object of it, made by pure functions from the settings.
//!
//! Each object is written once, with a [`Sheet`] of values that vary. `install` and `extension manifests` fill in what was
//! asked for; the Helm chart is the same objects with the chart's expressions in those places ([`chart`]). Invariants: the same
//! input gives the same objects in the same order, and an object stands after what it needs.

pub mod chart;
mod dashboard;
mod roles;
mod router;

use crate::{
    instance_type,
    names::{COMPONENT, OPERATOR, PART_OF, PRODUCT, container_security, pod_security, references},
    settings::{self, Raw, Settings, merged},
};
use ring::digest;
use router::Router;
use serde_json::{Value, json};

/// Secret with the token that the operator shows the server.
pub const TOKEN_SECRET: &str = "peregrine-server";
/// Secret with protected settings.
pub const PROTECTED_SECRET: &str = "peregrine-protected";
/// ConfigMap with the authority that signed the server's certificate.
pub const AUTHORITY: &str = "peregrine-authority";
const PORT: u16 = 8080;

/// One installation of the extension.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Install {
    /// Under which name the server knows the cluster.
    pub cluster: String,
    pub namespace: String,
    pub image: String,
    /// The server's address as pods reach it.
    pub server: String,
    /// The authority of the server's certificate, in PEM; `None` where the system's are enough.
    pub authority: Option<String>,
    /// `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`; empty for none.
    pub proxy: [String; 3],
    /// Plain settings as they were typed: the operator reads them again.
    pub plain: Raw,
    pub settings: Settings,
    /// What the operator shows the server; `None` leaves the secret as it is.
    pub token: Option<String>,
    /// Protected settings; `None` leaves them as they are.
    pub protected: Option<Raw>,
}

/// The parts of objects that differ from one installation to the next.
struct Sheet {
    namespace: Value,
    cluster: Value,
    image: Value,
    server: Value,
    proxy: [Value; 3],
    settings: Value,
    node_selector: Value,
    pull_secrets: Value,
    replicas: Value,
    token: Value,
    token_secret: Value,
    authority: Value,
    /// Changes with the authority, so that pods start anew and read it.
    authority_digest: Value,
    router: Router,
}

/// Every object, in the order they are to be applied in.
pub fn objects(install: &Install) -> Vec<Value> {
    let sheet = Sheet::of(install);
    let settings = &install.settings;
    let mut all = vec![namespace(&sheet), definition()];
    all.extend(roles::cluster(&sheet));
    match settings.job_namespaces.as_slice() {
        [] => all.push(roles::jobs_everywhere(&sheet)),
        some => all.extend(some.iter().map(|namespace| roles::jobs_in(&sheet, &json!(namespace)))),
    }
    let optional = [
        (install.authority.is_some(), authority(&sheet)),
        (install.token.is_some(), token(&sheet)),
        (settings.replicas > 1, disruption_budget(&sheet)),
        (settings.service_monitor, service(&sheet)),
        (settings.service_monitor, service_monitor(&sheet)),
        (settings.grafana_dashboard, dashboard::config_map(&sheet)),
    ];
    all.extend(optional.into_iter().filter(|(wanted, _)| *wanted).map(|(_, object)| object));
    if let Some(inference) = &settings.inference {
        if settings.service_monitor {
            all.extend([router::admin_service(&sheet), router::service_monitor(&sheet)]);
        }
        all.extend(router::objects(&sheet));
        all.extend((inference.routers > 1).then(|| router::disruption_budget(&sheet)));
    }
    all.extend(install.protected.as_ref().filter(|raw| !raw.is_empty()).map(|raw| protected(&sheet, raw)));
    all.push(deployment(&sheet));
    all
}

/// What settings of before had made and these do not. Of settings that cannot be read any more nobody knows.
pub fn obsolete(before: &Raw, wanted: &Install) -> Vec<Value> {
    let Ok(settings) = settings::installed(before) else { return Vec::new() };
    let earlier = Install { settings, plain: before.clone(), protected: None, ..wanted.clone() };
    let key = |object: &Value| ["/kind", "/metadata/namespace", "/metadata/name"].map(|at| object.pointer(at).cloned());
    let kept: Vec<_> = objects(wanted).iter().map(key).collect();
    objects(&earlier).into_iter().filter(|object| !kept.contains(&key(object))).collect()
}

/// The definition of instance types, labelled as ours.
pub fn definition() -> Value {
    let mut definition = instance_type::definition();
    definition["metadata"]["labels"] = json!({ PART_OF: PRODUCT });
    definition
}

impl Sheet {
    fn of(install: &Install) -> Sheet {
        let authority = install.authority.as_deref().unwrap_or_default();
        Sheet {
            namespace: json!(install.namespace),
            cluster: json!(install.cluster),
            image: json!(install.image),
            server: json!(install.server),
            proxy: install.proxy.each_ref().map(|value| json!(value)),
            settings: json!(json!(install.plain).to_string()),
            node_selector: json!(install.settings.node_selector),
            pull_secrets: references(&install.settings.image_pull_secrets),
            replicas: json!(install.settings.replicas),
            token: json!(install.token.as_deref().unwrap_or_default()),
            token_secret: json!(TOKEN_SECRET),
            authority: json!(authority),
            authority_digest: json!(hex(digest::digest(&digest::SHA256, authority.as_bytes()).as_ref())),
            router: Router::of(&install.settings.inference.clone().unwrap_or_default()),
        }
    }

    /// What every object of ours says of itself.
    fn metadata(&self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace, "labels": {PART_OF: PRODUCT}})
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn namespace(sheet: &Sheet) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": sheet.namespace,
            "labels": {PART_OF: PRODUCT, "pod-security.kubernetes.io/enforce": "restricted"},
        },
    })
}

fn authority(sheet: &Sheet) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": sheet.metadata(AUTHORITY),
        "data": {"authority.pem": sheet.authority},
    })
}

fn token(sheet: &Sheet) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": sheet.metadata(TOKEN_SECRET), "type": "Opaque",
        "stringData": {"token": sheet.token},
    })
}

fn protected(sheet: &Sheet, settings: &Raw) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": sheet.metadata(PROTECTED_SECRET), "type": "Opaque",
        "stringData": merged(&Raw::new(), settings),
    })
}

/// One copy may always be taken away; with a single copy there is nothing to keep, and a drain must not wait for it.
fn disruption_budget(sheet: &Sheet) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": sheet.metadata(OPERATOR),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector()}},
    })
}

fn service(sheet: &Sheet) -> Value {
    let mut metadata = sheet.metadata(OPERATOR);
    metadata["labels"][COMPONENT] = json!("operator");
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"clusterIP": "None", "selector": selector(), "ports": [{"name": "metrics", "port": PORT, "targetPort": "metrics"}]},
    })
}

fn service_monitor(sheet: &Sheet) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": sheet.metadata(OPERATOR),
        "spec": {"selector": {"matchLabels": selector()}, "endpoints": [{"port": "metrics", "interval": "30s"}]},
    })
}

/// How the operator's pods are told from others.
fn selector() -> Value {
    json!({PART_OF: PRODUCT, COMPONENT: "operator"})
}

fn deployment(sheet: &Sheet) -> Value {
    let mut metadata = sheet.metadata(OPERATOR);
    metadata["labels"][COMPONENT] = json!("operator");
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": sheet.replicas,
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": selector()},
            "template": {
                "metadata": {"labels": selector(), "annotations": {"peregrine.dev/authority": sheet.authority_digest}},
                "spec": pod(sheet),
            },
        },
    })
}

fn tolerations() -> Value {
    let one = |key: &str| json!({"key": key, "operator": "Equal", "value": "true"});
    json!([one("ml.azure.com/amlarc"), one("ml.azure.com/amlarc-system")])
}

/// Pods of one kind on nodes of their own, where there are enough.
fn apart(selector: &Value) -> Value {
    json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": selector}},
    }]}})
}

fn token_volume(sheet: &Sheet) -> Value {
    json!({"name": "token", "secret": {"secretName": sheet.token_secret, "defaultMode": 0o440}})
}

fn pod(sheet: &Sheet) -> Value {
    json!({
        "serviceAccountName": OPERATOR,
        "imagePullSecrets": sheet.pull_secrets,
        "nodeSelector": sheet.node_selector,
        "tolerations": tolerations(),
        "affinity": apart(&selector()),
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": 15,
        "containers": [container(sheet)],
        "volumes": [
            token_volume(sheet),
            {"name": "authority", "configMap": {"name": AUTHORITY, "optional": true}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "16Mi"}},
        ],
    })
}

fn container(sheet: &Sheet) -> Value {
    let probe =
        |path: &str, period: u32| json!({"httpGet": {"path": path, "port": "metrics"}, "periodSeconds": period});
    let own = |field: &str| json!({"fieldRef": {"fieldPath": field}});
    let [https, http, none] = &sheet.proxy;
    json!({
        "name": "operator",
        "image": sheet.image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["operator"],
        "env": [
            {"name": "PEREGRINE_SERVER", "value": sheet.server},
            {"name": "PEREGRINE_CLUSTER", "value": sheet.cluster},
            {"name": "PEREGRINE_IMAGE", "value": sheet.image},
            {"name": "PEREGRINE_SETTINGS", "value": sheet.settings},
            {"name": "PEREGRINE_TOKEN_FILE", "value": "/etc/peregrine/server/token"},
            {"name": "PEREGRINE_CA_FILE", "value": "/etc/peregrine/authority/authority.pem"},
            {"name": "PEREGRINE_HOME", "value": "/tmp/peregrine"},
            {"name": "PEREGRINE_NAMESPACE", "valueFrom": own("metadata.namespace")},
            {"name": "POD_NAME", "valueFrom": own("metadata.name")},
            {"name": "HTTPS_PROXY", "value": https},
            {"name": "HTTP_PROXY", "value": http},
            {"name": "NO_PROXY", "value": none},
        ],
        "ports": [{"name": "metrics", "containerPort": PORT}],
        "livenessProbe": probe("/healthz", 20),
        "readinessProbe": probe("/readyz", 5),
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": "token", "mountPath": "/etc/peregrine/server", "readOnly": true},
            {"name": "authority", "mountPath": "/etc/peregrine/authority", "readOnly": true},
            {"name": "scratch", "mountPath": "/tmp"},
        ],
    })
}

#[cfg(test)]
mod tests;
