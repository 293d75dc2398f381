//! Assets of every kind, by name and version. A version's content never changes.

use super::{Asked, At, Body, archived, views, workspaces};
use crate::{
    app::{App, scope},
    auth::{Caller, sign_link},
    problem::Problem,
};
use api::arm::{self, Scope};
use axum::{
    Extension, Json,
    extract::{Path, Query, State},
    http::StatusCode,
};
use domain::{
    Job, Timestamp, curated,
    names::{AssetName, Version},
};
use serde_json::{Value, json};
use store::{AssetKey, AssetRow, Error, Tx};

const KINDS: [&str; 5] = ["codes", "data", "models", "environments", "components"];
/// How long an upload may take.
const UPLOAD_LIFE_MS: i64 = 6 * 3_600_000;
/// What may change in a version.
const CHANGEABLE: [&str; 6] = ["tags", "description", "properties", "isArchived", "stage", "isAnonymous"];

pub(crate) async fn list(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let (workspace, kind) = (app.workspace(&at.workspace).await?, known(&at)?);
    if asked.get("registry").is_some_and(|name| name == "azureml") && kind == "environments" {
        return Ok(Json(views::page(
            curated::list().iter().map(|c| curated_view(&scope(&workspace), c)).collect(),
            None,
        )));
    }
    let (name, hidden) = (workspace.name.clone(), archived(&asked));
    let rows = app
        .store
        .read(move |tx| {
            let heads = tx.asset_heads(&name, &kind, hidden)?;
            heads
                .into_iter()
                .map(|row| Ok((tx.next_version(&name, &kind, &row.key.name)?, row)))
                .collect::<Result<Vec<_>, Error>>()
        })
        .await?;
    let scope = scope(&workspace);
    Ok(Json(views::page(rows.iter().map(|(next, row)| views::container(&scope, row, *next)).collect(), None)))
}

pub(crate) async fn container(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let (workspace, kind) = (app.workspace(&at.workspace).await?, known(&at)?);
    let (key, name) = (workspace.name.clone(), at.name.clone());
    let found = app
        .store
        .read(move |tx| {
            let latest = tx.latest_asset(&key, &kind, &name)?;
            latest.map(|row| Ok((tx.next_version(&key, &kind, &name)?, row))).transpose()
        })
        .await?;
    let (next, row) = found.ok_or_else(|| Problem::not_found(noun(&at.kind), &at.name))?;
    Ok(Json(views::container(&scope(&workspace), &row, next)))
}

pub(crate) async fn versions(
    State(app): State<App>,
    Path(at): Path<At>,
    Query(asked): Asked,
) -> Result<Json<Value>, Problem> {
    let (workspace, kind) = (app.workspace(&at.workspace).await?, known(&at)?);
    let (key, name, hidden) = (workspace.name.clone(), at.name.clone(), archived(&asked));
    let hash = asked.get("hash").cloned();
    let top = asked.get("$top").and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let rows = app
        .store
        .read(move |tx| match hash {
            Some(hash) => Ok(tx.asset_by_hash(&key, &kind, &hash)?.into_iter().collect()),
            None => tx.versions(&key, &kind, &name, hidden),
        })
        .await?;
    let scope = scope(&workspace);
    Ok(Json(views::page(rows.iter().take(top).map(|row| views::asset(&scope, row)).collect(), None)))
}

pub(crate) async fn show(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = key(&workspace.name, &at)?;
    let wanted = key.clone();
    let found = app.store.read(move |tx| tx.asset(&wanted)).await?;
    if let Some(row) = found {
        return Ok(Json(views::asset(&scope(&workspace), &row)));
    }
    let curated = (key.kind == "environments").then(|| curated::find(&key.name)).flatten();
    let curated = curated.ok_or_else(|| Problem::not_found(noun(&at.kind), &format!("{}:{}", at.name, at.version)))?;
    Ok(Json(curated_view(&scope(&workspace), curated)))
}

/// Creates a version, or changes what may change of one. Other content under a taken version is a conflict.
pub(crate) async fn put(
    State(app): State<App>,
    Path(at): Path<At>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<Value>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = key(&workspace.name, &at)?;
    AssetName::parse(&key.name)
        .and(Version::parse(&key.version).map(drop))
        .map_err(|bad| Problem::bad(bad.to_string()))?;
    let properties = body.get("properties").cloned().unwrap_or_else(|| json!({}));
    check_body(&key, &properties)?;
    if key.kind == "codes" {
        // Everything the snapshot refers to is uploaded by now: make it last before anyone relies on it.
        let files = app.files.clone();
        let synced = tokio::task::spawn_blocking(move || files.sync()).await;
        synced.map_err(|_| Error::Closed)??;
    }
    let now = app.now();
    let written = app
        .store
        .write(move |tx| {
            let Some(row) = tx.asset(&key)? else {
                let hash = properties.get("properties").and_then(|p| arm::text(p, "hash_sha256"));
                tx.insert_asset(&key, &properties.to_string(), hash.as_deref(), &caller.name, now)?;
                return Ok(Ok((StatusCode::CREATED, tx.asset(&key)?)));
            };
            let mut body: Value = serde_json::from_str(&row.body).unwrap_or_default();
            if let Some(field) = changed_content(&body, &properties) {
                return Ok(Err(field));
            }
            for field in CHANGEABLE {
                if let Some(value) = properties.get(field).filter(|value| !value.is_null()) {
                    body[field] = value.clone();
                }
            }
            let hide = properties.get("isArchived").and_then(Value::as_bool).unwrap_or(row.archived);
            tx.put_asset(row.seq, &body.to_string(), hide, now)?;
            Ok(Ok((StatusCode::OK, tx.asset(&key)?)))
        })
        .await?;
    let (status, row) = written.map_err(|field| immutable(&at, &field))?;
    let row = row.ok_or_else(|| Problem::not_found(noun(&at.kind), &at.name))?;
    Ok((status, Json(views::asset(&scope(&workspace), &row))))
}

pub(crate) async fn delete(State(app): State<App>, Path(at): Path<At>) -> Result<StatusCode, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let key = key(&workspace.name, &at)?;
    let found = app.store.write(move |tx| tx.asset(&key)?.map(|row| tx.delete_asset(row.seq)).transpose()).await?;
    Ok(if found.is_some() { StatusCode::OK } else { StatusCode::NO_CONTENT })
}

/// A fresh container for one snapshot, and a link that opens it for a while.
pub(crate) async fn start_upload(State(app): State<App>, Path(at): Path<At>) -> Result<Json<Value>, Problem> {
    let workspace = app.workspace(&at.workspace).await?;
    let container = format!("snap-{}", store::secrets::hex(&app.store.keyring().random::<8>()));
    let expires = Timestamp(app.now().0 + UPLOAD_LIFE_MS);
    let link = sign_link(app.store.keyring(), &workspace.name, &container, true, expires);
    let uri = super::blobs::container_url(&app, &workspace.name, &container);
    Ok(Json(json!({
        "pendingUploadId": workspaces::guid(app.store.keyring().random()), "pendingUploadType": "TemporaryBlobReference",
        "blobReferenceForConsumption": {
            "blobUri": uri, "storageAccountArmId": scope(&workspace).path(),
            "credential": {"credentialType": "SAS", "sasUri": format!("{uri}?{link}")},
        },
    })))
}

/// Outputs that carry a name become assets the moment their job completes.
pub(crate) fn register_outputs(tx: &mut Tx<'_>, job: &Job, now: Timestamp) -> Result<(), Error> {
    let Some((body, plan)) = tx.registering_body(job.seq)? else { return Ok(()) };
    let body: Value = serde_json::from_str(&body).map_err(|error| Error::Decode(error.to_string()))?;
    for (output, planned) in &plan.outputs {
        let asked = body.get("outputs").and_then(|all| all.get(output)).unwrap_or(&Value::Null);
        let Some(name) = arm::text(asked, "assetName") else { continue };
        let data_type = arm::text(asked, "jobOutputType").unwrap_or_else(|| "uri_folder".into());
        let model = data_type.ends_with("_model");
        let kind = if model { "models" } else { "data" };
        let version = match arm::text(asked, "assetVersion") {
            Some(version) => version,
            None => tx.next_version(&job.workspace, kind, &name)?.to_string(),
        };
        let fields = if model { ("modelType", "modelUri") } else { ("dataType", "dataUri") };
        let mut properties = json!({
            "description": asked.get("description"), "tags": arm::texts(asked, "tags"), "isAnonymous": false,
            "properties": {"peregrine.job": job.name, "peregrine.output": output}, "jobName": job.name,
        });
        properties[fields.0] = json!(data_type);
        properties[fields.1] = json!(planned.uri);
        let key = AssetKey {
            workspace: job.workspace.clone(),
            kind: kind.into(),
            name: name.clone(),
            version: version.clone(),
        };
        let text = match tx.asset(&key)? {
            Some(_) => format!("output `{output}` was not registered: {kind} `{name}:{version}` exists already"),
            None => {
                tx.insert_asset(&key, &properties.to_string(), None, job.name.as_str(), now)?;
                format!("output `{output}` registered as {kind} `{name}:{version}`")
            }
        };
        tx.add_event(job.seq, now, "registered", &text)?;
    }
    Ok(())
}

fn known(at: &At) -> Result<String, Problem> {
    match KINDS.contains(&at.kind.as_str()) {
        true => Ok(at.kind.clone()),
        false => Err(Problem::missing("collection", &at.kind, &KINDS.map(str::to_owned))),
    }
}

fn key(workspace: &str, at: &At) -> Result<AssetKey, Problem> {
    Ok(AssetKey {
        workspace: workspace.to_owned(),
        kind: known(at)?,
        name: at.name.clone(),
        version: at.version.clone(),
    })
}

fn noun(kind: &str) -> &str {
    match kind {
        "data" => "data asset",
        plural => plural.strip_suffix('s').unwrap_or(plural),
    }
}

/// What a version cannot do without.
fn check_body(key: &AssetKey, properties: &Value) -> Result<(), Problem> {
    let need = match key.kind.as_str() {
        "codes" => "codeUri",
        "data" => "dataUri",
        "models" => "modelUri",
        "components" => "componentSpec",
        _ => {
            let any =
                ["image", "condaFile", "build"].iter().any(|field| properties.get(field).is_some_and(|v| !v.is_null()));
            let message = format!("environment `{}` has neither `image`, `condaFile` nor `build`", key.name);
            return if any { Ok(()) } else { Err(Problem::bad(message)) };
        }
    };
    match properties.get(need).is_some_and(|value| !value.is_null()) {
        true => Ok(()),
        false => Err(Problem::bad(format!("{} `{}` has no `{need}`", noun(&key.kind), key.name))),
    }
}

/// The first content field that differs, if any. An anonymous component is named by a digest of what it does, so what
/// differs under one name is only how it was written.
fn changed_content(old: &Value, new: &Value) -> Option<String> {
    let anonymous = |body: &Value| body.get("isAnonymous") == Some(&Value::Bool(true));
    if anonymous(old) && anonymous(new) && new.get("componentSpec").is_some() {
        return None;
    }
    let fields = new.as_object()?.iter();
    let server = ["provisioningState", "environmentType", "flavors", "osType"];
    let differs = |(field, value): &(&String, &Value)| {
        let free = CHANGEABLE.contains(&field.as_str()) || server.contains(&field.as_str()) || value.is_null();
        !free && old.get(field.as_str()) != Some(*value)
    };
    fields.filter(differs).map(|(field, _)| field.clone()).next()
}

fn immutable(at: &At, field: &str) -> Problem {
    if at.kind == "data" && field == "dataUri" {
        return Problem::new(StatusCode::CONFLICT, "UserError", "Asset paths cannot be updated.");
    }
    let message = format!(
        "{} `{}:{}` exists with another `{field}`; a version's content never changes, so create a new version",
        noun(&at.kind),
        at.name,
        at.version
    );
    Problem::conflict(message)
}

fn curated_view(scope: &Scope, curated: &curated::Curated) -> Value {
    let row = AssetRow {
        seq: 0,
        key: AssetKey {
            workspace: scope.workspace.clone(),
            kind: "environments".into(),
            name: curated.name.clone(),
            version: "1".into(),
        },
        body: json!({
            "description": curated.description, "condaFile": conda_text(curated), "tags": {"curated": "true"}, "isAnonymous": false,
        })
        .to_string(),
        archived: false,
        created_by: "peregrine".into(),
        created_at: Timestamp(0),
        changed_at: Timestamp(0),
    };
    let mut view = views::asset(scope, &row);
    view["properties"]["environmentType"] = json!("Curated");
    view["properties"]["latestVersion"] = json!("1");
    view
}

fn conda_text(curated: &curated::Curated) -> String {
    let pip: String = curated.pip.iter().map(|line| format!("    - {line}\n")).collect();
    format!("name: {}\ndependencies:\n  - python={}\n  - pip\n  - pip:\n{pip}", curated.name, curated.python)
}
