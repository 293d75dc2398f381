//! MLflow's calls: method, path and who may, once; each is served under every prefix.
//!
//! Plain clients use the server's own address, which stands for its default workspace, or the address of a workspace.
//! Azure's plugin uses a prefix of its own, where artifacts are named in its way.

use crate::routes::{Access, Route};
use Access::{Contributor, Reader};
use std::sync::LazyLock;

/// One call.
pub struct Call {
    pub method: &'static str,
    pub path: &'static str,
    /// Begins with `mlflow_`.
    pub id: &'static str,
    pub access: Access,
    pub about: &'static str,
}

/// Where the calls stand.
pub const PREFIXES: [&str; 3] = ["", beside!("/mlflow/v1.0", ""), beside!("/mlflow/v2.0", "")];

macro_rules! calls {
    ($($method:literal $path:literal $id:literal $access:ident $about:literal;)*) => {
        &[$(Call { method: $method, path: $path, id: concat!("mlflow_", $id), access: $access, about: $about }),*]
    };
}

/// Every call.
pub const CALLS: &[Call] = calls! {
    "POST" "/api/2.0/mlflow/experiments/create" "experiment_create" Contributor "make an experiment";
    "GET" "/api/2.0/mlflow/experiments/get" "experiment_get" Reader "one experiment";
    "GET" "/api/2.0/mlflow/experiments/get-by-name" "experiment_by_name" Reader "one experiment by its name";
    "POST" "/api/2.0/mlflow/experiments/search" "experiment_search" Reader "experiments by filter";
    "GET" "/api/2.0/mlflow/experiments/search" "experiment_search_get" Reader "experiments by filter";
    "POST" "/api/2.0/mlflow/experiments/update" "experiment_update" Contributor "rename an experiment";
    "POST" "/api/2.0/mlflow/experiments/delete" "experiment_delete" Contributor "put an experiment and its runs away";
    "POST" "/api/2.0/mlflow/experiments/restore" "experiment_restore" Contributor "bring an experiment back";
    "POST" "/api/2.0/mlflow/experiments/set-experiment-tag" "experiment_set_tag" Contributor "tag an experiment";
    "POST" "/api/2.0/mlflow/experiments/delete-experiment-tag" "experiment_delete_tag" Contributor "untag an experiment";
    "POST" "/api/2.0/mlflow/experiments/search-datasets" "datasets_search" Reader "datasets that runs of experiments have read";
    "POST" "/api/2.0/mlflow/runs/create" "run_create" Contributor "begin a run";
    "GET" "/api/2.0/mlflow/runs/get" "run_get" Reader "one run";
    "POST" "/api/2.0/mlflow/runs/update" "run_update" Contributor "change a run's status or name";
    "POST" "/api/2.0/mlflow/runs/delete" "run_delete" Contributor "put a run away";
    "POST" "/api/2.0/mlflow/runs/restore" "run_restore" Contributor "bring a run back";
    "POST" "/api/2.0/mlflow/runs/search" "run_search" Reader "runs by filter, in an order, by pages";
    "POST" "/api/2.0/mlflow/runs/log-metric" "log_metric" Contributor "one point";
    "POST" "/api/2.0/mlflow/runs/log-parameter" "log_param" Contributor "one parameter";
    "POST" "/api/2.0/mlflow/runs/set-tag" "set_tag" Contributor "one tag";
    "POST" "/api/2.0/mlflow/runs/delete-tag" "delete_tag" Contributor "take a tag away";
    "POST" "/api/2.0/mlflow/runs/log-batch" "log_batch" Contributor "points, parameters and tags together";
    "POST" "/api/2.0/mlflow/runs/log-inputs" "log_inputs" Contributor "datasets a run has read";
    "POST" "/api/2.0/mlflow/runs/log-model" "log_model" Contributor "note a model among a run's artifacts";
    "POST" "/api/2.0/mlflow/runs/outputs" "log_outputs" Contributor "models a run has made";
    "GET" "/api/2.0/mlflow/metrics/get-history" "history" Reader "every point of a metric, by pages";
    "GET" "/api/2.0/mlflow/metrics/get-history-bulk" "history_of_runs" Reader "points of a metric of several runs";
    "GET" "/api/2.0/mlflow/metrics/get-history-bulk-interval" "history_bulk" Reader "points of a metric of several runs, thinned for charts";
    "POST" "/api/2.0/mlflow/registered-models/create" "model_create" Contributor "register a model's name";
    "GET" "/api/2.0/mlflow/registered-models/get" "model_get" Reader "one registered model";
    "PATCH" "/api/2.0/mlflow/registered-models/update" "model_update" Contributor "describe a registered model";
    "POST" "/api/2.0/mlflow/registered-models/rename" "model_rename" Contributor "give a registered model another name";
    "DELETE" "/api/2.0/mlflow/registered-models/delete" "model_delete" Contributor "remove a registered model and its versions";
    "GET" "/api/2.0/mlflow/registered-models/search" "model_search" Reader "registered models by filter";
    "POST" "/api/2.0/mlflow/registered-models/get-latest-versions" "model_latest" Reader "the newest version of each stage";
    "GET" "/api/2.0/mlflow/registered-models/get-latest-versions" "model_latest_get" Reader "the newest version of each stage";
    "POST" "/api/2.0/mlflow/registered-models/set-tag" "model_set_tag" Contributor "tag a registered model";
    "DELETE" "/api/2.0/mlflow/registered-models/delete-tag" "model_delete_tag" Contributor "untag a registered model";
    "POST" "/api/2.0/mlflow/registered-models/alias" "alias_set" Contributor "name a version by an alias";
    "DELETE" "/api/2.0/mlflow/registered-models/alias" "alias_delete" Contributor "take an alias away";
    "GET" "/api/2.0/mlflow/registered-models/alias" "alias_get" Reader "the version an alias names";
    "POST" "/api/2.0/mlflow/model-versions/create" "version_create" Contributor "register a version of a model";
    "GET" "/api/2.0/mlflow/model-versions/get" "version_get" Reader "one version of a model";
    "PATCH" "/api/2.0/mlflow/model-versions/update" "version_update" Contributor "describe a version";
    "POST" "/api/2.0/mlflow/model-versions/transition-stage" "version_transition" Contributor "move a version to a stage";
    "DELETE" "/api/2.0/mlflow/model-versions/delete" "version_delete" Contributor "remove a version";
    "GET" "/api/2.0/mlflow/model-versions/search" "version_search" Reader "versions by filter";
    "GET" "/api/2.0/mlflow/model-versions/get-download-uri" "version_uri" Reader "where a version's files are";
    "POST" "/api/2.0/mlflow/model-versions/set-tag" "version_set_tag" Contributor "tag a version";
    "DELETE" "/api/2.0/mlflow/model-versions/delete-tag" "version_delete_tag" Contributor "untag a version";
    "POST" "/api/2.0/mlflow/logged-models" "logged_create" Contributor "begin to log a model";
    "POST" "/api/2.0/mlflow/logged-models/search" "logged_search" Reader "logged models by filter";
    "GET" "/api/2.0/mlflow/logged-models/{model}" "logged_get" Reader "one logged model";
    "PATCH" "/api/2.0/mlflow/logged-models/{model}" "logged_finalize" Contributor "say that a logged model is whole, or is not";
    "DELETE" "/api/2.0/mlflow/logged-models/{model}" "logged_delete" Contributor "remove a logged model";
    "POST" "/api/2.0/mlflow/logged-models/{model}/params" "logged_params" Contributor "parameters of a logged model";
    "PATCH" "/api/2.0/mlflow/logged-models/{model}/tags" "logged_set_tags" Contributor "tag a logged model";
    "DELETE" "/api/2.0/mlflow/logged-models/{model}/tags/{tag}" "logged_delete_tag" Contributor "untag a logged model";
    "GET" "/api/2.0/mlflow/logged-models/{model}/artifacts/directories" "logged_files" Reader "files of a logged model";
    "POST" "/api/2.0/mlflow/webhooks" "webhook_create" Contributor "ask to be told of changes in the model registry";
    "GET" "/api/2.0/mlflow/webhooks" "webhook_list" Contributor "webhooks, newest first";
    "GET" "/api/2.0/mlflow/webhooks/{webhook}" "webhook_get" Contributor "one webhook";
    "PATCH" "/api/2.0/mlflow/webhooks/{webhook}" "webhook_update" Contributor "change a webhook";
    "DELETE" "/api/2.0/mlflow/webhooks/{webhook}" "webhook_delete" Contributor "remove a webhook";
    "POST" "/api/2.0/mlflow/webhooks/{webhook}/test" "webhook_test" Contributor "send a webhook an example and show its answer";
    "GET" "/api/2.0/mlflow/artifacts/list" "artifact_list" Reader "files of a run";
    "PUT" "/api/2.0/mlflow-artifacts/artifacts/{*path}" "artifact_put" Contributor "write a file of a run";
    "GET" "/api/2.0/mlflow-artifacts/artifacts/{*path}" "artifact_get" Reader "read a file of a run";
    "DELETE" "/api/2.0/mlflow-artifacts/artifacts/{*path}" "artifact_delete" Contributor "remove a file of a run";
    "GET" "/api/2.0/mlflow-artifacts/artifacts" "artifact_folder" Reader "files under a path";
    "POST" "/api/2.0/mlflow-artifacts/mpu/{step}/{*path}" "artifact_parts" Contributor "uploads in parts, which clients need not make here";
    "GET" "/get-artifact" "artifact_of_run" Reader "read a file of a run, as pages ask for it";
    "GET" "/api/3.0/mlflow/server-info" "server_info" Reader "which of MLflow's optional features there are";
};

/// How Azure's plugin finds the files of a run, beside the rest of run history.
const FILES: &[Call] = calls! {
    "GET" "" "plugin_files" Reader "files of a run, for Azure's plugin";
    "GET" "/contentinfo" "plugin_link" Reader "a link to read a file of a run";
    "POST" "/batch/metadata" "plugin_links" Contributor "links to write files of a run";
};
const FILES_AT: &str = beside!("/history/v1.0", "/experiments/{experiment}/runs/{name}/artifacts");

/// Whether a call only adds to what a run has logged. Jobs make such calls many times a second.
pub fn is_logging(id: &str) -> bool {
    let verb = id.strip_prefix("mlflow_").unwrap_or_default();
    verb.starts_with("log_") || matches!(verb, "set_tag" | "artifact_put" | "run_update" | "plugin_links")
}

/// The calls under every prefix, as routes.
pub(crate) fn routes() -> &'static [Route] {
    static ALL: LazyLock<Vec<Route>> = LazyLock::new(|| {
        let under = |prefix: &'static str, calls: &'static [Call]| {
            calls.iter().map(move |call| Route {
                method: call.method,
                // Made once and kept for the process's life, like the rest of the table.
                path: Box::leak(format!("{prefix}{}", call.path).into_boxed_str()),
                id: call.id,
                access: call.access,
                about: call.about,
            })
        };
        let calls = PREFIXES.into_iter().flat_map(|prefix| under(prefix, CALLS));
        calls.chain(under(FILES_AT, FILES)).collect()
    });
    &ALL
}
