//! Versions of registered models: make, find, promote, tag, remove.

use super::{
    Answer, artifacts, brief,
    call::{Asker, Call},
    carried::Carried,
    done,
    fault::{Fault, read, write},
    lineage::{self, Origin},
    registry::{self, Model, SeenVersion, Version, is_prompt},
    search::{offset, token},
};
use crate::app::App;
use axum::{Json, extract::State};
use domain::{
    Timestamp,
    tracking::{
        Filter, Order, Stage, Subject, WebhookEvent,
        limits::{self, Search},
    },
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use store::Tx;

pub(super) async fn create(State(app): State<App>, call: Call) -> Answer {
    let (name, source) = (call.need("name")?, call.need("source")?);
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (run_id, model_id) = (given(call.text("run_id")?), given(call.text("model_id")?));
    let (link, description) = (call.word("run_link")?, call.word("description")?);
    let tags = call.pairs("tags")?;
    limits::model_name(&name)?;
    tags.iter().try_for_each(|(key, value)| limits::model_version_tag(key, value))?;
    let tags: BTreeMap<String, String> = tags.into_iter().collect();
    let prompt = is_prompt(&tags);
    let carried = Carried::of(&call)?;
    let stage = carried.stage()?;
    let (by, now) = (call.by, app.now());
    let shown = write(&app, move |tx| {
        let origin = match prompt {
            true => Origin { source: source.clone(), storage: source, run_id, model: None, folder: None },
            false => lineage::origin(tx, &by, &source, run_id, model_id)?,
        };
        let mut model = Model::get(tx, &by, &name)?;
        let number = match carried.version {
            Some(number) => model.take_number(number)?,
            None => model.next_number(),
        };
        let own = brief([
            (registry::SOURCE, json!(origin.source)),
            (registry::STORAGE, json!(origin.storage)),
            (registry::RUN, json!(origin.run_id)),
            (registry::RUN_LINK, json!(Some(link).filter(|link| !link.is_empty()))),
        ]);
        let uri = origin.folder.map_or(origin.storage.clone(), |folder| registry::asset_uri(&by, &folder));
        let body = json!({
            "modelUri": uri, "modelType": "mlflow_model", "jobName": origin.run_id, "description": description,
            "tags": tags, "stage": stage.as_str(), "properties": own,
        });
        Version::add(tx, &by, (&name, number), &body, carried.created_at(now))?;
        model.row.changed_at = now;
        model.save(tx)?;
        if let Some(logged) = origin.model {
            note_on_model(tx, &by, &logged, (&name, number), now)?;
        }
        let model = Model::get(tx, &by, &name)?;
        Ok(model.version(&number.to_string())?.view(&model.aliases()))
    })
    .await?;
    Ok(Json(json!({"model_version": shown})))
}

/// The tag of a logged model that lists the versions it became.
const BECAME: &str = "mlflow.modelVersions";

fn note_on_model(
    tx: &mut Tx<'_>,
    by: &Asker,
    model_id: &str,
    (name, number): (&str, i64),
    now: Timestamp,
) -> Result<(), Fault> {
    let Some(mut row) = tx.logged_model(by.workspace(), model_id)? else { return Ok(()) };
    let known = row.tags.get(BECAME).and_then(|text| serde_json::from_str(text).ok());
    let mut all: Vec<Value> = known.unwrap_or_default();
    all.push(json!({"name": name, "version": number}));
    row.tags.insert(BECAME.into(), Value::Array(all).to_string());
    row.changed_at = now;
    Ok(tx.put_logged_model(&row)?)
}

/// The version a call names, of a model that must be there.
fn named(call: &Call) -> Result<(String, String), Fault> {
    Ok((call.need("name")?, call.need("version")?))
}

/// The version, of a model that may not be there at all.
fn find(tx: &mut Tx<'_>, by: &Asker, name: &str, version: &str) -> Result<(Model, Version), Fault> {
    limits::model_name(name)?;
    let Some(model) = Model::find(tx, by, name)? else {
        limits::model_version(version)?;
        return Err(Fault::missing(format!("Model Version (name={name}, version={version}) not found")));
    };
    let version = model.version(version)?.clone();
    Ok((model, version))
}

pub(super) async fn show(State(app): State<App>, call: Call) -> Answer {
    let (name, version) = named(&call)?;
    let by = call.by;
    let shown = read(&app, move |tx| {
        let (model, version) = find(tx, &by, &name, &version)?;
        Ok(version.view(&model.aliases()))
    })
    .await?;
    Ok(Json(json!({"model_version": shown})))
}

pub(super) async fn download_uri(State(app): State<App>, call: Call) -> Answer {
    let (name, version) = (call.need("name")?, call.word("version")?);
    let by = call.by;
    let asker = by.clone();
    let uri = read(&app, move |tx| Ok(find(tx, &by, &name, &version)?.1.storage())).await?;
    let uri = artifacts::spelled(&asker, &uri);
    Ok(Json(json!({"artifact_uri": uri})))
}

pub(super) async fn update(State(app): State<App>, call: Call) -> Answer {
    let ((name, version), description) = (named(&call)?, call.word("description")?);
    let (by, now) = (call.by, app.now());
    let shown = write(&app, move |tx| {
        let (model, mut version) = find(tx, &by, &name, &version)?;
        version.body["description"] = json!(description);
        version.row.changed_at = now;
        version.save(tx)?;
        Ok(version.view(&model.aliases()))
    })
    .await?;
    Ok(Json(json!({"model_version": shown})))
}

/// Moves a version to a stage; where that is asked for, the versions that hold the stage are archived.
pub(super) async fn transition(State(app): State<App>, call: Call) -> Answer {
    let ((name, version), stage) = (named(&call)?, call.need("stage")?);
    let archive = call.flag("archive_existing_versions")?;
    let stage = Stage::parse(&stage)?;
    if archive && !stage.can_archive_others() {
        return Err(Fault::invalid(format!(
            "Model version transition cannot archive existing model versions because '{}' is not an Active stage. \
             Valid stages are Staging, Production",
            stage.as_str()
        )));
    }
    let (by, now) = (call.by, app.now());
    let shown = write(&app, move |tx| {
        let (mut model, mut version) = find(tx, &by, &name, &version)?;
        for mut other in model.versions.iter().filter(|v| archive && v.row.seq != version.row.seq).cloned() {
            if other.stage() == stage {
                other.body["stage"] = json!(Stage::Archived.as_str());
                other.row.changed_at = now;
                other.save(tx)?;
            }
        }
        version.body["stage"] = json!(stage.as_str());
        version.row.changed_at = now;
        version.save(tx)?;
        model.row.changed_at = now;
        model.save(tx)?;
        Ok(version.view(&model.aliases()))
    })
    .await?;
    Ok(Json(json!({"model_version": shown})))
}

/// Removes a version and the aliases that name it. Its number is not given out again.
pub(super) async fn delete(State(app): State<App>, call: Call) -> Answer {
    let (name, version) = named(&call)?;
    let (by, now) = (call.by, app.now());
    write(&app, move |tx| {
        let (mut model, version) = find(tx, &by, &name, &version)?;
        let given = version.row.key.version.parse::<i64>().unwrap_or(0);
        let last = model.said["mlflow"]["given"].as_i64().unwrap_or(0).max(given);
        model.said["mlflow"]["given"] = json!(last);
        model.aliases_mut().retain(|_, named| *named != json!(version.row.key.version));
        model.row.changed_at = now;
        tx.delete_asset(version.row.seq)?;
        Ok(model.save(tx)?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn set_tag(State(app): State<App>, call: Call) -> Answer {
    let ((name, version), key, value) = (named(&call)?, call.need("key")?, call.word("value")?);
    limits::model_version_tag(&key, &value)?;
    let (by, now) = (call.by, app.now());
    write(&app, move |tx| {
        let (model, mut version) = find(tx, &by, &name, &version)?;
        version.tags_mut().insert(key.clone(), json!(value));
        version.save(tx)?;
        let what = json!({"version": version.row.key.version, "key": key, "value": value});
        Ok(model.tell(tx, WebhookEvent::VersionTagSet, what, now)?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn delete_tag(State(app): State<App>, call: Call) -> Answer {
    let ((name, version), key, by, now) = (named(&call)?, call.need("key")?, call.by, app.now());
    limits::tag_key(&key, limits::Place::Top)?;
    write(&app, move |tx| {
        let (model, mut version) = find(tx, &by, &name, &version)?;
        if version.tags_mut().remove(&key).is_some() {
            version.save(tx)?;
            let what = json!({"version": version.row.key.version, "key": key});
            model.tell(tx, WebhookEvent::VersionTagDeleted, what, now)?;
        }
        Ok(())
    })
    .await?;
    Ok(done())
}

pub(super) async fn search(State(app): State<App>, call: Call) -> Answer {
    let most = call.most(Search::ModelVersions)?.unwrap_or(usize::MAX);
    let filter = Filter::parse(Subject::ModelVersions, &call.word("filter")?)?;
    let order = Order::parse(Subject::ModelVersions, &call.texts("order_by")?)?;
    let (from, by) = (offset(&call)?, call.by);
    let (filter, prompts) = filter.split_prompts();
    let models = read(&app, move |tx| Ok(Model::all(tx, &by)?)).await?;
    let mut found: Vec<(&Version, BTreeMap<String, String>)> = Vec::new();
    for model in &models {
        found.extend(model.versions.iter().map(|version| (version, model.aliases())));
    }
    found.retain(|(version, _)| (prompts || !is_prompt(&version.tags())) && filter.matches(&SeenVersion(version)));
    found.sort_by(|(a, _), (b, _)| order.compare(&SeenVersion(a), &SeenVersion(b)));
    let page: Vec<Value> = found.iter().skip(from).take(most).map(|(version, aliases)| version.view(aliases)).collect();
    let next = (from.saturating_add(most) < found.len()).then(|| token(from + most));
    Ok(Json(brief([("model_versions", json!(page)), ("next_page_token", json!(next))])))
}
