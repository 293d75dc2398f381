//! The table of routes joined with their handlers, and the guard in front of them.

use crate::{
    app::App,
    auth::{Caller, Role, unauthorized},
    http,
    metrics::Request as Counted,
    problem::Problem,
};
use api::routes::{Access, ROUTES, Route};
use axum::{
    Router,
    extract::{MatchedPath, Request, State},
    http::{HeaderValue, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{MethodRouter, delete, get, head, patch, post, put},
};
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Largest body of a request that is not a blob.
const BODY_BYTES: usize = 8 << 20;

pub(crate) fn router(app: App) -> Router {
    let mut by_path: BTreeMap<&str, MethodRouter<App>> = BTreeMap::new();
    for route in ROUTES {
        let at = by_path.remove(route.path).unwrap_or_default();
        by_path.insert(route.path, at.merge(handler(route)));
    }
    let router = by_path.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    router
        .fallback(http::meta::nothing_here)
        .method_not_allowed_fallback(http::meta::wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), guard))
        .layer(axum::extract::DefaultBodyLimit::max(BODY_BYTES))
        .with_state(app)
}

fn handler(route: &Route) -> MethodRouter<App> {
    use http::{agents, artifacts, assets, blobs, computes, datastores, jobs, meta, operations, records, workspaces};
    use records::{Kind, keys, scoring};
    let of = |kind: Kind| axum::Extension(kind);
    match route.id {
        "health" | "health_alias" => get(meta::health),
        "ready" => get(meta::ready),
        "openapi" => get(meta::openapi),
        "metrics" => get(meta::metrics),
        "workspaces_all" | "workspaces" => get(workspaces::list),
        "workspace_get" => get(workspaces::show),
        "workspace_put" => put(workspaces::put),
        "workspace_patch" => patch(workspaces::put),
        "workspace_delete" => delete(workspaces::delete),
        "jobs" => get(jobs::list),
        "job_get" => get(jobs::show),
        "job_put" => put(jobs::put),
        "job_delete" => delete(jobs::delete),
        "job_cancel" => post(jobs::cancel),
        "job_why" => get(jobs::why),
        "job_samples" => get(jobs::samples),
        "job_artifacts" => get(artifacts::list),
        "job_artifact" => get(artifacts::read),
        "computes" => get(computes::list),
        "compute_get" => get(computes::show),
        "compute_put" => put(computes::put),
        "compute_delete" => delete(computes::delete),
        "compute_nodes" => post(computes::nodes),
        "compute_patch" => patch(computes::patch),
        "compute_start" | "compute_stop" | "compute_restart" => post(computes::power),
        "vm_sizes" => get(computes::offers::vm_sizes),
        "usages" | "workspace_usages" => get(computes::offers::usages),
        "schedules" => get(records::list).layer(of(Kind::Schedule)),
        "schedule_get" => get(records::show).layer(of(Kind::Schedule)),
        "schedule_put" => put(records::put).layer(of(Kind::Schedule)),
        "schedule_patch" => patch(records::patch).layer(of(Kind::Schedule)),
        "schedule_delete" => delete(records::delete).layer(of(Kind::Schedule)),
        "online_endpoints" => get(records::list).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_get" => get(records::show).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_put" => put(records::put).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_patch" => patch(records::patch).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_delete" => delete(records::delete).layer(of(Kind::OnlineEndpoint)),
        "online_endpoint_keys" => post(keys::list),
        "online_endpoint_regenerate" => post(keys::regenerate),
        "online_endpoint_token" => post(keys::token),
        "online_deployments" => get(records::list).layer(of(Kind::OnlineDeployment)),
        "online_deployment_get" => get(records::show).layer(of(Kind::OnlineDeployment)),
        "online_deployment_put" => put(records::put).layer(of(Kind::OnlineDeployment)),
        "online_deployment_patch" => patch(records::patch).layer(of(Kind::OnlineDeployment)),
        "online_deployment_delete" => delete(records::delete).layer(of(Kind::OnlineDeployment)),
        "online_deployment_logs" => post(scoring::logs),
        "batch_endpoints" => get(records::list).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_get" => get(records::show).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_put" => put(records::put).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_patch" => patch(records::patch).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_delete" => delete(records::delete).layer(of(Kind::BatchEndpoint)),
        "batch_endpoint_jobs" => get(scoring::batch_jobs),
        "batch_deployments" => get(records::list).layer(of(Kind::BatchDeployment)),
        "batch_deployment_get" => get(records::show).layer(of(Kind::BatchDeployment)),
        "batch_deployment_put" => put(records::put).layer(of(Kind::BatchDeployment)),
        "batch_deployment_patch" => patch(records::patch).layer(of(Kind::BatchDeployment)),
        "batch_deployment_delete" => delete(records::delete).layer(of(Kind::BatchDeployment)),
        "score" => post(scoring::score),
        "batch_score" => post(scoring::run_batch),
        "operation" => get(operations::show),
        "operation_result" => get(operations::result),
        "datastores" => get(datastores::list),
        "datastore_get" => get(datastores::show),
        "datastore_put" => put(datastores::put),
        "datastore_delete" => delete(datastores::delete),
        "datastore_secrets" => post(datastores::secrets),
        "upload_start" => post(assets::start_upload),
        "assets" => get(assets::list),
        "asset_container" => get(assets::container),
        "asset_versions" => get(assets::versions),
        "asset_get" => get(assets::show),
        "asset_put" => put(assets::put),
        "asset_delete" => delete(assets::delete),
        "blob_put" => put(blobs::put),
        "blob_get" => get(blobs::get),
        "blob_head" => head(blobs::head),
        "agent_poll" => post(agents::poll),
        "agent_report" => post(agents::report),
        other => unreachable!("route `{other}` has no handler"),
    }
}

/// Who, and may they; then the handler, counted.
async fn guard(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().as_str();
    let route = ROUTES.iter().find(|route| Some(route.path) == matched.as_deref() && route.method == method);
    let id = route.map_or("none", |route| route.id);
    let started = Instant::now();
    let long = is_long(&request);
    let mut answer = match allow(&app, &mut request, route) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    if long && answer.status().is_client_error() {
        // Part of the body may be unread, so the connection cannot carry another request.
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let waits = matches!(id, "agent_poll" | "job_artifact");
    if !waits {
        app.metrics.request_seconds.observe(started.elapsed().as_secs_f64());
    }
    app.metrics.requests.get_or_create(&Counted { route: id.to_owned(), status: answer.status().as_u16() }).inc();
    answer
}

/// Whether a body is more than is read along with its head.
fn is_long(request: &Request) -> bool {
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    length.map_or_else(|| request.headers().contains_key(header::TRANSFER_ENCODING), |length| length > 8 << 10)
}

fn allow(app: &App, request: &mut Request, route: Option<&Route>) -> Result<(), Problem> {
    let access = route.map_or(Access::Known, |route| route.access);
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let caller = match access {
        Access::Open => return Ok(()),
        // The handler checks the link against the container it opens.
        Access::Signed if header.is_none() => return Ok(()),
        _ => app.tokens.caller(header, app.store.keyring(), app.now())?,
    };
    let fits = match (&caller.role, access) {
        (Role::User, _) => access != Access::Agent,
        (Role::Agent, _) => access == Access::Agent,
        (Role::Job { workspace, job }, Access::Reader) => {
            let own = format!("/workspaces/{workspace}/jobs/{job}");
            let path = request.uri().path();
            request.method() == axum::http::Method::GET && (path.ends_with(&own) || path.contains(&format!("{own}/")))
        }
        (Role::Job { .. }, _) => false,
    };
    if !fits {
        return Err(match access {
            Access::Signed => unauthorized("a signed link or a user's token is needed"),
            _ => Problem::forbidden(format!("{} may not do this", describe(&caller))),
        });
    }
    request.extensions_mut().insert(caller);
    Ok(())
}

fn describe(caller: &Caller) -> String {
    match &caller.role {
        Role::User => format!("user `{}`", caller.name),
        Role::Agent => "an agent".to_owned(),
        Role::Job { job, .. } => format!("the token of job `{job}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_of_the_table_has_a_handler() {
        ROUTES.iter().for_each(|route| drop(handler(route)));
    }

    #[test]
    fn only_health_the_api_description_and_what_has_keys_of_its_own_are_open() {
        let open: Vec<&str> = ROUTES.iter().filter(|r| r.access == Access::Open).map(|r| r.id).collect();
        assert_eq!(open, ["health", "health_alias", "ready", "openapi", "score"]);
    }
}
