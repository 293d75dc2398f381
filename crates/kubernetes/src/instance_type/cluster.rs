//! Instance types on a cluster: applying them, and making those that go with its nodes.

use super::{InstanceType, sizes};
use crate::{
    connect::{Cluster, Error},
    names::PRODUCT,
};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::Value;

/// Applies one type; says whether it was `created`, `changed` or `unchanged`. With `dry_run` the cluster only says
/// whether it would.
pub async fn apply(cluster: &Cluster, one: &Value, dry_run: bool) -> Result<&'static str, Error> {
    let api: Api<InstanceType> = Api::all(cluster.client.clone());
    let name = one["metadata"]["name"].as_str().unwrap_or_default();
    let told = |error| cluster.told(format!("apply instance type `{name}`"), error);
    let before = api.get_opt(name).await.map_err(told)?;
    let mut params = PatchParams::apply(PRODUCT).force().validation_strict();
    params.dry_run = dry_run;
    let after = api.patch(name, &params, &Patch::Apply(one)).await.map_err(told)?;
    Ok(match before {
        None => "created",
        Some(before) if before.spec == after.spec => "unchanged",
        Some(_) => "changed",
    })
}

/// Types for the nodes there are. `reserved`: a share of their memory is held back.
pub async fn generated(cluster: &Cluster, reserved: bool) -> Result<Vec<InstanceType>, Error> {
    let (nodes, pods): (Api<Node>, Api<Pod>) = (Api::all(cluster.client.clone()), Api::all(cluster.client.clone()));
    let everything = ListParams::default();
    let nodes = nodes.list(&everything).await.map_err(|error| cluster.told("list nodes", error))?;
    let pods = pods.list(&everything).await.map_err(|error| cluster.told("list pods", error))?;
    Ok(sizes::for_nodes(&nodes.items, &pods.items, reserved))
}
