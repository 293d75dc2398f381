// One job: what it is, how it goes, what it wrote.
import { useState } from "react";
import { ask, Refused } from "../api/call.ts";
import { job_cancel, job_get, job_why, mlflow_run_get } from "../api/routes.ts";
import type { Job, Run, Why } from "../api/shapes.ts";
import { useData } from "../parts/data.ts";
import { at } from "../parts/place.ts";
import { useScope } from "../parts/scope.ts";
import { Badge, Link, Problem, Tabs, Wait } from "../parts/show.tsx";
import { status } from "../parts/words.ts";
import { Children } from "./job/children.tsx";
import { Definition } from "./job/definition.tsx";
import { Files } from "./job/files.tsx";
import { Logs } from "./job/logs.tsx";
import { MetricsTab } from "./job/metrics.tsx";
import { Overview } from "./job/overview.tsx";
import { Register } from "./job/register.tsx";
import { Again } from "./job/again.tsx";

const EVERY_MS = 2000;
const OVER = ["Completed", "Failed", "Canceled"];

export interface Seen {
  job?: Job;
  why?: Why;
  run?: Run;
}

/** A job with its story, or a run that some program logged by itself. */
async function look(names: ReturnType<typeof useScope>["names"], name: string, signal: AbortSignal): Promise<Seen> {
  const run = ask<{ run: Run }>(mlflow_run_get, names, { query: { run_id: name }, signal }).then((found) => found.run, () => undefined);
  try {
    const params = { ...names, name };
    const [job, why, own] = await Promise.all([ask<Job>(job_get, params, { signal }), ask<Why>(job_why, params, { signal }), run]);
    return { job, why, ...(own ? { run: own } : {}) };
  } catch (error) {
    const own = await run;
    if (own && error instanceof Refused && error.status === 404) return { run: own };
    throw error;
  }
}

export function JobPage({ name, tab }: { name: string; tab: string }) {
  const { names, workspace, works } = useScope();
  const [over, setOver] = useState(false);
  const [problem, setProblem] = useState<Error>();
  const [again, setAgain] = useState(false);
  const [registering, setRegistering] = useState(false);
  const seen = useData(
    name,
    async (signal) => {
      const found = await look(names, name, signal);
      setOver(OVER.includes(state(found)));
      return found;
    },
    over ? 15_000 : EVERY_MS,
  );
  const cancel = () => ask(job_cancel, { ...names, name }).then(seen.again, setProblem);
  return (
    <Wait on={seen}>
      {(found) => {
        const kind = found.job?.properties.jobType;
        const parent = kind === "Pipeline" || kind === "Sweep";
        const tabs: [string, string][] = [
          ["overview", "Overview"],
          ...(parent ? ([["children", kind === "Sweep" ? "Trials" : "Steps"]] as [string, string][]) : []),
          ["metrics", "Metrics"],
          ...(found.job ? ([["logs", "Logs"], ["files", "Files"], ["definition", "Definition"]] as [string, string][]) : []),
        ];
        return (
          <div className={tab === "logs" ? "page-full" : ""}>
            <p className="crumbs">
              <Link to={at(workspace.name, ["jobs"])}>Jobs</Link> / {name}
            </p>
            <header className="bar">
              <h1>{found.job?.properties.displayName ?? found.run?.info.run_name ?? name}</h1>
              <Badge status={state(found)} />
              <span className="grow" />
              {works && found.job && !over && <button type="button" onClick={() => void cancel()}>Cancel</button>}
              {works && found.job && over && <button type="button" onClick={() => setRegistering(true)}>Register…</button>}
              {works && found.job && <button type="button" onClick={() => setAgain(true)}>Run again…</button>}
            </header>
            {problem !== undefined && <Problem error={problem} />}
            <Tabs label="Parts of the job" tabs={tabs} here={tab} to={(part) => at(workspace.name, ["jobs", name, part])} />
            {tab === "overview" && <Overview seen={found} over={over} />}
            {tab === "children" && found.job && <Children job={found.job} over={over} />}
            {tab === "metrics" && <MetricsTab name={name} />}
            {tab === "logs" && <Logs name={name} />}
            {tab === "files" && <Files name={name} />}
            {tab === "definition" && found.job && <Definition job={found.job} />}
            {registering && found.job && <Register job={found.job} close={() => setRegistering(false)} />}
            {again && found.job && <Again job={found.job} close={() => setAgain(false)} />}
          </div>
        );
      }}
    </Wait>
  );
}

export function state({ job, run }: Seen): string {
  return job?.properties.status ?? status(run?.info.status ?? "");
}
