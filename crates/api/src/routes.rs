//! The route table: every address the server answers, once.
//!
//! The server builds its router from this table and a test compares the two; the OpenAPI document ([`crate::openapi`]) is
//! this table in other words. Paths match in any case where they are words, and exactly where they are names.

/// Who may call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Says nothing about anyone's work: health and the description of the API.
    Open,
    /// Anyone this server knows; what they see is what they may see.
    Known,
    /// Who may look at the workspace.
    Reader,
    /// Who may work in the workspace.
    Contributor,
    /// Who may change the workspace itself and its secrets.
    Owner,
    /// The token of this machine's agent, or that of one attempt, whose agent is told and heard of nothing else.
    Agent,
    /// The token of the attempt that the address names.
    Attempt,
    /// The token of a cluster's operator.
    Cluster,
    /// The token of a node of a managed cluster, or the one it joins with.
    Node,
    /// The token of a cluster, for the router there, or that of an owner of this server.
    Router,
    /// A signed link, or the token of someone with a role in the blob's workspace.
    Signed,
}

/// One address and what it is for.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    /// With `{name}` for names and `{*rest}` for what remains.
    pub path: &'static str,
    pub id: &'static str,
    pub access: Access,
    pub about: &'static str,
}

macro_rules! location {
    ($rest:literal) => {
        concat!(
            "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/",
            $rest
        )
    };
}

macro_rules! group {
    ($rest:literal) => {
        concat!("/subscriptions/{subscription}/resourceGroups/{group}/providers/", $rest)
    };
}

macro_rules! ws {
    ($rest:literal) => {
        concat!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}",
            $rest
        )
    };
}

/// Below a registry.
macro_rules! registry {
    ($rest:literal) => {
        concat!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/registries/{registry}",
            $rest
        )
    };
}

/// The same under one of the services that answer beside the resources.
macro_rules! beside {
    ($service:literal, $rest:literal) => {
        concat!(
            $service,
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}",
            $rest
        )
    };
}

const fn route(
    method: &'static str,
    path: &'static str,
    id: &'static str,
    access: Access,
    about: &'static str,
) -> Route {
    Route { method, path, id, access, about }
}

use Access::{Agent, Attempt, Cluster, Contributor, Known, Node, Open, Owner, Reader, Router, Signed};

/// Every route of the server but MLflow's calls, which have a table of their own.
pub const ROUTES: &[Route] = &[
    route("GET", "/healthz", "health", Open, "whether the process is alive"),
    route("GET", "/health", "health_alias", Open, "the same as `/healthz`"),
    route("GET", "/readyz", "ready", Open, "whether the server can take work"),
    route("GET", "/openapi.json", "openapi", Open, "this description"),
    route("GET", "/metadata/endpoints", "cloud_metadata", Open, "what this cloud is called and where its services are"),
    route("GET", "/discovery", "discovery", Open, "addresses of a workspace's services"),
    route(
        "GET",
        "/{tenant}/.well-known/openid-configuration",
        "openid",
        Open,
        "where tokens are to be had; the tenant is `adfs` or any other word",
    ),
    route("GET", "/{tenant}/v2.0/.well-known/openid-configuration", "openid_v2", Open, "the same"),
    route("POST", "/{tenant}/oauth2/v2.0/token", "token", Open, "a token for a client id and its secret"),
    route("GET", "/msi/token", "machine_token", Open, "a token for code inside a job, for the secret it was given"),
    route("GET", "/admin/v1/principals", "principals", Owner, "who may call this server"),
    route(
        "POST",
        "/admin/v1/principals",
        "principal_create",
        Owner,
        "register a user or program; shows its secret once",
    ),
    route("DELETE", "/admin/v1/principals/{id}", "principal_revoke", Owner, "end someone's access"),
    route("GET", "/admin/v1/audit", "audit", Owner, "every change and refusal, newest first"),
    route("POST", "/admin/v1/keys/rotate", "keys_rotate", Owner, "sign tokens with a new key from now on"),
    route(
        "POST",
        "/admin/v1/free",
        "free",
        Owner,
        "remove deleted runs and experiments for good, and give their space back",
    ),
    route("GET", ws!("/roles"), "roles", Owner, "who has which role in the workspace"),
    route("PUT", ws!("/roles/{name}"), "role_grant", Owner, "give a principal a role"),
    route("DELETE", ws!("/roles/{name}"), "role_revoke", Owner, "take a principal's role away"),
    route("GET", ws!("/quotas"), "quotas", Reader, "how much may be held at once, and by whom what of it is in use"),
    route("PUT", ws!("/quotas"), "quota_put", Owner, "set a quota; one without amounts is taken away"),
    route("GET", ws!("/teams"), "teams", Reader, "the teams of the workspace: people who may share a quota"),
    route("PUT", ws!("/teams/{name}"), "team_put", Owner, "make a team, or say anew who is in it"),
    route("DELETE", ws!("/teams/{name}"), "team_delete", Owner, "take a team away that has no quota"),
    route("GET", ws!("/usage"), "usage", Reader, "who has what now, and who has used how much in the last week"),
    route("GET", ws!("/audit"), "workspace_audit", Owner, "changes and refusals in the workspace, newest first"),
    route("GET", "/", "home", Open, "leads to the studio"),
    route("GET", "/studio", "studio", Open, "leads to the studio"),
    route("GET", "/studio/", "studio_page", Open, "the studio, a page for browsers"),
    route("GET", "/studio/{*path}", "studio_file", Open, "a file of the studio, or its page"),
    route("POST", "/admin/v1/studio/links", "studio_link", Known, "a link that opens the studio once, soon"),
    route("POST", "/admin/v1/studio/session", "session_enter", Open, "a browser's session, for the code of a link"),
    route("GET", "/admin/v1/studio/session", "session", Known, "who the caller is and where they may look"),
    route("DELETE", "/admin/v1/studio/session", "session_leave", Known, "end a browser's session"),
    route("GET", "/metrics", "metrics", Known, "counters and gauges in Prometheus text"),
    route(
        "GET",
        "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/workspaces",
        "workspaces_all",
        Known,
        "workspaces of a subscription",
    ),
    route(
        "GET",
        "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces",
        "workspaces",
        Known,
        "workspaces of a resource group",
    ),
    route("GET", ws!(""), "workspace_get", Reader, "one workspace"),
    route("PUT", ws!(""), "workspace_put", Owner, "create or update a workspace"),
    route("PATCH", ws!(""), "workspace_patch", Owner, "update a workspace"),
    route("DELETE", ws!(""), "workspace_delete", Owner, "delete a workspace that runs nothing"),
    route("POST", ws!("/listKeys"), "workspace_keys", Contributor, "keys of a workspace's parts; here it has none"),
    route(
        "PUT",
        group!("Microsoft.Resources/deployments/{name}"),
        "template_put",
        Owner,
        "create the workspace that a template's parameters describe",
    ),
    route("GET", group!("Microsoft.Resources/deployments/{name}"), "template_get", Known, "a template deployment"),
    route(
        "GET",
        "/subscriptions/{subscription}/resourceGroups/{group}/deployments/{name}/operations",
        "template_steps",
        Known,
        "the steps of a template deployment",
    ),
    route("GET", ws!("/jobs"), "jobs", Reader, "jobs, newest first"),
    route("GET", ws!("/jobs/{name}"), "job_get", Reader, "one job"),
    route(
        "PUT",
        ws!("/jobs/{name}"),
        "job_put",
        Contributor,
        "submit a job, or change the tags and description of one",
    ),
    route("DELETE", ws!("/jobs/{name}"), "job_delete", Contributor, "archive a job that has ended"),
    route("POST", ws!("/jobs/{name}/cancel"), "job_cancel", Contributor, "ask a job to stop"),
    route("GET", ws!("/jobs/{name}/cancel"), "job_canceled", Reader, "whether a job that was asked to stop has gone"),
    route("GET", ws!("/queue"), "queue", Reader, "the jobs that wait: why, for how many others, and until when"),
    route("GET", ws!("/jobs/{name}/why"), "job_why", Reader, "where a job is, and why"),
    route(
        "POST",
        ws!("/jobs/{name}/services/{service}/connect"),
        "job_connect",
        Contributor,
        "a stream to a service of a job that runs, on `node`",
    ),
    route("GET", ws!("/jobs/{name}/graph"), "job_graph", Reader, "the steps of a pipeline and where each is"),
    route("GET", ws!("/jobs/{name}/metrics"), "job_metrics", Reader, "what a job has logged, thinned for charts"),
    route(
        "GET",
        ws!("/jobs/{name}/metrics/stream"),
        "job_metrics_stream",
        Reader,
        "what a job logs, as server-sent events, until it ends",
    ),
    route("GET", ws!("/jobs/{name}/samples"), "job_samples", Reader, "load of the node while the job ran"),
    route("GET", ws!("/jobs/{name}/artifacts"), "job_artifacts", Reader, "logs and captured files of a job"),
    route(
        "GET",
        ws!("/jobs/{name}/artifacts/{*path}"),
        "job_artifact",
        Reader,
        "a piece of a file, from an offset; waits for more when asked",
    ),
    route("GET", beside!("/history/v1.0", "/runs/{name}"), "run_get", Reader, "a job as a run"),
    route(
        "GET",
        beside!("/history/v1.0", "/runs/{name}/details"),
        "run_details",
        Reader,
        "status, error and logs of a run; the links to its logs need no token",
    ),
    route("GET", beside!("/history/v1.0", "/runs/{name}/children"), "run_children", Reader, "runs that a run started"),
    route(
        "GET",
        beside!("/history/v1.0", "/runs/{name}/serviceinstances/{node}"),
        "run_services",
        Reader,
        "services that run on a node of a run",
    ),
    route(
        "POST",
        beside!("/history/v1.0", "/rundata"),
        "run_data",
        Reader,
        "the run that the body names, with ids of its outputs",
    ),
    route(
        "GET",
        beside!("/history/v1.0", "/experiments/{experiment}/runs/{name}"),
        "experiment_run_get",
        Reader,
        "a run of an experiment",
    ),
    route(
        "PATCH",
        beside!("/history/v1.0", "/experiments/{experiment}/runs/{name}"),
        "experiment_run_patch",
        Contributor,
        "add tags and properties, change the name and description, hide or show",
    ),
    route(
        "GET",
        beside!("/history/v1.0", "/experiments/{experiment}/runs/{name}/details"),
        "experiment_run_details",
        Reader,
        "status, error and logs of a run of an experiment",
    ),
    route(
        "POST",
        beside!("/data/v1.0", "/dataversion/batchGetResolvedUris"),
        "data_resolve",
        Reader,
        "where ids of data and of runs' outputs lead",
    ),
    route(
        "POST",
        beside!("/modelregistry/v1.0", "/models/batchGetResolvedUris"),
        "models_resolve",
        Reader,
        "where ids of models and of runs' model outputs lead",
    ),
    route("GET", ws!("/computes"), "computes", Reader, "compute targets"),
    route("GET", ws!("/computes/{name}"), "compute_get", Reader, "one compute target"),
    route("PUT", ws!("/computes/{name}"), "compute_put", Contributor, "create or update a compute target"),
    route("DELETE", ws!("/computes/{name}"), "compute_delete", Contributor, "remove a compute target"),
    route("POST", ws!("/computes/{name}/listNodes"), "compute_nodes", Reader, "nodes of a compute target"),
    route("GET", ws!("/computes/{name}/usage"), "compute_usage", Reader, "how full a compute target was lately"),
    route(
        "POST",
        ws!("/computes/{name}/preempt"),
        "compute_preempt",
        Contributor,
        "take a node of a managed cluster back, as its owner might",
    ),
    route("PATCH", ws!("/computes/{name}"), "compute_patch", Contributor, "change parts of a compute target"),
    route("POST", ws!("/computes/{name}/start"), "compute_start", Contributor, "start a compute target"),
    route("POST", ws!("/computes/{name}/stop"), "compute_stop", Contributor, "stop a compute target"),
    route("POST", ws!("/computes/{name}/restart"), "compute_restart", Contributor, "restart a compute target"),
    route("GET", ws!("/usages"), "workspace_usages", Reader, "how much of this machine is in use"),
    route("GET", location!("vmSizes"), "vm_sizes", Known, "machine sizes that may be named"),
    route(
        "GET",
        location!("quotas"),
        "subscription_quotas",
        Known,
        "what there is in all, and what workspaces may have",
    ),
    route("POST", location!("updateQuotas"), "subscription_quotas_update", Owner, "set quotas of workspaces"),
    route("GET", location!("usages"), "usages", Known, "how much of this machine is in use"),
    route("GET", location!("operations/{id}"), "operation", Known, "the state of a long-running operation"),
    route(
        "GET",
        location!("operationResults/{id}"),
        "operation_result",
        Known,
        "the result of a long-running operation, once it has one",
    ),
    route("GET", ws!("/schedules"), "schedules", Reader, "schedules, by name"),
    route("GET", ws!("/schedules/{name}"), "schedule_get", Reader, "one schedule"),
    route("PUT", ws!("/schedules/{name}"), "schedule_put", Contributor, "create or update a schedule"),
    route("PATCH", ws!("/schedules/{name}"), "schedule_patch", Contributor, "change parts of a schedule"),
    route("DELETE", ws!("/schedules/{name}"), "schedule_delete", Contributor, "delete a schedule"),
    route(
        "POST",
        ws!("/schedules/{name}/trigger"),
        "schedule_trigger",
        Contributor,
        "start what a schedule starts, now, whether it is on or off",
    ),
    route("GET", ws!("/onlineEndpoints"), "online_endpoints", Reader, "online endpoints, by name"),
    route("GET", ws!("/onlineEndpoints/{name}"), "online_endpoint_get", Reader, "one online endpoint"),
    route(
        "PUT",
        ws!("/onlineEndpoints/{name}"),
        "online_endpoint_put",
        Contributor,
        "create or update an online endpoint",
    ),
    route(
        "PATCH",
        ws!("/onlineEndpoints/{name}"),
        "online_endpoint_patch",
        Contributor,
        "change parts of an online endpoint",
    ),
    route("DELETE", ws!("/onlineEndpoints/{name}"), "online_endpoint_delete", Contributor, "delete an online endpoint"),
    route(
        "POST",
        ws!("/onlineEndpoints/{name}/listKeys"),
        "online_endpoint_keys",
        Contributor,
        "the keys of an online endpoint",
    ),
    route(
        "POST",
        ws!("/onlineEndpoints/{name}/regenerateKeys"),
        "online_endpoint_regenerate",
        Contributor,
        "draw one of an online endpoint's keys anew",
    ),
    route(
        "POST",
        ws!("/onlineEndpoints/{name}/token"),
        "online_endpoint_token",
        Contributor,
        "a token that opens an online endpoint for a while",
    ),
    route(
        "GET",
        ws!("/onlineEndpoints/{name}/counters"),
        "online_endpoint_counters",
        Reader,
        "what the server's own router has counted of an online endpoint, in Prometheus text",
    ),
    route(
        "GET",
        ws!("/onlineEndpoints/{name}/activity"),
        "online_endpoint_activity",
        Reader,
        "what an online endpoint has answered in the last hours, and how its replicas came and went",
    ),
    route(
        "POST",
        ws!("/onlineEndpoints/{name}/try"),
        "online_endpoint_try",
        Contributor,
        "call an online endpoint as its users do; how it answered",
    ),
    route(
        "GET",
        ws!("/onlineEndpoints/{name}/deployments"),
        "online_deployments",
        Reader,
        "online deployments, by name",
    ),
    route(
        "GET",
        ws!("/onlineEndpoints/{name}/deployments/{deployment}"),
        "online_deployment_get",
        Reader,
        "one online deployment",
    ),
    route(
        "PUT",
        ws!("/onlineEndpoints/{name}/deployments/{deployment}"),
        "online_deployment_put",
        Contributor,
        "create or update an online deployment",
    ),
    route(
        "PATCH",
        ws!("/onlineEndpoints/{name}/deployments/{deployment}"),
        "online_deployment_patch",
        Contributor,
        "change parts of an online deployment",
    ),
    route(
        "DELETE",
        ws!("/onlineEndpoints/{name}/deployments/{deployment}"),
        "online_deployment_delete",
        Contributor,
        "delete an online deployment",
    ),
    route(
        "POST",
        ws!("/onlineEndpoints/{name}/deployments/{deployment}/getLogs"),
        "online_deployment_logs",
        Reader,
        "the log of an online deployment",
    ),
    route("GET", ws!("/batchEndpoints"), "batch_endpoints", Reader, "batch endpoints, by name"),
    route("GET", ws!("/batchEndpoints/{name}"), "batch_endpoint_get", Reader, "one batch endpoint"),
    route("PUT", ws!("/batchEndpoints/{name}"), "batch_endpoint_put", Contributor, "create or update a batch endpoint"),
    route(
        "PATCH",
        ws!("/batchEndpoints/{name}"),
        "batch_endpoint_patch",
        Contributor,
        "change parts of a batch endpoint",
    ),
    route("DELETE", ws!("/batchEndpoints/{name}"), "batch_endpoint_delete", Contributor, "delete a batch endpoint"),
    route(
        "GET",
        ws!("/batchEndpoints/{name}/jobs"),
        "batch_endpoint_jobs",
        Reader,
        "jobs a batch endpoint has started",
    ),
    route("GET", ws!("/batchEndpoints/{name}/deployments"), "batch_deployments", Reader, "batch deployments, by name"),
    route(
        "GET",
        ws!("/batchEndpoints/{name}/deployments/{deployment}"),
        "batch_deployment_get",
        Reader,
        "one batch deployment",
    ),
    route(
        "PUT",
        ws!("/batchEndpoints/{name}/deployments/{deployment}"),
        "batch_deployment_put",
        Contributor,
        "create or update a batch deployment",
    ),
    route(
        "PATCH",
        ws!("/batchEndpoints/{name}/deployments/{deployment}"),
        "batch_deployment_patch",
        Contributor,
        "change parts of a batch deployment",
    ),
    route(
        "DELETE",
        ws!("/batchEndpoints/{name}/deployments/{deployment}"),
        "batch_deployment_delete",
        Contributor,
        "delete a batch deployment",
    ),
    route(
        "GET",
        ws!("/batchEndpoints/{name}/deployments/{deployment}/jobs"),
        "batch_deployment_jobs",
        Reader,
        "jobs a batch deployment has started",
    ),
    route(
        "POST",
        beside!("/batchscore", "/batchEndpoints/{name}/jobs"),
        "batch_score",
        Contributor,
        "run a batch endpoint",
    ),
    route("GET", ws!("/datastores"), "datastores", Reader, "datastores"),
    route("GET", ws!("/datastores/{name}"), "datastore_get", Reader, "one datastore, without secrets"),
    route("PUT", ws!("/datastores/{name}"), "datastore_put", Contributor, "create or update a datastore"),
    route("DELETE", ws!("/datastores/{name}"), "datastore_delete", Contributor, "remove a datastore"),
    route(
        "POST",
        ws!("/datastores/{name}/listSecrets"),
        "datastore_secrets",
        Contributor,
        "a short-lived signed token for the workspace's own stores",
    ),
    route(
        "POST",
        ws!("/{kind}/{name}/versions/{version}/startPendingUpload"),
        "upload_start",
        Contributor,
        "a container to upload the files of an asset to",
    ),
    route(
        "GET",
        ws!("/{kind}"),
        "assets",
        Reader,
        "names of a kind of asset: codes, data, models, environments, components",
    ),
    route("GET", ws!("/{kind}/{name}"), "asset_container", Reader, "one name with its latest and next version"),
    route(
        "GET",
        ws!("/{kind}/{name}/versions"),
        "asset_versions",
        Reader,
        "versions, newest first; by content `hash` for code",
    ),
    route("GET", ws!("/{kind}/{name}/versions/{version}"), "asset_get", Reader, "one version"),
    route(
        "GET",
        ws!("/{kind}/{name}/versions/{version}/uses"),
        "asset_uses",
        Reader,
        "the newest jobs that use a version, and the deployments that serve it",
    ),
    route(
        "PUT",
        ws!("/{kind}/{name}/versions/{version}"),
        "asset_put",
        Contributor,
        "create a version, or change its tags and archive mark",
    ),
    route("DELETE", ws!("/{kind}/{name}/versions/{version}"), "asset_delete", Contributor, "delete a version"),
    route(
        "PUT",
        ws!("/{kind}/{name}"),
        "asset_container_put",
        Contributor,
        "archive or restore a name, or change its description and tags",
    ),
    route(
        "GET",
        "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/registries",
        "registries_all",
        Known,
        "registries of a subscription",
    ),
    route(
        "GET",
        group!("Microsoft.MachineLearningServices/registries"),
        "registries",
        Known,
        "registries of a resource group",
    ),
    route("GET", registry!(""), "registry_get", Reader, "one registry"),
    route("PUT", registry!(""), "registry_put", Owner, "create or update a registry"),
    route("PATCH", registry!(""), "registry_patch", Owner, "change parts of a registry"),
    route("DELETE", registry!(""), "registry_delete", Owner, "delete a registry and everything in it"),
    route(
        "GET",
        "/registrymanagement/v1.0/registries/{registry}/discovery",
        "registry_discovery",
        Reader,
        "where a registry is to be found",
    ),
    route("POST", registry!("/import"), "registry_import", Contributor, "copy an asset of a workspace into a registry"),
    route(
        "PUT",
        registry!("/tempdatarefs/{name}/versions/{version}"),
        "registry_upload_link",
        Contributor,
        "a container to upload the files of an asset to",
    ),
    route(
        "POST",
        registry!("/datarefs/{name}/versions/{version}"),
        "registry_read_link",
        Reader,
        "a link to read the files of an asset",
    ),
    route(
        "POST",
        registry!("/{kind}/{name}/versions/{version}/startPendingUpload"),
        "registry_upload_start",
        Contributor,
        "a container to upload the files of an asset to",
    ),
    route("GET", registry!("/{kind}"), "registry_assets", Reader, "names of a kind of asset in a registry"),
    route(
        "GET",
        registry!("/{kind}/{name}"),
        "registry_asset_container",
        Reader,
        "one name with its latest and next version",
    ),
    route(
        "PUT",
        registry!("/{kind}/{name}"),
        "registry_asset_container_put",
        Contributor,
        "archive or restore a name, or change its description and tags",
    ),
    route("GET", registry!("/{kind}/{name}/versions"), "registry_asset_versions", Reader, "versions, newest first"),
    route("GET", registry!("/{kind}/{name}/versions/{version}"), "registry_asset_get", Reader, "one version"),
    route(
        "PUT",
        registry!("/{kind}/{name}/versions/{version}"),
        "registry_asset_put",
        Contributor,
        "create a version, or change its tags and archive mark",
    ),
    route(
        "DELETE",
        registry!("/{kind}/{name}/versions/{version}"),
        "registry_asset_delete",
        Contributor,
        "delete a version",
    ),
    route(
        "PUT",
        "/blob/{*path}",
        "blob_put",
        Signed,
        "write a blob, a block, a list of blocks, or metadata; make a container",
    ),
    route("GET", "/blob/{*path}", "blob_get", Signed, "read a blob, list a container or the blocks of a blob"),
    route("HEAD", "/blob/{*path}", "blob_head", Signed, "whether a blob or a container is there"),
    route("DELETE", "/blob/{*path}", "blob_delete", Signed, "delete a blob"),
    route("POST", "/agent/v1/poll", "agent_poll", Agent, "assignments and stops; waits until there are some"),
    route("POST", "/agent/v1/report", "agent_report", Agent, "what happened to attempts, and readings of the node"),
    route("PUT", "/agent/v1/attempts/{attempt}/logs/{*path}", "agent_log", Attempt, "add to a log at `offset`"),
    route(
        "POST",
        "/agent/v1/attempts/{attempt}/peers",
        "agent_peers",
        Attempt,
        "nodes of the same cluster that have a piece of data, each with a token for it",
    ),
    route(
        "POST",
        "/agent/v1/tunnels/{id}",
        "agent_tunnel",
        Agent,
        "the stream that a user waits for, or why there is none",
    ),
    route("GET", "/clusters", "clusters", Owner, "the Kubernetes clusters this server knows"),
    route("GET", "/clusters/{name}", "cluster_get", Owner, "one of them"),
    route("PUT", "/clusters/{name}", "cluster_put", Owner, "register a cluster, or renew its token; shows it once"),
    route("DELETE", "/clusters/{name}", "cluster_delete", Owner, "forget a cluster that no target lies on"),
    route(
        "POST",
        "/cluster/v1/poll",
        "cluster_poll",
        Cluster,
        "what an operator is to do; waits until there is something",
    ),
    route("POST", "/cluster/v1/report", "cluster_report", Cluster, "what a cluster has, and what happened there"),
    route("POST", "/node/v1/join", "node_join", Node, "a machine becomes a node of a managed cluster, once"),
    route(
        "POST",
        "/node/v1/poll",
        "node_poll",
        Node,
        "what a node holds; answers with what it is to do, and waits until there is something",
    ),
    route(
        "POST",
        "/router/v1/exchange",
        "router_exchange",
        Router,
        "what is asked of a router; answers with its routes, and waits until there are others",
    ),
];

/// Every route, MLflow's calls under each of their prefixes included.
pub fn all() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().chain(crate::mlflow::routes())
}
