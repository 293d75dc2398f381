//! The table of settings: every key of Azure's extension and our own, what it takes and what it does here.
//!
//! The reference page and the chart's schema are this table in other words.

use serde_json::{Value, json};
use strsim::osa_distance;

/// One setting.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    /// Other spellings that mean the same.
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    pub default: &'static str,
    pub effect: Effect,
    pub about: &'static str,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Truth,
    Text,
    /// Text that nobody else may see.
    Secret,
    /// One of these, in any case.
    Choice(&'static [&'static str]),
    /// `1` or `2`.
    Replicas,
    /// Names as namespaces have them, with commas.
    Names,
    /// `nodeSelector.<label>`: as many as wanted.
    Labels,
}

/// What becomes of a setting here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Used,
    /// Accepted; this is what happens instead.
    Instead(&'static str),
}

const fn key(name: &'static str, kind: Kind, default: &'static str, effect: Effect, about: &'static str) -> Key {
    Key { name, aliases: &[], kind, default, effect, about }
}

const fn also(key: Key, aliases: &'static [&'static str]) -> Key {
    Key { aliases, ..key }
}

use Effect::{Instead, Used};
use Kind::{Choice, Labels, Names, Replicas, Secret, Text, Truth};

const ADDRESSES: &str = "the parts of a job find each other by the addresses of their pods";
const NO_INGRESS: &str = "there is no ingress controller: callers reach the router itself";

/// Every setting, Azure's first.
pub const KEYS: &[Key] = &[
    key(
        "enableTraining",
        Truth,
        "False",
        Used,
        "Run jobs on this cluster. One of this and `enableInference` is required",
    ),
    key("enableInference", Truth, "False", Used, "Serve online endpoints from this cluster, through a router in it"),
    key(
        "nodeSelector.<label>",
        Labels,
        "",
        Used,
        "Labels that nodes must have for pods of the extension and for all work; an update adds and changes, it never removes",
    ),
    key("amloperator.skipResourceValidation", Truth, "False", Used, "Accept jobs that fit on no node of today"),
    key(
        "amloperator.custom_ip_interface_enabled",
        Truth,
        "False",
        Instead(ADDRESSES),
        "A network interface of your choice between the parts of a job",
    ),
    key("amloperator.custom_ip_interface", Text, "", Instead(ADDRESSES), "Its name"),
    key(
        "openshift",
        Truth,
        "False",
        Used,
        "Confine pods of jobs as OpenShift expects, unless `jobPodSecurity` says otherwise. No security context constraints are made; none are needed",
    ),
    also(
        key(
            "installVolcano",
            Truth,
            "True",
            Instead(
                "Peregrine brings no Volcano; it uses the one that is there, or holds gangs back with scheduling gates",
            ),
            "See `gangScheduler`",
        ),
        &["volcanoScheduler.enable"],
    ),
    key(
        "volcanoScheduler.schedulerConfigMap",
        Text,
        "",
        Instead("Volcano is configured where it was installed; for autoscaling set `nodeAutoscaling=True`"),
        "Volcano's own configuration",
    ),
    key(
        "installPromOp",
        Truth,
        "True",
        Instead("Peregrine brings no Prometheus; set `serviceMonitor=True` to be scraped by yours"),
        "See `serviceMonitor`",
    ),
    key(
        "reuseExistingPromOp",
        Truth,
        "False",
        Instead("Peregrine brings no Prometheus; set `serviceMonitor=True` to be scraped by yours"),
        "Older, inverse name of `installPromOp`",
    ),
    key(
        "installNvidiaDevicePlugin",
        Truth,
        "False",
        Instead("Peregrine brings no device plugin; install NVIDIA's GPU operator or its device plugin"),
        "GPUs are made known by NVIDIA's own parts",
    ),
    key(
        "installDcgmExporter",
        Truth,
        "False",
        Instead("Peregrine brings no DCGM exporter; jobs report their GPUs' use themselves"),
        "GPU metrics",
    ),
    key(
        "blobCsiDriverEnabled",
        Truth,
        "True",
        Instead("no storage driver is needed: data reaches jobs over https"),
        "Storage driver of older releases",
    ),
    key(
        "blobfuseSysctlInstall.enabled",
        Truth,
        "False",
        Instead("no storage driver is needed: data reaches jobs over https"),
        "Storage driver of older releases",
    ),
    key(
        "volumePluginDir",
        Text,
        "",
        Instead("no storage driver is needed: data reaches jobs over https"),
        "Storage driver of older releases",
    ),
    key(
        "enable_https",
        Truth,
        "True",
        Instead("there is one connection, from the operator to the server, and it is always https"),
        "Encryption between parts of the extension",
    ),
    key(
        "logAnalyticsWS",
        Truth,
        "False",
        Instead("logs stay in the cluster and on the server; nothing is sent elsewhere"),
        "Shipping logs",
    ),
    key(
        "allowInsecureConnections",
        Truth,
        "False",
        Used,
        "Answer scoring requests over plain http. Without it, the router needs a certificate",
    ),
    key(
        "inferenceRouterServiceType",
        Choice(&["loadBalancer", "nodePort", "clusterIP"]),
        "",
        Used,
        "How callers reach the router. Required with `enableInference`",
    ),
    key("internalLoadBalancerProvider", Choice(&["azure"]), "", Used, "Give the load balancer an internal address"),
    key(
        "sslSecret",
        Text,
        "",
        Used,
        "Secret in the extension's namespace with the router's certificate: `cert.pem` (the whole chain) and `key.pem`",
    ),
    key("sslCertPemFile", Secret, "", Used, "Certificate of the router, instead of `sslSecret`"),
    also(key("sslKeyPemFile", Secret, "", Used, "Its key"), &["sslCertKeyFile"]),
    key("sslCname", Text, "", Used, "Host of every scoring address. Required with a certificate, which must be for it"),
    also(
        key("inferenceRouterHA", Truth, "True", Used, "Three routers on three nodes instead of one"),
        &["inferenceLoadBalancerHA"],
    ),
    key("nginxIngress.controller", Text, "", Instead(NO_INGRESS), "Ingress controller"),
    key("nginxIngress.controllerConfig.worker-processes", Text, "", Instead(NO_INGRESS), "Ingress controller"),
    key("nginxIngress.resources.controller.limits.memory", Text, "", Instead(NO_INGRESS), "Ingress controller"),
    key("scoringFe.serviceType.internalLoadBalancer", Truth, "False", Used, "As `internalLoadBalancerProvider=azure`"),
    key("privateEndpointILB", Truth, "False", Used, "As `internalLoadBalancerProvider=azure`"),
    // Ours.
    key(
        "gangScheduler",
        Choice(&["auto", "volcano", "gates"]),
        "auto",
        Used,
        "Who starts the pods of a job all at once: Volcano, scheduling gates, or Volcano where it is there",
    ),
    key(
        "nodeAutoscaling",
        Truth,
        "False",
        Used,
        "Something adds nodes when pods wait: show it whole gangs, and accept jobs that fit on no node of today",
    ),
    key(
        "memoryReservation",
        Truth,
        "True",
        Used,
        "Keep 5 % of each node's memory free of work, so that jobs cannot take the node down",
    ),
    key(
        "jobPodSecurity",
        Choice(&["baseline", "restricted"]),
        "",
        Used,
        "Pod Security level that pods of jobs keep to; `baseline` unless `openshift`",
    ),
    key(
        "jobNamespaces",
        Names,
        "",
        Used,
        "Namespaces in which the extension may make pods, with commas. Default: every namespace that is attached",
    ),
    key(
        "imagePullSecrets",
        Names,
        "",
        Used,
        "Secrets of the extension's namespace with which its own pods pull their image, with commas. Pods of jobs use those of their target, `image_pull_secrets`",
    ),
    key("operatorReplicas", Replicas, "1", Used, "Copies of the operator, `1` or `2`; one of them leads"),
    key("serviceMonitor", Truth, "False", Used, "Make a ServiceMonitor for an existing Prometheus operator"),
    key("grafanaDashboard", Truth, "False", Used, "Make a ConfigMap with a dashboard, as Grafana's sidecar finds it"),
];

/// The key of this name, by any of its spellings.
pub fn find(name: &str) -> Option<&'static Key> {
    let is_label = name.strip_prefix("nodeSelector.").is_some_and(|label| !label.is_empty());
    KEYS.iter().find(|key| match key.kind {
        Labels => is_label,
        _ => key.name == name || key.aliases.contains(&name),
    })
}

/// The key someone may have meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let scored = KEYS.iter().map(|key| (osa_distance(&lower, &key.name.to_lowercase()), key.name));
    scored.min().filter(|(distance, _)| *distance <= 3).map(|(_, name)| name)
}

pub(super) fn default(name: &str) -> &'static str {
    find(name).map_or("", |key| key.default)
}

/// `True`, `true`, `False`, …
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

impl Key {
    /// Whether a value will do; otherwise what is wrong and what to write.
    pub(super) fn accepts(&self, value: &str) -> Result<(), (String, String)> {
        let said = |fix: String| Err((format!("`{value}` will not do"), fix));
        match self.kind {
            Truth if truth(value).is_none() => said("write `True` or `False`".to_owned()),
            Choice(all) if !all.iter().any(|one| one.eq_ignore_ascii_case(value)) => {
                said(format!("write one of `{}`", all.join("`, `")))
            }
            Replicas if !matches!(value, "1" | "2") => said("write `1` or `2`".to_owned()),
            Names if !value.split(',').map(str::trim).all(is_namespace) => {
                said("write names with commas: `team-a,team-b`".to_owned())
            }
            Secret if value.is_empty() => Err(("is empty".to_owned(), "name a file that holds it".to_owned())),
            _ => Ok(()),
        }
    }

    /// What the chart's schema says of it.
    pub fn schema(&self) -> Value {
        let mut schema = match self.kind {
            Truth => json!({"type": ["boolean", "string"], "pattern": "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee])$"}),
            Choice(all) => {
                let any_case = |word: &&str| word.chars().map(both_cases).collect::<String>();
                json!({"type": "string", "pattern": format!("^({})$", all.iter().map(any_case).collect::<Vec<_>>().join("|"))})
            }
            Replicas => json!({"enum": [1, 2, "1", "2"]}),
            Names => json!({"type": "string", "pattern": "^[a-z0-9, -]*$"}),
            Text | Secret | Labels => json!({"type": ["string", "number", "boolean"]}),
        };
        schema["description"] = json!(self.about);
        schema
    }
}

fn both_cases(letter: char) -> String {
    match letter.is_ascii_alphabetic() {
        true => format!("[{}{}]", letter.to_ascii_uppercase(), letter.to_ascii_lowercase()),
        false => letter.to_string(),
    }
}

/// A DNS label.
pub fn is_namespace(name: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}
