//! The health check: what was seen of a cluster, judged by code.
//!
//! Codes with an `E` are those of Azure's extension and mean the same here; those with a `P` are ours. Below 45000 they stop
//! an operation, above they only tell. Invariant: judging does no IO; every failure says what to do.

use crate::settings::{Certificate, ServiceType, Settings};
use serde::Serialize;

/// The oldest Kubernetes whose pods can be held back by gates and whose definitions can check amounts.
pub const OLDEST: (u32, u32) = (1, 30);

/// What was seen of a cluster. Gathered by `install::look`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// What the cluster is known by; empty where it could not be read.
    pub uid: String,
    /// Minor version and the text it came from.
    pub kubernetes: (u32, u32),
    pub namespace: Place,
    /// Nodes that are ready, and how many of them have the labels of `nodeSelector`.
    pub nodes: (usize, usize),
    pub definition: Definition,
    /// Namespace of another installation.
    pub elsewhere: Option<String>,
    /// What the caller may not do, as `create clusterroles.rbac.authorization.k8s.io`.
    pub denied: Vec<String>,
    /// Something makes ServiceMonitors known.
    pub prometheus: bool,
    pub operator: Option<OperatorSeen>,
    /// Routers that are ready, and wanted.
    pub router: Option<(i32, i32)>,
    /// Whether the cluster has given the router's load balancer an address; `None` where there is no such service.
    pub balanced: Option<bool>,
    pub certificate: CertificateSeen,
}

/// What the router answers callers with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CertificateSeen {
    /// It is not there, or not all of it.
    #[default]
    Absent,
    /// It could not be looked at from here.
    Unseen,
    Good,
    /// Why callers would not take it.
    Bad(String),
}

/// A namespace's life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    #[default]
    Absent,
    Active,
    Terminating,
}

/// Whose definition of instance types it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Definition {
    #[default]
    Absent,
    Ours,
    /// By whom, as far as it says.
    Foreign(String),
}

/// The operator's deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorSeen {
    pub wanted: i32,
    pub ready: i32,
    pub image: String,
    pub troubles: Vec<String>,
}

/// What is known of the server's side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSeen {
    /// Its address as pods would use it.
    pub url: String,
    /// What it takes the cluster of this name for; empty where it does not know.
    pub uid: String,
    /// Seconds since it heard from the operator; `None` when it never did, or could not be asked.
    pub heard: Option<u64>,
    /// Why it could not be asked.
    pub silent: Option<String>,
}

/// When a check is made; also names its report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Install,
    Upgrade,
    Delete,
    Test,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Passed,
    Failed,
    /// Has no meaning for this installation.
    Skipped,
}

/// One judgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Health {
    pub code: &'static str,
    pub name: &'static str,
    pub state: State,
    /// What was seen, or why it was not looked at.
    pub detail: String,
    /// What to do; empty unless it failed.
    pub next: String,
}

impl Stage {
    /// The report's key in the config map.
    pub fn report(self) -> &'static str {
        match self {
            Stage::Install => "reports-pre-install",
            Stage::Upgrade => "reports-pre-upgrade",
            Stage::Delete => "reports-pre-delete",
            Stage::Test => "reports-test",
        }
    }
}

impl Health {
    /// Whether an operation must not go on.
    pub fn stops(&self) -> bool {
        self.state == State::Failed && self.code.get(1..).and_then(|n| n.parse().ok()).is_some_and(|n: u32| n < 45000)
    }
}

/// Judges everything, in the order of the codes.
pub fn judge(seen: &Seen, server: &ServerSeen, settings: &Settings, stage: Stage) -> Vec<Health> {
    if !seen.denied.is_empty() {
        return vec![denied(seen)];
    }
    let permission = match stage {
        Stage::Test => skipped("P40101", "PERMISSION_MISSING", "asked before something is changed"),
        _ => denied(seen),
    };
    let mut all =
        vec![too_old(seen), permission, terminating(seen), definition(seen), elsewhere(seen), nodes(seen, settings)];
    all.extend(INFERENCE.iter().map(|(code, name)| skipped(code, name, "cannot be so here: the router is our own")));
    all.extend([balancer(seen, settings, stage, false), balancer(seen, settings, stage, true)]);
    all.extend([router(seen, settings, stage), certificate(seen, settings)]);
    all.extend([prometheus(seen, settings), loopback(server)]);
    if stage != Stage::Install {
        all.extend([operator(seen), connection(seen, server)]);
    }
    all.sort_by_key(|health| (health.code.get(1..), health.code));
    all
}

/// What only Azure's way of serving endpoints can fail.
const INFERENCE: &[(&str, &str)] = &[
    ("E40005", "AZUREML_FE_SCALE_UP_TIMEOUT"),
    ("E40006", "AZUREML_FE_UPDATE_REPLICAS_FAILED"),
    ("E45004", "AZUREML_FE_ROLE_CONFLICT"),
    ("E45005", "AZUREML_FE_DEPLOYMENT_CONFLICT"),
];

fn passed(code: &'static str, name: &'static str, detail: impl Into<String>) -> Health {
    Health { code, name, state: State::Passed, detail: detail.into(), next: String::new() }
}

fn skipped(code: &'static str, name: &'static str, detail: &str) -> Health {
    Health { state: State::Skipped, ..passed(code, name, detail) }
}

fn failed(code: &'static str, name: &'static str, detail: impl Into<String>, next: &str) -> Health {
    Health { state: State::Failed, next: next.to_owned(), ..passed(code, name, detail) }
}

/// The check itself could not be made.
pub fn unknown(detail: impl Into<String>) -> Health {
    failed("E40000", "UNKNOWN_ERROR", detail, "mend what is named and check again")
}

fn too_old(seen: &Seen) -> Health {
    let (code, name) = ("P40100", "KUBERNETES_TOO_OLD");
    let ((major, minor), (oldest, at_least)) = (seen.kubernetes, OLDEST);
    let detail = format!("Kubernetes {major}.{minor}");
    match (major, minor) >= OLDEST {
        true => passed(code, name, detail),
        false => failed(code, name, detail, &format!("upgrade the cluster to {oldest}.{at_least} or later")),
    }
}

fn denied(seen: &Seen) -> Health {
    let (code, name) = ("P40101", "PERMISSION_MISSING");
    match seen.denied.as_slice() {
        [] => passed(code, name, "your credentials may make everything the extension consists of"),
        some => {
            let detail = format!("your credentials may not {}", some.join(", "));
            failed(
                code,
                name,
                detail,
                "use credentials with the role `cluster-admin`, or have an administrator apply `peregrine extension manifests`",
            )
        }
    }
}

fn terminating(seen: &Seen) -> Health {
    let (code, name) = ("P40102", "NAMESPACE_TERMINATING");
    match seen.namespace {
        Place::Terminating => failed(
            code,
            name,
            "the namespace is being removed",
            "wait until it is gone: `kubectl get namespaces --watch`",
        ),
        Place::Active => passed(code, name, "the namespace is there"),
        Place::Absent => passed(code, name, "the namespace will be made"),
    }
}

fn definition(seen: &Seen) -> Health {
    let (code, name) = ("P40103", "DEFINITION_CONFLICT");
    match &seen.definition {
        Definition::Absent => passed(code, name, "instance types will be defined"),
        Definition::Ours => passed(code, name, "instance types are defined by Peregrine"),
        Definition::Foreign(by) => failed(
            code,
            name,
            format!("instance types are defined already, by {by}"),
            "remove the other extension, or take its definition over with `--adopt` (instance types stay as they are)",
        ),
    }
}

fn elsewhere(seen: &Seen) -> Health {
    let (code, name) = ("P40104", "INSTALLED_ELSEWHERE");
    match &seen.elsewhere {
        None => passed(code, name, "there is one extension in the cluster at most"),
        Some(namespace) => failed(
            code,
            name,
            format!("the extension is installed in namespace `{namespace}` already"),
            "a cluster has one: upgrade it there with `--namespace`, or uninstall it first",
        ),
    }
}

fn nodes(seen: &Seen, settings: &Settings) -> Health {
    let (code, name) = ("E40002", "INSUFFICIENT_NODE");
    let routers = settings.inference.as_ref().map_or(0, |inference| inference.routers as usize);
    let detail = format!("{} nodes are ready, {} of them match `nodeSelector`", seen.nodes.0, seen.nodes.1);
    match seen.nodes.1 {
        1.. if seen.nodes.1 < routers => {
            let detail = format!("{detail}; {routers} routers want a node each");
            failed(code, name, detail, "add nodes, or set `inferenceRouterHA=False`")
        }
        0 => failed(code, name, detail, "label nodes, mend `nodeSelector`, or add nodes"),
        _ => passed(code, name, detail),
    }
}

/// The routers, once they were installed.
fn router(seen: &Seen, settings: &Settings, stage: Stage) -> Health {
    let (code, name) = ("E40004", "AZUREML_FE_DEPLOYMENT_NOT_FOUND");
    match (&settings.inference, &seen.router) {
        (None, _) => skipped(code, name, "endpoints are not served from this cluster"),
        (Some(_), _) if stage != Stage::Test => skipped(code, name, "looked at when it is installed"),
        (Some(_), None) => {
            failed(code, name, "the router's deployment is not there", "run `peregrine extension upgrade`")
        }
        (Some(_), Some((ready, wanted))) if ready < wanted => {
            let next =
                "`kubectl describe pods -l app.kubernetes.io/component=router` in the extension's namespace tells more";
            failed(code, name, format!("{ready} of {wanted} routers are ready"), next)
        }
        (Some(_), Some((ready, wanted))) => passed(code, name, format!("{ready} of {wanted} routers are ready")),
    }
}

/// Whether callers are given an address by a load balancer, or by an internal one, where the settings ask for that.
fn balancer(seen: &Seen, settings: &Settings, stage: Stage, internal: bool) -> Health {
    let (code, name, kind) = match internal {
        false => ("E40001", "LOAD_BALANCER_NOT_SUPPORT", "load balancer"),
        true => ("E40003", "INTERNAL_LOAD_BALANCER_NOT_SUPPORT", "internal load balancer"),
    };
    let Some(inference) = &settings.inference else {
        return skipped(code, name, "endpoints are not served from this cluster");
    };
    if inference.service != ServiceType::LoadBalancer || inference.internal != internal {
        return skipped(code, name, &format!("no {kind} is asked for"));
    }
    match seen.balanced {
        _ if stage != Stage::Test => skipped(code, name, "looked at when it is installed"),
        None => skipped(code, name, "the router's service is not there"),
        Some(true) => passed(code, name, format!("the {kind} has an address")),
        Some(false) => failed(
            code,
            name,
            format!("the cluster has given the router's {kind} no address, so `scoring_uri` stays empty"),
            "`kubectl describe service peregrine-router` in the extension's namespace says why; where nothing gives out addresses, \
             install something that does, such as MetalLB, or set `inferenceRouterServiceType=nodePort`",
        ),
    }
}

fn certificate(seen: &Seen, settings: &Settings) -> Health {
    let (code, name) = ("E40007", "INVALID_SSL_SETTING");
    let Some(inference) = &settings.inference else {
        return skipped(code, name, "endpoints are not served from this cluster");
    };
    let whose = match &inference.certificate {
        Certificate::None => {
            return passed(code, name, "callers come without TLS, as `allowInsecureConnections` says");
        }
        Certificate::Protected => "the protected settings".to_owned(),
        Certificate::Secret(secret) => format!("secret `{secret}`"),
    };
    let host = &inference.host;
    match (&inference.certificate, &seen.certificate) {
        (Certificate::Secret(secret), CertificateSeen::Absent) => {
            let next = "make it: `kubectl create secret generic NAME --from-file=cert.pem --from-file=key.pem` in that namespace";
            failed(code, name, format!("secret `{secret}` with `cert.pem` and `key.pem` is not in the namespace"), next)
        }
        (_, CertificateSeen::Absent | CertificateSeen::Unseen) => {
            passed(code, name, "the certificate is a protected setting")
        }
        (_, CertificateSeen::Good) => {
            passed(code, name, format!("a certificate for `{host}` and its key are in {whose}"))
        }
        (_, CertificateSeen::Bad(why)) => {
            let next = "give a certificate in PEM, with its chain and its own key, that names the host of `sslCname`";
            failed(code, name, format!("{whose}: {why}"), next)
        }
    }
}

fn prometheus(seen: &Seen, settings: &Settings) -> Health {
    let (code, name) = ("E45002", "PROMETHEUS_CONFLICT");
    match settings.service_monitor && !seen.prometheus {
        true => failed(
            code,
            name,
            "`serviceMonitor` is on and the cluster knows no ServiceMonitor",
            "install a Prometheus operator, or leave `serviceMonitor` out",
        ),
        false => passed(code, name, "the extension brings no Prometheus"),
    }
}

fn loopback(server: &ServerSeen) -> Health {
    let (code, name) = ("P45100", "SERVER_IS_LOOPBACK");
    match is_loopback(&server.url) {
        _ if server.url.is_empty() => skipped(code, name, "no extension says which server it uses"),
        true => failed(
            code,
            name,
            format!("pods cannot reach `{}`: it means the pod itself", server.url),
            "start the server with `--listen 0.0.0.0:7423` and name the address pods reach it by with `--server https://ADDRESS:7423`",
        ),
        false => passed(code, name, format!("the server is `{}`", server.url)),
    }
}

fn operator(seen: &Seen) -> Health {
    let (code, name) = ("E45001", "AGENT_UNHEALTHY");
    let Some(OperatorSeen { wanted, ready, image, troubles }) = &seen.operator else {
        return failed(
            code,
            name,
            "the operator's deployment is not there",
            "install it: `peregrine extension install`",
        );
    };
    let detail = format!("{ready} of {wanted} operators are ready (`{image}`)");
    match ready >= wanted && troubles.is_empty() {
        true => passed(code, name, detail),
        false => {
            let detail = [vec![detail], troubles.clone()].concat().join("; ");
            failed(code, name, detail, "`kubectl describe pods` in the extension's namespace tells more")
        }
    }
}

/// What to do where two clusters come with one token.
const ANEW: &str = "register this cluster anew with `peregrine extension install --cluster-name NAME`, under a name of its own if the \
                    other one is still there";

impl ServerSeen {
    /// Whether it knows another cluster under this one's name, and so refuses this one.
    pub fn mistakes(&self, uid: &str) -> bool {
        !uid.is_empty() && !self.uid.is_empty() && self.uid != uid
    }

    /// The same in words.
    pub fn mistake(&self, uid: &str) -> String {
        format!(
            "the server refuses this cluster: it has the uid `{uid}`, and its token belongs to the one with `{}`",
            self.uid
        )
    }
}

fn connection(seen: &Seen, server: &ServerSeen) -> Health {
    let (code, name) = ("E45003", "BAD_NETWORK_CONNECTIVITY");
    let next = "check that pods reach the server's address (proxy, firewall, certificate): the operator's log tells";
    match (server.heard, &server.silent) {
        _ if seen.operator.is_none() => skipped(code, name, "no operator is there to be heard"),
        _ if server.mistakes(&seen.uid) => failed(code, name, server.mistake(&seen.uid), ANEW),
        (Some(seconds), _) if seconds <= 60 => passed(code, name, format!("the server heard of it {seconds} s ago")),
        (Some(seconds), _) => failed(code, name, format!("the server heard of it {seconds} s ago"), next),
        (None, Some(why)) => skipped(code, name, &format!("the server could not be asked: {why}")),
        (None, None) => failed(code, name, "the server never heard of it", next),
    }
}

/// Whether an address means whoever uses it.
pub fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Inference;

    fn good() -> (Seen, ServerSeen) {
        let operator = OperatorSeen { wanted: 1, ready: 1, image: "i".into(), troubles: vec![] };
        let (router, balanced, certificate) = (Some((3, 3)), Some(true), CertificateSeen::Good);
        let (operator, uid) = (Some(operator), "u1".into());
        let kubernetes = (1, 33);
        let seen = Seen { uid, kubernetes, nodes: (3, 3), operator, router, balanced, certificate, ..Seen::default() };
        (seen, ServerSeen { url: "https://10.0.0.1:7423".into(), uid: "u1".into(), heard: Some(2), silent: None })
    }

    fn failing(change: impl Fn(&mut Seen, &mut ServerSeen)) -> Vec<(&'static str, bool)> {
        let (mut seen, mut server) = good();
        change(&mut seen, &mut server);
        let certificate = Certificate::Secret("tls".into());
        let inference = Some(Inference { routers: 3, certificate, ..Inference::default() });
        let settings = Settings { service_monitor: true, inference, ..Settings::default() };
        let all = judge(&seen, &server, &settings, Stage::Test);
        let bad = all.iter().filter(|health| health.state == State::Failed && health.code != "E45002");
        bad.inspect(|health| assert!(!health.next.is_empty(), "{}", health.code)).map(|h| (h.code, h.stops())).collect()
    }

    #[test]
    fn each_fault_has_its_code_and_stops_or_tells() {
        assert_eq!(failing(|_, _| {}), []);
        type Fault = fn(&mut Seen, &mut ServerSeen);
        let table: [(Fault, _); 18] = [
            (|seen, _| seen.kubernetes = (1, 29), ("P40100", true)),
            (|seen, _| seen.denied.push("create pods".into()), ("P40101", true)),
            (|seen, _| seen.namespace = Place::Terminating, ("P40102", true)),
            (|seen, _| seen.definition = Definition::Foreign("Helm".into()), ("P40103", true)),
            (|seen, _| seen.elsewhere = Some("other".into()), ("P40104", true)),
            (|seen, _| seen.nodes.1 = 0, ("E40002", true)),
            (|seen, _| seen.nodes.1 = 2, ("E40002", true)),
            (|seen, _| seen.router = None, ("E40004", true)),
            (|seen, _| seen.router = Some((2, 3)), ("E40004", true)),
            (|seen, _| seen.certificate = CertificateSeen::Absent, ("E40007", true)),
            (|seen, _| seen.certificate = CertificateSeen::Bad("it is for another host".into()), ("E40007", true)),
            (|seen, _| seen.balanced = Some(false), ("E40001", true)),
            (|_, server| server.url = "https://127.0.0.1:1".into(), ("P45100", false)),
            (|seen, _| seen.operator.as_mut().unwrap().ready = 0, ("E45001", false)),
            (|seen, _| seen.operator = None, ("E45001", false)),
            (|_, server| server.heard = Some(300), ("E45003", false)),
            (|_, server| server.heard = None, ("E45003", false)),
            (|_, server| server.uid = "u2".into(), ("E45003", false)),
        ];
        for (change, expect) in table {
            assert_eq!(failing(change), [expect]);
        }
    }

    #[test]
    fn a_load_balancer_is_judged_where_one_is_asked_for_and_once_it_is_there() {
        let (mut seen, server) = good();
        seen.balanced = Some(false);
        let states = |service, internal, stage| {
            let inference = Some(Inference { service, internal, ..Inference::default() });
            let all = judge(&seen, &server, &Settings { inference, ..Settings::default() }, stage);
            let state = |code: &str| all.iter().find(|health| health.code == code).unwrap().state;
            (state("E40001"), state("E40003"))
        };
        use State::{Failed, Skipped};
        assert_eq!(states(ServiceType::LoadBalancer, false, Stage::Test), (Failed, Skipped));
        assert_eq!(states(ServiceType::LoadBalancer, true, Stage::Test), (Skipped, Failed));
        assert_eq!(states(ServiceType::NodePort, false, Stage::Test), (Skipped, Skipped));
        // An upgrade may be what mends it.
        assert_eq!(states(ServiceType::LoadBalancer, false, Stage::Upgrade), (Skipped, Skipped));
    }

    #[test]
    fn every_code_of_azure_s_is_reported_once_and_in_order() {
        let (seen, server) = good();
        let all = judge(&seen, &server, &Settings::default(), Stage::Test);
        let codes: Vec<&str> = all.iter().map(|health| &health.code[1..]).collect();
        assert!(codes.is_sorted() && codes.windows(2).all(|pair| pair[0] != pair[1]), "{codes:?}");
        assert_eq!(all.len(), 18);
        assert_eq!(judge(&seen, &server, &Settings::default(), Stage::Install).len(), 16);
        assert!(unknown("x").stops());
    }

    #[test]
    fn an_address_that_means_oneself_is_known() {
        for url in [
            "https://127.0.0.1:7423",
            "http://localhost",
            "https://[::1]:1/x",
            "https://0.0.0.0:1",
            "https://127.9.9.9",
        ] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "https://10.0.0.1:7423",
            "https://[2001:db8::1]:1",
            "https://ml.example.org",
            "https://localhost.example.org",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
