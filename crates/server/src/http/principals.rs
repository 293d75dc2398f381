//! Who may call, their roles, the audit, and the key that signs tokens.

use super::{Asked, At, Body, views};
use crate::{
    app::App,
    auth::{Caller, digest, own_token},
    problem::Problem,
};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::StatusCode,
};
use domain::{Role, Timestamp, access::EVERYWHERE, sharing::quota::TEAM};
use serde::Deserialize;
use serde_json::{Value, json};
use store::{AuditRow, PrincipalRow, secrets::hex};

const PAGE: i64 = 100;
const PAGE_MOST: i64 = 1000;
const DAY_MS: i64 = 86_400_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct New {
    name: String,
    role: String,
    /// Or a registry, with `@`. Absent for all of them.
    workspace: Option<String>,
    expires_in_days: Option<f64>,
}

pub(crate) async fn list(State(app): State<App>) -> Result<Json<Value>, Problem> {
    let rows = app.store.read(|tx| tx.principals()).await?;
    let now = app.now();
    Ok(Json(views::page(rows.iter().map(|row| view(row, now)).collect(), None)))
}

/// Registers someone. The secret is in this answer and nowhere else.
pub(crate) async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(new): Body<New>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let fits = !new.name.is_empty() && new.name.chars().count() <= 100 && !new.name.chars().any(char::is_control);
    if !fits {
        return Err(Problem::bad("`name` must have 1 to 100 characters, none of them control characters"));
    }
    if new.name.starts_with(TEAM) {
        return Err(Problem::bad(format!("`name` must not begin with `{TEAM}`, which is how a team is written")));
    }
    let role = role(&new.role)?;
    let workspace = match &new.workspace {
        Some(name) => app.owner(name).await?.name.clone(),
        None => EVERYWHERE.to_owned(),
    };
    let days = new.expires_in_days.unwrap_or(365.0);
    if !(days > 0.0 && days <= 3650.0) {
        return Err(Problem::bad("`expiresInDays` must be more than 0 and at most 3650"));
    }
    let now = app.now();
    let secret = hex(&app.store.keyring().random::<32>());
    let row = PrincipalRow {
        id: super::workspaces::guid(app.store.keyring().random()),
        name: new.name,
        digest: digest(&secret),
        created_by: caller.name,
        created_at: now,
        expires_at: Some(Timestamp(now.0 + (days * DAY_MS as f64) as i64)),
        revoked_at: None,
        roles: [(workspace, role)].into(),
    };
    let written = row.clone();
    app.store.write(move |tx| tx.insert_principal(&written)).await?;
    app.tokens.principals.refresh(&app.store).await?;
    let mut shown = view(&row, now);
    shown["clientSecret"] = json!(secret);
    shown["token"] = json!(own_token(&row.id, &secret));
    Ok((StatusCode::CREATED, Json(shown)))
}

/// Ends someone's access. Tokens they hold are refused from this moment.
pub(crate) async fn revoke(State(app): State<App>, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    let id = find(&app, &id).await?.id;
    let now = app.now();
    app.store.write(move |tx| tx.revoke_principal(&id, now)).await?;
    app.tokens.principals.refresh(&app.store).await?;
    Ok(StatusCode::OK)
}

/// Who has a role in a workspace or, under its name with `@`, in a registry.
pub(crate) async fn roles(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.owner(&at.workspace).await?;
    let rows = app.store.read(|tx| tx.principals()).await?;
    let here = rows.iter().flat_map(|row| {
        let mine = row.roles.iter().filter(|(name, _)| *name == EVERYWHERE || **name == workspace.name);
        mine.map(|(name, role)| json!({"principal": row.id, "name": row.name, "role": role, "workspace": name}))
    });
    Ok(Json(views::page(here.collect(), None)))
}

pub(crate) async fn grant(
    State(app): State<App>,
    Path(at): Path<At>,
    Body(asked): Body<Value>,
) -> Result<Json<Value>, Problem> {
    let workspace = app.owner(&at.workspace).await?;
    let role = role(asked.get("role").and_then(Value::as_str).unwrap_or_default())?;
    let mut row = find(&app, &at.name).await?;
    let (id, place) = (row.id.clone(), workspace.name.clone());
    app.store.write(move |tx| tx.grant(&id, &place, role)).await?;
    app.tokens.principals.refresh(&app.store).await?;
    // What someone may do elsewhere is no business of this workspace's owner.
    row.roles = [(workspace.name.clone(), role)].into();
    Ok(Json(view(&row, app.now())))
}

pub(crate) async fn ungrant(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    let workspace = app.owner(&at.workspace).await?;
    let row = find(&app, &at.name).await?;
    let place = workspace.name.clone();
    let gone = app.store.write(move |tx| tx.ungrant(&row.id, &place)).await?;
    app.tokens.principals.refresh(&app.store).await?;
    Ok(if gone { StatusCode::OK } else { StatusCode::NO_CONTENT })
}

/// The audit of the whole server.
pub(crate) async fn audit(State(app): State<App>, Query(asked): Asked) -> Result<Json<Value>, Problem> {
    audit_page(&app, None, "/admin/v1/audit".into(), &asked).await
}

/// The audit of one workspace.
pub(crate) async fn workspace_audit(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let path = format!("{}/audit", crate::app::scope(&workspace).path());
    audit_page(&app, Some(workspace.name.clone()), path, &asked).await
}

/// Makes a new key that signs tokens from now on.
pub(crate) async fn rotate(State(app): State<App>) -> Result<Json<Value>, Problem> {
    app.store.record_act().await?;
    let id = app.tokens.keys.rotate(app.store.keyring(), app.now())?;
    Ok(Json(json!({"key": id})))
}

async fn audit_page(
    app: &App,
    workspace: Option<String>,
    path: String,
    asked: &std::collections::HashMap<String, String>,
) -> Result<Json<Value>, Problem> {
    let number = |key: &str| asked.get(key).and_then(|text| text.parse::<i64>().ok());
    let (before, limit) = (number("$skipToken"), number("$top").unwrap_or(PAGE).clamp(1, PAGE_MOST));
    let rows = app.store.read(move |tx| tx.audit(workspace.as_deref(), before, limit)).await?;
    let full = i64::try_from(rows.len()).is_ok_and(|n| n == limit);
    let next =
        rows.last().filter(|_| full).map(|last| format!("{}{path}?$top={limit}&$skipToken={}", app.url, last.id));
    Ok(Json(views::page(rows.iter().map(line).collect(), next)))
}

fn line(row: &AuditRow) -> Value {
    json!({
        "at": row.at.iso(), "caller": row.caller, "workspace": row.workspace, "operation": row.route, "method": row.method,
        "path": row.path, "result": if row.status == 200 { "done" } else { "refused" }, "status": row.status,
    })
}

/// Someone by id. Owners of one workspace ask too, so a wrong id does not tell the others.
async fn find(app: &App, id: &str) -> Result<PrincipalRow, Problem> {
    let rows = app.store.read(|tx| tx.principals()).await?;
    rows.into_iter().find(|row| row.id == id).ok_or_else(|| Problem::not_found("principal", id))
}

fn role(word: &str) -> Result<Role, Problem> {
    let known = Role::ALL.map(Role::as_str).join(", ");
    Role::parse(word)
        .ok_or_else(|| Problem::bad(format!("`role` must be one of {known}, not `{}`", word.escape_default())))
}

fn view(row: &PrincipalRow, now: Timestamp) -> Value {
    let state = match (row.revoked_at, row.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(at)) if at <= now => "expired",
        _ => "active",
    };
    json!({
        "clientId": row.id, "name": row.name, "roles": row.roles, "state": state, "createdBy": row.created_by,
        "createdAt": row.created_at.iso(), "expiresAt": row.expires_at.map(Timestamp::iso),
        "revokedAt": row.revoked_at.map(Timestamp::iso),
    })
}
