// Runs and experiments, as MLflow's search gives them.
import { ask } from "../api/call.ts";
import { mlflow_experiment_search, mlflow_run_search } from "../api/routes.ts";
import type { Experiment, Run, Runs } from "../api/shapes.ts";
import type { Scope } from "./scope.ts";

type Names = Scope["names"];

/** Experiments that are not deleted. */
async function experiments(names: Names): Promise<Experiment[]> {
  const found: Experiment[] = [];
  let page_token: string | undefined;
  do {
    const body = { max_results: 1000, page_token };
    const page = await ask<{ experiments?: Experiment[]; next_page_token?: string }>(mlflow_experiment_search, names, { body });
    found.push(...(page.experiments ?? []));
    page_token = page.next_page_token;
  } while (page_token && found.length < 10_000);
  return found;
}

const known = new Map<string, { at: number; ids: Promise<string[]> }>();
const FRESH_MS = 10_000;

/** The ids of all experiments, asked for at most every few seconds. */
export function allExperiments(names: Names): Promise<string[]> {
  const old = known.get(names.workspace);
  if (old && Date.now() - old.at < FRESH_MS) return old.ids;
  const ids = experiments(names).then((found) => found.map((one) => one.experiment_id));
  known.set(names.workspace, { at: Date.now(), ids });
  ids.catch(() => known.delete(names.workspace));
  return ids;
}

export interface Search {
  experiments?: string[];
  filter?: string;
  order?: string[];
  from?: number;
  limit: number;
}

export async function search(names: Names, wanted: Search, signal?: AbortSignal): Promise<{ runs: Run[]; more: boolean }> {
  const experiment_ids = wanted.experiments ?? (await allExperiments(names));
  const body = {
    experiment_ids,
    max_results: wanted.limit,
    ...(wanted.filter ? { filter: wanted.filter } : {}),
    ...(wanted.order ? { order_by: wanted.order } : {}),
    ...(wanted.from ? { page_token: btoa(JSON.stringify({ offset: wanted.from })) } : {}),
  };
  const page = await ask<Runs>(mlflow_run_search, names, { body, signal });
  return { runs: (page.runs ?? []).map(withValues), more: page.next_page_token !== undefined };
}

/** A trial of a sweep with the values it was given among its params, unless it logged them itself. */
function withValues(run: Run): Run {
  const told = run.data.tags?.find(({ key }) => key === "hyperparameters")?.value;
  if (told === undefined) return run;
  try {
    const logged = run.data.params ?? [];
    const given = Object.entries(JSON.parse(told) as Record<string, unknown>).filter(([key]) => logged.every((param) => param.key !== key));
    const params = given.map(([key, value]) => ({ key, value: typeof value === "string" ? value : JSON.stringify(value) }));
    return { ...run, data: { ...run.data, params: [...params, ...logged] } };
  } catch {
    return run;
  }
}

/** Whether a run is a job's, which can be canceled and has files here. */
export function isJob(run: Run): boolean {
  return (run.data.tags ?? []).some(({ key, value }) => key === "mlflow.source.type" && value === "JOB");
}

export function isOver(status: string): boolean {
  return status === "FINISHED" || status === "FAILED" || status === "KILLED";
}
