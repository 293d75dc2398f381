//! Workspaces: the unit of sharing. Every server has one from its first start.
//!
//! Invariants: a name stands for one workspace on the whole server; what a workspace held goes with it, files too.

pub(crate) mod template;
mod view;

use super::{
    Asked, At, Body,
    change::{self, Conditions, Halt, Shown},
    operations::{self, Ticket},
    paging::{self, Paging},
};
use crate::{app::App, auth::Caller, problem::Problem};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::Uri,
};
use domain::{Role, names::WorkspaceName};
use serde_json::{Value, json};
use std::sync::Arc;
use store::{DatastoreRow, Tx, WorkspaceRow};

/// The stores every workspace has.
pub(crate) const BLOB_STORE: &str = "workspaceblobstore";
pub(crate) const ARTIFACT_STORE: &str = "workspaceartifactstore";

/// Workspaces of a subscription, or of one group in it, that the caller may look at.
pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(&asked)?;
    let mut rows = app.store.read(|tx| tx.workspaces()).await?;
    rows.retain(|row| caller.may(&row.name, Role::Reader) && stands_at(row, &at));
    rows.retain(|row| paging::tagged(&asked, view::tags(row).as_ref()));
    Ok(Json(paging.cut(rows, |row| row.name.clone()).shown(&app, &uri, &asked, |row| view::of(&app, row))))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Shown, Problem> {
    let row = find(&app, &at).await?;
    Ok(Shown::found(view::of(&app, &row)))
}

/// Creates a workspace, or changes what a client names of one.
pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let (row, _) = make(&app, &at, conditions, body).await?;
    // Clients wait for a workspace by its state, and take no other status than this.
    Ok(Shown::found(view::of(&app, &row)))
}

pub(crate) async fn patch(
    State(app): State<App>,
    Path(at): Path<At>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let row = find(&app, &at).await?;
    let at = At { workspace: row.name.clone(), ..at };
    let (row, _) = make(&app, &at, conditions, body).await?;
    Ok(Shown::found(view::of(&app, &row)))
}

/// Makes a workspace under the subscription and group of an address, or changes the one that is there.
async fn make(app: &App, at: &At, conditions: Conditions, body: Value) -> Result<(WorkspaceRow, bool), Problem> {
    WorkspaceName::parse(&at.workspace).map_err(|bad| Problem::bad(bad.to_string()))?;
    check_place(at)?;
    view::check(&at.workspace, &body)?;
    let fresh = new_row(app, at);
    let files = app.files.clone();
    let (asked_at, now, unique) = (at.place(), app.now(), fresh.id.clone());
    let made = change::change(app, move |tx| {
        let before = tx.workspace(&fresh.name)?;
        let called = format!("workspace `{}`", fresh.name);
        conditions.hold(&called, before.as_ref().map(view::mark).as_deref())?;
        let existed = before.is_some();
        let mut row = match before {
            Some(row) if stands_at(&row, &asked_at) => row,
            Some(row) => return Err(taken(&row).into()),
            None => {
                // What a workspace of this name left behind is not this one's.
                files.set_aside(&fresh.name, &unique)?;
                add_stores(tx, &fresh)?;
                fresh
            }
        };
        row.body = view::merged(&row, &body).to_string();
        row.changed_at = now;
        tx.put_workspace(&row)?;
        Ok((row, existed))
    })
    .await?;
    app.reload_workspaces().await?;
    Ok(made)
}

/// Removes a workspace in which nothing runs, with its records and files.
pub(crate) async fn delete(
    State(app): State<App>,
    Path(at): Path<At>,
    conditions: Conditions,
) -> Result<Shown, Problem> {
    let row = find(&app, &at).await?;
    if row.name == app.settings.workspace {
        return Err(Problem::conflict(format!("`{}` is this server's default workspace and stays", row.name)));
    }
    let ticket = Ticket::new(&app, &row.subscription);
    let (done, gone, now) = (ticket.clone(), Arc::clone(&row), app.now());
    let deleted = change::change(&app, move |tx| {
        let current = tx.workspace(&gone.name)?.map(|row| view::mark(&row));
        conditions.hold(&format!("workspace `{}`", gone.name), current.as_deref())?;
        match tx.delete_workspace(&gone.name) {
            Err(store::Error::Conflict) => Err(Halt::from(Problem::conflict(format!(
                "workspace `{}` has jobs that have not ended; cancel them first",
                gone.name
            )))),
            other => Ok(other?),
        }?;
        Ok(done.done(tx, "", &view::id(&gone), now)?)
    })
    .await;
    app.reload_workspaces().await?;
    deleted?;
    // Its roles went with it, and must not wait for another workspace of the same name.
    app.tokens.principals.refresh(&app.store).await?;
    let files = app.files.clone();
    // In the writer's turn: another workspace of the same name is made before it, and has set these files aside itself,
    // or after it.
    let taken = move |tx: &mut store::Tx<'_>| match tx.workspace(&row.name)? {
        None => files.set_aside(&row.name, &row.id),
        Some(_) => Ok(()),
    };
    app.store.write(taken).await?;
    let files = app.files.clone();
    let removed = tokio::task::spawn_blocking(move || files.remove_set_aside());
    removed.await.map_err(|_| store::Error::Closed)??;
    Ok(Shown::accepted().tracked(operations::LOCATION, &ticket.result_url()))
}

/// Keys of the services a workspace is made of elsewhere. Here it has none: its stores are opened by signed links.
pub(crate) async fn keys(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let row = find(&app, &at).await?;
    Ok(Json(json!({
        "userStorageKey": null, "userStorageResourceId": view::part(&row, "Microsoft.Storage/storageAccounts"),
        "appInsightsInstrumentationKey": null, "containerRegistryCredentials": null, "notebookAccessKeys": null,
    })))
}

/// The workspace of an address, which must name its subscription and group as well.
async fn find(app: &App, at: &At) -> Result<Arc<WorkspaceRow>, Problem> {
    let row = app.workspace(&at.workspace).await?;
    if stands_at(&row, at) {
        return Ok(row);
    }
    let mut problem = Problem::not_found("workspace", &at.workspace);
    problem.message += &format!(
        " in subscription `{}`, resource group `{}`; there is one in subscription `{}`, resource group `{}`",
        at.subscription, at.group, row.subscription, row.resource_group
    );
    Err(problem)
}

/// Whether a workspace stands where an address says; an address may leave the group out.
fn stands_at(row: &WorkspaceRow, at: &At) -> bool {
    row.subscription.eq_ignore_ascii_case(&at.subscription)
        && (at.group.is_empty() || row.resource_group.eq_ignore_ascii_case(&at.group))
}

fn taken(row: &WorkspaceRow) -> Problem {
    Problem::conflict(format!(
        "there is a workspace `{}` in subscription `{}`, resource group `{}`, and names are given once on a server; choose \
         another name",
        row.name, row.subscription, row.resource_group
    ))
}

/// Subscriptions and groups are words of the client's choice, but must fit in a path.
pub(crate) fn check_place(at: &At) -> Result<(), Problem> {
    let good = |text: &str| {
        !text.is_empty() && text.len() <= 90 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.()".contains(&b))
    };
    for (noun, text) in [("subscription", &at.subscription), ("resource group", &at.group)] {
        if !good(text) {
            let shown: String = text.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(Problem::bad(format!(
                "`{shown}` cannot be a {noun}: write 1 to 90 letters, digits, `-`, `_`, `.`, `(` and `)`"
            )));
        }
    }
    Ok(())
}

/// Makes the default workspace at first start.
pub(crate) async fn ensure_default(app: &App) -> Result<(), store::Error> {
    let settings = &app.settings;
    let row = new_row(
        app,
        &At {
            subscription: settings.subscription.clone(),
            group: settings.resource_group.clone(),
            workspace: settings.workspace.clone(),
            ..At::default()
        },
    );
    let files = app.files.clone();
    // What an earlier server had set aside to remove.
    let cleared = tokio::task::spawn_blocking(move || {
        files.remove_unfinished_copies();
        files.remove_set_aside()
    });
    cleared.await.map_err(|_| store::Error::Closed)??;
    app.store
        .write(move |tx| {
            if tx.workspace(&row.name)?.is_none() {
                tx.put_workspace(&row)?;
                add_stores(tx, &row)?;
            }
            Ok(())
        })
        .await?;
    app.reload_workspaces().await
}

fn new_row(app: &App, at: &At) -> WorkspaceRow {
    let now = app.now();
    WorkspaceRow {
        name: at.workspace.clone(),
        id: guid(app.store.keyring().random()),
        subscription: at.subscription.clone(),
        resource_group: at.group.clone(),
        body: "{}".into(),
        created_at: now,
        changed_at: now,
    }
}

fn add_stores(tx: &mut Tx<'_>, row: &WorkspaceRow) -> Result<(), store::Error> {
    for (name, is_default) in [(BLOB_STORE, true), (ARTIFACT_STORE, false)] {
        let store = DatastoreRow {
            name: name.to_owned(),
            body: json!({"description": "kept by this server"}).to_string(),
            is_default,
            has_secret: false,
            created_at: row.created_at,
            changed_at: row.created_at,
        };
        tx.put_datastore(&row.name, &store, None)?;
    }
    Ok(())
}

/// A GUID from 16 random bytes.
pub(crate) fn guid(bytes: [u8; 16]) -> String {
    let hex = store::secrets::hex(&bytes);
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}
