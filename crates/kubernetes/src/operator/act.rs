//! What the operator does to the cluster: make a gang, let it go to the scheduler, take it back, remove it.
//!
//! Invariant: every act may be cut off anywhere and repeated. Names come from the attempt, so that making twice is making
//! once; what is deleted is named by the attempt's label or by uid and version.

use super::{
    claims::Claim,
    labels, pace,
    pods::{self, Body, Gang as Kind, Objects, Options},
    refusal::{Refusal, code, is_there},
    world::{Gang, Part},
};
use crate::{instance_type::InstanceTypeSpec, names};
use domain::{AttemptId, cluster::Launch};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::{
    api::core::v1::{Pod, Secret},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::DynamicObject,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;
use std::{fmt::Debug, sync::Arc};

/// Requests of one act that are under way at once.
const ABREAST: usize = 16;
/// How many attempts one request removes; their names make its address long.
const TOGETHER: usize = 50;
/// For pods that were taken back before anything of the user's ran.
const SHORT_GRACE: u32 = 3;

/// All that is needed to make a gang.
pub(crate) struct Recipe {
    pub(crate) launch: Launch,
    pub(crate) shape: InstanceTypeSpec,
    pub(crate) claims: Vec<Claim>,
    pub(crate) options: Arc<Options>,
    pub(crate) kind: Kind,
}

impl Recipe {
    fn objects(&self, nonce: &str) -> Objects {
        pods::objects(&self.launch, &self.shape, &self.claims, &self.options, self.kind, nonce)
    }
}

/// Makes everything of an attempt, or what is missing of it.
pub(crate) async fn make(client: &Client, recipe: &Recipe) -> Result<(), Refusal> {
    let namespace = &recipe.launch.target.namespace;
    let nonce = pace::nonce();
    let Objects { body, secret } = recipe.objects(&nonce);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    match body {
        Body::Job(job) => {
            let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &pods::volcano_job());
            let owner = ensure(&jobs, &job).await?;
            let reference = owner_of(&owner, &pods::volcano_job());
            keep_secret(&secrets, as_named_by(secret, &owner.metadata), reference).await
        }
        Body::Pods(all) => {
            let Some(first) = all.first() else { return Ok(()) };
            let owner = ensure(&pods, first).await?;
            let reference = owner_of(&owner, &());
            keep_secret(&secrets, as_named_by(secret, &owner.metadata), reference.clone()).await?;
            // An earlier making may have chosen another name for the Secret; all pods must agree.
            let nonce = owner.metadata.annotations.as_ref().and_then(|all| all.get(labels::SECRET)?.rsplit('-').next());
            let Body::Pods(all) = recipe.objects(nonce.unwrap_or_default()).body else { return Ok(()) };
            rest(&pods, &all[1..], &reference).await
        }
    }
}

/// Makes the pods that the first one owns.
async fn rest(api: &Api<Pod>, pods: &[Pod], owner: &OwnerReference) -> Result<(), Refusal> {
    let made = stream::iter(pods.iter().cloned()).map(|mut pod| async move {
        pod.metadata.owner_references = Some(vec![owner.clone()]);
        let there = ensure(api, &pod).await?;
        let owners = there.metadata.owner_references.unwrap_or_default();
        if owners.iter().any(|one| one.uid == owner.uid) { Ok(()) } else { Err(Refusal::Busy) }
    });
    made.buffer_unordered(ABREAST).try_collect().await
}

/// Makes an object unless it is there.
async fn ensure<K>(api: &Api<K>, object: &K) -> Result<K, Refusal>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    match api.create(&params(), object).await {
        Ok(made) => Ok(made),
        Err(error) if is_there(&error) => {
            let name = object.meta().name.as_deref().unwrap_or_default();
            let there = api.get(name).await.map_err(|error| match code(&error) {
                404 => Refusal::Busy,
                _ => Refusal::of(&error),
            })?;
            if there.meta().deletion_timestamp.is_some() { Err(Refusal::Busy) } else { Ok(there) }
        }
        Err(error) => Err(Refusal::of(&error)),
    }
}

/// The Secret under the name that its owner has for it.
fn as_named_by(mut secret: Secret, owner: &ObjectMeta) -> Secret {
    let name = owner.annotations.as_ref().and_then(|all| all.get(labels::SECRET).cloned());
    secret.metadata.name = name.or(secret.metadata.name);
    secret
}

async fn keep_secret(api: &Api<Secret>, mut secret: Secret, owner: OwnerReference) -> Result<(), Refusal> {
    secret.metadata.owner_references = Some(vec![owner]);
    match api.create(&params(), &secret).await {
        Ok(_) => Ok(()),
        Err(error) if is_there(&error) => Ok(()),
        Err(error) => Err(Refusal::of(&error)),
    }
}

/// Whether a gang's Secret exists; `None` when that cannot be told now. The operator may not read Secrets, but a rehearsal of
/// making one says whether there is one.
pub(crate) async fn has_secret(client: &Client, namespace: &str, name: &str) -> Option<bool> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let mut secret = Secret::default();
    secret.metadata.name = Some(name.to_owned());
    match api.create(&PostParams { dry_run: true, ..params() }, &secret).await {
        Ok(_) => Some(false),
        Err(error) if is_there(&error) => Some(true),
        Err(_) => None,
    }
}

/// Why the cluster would not take a pod of a Volcano Job, found out by a rehearsal.
pub(crate) async fn rehearse(client: &Client, namespace: &str, job: &str) -> Option<Refusal> {
    let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &pods::volcano_job());
    let job = jobs.get(job).await.ok()?;
    let mut pod: Pod = serde_json::from_value(job.data["spec"]["tasks"][0]["template"].clone()).ok()?;
    pod.metadata.name = Some(format!("{}-rehearsal", job.metadata.name?));
    // Volcano writes it into the pods it makes.
    pod.metadata.annotations.get_or_insert_default().insert(labels::VOLCANO_PART.to_owned(), "0".to_owned());
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    api.create(&PostParams { dry_run: true, ..params() }, &pod).await.err().map(|error| Refusal::of(&error))
}

/// Takes the gate from all pods of a gang.
pub(crate) async fn free(client: &Client, namespace: &str, pods: Vec<String>) -> Result<(), kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let patch = json!({"spec": {"schedulingGates": [{"$patch": "delete", "name": labels::GATE}]}});
    let all = stream::iter(pods).map(|name| {
        let (api, patch) = (&api, &patch);
        async move { api.patch_metadata(&name, &PatchParams::default(), &Patch::Strategic(patch)).await.map(drop) }
    });
    all.buffer_unordered(ABREAST).try_collect().await
}

/// Takes back a gang of which only a part found nodes. `Ok(false)`: the rest has found nodes in the meantime.
pub(crate) async fn take_back(client: &Client, attempt: &AttemptId, gang: &Gang) -> Result<bool, kube::Error> {
    let api: Api<Pod> = Api::namespaced(client.clone(), &gang.namespace);
    if gang.job.is_none() {
        // A gang that lost a pod which had no node cannot have started; then the others are safe to delete.
        for part in gang.pods.values().filter(|part| part.node.is_none()) {
            match api.delete(&part.pod, &exactly(part)).await {
                Err(error) if code(&error) == 409 => return Ok(false),
                Err(error) if code(&error) != 404 => return Err(error),
                _ => {}
            }
        }
    }
    remove(client, &gang.namespace, std::slice::from_ref(attempt), gang.job.is_some(), SHORT_GRACE).await?;
    Ok(true)
}

/// Deletes everything of some attempts in a namespace; Secrets go with their owners.
pub(crate) async fn remove(
    client: &Client,
    namespace: &str,
    attempts: &[AttemptId],
    volcano: bool,
    grace_seconds: u32,
) -> Result<(), kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &pods::volcano_job());
    for some in attempts.chunks(TOGETHER) {
        let names: Vec<_> = some.iter().map(AttemptId::as_str).collect();
        let list = ListParams::default().labels(&format!("{} in ({})", names::ATTEMPT, names.join(",")));
        if volcano {
            // Before its pods, which Volcano would make again.
            jobs.delete_collection(&DeleteParams::background(), &list).await?;
        }
        pods.delete_collection(&DeleteParams::background().grace_period(grace_seconds), &list).await?;
    }
    Ok(())
}

fn params() -> PostParams {
    PostParams { field_manager: Some(names::PRODUCT.to_owned()), ..PostParams::default() }
}

fn exactly(part: &Part) -> DeleteParams {
    let same = Preconditions { uid: Some(part.uid.clone()), resource_version: Some(part.version.clone()) };
    DeleteParams::default().preconditions(same).grace_period(0)
}

fn owner_of<K: Resource>(object: &K, kind: &K::DynamicType) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(kind).into_owned(),
        kind: K::kind(kind).into_owned(),
        name: object.meta().name.clone().unwrap_or_default(),
        uid: object.meta().uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }
}
