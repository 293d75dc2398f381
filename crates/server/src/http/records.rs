//! Resources kept as their clients sent them: schedules, online and batch endpoints, and their deployments. What serves
//! for an online deployment is kept beside its record (`serving`), when a schedule is due (`schedule`), and a call of a
//! batch endpoint is a job (`batch`).
//!
//! Invariants: what comes in comes back, unknown fields too; a record never claims to work; keys are sealed and shown by
//! the calls that exist for it alone.

pub(crate) mod batch;
mod check;
mod health;
pub(crate) mod keys;
mod kind;
pub(crate) mod references;
pub(crate) mod schedule;
pub(crate) mod serving;
pub(crate) mod traffic;
mod view;

pub(crate) use kind::Kind;

use super::{
    Asked, At, Body, archived,
    change::{self, Conditions, Halt, Shown},
    operations::{self, Ticket},
    paging::{self, Cut, Paging},
};
use crate::{app::App, auth::Caller, problem::Problem};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::Uri,
};
use serde_json::Value;
use std::sync::Arc;
use store::{RecordFilter, RecordKey, RecordRow, Tx, WorkspaceRow};

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    Extension(kind): Extension<Kind>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let (workspace, paging) = (app.workspace(&at.workspace).await?, Paging::of(&asked)?);
    let key = kind.key(&workspace.name, &at);
    let hidden = archived(&asked);
    let wanted = asked.clone();
    let then = app.clone();
    let page = change::look(&app, move |tx| {
        parent_there(tx, kind, &key)?;
        let tags = |row: &RecordRow| paging::tagged(&wanted, view::tags(row).as_ref());
        let read = |after: &str, limit| {
            tx.records(&RecordFilter {
                workspace: key.workspace.clone(),
                kind: key.kind.clone(),
                parent: key.parent.clone(),
                archived: hidden,
                after: after.to_owned(),
                limit,
            })
        };
        let cut = paging.fill(read, tags, |row| row.key.name.clone())?;
        let live = |row: RecordRow| Ok((live(&then, tx, kind, &row)?, row));
        Ok(Cut { items: cut.items.into_iter().map(live).collect::<Result<Vec<_>, store::Error>>()?, next: cut.next })
    })
    .await?;
    Ok(Json(page.shown(&app, &uri, &asked, |(live, row)| view::of(&app, &workspace, kind, row, live.as_ref()))))
}

pub(crate) async fn show(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(kind): Extension<Kind>,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = kind.key(&workspace.name, &at);
    let then = app.clone();
    let found = change::look(&app, move |tx| {
        let row = find(tx, kind, &key)?;
        Ok((live(&then, tx, kind, &row)?, row))
    });
    let (live, row) = found.await?;
    Ok(Shown::found(view::of(&app, &workspace, kind, &row, live.as_ref())))
}

pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(kind): Extension<Kind>,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let change = Change { conditions, ..Change::whole(kind, kind.key(&workspace.name, &at), caller.name) };
    write(&app, &workspace, change, body).await
}

/// Changes what a client names and leaves the rest.
pub(crate) async fn patch(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(kind): Extension<Kind>,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let change = Change { kind, key: kind.key(&workspace.name, &at), by: caller.name, conditions, whole: false };
    write(&app, &workspace, change, body).await
}

/// A write of one record.
pub(crate) struct Change {
    kind: Kind,
    key: RecordKey,
    by: String,
    conditions: Conditions,
    /// The body is all of it, not a part.
    whole: bool,
}

impl Change {
    /// All of a record, whatever is there.
    pub(crate) fn whole(kind: Kind, key: RecordKey, by: String) -> Change {
        Change { kind, key, by, conditions: Conditions::default(), whole: true }
    }
}

pub(crate) async fn write(
    app: &App,
    workspace: &Arc<WorkspaceRow>,
    change: Change,
    body: Value,
) -> Result<Shown, Problem> {
    change.kind.check_name(&change.key)?;
    if !body.is_object() {
        return Err(Problem::bad(format!("{} is not a JSON object", change.kind.called(&change.key))));
    }
    let kind = change.kind;
    let ticket = Ticket::new(app, &workspace.subscription);
    let (done, place, then) = (ticket.clone(), Arc::clone(workspace), app.clone());
    let (row, existed, live) = change::change(app, move |tx| {
        let (row, existed) = record(&then, &place, tx, &change, body, &done)?;
        let live = live(&then, tx, kind, &row)?;
        Ok((row, existed, live))
    })
    .await?;
    let shown = Shown::made(view::of(app, workspace, kind, &row, live.as_ref()), existed);
    Ok(shown.tracked(operations::ASYNC, &ticket.status_url()))
}

/// What is at work for a record.
enum Live {
    Serving(serving::Live),
    Schedule(Box<schedule::Live>),
}

fn live(app: &App, tx: &mut Tx<'_>, kind: Kind, row: &RecordRow) -> Result<Option<Live>, store::Error> {
    Ok(match kind {
        Kind::OnlineDeployment => serving::live(tx, &row.key)?.map(Live::Serving),
        Kind::OnlineEndpoint => Some(Live::Serving(serving::endpoint(app, tx, row)?)),
        Kind::Schedule => schedule::live(app, tx, &row.key)?.map(|live| Live::Schedule(Box::new(live))),
        _ => None,
    })
}

/// Changes parts of a deployment on behalf of a schedule, as its client would.
pub(crate) fn amend_deployment(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    (endpoint, name): (&str, &str),
    patch: Value,
    by: &str,
) -> Result<(), Halt> {
    let kind = Kind::OnlineDeployment;
    let key = RecordKey {
        workspace: workspace.name.clone(),
        kind: kind.table().to_owned(),
        parent: endpoint.to_owned(),
        name: name.to_owned(),
    };
    let ticket = Ticket::new(app, &workspace.subscription);
    let change = Change { whole: false, ..Change::whole(kind, key, by.to_owned()) };
    record(app, workspace, tx, &change, patch, &ticket).map(drop)
}

fn record(
    app: &App,
    workspace: &WorkspaceRow,
    tx: &mut Tx<'_>,
    change: &Change,
    sent: Value,
    ticket: &Ticket,
) -> Result<(RecordRow, bool), Halt> {
    let (kind, key, now) = (change.kind, &change.key, app.now());
    parent_there(tx, kind, key)?;
    let before = tx.record(key)?;
    change.conditions.hold(&kind.called(key), before.as_ref().map(view::mark).as_deref())?;
    let mut body = match (&before, change.whole) {
        (_, true) => sent,
        (Some(row), false) => {
            let mut merged = serde_json::from_str(&row.body).unwrap_or_default();
            change::merge(&mut merged, &sent);
            merged
        }
        (None, false) => return Err(missing(tx, kind, key)?.into()),
    };
    let given = view::settle(&mut body);
    check::body(app, workspace, tx, kind, key, &body)?;
    if kind == Kind::Schedule {
        crate::calendar::rehearse(app, workspace, tx, (key, &body, &change.by))?;
    }
    if kind == Kind::BatchDeployment {
        batch::deploy(app, workspace, tx, (key, &body["properties"], &change.by))?;
    }
    let pending =
        kind == Kind::OnlineDeployment && serving::deploy(app, workspace, tx, (key, &body, &change.by), ticket)?;
    ticket.begun(tx, &workspace.name, &view::id(workspace, kind, key), now)?;
    if !pending {
        tx.end_operation(ticket.id(), None, now)?;
    }
    let hide = body["properties"]["isArchived"].as_bool();
    let row = match before.clone() {
        Some(mut row) => {
            (row.body, row.changed_at) = (body.to_string(), now);
            row.archived = hide.unwrap_or(row.archived);
            tx.put_record(&mut row)?;
            row
        }
        None => {
            let row = RecordRow {
                key: key.clone(),
                body: body.to_string(),
                archived: hide.unwrap_or(false),
                created_by: change.by.clone(),
                created_at: now,
                changed_at: now,
                version: 1,
            };
            tx.insert_record(&row)?;
            row
        }
    };
    if kind == Kind::OnlineEndpoint {
        keys::keep(app, tx, key, given.as_ref())?;
    }
    if kind == Kind::Schedule {
        schedule::switch(tx, &row, before.as_ref(), now)?;
    }
    Ok((row, before.is_some()))
}

pub(crate) async fn delete(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(kind): Extension<Kind>,
    conditions: Conditions,
) -> Result<Shown, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let (key, now) = (kind.key(&workspace.name, &at), app.now());
    let ticket = Ticket::new(&app, &workspace.subscription);
    let (done, resource) = (ticket.clone(), view::id(&workspace, kind, &key));
    change::change(&app, move |tx| {
        let row = find(tx, kind, &key)?;
        conditions.hold(&kind.called(&key), Some(&view::mark(&row)))?;
        leave(tx, kind, &key, now)?;
        tx.delete_record(&key)?;
        done.begun(tx, &key.workspace, &resource, now)?;
        let pending = kind == Kind::OnlineDeployment && serving::retire(tx, &serving::key_of(&key), done.id(), now)?;
        if !pending {
            tx.end_operation(done.id(), None, now)?;
        }
        Ok(())
    })
    .await?;
    Ok(Shown::accepted().tracked(operations::LOCATION, &ticket.result_url()))
}

/// What must happen before a record may go: an endpoint takes its deployments along, a deployment must carry no traffic.
fn leave(tx: &mut Tx<'_>, kind: Kind, key: &RecordKey, now: domain::Timestamp) -> Result<(), Halt> {
    if let Some(child) = kind.child() {
        tx.delete_records_under(&key.workspace, child.table(), &key.name)?;
    }
    if kind == Kind::OnlineEndpoint {
        for row in tx.servings_of(&key.workspace, &key.name)? {
            serving::retire(tx, &row.key, "", now)?;
        }
    }
    if kind == Kind::Schedule {
        tx.forget_schedule(&key.workspace, &key.name)?;
    }
    let Some(parent) = kind.parent() else { return Ok(()) };
    let Some(mut endpoint) = tx.record(&parent.above(key))? else { return Ok(()) };
    let mut body: Value = serde_json::from_str(&endpoint.body).unwrap_or_default();
    let live = body["properties"]["traffic"][&key.name].as_u64().unwrap_or(0);
    if live > 0 {
        return Err(Problem::conflict(format!(
            "deployment `{}` carries {live} % of the traffic of endpoint `{}`; give that to another deployment first",
            key.name, key.parent
        ))
        .into());
    }
    let mut changed = false;
    for map in ["traffic", "mirrorTraffic"] {
        let entries = body["properties"].get_mut(map).and_then(Value::as_object_mut);
        changed |= entries.is_some_and(|entries| entries.remove(&key.name).is_some());
    }
    if body["properties"]["defaults"]["deploymentName"] == key.name.as_str() {
        body["properties"]["defaults"] = serde_json::json!({});
        changed = true;
    }
    if changed {
        (endpoint.body, endpoint.changed_at) = (body.to_string(), now);
        tx.put_record(&mut endpoint)?;
    }
    Ok(())
}

pub(crate) fn find(tx: &mut Tx<'_>, kind: Kind, key: &RecordKey) -> Result<RecordRow, Halt> {
    parent_there(tx, kind, key)?;
    match tx.record(key)? {
        Some(row) => Ok(row),
        None => Err(missing(tx, kind, key)?.into()),
    }
}

fn missing(tx: &mut Tx<'_>, kind: Kind, key: &RecordKey) -> Result<Problem, store::Error> {
    let names = tx.record_names(&key.workspace, &key.kind, &key.parent)?;
    Ok(Problem::missing(kind.noun(), &key.name, &names))
}

/// A deployment stands under an endpoint that is there.
fn parent_there(tx: &mut Tx<'_>, kind: Kind, key: &RecordKey) -> Result<(), Halt> {
    let Some(parent) = kind.parent() else { return Ok(()) };
    let above = parent.above(key);
    match tx.record(&above)? {
        Some(_) => Ok(()),
        None => Err(missing(tx, parent, &above)?.into()),
    }
}
