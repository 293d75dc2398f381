//! Registered models: make, find, rename, tag, alias, remove.

use super::{
    Answer, brief,
    call::Call,
    carried::Carried,
    done,
    fault::{Fault, read, write},
    registry::{Model, SeenModel, is_prompt},
    search::{offset, token},
};
use crate::app::App;
use axum::{Json, extract::State};
use domain::tracking::{
    Filter, Order, Stage, Subject, WebhookEvent,
    limits::{self, Search},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) async fn create(State(app): State<App>, call: Call) -> Answer {
    let (name, description) = (call.need("name")?, call.word("description")?);
    limits::model_name(&name)?;
    let tags = call.pairs("tags")?;
    tags.iter().try_for_each(|(key, value)| limits::registered_model_tag(key, value))?;
    let now = Carried::of(&call)?.created_at(app.now());
    let by = call.by;
    let shown = write(&app, move |tx| {
        if Model::find(tx, &by, &name)?.is_some() {
            return Err(Fault::exists(format!("Registered Model (name={name}) already exists.")));
        }
        let mut model = Model::new(&by, &name, now);
        model.said =
            json!({"description": description, "tags": tags.into_iter().collect::<std::collections::BTreeMap<_, _>>()});
        model.save(tx)?;
        model.tell_created(tx, now)?;
        Ok(model.view())
    })
    .await?;
    Ok(Json(json!({"registered_model": shown})))
}

pub(super) async fn show(State(app): State<App>, call: Call) -> Answer {
    let (name, by) = (call.need("name")?, call.by);
    let shown = read(&app, move |tx| Ok(Model::get(tx, &by, &name)?.view())).await?;
    Ok(Json(json!({"registered_model": shown})))
}

pub(super) async fn update(State(app): State<App>, call: Call) -> Answer {
    let (name, description) = (call.need("name")?, call.word("description")?);
    let (by, now) = (call.by, app.now());
    let shown = write(&app, move |tx| {
        let mut model = Model::get(tx, &by, &name)?;
        model.said["description"] = json!(description);
        model.row.changed_at = now;
        model.save(tx)?;
        Ok(model.view())
    })
    .await?;
    Ok(Json(json!({"registered_model": shown})))
}

pub(super) async fn rename(State(app): State<App>, call: Call) -> Answer {
    let (name, new) = (call.need("name")?, call.need("new_name")?);
    limits::new_model_name(&new)?;
    let (by, now) = (call.by, app.now());
    let shown = write(&app, move |tx| {
        let mut model = Model::get(tx, &by, &name)?;
        if new != name {
            if Model::find(tx, &by, &new)?.is_some() {
                return Err(Fault::exists(format!("Registered Model (name={new}) already exists.")));
            }
            tx.delete_record(&model.row.key)?;
            tx.rename_assets(by.workspace(), "models", &name, &new, now)?;
            let (said, created_at) = (model.said.take(), model.row.created_at);
            let mut moved = Model::new(&by, &new, created_at);
            (moved.said, moved.row.changed_at) = (said, now);
            moved.save(tx)?;
            model = Model::get(tx, &by, &new)?;
        }
        Ok(model.view())
    })
    .await?;
    Ok(Json(json!({"registered_model": shown})))
}

/// Removes a name and all its versions. The files stay where they are: they are those of runs.
pub(super) async fn delete(State(app): State<App>, call: Call) -> Answer {
    let (name, by) = (call.need("name")?, call.by);
    write(&app, move |tx| {
        let model = Model::get(tx, &by, &name)?;
        model.versions.iter().try_for_each(|version| tx.delete_asset(version.row.seq))?;
        tx.delete_record(&model.row.key)?;
        Ok(())
    })
    .await?;
    Ok(done())
}

pub(super) async fn search(State(app): State<App>, call: Call) -> Answer {
    let filter = Filter::parse(Subject::RegisteredModels, &call.word("filter")?)?;
    let order = Order::parse(Subject::RegisteredModels, &call.texts("order_by")?)?;
    // Clients that want none get none.
    let asked = call.int("max_results")?;
    let most = match asked {
        Some(..=0) => 0,
        _ => limits::max_results(Search::RegisteredModels, asked)?.unwrap_or(usize::MAX),
    };
    let (from, by) = (offset(&call)?, call.by);
    let (filter, prompts) = filter.split_prompts();
    let mut found = read(&app, move |tx| Ok(Model::all(tx, &by)?)).await?;
    found.retain(|model| (prompts || !is_prompt(&model.tags())) && filter.matches(&SeenModel(model)));
    found.sort_by(|a, b| order.compare(&SeenModel(a), &SeenModel(b)));
    let page: Vec<Value> = found.iter().skip(from).take(most).map(Model::view).collect();
    let next = (from.saturating_add(most) < found.len()).then(|| token(from + most));
    Ok(Json(brief([("registered_models", json!(page)), ("next_page_token", json!(next))])))
}

/// The newest version of each stage that is asked for; of every stage where none is.
pub(super) async fn latest(State(app): State<App>, call: Call) -> Answer {
    let (name, stages) = (call.need("name")?, call.texts("stages")?);
    let by = call.by;
    let shown = read(&app, move |tx| {
        let model = Model::get(tx, &by, &name)?;
        let stages = stages.iter().map(|word| Stage::parse(word)).collect::<Result<Vec<_>, _>>()?;
        let stages: BTreeSet<&str> = stages.into_iter().map(Stage::as_str).collect();
        let wanted = model.latest().into_iter().filter(|v| stages.is_empty() || stages.contains(v.stage().as_str()));
        Ok(wanted.map(|version| version.view(&model.aliases())).collect::<Vec<_>>())
    })
    .await?;
    Ok(Json(brief([("model_versions", json!(shown))])))
}

pub(super) async fn set_tag(State(app): State<App>, call: Call) -> Answer {
    let (name, key, value) = (call.need("name")?, call.need("key")?, call.word("value")?);
    limits::model_name(&name)?;
    limits::registered_model_tag(&key, &value)?;
    let (by, now) = (call.by, app.now());
    write(&app, move |tx| {
        let mut model = Model::get(tx, &by, &name)?;
        model.tags_mut().insert(key.clone(), json!(value));
        model.save(tx)?;
        if is_prompt(&model.tags()) {
            model.tell(tx, WebhookEvent::PromptTagSet, json!({"key": key, "value": value}), now)?;
        }
        Ok(())
    })
    .await?;
    Ok(done())
}

pub(super) async fn delete_tag(State(app): State<App>, call: Call) -> Answer {
    let (name, key, by, now) = (call.need("name")?, call.need("key")?, call.by, app.now());
    limits::tag_key(&key, limits::Place::Top)?;
    write(&app, move |tx| {
        let mut model = Model::get(tx, &by, &name)?;
        if model.tags_mut().remove(&key).is_none() {
            return Ok(());
        }
        model.save(tx)?;
        if is_prompt(&model.tags()) {
            model.tell(tx, WebhookEvent::PromptTagDeleted, json!({"key": key}), now)?;
        }
        Ok(())
    })
    .await?;
    Ok(done())
}

pub(super) async fn set_alias(State(app): State<App>, call: Call) -> Answer {
    let (name, alias, version) = (call.need("name")?, call.need("alias")?, call.need("version")?);
    limits::model_name(&name)?;
    limits::new_alias(&alias)?;
    let (by, now) = (call.by, app.now());
    write(&app, move |tx| {
        let mut model = Model::find(tx, &by, &name)?
            .ok_or_else(|| Fault::missing(format!("Model Version (name={name}, version={version}) not found")))?;
        let version = model.version(&version)?.row.key.version.clone();
        model.aliases_mut().insert(alias.clone(), json!(version));
        model.save(tx)?;
        Ok(model.tell(tx, WebhookEvent::AliasCreated, json!({"alias": alias, "version": version}), now)?)
    })
    .await?;
    Ok(done())
}

pub(super) async fn delete_alias(State(app): State<App>, call: Call) -> Answer {
    let (name, alias, by, now) = (call.need("name")?, call.need("alias")?, call.by, app.now());
    limits::alias(&alias)?;
    write(&app, move |tx| {
        let mut model = Model::get(tx, &by, &name)?;
        if model.aliases_mut().remove(&alias).is_some() {
            model.save(tx)?;
            model.tell(tx, WebhookEvent::AliasDeleted, json!({"alias": alias}), now)?;
        }
        Ok(())
    })
    .await?;
    Ok(done())
}

/// The version an alias names.
pub(super) async fn by_alias(State(app): State<App>, call: Call) -> Answer {
    let (name, alias, by) = (call.need("name")?, call.need("alias")?, call.by);
    limits::alias(&alias)?;
    let shown = read(&app, move |tx| {
        let model = Model::get(tx, &by, &name)?;
        let aliases = model.aliases();
        if alias.eq_ignore_ascii_case("latest")
            && let Some(newest) = model.versions.last()
        {
            return Ok(newest.view(&aliases));
        }
        let missing = || Fault::invalid(format!("Registered model alias {alias} not found."));
        let version = aliases.get(&alias).ok_or_else(missing)?;
        Ok(model.version(version)?.view(&aliases))
    })
    .await?;
    Ok(Json(json!({"model_version": shown})))
}
