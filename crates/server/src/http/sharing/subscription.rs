//! Quotas of workspaces as clients of the cloud's API read and set them, all workspaces at once.
//!
//! There a quota is of a family of machines, here of what there is of a thing: the last part of a quota's address is `cores`,
//! `memoryGiB`, `gpus` or `jobs`, for one target with its name before it (`lab.gpus`). Invariant: one that is not taken says
//! so by its status and changes nothing; the others are set all the same.

use crate::{
    app::App,
    auth::Caller,
    http::{At, Body, computes},
    problem::Problem,
};
use api::arm::PROVIDER;
use axum::{
    Extension, Json,
    extract::{Path, State},
};
use domain::{
    Resources, Role, Timestamp,
    cluster::ClusterFacts,
    sharing::{Limits, Quota, Whom},
    sizes,
};
use serde::Deserialize;
use serde_json::{Value, json};
use store::{Error, Tx};

const GIB: u64 = 1 << 30;
/// A limit that is none.
const NONE: i64 = -1;

#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    value: Vec<Asked>,
}

#[derive(Debug, Deserialize)]
struct Asked {
    id: String,
    limit: i64,
}

/// What a quota limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thing {
    Cores,
    Memory,
    Gpus,
    Jobs,
}

/// Where a quota stands.
#[derive(Debug, PartialEq, Eq)]
struct Spot {
    workspace: String,
    target: Option<String>,
    thing: Thing,
}

/// Why one was not taken: the status of the contract, and what it means here.
type Refusal = (&'static str, String);

impl Thing {
    const ALL: [Thing; 4] = [Thing::Cores, Thing::Memory, Thing::Gpus, Thing::Jobs];

    fn word(self) -> &'static str {
        match self {
            Thing::Cores => "cores",
            Thing::Memory => "memoryGiB",
            Thing::Gpus => "gpus",
            Thing::Jobs => "jobs",
        }
    }

    /// The cloud's word for all cores together is understood as well.
    fn parse(word: &str) -> Option<Thing> {
        let total = word.eq_ignore_ascii_case("Total_Cluster_Dedicated_Regional_vCPUs");
        if total {
            Some(Thing::Cores)
        } else {
            Thing::ALL.into_iter().find(|one| one.word().eq_ignore_ascii_case(word))
        }
    }

    /// How much of it there is in some amounts, in whole ones; `None` for what is no amount.
    fn of(self, amounts: &Resources) -> Option<u64> {
        match self {
            Thing::Cores => Some(amounts.cpu_milli / 1000),
            Thing::Memory => Some(amounts.memory_bytes / GIB),
            Thing::Gpus => Some(amounts.gpus.into()),
            Thing::Jobs => None,
        }
    }

    fn limit(self, limits: &Limits) -> Option<u64> {
        match self {
            Thing::Cores => limits.cpu_milli.map(|milli| milli / 1000),
            Thing::Memory => limits.memory_bytes.map(|bytes| bytes / GIB),
            Thing::Gpus => limits.gpus,
            Thing::Jobs => limits.jobs,
        }
    }

    fn put(self, limits: &mut Limits, limit: Option<u64>) {
        match self {
            Thing::Cores => limits.cpu_milli = limit.map(|cores| cores.saturating_mul(1000)),
            Thing::Memory => limits.memory_bytes = limit.map(|gib| gib.saturating_mul(GIB)),
            Thing::Gpus => limits.gpus = limit,
            Thing::Jobs => limits.jobs = limit,
        }
    }
}

/// What there is in all, and what workspaces may have of it that the caller may look at.
pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let here = app.capacity();
    let look = app.store.read(move |tx| Ok((in_all(tx, here)?, tx.workspaces()?, tx.quotas(None)?)));
    let (all, workspaces, quotas) = look.await?;
    let mut rows = Vec::new();
    for thing in [Thing::Cores, Thing::Memory, Thing::Gpus] {
        let id = format!("/subscriptions/{}/quotas/{}", at.subscription, thing.word());
        let most = all.and_then(|all| thing.of(&all)).and_then(|most| i64::try_from(most).ok()).unwrap_or(NONE);
        rows.push(row(&id, "vmFamily/quotas", most, thing.word()));
    }
    for quota in quotas.iter().filter(|quota| quota.whom == Whom::All && caller.may(&quota.workspace, Role::Reader)) {
        let Some(workspace) = workspaces.iter().find(|row| row.name == quota.workspace) else { continue };
        let set = Thing::ALL.into_iter().filter_map(|thing| Some((thing, thing.limit(&quota.limits)?)));
        for (thing, limit) in set {
            let target = quota.target.as_ref().map(|target| format!("{target}.")).unwrap_or_default();
            let name = format!("{target}{}", thing.word());
            let id = format!("{}/quotas/{name}", crate::app::scope(workspace).path());
            rows.push(row(&id, "workspaces/quotas", i64::try_from(limit).unwrap_or(i64::MAX), &name));
        }
    }
    Ok(Json(json!({"value": rows, "nextLink": null})))
}

/// Sets quotas of workspaces; what became of each is in its status.
pub(crate) async fn update(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(wanted): Body<Wanted>,
) -> Result<Json<Value>, Problem> {
    let (here, now) = (app.capacity(), app.now());
    let set = app.store.write(move |tx| {
        let all = in_all(tx, here)?;
        let one = |asked: &Asked| {
            let done = set(tx, asked, all.as_ref(), (&caller.name, now))?;
            let mut shown = json!({
                "id": asked.id, "type": format!("{PROVIDER}/workspaces/quotas"), "limit": asked.limit, "unit": "Count",
                "status": done.as_ref().err().map_or("Success", |(status, _)| status),
            });
            if let Err((_, why)) = done {
                shown["message"] = json!(why);
            }
            Ok(shown)
        };
        wanted.value.iter().map(one).collect::<Result<Vec<Value>, Error>>()
    });
    Ok(Json(json!({"value": set.await?, "nextLink": null})))
}

fn row(id: &str, kind: &str, limit: i64, name: &str) -> Value {
    json!({
        "id": id, "type": format!("{PROVIDER}/{kind}"), "limit": limit, "unit": "Count",
        "name": {"value": name, "localizedValue": name}, "amlWorkspaceLocation": "local",
    })
}

fn set(
    tx: &mut Tx<'_>,
    asked: &Asked,
    all: Option<&Resources>,
    (by, now): (&str, Timestamp),
) -> Result<Result<(), Refusal>, Error> {
    let spot = match spot(&asked.id) {
        Ok(spot) => spot,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let limit = match u64::try_from(asked.limit) {
        Ok(limit) => Some(limit),
        Err(_) if asked.limit == NONE => None,
        Err(_) => return Ok(Err(("Failure", format!("`limit` must be at least 0, or {NONE} to take it away")))),
    };
    let Some(workspace) = tx.workspace(&spot.workspace)? else {
        let names: Vec<String> = tx.workspaces()?.into_iter().map(|row| row.name).collect();
        let why = format!("there is no workspace `{}` (there are: {})", spot.workspace, names.join(", "));
        return Ok(Err(("Failure", why)));
    };
    if let Some(limit) = limit
        && let Err(refusal) = may_be(tx, (&workspace.name, &spot), limit, all)?
    {
        return Ok(Err(refusal));
    }
    let lower = |target: &Option<String>| target.as_deref().map(str::to_lowercase);
    let same = |quota: &Quota| quota.whom == Whom::All && lower(&quota.target) == lower(&spot.target);
    let found = tx.quotas(Some(&workspace.name))?.into_iter().find(same);
    let none = Quota { workspace: workspace.name, whom: Whom::All, target: spot.target, limits: Limits::default() };
    let mut quota = found.unwrap_or(none);
    spot.thing.put(&mut quota.limits, limit);
    match quota.limits.is_empty() {
        true => tx.delete_quota(&quota.workspace, &Whom::All, quota.target.as_deref()).map(drop)?,
        false => tx.put_quota(&quota, by, now).map(drop)?,
    }
    Ok(Ok(()))
}

/// `…/workspaces/<workspace>/quotas/[<target>.]<thing>`, in any case where it is words.
fn spot(id: &str) -> Result<Spot, Refusal> {
    let parts: Vec<&str> = id.split('/').collect();
    let [.., word, workspace, quotas, name] = parts.as_slice() else { return Err(no_quota(id)) };
    if !word.eq_ignore_ascii_case("workspaces") || !quotas.eq_ignore_ascii_case("quotas") || workspace.is_empty() {
        return Err(no_quota(id));
    }
    let (target, word) = name.split_once('.').map_or((None, *name), |(target, word)| (Some(target), word));
    let Some(thing) = Thing::parse(word) else {
        let known = Thing::ALL.map(Thing::word).join("`, `");
        let why = format!("quotas here count no family of machines: `{word}` is none of `{known}`");
        return Err(("InvalidVMFamilyName", why));
    };
    Ok(Spot { workspace: (*workspace).to_owned(), target: target.map(str::to_owned), thing })
}

fn no_quota(id: &str) -> Refusal {
    (
        "Failure",
        format!("`{}` is not the id of a workspace's quota: …/workspaces/NAME/quotas/cores", id.escape_default()),
    )
}

/// Whether a limit makes sense beside the machines there are.
fn may_be(
    tx: &mut Tx<'_>,
    (workspace, spot): (&str, &Spot),
    limit: u64,
    all: Option<&Resources>,
) -> Result<Result<(), Refusal>, Error> {
    let computes = tx.computes(workspace)?;
    let named = |name: &str| spot.target.as_ref().is_none_or(|target| target.eq_ignore_ascii_case(name));
    if !named(computes::LOCAL) && !computes.iter().any(|row| named(&row.name)) {
        let target = spot.target.as_deref().unwrap_or_default();
        let names: Vec<&str> = computes.iter().map(|row| row.name.as_str()).chain([computes::LOCAL]).collect();
        let why = format!("workspace `{workspace}` has no compute target `{target}` (there are: {})", names.join(", "));
        return Ok(Err(("Failure", why)));
    }
    let least = computes.iter().filter(|row| named(&row.name)).map(|row| least_of(&row.body));
    let least = least.fold(Resources::default(), |sum, one| sum.plus(&one));
    let word = spot.thing.word();
    if let Some(least) = spot.thing.of(&least).filter(|least| limit < *least) {
        let why = format!("clusters of workspace `{workspace}` keep {least} {word} by their least number of nodes");
        return Ok(Err(("InvalidQuotaBelowClusterMinimum", why)));
    }
    if let Some(most) = all.and_then(|all| spot.thing.of(all)).filter(|most| limit > *most) {
        let why = format!("all machines of this server have {most} {word} together");
        return Ok(Err(("InvalidQuotaExceedsSubscriptionLimit", why)));
    }
    Ok(Ok(()))
}

/// What a managed cluster has at the least; nothing for other targets.
fn least_of(body: &str) -> Resources {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let inner = &body["properties"]["properties"];
    let nodes = inner["scaleSettings"]["minNodeCount"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let size = inner["vmSize"].as_str().and_then(sizes::find);
    let amounts = size.map(|size| Resources {
        cpu_milli: u64::from(size.cores) * 1000,
        memory_bytes: (size.memory_gib * GIB as f64) as u64,
        gpus: size.gpus,
    });
    amounts.unwrap_or_default().times(nodes)
}

/// What this machine and all clusters have together; `None` where that cannot be said, as some grow at their own will.
fn in_all(tx: &mut Tx<'_>, here: Option<Resources>) -> Result<Option<Resources>, Error> {
    let Some(mut sum) = here else { return Ok(None) };
    for cluster in tx.clusters()? {
        let facts = tx.facts(&cluster.name)?;
        let Some(has) = has(&facts, cluster.is_site()) else { return Ok(None) };
        sum = sum.plus(&has);
    }
    Ok(Some(sum))
}

/// What a cluster has at the most; `None` where that is not known.
pub(crate) fn has(facts: &ClusterFacts, site: bool) -> Option<Resources> {
    let there = facts.nodes.iter().fold(Resources::default(), |sum, node| sum.plus(&node.allocatable));
    if !facts.grows {
        return (!facts.nodes.is_empty()).then_some(there);
    }
    // A managed cluster says how many nodes it may have, of which some are there.
    let kind = facts.instance_types.first().filter(|_| site)?;
    let most = kind.requests.times(u32::try_from(kind.fits_now).unwrap_or(u32::MAX));
    Some(Resources {
        cpu_milli: most.cpu_milli.max(there.cpu_milli),
        memory_bytes: most.memory_bytes.max(there.memory_bytes),
        gpus: most.gpus.max(there.gpus),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_quota_says_whose_it_is_and_of_what() {
        let of = |tail: &str| spot(&format!("/subscriptions/s/resourceGroups/g/providers/{PROVIDER}/{tail}"));
        let at =
            |target: Option<&str>, thing| Ok(Spot { workspace: "w".into(), target: target.map(str::to_owned), thing });
        assert_eq!(of("workspaces/w/quotas/cores"), at(None, Thing::Cores));
        assert_eq!(of("Workspaces/w/Quotas/lab.GPUS"), at(Some("lab"), Thing::Gpus));
        assert_eq!(of("workspaces/w/quotas/Total_Cluster_Dedicated_Regional_vCPUs"), at(None, Thing::Cores));
        for (tail, status) in [
            ("workspaces/w/quotas/Standard_DSv2_Family_Cluster_Dedicated_vCPUs", "InvalidVMFamilyName"),
            ("workspaces/w", "Failure"),
            ("workspaces//quotas/cores", "Failure"),
            ("registries/w/quotas/cores", "Failure"),
        ] {
            assert_eq!(of(tail).unwrap_err().0, status, "{tail}");
        }
    }

    #[test]
    fn what_a_cluster_has_is_known_unless_it_grows_at_its_own_will() {
        let kind = domain::cluster::ClusterInstanceType {
            requests: Resources { cpu_milli: 2000, ..Resources::default() },
            fits_now: 3,
            ..Default::default()
        };
        let facts = ClusterFacts { grows: true, instance_types: vec![kind], ..ClusterFacts::default() };
        assert_eq!(has(&facts, true).map(|has| has.cpu_milli), Some(6000));
        assert_eq!(has(&facts, false), None);
        assert_eq!(has(&ClusterFacts::default(), true), None, "nothing is known yet");
    }
}
