// Made from docs/reference/openapi.json by `npm run gen`. Do not edit.
import { route } from "./route.ts";

export interface Resource { id: string; name: string; type: string; properties: Record<string, unknown> }
export interface Page { value: unknown[]; nextLink?: string | null }
export interface Error { error: { code: string; message: string; details: unknown[] } }
export interface MlflowError { error_code: string; message: string }
export interface OAuthError { error: string; error_description: string }

/** whether the process is alive */
export const health = route<unknown>()("GET", "/healthz");
/** the same as `/healthz` */
export const health_alias = route<unknown>()("GET", "/health");
/** whether the server can take work */
export const ready = route<unknown>()("GET", "/readyz");
/** this description */
export const openapi = route<unknown>()("GET", "/openapi.json");
/** what this cloud is called and where its services are */
export const cloud_metadata = route<unknown>()("GET", "/metadata/endpoints");
/** addresses of a workspace's services */
export const discovery = route<unknown>()("GET", "/discovery");
/** who may call this server */
export const principals = route<Page>()("GET", "/admin/v1/principals");
/** register a user or program; shows its secret once */
export const principal_create = route<unknown>()("POST", "/admin/v1/principals");
/** end someone's access */
export const principal_revoke = route<unknown>()("DELETE", "/admin/v1/principals/{id}");
/** every change and refusal, newest first */
export const audit = route<Page>()("GET", "/admin/v1/audit");
/** sign tokens with a new key from now on */
export const keys_rotate = route<unknown>()("POST", "/admin/v1/keys/rotate");
/** remove deleted runs and experiments for good, and give their space back */
export const free = route<unknown>()("POST", "/admin/v1/free");
/** who has which role in the workspace */
export const roles = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles");
/** give a principal a role */
export const role_grant = route<unknown>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles/{name}");
/** take a principal's role away */
export const role_revoke = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/roles/{name}");
/** changes and refusals in the workspace, newest first */
export const workspace_audit = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/audit");
/** counters and gauges in Prometheus text */
export const metrics = route<unknown>()("GET", "/metrics");
/** workspaces of a subscription */
export const workspaces_all = route<Page>()("GET", "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/workspaces");
/** workspaces of a resource group */
export const workspaces = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces");
/** one workspace */
export const workspace_get = route<Resource>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}");
/** create or update a workspace */
export const workspace_put = route<Resource>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}");
/** update a workspace */
export const workspace_patch = route<Resource>()("PATCH", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}");
/** delete a workspace that runs nothing */
export const workspace_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}");
/** keys of a workspace's parts; here it has none */
export const workspace_keys = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/listKeys");
/** create the workspace that a template's parameters describe */
export const template_put = route<unknown>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Resources/deployments/{name}");
/** a template deployment */
export const template_get = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Resources/deployments/{name}");
/** the steps of a template deployment */
export const template_steps = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/deployments/{name}/operations");
/** jobs, newest first */
export const jobs = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs");
/** one job */
export const job_get = route<Resource>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}");
/** submit a job, or change the tags and description of one */
export const job_put = route<Resource>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}");
/** archive a job that has ended */
export const job_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}");
/** ask a job to stop */
export const job_cancel = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/cancel");
/** whether a job that was asked to stop has gone */
export const job_canceled = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/cancel");
/** where a job is, and why */
export const job_why = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/why");
/** what a job has logged, thinned for charts */
export const job_metrics = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/metrics");
/** what a job logs, as server-sent events, until it ends */
export const job_metrics_stream = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/metrics/stream");
/** load of the node while the job ran */
export const job_samples = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/samples");
/** logs and captured files of a job */
export const job_artifacts = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/artifacts");
/** a piece of a file, from an offset; waits for more when asked */
export const job_artifact = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/jobs/{name}/artifacts/{path}");
/** a job as a run */
export const run_get = route<unknown>()("GET", "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}");
/** status, error and logs of a run; the links to its logs need no token */
export const run_details = route<unknown>()("GET", "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/details");
/** runs that a run started */
export const run_children = route<Page>()("GET", "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/children");
/** services that run on a node of a run */
export const run_services = route<unknown>()("GET", "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/runs/{name}/serviceinstances/{node}");
/** the run that the body names, with ids of its outputs */
export const run_data = route<unknown>()("POST", "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/rundata");
/** a run of an experiment */
export const experiment_run_get = route<unknown>()("GET", "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}");
/** add tags and properties, change the name and description, hide or show */
export const experiment_run_patch = route<unknown>()("PATCH", "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}");
/** status, error and logs of a run of an experiment */
export const experiment_run_details = route<unknown>()("GET", "/history/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/experiments/{experiment}/runs/{name}/details");
/** where ids of data and of runs' outputs lead */
export const data_resolve = route<unknown>()("POST", "/data/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/dataversion/batchGetResolvedUris");
/** where ids of models and of runs' model outputs lead */
export const models_resolve = route<unknown>()("POST", "/modelregistry/v1.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/models/batchGetResolvedUris");
/** compute targets */
export const computes = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes");
/** one compute target */
export const compute_get = route<Resource>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}");
/** create or update a compute target */
export const compute_put = route<Resource>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}");
/** remove a compute target */
export const compute_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}");
/** change parts of a compute target */
export const compute_patch = route<unknown>()("PATCH", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}");
/** nodes of a compute target */
export const compute_nodes = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/listNodes");
/** start a compute target */
export const compute_start = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/start");
/** stop a compute target */
export const compute_stop = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/stop");
/** restart a compute target */
export const compute_restart = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/computes/{name}/restart");
/** how much of this machine is in use */
export const workspace_usages = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/usages");
/** machine sizes that may be named */
export const vm_sizes = route<unknown>()("GET", "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/vmSizes");
/** how much of this machine is in use */
export const usages = route<unknown>()("GET", "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/usages");
/** the state of a long-running operation */
export const operation = route<unknown>()("GET", "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/operations/{id}");
/** the result of a long-running operation, once it has one */
export const operation_result = route<unknown>()("GET", "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{location}/operationResults/{id}");
/** schedules, by name */
export const schedules = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules");
/** one schedule */
export const schedule_get = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}");
/** create or update a schedule */
export const schedule_put = route<unknown>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}");
/** change parts of a schedule */
export const schedule_patch = route<unknown>()("PATCH", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}");
/** delete a schedule */
export const schedule_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/schedules/{name}");
/** online endpoints, by name */
export const online_endpoints = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints");
/** one online endpoint */
export const online_endpoint_get = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}");
/** create or update an online endpoint */
export const online_endpoint_put = route<unknown>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}");
/** change parts of an online endpoint */
export const online_endpoint_patch = route<unknown>()("PATCH", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}");
/** delete an online endpoint */
export const online_endpoint_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}");
/** the keys of an online endpoint */
export const online_endpoint_keys = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/listKeys");
/** draw one of an online endpoint's keys anew */
export const online_endpoint_regenerate = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/regenerateKeys");
/** a token that opens an online endpoint for a while */
export const online_endpoint_token = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/token");
/** online deployments, by name */
export const online_deployments = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments");
/** one online deployment */
export const online_deployment_get = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}");
/** create or update an online deployment */
export const online_deployment_put = route<unknown>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}");
/** change parts of an online deployment */
export const online_deployment_patch = route<unknown>()("PATCH", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}");
/** delete an online deployment */
export const online_deployment_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}");
/** the log of an online deployment */
export const online_deployment_logs = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/onlineEndpoints/{name}/deployments/{deployment}/getLogs");
/** batch endpoints, by name */
export const batch_endpoints = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints");
/** one batch endpoint */
export const batch_endpoint_get = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}");
/** create or update a batch endpoint */
export const batch_endpoint_put = route<unknown>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}");
/** change parts of a batch endpoint */
export const batch_endpoint_patch = route<unknown>()("PATCH", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}");
/** delete a batch endpoint */
export const batch_endpoint_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}");
/** jobs a batch endpoint has started */
export const batch_endpoint_jobs = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/jobs");
/** batch deployments, by name */
export const batch_deployments = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments");
/** one batch deployment */
export const batch_deployment_get = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}");
/** create or update a batch deployment */
export const batch_deployment_put = route<unknown>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}");
/** change parts of a batch deployment */
export const batch_deployment_patch = route<unknown>()("PATCH", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}");
/** delete a batch deployment */
export const batch_deployment_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/batchEndpoints/{name}/deployments/{deployment}");
/** a request to an online endpoint, opened by its own keys */
export const score = route<unknown>()("POST", "/api/v1/endpoint/{name}/score");
/** datastores */
export const datastores = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores");
/** one datastore, without secrets */
export const datastore_get = route<Resource>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}");
/** create or update a datastore */
export const datastore_put = route<Resource>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}");
/** remove a datastore */
export const datastore_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}");
/** a short-lived signed token for the workspace's own stores */
export const datastore_secrets = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/datastores/{name}/listSecrets");
/** a container to upload the files of an asset to */
export const upload_start = route<unknown>()("POST", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}/startPendingUpload");
/** names of a kind of asset: codes, data, models, environments, components */
export const assets = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}");
/** one name with its latest and next version */
export const asset_container = route<Resource>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}");
/** archive or restore a name, or change its description and tags */
export const asset_container_put = route<unknown>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}");
/** versions, newest first; by content `hash` for code */
export const asset_versions = route<Page>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions");
/** one version */
export const asset_get = route<Resource>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}");
/** create a version, or change its tags and archive mark */
export const asset_put = route<Resource>()("PUT", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}");
/** delete a version */
export const asset_delete = route<unknown>()("DELETE", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/{kind}/{name}/versions/{version}");
/** registries of a subscription */
export const registries_all = route<unknown>()("GET", "/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/registries");
/** registries of a resource group */
export const registries = route<unknown>()("GET", "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/registries");
/** make an experiment */
export const mlflow_experiment_create = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/create");
/** one experiment */
export const mlflow_experiment_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/get");
/** one experiment by its name */
export const mlflow_experiment_by_name = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/get-by-name");
/** experiments by filter */
export const mlflow_experiment_search = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search");
/** experiments by filter */
export const mlflow_experiment_search_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search");
/** rename an experiment */
export const mlflow_experiment_update = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/update");
/** put an experiment and its runs away */
export const mlflow_experiment_delete = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/delete");
/** bring an experiment back */
export const mlflow_experiment_restore = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/restore");
/** tag an experiment */
export const mlflow_experiment_set_tag = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/set-experiment-tag");
/** untag an experiment */
export const mlflow_experiment_delete_tag = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/delete-experiment-tag");
/** datasets that runs of experiments have read */
export const mlflow_datasets_search = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/experiments/search-datasets");
/** begin a run */
export const mlflow_run_create = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/create");
/** one run */
export const mlflow_run_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/get");
/** change a run's status or name */
export const mlflow_run_update = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/update");
/** put a run away */
export const mlflow_run_delete = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/delete");
/** bring a run back */
export const mlflow_run_restore = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/restore");
/** runs by filter, in an order, by pages */
export const mlflow_run_search = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/search");
/** one point */
export const mlflow_log_metric = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-metric");
/** one parameter */
export const mlflow_log_param = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-parameter");
/** one tag */
export const mlflow_set_tag = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/set-tag");
/** take a tag away */
export const mlflow_delete_tag = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/delete-tag");
/** points, parameters and tags together */
export const mlflow_log_batch = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-batch");
/** datasets a run has read */
export const mlflow_log_inputs = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-inputs");
/** note a model among a run's artifacts */
export const mlflow_log_model = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/log-model");
/** models a run has made */
export const mlflow_log_outputs = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/runs/outputs");
/** every point of a metric, by pages */
export const mlflow_history = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history");
/** points of a metric of several runs */
export const mlflow_history_of_runs = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history-bulk");
/** points of a metric of several runs, thinned for charts */
export const mlflow_history_bulk = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/metrics/get-history-bulk-interval");
/** register a model's name */
export const mlflow_model_create = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/create");
/** one registered model */
export const mlflow_model_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get");
/** describe a registered model */
export const mlflow_model_update = route<unknown>()("PATCH", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/update");
/** give a registered model another name */
export const mlflow_model_rename = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/rename");
/** remove a registered model and its versions */
export const mlflow_model_delete = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/delete");
/** registered models by filter */
export const mlflow_model_search = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/search");
/** the newest version of each stage */
export const mlflow_model_latest = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get-latest-versions");
/** the newest version of each stage */
export const mlflow_model_latest_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/get-latest-versions");
/** tag a registered model */
export const mlflow_model_set_tag = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/set-tag");
/** untag a registered model */
export const mlflow_model_delete_tag = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/delete-tag");
/** name a version by an alias */
export const mlflow_alias_set = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias");
/** take an alias away */
export const mlflow_alias_delete = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias");
/** the version an alias names */
export const mlflow_alias_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/registered-models/alias");
/** register a version of a model */
export const mlflow_version_create = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/create");
/** one version of a model */
export const mlflow_version_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/get");
/** describe a version */
export const mlflow_version_update = route<unknown>()("PATCH", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/update");
/** move a version to a stage */
export const mlflow_version_transition = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/transition-stage");
/** remove a version */
export const mlflow_version_delete = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/delete");
/** versions by filter */
export const mlflow_version_search = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/search");
/** where a version's files are */
export const mlflow_version_uri = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/get-download-uri");
/** tag a version */
export const mlflow_version_set_tag = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/set-tag");
/** untag a version */
export const mlflow_version_delete_tag = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/model-versions/delete-tag");
/** begin to log a model */
export const mlflow_logged_create = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models");
/** logged models by filter */
export const mlflow_logged_search = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/search");
/** one logged model */
export const mlflow_logged_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}");
/** say that a logged model is whole, or is not */
export const mlflow_logged_finalize = route<unknown>()("PATCH", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}");
/** remove a logged model */
export const mlflow_logged_delete = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}");
/** parameters of a logged model */
export const mlflow_logged_params = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/params");
/** tag a logged model */
export const mlflow_logged_set_tags = route<unknown>()("PATCH", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/tags");
/** untag a logged model */
export const mlflow_logged_delete_tag = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/tags/{tag}");
/** files of a logged model */
export const mlflow_logged_files = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/logged-models/{model}/artifacts/directories");
/** ask to be told of changes in the model registry */
export const mlflow_webhook_create = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks");
/** webhooks, newest first */
export const mlflow_webhook_list = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks");
/** one webhook */
export const mlflow_webhook_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}");
/** change a webhook */
export const mlflow_webhook_update = route<unknown>()("PATCH", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}");
/** remove a webhook */
export const mlflow_webhook_delete = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}");
/** send a webhook an example and show its answer */
export const mlflow_webhook_test = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/webhooks/{webhook}/test");
/** files of a run */
export const mlflow_artifact_list = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow/artifacts/list");
/** write a file of a run */
export const mlflow_artifact_put = route<unknown>()("PUT", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}");
/** read a file of a run */
export const mlflow_artifact_get = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}");
/** remove a file of a run */
export const mlflow_artifact_delete = route<unknown>()("DELETE", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts/{path}");
/** files under a path */
export const mlflow_artifact_folder = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/artifacts");
/** uploads in parts, which clients need not make here */
export const mlflow_artifact_parts = route<unknown>()("POST", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/2.0/mlflow-artifacts/mpu/{step}/{path}");
/** read a file of a run, as pages ask for it */
export const mlflow_artifact_of_run = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/get-artifact");
/** which of MLflow's optional features there are */
export const mlflow_server_info = route<unknown>()("GET", "/mlflow/v2.0/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.MachineLearningServices/workspaces/{workspace}/api/3.0/mlflow/server-info");
