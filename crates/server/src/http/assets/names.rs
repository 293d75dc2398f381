//! Names of assets, each with its latest and next version, and what is said of the name itself.

use super::{known, noun, said_of, shipped};
use crate::{
    app::{App, scope},
    auth::Caller,
    http::{
        Asked, At, Body, archived,
        change::{self, Conditions, Shown},
        paging::{self, Paging},
        registries,
        views::{self, Named},
    },
    problem::Problem,
};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::Uri,
};
use domain::curated;
use serde_json::{Value, json};
use store::{Error, RecordRow, Tx};

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let (owner, kind, paging) = (app.owner(&at.owner()).await?, known(&at)?, Paging::of(&asked)?);
    let scope = scope(&owner);
    let shipping =
        at.registry == registries::SHIPPED || asked.get("registry").is_some_and(|name| name == registries::SHIPPED);
    if shipping && kind == "environments" {
        let all = curated::list().iter().map(|c| shipped::view(&scope, c)).collect();
        return Ok(Json(views::page(all, None)));
    }
    let (key, hidden, wanted) = (owner.name.clone(), archived(&asked), asked.clone());
    let page = app
        .store
        .read(move |tx| {
            let read = |after: &str, limit| {
                let names = tx.names_page(&key, &kind, after, limit)?;
                names.into_iter().filter_map(|name| named(tx, &key, &kind, &name).transpose()).collect()
            };
            let keep = |named: &Named| {
                let seen = !named.latest.anonymous() && hidden.is_none_or(|hidden| named.archived() == hidden);
                let called = wanted.get("searchName").or_else(|| wanted.get("searchText"));
                let name = named.latest.key.name.to_lowercase();
                seen && paging::tagged(&wanted, Some(&named.field("tags")))
                    && called.is_none_or(|text| name.contains(&text.to_lowercase()))
            };
            paging.fill(read, keep, |named| named.latest.key.name.clone())
        })
        .await?;
    Ok(Json(page.shown(&app, &uri, &asked, |named| named.view(&scope))))
}

pub(crate) async fn container(State(app): State<App>, Path(at): Path<At>) -> Result<Shown, Problem> {
    let (owner, kind) = (app.owner(&at.owner()).await?, known(&at)?);
    let (key, name) = (owner.name.clone(), at.name.clone());
    let found = app.store.read(move |tx| named(tx, &key, &kind, &name)).await?;
    let scope = scope(&owner);
    match (found, shipped::find(&at.kind, &at.name)) {
        (Some(named), _) => Ok(Shown::found(named.view(&scope))),
        (None, Some(shipped)) => Ok(Shown::found(shipped::name(&scope, shipped))),
        (None, None) => Err(Problem::not_found(noun(&at.kind), &at.name)),
    }
}

/// Says something of a name: that it is archived, its description, tags and properties.
pub(crate) async fn put_container(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    let (owner, kind) = (app.owner(&at.owner()).await?, known(&at)?);
    registries::may_change(&at)?;
    let said = body.get("properties").cloned().unwrap_or_else(|| json!({}));
    if !said.is_object() || said.get("tags").is_some_and(|tags| !tags.is_object() && !tags.is_null()) {
        return Err(Problem::bad(format!(
            "{} `{}` needs `properties`, an object whose `tags` are a map",
            noun(&kind),
            at.name
        )));
    }
    let (key, name, now) = (said_of(&owner.name, &kind, &at.name), at.name.clone(), app.now());
    let named = change::change(&app, move |tx| {
        let Some(before) = named(tx, &key.workspace, &kind, &name)? else {
            let mut problem = Problem::not_found(noun(&kind), &name);
            problem.message += "; create its first version, and the name comes with it";
            return Err(problem.into());
        };
        conditions.hold(&format!("{} `{name}`", noun(&kind)), Some(&before.mark()))?;
        let hide = said.get("isArchived").and_then(Value::as_bool);
        match before.said {
            Some(mut row) => {
                (row.body, row.changed_at) = (kept(&said), now);
                row.archived = hide.unwrap_or(row.archived);
                tx.put_record(&mut row)?;
            }
            None => tx.insert_record(&RecordRow {
                key: key.clone(),
                body: kept(&said),
                archived: hide.unwrap_or(false),
                created_by: caller.name,
                created_at: now,
                changed_at: now,
                version: 1,
            })?,
        }
        Ok(super::names::named(tx, &key.workspace, &kind, &name)?.ok_or(Error::Conflict)?)
    })
    .await?;
    Ok(Shown::made(named.view(&scope(&owner)), true))
}

/// What was said, without what the server knows better.
fn kept(said: &Value) -> String {
    let mut said = said.clone();
    if let Some(map) = said.as_object_mut() {
        map.retain(|key, _| {
            !["latestVersion", "nextVersion", "isArchived", "provisioningState"].contains(&key.as_str())
        });
    }
    said.to_string()
}

/// A name with its latest and next version, if it has any.
pub(super) fn named(tx: &mut Tx<'_>, owner: &str, kind: &str, name: &str) -> Result<Option<Named>, Error> {
    let Some(latest) = tx.latest_asset(owner, kind, name)? else { return Ok(None) };
    let next = tx.next_version(owner, kind, name)?;
    let said = tx.record(&said_of(owner, kind, name))?;
    Ok(Some(Named { latest, next, said }))
}
