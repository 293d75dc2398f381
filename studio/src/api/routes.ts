// Made from docs/reference/openapi.json by `npm run gen`. Do not edit.
import type { Route } from "./route.ts";

export interface Resource { id: string; name: string; type: string; properties: Record<string, unknown> }
export interface Page { value: unknown[]; nextLink?: string | null }
export interface Error { error: { code: string; message: string; details: unknown[] } }
export interface MlflowError { error_code: string; message: string }
export interface OAuthError { error: string; error_description: string }
export interface Waiting { name: string; displayName: string; user: string; target: string; since: string; note: string; ahead: number; expected: string | null }
export interface Queue { value: Waiting[]; more: boolean }
export interface PersonUse { user: string; jobs: number; cpus: number; memoryBytes: number; gpus: number; coreHours: number }
export interface WorkspaceUse { workspace: string; jobs: number; cpus: number; memoryBytes: number; gpus: number; coreHours: number }
export interface UsageOf { value: PersonUse[]; workspaces?: WorkspaceUse[] }
export interface Team { name: string; people: string[] }
export interface Teams { value: Team[] }

/** whether the process is alive */
export const health: Route<"/healthz", unknown> = { method: "GET", path: "/healthz" };
/** the same as `/healthz` */
export const health_alias: Route<"/health", unknown> = { method: "GET", path: "/health" };
/** whether the server can take work */
export const ready: Route<"/readyz", unknown> = { method: "GET", path: "/readyz" };
/** this description */
export const openapi: Route<"/openapi.json", unknown> = { method: "GET", path: "/openapi.json" };
/** what this cloud is called and where its services are */
export const cloud_metadata: Route<"/metadata/endpoints", unknown> = { method: "GET", path: "/metadata/endpoints" };
/** addresses of a workspace's services */
export const discovery: Route<"/discovery", unknown> = { method: "GET", path: "/discovery" };
/** who may call this server */
export const principals: Route<"/admin/v1/principals", Page> = { method: "GET", path: "/admin/v1/principals" };
/** register a user or program; shows its secret once */
export const principal_create: Route<"/admin/v1/principals", unknown> = { method: "POST", path: "/admin/v1/principals" };
/** end someone's access */
export const principal_revoke: Route<"/admin/v1/principals/{id}", unknown> = { method: "DELETE", path: "/admin/v1/principals/{id}" };
/** every change and refusal, newest first */
export const audit: Route<"/admin/v1/audit", Page> = { method: "GET", path: "/admin/v1/audit" };
/** sign tokens with a new key from now on */
export const keys_rotate: Route<"/admin/v1/keys/rotate", unknown> = { method: "POST", path: "/admin/v1/keys/rotate" };
/** remove deleted runs and experiments for good, and give their space back */
export const free: Route<"/admin/v1/free", unknown> = { method: "POST", path: "/admin/v1/free" };
/** who has which role in the workspace */
export const roles: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles" };
/** give a principal a role */
export const role_grant: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles/{name}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles/{name}" };
/** take a principal's role away */
export const role_revoke: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles/{name}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles/{name}" };
/** how much may be held at once, and by whom what of it is in use */
export const quotas: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/quotas", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/quotas" };
/** set a quota; one without amounts is taken away */
export const quota_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/quotas", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/quotas" };
/** the teams of the workspace: people who may share a quota */
export const teams: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/teams", Teams> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/teams" };
/** make a team, or say anew who is in it */
export const team_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/teams/{name}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/teams/{name}" };
/** take a team away that has no quota */
export const team_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/teams/{name}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/teams/{name}" };
/** who has what now, and who has used how much in the last week */
export const usage: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/usage", UsageOf> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/usage" };
/** changes and refusals in the workspace, newest first */
export const workspace_audit: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/audit", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/audit" };
/** a link that opens the studio once, soon */
export const studio_link: Route<"/admin/v1/studio/links", unknown> = { method: "POST", path: "/admin/v1/studio/links" };
/** a browser's session, for the code of a link */
export const session_enter: Route<"/admin/v1/studio/session", unknown> = { method: "POST", path: "/admin/v1/studio/session" };
/** who the caller is and where they may look */
export const session: Route<"/admin/v1/studio/session", unknown> = { method: "GET", path: "/admin/v1/studio/session" };
/** end a browser's session */
export const session_leave: Route<"/admin/v1/studio/session", unknown> = { method: "DELETE", path: "/admin/v1/studio/session" };
/** counters and gauges in Prometheus text */
export const metrics: Route<"/metrics", unknown> = { method: "GET", path: "/metrics" };
/** workspaces of a subscription */
export const workspaces_all: Route<"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/workspaces", Page> = { method: "GET", path: "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/workspaces" };
/** workspaces of a resource group */
export const workspaces: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces" };
/** one workspace */
export const workspace_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}", Resource> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}" };
/** create or update a workspace */
export const workspace_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}", Resource> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}" };
/** update a workspace */
export const workspace_patch: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}", Resource> = { method: "PATCH", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}" };
/** delete a workspace that runs nothing */
export const workspace_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}" };
/** keys of a workspace's parts; here it has none */
export const workspace_keys: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/listKeys", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/listKeys" };
/** create the workspace that a template's parameters describe */
export const template_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Resources/deployments/{name}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Resources/deployments/{name}" };
/** a template deployment */
export const template_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Resources/deployments/{name}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Resources/deployments/{name}" };
/** the steps of a template deployment */
export const template_steps: Route<"/subscriptions/{subscription}/resourceGroups/{group}/deployments/{name}/operations", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/deployments/{name}/operations" };
/** jobs, newest first */
export const jobs: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs" };
/** one job */
export const job_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}", Resource> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}" };
/** submit a job, or change the tags and description of one */
export const job_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}", Resource> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}" };
/** archive a job that has ended */
export const job_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}" };
/** ask a job to stop */
export const job_cancel: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/cancel", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/cancel" };
/** whether a job that was asked to stop has gone */
export const job_canceled: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/cancel", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/cancel" };
/** the jobs that wait: why, for how many others, and until when */
export const queue: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/queue", Queue> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/queue" };
/** where a job is, and why */
export const job_why: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/why", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/why" };
/** a stream to a service of a job that runs, on `node` */
export const job_connect: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/services/{service}/connect", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/services/{service}/connect" };
/** the steps of a pipeline and where each is */
export const job_graph: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/graph", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/graph" };
/** what a job has logged, thinned for charts */
export const job_metrics: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/metrics", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/metrics" };
/** what a job logs, as server-sent events, until it ends */
export const job_metrics_stream: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/metrics/stream", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/metrics/stream" };
/** load of the node while the job ran */
export const job_samples: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/samples", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/samples" };
/** logs and captured files of a job */
export const job_artifacts: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/artifacts", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/artifacts" };
/** a piece of a file, from an offset; waits for more when asked */
export const job_artifact: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/artifacts/{path}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/artifacts/{path}" };
/** a job as a run */
export const run_get: Route<"/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}", unknown> = { method: "GET", path: "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}" };
/** status, error and logs of a run; the links to its logs need no token */
export const run_details: Route<"/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/details", unknown> = { method: "GET", path: "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/details" };
/** runs that a run started */
export const run_children: Route<"/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/children", Page> = { method: "GET", path: "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/children" };
/** services that run on a node of a run */
export const run_services: Route<"/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/serviceinstances/{node}", unknown> = { method: "GET", path: "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/serviceinstances/{node}" };
/** the run that the body names, with ids of its outputs */
export const run_data: Route<"/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/rundata", unknown> = { method: "POST", path: "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/rundata" };
/** a run of an experiment */
export const experiment_run_get: Route<"/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}", unknown> = { method: "GET", path: "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}" };
/** add tags and properties, change the name and description, hide or show */
export const experiment_run_patch: Route<"/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}", unknown> = { method: "PATCH", path: "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}" };
/** status, error and logs of a run of an experiment */
export const experiment_run_details: Route<"/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}/details", unknown> = { method: "GET", path: "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}/details" };
/** where ids of data and of runs' outputs lead */
export const data_resolve: Route<"/data/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/dataversion/batchGetResolvedUris", unknown> = { method: "POST", path: "/data/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/dataversion/batchGetResolvedUris" };
/** where ids of models and of runs' model outputs lead */
export const models_resolve: Route<"/modelregistry/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/models/batchGetResolvedUris", unknown> = { method: "POST", path: "/modelregistry/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/models/batchGetResolvedUris" };
/** compute targets */
export const computes: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes" };
/** one compute target */
export const compute_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}", Resource> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}" };
/** create or update a compute target */
export const compute_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}", Resource> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}" };
/** remove a compute target */
export const compute_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}" };
/** change parts of a compute target */
export const compute_patch: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}", unknown> = { method: "PATCH", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}" };
/** nodes of a compute target */
export const compute_nodes: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/listNodes", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/listNodes" };
/** how full a compute target was lately */
export const compute_usage: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/usage", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/usage" };
/** take a node of a managed cluster back, as its owner might */
export const compute_preempt: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/preempt", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/preempt" };
/** start a compute target */
export const compute_start: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/start", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/start" };
/** stop a compute target */
export const compute_stop: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/stop", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/stop" };
/** restart a compute target */
export const compute_restart: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/restart", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/restart" };
/** how much of this machine is in use */
export const workspace_usages: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/usages", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/usages" };
/** machine sizes that may be named */
export const vm_sizes: Route<"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/vmSizes", unknown> = { method: "GET", path: "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/vmSizes" };
/** what there is in all, and what workspaces may have */
export const subscription_quotas: Route<"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/quotas", unknown> = { method: "GET", path: "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/quotas" };
/** set quotas of workspaces */
export const subscription_quotas_update: Route<"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/updateQuotas", unknown> = { method: "POST", path: "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/updateQuotas" };
/** how much of this machine is in use */
export const usages: Route<"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/usages", unknown> = { method: "GET", path: "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/usages" };
/** the state of a long-running operation */
export const operation: Route<"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/operations/{id}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/operations/{id}" };
/** the result of a long-running operation, once it has one */
export const operation_result: Route<"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/operationResults/{id}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/operationResults/{id}" };
/** schedules, by name */
export const schedules: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules" };
/** one schedule */
export const schedule_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}" };
/** create or update a schedule */
export const schedule_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}" };
/** change parts of a schedule */
export const schedule_patch: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}", unknown> = { method: "PATCH", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}" };
/** delete a schedule */
export const schedule_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}" };
/** start what a schedule starts, now, whether it is on or off */
export const schedule_trigger: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}/trigger", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}/trigger" };
/** online endpoints, by name */
export const online_endpoints: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints" };
/** one online endpoint */
export const online_endpoint_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}" };
/** create or update an online endpoint */
export const online_endpoint_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}" };
/** change parts of an online endpoint */
export const online_endpoint_patch: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}", unknown> = { method: "PATCH", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}" };
/** delete an online endpoint */
export const online_endpoint_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}" };
/** the keys of an online endpoint */
export const online_endpoint_keys: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/listKeys", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/listKeys" };
/** draw one of an online endpoint's keys anew */
export const online_endpoint_regenerate: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/regenerateKeys", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/regenerateKeys" };
/** a token that opens an online endpoint for a while */
export const online_endpoint_token: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/token", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/token" };
/** what the server's own router has counted of an online endpoint, in Prometheus text */
export const online_endpoint_counters: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/counters", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/counters" };
/** what an online endpoint has answered in the last hours, and how its replicas came and went */
export const online_endpoint_activity: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/activity", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/activity" };
/** call an online endpoint as its users do; how it answered */
export const online_endpoint_try: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/try", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/try" };
/** online deployments, by name */
export const online_deployments: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments" };
/** one online deployment */
export const online_deployment_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}" };
/** create or update an online deployment */
export const online_deployment_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}" };
/** change parts of an online deployment */
export const online_deployment_patch: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}", unknown> = { method: "PATCH", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}" };
/** delete an online deployment */
export const online_deployment_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}" };
/** the log of an online deployment */
export const online_deployment_logs: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}/getLogs", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}/getLogs" };
/** batch endpoints, by name */
export const batch_endpoints: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints" };
/** one batch endpoint */
export const batch_endpoint_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}" };
/** create or update a batch endpoint */
export const batch_endpoint_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}" };
/** change parts of a batch endpoint */
export const batch_endpoint_patch: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}", unknown> = { method: "PATCH", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}" };
/** delete a batch endpoint */
export const batch_endpoint_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}" };
/** jobs a batch endpoint has started */
export const batch_endpoint_jobs: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/jobs", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/jobs" };
/** batch deployments, by name */
export const batch_deployments: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments" };
/** one batch deployment */
export const batch_deployment_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}" };
/** create or update a batch deployment */
export const batch_deployment_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}" };
/** change parts of a batch deployment */
export const batch_deployment_patch: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}", unknown> = { method: "PATCH", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}" };
/** delete a batch deployment */
export const batch_deployment_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}" };
/** jobs a batch deployment has started */
export const batch_deployment_jobs: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}/jobs", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}/jobs" };
/** run a batch endpoint */
export const batch_score: Route<"/batchscore/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/jobs", unknown> = { method: "POST", path: "/batchscore/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/jobs" };
/** datastores */
export const datastores: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores" };
/** one datastore, without secrets */
export const datastore_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}", Resource> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}" };
/** create or update a datastore */
export const datastore_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}", Resource> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}" };
/** remove a datastore */
export const datastore_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}" };
/** a short-lived signed token for the workspace's own stores */
export const datastore_secrets: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}/listSecrets", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}/listSecrets" };
/** a container to upload the files of an asset to */
export const upload_start: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}/startPendingUpload", unknown> = { method: "POST", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}/startPendingUpload" };
/** names of a kind of asset: codes, data, models, environments, components */
export const assets: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}" };
/** one name with its latest and next version */
export const asset_container: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}", Resource> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}" };
/** archive or restore a name, or change its description and tags */
export const asset_container_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}", unknown> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}" };
/** versions, newest first; by content `hash` for code */
export const asset_versions: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions", Page> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions" };
/** one version */
export const asset_get: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}", Resource> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}" };
/** create a version, or change its tags and archive mark */
export const asset_put: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}", Resource> = { method: "PUT", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}" };
/** delete a version */
export const asset_delete: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}", unknown> = { method: "DELETE", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}" };
/** the newest jobs that use a version, and the deployments that serve it */
export const asset_uses: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}/uses", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}/uses" };
/** registries of a subscription */
export const registries_all: Route<"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/registries", unknown> = { method: "GET", path: "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/registries" };
/** registries of a resource group */
export const registries: Route<"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/registries", unknown> = { method: "GET", path: "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/registries" };
/** the Kubernetes clusters this server knows */
export const clusters: Route<"/clusters", unknown> = { method: "GET", path: "/clusters" };
/** a machine becomes a node of a managed cluster, once */
export const node_join: Route<"/node/v1/join", unknown> = { method: "POST", path: "/node/v1/join" };
/** what a node holds; answers with what it is to do, and waits until there is something */
export const node_poll: Route<"/node/v1/poll", unknown> = { method: "POST", path: "/node/v1/poll" };
/** what is asked of a router; answers with its routes, and waits until there are others */
export const router_exchange: Route<"/router/v1/exchange", unknown> = { method: "POST", path: "/router/v1/exchange" };
/** make an experiment */
export const mlflow_experiment_create: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/create", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/create" };
/** one experiment */
export const mlflow_experiment_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/get", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/get" };
/** one experiment by its name */
export const mlflow_experiment_by_name: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/get-by-name", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/get-by-name" };
/** experiments by filter */
export const mlflow_experiment_search: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search" };
/** experiments by filter */
export const mlflow_experiment_search_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search" };
/** rename an experiment */
export const mlflow_experiment_update: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/update", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/update" };
/** put an experiment and its runs away */
export const mlflow_experiment_delete: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/delete", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/delete" };
/** bring an experiment back */
export const mlflow_experiment_restore: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/restore", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/restore" };
/** tag an experiment */
export const mlflow_experiment_set_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/set-experiment-tag", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/set-experiment-tag" };
/** untag an experiment */
export const mlflow_experiment_delete_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/delete-experiment-tag", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/delete-experiment-tag" };
/** datasets that runs of experiments have read */
export const mlflow_datasets_search: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search-datasets", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search-datasets" };
/** begin a run */
export const mlflow_run_create: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/create", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/create" };
/** one run */
export const mlflow_run_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/get", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/get" };
/** change a run's status or name */
export const mlflow_run_update: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/update", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/update" };
/** put a run away */
export const mlflow_run_delete: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/delete", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/delete" };
/** bring a run back */
export const mlflow_run_restore: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/restore", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/restore" };
/** runs by filter, in an order, by pages */
export const mlflow_run_search: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/search", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/search" };
/** one point */
export const mlflow_log_metric: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-metric", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-metric" };
/** one parameter */
export const mlflow_log_param: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-parameter", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-parameter" };
/** one tag */
export const mlflow_set_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/set-tag", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/set-tag" };
/** take a tag away */
export const mlflow_delete_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/delete-tag", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/delete-tag" };
/** points, parameters and tags together */
export const mlflow_log_batch: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-batch", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-batch" };
/** datasets a run has read */
export const mlflow_log_inputs: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-inputs", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-inputs" };
/** note a model among a run's artifacts */
export const mlflow_log_model: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-model", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-model" };
/** models a run has made */
export const mlflow_log_outputs: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/outputs", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/outputs" };
/** every point of a metric, by pages */
export const mlflow_history: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history" };
/** points of a metric of several runs */
export const mlflow_history_of_runs: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history-bulk", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history-bulk" };
/** points of a metric of several runs, thinned for charts */
export const mlflow_history_bulk: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history-bulk-interval", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history-bulk-interval" };
/** register a model's name */
export const mlflow_model_create: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/create", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/create" };
/** one registered model */
export const mlflow_model_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get" };
/** describe a registered model */
export const mlflow_model_update: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/update", unknown> = { method: "PATCH", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/update" };
/** give a registered model another name */
export const mlflow_model_rename: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/rename", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/rename" };
/** remove a registered model and its versions */
export const mlflow_model_delete: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/delete", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/delete" };
/** registered models by filter */
export const mlflow_model_search: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/search", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/search" };
/** the newest version of each stage */
export const mlflow_model_latest: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get-latest-versions", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get-latest-versions" };
/** the newest version of each stage */
export const mlflow_model_latest_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get-latest-versions", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get-latest-versions" };
/** tag a registered model */
export const mlflow_model_set_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/set-tag", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/set-tag" };
/** untag a registered model */
export const mlflow_model_delete_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/delete-tag", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/delete-tag" };
/** name a version by an alias */
export const mlflow_alias_set: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias" };
/** take an alias away */
export const mlflow_alias_delete: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias" };
/** the version an alias names */
export const mlflow_alias_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias" };
/** register a version of a model */
export const mlflow_version_create: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/create", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/create" };
/** one version of a model */
export const mlflow_version_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/get", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/get" };
/** describe a version */
export const mlflow_version_update: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/update", unknown> = { method: "PATCH", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/update" };
/** move a version to a stage */
export const mlflow_version_transition: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/transition-stage", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/transition-stage" };
/** remove a version */
export const mlflow_version_delete: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/delete", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/delete" };
/** versions by filter */
export const mlflow_version_search: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/search", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/search" };
/** where a version's files are */
export const mlflow_version_uri: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/get-download-uri", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/get-download-uri" };
/** tag a version */
export const mlflow_version_set_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/set-tag", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/set-tag" };
/** untag a version */
export const mlflow_version_delete_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/delete-tag", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/delete-tag" };
/** begin to log a model */
export const mlflow_logged_create: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models" };
/** logged models by filter */
export const mlflow_logged_search: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/search", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/search" };
/** one logged model */
export const mlflow_logged_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}" };
/** say that a logged model is whole, or is not */
export const mlflow_logged_finalize: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}", unknown> = { method: "PATCH", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}" };
/** remove a logged model */
export const mlflow_logged_delete: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}" };
/** parameters of a logged model */
export const mlflow_logged_params: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/params", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/params" };
/** tag a logged model */
export const mlflow_logged_set_tags: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/tags", unknown> = { method: "PATCH", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/tags" };
/** untag a logged model */
export const mlflow_logged_delete_tag: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/tags/{tag}", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/tags/{tag}" };
/** files of a logged model */
export const mlflow_logged_files: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/artifacts/directories", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/artifacts/directories" };
/** ask to be told of changes in the model registry */
export const mlflow_webhook_create: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks" };
/** webhooks, newest first */
export const mlflow_webhook_list: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks" };
/** one webhook */
export const mlflow_webhook_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}" };
/** change a webhook */
export const mlflow_webhook_update: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}", unknown> = { method: "PATCH", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}" };
/** remove a webhook */
export const mlflow_webhook_delete: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}" };
/** send a webhook an example and show its answer */
export const mlflow_webhook_test: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}/test", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}/test" };
/** files of a run */
export const mlflow_artifact_list: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/artifacts/list", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/artifacts/list" };
/** write a file of a run */
export const mlflow_artifact_put: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}", unknown> = { method: "PUT", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}" };
/** read a file of a run */
export const mlflow_artifact_get: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}" };
/** remove a file of a run */
export const mlflow_artifact_delete: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}", unknown> = { method: "DELETE", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}" };
/** files under a path */
export const mlflow_artifact_folder: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts" };
/** uploads in parts, which clients need not make here */
export const mlflow_artifact_parts: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/mpu/{step}/{path}", unknown> = { method: "POST", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/mpu/{step}/{path}" };
/** read a file of a run, as pages ask for it */
export const mlflow_artifact_of_run: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/get-artifact", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/get-artifact" };
/** which of MLflow's optional features there are */
export const mlflow_server_info: Route<"/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/3.0/mlflow/server-info", unknown> = { method: "GET", path: "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/3.0/mlflow/server-info" };
