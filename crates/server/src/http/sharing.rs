//! Quotas and who uses how much: of a workspace's people, and of its targets.

pub(crate) mod subscription;
pub(crate) mod teams;

use super::{
    Asked, At, Body,
    change::{Halt, change},
};
use crate::{app::App, auth::Caller, problem::Problem};
use api::arm::scalar;
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
};
use domain::{
    Plan, Resources, Role, Timestamp,
    access::EVERYWHERE,
    resources::{parse_bytes, parse_cpu},
    sharing::{Held, Holder, Ledger, Limits, Quota, Whom, fair::HOUR_MS, quota::TEAM},
    spec::Mistake,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::{Error, Tx};

/// What people have used is shown for this long.
const LATELY_MS: i64 = 7 * 24 * HOUR_MS;

/// A quota to set; one without amounts is taken away.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Nobody for the workspace as a whole, `*` for everyone in it each.
    #[serde(default)]
    user: String,
    /// A team instead of a user.
    team: Option<String>,
    target: Option<String>,
    cpus: Option<Value>,
    memory: Option<Value>,
    gpus: Option<u64>,
    jobs: Option<u64>,
}

/// The quotas of a workspace, and what of each is in use by whom.
pub(crate) async fn quotas(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (name, now) = (workspace.name.clone(), app.now());
    let ledger = app.store.read(move |tx| ledger(tx, Some(&name), now)).await?;
    let shown = ledger.shown(&workspace.name).into_iter().map(|(quota, by)| view(quota, &by));
    Ok(Json(json!({"value": shown.collect::<Vec<_>>()})))
}

/// Sets a quota. What a workspace may have as a whole is for an owner of the server to say.
pub(crate) async fn put_quota(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    Body(wanted): Body<Wanted>,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let quota = quota(&workspace.name, &wanted)?;
    let (kept, now) = (quota.clone(), app.now());
    change(&app, move |tx| {
        let same = |one: &Quota| one.whom.kept() == kept.whom.kept() && one.target == kept.target;
        if kept.limits.is_empty() && !tx.quotas(Some(&kept.workspace))?.iter().any(same) {
            return Err(Halt::from(Problem::not_found("quota", &kept.called())));
        }
        if kept.whom == Whom::All && !caller.may(EVERYWHERE, Role::Owner) {
            return Err(Problem::forbidden(
                "the quota of a workspace as a whole is set by an owner of the server (a role in every workspace); \
                 owners of a workspace set those of its users and teams",
            )
            .into());
        }
        if kept.limits.is_empty() {
            tx.delete_quota(&kept.workspace, &kept.whom, kept.target.as_deref())?;
            return Ok(());
        }
        if let Whom::Team { name, .. } = &kept.whom {
            let teams = tx.teams(Some(&kept.workspace))?;
            if !teams.iter().any(|team| team.name.as_str() == name) {
                return Err(teams::missing(name, &teams).into());
            }
        }
        Ok(tx.put_quota(&kept, &caller.name, now)?)
    })
    .await?;
    Ok(Json(view(&quota, &[])))
}

/// Who has what now, and who has used how much lately; who asks with `workspaces=true` is told the sums of every workspace
/// they may look into as well.
pub(crate) async fn usage(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let every = asked.get("workspaces").is_some_and(|word| word == "true");
    let (name, now) = (workspace.name.clone(), app.now());
    let look = app.store.read(move |tx| {
        let one = Some(name.as_str()).filter(|_| !every);
        let mut held = tx.held(now)?;
        held.retain(|row| one.is_none_or(|one| row.held.holder.workspace == one));
        let places = if every { tx.workspaces()? } else { Vec::new() };
        Ok((held, tx.used_since(one, Timestamp(now.0 - LATELY_MS))?, places))
    });
    let (held, used, places) = look.await?;
    let mut all: BTreeMap<(String, String), Use> = BTreeMap::new();
    for (holder, core_ms) in used {
        all.entry((holder.workspace, holder.person)).or_default().core_ms += core_ms;
    }
    for row in held {
        let Held { holder, resources, jobs, .. } = row.held;
        let busy = Use { now: resources, jobs, core_ms: i64::try_from(row.busy).unwrap_or(0) };
        all.entry((holder.workspace, holder.person)).or_default().add(&busy);
    }
    let here = all.iter().filter(|((place, _), _)| *place == workspace.name);
    let mut answer = json!({"value": here.map(|((_, person), one)| one.view("user", person)).collect::<Vec<_>>()});
    if every {
        let seen = places.iter().filter(|place| caller.may(&place.name, Role::Reader));
        let sum = |name: &str| {
            let mut sum = Use::default();
            all.iter().filter(|((place, _), _)| place == name).for_each(|(_, one)| sum.add(one));
            sum.view("workspace", name)
        };
        answer["workspaces"] = seen.map(|place| sum(&place.name)).collect();
    }
    Ok(Json(answer))
}

/// What someone has now, and has used lately.
#[derive(Debug, Default)]
struct Use {
    now: Resources,
    jobs: u64,
    core_ms: i64,
}

impl Use {
    fn add(&mut self, other: &Use) {
        self.now = self.now.plus(&other.now);
        self.jobs += other.jobs;
        self.core_ms += other.core_ms;
    }

    fn view(&self, whose: &str, name: &str) -> Value {
        json!({
            whose: name, "jobs": self.jobs, "cpus": self.now.cpu_milli as f64 / 1000.0,
            "memoryBytes": self.now.memory_bytes, "gpus": self.now.gpus,
            "coreHours": (self.core_ms as f64 / HOUR_MS as f64 * 1000.0).round() / 1000.0,
        })
    }
}

/// The quotas of a workspace, or of all, with what is in use.
pub(crate) fn ledger(tx: &mut Tx<'_>, workspace: Option<&str>, now: Timestamp) -> Result<Ledger, Error> {
    let quotas = tx.quotas(workspace)?;
    let held: Vec<Held> =
        if quotas.is_empty() { Vec::new() } else { tx.held(now)?.into_iter().map(|row| row.held).collect() };
    Ok(Ledger::new(quotas, &held))
}

/// Work that no quota will ever leave room for is refused now, not left to wait for ever.
pub(crate) fn never_fits<'p>(
    tx: &mut Tx<'_>,
    holder: &Holder,
    plans: impl Iterator<Item = (&'p str, &'p Plan)>,
) -> Result<Vec<Mistake>, Error> {
    let ledger = Ledger::new(tx.quotas(Some(&holder.workspace))?, &[]);
    if ledger.is_empty() {
        return Ok(Vec::new());
    }
    let fix = "ask for less, or have the quota raised: `peregrine workspace quota`";
    let one = |(target, plan): (&str, &Plan)| {
        let why = ledger.of(holder, target).find_map(|quota| quota.never(&plan.needs()));
        why.map(|why| Mistake::new("resources", why, fix))
    };
    Ok(plans.filter_map(one).collect())
}

fn quota(workspace: &str, wanted: &Wanted) -> Result<Quota, Problem> {
    let read = |key: &str, value: &Option<Value>, parse: fn(&str) -> Option<u64>| {
        let Some(value) = value.as_ref().filter(|value| !value.is_null()) else { return Ok(None) };
        let amount = scalar(value).and_then(|text| parse(&text));
        amount
            .map(Some)
            .ok_or_else(|| Problem::bad(format!("`{key}` is not an amount: {value}; write it like `4` or `8Gi`")))
    };
    if wanted.user.chars().any(char::is_control) || wanted.user.chars().count() > 100 {
        return Err(Problem::bad("`user` must have at most 100 characters, none of them control characters"));
    }
    let whom = match (&wanted.team, wanted.user.as_str()) {
        (None, user) => Whom::parse(user),
        (Some(team), "") => Whom::parse(&format!("{TEAM}{team}")),
        (Some(_), _) => return Err(Problem::bad("a quota is for a `user` or for a `team`, not for both")),
    };
    Ok(Quota {
        workspace: workspace.to_owned(),
        whom,
        target: wanted.target.clone().filter(|target| !target.is_empty()),
        limits: Limits {
            cpu_milli: read("cpus", &wanted.cpus, parse_cpu)?,
            memory_bytes: read("memory", &wanted.memory, parse_bytes)?,
            gpus: wanted.gpus,
            jobs: wanted.jobs,
        },
    })
}

fn view(quota: &Quota, by: &[(String, Limits)]) -> Value {
    let team = match &quota.whom {
        Whom::Team { name, .. } => Some(name),
        Whom::All | Whom::Each | Whom::One(_) => None,
    };
    let amounts = |limits: &Limits| {
        json!({
            "cpus": limits.cpu_milli.map(|milli| milli as f64 / 1000.0), "memoryBytes": limits.memory_bytes,
            "gpus": limits.gpus, "jobs": limits.jobs,
        })
    };
    let in_use: Vec<Value> = by
        .iter()
        .map(|(person, used)| {
            let mut one = amounts(used);
            one["user"] = json!(person);
            one
        })
        .collect();
    json!({
        "user": quota.whom.kept(), "team": team, "target": quota.target, "limits": amounts(&quota.limits),
        "described": format!("{}: {}", quota.called(), quota.limits.humane()), "inUse": in_use,
    })
}
