// Runs, as MLflow's search gives them.
import { ask } from "../api/call.ts";
import { mlflow_run_search } from "../api/routes.ts";
import type { Run, Runs } from "../api/shapes.ts";
import type { Scope } from "./scope.ts";

type Names = Scope["names"];

export interface Search {
  /** Every one that is not deleted where it is absent. */
  experiments?: string[];
  filter?: string;
  order?: string[];
  from?: number;
  /** Where the page before said that this one begins: what came in between moves nothing. */
  token?: string | undefined;
  limit: number;
  /** How many there are is wanted too. */
  counted?: boolean;
}

export interface Found {
  runs: Run[];
  more: boolean;
  /** Where the next page begins. */
  next: string | undefined;
  total: Runs["total"];
}

export async function search(names: Names, wanted: Search, signal?: AbortSignal): Promise<Found> {
  const page_token = wanted.token ?? (wanted.from ? btoa(JSON.stringify({ offset: wanted.from })) : undefined);
  const body = {
    experiment_ids: wanted.experiments ?? ["*"],
    max_results: wanted.limit,
    ...(wanted.filter ? { filter: wanted.filter } : {}),
    ...(wanted.order ? { order_by: wanted.order } : {}),
    ...(page_token ? { page_token } : {}),
    ...(wanted.counted ? { count_total: true } : {}),
  };
  const page = await ask<Runs>(mlflow_run_search, names, { body, signal });
  return { runs: (page.runs ?? []).map(withValues), more: page.next_page_token !== undefined, next: page.next_page_token, total: page.total };
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
