//! What there is to be had: machine sizes that may be named, and how much of this machine and of clusters is in use.

use crate::{
    app::App,
    auth::Caller,
    http::{At, sharing::subscription},
    problem::Problem,
};
use api::arm::PROVIDER;
use axum::{
    Extension, Json,
    extract::{Path, State},
};
use domain::{
    Resources, Role,
    cluster::ClusterNode,
    sizes::{self, Size},
};
use serde_json::{Value, json};
use store::ClusterRow;

/// Every size a target or a job may name.
pub(crate) async fn vm_sizes() -> Json<Value> {
    Json(json!({"value": sizes::list().iter().map(size).collect::<Vec<_>>(), "nextLink": null}))
}

/// Cores, GPUs and jobs of this machine, and cores and GPUs of clusters and of the caller's own targets elsewhere, as of now.
pub(crate) async fn usages(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(at): Path<At>,
) -> Result<Json<Value>, Problem> {
    let look = app.store.read(move |tx| {
        let seen = |row: &ClusterRow| row.workspace().is_none_or(|workspace| caller.may(workspace, Role::Reader));
        let clusters = tx.clusters()?.into_iter().filter(seen).map(|row| Ok((tx.facts(&row.name)?, row)));
        let clusters = clusters.collect::<Result<Vec<_>, store::Error>>()?;
        Ok((tx.in_use()?, clusters))
    });
    let (used, clusters) = look.await?;
    let has = app.capacity().unwrap_or_default();
    let base = format!("/subscriptions/{}/providers/{PROVIDER}/locations/local/usages", at.subscription);
    let usage = |id: &str, name: &str, current: u64, limit: Option<u64>| {
        json!({
            "id": format!("{base}/{id}"), "type": format!("{PROVIDER}/usages"), "unit": "Count", "currentValue": current,
            "limit": limit.map_or(json!(-1), Value::from), "name": {"value": name, "localizedValue": name},
            "amlWorkspaceLocation": "local",
        })
    };
    let cores = |milli: u64| milli.div_ceil(1000);
    let mut all = vec![
        usage("cores", "cores of `local`", cores(used.resources.cpu_milli), Some(cores(has.cpu_milli))),
        usage("gpus", "GPUs of `local`", used.resources.gpus.into(), Some(has.gpus.into())),
        usage("jobs", "jobs at work on `local`", used.jobs, None),
    ];
    for (facts, row) in clusters {
        let sum = |of: fn(&ClusterNode) -> Resources| {
            facts.nodes.iter().fold(Resources::default(), |sum, node| sum.plus(&of(node)))
        };
        let (there, free) = (sum(|node| node.allocatable), sum(|node| node.free));
        let used = there.minus(&free);
        // A managed cluster may have more nodes than there are now.
        let has = subscription::has(&facts, true).filter(|_| row.is_site()).unwrap_or(there);
        let (name, shown) = (row.name.replace(['@', '/'], "-"), row.shown());
        let id = |what: &str| format!("cluster-{}-{what}", name.trim_start_matches('-'));
        let called = |what: &str| match row.workspace() {
            None => format!("{what} of cluster `{shown}`"),
            Some(workspace) => format!("{what} of `{shown}` in workspace `{workspace}`"),
        };
        all.push(usage(&id("cores"), &called("cores"), cores(used.cpu_milli), Some(cores(has.cpu_milli))));
        all.push(usage(&id("gpus"), &called("GPUs"), used.gpus.into(), Some(has.gpus.into())));
    }
    Ok(Json(json!({"value": all, "nextLink": null})))
}

fn size(size: &Size) -> Value {
    json!({
        "name": size.name, "family": family(size.name), "vCPUs": size.cores, "gpus": size.gpus, "memoryGB": size.memory_gib,
        "osVhdSizeMB": 0, "maxResourceVolumeMB": 0, "lowPriorityCapable": false, "premiumIO": false,
        "supportedComputeTypes": ["AmlCompute", "ComputeInstance"],
    })
}

/// `Standard_NC6s_v3` is of the family `standardNCSv3Family`.
fn family(name: &str) -> String {
    let rest = name.split_once('_').map_or(name, |(_, rest)| rest);
    let letters: String = rest.chars().filter(|c| *c != '_').collect();
    let mut out = String::from("standard");
    let (head, version) = letters.rsplit_once('v').map_or((letters.as_str(), ""), |(head, version)| (head, version));
    out.extend(head.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_uppercase()));
    if !version.is_empty() {
        out.push('v');
        out.push_str(version);
    }
    out.push_str("Family");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_the_name_without_its_size() {
        for (name, expect) in [
            ("Standard_DS3_v2", "standardDSv2Family"),
            ("Standard_NC6s_v3", "standardNCSv3Family"),
            ("Standard_NC6", "standardNCFamily"),
        ] {
            assert_eq!(family(name), expect);
        }
    }
}
