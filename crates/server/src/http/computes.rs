//! Compute targets. `local`, this machine, is in every workspace; a target of kind `Kubernetes` is a namespace of a
//! cluster, one of kind `VirtualMachine`, `Slurm` or `AmlCompute` is looked after by a steward, a `Pool` names others; targets of other kinds are kept as records that say they cannot run work yet.
//!
//! Invariants: passwords and keys are sealed on their way in and never shown; only what runs work says `Succeeded`.

pub(crate) mod check;
mod detach;
mod kubernetes;
mod managed;
pub(crate) mod offers;
pub(crate) mod usage;
mod view;

pub(crate) use managed::preempt;

use super::{
    Asked, At, Body,
    change::{self, Conditions, Halt, Shown},
    clusters::attach,
    operations::{self, Ticket},
    paging::Paging,
};
use crate::{app::App, auth::Caller, problem::Problem, resolve};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::{StatusCode, Uri},
};
use domain::{Job, names::ComputeName};
use serde_json::{Value, json};
use store::{ComputeRow, InUse, NodeRow, Tx, WorkspaceRow};

pub(crate) const LOCAL: &str = "local";

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let (workspace, paging) = (app.workspace(&at.workspace).await?, Paging::of(&asked)?);
    let name = workspace.name.clone();
    let (rows, here, on) = app
        .store
        .read(move |tx| {
            let rows = tx.computes(&name)?;
            let on = rows.iter().map(|row| kubernetes::On::of(tx, &name, row)).collect::<Result<Vec<_>, _>>()?;
            Ok((rows, Here::look(tx)?, on))
        })
        .await?;
    // Who wants to see every node asks once, not once for each target.
    let with_nodes = asked.get("nodes").is_some_and(|word| word == "true");
    let listed = |mut item: Value, row: Option<&ComputeRow>, on: Option<&kubernetes::On>| {
        if with_nodes {
            item["properties"]["nodes"] = here.listed(&app, &workspace.name, row, on);
        }
        item
    };
    let others = rows.iter().zip(&on).filter(|(row, _)| row.name != LOCAL);
    let others = others.map(|(row, on)| listed(view::of(&workspace, row, on.as_ref()), Some(row), on.as_ref()));
    let local = listed(view::local(&app, &workspace, &here.nodes, &here.in_use), None, None);
    let all = std::iter::once(local).chain(others);
    let wanted = |item: &Value| {
        let kind = asked.get("computeType").or_else(|| asked.get("type"));
        kind.is_none_or(|kind| item["properties"]["computeType"].as_str().is_some_and(|k| k.eq_ignore_ascii_case(kind)))
    };
    // This machine comes first, the others by name.
    let place = |item: &Value| match item["name"].as_str() {
        Some(LOCAL) | None => "0".to_owned(),
        Some(name) => format!("1{name}"),
    };
    Ok(Json(paging.cut(all.filter(wanted), place).shown(&app, &uri, &asked, Value::clone)))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    if at.name.eq_ignore_ascii_case(LOCAL) {
        let here = app.store.read(Here::look).await?;
        return Ok(Shown::found(view::local(&app, &workspace, &here.nodes, &here.in_use)));
    }
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let (row, on) = change::look(&app, move |tx| {
        let row = find(tx, &key, &name)?;
        let on = kubernetes::On::of(tx, &key, &row)?;
        Ok((row, on))
    })
    .await?;
    let mut view = view::of(&workspace, &row, on.as_ref());
    if let Some(on) = &on {
        view["properties"]["properties"]["nodes"] = on.nodes();
        view["properties"]["properties"]["keptData"] = on.kept();
    }
    Ok(Shown::found(view))
}

pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    ComputeName::parse(&at.name).map_err(|bad| Problem::bad(bad.to_string()))?;
    stays(&at.name, "be replaced")?;
    write(&app, (&workspace, caller), &at.name, conditions, move |_| Ok(body)).await
}

/// Changes what a client names and leaves the rest.
pub(crate) async fn patch(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    stays(&at.name, "be changed")?;
    let name = at.name.clone();
    write(&app, (&workspace, caller), &at.name, conditions, move |before| {
        let before = before.ok_or_else(|| Problem::not_found("compute target", &name))?;
        let mut merged: Value = serde_json::from_str(&before.body).unwrap_or_default();
        change::merge(&mut merged, &check::inner_form(body));
        Ok(merged)
    })
    .await
}

/// Checks a target and keeps it, with the operation clients ask after.
async fn write(
    app: &App,
    (workspace, caller): (&WorkspaceRow, Caller),
    name: &str,
    conditions: Conditions,
    body: impl FnOnce(Option<&ComputeRow>) -> Result<Value, Problem> + Send + 'static,
) -> Result<Shown, Problem> {
    let (key, name, now) = (workspace.name.clone(), name.to_owned(), app.now());
    let ticket = Ticket::new(app, &workspace.subscription);
    let (done, resource) = (ticket.clone(), view::id(workspace, &name));
    let (place, then) = (workspace.clone(), app.clone());
    let (row, on, existed) = change::change(app, move |tx| {
        let before = tx.compute(&key, &name)?;
        if before.as_ref().is_some_and(is_leaving) {
            return Err(Problem::conflict(format!("compute target `{name}` is being deleted; wait for that")).into());
        }
        conditions.hold(&format!("compute target `{name}`"), before.as_ref().map(view::mark).as_deref())?;
        let mut body = body(before.as_ref())?;
        let secrets = check::take_secrets(&mut body);
        let kind = check::body(&name, &mut body)?;
        if [kubernetes::KIND, check::MACHINE, check::SLURM, managed::KIND].contains(&kind.name) {
            kubernetes::forget_shown(&mut body);
        }
        check::same_kind(&name, before.as_ref(), kind)?;
        if let Some(before) = before.as_ref().filter(|_| kind.name == managed::KIND) {
            managed::stays_put(tx, &key, before, &body, &secrets)?;
        }
        let row = ComputeRow {
            name: before.as_ref().map_or(name, |row| row.name.clone()),
            body: body.to_string(),
            created_at: before.as_ref().map_or(now, |row| row.created_at),
            changed_at: now,
        };
        if check::is_pool(&row) {
            pool(tx, &key, &row)?;
        }
        let attached = match kind.name {
            kubernetes::KIND => Some(attach::plan(&then, tx, (&place, &row, &caller), &done, now)?),
            check::MACHINE | check::SLURM | managed::KIND => Some(attach::site(&then, (&place, &row), &done, now)),
            _ => None,
        };
        tx.put_compute(&key, &row, (!secrets.is_empty()).then_some(&secrets))?;
        match attached {
            Some(attached) => {
                done.begun(tx, &key, &resource, now)?;
                attached.put(tx, now)?;
            }
            None => done.done(tx, &key, &resource, now)?,
        }
        let on = kubernetes::On::of(tx, &key, &row)?;
        Ok((row, on, before.is_some()))
    })
    .await?;
    let view = view::of(workspace, &row, on.as_ref());
    Ok(Shown::made(view, existed).tracked(operations::ASYNC, &ticket.status_url()))
}

/// Forgets a target. `Delete` and `Detach` mean the same: what lies behind it stays. With `force`, jobs there are canceled
/// first, and machines that do not answer are not waited for; without it both stand in the way.
pub(crate) async fn delete(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    stays(&at.name, "be removed")?;
    if let Some(action) = asked.get("underlyingResourceAction")
        && !["Delete", "Detach"].iter().any(|known| known.eq_ignore_ascii_case(action))
    {
        return Err(Problem::bad(format!("`underlyingResourceAction` is `Delete` or `Detach`, not `{action}`")));
    }
    let (key, name, now) = (workspace.name.clone(), at.name.clone(), app.now());
    let forced = asked.get("force").is_some_and(|word| word.eq_ignore_ascii_case("true"));
    let ended = match forced {
        true => detach::clear(&app, &workspace.name, &name, &caller.name).await?,
        false => Value::Null,
    };
    let ticket = Ticket::new(&app, &workspace.subscription);
    let (done, resource) = (ticket.clone(), view::id(&workspace, &name));
    change::change(&app, move |tx| {
        let row = find(tx, &key, &name)?;
        conditions.hold(&format!("compute target `{name}`"), Some(&view::mark(&row)))?;
        detach::is_clear(tx, &key, &row.name, forced)?;
        if let (managed::KIND, Some(target)) = (check::kind_of(&row).as_str(), tx.target(&key, &row.name)?) {
            return Ok(managed::delete(tx, (&key, &row), target, (&done, &resource, forced), now)?);
        }
        tx.delete_compute(&key, &row.name)?;
        tx.delete_cluster(&store::site_name(&key, &row.name))?;
        Ok(done.done(tx, &key, &resource, now)?)
    })
    .await?;
    Ok(Shown::accepted().saying(ended).tracked(operations::LOCATION, &ticket.result_url()))
}

/// Start, stop and restart: nothing here can be switched.
pub(crate) async fn power(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    stays(&at.name, "be started or stopped")?;
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let row = change::look(&app, move |tx| find(tx, &key, &name)).await?;
    let kind = check::kind_of(&row);
    Err(Problem::conflict(format!(
        "compute target `{}` cannot be started or stopped: targets of type `{kind}` {}",
        row.name,
        match kind.as_str() {
            kubernetes::KIND | check::MACHINE | check::SLURM => "are always on",
            managed::KIND => "start and stop their nodes by themselves; change `min_instances` and `max_instances`",
            _ => "are kept as records and cannot run work yet; run jobs on `local`",
        }
    )))
}

pub(crate) async fn nodes(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let is_local = at.name.eq_ignore_ascii_case(LOCAL);
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let (here, row, on) = change::look(&app, move |tx| {
        let row = if is_local { None } else { Some(find(tx, &key, &name)?) };
        let on = row.as_ref().map(|row| kubernetes::On::of(tx, &key, row)).transpose()?.flatten();
        Ok((Here::look(tx)?, row, on))
    })
    .await?;
    let nodes = here.listed(&app, &workspace.name, row.as_ref(), on.as_ref());
    Ok(Json(json!({"nodes": nodes, "nextLink": null})))
}

/// What there is of this machine, and what is at work on it.
struct Here {
    nodes: Vec<NodeRow>,
    running: Vec<Job>,
    in_use: InUse,
}

impl Here {
    fn look(tx: &mut Tx<'_>) -> Result<Here, store::Error> {
        Ok(Here { nodes: tx.nodes()?, running: tx.active_jobs(store::HERE)?, in_use: tx.in_use()? })
    }

    /// The nodes of a target as clients list them; of this machine where there is none.
    fn listed(&self, app: &App, workspace: &str, row: Option<&ComputeRow>, on: Option<&kubernetes::On>) -> Value {
        match on {
            Some(on) => on.listed(),
            None if row.is_none_or(check::runs_here) => {
                view::nodes(&self.nodes, &self.running, workspace, app.now()).into()
            }
            None => json!([]),
        }
    }
}

/// The names a job may write, this machine first.
pub(crate) fn with_local(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| name != LOCAL);
    names.insert(0, LOCAL.to_owned());
    names
}

/// Whether all targets of a pool are there, and none is a pool.
fn pool(tx: &mut Tx<'_>, workspace: &str, row: &ComputeRow) -> Result<(), Halt> {
    for target in resolve::pool_settings(row).0 {
        if target.eq_ignore_ascii_case(LOCAL) {
            continue;
        }
        let named = target.eq_ignore_ascii_case(&row.name);
        if named || find(tx, workspace, &target).map(|found| check::is_pool(&found))? {
            let message =
                format!("`{target}` in `targets` of pool `{}` is a pool itself; name targets that run work", row.name);
            return Err(Problem::bad(message).into());
        }
    }
    Ok(())
}

/// This machine is not a resource of the workspace's.
fn stays(name: &str, what: &str) -> Result<(), Problem> {
    match name.eq_ignore_ascii_case(LOCAL) {
        true => Err(Problem::conflict(format!(
            "compute target `local` is the machine this server runs on; it stays as it is and cannot {what} from here"
        ))),
        false => Ok(()),
    }
}

/// Whether it goes as soon as its nodes have gone.
fn is_leaving(row: &ComputeRow) -> bool {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    !body["properties"]["deleting"].is_null()
}

fn find(tx: &mut Tx<'_>, workspace: &str, name: &str) -> Result<ComputeRow, Halt> {
    if let Some(row) = tx.compute(workspace, name)? {
        return Ok(row);
    }
    let names = tx.computes(workspace)?.into_iter().map(|row| row.name).collect();
    Err(Problem::missing("compute target", name, &with_local(names)).into())
}
