//! The table of routes joined with their handlers.

use crate::{app::App, guard::guard, http};
use api::routes::{self, Route};
use axum::{
    Router, middleware,
    routing::{MethodRouter, delete, get, head, patch, post, put},
};
use std::collections::BTreeMap;

/// Largest body of a request that is not a blob.
const BODY_BYTES: usize = 8 << 20;

pub(crate) fn router(app: App) -> Router {
    let mut by_path: BTreeMap<&str, MethodRouter<App>> = BTreeMap::new();
    for route in routes::all() {
        let at = by_path.remove(route.path).unwrap_or_default();
        by_path.insert(route.path, at.merge(handler(route)));
    }
    let router = by_path.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .fallback(http::meta::nothing_here)
        .method_not_allowed_fallback(http::meta::wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .layer(axum::extract::DefaultBodyLimit::max(BODY_BYTES))
        .layer(middleware::from_fn_with_state(app.clone(), http::blobs::manners))
        .layer(middleware::map_response(http::studio::manners))
        .with_state(app)
}

fn handler(route: &Route) -> MethodRouter<App> {
    use http::{
        agents, artifacts, assets, blobs, clusters, computes, datastores, history, identity, jobs, machines, meta,
        metrics, operations, principals, records, registries, routers, services, sharing, studio, workspaces,
    };
    use records::{Kind, keys};
    let of = |kind: Kind| axum::Extension(kind);
    match route.id {
        "health" | "health_alias" => get(meta::health),
        "ready" => get(meta::ready),
        "openapi" => get(meta::openapi),
        "cloud_metadata" => get(identity::metadata),
        "discovery" => get(identity::discovery),
        "openid" | "openid_v2" => get(identity::openid),
        "token" => post(identity::token),
        "machine_token" => get(identity::machine_token),
        "principals" => get(principals::list),
        "principal_create" => post(principals::create),
        "principal_revoke" => delete(principals::revoke),
        "audit" => get(principals::audit),
        "keys_rotate" => post(principals::rotate),
        "free" => post(meta::free),
        "quotas" => get(sharing::quotas),
        "quota_put" => put(sharing::put_quota),
        "teams" => get(sharing::teams::list),
        "team_put" => put(sharing::teams::put),
        "team_delete" => delete(sharing::teams::delete),
        "usage" => get(sharing::usage),
        "roles" => get(principals::roles),
        "role_grant" => put(principals::grant),
        "role_revoke" => delete(principals::ungrant),
        "workspace_audit" => get(principals::workspace_audit),
        "metrics" => get(meta::metrics),
        "home" | "studio" => get(studio::home),
        "studio_page" | "studio_file" => get(studio::file),
        "studio_link" => post(studio::link),
        "session_enter" => post(studio::enter),
        "session" => get(studio::session),
        "session_leave" => delete(studio::leave),
        "workspaces_all" | "workspaces" => get(workspaces::list),
        "workspace_get" => get(workspaces::show),
        "workspace_put" => put(workspaces::put),
        "workspace_patch" => patch(workspaces::patch),
        "workspace_keys" => post(workspaces::keys),
        "template_put" => put(workspaces::template::put),
        "template_get" => get(workspaces::template::show),
        "template_steps" => get(workspaces::template::steps),
        "workspace_delete" => delete(workspaces::delete),
        "jobs" => get(jobs::list),
        "job_get" => get(jobs::show),
        "job_put" => put(jobs::put),
        "job_delete" => delete(jobs::delete),
        "job_cancel" => post(jobs::cancel),
        "job_canceled" => get(jobs::canceled),
        "queue" => get(jobs::queue),
        "job_why" => get(jobs::why),
        "job_connect" => post(services::connect),
        "job_graph" => get(jobs::graph),
        "job_metrics" => get(metrics::list),
        "job_metrics_stream" => get(metrics::stream),
        "job_samples" => get(jobs::samples),
        "job_artifacts" => get(artifacts::list),
        "job_artifact" => get(artifacts::read),
        "run_get" | "experiment_run_get" => get(history::show),
        "run_details" | "experiment_run_details" => get(history::details),
        "run_children" => get(history::children),
        "run_services" => get(history::services),
        "run_data" => post(history::data),
        "experiment_run_patch" => patch(history::patch),
        "data_resolve" => post(history::resolve_data),
        "models_resolve" => post(history::resolve_models),
        "computes" => get(computes::list),
        "compute_get" => get(computes::show),
        "compute_put" => put(computes::put),
        "compute_delete" => delete(computes::delete),
        "compute_nodes" => post(computes::nodes),
        "compute_usage" => get(computes::usage::usage),
        "compute_preempt" => post(computes::preempt),
        "compute_patch" => patch(computes::patch),
        "compute_start" | "compute_stop" | "compute_restart" => post(computes::power),
        "vm_sizes" => get(computes::offers::vm_sizes),
        "subscription_quotas" => get(sharing::subscription::list),
        "subscription_quotas_update" => post(sharing::subscription::update),
        "usages" | "workspace_usages" => get(computes::offers::usages),
        "schedules" => get(records::list).layer(of(Kind::Schedule)),
        "schedule_get" => get(records::show).layer(of(Kind::Schedule)),
        "schedule_put" => put(records::put).layer(of(Kind::Schedule)),
        "schedule_patch" => patch(records::patch).layer(of(Kind::Schedule)),
        "schedule_delete" => delete(records::delete).layer(of(Kind::Schedule)),
        "schedule_trigger" => post(records::schedule::trigger),
        "online_endpoints" => get(records::list).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_get" => get(records::show).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_put" => put(records::put).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_patch" => patch(records::patch).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_delete" => delete(records::delete).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_keys" => post(keys::list),
        "online_endpoint_regenerate" => post(keys::regenerate),
        "online_endpoint_token" => post(keys::token),
        "online_endpoint_counters" => get(records::serving::counters),
        "online_endpoint_activity" => get(records::traffic::activity),
        "online_endpoint_try" => post(records::traffic::call),
        "online_deployments" => get(records::list).layer(of(Kind::OnlineDeployment)),
        "online_deployment_get" => get(records::show).layer(of(Kind::OnlineDeployment)),
        "online_deployment_put" => put(records::put).layer(of(Kind::OnlineDeployment)),
        "online_deployment_patch" => patch(records::patch).layer(of(Kind::OnlineDeployment)),
        "online_deployment_delete" => delete(records::delete).layer(of(Kind::OnlineDeployment)),
        "online_deployment_logs" => post(records::serving::logs),
        "batch_endpoints" => get(records::list).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_get" => get(records::show).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_put" => put(records::put).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_patch" => patch(records::patch).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_delete" => delete(records::delete).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_jobs" | "batch_deployment_jobs" => get(records::batch::batch_jobs),
        "batch_deployments" => get(records::list).layer(of(Kind::BatchDeployment)),
        "batch_deployment_get" => get(records::show).layer(of(Kind::BatchDeployment)),
        "batch_deployment_put" => put(records::put).layer(of(Kind::BatchDeployment)),
        "batch_deployment_patch" => patch(records::patch).layer(of(Kind::BatchDeployment)),
        "batch_deployment_delete" => delete(records::delete).layer(of(Kind::BatchDeployment)),
        "batch_score" => post(records::batch::run_batch),
        "operation" => get(operations::show),
        "operation_result" => get(operations::result),
        "datastores" => get(datastores::list),
        "datastore_get" => get(datastores::show),
        "datastore_put" => put(datastores::put),
        "datastore_delete" => delete(datastores::delete),
        "datastore_secrets" => post(datastores::secrets),
        "upload_start" | "registry_upload_start" => post(assets::start_upload),
        "assets" | "registry_assets" => get(assets::list),
        "asset_container" | "registry_asset_container" => get(assets::container),
        "asset_container_put" | "registry_asset_container_put" => put(assets::put_container),
        "asset_versions" | "registry_asset_versions" => get(assets::versions),
        "asset_get" | "registry_asset_get" => get(assets::show),
        "asset_uses" => get(assets::uses),
        "asset_put" | "registry_asset_put" => put(assets::put),
        "asset_delete" | "registry_asset_delete" => delete(assets::delete),
        "registries_all" | "registries" => get(registries::list),
        "registry_get" => get(registries::show),
        "registry_put" => put(registries::put),
        "registry_patch" => patch(registries::patch),
        "registry_delete" => delete(registries::delete),
        "registry_discovery" => get(registries::discovery),
        "registry_import" => post(registries::import),
        "registry_upload_link" => put(assets::upload_link),
        "registry_read_link" => post(assets::read_link),
        "blob_put" => put(blobs::put),
        "blob_get" => get(blobs::get),
        "blob_head" => head(blobs::head),
        "blob_delete" => delete(blobs::delete),
        "agent_poll" => post(agents::poll),
        "agent_report" => post(agents::report),
        "agent_log" => put(agents::log),
        "agent_peers" => post(agents::peers),
        "agent_tunnel" => post(services::open),
        "clusters" => get(clusters::list),
        "cluster_get" => get(clusters::show),
        "cluster_put" => put(clusters::put),
        "cluster_delete" => delete(clusters::delete),
        "cluster_poll" => post(clusters::poll),
        "node_join" => post(machines::join),
        "node_poll" => post(machines::poll),
        "cluster_report" => post(clusters::report),
        "router_exchange" => post(routers::exchange),
        id if id.starts_with("mlflow_") => http::mlflow::handler(id),
        other => unreachable!("route `{other}` has no handler"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::routes::Access;

    #[test]
    fn every_route_of_the_table_has_a_handler() {
        routes::all().for_each(|route| drop(handler(route)));
    }

    #[test]
    fn only_what_is_asked_before_one_has_a_token_is_open() {
        let open: Vec<&str> = routes::all().filter(|r| r.access == Access::Open).map(|r| r.id).collect();
        let before = ["cloud_metadata", "discovery", "openid", "openid_v2", "token", "machine_token"];
        assert_eq!(
            open,
            [
                ["health", "health_alias", "ready", "openapi"].as_slice(),
                &before,
                &["home", "studio", "studio_page", "studio_file", "session_enter"]
            ]
            .concat()
        );
    }
}
