// What the answers hold beyond their envelope, as far as the pages read it.
import type { Page as AnyPage, Resource as AnyResource } from "./routes.ts";

// These are described whole in the document of the API.
export type { PersonUse, Queue, Team, Teams, UsageOf, Waiting, WorkspaceUse } from "./routes.ts";

export interface Page<Item> extends AnyPage {
  value: Item[];
  nextLink?: string | null;
}

export interface Resource<Properties> extends AnyResource {
  properties: Properties & Record<string, unknown>;
  systemData?: { createdAt?: string; createdBy?: string; lastModifiedAt?: string };
  /** Which state of it this is, where it can be changed from that state alone. */
  etag?: string;
}

export interface Workspace {
  name: string;
  path: string;
  role: "reader" | "contributor" | "owner";
}

export interface Session {
  name: string;
  workspace: string;
  workspaces: Workspace[];
  everywhere: Workspace["role"] | null;
  version: string;
  /** Where other machines find the server, whatever this browser calls it. */
  address: string;
  until: string | null;
}

export interface Failure {
  code: string;
  message: string;
}

export interface Input {
  jobInputType?: string;
  value?: string;
  uri?: string;
  mode?: string;
}

export interface JobProperties {
  jobType: string;
  displayName: string;
  experimentName: string;
  status: string;
  description?: string;
  command?: string;
  computeId?: string;
  environmentId?: string;
  environmentVariables?: Record<string, string>;
  resources?: { instanceType?: string | null; instanceCount?: number };
  codeId?: string;
  isArchived: boolean;
  tags: Record<string, string>;
  properties: Record<string, string>;
  inputs?: Record<string, Input>;
  outputs?: Record<string, { jobOutputType?: string; uri?: string; mode?: string; assetName?: string }>;
  peregrine: {
    phase: string;
    note: string;
    target: string;
    attempts: number;
    logs: string;
    isolation?: string;
    startedAt?: string;
    endedAt?: string;
    failure?: Failure;
    reason?: string;
  };
}

export type Job = Resource<JobProperties>;

export interface Why {
  name: string;
  status: string;
  phase: string;
  note: string;
  target: string;
  ahead: number;
  summary: string;
  failure: Failure | null;
  hints: string[];
  events: { at: string; kind: string; text: string }[];
}

export interface Limits {
  cpus: number | null;
  memoryBytes: number | null;
  gpus: number | null;
  jobs: number | null;
}

export interface Quota {
  /** Nobody for the workspace as a whole, `*` for everyone in it each, `@name` for a team. */
  user: string;
  team: string | null;
  target: string | null;
  limits: Limits;
  described: string;
  inUse: (Limits & { user: string })[];
}

export interface KeyValue {
  key: string;
  value: string;
}

export interface Run {
  info: {
    run_id: string;
    run_name: string;
    experiment_id: string;
    user_id: string;
    status: string;
    start_time: number;
    end_time?: number;
    lifecycle_stage: string;
  };
  data: { metrics?: { key: string; value: number | string }[]; params?: KeyValue[]; tags?: KeyValue[] };
}

export interface Runs {
  runs?: Run[];
  next_page_token?: string;
  /** Where it was asked for: counted up to a limit where a filter has to look at each. */
  total?: { runs: number; at_least: boolean };
}

export interface Point {
  step: number;
  timestamp: number;
  value: number | string;
}

export interface Line {
  key: string;
  points: Point[];
  latest?: Point;
  count?: number;
}

export interface Metrics {
  name: string;
  status: string;
  value: Line[];
  leftOut: number;
  /** Other runs that were asked for. */
  also?: Metrics[];
}

export interface Sample {
  /** Which part of the job it is of. */
  part: number;
  at: number;
  cpu_percent: number;
  memory_used_bytes: number;
  memory_total_bytes: number;
  gpus: { index?: number; utilization_percent?: number; memory_used_bytes?: number; memory_total_bytes?: number }[];
}

export interface Artifact {
  path: string;
  size: number;
  modifiedAt: string;
}

export interface AssetProperties {
  description?: string | null;
  tags?: Record<string, string> | null;
  properties?: Record<string, string> | null;
  latestVersion?: string;
  isArchived?: boolean;
  dataType?: string;
  modelType?: string;
  dataUri?: string;
  modelUri?: string;
  image?: string;
  condaFile?: string;
  jobName?: string;
}

export type Asset = Resource<AssetProperties>;

export interface Uses {
  jobs: { name: string; displayName: string; status: string; input: string }[];
  deployments: { endpoint: string; name: string; state: string }[];
}

export interface Check {
  check: string;
  passed: boolean;
  detail: string;
}

export interface Amounts {
  cpu_milli: number;
  memory_bytes: number;
  gpus: number;
}

export interface Shared {
  allocatable: Amounts;
  free: Amounts;
}

/** How full a target was at one moment. */
export interface Fullness extends Shared {
  at: string;
  nodes: number;
  readyNodes: number;
  runningJobs: number;
  waitingJobs: number;
}

export interface ComputeProperties {
  computeType: string;
  provisioningState: string;
  description?: string;
  resourceId?: string;
  /** Where they were asked for. */
  nodes?: Node[];
  properties?: {
    /** Of a machine; of a cluster, what its nodes have together. */
    capacity?: Record<string, string> | Shared;
    instanceTypes?: Record<string, { fitsNow?: number; resources?: { requests?: Record<string, string>; limits?: Record<string, string> | null } }>;
    namespace?: string;
    cluster?: string;
    address?: string;
    host?: string;
    checks?: Check[];
    /** Of a managed cluster. */
    vmSize?: string;
    vmPriority?: string;
    scaleSettings?: { minNodeCount?: number; maxNodeCount?: number; nodeIdleTimeBeforeScaleDown?: string };
    currentNodeCount?: number;
    nodeProvider?: { type?: string; program?: string };
    /** Of a pool. */
    targets?: string[];
    maxData?: string;
  };
}

export interface Cluster {
  name: string;
  answers: boolean;
}

export type Compute = Resource<ComputeProperties>;

export interface Node {
  nodeId: string;
  nodeState: string;
  reason?: string | null;
  runId: string | null;
  seenAt?: string;
  capacity?: Amounts;
  gpuModels?: string[];
}

export interface Usage {
  currentValue: number;
  limit: number;
  name: { value: string };
}

/** Someone, or a program, with a token. */
export interface Principal {
  clientId: string;
  name: string;
  state: string;
  roles?: Record<string, string>;
  createdAt: string;
  expiresAt: string | null;
}

export interface AuditLine {
  at: string;
  caller: string;
  workspace: string;
  operation: string;
  method: string;
  path: string;
  result: string;
}

export type Endpoint = Resource<EndpointProperties>;

/** How an endpoint answered a call that the server made. */
export interface Tried {
  status: number;
  contentType: string | null;
  deployment: string | null;
  modelStatus: string | null;
  requestId: string | null;
  output: string;
  /** Whether the answer was longer. */
  cut: boolean;
  milliseconds: number;
}

export interface Answered {
  at: string;
  deployment: string;
  /** Copies of requests that another deployment has answered. */
  mirrored: boolean;
  codes: Record<string, number>;
  buckets: number[];
}

export interface ReplicaLife {
  name: string;
  deployment: string;
  note: string;
  askedForAt: string;
  readyAt: string | null;
  leavingAt: string | null;
  goneAt: string | null;
}

export interface Activity {
  stepSeconds: number;
  boundsSeconds: number[];
  answers: Answered[];
  replicas: ReplicaLife[];
}

export interface EndpointProperties {
  authMode?: string;
  scoringUri?: string;
  provisioningState?: string;
  traffic?: Record<string, number>;
  mirrorTraffic?: Record<string, number>;
  description?: string;
  /** Whether it answers (`peregrine.health`), and why not (`peregrine.state`). */
  properties?: Record<string, string>;
}

export interface ScheduleProperties {
  isEnabled?: boolean;
  description?: string;
  trigger?: unknown;
  action?: { actionType?: string };
  properties?: Record<string, string>;
  peregrine?: { next: string[]; runs: { dueAt: string; cause: string; made: string | null; problem: string | null }[] };
}

export type Schedule = Resource<ScheduleProperties>;

export interface BatchEndpointProperties {
  description?: string;
  provisioningState?: string;
  scoringUri?: string;
  defaults?: { deploymentName?: string };
}

export type BatchEndpoint = Resource<BatchEndpointProperties>;

export interface BatchDeploymentProperties {
  compute?: string;
  model?: { assetId?: string };
  deploymentConfiguration?: { componentId?: { assetId?: string } };
  miniBatchSize?: number;
}

export type BatchDeployment = Resource<BatchDeploymentProperties>;
export type BatchJob = Resource<{ status: string }>;

export type Deployment = Resource<DeploymentProperties>;

export interface DeploymentProperties {
  provisioningState?: string;
  model?: string | null;
  instanceType?: string;
  properties?: Record<string, string>;
}
