//! Watches: what changes on the cluster, as messages to the one task that owns the world.
//!
//! Lists come in small pages and objects are trimmed while they are read, so that a large cluster needs little memory at any
//! moment. Invariant: after `Start` every object there is comes as `Seen`, then `Listed`.

use super::{
    pace::Pace,
    seen::{BoundSeen, ClaimSeen, GroupSeen, JobSeen, NodeSeen, PodSeen, ServiceSeen},
};
use crate::{
    instance_type::InstanceType,
    names,
    operator::{labels, pods},
};
use futures_util::{StreamExt, future::BoxFuture, future::join_all};
use kube::{
    Api, Client, Resource,
    core::DeserializeGuard,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, pin::pin};
use tokio::sync::mpsc;

/// How many objects a list brings at once.
const PAGE: u32 = 100;

/// What a watch has to tell.
#[derive(Debug)]
pub(crate) enum Change<K> {
    /// Everything there is follows.
    Start,
    Seen(K),
    /// That was everything.
    Listed,
    Gone(K),
}

/// A change of something.
#[derive(Debug)]
pub(crate) enum Seen {
    Pod(Change<Box<PodSeen>>),
    Bound(Change<Box<BoundSeen>>),
    Node(Change<Box<NodeSeen>>),
    Job(Change<Box<JobSeen>>),
    Group(Change<Box<GroupSeen>>),
    /// Where the definition is another's, one that makes no sense must not hide the others.
    Type(Change<Box<DeserializeGuard<InstanceType>>>),
    Claim(Change<Box<ClaimSeen>>),
    /// The router's.
    Service(Change<Box<ServiceSeen>>),
}

/// What is there to be watched beyond what every cluster has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beyond {
    pub(crate) volcano: bool,
    /// The namespace of the router's service.
    pub(crate) router: Option<String>,
}

/// Watches everything the operator has to know of, for ever.
pub(crate) async fn everything(client: Client, beyond: Beyond, to: mpsc::Sender<Seen>) {
    let plain = || watcher::Config::default().page_size(PAGE).any_semantic();
    let ours = || plain().labels(names::ATTEMPT);
    // Pods that have a node and still need it.
    let bound = plain().fields("spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed");
    let mut all: Vec<BoxFuture<'_, ()>> = vec![
        Box::pin(follow(Api::all(client.clone()), ours(), &to, Seen::Pod)),
        Box::pin(follow(Api::all(client.clone()), bound, &to, Seen::Bound)),
        Box::pin(follow(Api::all(client.clone()), plain(), &to, Seen::Node)),
        Box::pin(follow(Api::all(client.clone()), plain(), &to, Seen::Type)),
        Box::pin(follow(
            Api::all(client.clone()),
            plain().labels(&format!("{}=true", labels::CLAIM)),
            &to,
            Seen::Claim,
        )),
    ];
    if let Some(namespace) = &beyond.router {
        let service = plain().fields(&format!("metadata.name={}", names::ROUTER));
        all.push(Box::pin(follow(Api::namespaced(client.clone(), namespace), service, &to, Seen::Service)));
    }
    if beyond.volcano {
        let jobs = Api::all_with(client.clone(), &pods::volcano_job());
        let groups = Api::all_with(client, &pods::volcano_group());
        all.push(Box::pin(follow(jobs, ours(), &to, Seen::Job)));
        all.push(Box::pin(follow(groups, ours(), &to, Seen::Group)));
    }
    join_all(all).await;
}

async fn follow<K>(api: Api<K>, config: watcher::Config, to: &mpsc::Sender<Seen>, wrap: fn(Change<Box<K>>) -> Seen)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let path = api.resource_url().to_owned();
    let mut stream = pin!(watcher(api, config).backoff(Pace::default()));
    while let Some(event) = stream.next().await {
        let change = match event {
            Ok(Event::Init) => Change::Start,
            Ok(Event::InitApply(object) | Event::Apply(object)) => Change::Seen(Box::new(object)),
            Ok(Event::InitDone) => Change::Listed,
            Ok(Event::Delete(object)) => Change::Gone(Box::new(object)),
            Err(error) if is_unknown(&error) => {
                // A kind that the cluster does not know has no objects. It may get to know it.
                let _ = to.send(wrap(Change::Start)).await;
                Change::Listed
            }
            Err(error) => {
                tracing::warn!(path, error = %error, "a watch was interrupted and is begun anew");
                continue;
            }
        };
        if to.send(wrap(change)).await.is_err() {
            return;
        }
    }
}

fn is_unknown(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}
