//! The operator: makes attempts into pods, sees to it that gangs start whole, and tells the server what becomes of them.
//!
//! It runs inside the cluster and dials out. The cluster is its memory: whatever it made carries labels, and a new operator
//! begins by listing them. Invariants: one of several operators acts at a time; a launch that arrives twice is carried out
//! once; what was made is deleted only when the server says so; no gang holds nodes in part for more than half a minute.

mod act;
mod affinity;
mod amounts;
pub(crate) mod check;
mod claims;
mod desk;
pub(crate) mod explain;
mod facts;
pub(crate) mod fate;
mod fit;
pub(crate) mod labels;
mod lead;
mod link;
pub(crate) mod metrics;
mod pace;
mod pods;
pub(crate) mod refusal;
mod release;
pub(crate) mod seen;
mod watch;
mod world;

pub use link::Server;

use crate::{
    names,
    settings::{Gangs, Settings},
};
use desk::{Context, Desk};
use domain::Timestamp;
use facts::About;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    config::{KubeConfigOptions, Kubeconfig},
    runtime::events::{Recorder, Reporter},
};
use lead::Seat;
use link::{Link, Outbox};
use metrics::Metrics;
use std::{collections::BTreeMap, io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch as channel},
    time::sleep,
};

/// How often it is looked whether Volcano or Kueue came or went.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
const CONNECT_AT_MOST: Duration = Duration::from_secs(10);
/// A connection on which nothing came for this long is given up; a watch on which nothing happens is told so every minute.
const SILENT_AT_MOST: Duration = Duration::from_secs(90);
/// Changes on their way from the watches; a full line slows the watches down.
const IN_FLIGHT: usize = 256;

/// How an operator is started.
#[derive(Debug, Clone)]
pub struct Operator {
    pub server: Server,
    pub settings: Settings,
    /// Our own image: brings the agent into pods.
    pub image: String,
    /// The operator's own namespace.
    pub namespace: String,
    /// Who this one is among several.
    pub identity: String,
    pub version: String,
    /// Answers `/metrics`, `/healthz` and `/readyz`.
    pub listen: SocketAddr,
    /// Where the cluster is; absent: this process runs in it.
    pub kubeconfig: Option<PathBuf>,
    /// `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, as far as they are set: what leads us out leads pods out too.
    pub proxy: BTreeMap<String, String>,
    pub clock: fn() -> Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error("cannot find the cluster")]
    Cluster(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot listen on `{0}`")]
    Listen(SocketAddr, #[source] io::Error),
}

/// What the cluster offers for gangs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Offers {
    volcano: bool,
    kueue: bool,
}

/// The variables that lead through a proxy. What a pod says to itself never goes through one.
pub fn proxy(variable: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let named = |name: &str| Some((name.to_owned(), variable(name)?));
    let mut all: BTreeMap<_, _> = ["HTTPS_PROXY", "HTTP_PROXY"].into_iter().filter_map(named).collect();
    let given = variable("NO_PROXY").unwrap_or_default();
    let own = ["localhost", "127.0.0.1", "::1"];
    let lacking = own.into_iter().filter(|name| !given.split(',').any(|one| one.trim() == *name));
    let direct: Vec<_> = Some(given.as_str()).filter(|given| !given.is_empty()).into_iter().chain(lacking).collect();
    if !all.is_empty() {
        all.insert("NO_PROXY".to_owned(), direct.join(","));
    }
    all
}

/// Runs until `stop` turns true.
pub async fn run(operator: Operator, mut stop: channel::Receiver<bool>) -> Result<(), OperatorError> {
    let client = connect(operator.kubeconfig.as_ref()).await?;
    let metrics = Arc::new(Metrics::default());
    let holder = format!("{}-{}", operator.identity, pace::nonce());
    let seat = Seat::new(client.clone(), &operator.namespace, holder, operator.clock);
    let told = async { drop(stop.wait_for(|stop| *stop).await) };
    let ended = tokio::select! {
        served = metrics::serve(operator.listen, Arc::clone(&metrics)) => {
            served.map_err(|source| OperatorError::Listen(operator.listen, source))
        }
        () = lead(&operator, &client, &seat, &metrics) => Ok(()),
        () = told => Ok(()),
    };
    // The next one need not wait for the lease to run out; if the cluster is away it must.
    let _ = tokio::time::timeout(Duration::from_secs(2), seat.leave()).await;
    ended
}

async fn connect(kubeconfig: Option<&PathBuf>) -> Result<Client, OperatorError> {
    async fn config(kubeconfig: Option<&PathBuf>) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
        let mut config = match kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path)?;
                kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?
            }
            None => kube::Config::infer().await?,
        };
        (config.connect_timeout, config.read_timeout) = (Some(CONNECT_AT_MOST), Some(SILENT_AT_MOST));
        Ok(Client::try_from(config)?)
    }
    config(kubeconfig).await.map_err(OperatorError::Cluster)
}

/// Acts whenever the lease is ours.
async fn lead(operator: &Operator, client: &Client, seat: &Seat, metrics: &Arc<Metrics>) {
    loop {
        metrics.leads(false);
        let since = seat.take().await;
        metrics.leads(true);
        tracing::info!("leading");
        tokio::select! {
            () = seat.keep(since) => tracing::warn!("the lease was lost; waiting for it again"),
            () = work(operator, client, seat, metrics) => {}
        }
    }
}

/// Works until the cluster offers something else for gangs.
async fn work(operator: &Operator, client: &Client, seat: &Seat, metrics: &Arc<Metrics>) {
    let (offers, about) = look(operator, client).await;
    let uid = about.uid.clone();
    let gangs = if offers.volcano && uses_volcano(&operator.settings) { "volcano" } else { "gates" };
    let outbox = Arc::new(Outbox::default());
    let reporter = Reporter { controller: names::OPERATOR.to_owned(), instance: Some(operator.identity.clone()) };
    let context = Context {
        client: client.clone(),
        settings: operator.settings.clone(),
        options: Arc::new(pods::Options {
            image: operator.image.clone(),
            node_selector: operator.settings.node_selector.clone(),
            restricted: operator.settings.jobs_restricted,
            ids_are_given: operator.settings.openshift,
            proxy: operator.proxy.clone(),
        }),
        about: About { gangs: gangs.to_owned(), ..about },
        namespace: operator.namespace.clone(),
        volcano: offers.volcano,
        kueue: offers.kueue,
        clock: operator.clock,
        skew_ms: seat.skew_ms(),
        metrics: Arc::clone(metrics),
        outbox: Arc::clone(&outbox),
        recorder: Recorder::new(client.clone(), reporter),
    };
    let router = operator.settings.inference.as_ref().map(|_| operator.namespace.clone());
    let beyond = watch::Beyond { volcano: offers.volcano, router };
    let (changes, seen) = mpsc::channel(IN_FLIGHT);
    let (answered, answers) = mpsc::channel(1);
    let (holding, held) = channel::channel(None);
    let link = Link::new(operator.server.clone(), Arc::clone(metrics), operator.clock, uid);
    tokio::select! {
        () = watch::everything(client.clone(), beyond, changes) => {}
        () = Desk::new(context, holding).run(seen, answers) => {}
        () = link.ask(held, answered) => {}
        () = link.tell(&outbox) => {}
        () = differs(client, &offers) => tracing::info!("the cluster offers something else for gangs; starting over"),
    }
}

/// Autoscalers see only pods that exist and wait, and Volcano makes no pods for a gang that does not fit.
fn uses_volcano(settings: &Settings) -> bool {
    match settings.gangs {
        Gangs::Volcano => true,
        Gangs::Gates => false,
        Gangs::Auto => !settings.node_autoscaling,
    }
}

/// What kind of cluster this is; asks until it answers.
async fn look(operator: &Operator, client: &Client) -> (Offers, About) {
    let mut pace = pace::Pace::default();
    loop {
        match about(operator, client).await {
            Ok(found) => return found,
            Err(error) => {
                tracing::warn!(error = %error, "cannot learn what the cluster is; trying again");
                sleep(pace.after_failure()).await;
            }
        }
    }
}

async fn about(operator: &Operator, client: &Client) -> Result<(Offers, About), kube::Error> {
    let version = client.apiserver_version().await?;
    // It is made with the cluster and never again.
    let oldest = Api::<Namespace>::all(client.clone()).get("kube-system").await?;
    let about = About {
        uid: oldest.metadata.uid.unwrap_or_default(),
        version: operator.version.clone(),
        kubernetes_version: version.git_version,
        gangs: String::new(),
        training: operator.settings.training,
        inference: operator.settings.inference.clone(),
        grows: operator.settings.node_autoscaling || operator.settings.skip_resource_validation,
        node_selector: operator.settings.node_selector.clone(),
        reserves: operator.settings.memory_reservation,
    };
    Ok((offers(client).await?, about))
}

async fn offers(client: &Client) -> Result<Offers, kube::Error> {
    let groups = client.list_api_groups().await?.groups;
    let has = |name: &str| groups.iter().any(|group| group.name == name);
    Ok(Offers { volcano: has("batch.volcano.sh") && has("scheduling.volcano.sh"), kueue: has("kueue.x-k8s.io") })
}

/// Returns when what the cluster offers is no longer what it was.
async fn differs(client: &Client, before: &Offers) {
    loop {
        sleep(LOOK_AGAIN).await;
        if offers(client).await.is_ok_and(|now| now != *before) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_speaks_to_itself_without_a_proxy() {
        let of = |given: &'static [(&str, &str)]| {
            let all = proxy(|name| given.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()));
            all.get("NO_PROXY").cloned()
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("HTTP_PROXY", "http://p:3128")]).unwrap(), "localhost,127.0.0.1,::1");
        let given = of(&[("HTTPS_PROXY", "http://p:3128"), ("NO_PROXY", "10.0.0.0/8, localhost")]);
        assert_eq!(given.unwrap(), "10.0.0.0/8, localhost,127.0.0.1,::1");
    }
}
