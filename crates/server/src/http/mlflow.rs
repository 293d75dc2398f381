//! MLflow's REST API. A job is its run; what was logged to either is seen in both.
//!
//! Answers and errors are in MLflow's own words, because its clients act on them. Invariant: a token of a job opens the
//! job's own run and the runs below it, and nothing else.

mod artifacts;
mod call;
mod carried;
mod experiments;
mod fault;
mod history;
mod inputs;
mod lineage;
mod log;
mod logged;
mod models;
mod plugin;
pub(crate) mod registry;
mod runs;
mod search;
mod versions;
pub(crate) mod view;
mod webhooks;

pub(crate) use fault::Fault;

use crate::app::App;
use axum::{
    Json,
    routing::{MethodRouter, delete, get, patch, post, put},
};
use serde_json::{Map, Value, json};

/// The handler of a call.
pub(crate) fn handler(id: &str) -> MethodRouter<App> {
    match id.trim_start_matches("mlflow_") {
        "experiment_create" => post(experiments::create),
        "experiment_get" => get(experiments::show),
        "experiment_by_name" => get(experiments::by_name),
        "experiment_search" => post(experiments::search),
        "experiment_search_get" => get(experiments::search),
        "experiment_update" => post(experiments::update),
        "experiment_delete" => post(experiments::delete),
        "experiment_restore" => post(experiments::restore),
        "experiment_set_tag" => post(experiments::set_tag),
        "experiment_delete_tag" => post(experiments::delete_tag),
        "run_create" => post(runs::create),
        "run_get" => get(runs::show),
        "run_update" => post(runs::update),
        "run_delete" => post(runs::delete),
        "run_restore" => post(runs::restore),
        "run_search" => post(search::runs),
        "log_metric" => post(log::metric),
        "log_param" => post(log::param),
        "set_tag" => post(log::set_tag),
        "delete_tag" => post(log::delete_tag),
        "log_batch" => post(log::batch),
        "log_inputs" => post(inputs::datasets),
        "log_model" => post(inputs::model_note),
        "log_outputs" => post(inputs::outputs),
        "history" => get(history::whole),
        "history_of_runs" => get(history::of_runs),
        "history_bulk" => get(history::thinned),
        "datasets_search" => post(inputs::search),
        "artifact_parts" => post(artifacts::parts),
        "artifact_of_run" => get(artifacts::of_run),
        "plugin_files" => get(plugin::files),
        "plugin_link" => get(plugin::link),
        "plugin_links" => post(plugin::links),
        "server_info" => get(server_info),
        "model_create" => post(models::create),
        "model_get" => get(models::show),
        "model_update" => patch(models::update),
        "model_rename" => post(models::rename),
        "model_delete" => delete(models::delete),
        "model_search" => get(models::search),
        "model_latest" => post(models::latest),
        "model_latest_get" => get(models::latest),
        "model_set_tag" => post(models::set_tag),
        "model_delete_tag" => delete(models::delete_tag),
        "alias_set" => post(models::set_alias),
        "alias_delete" => delete(models::delete_alias),
        "alias_get" => get(models::by_alias),
        "version_create" => post(versions::create),
        "version_get" => get(versions::show),
        "version_update" => patch(versions::update),
        "version_transition" => post(versions::transition),
        "version_delete" => delete(versions::delete),
        "version_search" => get(versions::search),
        "version_uri" => get(versions::download_uri),
        "version_set_tag" => post(versions::set_tag),
        "version_delete_tag" => delete(versions::delete_tag),
        "logged_create" => post(logged::create),
        "logged_get" => get(logged::show),
        "logged_finalize" => patch(logged::finalize),
        "logged_delete" => delete(logged::delete),
        "logged_params" => post(logged::add_params),
        "logged_set_tags" => patch(logged::set_tags),
        "logged_delete_tag" => delete(logged::delete_tag),
        "logged_search" => post(logged::search),
        "logged_files" => get(logged::files),
        "webhook_create" => post(webhooks::create),
        "webhook_list" => get(webhooks::list),
        "webhook_get" => get(webhooks::show),
        "webhook_update" => patch(webhooks::update),
        "webhook_delete" => delete(webhooks::delete),
        "webhook_test" => post(webhooks::test),
        "artifact_list" => get(artifacts::list),
        "artifact_put" => put(artifacts::put),
        "artifact_get" => get(artifacts::get),
        "artifact_delete" => delete(artifacts::delete),
        "artifact_folder" => get(artifacts::folder),
        other => unreachable!("MLflow's call `{other}` has no handler"),
    }
}

type Answer = Result<Json<Value>, Fault>;

/// Nothing to say.
fn done() -> Json<Value> {
    Json(json!({}))
}

/// Which optional features there are: none that a client would have to know of.
async fn server_info(_: call::Asker) -> Json<Value> {
    Json(json!({
        "store_type": "SqlStore", "workspaces_enabled": false, "trace_archival_enabled": false, "features_enabled": [],
        "multipart_uploads_enabled": false, "multipart_downloads_enabled": false,
        "presigned_upload_run_id_supported": false, "presigned_upload_model_id_supported": false,
    }))
}

/// An object without its empty lists and nulls, which clients do not expect to see.
fn brief(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let kept: Map<String, Value> =
        pairs.into_iter().filter(|(_, value)| says(value)).map(|(key, value)| (key.to_owned(), value)).collect();
    Value::Object(kept)
}

/// `{"key": …, "value": …}` of each.
fn key_values<'a>(texts: impl IntoIterator<Item = (&'a String, &'a String)>) -> Value {
    texts.into_iter().map(|(key, value)| json!({"key": key, "value": value})).collect()
}
