//! The router of a cluster that serves endpoints: who reaches it, how many there are, and that it may do nothing.
//!
//! It takes its routes from the server, over the same way out and with the same token as the operator, and asks the cluster
//! for nothing: its account has no rights and no token of the cluster's is put into its pods. Invariant: a router that goes
//! has answered what it was asked, and another is there before it goes.

use super::{AUTHORITY, PROTECTED_SECRET, Sheet};
use crate::{
    names::{COMPONENT, PART_OF, PRODUCT, ROUTER, container_security, pod_security},
    settings::{Certificate, Inference, ServiceType},
};
use serde_json::{Value, json};

/// Where it listens in its pod.
const PORT: u16 = 8443;
/// For probes and metrics.
const ADMIN: u16 = 8081;
/// Not the one that callers use: what is counted is for the cluster alone.
const ADMIN_SERVICE: &str = "peregrine-router-metrics";
/// Where its certificate lies.
const CERTIFICATE: &str = "/etc/peregrine/certificate";
/// How long the cluster may take to send nobody to a router that goes.
const NOTICE_SECONDS: u32 = 5;
/// How long its last requests may take.
const DRAIN_SECONDS: u32 = 300;

/// What differs from one installation to the next.
pub(super) struct Router {
    pub(super) replicas: Value,
    pub(super) service_type: Value,
    pub(super) annotations: Value,
    /// The service's port.
    pub(super) port: Value,
    pub(super) arguments: Value,
    /// The volume with its certificate.
    pub(super) certificate: Value,
}

impl Router {
    pub(super) fn of(inference: &Inference) -> Router {
        let secure = inference.certificate != Certificate::None;
        let certificate = match &inference.certificate {
            Certificate::None => no_certificate(),
            Certificate::Secret(name) => secret(&json!(name), ["cert.pem", "key.pem"]),
            Certificate::Protected => secret(&json!(PROTECTED_SECRET), ["sslCertPemFile", "sslKeyPemFile"]),
        };
        Router {
            replicas: json!(inference.routers),
            service_type: json!(match inference.service {
                ServiceType::LoadBalancer => "LoadBalancer",
                ServiceType::NodePort => "NodePort",
                ServiceType::ClusterIp => "ClusterIP",
            }),
            annotations: if inference.internal { internal() } else { json!({}) },
            port: json!(if secure { 443 } else { 80 }),
            arguments: json!(arguments(secure)),
            certificate,
        }
    }
}

/// What tells the provider that a load balancer is to have an internal address.
pub(super) fn internal() -> Value {
    json!({"service.beta.kubernetes.io/azure-load-balancer-internal": "true"})
}

pub(super) fn no_certificate() -> Value {
    json!({"name": "certificate", "emptyDir": {}})
}

/// A secret's certificate and key under the names the router looks for.
pub(super) fn secret(name: &Value, keys: [&str; 2]) -> Value {
    let items = [(keys[0], "cert.pem"), (keys[1], "key.pem")].map(|(key, path)| json!({"key": key, "path": path}));
    json!({"name": "certificate", "secret": {"secretName": name, "defaultMode": 0o440, "items": items}})
}

pub(super) fn arguments(secure: bool) -> Vec<String> {
    let (listen, admin) = (format!("0.0.0.0:{PORT}"), format!("0.0.0.0:{ADMIN}"));
    let plain = ["router", "--server", "--listen", &listen, "--admin", &admin, "--access-log", "-", "--drain-seconds"];
    let mut all: Vec<String> = plain.map(str::to_owned).to_vec();
    all.push(DRAIN_SECONDS.to_string());
    if secure {
        all.extend(["--tls-cert".to_owned(), format!("{CERTIFICATE}/cert.pem")]);
        all.extend(["--tls-key".to_owned(), format!("{CERTIFICATE}/key.pem")]);
    }
    all
}

/// Everything but what is there only with several routers.
pub(super) fn objects(sheet: &Sheet) -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": sheet.metadata(ROUTER),
            "automountServiceAccountToken": false,
        }),
        service(sheet),
        deployment(sheet),
    ]
}

/// A drain takes one router at a time.
pub(super) fn disruption_budget(sheet: &Sheet) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": sheet.metadata(ROUTER),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector()}},
    })
}

fn selector() -> Value {
    json!({PART_OF: PRODUCT, COMPONENT: "router"})
}

fn service(sheet: &Sheet) -> Value {
    let mut metadata = sheet.metadata(ROUTER);
    metadata["annotations"] = sheet.router.annotations.clone();
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {
            "type": sheet.router.service_type,
            "selector": selector(),
            "ports": [{"name": "scoring", "port": sheet.router.port, "targetPort": "scoring"}],
        },
    })
}

/// Where a Prometheus of the cluster finds what routers count.
pub(super) fn admin_service(sheet: &Sheet) -> Value {
    let mut metadata = sheet.metadata(ADMIN_SERVICE);
    metadata["labels"][COMPONENT] = json!("router");
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"clusterIP": "None", "selector": selector(), "ports": [{"name": "metrics", "port": ADMIN, "targetPort": "metrics"}]},
    })
}

pub(super) fn service_monitor(sheet: &Sheet) -> Value {
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": sheet.metadata(ROUTER),
        "spec": {"selector": {"matchLabels": selector()}, "endpoints": [{"port": "metrics", "interval": "30s"}]},
    })
}

fn deployment(sheet: &Sheet) -> Value {
    let mut metadata = sheet.metadata(ROUTER);
    metadata["labels"][COMPONENT] = json!("router");
    // The label by which tools of Azure's find it.
    let mut labels = selector();
    labels["azuremlappname"] = json!("azureml-fe");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {
            "replicas": sheet.router.replicas,
            "revisionHistoryLimit": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "selector": {"matchLabels": selector()},
            "template": {
                "metadata": {"labels": labels, "annotations": {"peregrine.dev/authority": sheet.authority_digest}},
                "spec": pod(sheet),
            },
        },
    })
}

fn pod(sheet: &Sheet) -> Value {
    json!({
        "serviceAccountName": ROUTER,
        "imagePullSecrets": sheet.pull_secrets,
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "nodeSelector": sheet.node_selector,
        "tolerations": super::tolerations(),
        "affinity": super::apart(&selector()),
        "securityContext": pod_security(),
        "terminationGracePeriodSeconds": NOTICE_SECONDS + DRAIN_SECONDS + 5,
        "containers": [container(sheet)],
        "volumes": [
            super::token_volume(sheet),
            {"name": "authority", "configMap": {"name": AUTHORITY, "optional": true}},
            sheet.router.certificate,
        ],
    })
}

fn container(sheet: &Sheet) -> Value {
    let [https, http, none] = &sheet.proxy;
    json!({
        "name": "router",
        "image": sheet.image,
        "imagePullPolicy": "IfNotPresent",
        "args": sheet.router.arguments,
        "env": [
            {"name": "PEREGRINE_SERVER_URL", "value": sheet.server},
            {"name": "PEREGRINE_SERVER_TOKEN_FILE", "value": "/etc/peregrine/server/token"},
            {"name": "PEREGRINE_HOME", "value": "/etc/peregrine/home"},
            {"name": "HTTPS_PROXY", "value": https},
            {"name": "HTTP_PROXY", "value": http},
            {"name": "NO_PROXY", "value": none},
        ],
        "ports": [{"name": "scoring", "containerPort": PORT}, {"name": "metrics", "containerPort": ADMIN}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "metrics"}, "periodSeconds": 2},
        "lifecycle": {"preStop": {"sleep": {"seconds": NOTICE_SECONDS}}},
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": container_security(),
        "volumeMounts": [
            {"name": "token", "mountPath": "/etc/peregrine/server", "readOnly": true},
            // Where the program looks for the authority of its server.
            {"name": "authority", "mountPath": "/etc/peregrine/home/keys", "readOnly": true},
            {"name": "certificate", "mountPath": CERTIFICATE, "readOnly": true},
        ],
    })
}
