//! Settings of the extension, under the names Azure's has for them.
//!
//! Read raw as `key=value`, compared with one table ([`keys`]), then checked whole: all mistakes at once, before anything is
//! applied. What Azure's extension needs and ours does not is accepted with a notice of what happens instead, so that lines
//! people have keep working. Invariants: a [`Settings`] is already true; a secret never stands in a message.

pub mod keys;

use domain::spec::Mistake;
use keys::{Effect, Key, Kind};
use serde_json::Value;
use std::collections::BTreeMap;

/// Settings as people typed them.
pub type Raw = BTreeMap<String, String>;

/// Settings as code uses them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    pub training: bool,
    /// Labels of nodes that pods of ours and all work may run on.
    pub node_selector: BTreeMap<String, String>,
    /// Jobs that fit on no node of today are accepted.
    pub skip_resource_validation: bool,
    /// Something adds nodes when pods wait: gangs are shown to it whole.
    pub node_autoscaling: bool,
    pub gangs: Gangs,
    /// The cluster gives pods the ids they run as.
    pub openshift: bool,
    /// A share of each node's memory stays free.
    pub memory_reservation: bool,
    /// Pods of jobs are confined as Pod Security `restricted` says, not `baseline`.
    pub jobs_restricted: bool,
    /// Copies of the operator; one of them leads.
    pub replicas: u32,
    /// Secrets with which our own pods pull their image.
    pub image_pull_secrets: Vec<String>,
    /// Where jobs may run; empty: in every namespace that is attached.
    pub job_namespaces: Vec<String>,
    pub service_monitor: bool,
    pub grafana_dashboard: bool,
    /// Endpoints are served from here, by a router of its own.
    pub inference: Option<Inference>,
}

/// How callers reach the cluster's router.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inference {
    pub service: ServiceType,
    /// The load balancer is given an address inside the provider's network.
    pub internal: bool,
    /// Routers; with more than one, no two on a node.
    pub routers: u32,
    pub certificate: Certificate,
    /// Host of every scoring address; the address of the service itself when empty.
    pub host: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServiceType {
    #[default]
    LoadBalancer,
    NodePort,
    ClusterIp,
}

/// Where the router's certificate comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Certificate {
    /// Callers come without TLS.
    #[default]
    None,
    /// A secret of the extension's namespace, with `cert.pem` and `key.pem`.
    Secret(String),
    /// Protected settings.
    Protected,
}

impl Inference {
    pub fn scheme(&self) -> &'static str {
        if self.certificate == Certificate::None { "http" } else { "https" }
    }
}

/// Who sees to it that a gang starts whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Gangs {
    /// Volcano where it is installed, else scheduling gates.
    #[default]
    Auto,
    Volcano,
    Gates,
}

/// Settings that make sense, and what is worth saying about them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    pub settings: Settings,
    pub notices: Vec<String>,
}

/// Splits `key=value`. Keys may hold anything but `=`.
pub fn pair(text: &str) -> Result<(String, String), Mistake> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        // The text itself may be a secret that was meant for another place.
        _ => Err(Mistake::new("", "a setting is written `key=value`", "write `--config enableTraining=True`")),
    }
}

/// Settings out of a map, as a file or the operator's own environment has them: values may be of any plain kind.
pub fn from_json(tree: &Value) -> Result<Raw, Mistake> {
    let bad = |key: &str| Mistake::new(key, "a setting is a key and a plain value", "write `enableTraining: true`");
    let entries = tree.as_object().ok_or_else(|| bad(""))?;
    let text = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        Value::Bool(_) | Value::Number(_) => Ok((key.clone(), value.to_string())),
        _ => Err(bad(key)),
    };
    entries.iter().map(text).collect()
}

/// What an update leaves: plain settings are merged into those there are. (Protected ones are replaced as a whole.)
pub fn merged(before: &Raw, given: &Raw) -> Raw {
    let canonical = |(key, value): (&String, &String)| (name_of(key).to_owned(), value.clone());
    before.iter().chain(given).map(canonical).collect()
}

/// Checks plain and protected settings together.
pub fn check(plain: &Raw, protected: &Raw) -> Result<Checked, Vec<Mistake>> {
    let mut reading = Reading::of(plain, protected);
    reading.complete();
    reading.whole()
}

/// Plain settings of an extension that is installed: they were complete together with protected ones, which nobody shows.
pub fn installed(plain: &Raw) -> Result<Settings, Vec<Mistake>> {
    Ok(Reading::of(plain, &Raw::new()).whole()?.settings)
}

/// Changes from one set to another that must not be made, as people would name them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unsafe {
    /// While anything runs.
    pub running: Vec<&'static str>,
    /// While endpoints are served: callers would lose the address they know.
    pub serving: Vec<&'static str>,
}

/// What must not change under jobs or endpoints.
pub fn unsafe_while_running(before: &Settings, after: &Settings) -> Unsafe {
    let changed = |all: &[(&'static str, bool)]| all.iter().filter(|(_, so)| *so).map(|(name, _)| *name).collect();
    let running = changed(&[
        ("enableTraining", before.training && !after.training),
        ("nodeSelector", before.node_selector != after.node_selector),
        ("enableInference", before.inference.is_some() && after.inference.is_none()),
    ]);
    let (Some(was), Some(is)) = (&before.inference, &after.inference) else {
        return Unsafe { running, serving: Vec::new() };
    };
    let serving = changed(&[
        ("allowInsecureConnections", was.scheme() != is.scheme()),
        ("inferenceRouterServiceType", was.service != is.service),
        ("internalLoadBalancerProvider", was.internal != is.internal),
    ]);
    Unsafe { running, serving }
}

/// A key under the name we show, whichever of its names was typed.
fn name_of(name: &str) -> &str {
    keys::find(name).filter(|key| key.kind != Kind::Labels).map_or(name, |key| key.name)
}

/// Values by canonical name, and what was noticed on the way.
#[derive(Default)]
struct Reading {
    values: BTreeMap<&'static str, String>,
    node_selector: BTreeMap<String, String>,
    notices: Vec<String>,
    mistakes: Vec<Mistake>,
}

impl Reading {
    fn of(plain: &Raw, protected: &Raw) -> Reading {
        let mut reading = Reading::default();
        for (given, is_protected) in [(plain, false), (protected, true)] {
            for (name, value) in given {
                reading.take(name, value, is_protected);
            }
        }
        reading
    }

    fn take(&mut self, name: &str, value: &str, is_protected: bool) {
        let Some(key) = keys::find(name) else {
            let fix = keys::nearest(name).map_or("`peregrine extension settings` lists them".to_owned(), |near| {
                format!("did you mean `{near}`?")
            });
            return self.mistakes.push(Mistake::new(name, "is not a setting", fix));
        };
        if key.kind == Kind::Secret && !is_protected {
            let fix = format!("give it with `--config-protected {}=…`", key.name);
            return self.mistakes.push(Mistake::new(name, "is a secret and would be shown to everybody", fix));
        }
        if let Err((message, fix)) = key.accepts(value) {
            return self.mistakes.push(Mistake::new(name, message, fix));
        }
        if let Some(label) = name.strip_prefix("nodeSelector.") {
            self.node_selector.insert(label.to_owned(), value.to_owned());
            return;
        }
        if self.values.insert(key.name, value.to_owned()).is_some_and(|other| other != value) {
            let message = format!("is another name of `{}`, which has a different value", key.name);
            return self.mistakes.push(Mistake::new(name, message, "give it once"));
        }
        self.notice(key, value);
    }

    fn notice(&mut self, key: &Key, value: &str) {
        let text = match key.effect {
            Effect::Used => return,
            Effect::Instead(text) => text,
        };
        // Asking for what is so anyway needs no word.
        if !key.default.eq_ignore_ascii_case(value) {
            self.notices.push(format!("`{}`: {text}", key.name));
        }
    }

    /// Notes what is missing, and what does not go together.
    fn complete(&mut self) {
        let mut told = |key: &str, message: &str, fix: &str| self.mistakes.push(Mistake::new(key, message, fix));
        let truth = |name: &str| keys::truth(self.values.get(name).map_or("", String::as_str)) == Some(true);
        let given = |name: &str| self.values.get(name).is_some_and(|value| !value.is_empty());
        if !truth("enableInference") && !truth("enableTraining") {
            let fix = "add `--config enableTraining=True`, or `--config enableInference=True` with its own settings";
            told("enableTraining", "nothing is enabled", fix);
        }
        if given("sslSecret") && given("sslCertPemFile") {
            told("sslSecret", "goes with no `sslCertPemFile`: a certificate has one source", "give one of the two");
        }
        if given("sslCertPemFile") != given("sslKeyPemFile") {
            told("sslCertPemFile", "a certificate and its key go together", "give both, with `--config-protected`");
        }
        if truth("enableInference") {
            let certified = given("sslSecret") || given("sslCertPemFile");
            if !given("inferenceRouterServiceType") {
                let fix = "add `--config inferenceRouterServiceType=` with `loadBalancer`, `nodePort` or `clusterIP`";
                told("inferenceRouterServiceType", "is needed with `enableInference`", fix);
            }
            let secure = !truth("allowInsecureConnections");
            if secure && !certified {
                let fix = "add `--config sslSecret=NAME sslCname=HOST`, or `--config allowInsecureConnections=True` for plain http";
                told("sslSecret", "the router has no certificate", fix);
            }
            if secure && certified && !given("sslCname") {
                told(
                    "sslCname",
                    "is needed with a certificate",
                    "name the host that callers use: `sslCname=serve.example.org`",
                );
            }
        }
    }

    fn whole(self) -> Result<Checked, Vec<Mistake>> {
        if !self.mistakes.is_empty() {
            return Err(self.mistakes);
        }
        Ok(Checked { settings: self.settings(), notices: self.notices })
    }

    fn inference(&self) -> Inference {
        let value = |name: &str| self.values.get(name).map_or_else(|| keys::default(name), String::as_str);
        let truth = |name: &str| keys::truth(value(name)).unwrap_or_default();
        Inference {
            service: match value("inferenceRouterServiceType").to_lowercase().as_str() {
                "nodeport" => ServiceType::NodePort,
                "clusterip" => ServiceType::ClusterIp,
                _ => ServiceType::LoadBalancer,
            },
            internal: !value("internalLoadBalancerProvider").is_empty()
                || truth("scoringFe.serviceType.internalLoadBalancer")
                || truth("privateEndpointILB"),
            routers: if truth("inferenceRouterHA") { 3 } else { 1 },
            certificate: match value("sslSecret") {
                _ if truth("allowInsecureConnections") => Certificate::None,
                "" => Certificate::Protected,
                name => Certificate::Secret(name.to_owned()),
            },
            host: value("sslCname").to_owned(),
        }
    }

    fn settings(&self) -> Settings {
        let value = |name: &str| self.values.get(name).map_or_else(|| keys::default(name), String::as_str);
        let truth = |name: &str| keys::truth(value(name)).unwrap_or_default();
        let names = |name: &str| {
            let all = value(name).split(',').map(str::trim).filter(|one| !one.is_empty());
            all.map(str::to_owned).collect()
        };
        Settings {
            training: truth("enableTraining"),
            node_selector: self.node_selector.clone(),
            skip_resource_validation: truth("amloperator.skipResourceValidation"),
            node_autoscaling: truth("nodeAutoscaling"),
            gangs: match value("gangScheduler").to_lowercase().as_str() {
                "volcano" => Gangs::Volcano,
                "gates" => Gangs::Gates,
                _ => Gangs::Auto,
            },
            openshift: truth("openshift"),
            memory_reservation: truth("memoryReservation") && truth("enableTraining"),
            jobs_restricted: match self.values.get("jobPodSecurity") {
                Some(level) => level.eq_ignore_ascii_case("restricted"),
                // What OpenShift lets ordinary pods do is what `restricted` lets them do.
                None => truth("openshift"),
            },
            replicas: value("operatorReplicas").parse().unwrap_or(1),
            image_pull_secrets: names("imagePullSecrets"),
            job_namespaces: names("jobNamespaces"),
            service_monitor: truth("serviceMonitor"),
            grafana_dashboard: truth("grafanaDashboard"),
            inference: truth("enableInference").then(|| self.inference()),
        }
    }
}

#[cfg(test)]
mod tests;
