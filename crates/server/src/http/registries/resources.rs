//! Registries as resources.

use super::{KIND, SHIPPED, key, may_change, owner_of, shipped};
use crate::{
    app::{App, scope},
    auth::Caller,
    http::{
        Asked, At, Body,
        change::{self, Conditions, Halt, Shown},
        operations::{self, Ticket},
        paging::{self, Paging},
        workspaces::{check_place, guid},
    },
    problem::Problem,
};
use api::arm::{PROVIDER, system_data};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::Uri,
};
use domain::{Role, names::RegistryName};
use serde_json::{Map, Value, json};
use store::{RecordFilter, RecordRow, Tx};

/// What only the server writes.
const SERVERS: &[&str] = &["id", "name", "type", "systemData", "etag", "peregrine"];

/// Registries of a subscription, or of one group in it, that the caller may look at.
pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let paging = Paging::of(&asked)?;
    let all = RecordFilter {
        workspace: String::new(),
        kind: KIND.into(),
        parent: String::new(),
        archived: None,
        after: String::new(),
        limit: i64::MAX,
    };
    let mut rows = app.store.read(move |tx| tx.records(&all)).await?;
    rows.retain(|row| {
        let owner = owner_of(&app, row);
        let there = owner.subscription.eq_ignore_ascii_case(&at.subscription)
            && (at.group.is_empty() || owner.resource_group.eq_ignore_ascii_case(&at.group));
        let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
        there && caller.may(&owner.name, Role::Reader) && paging::tagged(&asked, body.get("tags"))
    });
    Ok(Json(paging.cut(rows, |row| row.key.name.clone()).shown(&app, &uri, &asked, |row| view(&app, row))))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Shown, Problem> {
    let row = find(&app, &at.registry).await?;
    Ok(Shown::found(view(&app, &row)))
}

pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    RegistryName::parse(&at.registry).map_err(|bad| Problem::bad(bad.to_string()))?;
    check_place(&at)?;
    write(&app, at, caller.name, conditions, body, true).await
}

pub(crate) async fn patch(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    conditions: Conditions,
    Body(body): Body<Value>,
) -> Result<Shown, Problem> {
    find(&app, &at.registry).await?;
    write(&app, at, caller.name, conditions, body, false).await
}

async fn write(
    app: &App,
    at: At,
    by: String,
    conditions: Conditions,
    sent: Value,
    whole: bool,
) -> Result<Shown, Problem> {
    may_change(&at)?;
    let object = |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_null());
    if !sent.is_object() || !object(sent.get("properties")) || !object(sent.get("tags")) {
        return Err(Problem::bad(format!(
            "registry `{}` is not a JSON object whose `tags` and `properties` are objects",
            at.registry
        )));
    }
    let (id, now, files) = (guid(app.store.keyring().random()), app.now(), app.files.clone());
    let ticket = Ticket::new(app, &at.subscription);
    let done = ticket.clone();
    let (row, existed) = change::change(app, move |tx| {
        let before = tx.record(&key(&at.registry))?;
        conditions.hold(&format!("registry `{}`", at.registry), before.as_ref().map(mark).as_deref())?;
        let existed = before.is_some();
        let row = match before {
            Some(row) => update(tx, row, &sent, whole, now)?,
            None => {
                files.set_aside(&super::owner(&at.registry), &id)?;
                let mut body = cleaned(&sent);
                let place = json!({"id": id, "subscription": at.subscription, "group": at.group});
                body.insert("peregrine".into(), place);
                let row = RecordRow {
                    key: key(&at.registry),
                    body: Value::Object(body).to_string(),
                    archived: false,
                    created_by: by,
                    created_at: now,
                    changed_at: now,
                    version: 1,
                };
                tx.insert_record(&row)?;
                row
            }
        };
        done.done(tx, "", &at.registry, now)?;
        Ok((row, existed))
    })
    .await?;
    Ok(Shown::made(view(app, &row), existed).tracked(operations::ASYNC, &ticket.status_url()))
}

fn update(
    tx: &mut Tx<'_>,
    mut row: RecordRow,
    sent: &Value,
    whole: bool,
    now: domain::Timestamp,
) -> Result<RecordRow, Halt> {
    let mut body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let place = body["peregrine"].take();
    let mut merged = match whole {
        true => Value::Object(cleaned(sent)),
        false => {
            change::merge(&mut body, &Value::Object(cleaned(sent)));
            body
        }
    };
    merged["peregrine"] = place;
    (row.body, row.changed_at) = (merged.to_string(), now);
    tx.put_record(&mut row)?;
    Ok(row)
}

/// Removes a registry that no job at work uses, with everything in it.
pub(crate) async fn delete(
    State(app): State<App>,
    Path(at): Path<At>,
    conditions: Conditions,
) -> Result<Shown, Problem> {
    may_change(&at)?;
    let row = find(&app, &at.registry).await?;
    let owner = owner_of(&app, &row);
    let ticket = Ticket::new(&app, &owner.subscription);
    let (done, now, name) = (ticket.clone(), app.now(), owner.name.clone());
    change::change(&app, move |tx| {
        conditions.hold(&format!("registry `{}`", row.key.name), Some(&mark(&row)))?;
        if let Some(job) = tx.job_with_files_of(&name)? {
            let registry = &row.key.name;
            let message =
                format!("job `{job}` uses files of registry `{registry}` and has not ended; wait, or cancel it");
            return Err(Problem::conflict(message).into());
        }
        tx.delete_workspace(&name)?;
        tx.delete_record(&row.key)?;
        Ok(done.done(tx, "", &row.key.name, now)?)
    })
    .await?;
    app.tokens.principals.refresh(&app.store).await?;
    let files = app.files.clone();
    let removed = tokio::task::spawn_blocking(move || {
        files.set_aside(&owner.name, &owner.id)?;
        files.remove_set_aside()
    });
    removed.await.map_err(|_| store::Error::Closed)??;
    Ok(Shown::accepted().tracked(operations::LOCATION, &ticket.result_url()))
}

/// Where a registry is to be found, for clients that know its name only.
pub(crate) async fn discovery(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let row = find(&app, &at.registry).await?;
    let owner = owner_of(&app, &row);
    Ok(Json(json!({
        "registryName": row.key.name, "tenantId": owner.id, "primaryRegion": "local", "regions": ["local"],
        "subscriptionId": owner.subscription, "resourceGroup": owner.resource_group, "workspaceName": null,
        "primaryRegionResourceProviderUri": format!("{}/", app.url),
        "registryFqdns": {"local": {"uri": app.url.as_str()}},
    })))
}

async fn find(app: &App, name: &str) -> Result<RecordRow, Problem> {
    let wanted = name.to_owned();
    let (row, names) =
        app.store.read(move |tx| Ok((tx.record(&key(&wanted))?, tx.record_names("", KIND, "")?))).await?;
    match row {
        Some(row) => Ok(row),
        None if name == SHIPPED => Ok(shipped()),
        None => Err(Problem::missing("registry", name, &[names, vec![SHIPPED.to_owned()]].concat())),
    }
}

fn cleaned(sent: &Value) -> Map<String, Value> {
    let mut body = sent.as_object().cloned().unwrap_or_default();
    body.retain(|key, _| !SERVERS.contains(&key.as_str()));
    body
}

fn mark(row: &RecordRow) -> String {
    change::mark(&[&row.version.to_string(), &row.created_at.0.to_string(), &row.body])
}

fn view(app: &App, row: &RecordRow) -> Value {
    let owner = owner_of(app, row);
    let mut view: Map<String, Value> = serde_json::from_str(&row.body).unwrap_or_default();
    view.remove("peregrine");
    let mut properties = match view.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    let id = scope(&owner).path();
    for (key, value) in [
        ("publicNetworkAccess", json!("Enabled")),
        ("regionDetails", json!([{"location": "local", "acrDetails": [], "storageAccountDetails": []}])),
        ("description", Value::Null),
    ] {
        properties.entry(key).or_insert(value);
    }
    properties.insert("discoveryUrl".into(), json!(discovery_url(app, &row.key.name)));
    properties.insert("mlFlowRegistryUri".into(), json!(format!("{}/mlflow/v1.0{id}", app.url)));
    properties.insert("provisioningState".into(), json!("Succeeded"));
    for (key, value) in
        [("location", json!("local")), ("tags", json!({})), ("identity", json!({"type": "SystemAssigned"}))]
    {
        view.entry(key).or_insert(value);
    }
    for (key, value) in [
        ("id", json!(id)),
        ("name", json!(row.key.name)),
        ("type", json!(format!("{PROVIDER}/registries"))),
        ("etag", json!(mark(row))),
        ("systemData", system_data(row.created_at, &row.created_by, row.changed_at)),
        ("properties", Value::Object(properties)),
    ] {
        view.insert(key.into(), value);
    }
    Value::Object(view)
}

fn discovery_url(app: &App, name: &str) -> String {
    format!("{}/registrymanagement/v1.0/registries/{name}/discovery", app.url)
}
